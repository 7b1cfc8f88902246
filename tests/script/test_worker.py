"""``run`` as a worker: one script for one event after the other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from types import TracebackType
from typing import Any

import pytest


class Worker:
    """A hook process kept warm, as the executor keeps it."""

    def __init__(self, file: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(file)],
            env={**os.environ, "HOOKLINE_WORKER": "1", "OWN": "worker"},
            cwd=file.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._asked = 0

    def ask(self, event: Any = None, env: dict[str, str] | None = None) -> Any:
        self.send(event or {}, env)
        return self.answer()

    def send(self, event: Any, env: dict[str, str] | None = None) -> None:
        self._asked += 1
        frame = {"id": self._asked, "input": event, "env": env or {}}
        assert self.process.stdin
        self.process.stdin.write(json.dumps(frame).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout
        answer = json.loads(self.process.stdout.readline())
        assert answer["id"] == self._asked
        return answer

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self.process as process:
            process.kill()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Worker]]:
    started: list[Worker] = []

    def start_worker(source: str) -> Worker:
        file = tmp_path / "hook.py"
        file.write_text("from hookline.script import *\nimport os, sys\n" + source)
        started.append(Worker(file))
        return started[-1]

    yield start_worker
    for worker in started:
        with worker:
            pass


Start = Callable[[str], Worker]


def test_worker_answers_one_event_after_the_other(start: Start) -> None:
    worker = start("run(lambda event: block(event['why']) if event else None)")
    said = worker.ask({"why": "first"})
    assert said["exit_code"] == 0
    assert json.loads(said["stdout"])["reason"] == "first"
    assert worker.ask() == {"id": 2, "exit_code": 0, "stdout": "", "stderr": ""}
    assert json.loads(worker.ask({"why": "third"})["stdout"])["reason"] == "third"


def test_a_traceback_starts_in_the_file_of_the_author(start: Start) -> None:
    """Issue 17: the frames of Hookline are left out."""
    worker = start("def guard(event):\n    {}['nothing']\nrun(guard)")
    told = worker.ask()["stderr"].splitlines()
    assert told[0] == "Traceback (most recent call last):"
    assert told[1].endswith('hook.py", line 4, in guard')
    assert told[-1] == "KeyError: 'nothing'"


def test_a_wrong_answer_has_no_traceback(start: Start) -> None:
    """Issue 17: no line of the author's raised it."""
    told = start("def guard(event):\n    return 'no'\nrun(guard)").ask()["stderr"]
    assert told.startswith("TypeError: guard() returned 'no': return None, an answer")


def test_handshake_is_answered_without_the_hook(start: Start) -> None:
    """Issue 13.6: it must not wait for what a hook does with an event."""
    worker = start("run(lambda event: os._exit(3))")
    answered = {"exit_code": 0, "stdout": "", "stderr": ""}
    for number in (1, 2):
        said = worker.ask({"hook_event_name": "Handshake"})
        assert said == {"id": number, **answered}


def test_worker_ends_with_its_input(start: Start) -> None:
    worker = start("run(lambda event: None)")
    worker.ask()
    assert worker.process.stdin
    worker.process.stdin.close()
    assert worker.process.wait(timeout=60) == 0


def test_prints_of_an_event_come_back_as_its_stderr(start: Start) -> None:
    worker = start(
        dedent(
            """
            import subprocess
            def chatty(event):
                print("python", event["n"])
                os.write(1, b"descriptor\\n")
                sys.stderr.write("error\\n")
                subprocess.run("echo child; echo child-error >&2", shell=True)
                return block("no")
            run(chatty)
            """
        )
    )
    for number in (1, 2):
        said = worker.ask({"n": number})
        assert json.loads(said["stdout"])["decision"] == "block"
        assert sorted(said["stderr"].split("\n")) == sorted(
            ["", f"python {number}", "descriptor", "error", "child", "child-error"]
        )


def test_endless_prints_are_kept_to_a_limit(start: Start) -> None:
    worker = start("run(lambda event: os.system('yes | head -c 5000000') or None)")
    said = worker.ask()
    assert said["exit_code"] == 0
    assert len(said["stderr"]) == 1 << 20


def test_exception_leaves_the_worker_alive(start: Start) -> None:
    worker = start("run(lambda event: block(event['why']))")
    said = worker.ask()
    assert (said["exit_code"], said["stdout"]) == (1, "")
    assert "KeyError: 'why'" in said["stderr"]
    assert worker.ask({"why": "now"})["exit_code"] == 0


@pytest.mark.parametrize(
    ("code", "status", "stderr"),
    [("2", 2, ""), ("None", 0, ""), ("'text'", 1, "text\n"), ("-1", 255, "")],
)
def test_system_exit_is_the_exit_code_of_its_event(
    start: Start, code: str, status: int, stderr: str
) -> None:
    worker = start(f"run(lambda event: sys.exit({code}))")
    for _ in range(2):
        said = worker.ask()
        assert (said["exit_code"], said["stderr"]) == (status, stderr)


def test_environment_belongs_to_its_event(start: Start) -> None:
    worker = start(
        dedent(
            """
            def look(event):
                seen = {k: os.environ.get(k) for k in ("A", "B", "LEAK", "OWN", "PATH")}
                child = os.popen("echo $A$B$LEAK$HOOKLINE_WORKER").read().strip()
                os.environ["LEAK"] = "1"
                os.environ["OWN"] = "changed"
                del os.environ["PATH"]
                return {"seen": seen, "child": child}
            run(look)
            """
        )
    )
    path = os.environ["PATH"]
    for env in ({"A": "1"}, {"A": "1"}, {"B": "2"}, {}):
        said = json.loads(worker.ask(env=env)["stdout"])
        assert said["seen"] == {
            "A": env.get("A"),
            "B": env.get("B"),
            "LEAK": None,
            "OWN": "worker",
            "PATH": path,
        }
        assert said["child"] == "".join(env.values())


def test_working_directory_is_restored(start: Start, tmp_path: Path) -> None:
    worker = start(
        "def wander(event):\n"
        "    here = os.getcwd(); os.chdir('/'); return {'here': here}\n"
        "run(wander)"
    )
    for _ in range(2):
        said = json.loads(worker.ask()["stdout"])
        assert tmp_path.samefile(said["here"])


def test_child_of_a_hook_cannot_read_the_next_frame(start: Start) -> None:
    worker = start(
        "run(lambda event: {'ate': os.popen('cat').read(), 'n': event['n']})"
    )
    worker.send({"n": 1})
    worker.send({"n": 2})
    assert worker.process.stdout
    for number in (1, 2):
        said = json.loads(json.loads(worker.process.stdout.readline())["stdout"])
        assert said == {"ate": "", "n": number}


def test_async_hook_is_awaited_when_warm(start: Start) -> None:
    worker = start("async def check(event):\n    return block('later')\nrun(check)")
    for _ in range(2):
        assert json.loads(worker.ask()["stdout"])["reason"] == "later"


def test_wrong_answer_names_the_function_when_warm(start: Start) -> None:
    worker = start("def check(event): return 'no'\nrun(check)")
    said = worker.ask()
    assert said["exit_code"] == 1
    assert "check() returned 'no'" in said["stderr"]


def test_interrupt_is_answered_and_ends_the_worker(start: Start) -> None:
    worker = start("import signal\nrun(lambda e: os.kill(os.getpid(), signal.SIGINT))")
    assert worker.ask()["exit_code"] == 128 + signal.SIGINT
    assert worker.process.wait(timeout=60) == 0


def test_input_of_five_megabytes_is_read(start: Start) -> None:
    worker = start("run(lambda event: {'size': len(event['text'])})")
    said = worker.ask({"text": "x" * 5_000_000})
    assert json.loads(said["stdout"]) == {"size": 5_000_000}
