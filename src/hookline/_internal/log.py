"""Loggers, and the threads in which observers are called.

An observer (a logger, a telemetry backend) is code of the host that is only told of a
verdict: it can neither change nor hold up one.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from queue import SimpleQueue

Call = Callable[[], object]
Record = Mapping[str, Any]
AnyLogger = logging.Logger | logging.LoggerAdapter[Any]

_MAX_QUEUED = 10_000
"""Calls that wait for one observer; further ones are dropped."""
_PATIENCE_S = 0.25
_FLUSH_S = 5.0


class Guard:
    """Calls an observer; the first thing it raises is logged, and goes no further."""

    def __init__(self, observer: str) -> None:
        self._observer = observer

    def __call__(self, call: Callable[..., Any], *args: Any) -> Any:
        """What the call returns, or None if it raises."""
        try:
            return call(*args)
        except KeyboardInterrupt:  # pressed meanwhile: it is for the host
            raise
        # Code of the host, which may raise anything; it costs its own record.
        except BaseException as error:  # noqa: BLE001
            observer, self._observer = self._observer, ""
            if observer:
                kind = type(error).__name__
                logger.warning("%s failed: %s: %s", observer, kind, error)


class Courier:
    """Calls an observer in a thread, in order, so that it holds up nobody."""

    def __init__(self, observer: str = "") -> None:
        self._guard = Guard(observer)
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._calls: SimpleQueue[Call | None] | None = None
        self._thread: threading.Thread | None = None
        self._overdue: threading.Event | None = None
        """Set once a call is over that somebody stopped waiting for."""

    def put(self, call: Call) -> None:
        """Have it called soon; never blocks."""
        if self._process != os.getpid():
            self._reset()  # a forked child has neither the thread nor the lock's holder
        calls = self._calls or self._start()
        if calls is None or threading.current_thread() is self._thread:
            self._guard(call)
        elif calls.qsize() < _MAX_QUEUED:
            calls.put(call)

    def tell(self, call: Callable[..., object], *args: Any) -> None:
        """Have it called, usually before this returns.

        An observer that hangs costs its caller a quarter of a second, and only once.
        """
        self.put(partial(call, *args))
        if self._overdue is None or self._overdue.is_set():
            self.flush(_PATIENCE_S)

    def ask(self, call: Callable[..., Any], *args: Any) -> Any:
        """The same with what the call returns; None if it raises or takes too long."""
        answers: list[Any] = []
        self.tell(lambda: answers.append(call(*args)))
        return answers[0] if answers else None

    def flush(self, limit_s: float = _FLUSH_S) -> None:
        """Wait until all calls so far are over, for so long at most."""
        if self._calls is not None:
            over = threading.Event()
            self.put(over.set)
            self._overdue = None if over.wait(limit_s) else over

    def close(self) -> None:
        """End the thread after the calls so far; a later one starts another."""
        calls, self._calls = self._calls, None
        if calls is not None:
            calls.put(None)

    __del__ = close

    def _start(self) -> SimpleQueue[Call | None] | None:
        from queue import SimpleQueue  # most processes log nothing

        with self._lock:
            if self._calls is None:
                calls: SimpleQueue[Call | None] = SimpleQueue()
                # It must not hold the courier, whose end is the thread's end.
                thread = threading.Thread(
                    target=_make_calls, args=(calls, self._guard), daemon=True
                )
                try:
                    thread.start()
                except RuntimeError:  # no thread is left, or the interpreter ends
                    return None
                self._calls, self._thread = calls, thread
            return self._calls


def _make_calls(calls: SimpleQueue[Call | None], guard: Guard) -> None:
    while (call := calls.get()) is not None:
        with suppress(KeyboardInterrupt):  # raised here, it was not pressed
            guard(call)


log_courier = Courier()
"""Calls the handlers of the standard library."""


def _guard_handlers(target: logging.Logger) -> None:
    """Keep what the host's handlers do from whoever logs something."""
    handle = target.handle

    def tell(record: logging.LogRecord | None) -> None:
        if record is not None:  # else the host's factory of records has raised
            log_courier.tell(handle, record)

    target.makeRecord = partial(Guard(""), target.makeRecord)  # type: ignore[method-assign] # as below
    target.handle = tell  # type: ignore[method-assign] # its class may be the host's


for _name in ("", ".hooks", ".bus", ".reload", ".serve"):
    _guard_handlers(logging.getLogger(f"hookline{_name}"))
logger = logging.getLogger("hookline")
"""For messages that are written at once, such as mistakes in settings."""


@contextmanager
def silent_log() -> Iterator[None]:
    """Show no messages meanwhile: the caller tells them in another way."""
    handler, propagate = logging.NullHandler(), logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


class DebugLogger(Protocol):
    """Where the records of hooks go (DELTA-HTEL-001..003); called in a thread."""

    def enabled(self, level: int) -> bool:
        """Whether a record of this level would be written."""
        ...

    def log(self, level: int, name: str, record: Record) -> None:
        """Take one record, such as ``hook:result``."""
        ...

    def flush(self) -> None:
        """Return when every record taken so far is written."""
        ...
