"""One thread that writes events to the journal.

What is taken is in the file within a second and, for as long as the process lives,
written in the end: ``close()`` returns when all of it is. Whatever goes wrong with the
file stops the journal with one warning and disturbs nobody else.
"""

from __future__ import annotations

import atexit
import os
import sqlite3
import threading
from weakref import WeakSet

from hookline.errors import JournalError
from hookline.log import logger

from .batches import Backlog, BatchWriting
from .occurrence import Occurrence
from .rows import Limits
from .store import damaged

_STUCK_S = 30.0
"""A disk that takes nothing for so long keeps nobody from ending."""


_living: WeakSet[JournalWriter] = WeakSet()


class JournalWriter:
    """Takes events from any thread and writes them from its own."""

    def __init__(self, path: str, limits: Limits | None = None) -> None:
        self.path = os.path.realpath(path)
        self.stopped = False
        """Whether the journal gave up."""
        self._limits = limits or Limits()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._writing: BatchWriting | None = None
        self._forget_thread()
        _living.add(self)

    def start(self) -> None:
        """Start the thread, unless it runs; it opens the file."""
        with self._lock:
            if self._pid != os.getpid():
                self._forget_thread()  # a forked child has the memory alone
            if self._thread is not None or self.stopped:
                return
            self._writing = BatchWriting(self.path, self._backlog, self._limits)
            self._thread = threading.Thread(
                target=self._work,
                args=(self._writing,),
                name="hookline-journal",
                daemon=True,
            )
            self._thread.start()
            atexit.register(self.close)

    def put(self, occurrence: Occurrence) -> None:
        """Take one event; neither blocks nor raises."""
        if self._thread is None or self._pid != os.getpid():
            self.start()
        if self.stopped or self._writing is None:
            return
        self._taken_bytes += len(occurrence.input.text)
        waiting = self._taken_bytes - self._writing.written_bytes
        if waiting > self._limits.pending_bytes:
            self._stop(f"cannot keep up, {waiting} bytes wait to be written")
        else:
            self._backlog.items.put(occurrence)

    def flush(self) -> None:
        """Return when all that was taken is written, or the journal has stopped."""
        thread, backlog = self._thread, self._backlog
        if thread is None or self._pid != os.getpid():
            return
        written = threading.Event()
        backlog.items.put(written)
        backlog.hurry.set()
        while thread.is_alive() and not written.wait(0.05):
            pass

    def close(self) -> None:
        """Write all that was taken and end the thread; a later event starts it anew."""
        with self._lock:
            thread, backlog, writing = self._thread, self._backlog, self._writing
            if thread is None or writing is None or self._pid != os.getpid():
                return
            self._forget_thread()
            atexit.unregister(self.close)
        backlog.finish()
        if not _ended(thread, writing):
            self._stop(f"nothing could be written for {_STUCK_S:g} s")
            return
        for item in backlog.rest():
            if isinstance(item, Occurrence):
                self.put(item)  # it came from another thread in this very moment

    def _forget_thread(self) -> None:
        self._pid = os.getpid()
        self._backlog = Backlog()
        self._thread = None
        self._writing = None
        self._taken_bytes = 0

    def _work(self, writing: BatchWriting) -> None:
        problem: str | None = "failed unexpectedly"
        try:
            writing.run()
            problem = None
        except JournalError as error:
            problem = error.problem
        except sqlite3.Error as error:
            problem = damaged(self.path, error).problem
        except OSError as error:
            problem = error.strerror or str(error)
        finally:
            if problem is not None:
                self._stop(problem)

    def _stop(self, problem: str) -> None:
        if not self.stopped:
            self.stopped = True
            logger.warning("journal %s: %s. Nothing is recorded", self.path, problem)


def _close_all() -> None:
    """Before a fork: SQLite must not be carried into another process."""
    for writer in list(_living):
        writer.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_all)


def _ended(thread: threading.Thread, writing: BatchWriting) -> bool:
    """Wait for a thread for as long as it gets on."""
    written = -1
    while thread.is_alive() and written != writing.written_bytes:
        written = writing.written_bytes
        thread.join(_STUCK_S)
    return not thread.is_alive()
