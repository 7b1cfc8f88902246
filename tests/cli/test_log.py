"""``hookline log``."""

from __future__ import annotations

import json
import re
import signal
import subprocess

import pytest

from .bench import (
    GUARD,
    PATIENCE_S,
    Bench,
    before_tool,
    group,
)


def ids(bench: Bench, *words: str) -> list[int]:
    return [entry["id"] for entry in bench.json("log", *words)]


def test_log_shows_one_readable_line_for_each_event(recorded: Bench) -> None:
    lines = recorded.run("log").stdout.splitlines()
    assert len(lines) == 4
    assert re.search(r"^ +2 .* blocked .*BeforeTool write_file .*1 hook ", lines[1])
    assert "by guard: not this one" in lines[1]
    assert "failed: crash" in lines[2]
    assert "0 hooks" in lines[3]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--event", "BeforeTool"], [1, 2, 3, 4]),
        (["--event", "AfterTool"], []),
        (["--tool", "write_file"], [1, 2]),
        (["--tool", "*_file"], [1, 2, 4]),
        (["--hook", "guard"], [1, 2]),
        (["--hook", "nobody"], []),
        (["--blocked"], [2]),
        (["--failed"], [3]),
        (["--since", "1h"], [1, 2, 3, 4]),
        (["--since", "2099-01-01"], []),
        (["-n", "2"], [3, 4]),
        (["--tool", "write_file", "--blocked"], [2]),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_log_filters_events(
    recorded: Bench, words: list[str], expected: list[int]
) -> None:
    assert ids(recorded, *words) == expected


def test_filters_find_names_to_the_letter(bench: Bench) -> None:
    """protocol.md#logs: only ``*`` and ``?`` make a pattern, brackets are letters."""
    names = ["a[b]", "[", "a]", "a[!b]*", "a[^b]?", "ab", "a\\[b", "ü[é]"]
    for name in names:
        rule = {"type": "rule", "name": name, "when": "false"}
        settings = bench.settings("s.json", before_tool(group(rule)))
        call = ("fire", "BeforeTool", "--settings", settings, "--record")
        bench.run(*call, "--tool", name, "--session-id", name)
    for number, name in enumerate(names, 1):
        # As one word: a name may start with a dash.
        for option in ("--tool", "--hook", "--session"):
            matching = ids(bench, f"{option}={name}")
            assert matching == [number] or set("*?") & set(name)
            assert number in matching
            assert ids(bench, f"{option}=a[b*") == [1]
        figures = bench.json("stats", f"--hook={name}")
        assert name in [hook["name"] for hook in figures]
    replayed = bench.run("replay", "--tool=a[b]", "--settings", settings)
    assert "1 event replayed" in replayed.stdout


def test_log_filters_by_session(recorded: Bench) -> None:
    session = recorded.json("log", "2")["session_id"]
    assert ids(recorded, "--session", session) == [2]


def test_log_of_one_event_shows_everything_about_it(recorded: Bench) -> None:
    shown = recorded.run("log", "2").stdout
    for part in ("event 2: BeforeTool write_file, blocked", '"path": "forbidden"'):
        assert part in shown
    assert "hook 1: guard (explicit, command, exit status 2," in shown
    assert "not this one" in shown
    entry = recorded.json("log", "2")
    assert entry["hooks"][0]["exit_code"] == 2
    assert entry["final_output"] == {"decision": "deny", "reason": "not this one"}
    assert entry["input"]["tool_input"] == {"path": "forbidden"}


def test_log_shows_that_values_are_masked(recorded: Bench) -> None:
    shown = recorded.run("log", "4").stdout
    assert "input (credentials masked)" in shown
    assert "hunter2" not in shown
    assert recorded.json("log", "4")["input_masked"] is True


def test_log_replaces_control_characters_in_recorded_text(bench: Bench) -> None:
    evil = "\x1b]0;owned\x07\x1b[2Jline\nbreak"
    settings = bench.settings("s.json", before_tool(group(GUARD)))
    bench.fire(settings, evil, path="forbidden" + evil)
    for words in (["log"], ["log", "1"], ["stats"]):
        shown = bench.run(*words).stdout
        assert "\x1b" not in shown
        assert "\x07" not in shown
    assert len(bench.run("log").stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["log", "99"], "no event 99 is recorded"),
        (["log", "--event", "BeforeTol"], "did you mean 'BeforeTool'?"),
        (["log", "--since", "soon"], "--since 'soon' is not a time"),
        (["log", "-n", "-1"], "must be at least 0"),
        (["log", "--journal", "none.sqlite"], "does not exist"),
        (["stats", "--since", "3y"], "--since '3y' is not a time"),
        (["replay", "--jobs", "0"], "must be at least 1"),
        (["log", "--journal", " "], "needs a file name"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_usage_errors_are_explained(
    recorded: Bench, words: list[str], problem: str
) -> None:
    done = recorded.run(*words)
    assert done.returncode == 1
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_a_journal_that_cannot_be_reached_is_not_a_missing_one(bench: Bench) -> None:
    """Issue 17: a folder of another user looked like an empty journal."""
    loop = bench.project / "loop"
    loop.symlink_to(loop)
    settings = bench.settings("s.json", {"hooksConfig": {"journal": f"{loop}/j.db"}})
    done = bench.run("log", "--settings", settings)
    assert done.returncode == 1
    assert "nothing is recorded" not in done.stderr
    assert f"{loop}/j.db" in done.stderr


@pytest.mark.parametrize("name", ["log", "stats", "replay"])
def test_a_missing_journal_is_not_an_error(bench: Bench, name: str) -> None:
    done = bench.run(name)
    assert done.returncode == 0
    assert "nothing is recorded yet" in done.stderr
    assert bench.json(name) is not None
    assert not bench.journal.exists()


def test_a_journal_that_waits_for_approval_is_named(bench: Bench) -> None:
    """Issue 17: the option is set, so "set it" would help nobody."""
    (bench.project / ".hookline").mkdir()
    settings = before_tool(group(GUARD), journal=True)
    bench.settings(".hookline/settings.json", settings)
    wanted = "hooksConfig counts once you run 'hookline trust'"
    assert wanted in bench.run("log").stderr
    bench.run("trust", "--yes")
    assert "set hooksConfig.journal to true" in bench.run("log").stderr


def test_a_journal_of_a_project_without_hooks_belongs_to_the_user(bench: Bench) -> None:
    """Issue 17: there is nothing to approve in it."""
    (bench.project / ".hookline").mkdir()
    bench.settings(".hookline/settings.json", {"hooksConfig": {"journal": True}})
    wanted = f"use {bench.home}/config/hookline/settings.json"
    assert wanted in bench.run("log").stderr


@pytest.mark.parametrize("words", [["log"], ["stats"], ["replay"], ["log", "-f"]])
def test_a_foreign_file_is_refused_by_name(bench: Bench, words: list[str]) -> None:
    bench.journal.parent.mkdir(parents=True)
    bench.journal.write_text("precious")
    done = bench.run(*words)
    assert done.returncode == 1
    assert str(bench.journal) in done.stderr
    assert "to start a new one" in done.stderr
    assert bench.journal.read_text() == "precious"


def test_log_follows_until_interrupted(bench: Bench) -> None:
    settings = bench.settings("s.json", before_tool(group(GUARD)))
    with subprocess.Popen(
        bench.argv("log", "--follow", "--json"),
        cwd=bench.project,
        env=bench.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as follower:
        assert follower.stdout is not None
        assert follower.stderr is not None
        assert b"waiting for" in follower.stderr.readline()
        for number in range(1, 4):
            bench.fire(settings, f"tool-{number}")
            entry = json.loads(follower.stdout.readline())
            assert (entry["id"], entry["target"]) == (number, f"tool-{number}")
        follower.send_signal(signal.SIGINT)
        out, problems = follower.communicate(timeout=PATIENCE_S)
    assert (out, follower.returncode) == (b"", 0)
    only = f"only events in {bench.project} are shown: --everywhere shows all"
    assert problems.decode() == f"hookline: {only}\n"


def test_log_ends_quietly_when_its_reader_leaves(recorded: Bench) -> None:
    done = subprocess.run(
        ["bash", "-c", '"$@" | head -n 1', "bash", *recorded.argv("log", "4")],
        cwd=recorded.project,
        env=recorded.env,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert done.stdout.startswith("event 4")
    assert done.stderr == ""


def test_source_of_a_settings_file_that_is_named_is_explicit(bench: Bench) -> None:
    """protocol.md#settings: in every report; it is not the project's own."""
    settings = bench.settings("s.json", before_tool(group(GUARD)))
    named = ("--settings", settings)
    bench.fire(settings, "x")
    fired = bench.json("fire", "BeforeTool", "--tool", "x", *named)
    listed = bench.json("list", *named)
    explained = bench.json("explain", "BeforeTool", "--tool", "x", *named)
    (recorded,) = bench.json("log")
    figures = bench.json("stats")
    reports = [fired["hooks"], listed, explained["hooks"], recorded["hooks"], figures]
    assert [[hook["source"] for hook in report] for report in reports] == [
        ["explicit"]
    ] * 5
    shown = bench.run("fire", "BeforeTool", "--tool", "x", *named).stdout
    assert "guard (explicit, " in shown
