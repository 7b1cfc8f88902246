"""``hookline fire --record``, and what firing loads and shows."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from hookline.protocol.events import TRAITS, HookEventName

from .bench import GUARD, Bench, before_tool, command, group, on_terminal


def ids(bench: Bench, *words: str) -> list[int]:
    return [entry["id"] for entry in bench.json("log", *words)]


def test_fire_gives_its_verdict_though_it_cannot_record(bench: Bench) -> None:
    (bench.project / "notes").write_text("precious")
    settings = bench.settings("s.json", before_tool(group(GUARD)))
    done = bench.run(
        *("fire", "BeforeTool", "--settings", settings, "--journal", "notes"),
        *("--tool", "t", "--tool-input", '{"a": "forbidden"}', "--json"),
    )
    assert done.returncode == 2
    assert json.loads(done.stdout)["blocked"] is True
    assert str(bench.project / "notes") in done.stderr
    assert (bench.project / "notes").read_text() == "precious"


REQUEST = {"model": "m", "messages": [{"role": "user", "content": "né"}]}
FIELDS: dict[str, Any] = {
    "tool_name": "t",
    "tool_input": {"path": "é\n"},
    "tool_response": {"ok": True},
    "prompt": "p",
    "prompt_response": "r",
    "llm_request": REQUEST,
    "llm_response": {"text": "x"},
    "source": "startup",
    "reason": "exit",
    "trigger": "auto",
    "notification_type": "ToolPermission",
    "message": "m",
    "details": {},
    "agent_type": "a",
    "agent_id": "1",
}


@pytest.mark.parametrize("event", HookEventName)
def test_a_recorded_input_fires_again_from_standard_input(
    bench: Bench, event: HookEventName
) -> None:
    """Issue 16: the inspector runs events through ``fire --json --input -``."""
    see = command('cat > seen.json; echo \'{"systemMessage": "seen"}\'', "see")
    settings = bench.settings("s.json", {"hooks": {event: [group(see)]}})
    fire = ("fire", event, "--settings", settings, "--json", "--input", "-")
    first = bench.run(*fire, "--record", stdin=json.dumps(FIELDS))
    assert first.returncode == 0, first.stderr
    recorded = bench.json("log", "1")["input"]
    if field := TRAITS[event].matched_field:
        assert recorded[field] == FIELDS[field]
    again = bench.run(*fire, stdin=json.dumps(recorded))
    assert (again.returncode, again.stderr) == (0, "")
    seen = json.loads((bench.project / "seen.json").read_text())
    assert {**seen, "timestamp": ""} == {**recorded, "timestamp": ""}
    for done in (first, again):
        result = json.loads(done.stdout)
        assert (result["event"], result["system_message"]) == (event, "seen")


def test_fire_records_only_when_asked_to(bench: Bench) -> None:
    settings = bench.settings("s.json", before_tool(group(GUARD)))
    fire = ("fire", "BeforeTool", "--settings", settings, "--tool", "t")
    assert bench.run(*fire).returncode == 0
    assert not bench.journal.exists()
    assert bench.run(*fire, "--record").returncode == 0
    assert ids(bench) == [1]
    assert bench.run(*fire, "--journal", "own.sqlite").returncode == 0
    assert ids(bench, "--journal", "own.sqlite") == [1]
    assert ids(bench) == [1]


def test_fire_warns_that_nothing_is_recorded_if_hooks_are_off(
    bench: Bench,
) -> None:
    settings = bench.settings("s.json", {"enableHooks": False})
    fire = ("fire", "BeforeTool", "--settings", settings, "--tool", "t", "--record")
    done = bench.run(*fire)
    assert done.returncode == 0
    assert "nothing is recorded" in done.stderr
    assert not bench.journal.exists()


def test_settings_switch_the_journal_on_and_name_its_place(bench: Bench) -> None:
    on = bench.settings("on.json", before_tool(group(GUARD), journal=True))
    named = bench.settings("named.json", before_tool(group(GUARD), journal="x/j.db"))
    for settings in (on, named):
        bench.run("fire", "BeforeTool", "--settings", settings, "--tool", "t")
    assert ids(bench) == [1]
    assert (bench.project / "x" / "j.db").exists()
    assert ids(bench, "--settings", named) == [1]


def test_progress_is_shown_on_a_terminal_after_a_second(bench: Bench) -> None:
    settings = bench.settings(
        "s.json", before_tool(group(command("sleep 1.5; exit 0", "slow")))
    )
    words = ("fire", "BeforeTool", "--settings", settings, "--tool", "t", "--json")
    assert "waiting for hooks" in on_terminal(bench, *words)
    assert bench.run(*words).stderr == ""


def test_sqlite_is_loaded_only_where_there_is_a_journal() -> None:
    script = """
    import sys
    import hookline.engine.system, hookline.cli.fire, hookline.cli.main
    print("sqlite3" in sys.modules, "hookline.journal.store" in sys.modules)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False False\n"
