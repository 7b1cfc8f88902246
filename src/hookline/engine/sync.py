"""Hooks for callers that have no event loop to wait on.

A plain function, or a caller that must not give up its event loop, has its hooks run on
one event loop in the background per Config (decision 0050).
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

from hookline.config import Config
from hookline.errors import HooklineError

T = TypeVar("T")

_JOIN_S = 5.0
_loops: weakref.WeakKeyDictionary[Config, BackgroundLoop] = weakref.WeakKeyDictionary()
_lock = threading.Lock()
_in_hooks: ContextVar[bool] = ContextVar("hookline_in_hooks", default=False)


def _replace_lock() -> None:
    """In a fork there is neither a thread of its parent nor the lock's holder."""
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_replace_lock)


def run_sync(config: Config, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the one background loop of a config, and wait for it."""
    gevent = sys.modules.get("gevent.monkey")
    eventlet = sys.modules.get("eventlet.patcher")
    if (gevent is not None and gevent.is_module_patched("threading")) or (
        eventlet is not None and eventlet.is_monkey_patched("thread")
    ):
        # A thread of ours would be none, and its event loop would block everything.
        work.close()
        raise HooklineError(
            "hooks cannot run where gevent or eventlet replaces threads: "
            "use a server or a pool with threads or processes"
        )
    with _lock:
        loop = _loops.get(config)
        if loop is None or not loop.is_alive():
            loop = _loops[config] = BackgroundLoop()
            _close_with(config, loop)
    return loop.wait_for(work)


class BackgroundLoop(threading.Thread):
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        super().__init__(name="hookline-hooks", daemon=True)
        self._loop = asyncio.new_event_loop()
        self.start()

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine here and wait for its result in the thread of the caller."""
        if _in_hooks.get() or threading.current_thread() is self:
            # A hook in this process calls a hooked tool, or a generator is collected
            # here: this very loop would wait for itself.
            with ThreadPoolExecutor(1, "hookline-nested") as pool:
                return pool.submit(copy_context().run, asyncio.run, work).result()
        # The coroutine gets a copy of this context, with the depth of nested hooks.
        outside = _in_hooks.set(True)
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        finally:
            _in_hooks.reset(outside)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def run(self) -> None:
        """Serve the loop until it is stopped; cancel what is left."""
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            ended = asyncio.gather(*tasks, return_exceptions=True)
            self._loop.run_until_complete(ended)
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    def close(self) -> None:
        """Stop the loop and wait for the thread to end."""
        if self.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            if threading.current_thread() is not self:
                self.join(_JOIN_S)


def _close_with(config: Config, loop: BackgroundLoop) -> None:
    """End the loop with its config: when that is disposed of, collected, or at exit."""
    reference = weakref.ref(config)

    async def close() -> None:
        owner = reference()
        system = None if owner is None else owner.get_hook_system()
        if system is not None and loop.is_alive():
            # Workers belong to this loop and have to be closed on it.
            await asyncio.to_thread(loop.wait_for, system.dispose())
        await asyncio.to_thread(loop.close)

    config.on_dispose(close)
    weakref.finalize(config, loop.close)
