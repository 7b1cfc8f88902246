"""``run`` for one event: a real script as a real process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

EVENT = {"hook_event_name": "BeforeTool", "tool_input": {"path": "a"}}


class Script:
    """Hook source that is written to a file and run with an event on stdin."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "hook.py"

    def run(
        self, source: str, event: Any = EVENT, stdin: bytes | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        self.file.write_text(
            "from hookline.script import *\nfrom hookline.script import run\n"
            + dedent(source)
        )
        return subprocess.run(
            [sys.executable, str(self.file)],
            input=json.dumps(event).encode() if stdin is None else stdin,
            capture_output=True,
            env={k: v for k, v in os.environ.items() if k != "HOOKLINE_WORKER"},
            check=False,
            timeout=60,
        )


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


def test_importing_loads_nothing_but_itself() -> None:
    """Importing may add at most 5 ms to a bare interpreter: so it imports nothing."""
    code = (
        "import sys; before = set(sys.modules); import hookline.script;"
        "print(sorted(set(sys.modules) - before - {'__future__'}))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "['hookline', 'hookline.script']"


def test_answer_is_what_the_hook_returns(script: Script) -> None:
    ended = script.run("run(lambda event: block(event['tool_input']['path']))")
    assert json.loads(ended.stdout) == {"decision": "block", "reason": "a"}
    assert ended.returncode == 0


def test_nothing_is_printed_when_hook_returns_none(script: Script) -> None:
    ended = script.run("run(lambda event: None)")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_async_hook_is_awaited(script: Script) -> None:
    ended = script.run(
        """
        import asyncio
        async def check(event):
            await asyncio.sleep(0)
            return block("later")
        run(check)
        """
    )
    assert json.loads(ended.stdout)["reason"] == "later"


def test_stray_prints_go_to_stderr(script: Script) -> None:
    ended = script.run(
        """
        import os, subprocess, sys, atexit
        def chatty(event):
            print("python")
            os.write(1, b"descriptor\\n")
            subprocess.run("echo child", shell=True)
            atexit.register(print, "at exit")
            return block("no")
        run(chatty)
        print("after run")
        """
    )
    assert json.loads(ended.stdout) == {"decision": "block", "reason": "no"}
    for stray in (b"python", b"descriptor", b"child", b"at exit", b"after run"):
        assert stray in ended.stderr


def test_exception_is_exit_code_one_with_traceback(script: Script) -> None:
    ended = script.run(
        """
        def broken(event):
            raise ValueError("boom")
        run(broken)
        """
    )
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert b"in broken" in ended.stderr
    assert b"ValueError: boom" in ended.stderr


@pytest.mark.parametrize(
    ("code", "status"), [("2", 2), ("0", 0), ("None", 0), ("'text'", 1)]
)
def test_system_exit_is_honoured(script: Script, code: str, status: int) -> None:
    ended = script.run(f"import sys\nrun(lambda event: sys.exit({code}))")
    assert (ended.returncode, ended.stdout) == (status, b"")


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("'no'", "check() returned 'no'"),
        ("False", "check() returned False"),
        ("block", "add parentheses"),
        ("[1]", "check() returned [1]"),
        ("{'a': float('nan')}", "check() returned a value that is not JSON"),
        ("{(1, 2): 3}", "check() returned a value that is not JSON"),
    ],
)
def test_wrong_answer_is_an_error_naming_the_function(
    script: Script, returned: str, said: str
) -> None:
    ended = script.run(f"def check(event): return {returned}\nrun(check)")
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert said in ended.stderr.decode()


def test_answer_may_hold_paths_and_any_text(script: Script) -> None:
    ended = script.run(
        """
        from pathlib import Path
        run(lambda event: modify_input(path=Path("x"), text="\\ud800 é"))
        """
    )
    changed = json.loads(ended.stdout)["hookSpecificOutput"]["tool_input"]
    assert changed == {"path": "x", "text": "\ud800 é"}


def test_number_with_too_many_digits_does_not_crash_a_guard(script: Script) -> None:
    """protocol.md#process: no input slips past a guard by being hard to read."""
    stdin = b'{"tool_input": {"n": %s}}' % (b"9" * 5000)
    ended = script.run("run(lambda event: block('seen'))", stdin=stdin)
    assert json.loads(ended.stdout)["reason"] == "seen"


def test_large_answer_is_written_whole(script: Script) -> None:
    ended = script.run("run(lambda event: add_context('x' * 3_000_000))")
    context = json.loads(ended.stdout)["hookSpecificOutput"]["additionalContext"]
    assert len(context) == 3_000_000


@pytest.mark.parametrize(
    ("stdin", "said"),
    [(b"", b"not JSON"), (b"{", b"not JSON"), (b"[1]", b"expected a JSON object")],
    ids=["empty", "cut", "list"],
)
def test_missing_event_is_a_clear_error(
    script: Script, stdin: bytes, said: bytes
) -> None:
    ended = script.run("run(lambda event: None)", stdin=stdin)
    assert ended.returncode == 1
    assert said in ended.stderr
    assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize("worker", ["0", "1"])
def test_closed_stdin_is_survived(tmp_path: Path, worker: str) -> None:
    hook = tmp_path / "hook.py"
    hook.write_text("from hookline.script import run\nrun(lambda event: None)\n")
    ended = subprocess.run(
        ["sh", "-c", '"$0" "$1" <&-', sys.executable, str(hook)],
        env={**os.environ, "HOOKLINE_WORKER": worker},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert b"Traceback" not in ended.stderr
    assert ended.returncode == (0 if worker == "1" else 1)


def test_closed_stderr_is_survived(tmp_path: Path) -> None:
    hook = tmp_path / "hook.py"
    hook.write_text(
        "from hookline.script import block, run\n"
        "def noisy(event):\n    print('x'); return block('no')\nrun(noisy)\n"
    )
    ended = subprocess.run(
        ["sh", "-c", '"$0" "$1" 2>&-', sys.executable, str(hook)],
        input=json.dumps(EVENT).encode(),
        stdout=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    assert json.loads(ended.stdout)["reason"] == "no"
