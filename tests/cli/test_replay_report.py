"""``hookline replay`` as a child process: its progress, and how it ends."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hookline.cli import replay_report
from tests.support.processes import STUBBORN, marked, until

from .bench import CRASH, GUARD, PATIENCE_S, Bench, before_tool, command, group

ALLOW = command("true", "allow")


def settings_of(bench: Bench, name: str, *hooks: dict[str, Any]) -> str:
    return bench.settings(name, before_tool(group(*hooks)))


@pytest.fixture
def three(bench: Bench) -> Bench:
    """Three events that were allowed; the second one is forbidden by GUARD."""
    old = settings_of(bench, "old.json", ALLOW)
    for path in ("a", "forbidden", "c"):
        bench.fire(old, "write_file", path=path)
    return bench


def lines_of(bench: Bench, *words: str) -> list[dict[str, Any]]:
    done = bench.run("replay", *words)
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_progress_lines_lead_from_nothing_to_the_report(three: Bench) -> None:
    """Issue 16: replay in the inspector, "watch the progress"."""
    new = settings_of(three, "new.json", GUARD)
    lines = lines_of(three, "--settings", new, "--progress", "json")
    assert lines[0] == {"type": "progress", "done": 0, "total": 3}
    assert lines[-2] == {"type": "progress", "done": 3, "total": 3}
    report = three.json("replay", "--settings", new)
    counted = {k: len(v) if isinstance(v, list) else v for k, v in report.items()}
    assert lines[-1] == {"type": "report", **counted}
    (change,) = report["changed"]
    assert [line for line in lines if line["type"] == "change"] == [
        {"type": "change", **change}
    ]


def test_progress_lines_tell_of_failures(three: Bench) -> None:
    new = settings_of(three, "new.json", CRASH)
    lines = lines_of(three, "--settings", new, "--progress", "json")
    failures = [line for line in lines if line["type"] == "failure"]
    assert sorted(line["id"] for line in failures) == [1, 2, 3]
    assert "hook 'crash'" in failures[0]["errors"][0]


@pytest.mark.parametrize("words", [[], ["--dry-run"]], ids=["empty", "dry run"])
def test_progress_ends_with_a_report_if_nothing_runs(
    bench: Bench, words: list[str]
) -> None:
    done = bench.run("replay", "--progress", "json", *words)
    (report,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert (report["type"], report["events"]) == ("report", 0)


def test_a_change_is_printed_when_it_is_found(three: Bench) -> None:
    text = 'case "$(cat)" in *forbidden*) exit 2;; *\'"c"\'*) sleep 1000;; esac'
    new = settings_of(three, "new.json", command(text, "slow"))
    with start(three, "--settings", new, "--jobs", "1") as running:
        assert running.stdout is not None
        while json.loads(running.stdout.readline())["type"] != "change":
            pass
        running.terminate()
        assert running.wait(PATIENCE_S) == -signal.SIGTERM


async def test_progress_is_told_by_hooks_that_never_wait(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Rules run without the event loop, whose timers then do not fire."""
    monkeypatch.setattr(replay_report, "_INTERVAL_S", 0.0)
    lines = replay_report.ProgressLines(argparse.Namespace(progress="json"), 3)
    for _ in range(3):
        lines.step(None)
    told = [json.loads(line)["done"] for line in capfdbinary.readouterr().out.split()]
    assert told == [0, 1, 2, 3]


async def test_progress_is_told_while_a_hook_takes_its_time(three: Bench) -> None:
    text = 'case "$(cat)" in *\'"a"\'*) :;; *) sleep 1000;; esac'
    new = settings_of(three, "new.json", command(text, "slow"))
    with start(three, "--settings", new, "--jobs", "1") as running:
        assert running.stdout is not None
        while json.loads(running.stdout.readline())["done"] != 1:
            pass
        running.terminate()


def test_replay_takes_the_events_until_a_time(three: Bench) -> None:
    """Issue 16: "choose a time range"."""
    new = settings_of(three, "new.json", GUARD)
    times = [entry["at"] for entry in three.json("log")]
    seconds = [0.0, *(_seconds(time) for time in times)]
    for until_s, expected in zip(seconds, range(4), strict=True):
        found = three.json(
            *("replay", "--settings", new, "--until", f"@{until_s + 0.0011:.4f}")
        )
        assert found["events"] == expected
    both = ("--since", f"@{seconds[2]:.3f}", "--until", f"@{seconds[2] + 0.0011:.4f}")
    assert three.json("replay", "--settings", new, *both)["events"] == 1


def _seconds(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp()


def start(bench: Bench, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        bench.argv("replay", *words, "--progress", "json"),
        cwd=bench.project,
        env={**bench.env, "REPLAY_TEST": str(bench.project)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="looks into /proc"
)


@needs_proc
@pytest.mark.parametrize("text", STUBBORN.values(), ids=list(STUBBORN))
async def test_sigterm_ends_a_replay_and_its_hooks(bench: Bench, text: str) -> None:
    """Issue 16: the child ends with the job, and no hook stays."""
    bench.fire(settings_of(bench, "old.json", ALLOW), "t")
    new = settings_of(bench, "new.json", command(text, "stubborn"))
    with start(bench, "--settings", new) as running:
        await until(str(bench.project / "started"))
        running.terminate()
        out, problems = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == -signal.SIGTERM
    assert problems == b""
    assert out == b'{"type":"progress","done":0,"total":1}\n'
    assert marked(f"REPLAY_TEST={bench.project}") == []


@needs_proc
async def test_sigterm_ends_a_hook_that_is_just_being_started(bench: Bench) -> None:
    """Its number is not known yet, and it closes the pipe it could be found by."""
    old = settings_of(bench, "old.json", ALLOW)
    for _ in range(3):  # each in a session of its own, so all at once
        bench.fire(old, "t")
    text = STUBBORN["never reads stdin"]
    new = settings_of(bench, "new.json", command(text, "stubborn"))
    for _ in range(5):
        with start(bench, "--settings", new, "--jobs", "3") as running:
            await until(str(bench.project / "started"))
            running.terminate()
            running.communicate(timeout=PATIENCE_S)
        assert marked(f"REPLAY_TEST={bench.project}") == []
        (bench.project / "started").unlink()


@needs_proc
def test_replay_ends_when_nobody_reads_its_progress(three: Bench) -> None:
    new = settings_of(three, "new.json", command("exit 2", "all"))
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        three.argv("replay", "--settings", new, "--progress", "json"),
        cwd=three.project,
        env={**three.env, "REPLAY_TEST": str(three.project)},
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=PATIENCE_S,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")
    assert marked(f"REPLAY_TEST={three.project}") == []


async def test_replay_ends_when_its_reader_leaves_halfway(three: Bench) -> None:
    text = "cat >/dev/null; touch started; until test -e go; do sleep 0.02; done"
    new = settings_of(three, "new.json", command(text, "waits"))
    with start(three, "--settings", new, "--jobs", "3") as running:
        await until(str(three.project / "started"))
        assert running.stdout is not None
        running.stdout.close()
        (three.project / "go").touch()
        assert running.wait(PATIENCE_S) == 141
        assert running.stderr is not None
        assert running.stderr.read() == b""
