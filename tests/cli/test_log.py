"""``hookline log`` and ``hookline stats``."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from .bench import (
    CRASH,
    GUARD,
    PATIENCE_S,
    Bench,
    before_tool,
    command,
    group,
    on_terminal,
)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Four events: allowed, blocked, failed, unmatched; nobody adds to them."""
    bench = Bench(tmp_path_factory.mktemp("recorded"))
    settings = bench.settings(
        "s.json",
        before_tool(group(GUARD, matcher="write"), group(CRASH, matcher="run")),
    )
    bench.fire(settings, "write_file", path="a")
    bench.fire(settings, "write_file", path="forbidden")
    bench.fire(settings, "run_tests", path="b")
    bench.fire(settings, "read_file", path="c", password="hunter2")
    return bench


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


def test_log_filters_by_session(recorded: Bench) -> None:
    session = recorded.json("log", "2")["session_id"]
    assert ids(recorded, "--session", session) == [2]


def test_log_of_one_event_shows_everything_about_it(recorded: Bench) -> None:
    shown = recorded.run("log", "2").stdout
    for part in ("event 2: BeforeTool write_file, blocked", '"path": "forbidden"'):
        assert part in shown
    assert "hook 1: guard (project, command, exit status 2," in shown
    assert "not this one" in shown
    entry = recorded.json("log", "2")
    assert entry["hooks"][0]["exit_code"] == 2
    assert entry["final_output"] == {"decision": "deny", "reason": "not this one"}
    assert entry["input"]["tool_input"] == {"path": "forbidden"}


def test_log_says_what_was_masked(recorded: Bench) -> None:
    shown = recorded.run("log", "4").stdout
    assert "input (credentials masked)" in shown
    assert "hunter2" not in shown
    assert recorded.json("log", "4")["input_masked"] is True


def test_log_lets_no_recorded_text_drive_the_terminal(bench: Bench) -> None:
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
        (["log", "--since", "soon"], "--since 'soon' is no time"),
        (["log", "-n", "-1"], "give a number from 0 on"),
        (["log", "--journal", "none.sqlite"], "there is none"),
        (["stats", "--since", "3y"], "--since '3y' is no time"),
        (["replay", "--jobs", "0"], "give a number from 1 on"),
        (["log", "--journal", " "], "needs the name of a file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_answered_with_what_to_do(
    recorded: Bench, words: list[str], problem: str
) -> None:
    done = recorded.run(*words)
    assert done.returncode == 1
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["log", "stats", "replay"])
def test_a_journal_that_was_never_begun_is_no_error(bench: Bench, name: str) -> None:
    done = bench.run(name)
    assert done.returncode == 0
    assert "nothing has been recorded yet" in done.stderr
    assert bench.json(name) is not None
    assert not bench.journal.exists()


@pytest.mark.parametrize("words", [["log"], ["stats"], ["replay"], ["log", "-f"]])
def test_a_foreign_file_is_refused_by_name(bench: Bench, words: list[str]) -> None:
    bench.journal.parent.mkdir(parents=True)
    bench.journal.write_text("precious")
    done = bench.run(*words)
    assert done.returncode == 1
    assert str(bench.journal) in done.stderr
    assert "--move-aside" in done.stderr
    assert bench.journal.read_text() == "precious"


def test_log_moves_a_foreign_file_aside_on_request(bench: Bench) -> None:
    bench.journal.parent.mkdir(parents=True)
    bench.journal.write_text("precious")
    done = bench.run("log", "--move-aside")
    assert done.returncode == 0
    aside = Path(done.stdout.strip().removeprefix("moved to "))
    assert aside.read_text() == "precious"
    bench.fire(bench.settings("s.json", before_tool(group(GUARD))), "t")
    assert ids(bench) == [1]


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


def test_fire_says_that_nothing_is_recorded_while_hooks_are_off(bench: Bench) -> None:
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
    assert (out, problems, follower.returncode) == (b"", b"", 0)


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
    assert re.match(r"guard +project +2 +1 +0 .*█", lines[1])
    assert lines[-1].startswith("4 events from ")


def test_stats_takes_the_filters_of_log(recorded: Bench) -> None:
    assert [hook["name"] for hook in recorded.json("stats", "--hook", "c*")] == [
        "crash"
    ]
    assert recorded.json("stats", "--since", "2099-01-01") == []


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
