"""Hooks for callers without an event loop, or inside one that they must not block on.

Each Config has at most one background loop, in a daemon thread that is started on first
use and ends with ``config.dispose()``, with the Config itself, or with the program.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

from hookline.config import Config

T = TypeVar("T")

_JOIN_S = 5.0
_loops: weakref.WeakKeyDictionary[Config, BackgroundLoop] = weakref.WeakKeyDictionary()
_lock = threading.Lock()
_in_hooks: ContextVar[bool] = ContextVar("hookline_in_hooks", default=False)


class BackgroundLoop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._work, name="hookline-hooks", daemon=True
        )
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and give its result to this thread."""
        if _in_hooks.get():
            # A hook in this process calls a hooked tool: waiting here for the loop
            # that this very call may hold up would never end.
            return _in_new_thread(work)
        future = asyncio.run_coroutine_threadsafe(
            _within(copy_context(), work), self._loop
        )
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def is_alive(self) -> bool:
        """Whether it still takes work."""
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


def background_of(config: Config) -> BackgroundLoop:
    """The one background loop of a config, started on first use."""
    with _lock:
        found = _loops.get(config)
        if found is None or not found.is_alive():
            found = _loops[config] = BackgroundLoop()
            _close_with(config, found)
        return found


def run_sync(config: Config, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the config's background loop and wait for it."""
    return background_of(config).run(work)


def _close_with(config: Config, loop: BackgroundLoop) -> None:
    held = weakref.ref(config)

    async def close() -> None:
        owner = held()
        system = None if owner is None else owner.get_hook_system()
        if system is not None and loop.is_alive():
            # What its hooks keep warm lives on this loop, and has to be closed there.
            await asyncio.to_thread(loop.run, system.dispose())
        await asyncio.to_thread(loop.close)

    config.on_dispose(close)
    weakref.finalize(config, loop.close)


async def _within(context: Context, work: Coroutine[Any, Any, T]) -> T:
    # The caller's context comes along: it says how deep in hooks the caller is.
    context.run(_in_hooks.set, True)
    return await asyncio.get_running_loop().create_task(work, context=context)


def _in_new_thread(work: Coroutine[Any, Any, T]) -> T:
    done: Future[T] = Future()
    context = copy_context()  # which says that this is within hooks

    def run() -> None:
        try:
            done.set_result(context.run(asyncio.run, work))
        # Handed to the caller's thread, whatever it is.
        except BaseException as error:  # noqa: BLE001
            done.set_exception(error)

    thread = threading.Thread(target=run, name="hookline-nested", daemon=True)
    thread.start()
    return done.result()


def _close_all() -> None:
    for loop in list(_loops.values()):
        loop.close()


atexit.register(_close_all)
