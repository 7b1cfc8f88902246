"""A project, a user's own runtime folder, and the resident helpers that serve it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from tests.support.processes import children, marked
from tests.support.project import Project

SCRIPT = Path(sysconfig.get_path("scripts")) / "hookline"
WAIT_S = 60.0
WHO = """
import os
def guard(event):
    return {"decision": "deny", "reason": str(os.getpid())}
"""
"""A Python hook that blocks with the id of the process that answers."""
T = TypeVar("T")


class Desk:
    """Where a coding agent runs ``hookline bridge``."""

    def __init__(self, project: Project, runtime: Path) -> None:
        self.project = project
        self.runtime = runtime
        self.runtime.mkdir(mode=0o700)
        self.files = runtime / "hookline"
        self.mark = uuid4().hex
        self.env = {
            **{k: v for k, v in os.environ.items() if k != "HOOKLINE_NO_RESIDENT"},
            "XDG_RUNTIME_DIR": str(runtime),
            "DESK_MARK": self.mark,
        }

    def event(self, path: str = "a.py", **more: Any) -> bytes:
        """What Claude Code sends before it writes a file."""
        event = {
            "session_id": "s1",
            "transcript_path": "",
            "cwd": str(self.project.folder),
            "hook_event_name": "PreToolUse",
            "tool_name": "Write",
            "tool_input": {"file_path": path, "content": "x"},
            **more,
        }
        return json.dumps(event).encode()

    def user_settings(self, *hooks: dict[str, Any], event: str = "BeforeTool") -> Path:
        """Hooks of the user, which need no trust."""
        path = Path(self.env["XDG_CONFIG_HOME"]) / "hookline" / "settings.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"hooks": {event: [{"hooks": list(hooks)}]}}))
        return path

    def python_hook(self, source: str) -> Path:
        """A hook in the process that answers: its module."""
        module = self.runtime.parent / "modules" / "guards.py"
        module.parent.mkdir(exist_ok=True)
        module.write_text(source)
        self.env["PYTHONPATH"] = str(module.parent)
        hook = {"type": "python", "name": "guard", "function": "guards:guard"}
        self.user_settings(hook)
        return module

    def start_client(
        self, *words: str, env: dict[str, str] | None = None, **more: Any
    ) -> subprocess.Popen[bytes]:
        """Start ``hookline bridge claude`` as a host would."""
        more = {"cwd": self.project.folder, "stdin": subprocess.PIPE, **more}
        return subprocess.Popen(
            [sys.executable, str(SCRIPT), "bridge", *(words or ("claude",))],
            env={**self.env, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **more,
        )

    def run(
        self, argv: list[str], event: bytes, **more: Any
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program as a host would, with an event on its stdin."""
        streams: dict[str, Any] = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        surroundings = {"env": self.env, "cwd": self.project.folder}
        options = streams | surroundings | more
        return subprocess.run(argv, input=event, check=False, **options)

    def bridge(
        self, event: bytes | None = None, *words: str, **more: Any
    ) -> tuple[int, bytes, bytes]:
        """One event: exit status, stdout, stderr."""
        with self.start_client(*words, **more) as client:
            stdin = self.event() if event is None else event
            stdout, stderr = client.communicate(stdin, timeout=WAIT_S)
        return client.returncode, stdout, stderr

    def cold(self, event: bytes | None = None, **more: Any) -> tuple[int, bytes, bytes]:
        """The same without the helper."""
        return self.bridge(event, "--no-resident", "claude", **more)

    def start_helper(self, event: bytes | None = None, **more: Any) -> int:
        """Have a helper started, with an event that runs no hook: its process id."""
        notification = self.event(hook_event_name="Notification", message="x")
        self.bridge(event or notification, **more)
        self.until(lambda: all(text.isdecimal() for text in self.lock_texts()))
        return self.until(self.pid)

    def warm_up(self, **more: Any) -> int:
        """Have a helper started and an event answered by it: its process id."""
        pid = self.start_helper(self.event(), **more)
        self.bridge(**more)
        return pid

    def reason(self, event: bytes | None = None, **more: Any) -> str:
        """Why the hooks block an event."""
        status, stdout, stderr = self.bridge(event, **more)
        assert (status, stderr) == (0, b"")
        reason = json.loads(stdout)["hookSpecificOutput"]["permissionDecisionReason"]
        assert isinstance(reason, str)
        return reason

    def locks(self) -> list[Path]:
        """A file for each helper, that of the newest last."""
        locks = [(path.stat().st_mtime, path) for path in self.files.glob("*.lock")]
        return [path for _, path in sorted(locks)]

    def lock_texts(self) -> list[str]:
        return [lock.read_text().strip() for lock in self.locks()]

    def helpers(self) -> list[int]:
        """The process ids of the helpers that listen, that of the newest last."""
        pids = [int(text) for text in self.lock_texts() if text.isdecimal()]
        return [pid for pid in pids if is_running(pid)]

    def pid(self) -> int | None:
        """The process id of the newest helper that listens."""
        return next(reversed(self.helpers()), None)

    def socket(self) -> Path:
        """Where the newest helper listens."""
        return self.locks()[-1].with_suffix("")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End the helper with a signal, and wait for it: its process id."""
        pid = self.pid()
        assert pid
        os.kill(pid, number)
        self.until(lambda: not self.processes())
        return pid

    def log(self) -> str:
        return "".join(path.read_text() for path in self.files.glob("*.log"))

    def until(self, state: Callable[[], T | None]) -> T:
        """Wait for something to be true."""
        deadline = time.monotonic() + WAIT_S
        while not (value := state()):
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.01)
        return value

    def processes(self) -> list[int]:
        """Everything that runs for this desk, shells that watch over hooks included."""
        pids = marked(self.mark)
        for pid in list(pids):
            with suppress(FileNotFoundError):  # it has ended meanwhile
                pids += children(pid)
        return pids

    def shells(self) -> set[int]:
        """Those of them that watch over hooks."""
        pids = set()
        for pid in self.processes():
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            if b"hookline-watch" in line:
                pids.add(pid)
        return pids

    def close(self) -> None:
        """End the helpers; nothing may be left."""
        if self.files.exists():
            self.bridge(b"", "--stop")
        self.until(lambda: not self.processes())


def is_running(pid: int) -> bool:
    """Whether there is such a process that has not ended."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        )
    except OSError:
        return False
