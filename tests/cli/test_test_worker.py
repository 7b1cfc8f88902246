"""Issue 13.6: ``hookline test --worker`` as a user runs it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commandline import hookline
from tests.support.processes import marked, none_left, until
from tests.support.project import Project

GOOD = """
import os, sys
from hookline.script import *
def guard(event):
    print("args", sys.argv[1:], os.environ.get("LEVEL"))
    if event["tool_input"]["path"].endswith(".env"):
        return block("no")
run(guard)
"""
NAMES = [
    "answers its first request",
    "answers a burst of requests, each with its id",
    "reads every text",
    "reads a request of 1 MB",
    "ignores keys that it does not know",
    "answers an event that it does not know",
    "prints nothing but answers",
    "gives the same verdict as a command",
    "ends at SIGTERM with its children",
    "ends with its input",
]
PYTHON = shlex.quote(sys.executable)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "guard.py").write_text(GOOD)
    return tmp_path


def test_every_check_is_a_line_and_all_passed_is_status_zero(folder: Path) -> None:
    command = '"$HOOKLINE_PYTHON" guard.py'
    ended = hookline("test", "--worker", command, cwd=folder)
    lines = [f"ok    {command}: {name}" for name in NAMES]
    assert ended.stdout.splitlines() == [*lines, "10 passed"]
    assert (ended.returncode, ended.stderr) == (0, "")


FORMS = {
    "words": ["--json", "--worker", sys.executable, "-u", "guard.py", "-x"],
    "words, then an option": ["--worker", sys.executable, "guard.py", "--json"],
    "one text": ["--worker", f"{PYTHON} guard.py", "--json"],
    "one text with =": [f"--worker={PYTHON} guard.py", "--json"],
    "behind two dashes": ["--json", "--worker", "--", sys.executable, "guard.py"],
}


@pytest.mark.parametrize("arguments", FORMS.values(), ids=FORMS.keys())
def test_a_command_can_be_given_in_each_usual_form(
    folder: Path, arguments: list[str]
) -> None:
    ended = hookline("test", *arguments, cwd=folder)
    assert ended.returncode == 0
    found = json.loads(ended.stdout)
    assert [one["name"] for one in found] == NAMES
    assert {(one["kind"], one["passed"]) for one in found} == {("worker", True)}


@pytest.mark.parametrize("command", ["true", "echo hi", "cat", "exit 7"])
def test_a_program_that_is_no_worker_is_one_clear_failure(
    tmp_path: Path, command: str
) -> None:
    ended = hookline("test", "--worker", command, cwd=tmp_path)
    assert ended.returncode == 1
    first, problem, summary = ended.stdout.splitlines()
    assert first == f"FAIL  {command}: answers its first request"
    assert "did not answer the worker handshake: " in problem
    assert "docs/how-to/workers.md" in problem
    assert summary == "0 passed, 1 failed"


def test_a_warning_leaves_the_status_at_zero(folder: Path) -> None:
    command = f"test -z $HOOKLINE_WORKER || exec {PYTHON} guard.py"
    ended = hookline("test", "--worker", command, cwd=folder)
    assert ended.returncode == 0, ended.stdout
    assert "warning: " in ended.stdout
    assert "as a worker it says block, as a command allow" in ended.stdout


def test_a_worker_hook_of_the_settings_is_found_by_its_name(project: Project) -> None:
    project.write("guard.py", GOOD)
    command = f"{PYTHON} guard.py"
    hook = {"type": "worker", "name": "my-guard", "command": command}
    project.settings(hook | {"env": {"LEVEL": "strict"}})
    cold = hookline("test", "--worker", "my-guard", cwd=project.folder)
    assert cold.returncode == 1
    assert "hook 'my-guard' is not trusted: review it with" in cold.stderr
    assert project.trust() == 0
    ended = hookline("test", "--worker", "my-guard", cwd=project.folder)
    assert ended.returncode == 0, ended.stdout
    assert "ok    my-guard: ends with its input" in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--worker"], "--worker needs a command, or the name of a worker hook"),
        (["--worker", " "], "--worker needs a command"),
        (["a.hooktest.toml", "--worker", "true"], "cannot be used with FILE, -k"),
        (["-k", "x", "--worker", "true"], "cannot be used with FILE, -k or --jobs"),
    ],
)
def test_a_usage_error_is_one_line(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    ended = hookline("test", *arguments, cwd=tmp_path)
    assert ended.returncode == 1
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupted_exercise_leaves_nothing_behind(
    tmp_path: Path, number: signal.Signals
) -> None:
    mark = f"interrupted-{os.getpid()}-{number}"
    command = "sleep 1000 & touch started; wait"
    with _start(command, tmp_path, mark) as running:
        await until(str(tmp_path / "started"))
        running.send_signal(number)
        assert running.wait() in {130, -number}
    assert await none_left(mark), marked(mark)


def _start(command: str, folder: Path, mark: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "hookline.cli.main", "test", "--worker", command],
        cwd=folder,
        env={**os.environ, "MARK": mark},
        stdout=subprocess.PIPE,
    )
