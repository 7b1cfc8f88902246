"""``hookline stats``."""

from __future__ import annotations

import re
import subprocess
import sys

from .bench import Bench, before_tool, group


def test_stats_counts_per_hook(recorded: Bench) -> None:
    guard, crash = recorded.json("stats")
    assert (guard["name"], guard["runs"], guard["blocks"], guard["failures"]) == (
        *("guard", 2),
        *(1, 0),
    )
    assert (crash["name"], crash["runs"], crash["blocks"], crash["failures"]) == (
        *("crash", 1),
        *(0, 1),
    )
    assert 0 < guard["p50_ms"] <= guard["p95_ms"] <= guard["p99_ms"] <= guard["max_ms"]
    lines = recorded.run("stats").stdout.splitlines()
    assert lines[0].split() == [
        *("hook", "source", "runs", "blocks", "failures", "p50", "p95", "p99")
    ]
    assert re.match(r"guard +explicit +2 +1 +0 .*█", lines[1])
    assert lines[-1].startswith("4 events from ")


def test_stats_takes_the_filters_of_log(recorded: Bench) -> None:
    assert [hook["name"] for hook in recorded.json("stats", "--hook", "c*")] == [
        "crash"
    ]
    assert recorded.json("stats", "--since", "2099-01-01") == []


def test_stats_shows_hits_and_misses_of_standby(bench: Bench) -> None:
    """Issue 13.5; the host stays, since one-shot commands start nothing ahead."""
    host = """
import asyncio, os, sys
from hookline import Config, HookSystem, Settings
script = "import sys; open('up', 'a').write('x'); sys.stdin.read()"
hook = {"type": "command", "name": "ahead", "standby": 1,
        "command": f'"$HOOKLINE_PYTHON" -c "{script}"'}
settings = {"hooks": {"BeforeTool": [{"hooks": [hook]}]},
            "hooksConfig": {"journal": True}}
async def main():
    config = Config("s", ".", Settings.from_mapping(settings))
    async with HookSystem(config) as hooks:
        while not os.path.exists("up"):
            await asyncio.sleep(0.01)
        fire = hooks.event_handler.fire_before_tool_event
        await asyncio.gather(fire("a", {}), fire("b", {}), fire("c", {}))
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", host], cwd=bench.project, env=bench.env, check=False
    )
    assert done.returncode == 0
    (ahead,) = bench.json("stats")
    assert (ahead["standby_hits"], ahead["standby_misses"]) == (1, 2)
    lines = bench.run("stats").stdout.splitlines()
    assert lines[0].split()[4:7] == ["failures", "hits", "misses"]
    assert re.match(r"ahead +project +3 +0 +0 +1 +2 ", lines[1])
    shown = [bench.json("log", number)["hooks"][0]["standby"] for number in "123"]
    assert sorted(shown) == [False, False, True]


def test_one_shot_commands_start_nothing_ahead(bench: Bench) -> None:
    command = "echo x >> up; cat >/dev/null"
    hook = {"type": "command", "name": "ahead", "command": command, "standby": 3}
    settings = bench.settings("s.json", before_tool(group(hook)))
    bench.fire(settings, "write_file")
    assert (bench.project / "up").read_text() == "x\n"
    (ahead,) = bench.json("stats")
    assert (ahead["runs"], ahead["standby_hits"], ahead["standby_misses"]) == (1, 0, 0)
