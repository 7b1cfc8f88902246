"""Log records of the hook system, and how observers are told of anything at all.

An observer (a logger, a telemetry backend) is code of the host that is only told of a
verdict: it can neither change nor hold up one. A ``Courier`` calls it, in a thread.
Records are local only, and one is built only if its level is enabled.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from queue import SimpleQueue

Record = Mapping[str, Any]
Call = Callable[[], object]
AnyLogger = logging.Logger | logging.LoggerAdapter[Any]

_MOST = {"message": 1000, "error": 1000}
"""What says what to do is shown whole, within reason."""
_MAX_LINES = 200
_MAX_QUEUED = 10_000
"""Calls that wait for one observer; further ones are dropped."""
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

    def __init__(self, observer: str = "", wait_s: float = 0.25) -> None:
        self._guard = Guard(observer)
        self._wait_s = wait_s
        self._reset()

    def _reset(self) -> None:
        self._host = os.getpid()
        self._lock = threading.Lock()
        self._queue: SimpleQueue[Call | None] | None = None
        self._thread: threading.Thread | None = None
        self._overdue: threading.Event | None = None
        """Set once a call is over that somebody stopped waiting for."""

    def put(self, call: Call) -> None:
        """Have it called soon; never blocks."""
        if self._host != os.getpid():
            self._reset()  # a forked child has neither the thread nor the lock's holder
        queue = self._queue or self._start()
        if queue is None or threading.current_thread() is self._thread:
            self._guard(call)
        elif queue.qsize() < _MAX_QUEUED:
            queue.put(call)

    def tell(self, call: Callable[..., object], *args: Any) -> None:
        """Have it called, usually before this returns.

        An observer that hangs costs its caller ``wait_s``, and only once.
        """
        self.put(partial(call, *args))
        if self._overdue is None or self._overdue.is_set():
            self.flush(self._wait_s)

    def ask(self, call: Callable[..., Any], *args: Any) -> Any:
        """The same with what the call returns; None if it raises or takes too long."""
        answers: list[Any] = []
        self.tell(lambda: answers.append(call(*args)))
        return answers[0] if answers else None

    def flush(self, limit_s: float = _FLUSH_S) -> None:
        """Wait until all calls so far are over, for so long at most."""
        if self._queue is not None and threading.current_thread() is not self._thread:
            over = threading.Event()
            self.put(over.set)
            self._overdue = None if over.wait(limit_s) else over

    def close(self) -> None:
        """End the thread after the calls so far; a later one starts another."""
        queue, self._queue = self._queue, None
        if queue is not None:
            queue.put(None)

    __del__ = close

    def _start(self) -> SimpleQueue[Call | None] | None:
        from queue import SimpleQueue  # most processes log nothing

        with self._lock:
            if self._queue is None:
                queue: SimpleQueue[Call | None] = SimpleQueue()
                # The thread must not hold the courier, whose end is the thread's end.
                work, name = partial(_deliver, queue, self._guard), "hookline-log"
                self._thread = threading.Thread(target=work, name=name, daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # no thread is left, or the interpreter ends
                    return None
                self._queue = queue
            return self._queue


def _deliver(queue: SimpleQueue[Call | None], guard: Guard) -> None:
    while (call := queue.get()) is not None:
        with suppress(KeyboardInterrupt):  # raised here, it was not pressed
            guard(call)


_log_thread = Courier()
"""Calls the handlers of the standard library."""


def _guard_handlers(target: logging.Logger) -> None:
    """Keep what the host's handlers do from whoever logs something."""
    handle = target.handle

    def tell(record: logging.LogRecord | None) -> None:
        if record is not None:  # else the host's factory of records has raised
            _log_thread.tell(handle, record)

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
    """Where the records of hooks go (DELTA-HTEL-001..003)."""

    def enabled(self, level: int) -> bool:
        """Whether a record of this level would be written."""
        ...

    def log(self, level: int, name: str, record: Record) -> None:
        """Take one record, such as ``hook:result``."""
        ...

    def flush(self) -> None:
        """Return when every record taken so far is written."""
        ...


def checked_debug_logger(candidate: Any) -> DebugLogger:
    """A debug logger as it is, or one that writes to a ``logging.Logger``.

    Raises ``TypeError`` for anything else.
    """
    if candidate is None or isinstance(
        candidate, logging.Logger | logging.LoggerAdapter
    ):
        return LoggingDebugLogger(candidate)
    methods = [getattr(candidate, name, None) for name in ("enabled", "log", "flush")]
    if (
        isinstance(candidate, type)
        or not all(map(callable, methods))
        or any(map(iscoroutinefunction, methods))
    ):
        raise TypeError(
            f"debug_logger: expected a logging.Logger, or an object with the plain "
            f"methods enabled(level), log(level, name, record) and flush(), "
            f"got {candidate!r:.80}"
        )
    debug_logger: DebugLogger = candidate
    return debug_logger


class LoggingDebugLogger:
    """Writes records to a logger of the standard library, in the background."""

    def __init__(self, target: AnyLogger | None = None) -> None:
        self._target = target or logging.getLogger("hookline.hooks")
        self.enabled: Callable[[int], bool] = self._target.isEnabledFor
        """Whether a record of this level would be written."""
        if type(self._target) is not logging.Logger:  # it may be code of the host
            self.enabled = partial(Guard("the debug logger"), self.enabled)
        self.has_pending = False

    def log(self, level: int, name: str, record: Record) -> None:
        """Queue one record."""
        self.has_pending = True
        _log_thread.put(partial(self._write, level, name, record))

    def flush(self) -> None:
        """Return when every record queued so far is written, or after five seconds."""
        if self.has_pending:
            self.has_pending = False
            _log_thread.flush()

    def _write(self, level: int, name: str, record: Record) -> None:
        trace = _traceback(record) if name == "hook:failure" else ""
        text = _line(record, without="stderr" if trace else "") + trace
        self._target.log(level, "%s %s", name, text, extra={"hook": record})


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
