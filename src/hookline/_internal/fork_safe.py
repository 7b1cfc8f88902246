"""A lock that a fork finds free: in the child nobody is there who held it."""

from __future__ import annotations

import os
import threading
import weakref


class ForkSafeLock:
    """Write ``with lock.held:``; the same thread may hold it several times."""

    def __init__(self) -> None:
        self.held = threading.RLock()
        """New in a fork."""
        _locks.add(self)


_locks: weakref.WeakSet[ForkSafeLock] = weakref.WeakSet()


def _replace() -> None:
    for lock in _locks:
        lock.held = threading.RLock()


os.register_at_fork(after_in_child=_replace)
