"""Commands as programs: one start of each, and those that run for a while."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.hosts.captured import captured
from tests.support.command_project import (
    GUARD,
    CommandProject,
    command_hook,
    settings_of,
)
from tests.support.commandline import hookline
from tests.support.processes import marked, none_left, until

PROGRAMS = json.loads(Path(__file__).with_name("programs.json").read_text())
"""Every command, with its exit status and what it says without anything set up."""


def test_every_command_runs_as_a_program(
    command_project: CommandProject, subtests: pytest.Subtests
) -> None:
    command_project.write(".hookline/settings.json", settings_of(GUARD))
    command_project.env["HOOKLINE_TRUST"] = "all"

    def run(words: str) -> subprocess.CompletedProcess[str]:
        return hookline(
            *words.split(),
            cwd=command_project.project,
            env=command_project.env,
        )

    with ThreadPoolExecutor(2) as threads:
        results = dict(zip(PROGRAMS, threads.map(run, PROGRAMS), strict=True))
    for words, expected in PROGRAMS.items():
        with subtests.test(words):
            ended = results[words]
            assert ended.returncode == expected["status"]
            assert expected["says"] in ended.stdout + ended.stderr
            assert "Traceback" not in ended.stderr


def test_progress_of_fire_is_shown_on_a_terminal_after_a_second(
    command_project: CommandProject,
) -> None:
    command_project.write("s.json", settings_of(command_hook("sleep 1.5", "slow")))
    words = ("fire", "BeforeTool", "--settings", "s.json", "--tool", "t", "--json")
    assert "waiting for hooks" in command_project.on_terminal(*words)
    assert command_project.run(*words).stderr == ""


def test_demo_plays_on_quietly_when_its_reader_leaves(
    command_project: CommandProject,
) -> None:
    """Demo, then inspect, then look."""
    with command_project.start("demo") as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        demo.stdout.close()
        assert demo.stderr.read() == b""
    assert demo.returncode == 0
    events = command_project.json("log", "-n", "0", "--everywhere")
    verdicts = Counter(event["verdict"] for event in events)
    assert (verdicts["blocked"], verdicts["stopped"]) == (3, 1)
    assert verdicts["changed"] >= 3


def test_locked_journal_does_not_hold_the_bridge(
    command_project: CommandProject,
) -> None:
    """A host waits for the end of its hook, not for another process's transaction."""
    rule = {"type": "rule", "when": "true", "then": {"decision": "deny"}}
    path = command_project.root / "journal.sqlite"
    settings = settings_of(rule, journal=str(path))
    command_project.write("~/config/hookline/settings.json", settings)
    event = json.dumps(captured("claude", "PreToolUse-1")).encode()

    def bridge() -> tuple[bytes, bytes, float]:
        started = time.monotonic()
        with command_project.start("bridge", "claude", stdin=subprocess.PIPE) as host:
            answer, problems = host.communicate(event)
        return answer, problems, time.monotonic() - started

    usual_s = bridge()[2]  # makes the journal
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        answer, problems, took_s = bridge()
    assert json.loads(answer)["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert b"nothing could be written for 2 s. Recording stopped" in problems
    assert took_s < 2 * usual_s + 5


READY = "Ctrl-C ends it"


class Watching:
    """A running ``hookline test --watch`` with a pipe for its output."""

    def __init__(self, project: CommandProject) -> None:
        self.process = project.start("test", "--watch", stderr=subprocess.STDOUT)

    def until(self, text: str) -> str:
        """Wait for a round that prints this; all that was printed until its end."""
        lines: list[str] = []
        assert self.process.stdout
        while not (READY in "".join(lines[-1:]) and text in "".join(lines)):
            lines.append(self.process.stdout.readline().decode())
            assert lines[-1], f"it ended: {lines}"
        return "".join(lines)


@pytest.fixture
def watching(command_project: CommandProject) -> Iterator[Watching]:
    assert command_project.run("init").returncode == 0
    running = Watching(command_project)
    yield running
    running.process.kill()
    running.process.communicate()


def test_watch_runs_the_cases_again_at_every_change(
    command_project: CommandProject, watching: Watching
) -> None:
    """Broken files are survived, and Ctrl-C ends it without an error."""
    hooks = command_project.project / ".hookline/hooks"
    hook, cases = hooks / "no_env_files.py", hooks / "no_env_files.hooktest.toml"
    assert "3 passed" in watching.until("passed")
    source = hook.read_text()
    hook.write_text(source.replace(".env", ".other"))
    assert "changed: .hookline/hooks/no_env_files.py" in watching.until("failed")
    hook.write_text(source)
    watching.until("3 passed")
    valid = cases.read_text()
    cases.write_text("[[")
    assert "no_env_files.hooktest.toml" in watching.until("error: ")
    cases.write_text(valid)
    watching.until("3 passed")
    watching.process.send_signal(signal.SIGINT)
    assert watching.process.wait() == 0


def test_junit_file_holds_every_case(command_project: CommandProject) -> None:
    cases = '[[case]]\nname = "well"\n[[case]]\nname = "wrong"\nexpect = "block"\n'
    command_project.write("guard.hooktest.toml", f'event = "BeforeTool"\n{cases}')
    command_project.write(
        "guard.py", "from hookline.script import run\nrun(lambda event: None)\n"
    )
    assert command_project.run("test", "--junit", "out.xml").returncode == 1
    suite = ET.parse(command_project.path("out.xml")).getroot()[0]
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("2", "1")
    assert [case.attrib["name"] for case in suite] == ["well", "wrong"]
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "expected block, got allow" in failure.attrib["message"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_interrupted_exercise_of_a_worker_leaves_nothing_behind(
    command_project: CommandProject, number: signal.Signals
) -> None:
    mark = f"interrupted-{os.getpid()}-{number}"
    command = "sleep 1000 & touch started; wait"
    env = {**os.environ, "MARK": mark}
    with command_project.start("test", "--worker", command, env=env) as running:
        await until(str(command_project.path("started")))
        running.send_signal(number)
        assert running.wait() in {130, -number}
    assert await none_left(mark), marked(mark)
