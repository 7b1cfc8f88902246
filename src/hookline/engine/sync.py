"""Hooks for callers that have no event loop to wait on.

A plain function, or a caller that must not give up its event loop, has its hooks run on
one event loop in the background per Config (decision 0050).
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

from hookline._internal.fork_safe import ForkSafeLock
from hookline.config import Config

T = TypeVar("T")

_JOIN_S = 5.0
_loops: weakref.WeakKeyDictionary[Config, BackgroundLoop] = weakref.WeakKeyDictionary()
_starting = ForkSafeLock()
_in_hooks: ContextVar[bool] = ContextVar("hookline_in_hooks", default=False)


def run_sync(config: Config, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the one background loop of a config, and wait for it."""
    with _starting.held:
        loop = _loops.get(config)
        if loop is None or not loop.is_alive():
            loop = _loops[config] = BackgroundLoop()
            _close_with(config, loop)
    return loop.wait_for(work)


class BackgroundLoop(threading.Thread):
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        super().__init__(name="hookline-hooks", daemon=True)
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._is_closing = asyncio.Event()
        self.start()

    def run(self) -> None:
        """Serve the loop until it is closed; cancel what is left."""
        with self._runner as runner:
            runner.run(self._is_closing.wait())

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine here and wait for its result in the thread of the caller."""
        if _in_hooks.get() or threading.current_thread() is self:
            # A hook in this process calls a hooked tool, or a generator is collected
            # here: this very loop would wait for itself.
            with ThreadPoolExecutor(1, "hookline-nested") as pool:
                return pool.submit(copy_context().run, asyncio.run, work).result()
        # The coroutine gets a copy of this context, with the depth of nested hooks.
        context = copy_context()
        context.run(_in_hooks.set, True)
        results: list[T] = []
        errors: list[BaseException] = []
        tasks: list[asyncio.Task[None]] = []
        # A bare lock: a future's result would take the loop another round, and each
        # round hands the interpreter to another thread.
        is_over = threading.Lock()
        is_over.acquire()

        async def run() -> None:
            try:
                results.append(await work)
            except asyncio.CancelledError:  # an ``Exception`` in code without a loop
                errors.append(CancelledError())
            # It is for the caller, and SystemExit would end the loop.
            except BaseException as error:  # noqa: BLE001
                errors.append(error)
            finally:
                is_over.release()

        def start() -> None:
            tasks.append(self._loop.create_task(run(), context=context))

        self._loop.call_soon_threadsafe(start)
        try:
            while not is_over.acquire(timeout=_JOIN_S):
                if not self.is_alive():  # closed just before it could start
                    work.close()
                    errors.append(CancelledError())
                    break
        except BaseException:  # such as KeyboardInterrupt
            with suppress(RuntimeError):  # it is closed
                self._loop.call_soon_threadsafe(lambda: [t.cancel() for t in tasks])
            raise
        if errors:
            raise errors.pop()
        return results[0]

    def close(self) -> None:
        """Stop the loop and wait for the thread to end."""
        if self.is_alive():
            self._loop.call_soon_threadsafe(self._is_closing.set)
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
