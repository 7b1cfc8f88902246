"""Log records of the hook system, on the standard logging module.

Local only. A record is built only where somebody listens, and writing it never blocks
the event loop: one daemon thread hands the records on, in order.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from queue import SimpleQueue

logger = logging.getLogger("hookline")
"""For the few words that are due at once: settings and matchers that are wrong."""

Record = Mapping[str, Any]


class DebugLogger(Protocol):
    """Where the records of hooks go (DELTA-HTEL-001..003)."""

    def enabled(self, level: int) -> bool:
        """Whether a record of this level would be looked at."""
        ...

    def log(self, level: int, name: str, record: Record) -> None:
        """Take one record, such as ``hook:result``; must not block."""
        ...

    def flush(self) -> None:
        """Return when all that was taken has been written."""
        ...


class LoggingDebugLogger:
    """Writes records to a logger of the standard library, from a thread of its own."""

    def __init__(self, target: logging.Logger | None = None) -> None:
        self._target = target or logging.getLogger("hookline.hooks")
        self.enabled: Callable[[int], bool] = self._target.isEnabledFor
        """Whether a record of this level would be looked at."""
        self._queue: SimpleQueue[Callable[[], None]] | None = None

    def log(self, level: int, name: str, record: Record) -> None:
        """Queue one record."""
        queue = self._queue or self._start()
        queue.put(lambda: self._write(level, name, record))

    def flush(self) -> None:
        """Return when all that was queued has been written."""
        if self._queue is not None:
            written = threading.Event()
            self._queue.put(written.set)
            written.wait(timeout=5)

    def _start(self) -> SimpleQueue[Callable[[], None]]:
        from queue import SimpleQueue  # not before something is to be written

        queue: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._queue = queue
        threading.Thread(
            target=_work, args=(queue,), name="hookline-log", daemon=True
        ).start()
        return queue

    def _write(self, level: int, name: str, record: Record) -> None:
        try:
            self._target.log(
                level, "%s %s", name, _line(record), extra={"hook": record}
            )
        # A handler of the host's may raise anything; logging must harm nobody.
        except Exception:  # noqa: BLE001, S110
            pass


def _work(queue: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        queue.get()()


def _line(record: Record) -> str:
    """One readable line of a record; long values are for the record itself."""
    shown = (f"{key}={_short(value)}" for key, value in record.items())
    return " ".join(shown)


def _short(value: Any) -> str:
    text = str(value)
    return repr(text if len(text) <= 120 else text[:117] + "...")
