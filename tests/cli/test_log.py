"""``hookline log`` and ``stats``: following, odd journals, times and columns.

What they print of ordinary events is in ``tests/pins/commands``.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.command_project import (
    GUARD,
    PATIENCE_S,
    PROGRAM,
    CommandProject,
    command_hook,
    settings_of,
)
from tests.support.journals import change, make_journal
from tests.support.python import run_python


@contextmanager
def following(
    project: CommandProject, *words: str, cwd: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """``log --follow`` that waits for a journal."""
    with project.start(
        "log", "--follow", "--json", *words, cwd=cwd or project.project
    ) as follower:
        assert follower.stderr is not None
        assert b"waiting for" in follower.stderr.readline()
        try:
            yield follower
        finally:
            follower.kill()


def next_event(follower: subprocess.Popen[bytes]) -> tuple[int, str]:
    assert follower.stdout is not None
    entry = json.loads(follower.stdout.readline())
    return entry["id"], entry["target"]


def test_log_follows_until_interrupted(command_project: CommandProject) -> None:
    command_project.write("s.json", settings_of(GUARD))
    with following(command_project) as follower:
        for number in range(1, 4):
            command_project.fire("s.json", f"tool-{number}")
            assert next_event(follower) == (number, f"tool-{number}")
        follower.send_signal(signal.SIGINT)
        out, problems = follower.communicate(timeout=PATIENCE_S)
    assert (out, follower.returncode) == (b"", 0)
    only = f"only events in {command_project.project} are shown"
    assert problems.decode() == f"hookline: {only}: --everywhere shows all\n"


def test_log_follows_only_this_project(command_project: CommandProject) -> None:
    repository, plain = (command_project.root / name for name in ("repo", "plain"))
    for folder in (repository / ".git", repository / "src", plain):
        folder.mkdir(parents=True)
    file = str(command_project.write("s.json", settings_of(GUARD)))
    journal = ("--journal", str(command_project.root / "j.sqlite"))
    with following(
        command_project, "--here", *journal, cwd=repository / "src"
    ) as follower:
        for number in (1, 3):
            for folder in (plain, repository):
                words = ("fire", "BeforeTool", "--settings", file, "--tool", "t")
                command_project.run(*words, *journal, cwd=folder)
            assert next_event(follower) == (number + 1, "t")


def test_log_ends_quietly_when_its_reader_leaves(
    command_project: CommandProject,
) -> None:
    journal = make_journal(command_project.root / "j.sqlite", 4)
    words = [*PROGRAM, "log", "4", "--journal", str(journal)]
    ended = subprocess.run(
        ["bash", "-c", '"$@" | head -n 1', "bash", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert ended.stdout.startswith("event 4")
    assert ended.stderr == ""


def test_rows_that_hookline_did_not_write_control_no_terminal(
    command_project: CommandProject,
) -> None:
    """A project may bring its journal along."""
    path, evil = make_journal(command_project.root / "j.sqlite", 1), "\x1b[2J\nx"
    change(path, "UPDATE events SET event = ?, verdict = ?, blocked = 1", evil, evil)
    errors = json.dumps([{"stage": evil, "message": "m"}])
    plan = {"sequential": False, "hooks": [{"name": "n", "source": evil}]}
    update = "UPDATE events SET errors = ?, plan = ?"
    change(path, update, errors, json.dumps(plan))
    update = "UPDATE hooks SET source = ?, type = ?, blocked = 1, warnings = ?"
    change(path, update, evil, evil, json.dumps([evil]))
    lines = []
    for words in (["log"], ["stats"], ["log", "1"]):
        ended = command_project.run(*words, "--journal", path)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert "\x1b" not in ended.stdout
        lines += ended.stdout.splitlines()
    assert lines[0].endswith("by hook-1")  # no reason is recorded
    assert lines[1].startswith("hook ")
    assert not [line for line in lines if line.startswith("x")]


def test_hook_that_blocks_twice_is_named_once(command_project: CommandProject) -> None:
    command_project.write("s.json", settings_of(command_hook("exit 2", "guard")))
    command_project.fire("s.json", "t")
    columns = "event_id, name, source, type, success, failed, blocked, would_block"
    columns += ", exit_code, timed_out, truncated, reran, duration_ms, output, stderr"
    again = f"INSERT INTO hooks (position, {columns}) SELECT 9, {columns} FROM hooks"
    change(command_project.journal, again)
    assert "by guard: " in command_project.run("log").stdout


def test_figures_are_those_of_the_recorded_durations(
    command_project: CommandProject,
) -> None:
    """Five hooks in turn, where event N takes N ms; every 97th event is blocked.

    The most frequent hook comes first, and the mode is that of the newest run.
    """
    path = make_journal(command_project.root / "j.sqlite", 1000)
    change(path, "UPDATE hooks SET duration_ms = event_id, observed = event_id = 1000")
    change(path, "UPDATE hooks SET name = 'a-rare-one' WHERE event_id = 4")
    flags = "timed_out = 1, recheck = 1, standby_hit = 1, standby_miss = 1"
    change(path, f"UPDATE hooks SET {flags} WHERE event_id = 999")
    figures = command_project.json("stats", "--journal", str(path))
    keys = (
        *("name", "mode", "runs", "blocks", "failures", "would_block"),
        *("timeouts", "rechecks", "standby_hits", "standby_misses"),
        *("p50_ms", "p95_ms", "p99_ms", "max_ms"),
    )
    assert [tuple(hook[key] for key in keys) for hook in figures] == [
        ("hook-0", "observe", 200, 2, 0, 0, 0, 0, 0, 0, 500, 950, 990, 1000),
        ("hook-1", "enforce", 200, 2, 1, 1, 0, 0, 0, 0, 496, 946, 986, 996),
        ("hook-2", "enforce", 200, 2, 1, 1, 0, 0, 0, 0, 497, 947, 987, 997),
        ("hook-3", "enforce", 200, 2, 1, 1, 0, 0, 0, 0, 498, 948, 988, 998),
        ("hook-4", "enforce", 199, 2, 1, 0, 1, 1, 1, 1, 504, 954, 994, 999),
        ("a-rare-one", "enforce", 1, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4),
    ]
    shown = command_project.run("stats", "--journal", path).stdout
    assert shown.splitlines()[1].split()[:4] == ["hook-0", "user", "observe", "200"]
    assert " 500 ms    950 ms    990 ms  █" in shown
    assert "\n1,000 events from " in shown


def test_stats_has_no_bar_on_a_narrow_terminal(
    command_project: CommandProject,
) -> None:
    words = ("stats", "--journal", str(make_journal(command_project.root / "j.db", 9)))
    narrow = command_project.on_terminal(*words, columns=40, stream="stdout")
    assert "█" not in narrow
    assert "hook-1" in narrow


def test_stats_shows_hits_and_misses_of_standby(
    command_project: CommandProject,
) -> None:
    """The host stays, since one-shot commands start nothing ahead."""
    host = """
        import asyncio, os, sys
        from hookline import Config, HookSystem, Settings
        os.chdir(sys.argv[1])
        script = "import sys; open('up', 'a').write('x'); sys.stdin.read()"
        hook = {"type": "command", "name": "ahead", "standby": 1,
                "command": f'"$HOOKLINE_PYTHON" -c "{script}"'}
        settings = {"hooks": {"BeforeTool": [{"hooks": [hook]}]},
                    "hooksConfig": {"journal": sys.argv[2]}}
        async def main():
            config = Config("s", ".", Settings.from_mapping(settings))
            async with HookSystem(config) as hooks:
                while not os.path.exists("up"):
                    await asyncio.sleep(0.01)
                fire = hooks.event_handler.fire_before_tool_event
                await asyncio.gather(fire("a", {}), fire("b", {}), fire("c", {}))
        asyncio.run(main())
    """
    journal = str(command_project.root / "j.sqlite")
    ended = run_python(host, str(command_project.project), journal)
    assert ended.returncode == 0, ended.stderr
    (ahead,) = command_project.json("stats", "--journal", journal)
    assert (ahead["standby_hits"], ahead["standby_misses"]) == (1, 2)
    heading, row, *_ = command_project.run("stats", "--journal", journal).stdout.split(
        "\n"
    )
    assert heading.split()[4:7] == ["failures", "hits", "misses"]
    assert row.split()[:7] == ["ahead", "project", "3", "0", "0", "1", "2"]
    events = command_project.json("log", "--journal", journal)
    shown = sorted(event["hooks"][0]["standby"] for event in events)
    assert shown == [False, False, True]


SPANS = {"90s": 90, "30m": 1800, "2h": 7200, "2H": 7200, "3d": 259200, "1w": 604800}


def test_times_are_spans_back_from_now_and_dates(
    command_project: CommandProject,
) -> None:
    """Each span finds the event just inside it, not the one just outside."""
    date = time.mktime((2026, 11, 1, 0, 0, 0, 0, 0, -1))
    year, month, day, *_ = time.localtime()
    since = {
        **{span: time.time() - seconds for span, seconds in SPANS.items()},
        "today": time.mktime((year, month, day, 0, 0, 0, 0, 0, -1)),
        "yesterday": time.mktime((year, month, day - 1, 0, 0, 0, 0, 0, -1)),
        "2026-11-01": date,
        "2026-11-01T00:00:00": date,
        "2026-11-01T12:30": date + 45000,
        "1970-01-01T00:01:00Z": 60.0,
        "@86400.5": 86400.5,
    }
    journal = make_journal(command_project.root / "j.sqlite", 2)
    found = ("--journal", str(journal), "-n", "0")
    for text, moment in since.items():
        for number, distance in ((1, -40), (2, +40)):
            update = "UPDATE events SET at = ? WHERE id = ?"
            change(journal, update, moment + distance, number)
        for option, expected in (("--since", [2]), ("--until", [1])):
            events = command_project.json("log", f"{option}={text}", *found)
            assert [event["id"] for event in events] == expected, (option, text)
    change(journal, "UPDATE events SET at = 0.5")
    (first, _) = command_project.json("log", *found)
    assert first["at"] == "1970-01-01T00:00:00.500Z"


@settings(max_examples=50, suppress_health_check=[*HealthCheck])
@given(text=st.text(max_size=12))
def test_any_other_text_is_no_time_and_gets_a_hint(
    command_project: CommandProject, text: str
) -> None:
    ended = command_project.run("log", f"--since={text}")
    assert ended.returncode == 0 or "2026-11-01" in ended.stderr


DURATIONS = {0.04: "0.0 ms", 4.21: "4.2 ms", 412.3: "412 ms", 61000: "61.0 s"}
PATHS = {
    "/home/me": "~",
    "/home/me/src/app": "~/src/app",
    "/home/mean/app": "/home/mean/app",
    "/srv/a/very/long/path/to/one/project": "…/path/to/one/project",
    "/srv/a-name-that-is-longer-than-it-may-be": "…s-longer-than-it-may-be",
    "/evil\n\x1b[2J": "/evil \\x1b[2J",
    "/": "/",
}


def test_durations_have_few_digits_and_long_paths_keep_their_end(
    command_project: CommandProject,
) -> None:
    """Log and stats show the project, shortened for reading."""
    command_project.env["HOME"] = "/home/me"
    journal = make_journal(command_project.root / "j.sqlite", 2)
    shown = ("log", "--everywhere", "--journal", str(journal))
    for duration, text in DURATIONS.items():
        change(journal, "UPDATE events SET duration_ms = ?", duration)
        assert f" {text} " in command_project.run(*shown).stdout
    for path, text in PATHS.items():
        change(journal, "UPDATE events SET cwd = ? WHERE id = 1", path)
        first = command_project.run(*shown).stdout.splitlines()[0]
        assert first.endswith(f"  {text}"), path


def test_tables_with_wide_characters_are_aligned(
    command_project: CommandProject,
) -> None:
    names = ("ab", "目录", "e\u0301")
    hooks = [command_hook("true", name) for name in names]
    command_project.write("s.json", settings_of(*hooks))
    lines = command_project.run("list", "--settings", "s.json").stdout.splitlines()
    starts = [line.index("explicit") for line in lines[1:]]
    # Two columns for each wide character, none for a combining one.
    assert [start - starts[0] for start in starts] == [0, -2, 1]
