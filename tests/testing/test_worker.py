"""Issue 13.6: the exercise finds every kind of worker that breaks the protocol."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from hookline import Config, HookSystem, Settings
from hookline.testing.run import CaseResult
from hookline.testing.worker import exercise
from tests.docs.pages import ROOT, anchors_of
from tests.support.processes import marked, none_left

EXAMPLES = ROOT / "examples" / "workers"
WORKER = """
import json, os, subprocess, sys, signal, time
if os.environ.get("HOOKLINE_WORKER") != "1":
    sys.exit(0)
count = 0
def answer(frame, **more):
    said = {{"id": frame["id"], "exit_code": 0, "stdout": "", "stderr": "", **more}}
    print(json.dumps(said), flush=True)
for line in sys.stdin:
    frame, count = json.loads(line), count + 1
    {body}
{end}
"""
BURST = "answers a burst of requests, each with its id"
QUIET = "prints nothing but answers"
TERM = "ends at SIGTERM with its children"
END = "ends with its input"
BIG = "reads a request of 1 MB"
TEXT = "reads every text"
KEYS = "ignores keys that it does not know"
LATE = (
    "answer(frame); count == 1 and os.fork() == 0 and "
    "(time.sleep(0.05), print('late', flush=True), os._exit(0))"
)
NO_FLUSH = """
import json, sys
for line in sys.stdin:
    frame = json.loads(line)
    print(json.dumps({"id": frame["id"], "exit_code": 0, "stdout": "", "stderr": ""}))
"""
DETACH = (
    "count == 1 and subprocess.Popen(['sleep', '1000'], start_new_session=True, "
    "stdin=subprocess.DEVNULL, stdout=2); answer(frame)"
)


async def exercised(command: str, folder: Path, **more: object) -> list[CaseResult]:
    hook = {"type": "worker", "command": command, "name": "subject", **more}
    mapping = {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    config = Config("s", folder, Settings.from_mapping(mapping))
    (found,) = HookSystem(config).get_all_hooks()
    return [result async for result in exercise(found, str(folder))]


def script(folder: Path, body: str, end: str = "") -> str:
    file = folder / "subject.py"
    file.write_text(WORKER.format(body=body, end=end))
    return f"{shlex.quote(sys.executable)} subject.py"


def failed(results: list[CaseResult]) -> dict[str, str]:
    return {one.name: one.problems[0] for one in results if not one.passed}


def names_a_rule(problem: str) -> bool:
    """Whether it ends with a section that is on the page."""
    named = re.search(r"; see docs/how-to/workers\.md#([a-z-]+)$", problem)
    return named is not None and named[1] in anchors_of(
        ROOT / "docs" / "how-to" / "workers.md"
    )


GOOD = {
    "bash": f"bash {EXAMPLES / 'no_env_files.sh'}",
    "node": f"node {EXAMPLES / 'no_env_files.mjs'}",
    "hookline.script": f"{sys.executable} {EXAMPLES.parent / 'hooks' / 'secrets.py'}",
}


@pytest.mark.parametrize("command", GOOD.values(), ids=GOOD.keys())
async def test_a_good_worker_passes_every_check(command: str, tmp_path: Path) -> None:
    if shutil.which(command.split()[0]) is None:
        pytest.skip(f"{command.split()[0]} is not installed")
    results = await exercised(command, tmp_path)
    assert len(results) == 10
    assert failed(results) == {}
    assert [one.warnings for one in results] == [()] * 10


BAD = {
    "id as text": ("answer(frame, id=str(frame['id']))", None, "`int`, got `str`"),
    "id as a float": ("answer(frame, id=frame['id'] + 0.5)", None, "`int`"),
    "id of 32 bits": (
        "answer(frame, id=frame['id'] & 0xffffffff)",
        None,
        "another request",
    ),
    "no exit code": ("print(json.dumps({'id': frame['id']}), flush=True)", None, "ex"),
    "a banner": ("print('ready', flush=True); answer(frame)", None, "stdout: 'ready"),
    "dies later": (
        "answer(frame); count == 50 and os._exit(3)",
        BURST,
        "expected one line with an answer, got: it",
    ),
    "wrong id later": (
        "answer(frame, id=frame['id'] + (count == 120))",
        BURST,
        "expected one line with an answer, got: answer to another request: '{",
    ),
    "answers twice": (
        "answer(frame); count == 90 and answer(frame)",
        BURST,
        "request ",
    ),
    "silent later": (
        "count != 30 and answer(frame)",
        BURST,
        "request 29: expected an answer within 10 s, got none",
    ),
    "searches for an id": (
        "import re; answer(frame, id=int(re.findall(r'\"id\":\\s*(\\d+)', line)[-1]))",
        None,
        "answer to another request",
    ),
    "splits lines itself": (
        "[answer(json.loads(x)) for x in line.split('\\\\n')]",
        TEXT,
        "it ended",
    ),
    "short buffer": ("answer(json.loads(line[:100_000]))", BIG, "it ended"),
    "strict keys": ("len(frame) == 3 or sys.exit(1); answer(frame)", KEYS, "it ended"),
    "ignores SIGTERM": (
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); answer(frame)",
        TERM,
        "still running 5 s after SIGTERM",
    ),
    "detached child": (DETACH, TERM, "left 1 child processes running"),
    "goes on after the end": ("answer(frame)", END, "still running 5 s after the end"),
    "fails at the end": ("answer(frame)", END, "expected exit status 0, got 3"),
}
ENDS = {"goes on after the end": "time.sleep(1000)", "fails at the end": "sys.exit(3)"}


@pytest.mark.parametrize("kind", BAD)
async def test_a_bad_worker_fails_the_check_of_its_rule(
    kind: str, tmp_path: Path
) -> None:
    body, name, text = BAD[kind]
    mark = f"exercise-{os.getpid()}-{kind.replace(' ', '-')}"
    command = script(tmp_path, body, ENDS.get(kind, ""))
    found = failed(await exercised(command, tmp_path, env={"MARK": mark}))
    check = name or "answers its first request"
    assert check in found
    assert text in found[check]
    assert names_a_rule(found[check])
    if kind == "detached child":  # of processes that ended by themselves
        for pid in marked(mark):
            os.kill(pid, signal.SIGKILL)
    assert await none_left(mark)


async def test_output_between_requests_is_found(tmp_path: Path) -> None:
    """A line that nobody asked for, wherever it comes."""
    command = script(tmp_path, LATE)
    found = failed(await exercised(command, tmp_path))
    assert found
    assert any("late" in problem for problem in found.values())


SILENT = {
    "reads to the end": (
        "import sys; sys.stdin.read()",
        "it reads its input to the end: read line by line",
    ),
    "does not flush": (
        NO_FLUSH,
        "it answers only when its input ends: flush, and read line by line",
    ),
    "never reads": ("import time; time.sleep(1000)", "it is silent and does not end"),
    "crashes": ("import nothing_of_the_kind", "No module named 'nothing_of_the_kind'"),
}


@pytest.mark.parametrize(("source", "text"), SILENT.values(), ids=SILENT.keys())
async def test_a_program_that_is_no_worker_gets_one_message(
    source: str, text: str, tmp_path: Path
) -> None:
    (tmp_path / "subject.py").write_text(source)
    mark = f"exercise-{os.getpid()}-silent"
    env = {"PYTHONUNBUFFERED": "", "MARK": mark}
    command = f"{shlex.quote(sys.executable)} subject.py"
    (result,) = await exercised(command, tmp_path, env=env)
    assert "did not answer the worker handshake: " in result.problems[0]
    assert text in result.problems[0]
    assert names_a_rule(result.problems[0])
    assert marked(mark) == []


async def test_what_hookline_can_do_without_is_a_warning(tmp_path: Path) -> None:
    """Dying at the handshake, and another verdict as a command."""
    body = (
        "said = frame['input']['tool_input']; "
        "answer(frame, exit_code=2 if said['path'] == '.env' else 0)"
    )
    results = await exercised(script(tmp_path, body), tmp_path)
    assert failed(results) == {}
    warned = {one.name: one.warnings[0] for one in results if one.warnings}
    assert list(warned) == [
        "answers an event that it does not know",
        "gives the same verdict as a command",
    ]
    assert all(map(names_a_rule, warned.values()))
    assert "got: it ended; see docs/how-to/workers.md" in next(iter(warned.values()))
    assert "as a worker it says block, as a command allow" in [*warned.values()][1]


async def test_a_worker_that_answers_as_one_when_run_as_a_command_is_warned_about(
    tmp_path: Path,
) -> None:
    source = """
    import json, sys
    for line in sys.stdin:
        said = {"id": json.loads(line).get("id"), "exit_code": 0}
        print(json.dumps({**said, "stdout": "", "stderr": ""}), flush=True)
    """
    (tmp_path / "subject.py").write_text(dedent(source))
    command = f"{shlex.quote(sys.executable)} subject.py"
    results = await exercised(command, tmp_path)
    (warning,) = [text for one in results for text in one.warnings]
    assert "says allow, as a command nothing (answered as a worker" in warning


@pytest.mark.parametrize("event", ["AfterModel", "BeforeAgent", "Notification"])
async def test_a_worker_on_another_event_is_shown_that_one(
    event: str, tmp_path: Path
) -> None:
    seen = f"frame['input']['hook_event_name'] in ('{event}', 'Handshake') or exit(1)"
    hook = {"type": "worker", "command": script(tmp_path, f"{seen}; answer(frame)")}
    settings = Settings.from_mapping({"hooks": {event: [{"hooks": [hook]}]}})
    (found,) = HookSystem(Config("s", tmp_path, settings)).get_all_hooks()
    results = [result async for result in exercise(found, str(tmp_path))]
    assert failed(results) == {}
