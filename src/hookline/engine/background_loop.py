"""An event loop in the background, for callers that have none to wait on.

A plain function, or a caller that must not give up its event loop, has its hooks run
on one background loop per Config (decision 0050).
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

from hookline.config import Config
from hookline.errors import HooklineError

T = TypeVar("T")

_JOIN_S = 5.0
_loops: weakref.WeakKeyDictionary[Config, BackgroundLoop] = weakref.WeakKeyDictionary()
_lock = threading.Lock()
_in_hooks: ContextVar[bool] = ContextVar("hookline_in_hooks", default=False)


def _start_over() -> None:
    """In a fork there is neither a thread of its parent nor the lock's holder."""
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_start_over)


class BackgroundLoop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._work, name="hookline-hooks", daemon=True
        )
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and wait for its result in this thread."""
        if _in_hooks.get() or threading.current_thread() is self._thread:
            # A hook in this process calls a hooked tool, or a generator is collected
            # here: this very loop would wait for itself.
            with ThreadPoolExecutor(1, "hookline-nested") as pool:
                # The context holds ``_in_hooks``.
                return pool.submit(copy_context().run, asyncio.run, work).result()
        future = asyncio.run_coroutine_threadsafe(
            _within(copy_context(), work), self._loop
        )
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def is_alive(self) -> bool:
        """Whether it accepts work."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Cancel what is left and end the thread."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            if threading.current_thread() is not self._thread:
                self._thread.join(_JOIN_S)

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()


def run_sync(config: Config, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the one background loop of a config, and wait for it."""
    if _has_green_threads():
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
    return loop.run(work)


def _has_green_threads() -> bool:
    """Whether a thread of ours would be no thread, and its event loop block all."""
    gevent = sys.modules.get("gevent.monkey")
    if gevent is not None and gevent.is_module_patched("threading"):
        return True
    eventlet = sys.modules.get("eventlet.patcher")
    return eventlet is not None and bool(eventlet.is_monkey_patched("thread"))


def _close_with(config: Config, loop: BackgroundLoop) -> None:
    held = weakref.ref(config)

    async def close() -> None:
        owner = held()
        system = None if owner is None else owner.get_hook_system()
        if system is not None and loop.is_alive():
            # Workers belong to this loop and have to be closed on it.
            await asyncio.to_thread(loop.run, system.dispose())
        await asyncio.to_thread(loop.close)

    config.on_dispose(close)
    weakref.finalize(config, loop.close)  # runs at exit too


async def _within(context: Context, work: Coroutine[Any, Any, T]) -> T:
    # The caller's context holds the depth of nested hooks.
    context.run(_in_hooks.set, True)
    return await asyncio.get_running_loop().create_task(work, context=context)
