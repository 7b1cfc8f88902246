"""What ``hookline bridge`` says where it has no answer, and by when it says it.

Exit status 2 with a text blocks a tool in every host, or in what ``install`` wrote for
it. Of any other event the host is told with status 1, and goes on: a bridge that is
broken must not reject every answer for ever.

Loads next to nothing, so that it works where the rest cannot be loaded.
"""

import os
import sys
import time
from _signal import (  # type: ignore[import-not-found] # no stub; signal loads enum
    SIG_DFL,
    SIGTERM,
    getsignal,
    signal,
)
from _thread import allocate_lock, start_new_thread
from faulthandler import dump_traceback_later

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes longer to load than all of this
    from typing import NoReturn

MAX_EVENT_BYTES = 128 << 20
_DEFAULT_S = 55.0
"""Until the settings say how long hooks may take."""
BEFORE_TOOL = (
    *("PreToolUse", "preToolUse", "BeforeTool", "tool.execute.before"),
    *("pre_run_command", "pre_read_code", "pre_write_code", "pre_mcp_tool_use"),
)
"""Repeated here: the table of hosts takes too long to load."""


def failure_status(event: str | None, stdin: bytes) -> int:
    """How to exit without a verdict on an event, which may not even be JSON."""
    is_named = any(b'"%s"' % name.encode() in stdin for name in BEFORE_TOOL)
    return 2 if is_named or event in BEFORE_TOOL else 1


class Failsafe:
    """The one answer of this process."""

    def __init__(self) -> None:
        self.words: list[str] = []
        """The command's arguments, without the deadline."""
        self.deadline_ms: int | None = None
        """None: it depends on the hooks."""
        self.stdin: bytes | None = None
        """The event, once it has been read."""
        self.doing = "reading the event from standard input"
        self.status: int | None = None
        self.began_ns = time.time_ns()
        """When this process began to load what answers."""
        self._started = self._by = 0.0
        self._claimed = allocate_lock()

    def start(self, words: list[str]) -> None:
        """Answer for this process from now on."""
        if self._started:
            return
        self.words = words
        if "--deadline" in words[:-1]:
            at = words.index("--deadline")
            if words[at + 1].isdecimal():
                self.deadline_ms = int(words[at + 1])
                self.words = words[:at] + words[at + 2 :]
        self._started = time.monotonic()
        self.allow((self.deadline_ms or _DEFAULT_S * 1000) / 1000)
        start_new_thread(self._watch, ())
        if sys.stdout is None:  # closed: nobody would get the verdict
            self.fail("standard output is closed")
        if getsignal(SIGTERM) == SIG_DFL:
            signal(SIGTERM, lambda *_: self.end("ended by SIGTERM"))

    def disarm(self) -> None:
        """In a fork of this process, which answers many events."""
        self._started = 0.0

    def allow(self, seconds: float) -> None:
        """Set how long this process may take in all."""
        if not self._started:
            return  # a process that answers many events
        self._by = self._started + seconds
        if sys.stderr is not None:
            seconds_left = max(self._by - time.monotonic(), 0)
            # For code that never lets another thread run: it ends with status 1.
            dump_traceback_later(seconds_left + 2, exit=True)

    def _watch(self) -> None:
        while (seconds := self._by - time.monotonic()) > 0:
            time.sleep(seconds)
        waited = f"{self._by - self._started:.0f} s"
        self.end(f"{self.doing} took longer than {waited}, so there is no verdict")

    def claim(self) -> None:
        """Be the one that answers; who comes second ends the process."""
        if self._started:
            self._claimed.acquire()

    def answered(self, status: int) -> None:
        """The answer has been written: this process exits so, whatever follows."""
        if self._started:
            self.status = status

    def fail(self, problem: str) -> "NoReturn":
        """End this process without a verdict; reads the event if nobody has."""
        try:
            if self.stdin is None:
                self.read()
        finally:
            self.end(problem)

    def read(self) -> bytes:
        """Read the event; of one that is too large, the start."""
        pieces, size = [], 0
        while piece := os.read(0, 1 << 20):
            size += len(piece)
            if size <= MAX_EVENT_BYTES + (1 << 20):
                pieces.append(piece)
        self.stdin = b"".join(pieces)
        return self.stdin

    def end(self, problem: str) -> "NoReturn":
        """End this process without a verdict, unless that has been given."""
        event = next((word for word in self.words if word in BEFORE_TOOL), None)
        status = failure_status(event, self.stdin or b"")
        if not self._claimed.acquire(blocking=False):
            os._exit(status if self.status is None else self.status)
        try:
            os.write(2, f"hookline: {problem}\n".encode(errors="backslashreplace"))
        finally:
            os._exit(status)


failsafe = Failsafe()
