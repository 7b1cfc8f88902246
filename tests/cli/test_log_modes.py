"""Mode, would-blocks, re-checks and warnings in ``log``, ``stats`` and ``list``.

Issue 16: "`list`, `stats` and `log` show mode, would-blocks and re-checks".
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from tests.support.journals import change, make_journal

from .bench import GUARD, Bench, before_tool, command, group, on_terminal, says

OBSERVER = {**GUARD, "name": "observer", "mode": "observe"}
FIXES = says({"hookSpecificOutput": {"tool_input": {"path": "fixed"}}}, "fixes")
WARNS = command('cat > /dev/null; echo note; echo \'{"decision": "deny"}\'', "warns")


def record_modes(bench: Bench) -> str:
    """Three events: would block, asked again, with a warning."""
    settings = bench.settings(
        "s.json",
        before_tool(
            group(OBSERVER),
            group(command("true", "plain"), FIXES, matcher="change", sequential=True),
            group(WARNS, matcher="warn"),
        ),
    )
    bench.fire(settings, "write", path="forbidden")
    bench.fire(settings, "change", path="a")
    bench.fire(settings, "warn", path="a")
    return settings


@pytest.fixture(scope="module")
def modes(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """No test adds to it."""
    bench = Bench(tmp_path_factory.mktemp("modes"))
    record_modes(bench)
    return bench


def test_log_says_which_hooks_would_have_blocked_and_were_asked_again(
    modes: Bench,
) -> None:
    first, second, third = modes.run("log").stdout.splitlines()
    assert " allowed " in first
    assert first.endswith("would block: observer")
    assert second.endswith("asked again: plain")
    assert "would block" not in second + third
    assert "asked again" not in first + third


def test_log_json_names_them(modes: Bench) -> None:
    first, second, _ = modes.json("log")
    assert (first["would_block"], first["recheck"]) == (["observer"], [])
    assert (second["would_block"], second["recheck"]) == ([], ["plain"])
    assert [hook["mode"] for hook in second["hooks"]] == [
        *("observe", "enforce"),
        *("enforce", "enforce"),
    ]


def test_log_filters_would_blocks(modes: Bench) -> None:
    assert [one["id"] for one in modes.json("log", "--would-block")] == [1]
    assert modes.json("log", "--would-block", "--tool", "change") == []


def test_log_of_one_event_shows_mode_rechecks_and_warnings(modes: Bench) -> None:
    shown = modes.run("log", "1").stdout
    assert "hook 1: observer (explicit, command, observe mode, exit status 2," in shown
    assert ") would block\n" in shown
    assert "asked again about the final input) ok" in modes.run("log", "2").stdout
    warned = modes.json("log", "3")["hooks"][-1]
    assert warned["name"] == "warns"
    (warning,) = warned["warnings"]
    assert f"  warning: {warning}\n" in modes.run("log", "3").stdout


def test_stats_shows_mode_would_blocks_and_rechecks(modes: Bench) -> None:
    found = {one["name"]: one for one in modes.json("stats")}
    observer, plain = found["observer"], found["plain"]
    assert (observer["mode"], observer["would_block"], observer["blocks"]) == (
        *("observe", 1),
        0,
    )
    assert (plain["mode"], plain["rechecks"], plain["runs"]) == ("enforce", 1, 2)
    lines = modes.run("stats").stdout.splitlines()
    words = "hook source mode runs blocks would block failures rechecks p50 p95 p99"
    assert lines[0].split() == words.split()
    assert lines[1].split()[:8] == [
        "observer",
        "explicit",
        "observe",
        "3",
        "0",
        "1",
        "0",
        "0",
    ]


def test_stats_shows_only_columns_that_say_something(recorded: Bench) -> None:
    headings = recorded.run("stats").stdout.splitlines()[0]
    assert not {"mode", "would", "rechecks", "project", "hits"} & set(headings.split())


def test_list_shows_the_mode_of_each_hook(modes: Bench) -> None:
    lines = modes.run("list", "--settings", "s.json").stdout.splitlines()
    assert lines[0].split()[-1] == "mode"
    assert [line.split()[-1] for line in lines[1:]] == ["observe", *["enforce"] * 3]
    found = modes.json("list", "--settings", "s.json")
    assert [one["mode"] for one in found] == ["observe", *["enforce"] * 3]


def test_a_hook_that_blocks_twice_is_named_once(bench: Bench) -> None:
    guard = command("exit 2", "guard")
    same = bench.settings("s.json", before_tool(group(guard, guard)))
    bench.fire(same, "t")
    with closing(sqlite3.connect(bench.journal)) as connection, connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(hooks)")]
        others = ", ".join(name for name in columns if name != "position")
        connection.execute(
            f"INSERT INTO hooks (position, {others}) SELECT 9, {others} FROM hooks"
        )
    assert "by guard: " in bench.run("log").stdout


def test_warnings_and_names_of_hooks_cannot_control_the_terminal(bench: Bench) -> None:
    evil = "\x1b]0;owned\x07\nsecond\u202eline"
    hooks = [{**OBSERVER, "name": f"o{evil}"}, {**WARNS, "name": f"w{evil}"}]
    bench.fire(bench.settings("s.json", before_tool(group(*hooks))), "t", p="forbidden")
    with closing(sqlite3.connect(bench.journal)) as connection, connection:
        update = "UPDATE hooks SET warnings = ?"
        connection.execute(update, [json.dumps([evil])])
    for words in (["log"], ["log", "1"], ["stats"], ["list", "--settings", "s.json"]):
        text = bench.run(*words).stdout
        assert text
        assert not set(text) & {"\x1b", "\x07", "\u202e"}
    assert len(bench.run("log").stdout.splitlines()) == 1
    assert len(bench.run("stats").stdout.splitlines()) == 4


def test_stats_has_no_bar_on_a_narrow_terminal(modes: Bench) -> None:
    wide = on_terminal(modes, "stats", columns=200, stream="stdout")
    narrow = on_terminal(modes, "stats", columns=80, stream="stdout")
    assert "█" in wide
    assert "█" not in narrow
    assert "observer" in narrow


def test_rows_that_hookline_did_not_write_control_no_terminal(bench: Bench) -> None:
    """A project may bring its journal along."""
    path, evil = make_journal(bench.project / "j.sqlite", 1), "\x1b[2J\nx"
    change(path, "UPDATE events SET event = ?, verdict = ?, blocked = 1", evil, evil)
    errors = json.dumps([{"stage": evil, "message": "m"}])
    plan = {"sequential": False, "hooks": [{"name": "n", "source": evil}]}
    update = "UPDATE events SET errors = ?, plan = ?"
    change(path, update, errors, json.dumps(plan))
    change(path, "UPDATE hooks SET source = ?, type = ?, blocked = 1", evil, evil)
    lines = []
    for words in (["log"], ["stats"], ["log", "1"]):
        done = bench.run(*words, "--journal", str(path))
        assert (done.returncode, done.stderr) == (0, "")
        assert "\x1b" not in done.stdout
        lines += done.stdout.splitlines()
    assert lines[0].endswith("by hook-1")  # no reason is recorded
    assert lines[1].startswith("hook ")
    assert not [line for line in lines if line.startswith("x")]
