"""Log records of the hook system, on the standard logging module.

Local only. A record is built only if its level is enabled, and writing one never blocks
the event loop: one daemon thread per process writes the records, in order.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from queue import SimpleQueue

logger = logging.getLogger("hookline")
"""For messages that are written at once, such as mistakes in settings."""

Record = Mapping[str, Any]

_MOST = {"message": 1000, "error": 1000}
"""What says what to do is shown whole, within reason."""
_MAX_LINES = 200


class DebugLogger(Protocol):
    """Where the records of hooks go (DELTA-HTEL-001..003)."""

    def enabled(self, level: int) -> bool:
        """Whether a record of this level would be written."""
        ...

    def log(self, level: int, name: str, record: Record) -> None:
        """Take one record, such as ``hook:result``; must not block."""
        ...

    def flush(self) -> None:
        """Return when every record taken so far is written."""
        ...


class LoggingDebugLogger:
    """Writes records to a logger of the standard library, in the background."""

    def __init__(self, target: logging.Logger | None = None) -> None:
        self._target = target or logging.getLogger("hookline.hooks")
        self.enabled: Callable[[int], bool] = self._target.isEnabledFor
        """Whether a record of this level would be written."""
        self.has_pending = False

    def log(self, level: int, name: str, record: Record) -> None:
        """Queue one record."""
        self.has_pending = True
        _thread.queue().put(lambda: self._write(level, name, record))

    def flush(self) -> None:
        """Return when every record queued so far is written, or after five seconds."""
        if self.has_pending:
            self.has_pending = False
            written = threading.Event()
            _thread.queue().put(written.set)
            written.wait(timeout=5)

    def _write(self, level: int, name: str, record: Record) -> None:
        try:
            trace = _traceback(record) if name == "hook:failure" else ""
            text = _line(record, without="stderr" if trace else "") + trace
            self._target.log(level, "%s %s", name, text, extra={"hook": record})
        # A handler of the host's may raise anything; the log must survive it.
        except Exception:  # noqa: BLE001, S110
            pass


async def flush_log(log: DebugLogger) -> None:
    """Flush a log without blocking the event loop."""
    # A thread costs 2 ms in a new process, and most systems have nothing to write.
    if not isinstance(log, LoggingDebugLogger) or log.has_pending:
        import asyncio

        await asyncio.to_thread(log.flush)


class _LogThread:
    """The thread that writes all records of this process, started on first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: SimpleQueue[Callable[[], None]] | None = None

    def queue(self) -> SimpleQueue[Callable[[], None]]:
        """The queue that the thread works off."""
        return self._queue or self._start()

    def forget(self) -> None:
        """Start over: a forked child has neither the thread nor the lock's holder."""
        self._lock = threading.Lock()
        self._queue = None

    def _start(self) -> SimpleQueue[Callable[[], None]]:
        from queue import SimpleQueue  # most processes log nothing

        with self._lock:
            if self._queue is None:
                queue: SimpleQueue[Callable[[], None]] = SimpleQueue()
                threading.Thread(
                    target=_work, args=(queue,), name="hookline-log", daemon=True
                ).start()
                self._queue = queue
            return self._queue


_thread = _LogThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_thread.forget)


def _work(queue: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        queue.get()()


def _line(record: Record, without: str) -> str:
    """One readable line; long values are shortened, the record itself has them."""
    return " ".join(
        f"{key}={_short(key, value)}" for key, value in record.items() if key != without
    )


def _short(key: str, value: Any) -> str:
    text, most = str(value), _MOST.get(key, 120)
    return repr(text if len(text) <= most else text[: most - 3] + "...")


def _traceback(record: Record) -> str:
    """That of a hook in this process, indented: no line of it passes for a record."""
    if record.get("type") != "python":
        return ""
    lines = str(record.get("stderr", "")).splitlines()[:_MAX_LINES]
    return "".join(f"\n    {_printable(line)}" for line in lines)


def _printable(line: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
