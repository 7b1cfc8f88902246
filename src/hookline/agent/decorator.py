"""``hooked_tool``: a plain or async function as a tool that obeys hooks.

A plain function has no event loop to wait on, so its hooks run on one background loop
(decision 0050).
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import Context, ContextVar, copy_context
from functools import update_wrapper
from typing import Any, TypeVar, cast

from hookline.config import Config

from .conversation import arguments_of, input_of
from .tool_calls import Admission, Confirm, ToolResult, ToolRun, as_result, failed

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


_MARK = "__hookline_hooked__"

F = TypeVar("F", bound=Callable[..., Any])


def hooked_tool(
    config: Config,
    *,
    name: str | None = None,
    confirm: Confirm | None = None,
    on_stop: Callable[[str], None] | None = None,
) -> Callable[[F], F]:
    """Make a decorator that takes a function's calls through the tool hooks.

    ``on_stop`` hears the reason when a hook stops the agent.
    """

    def decorate(function: F) -> F:
        named = name or str(getattr(function, "__name__", type(function).__name__))
        maker = _Hooked(config, named, function, confirm, on_stop)
        wrap = (
            maker.asynchronous
            if inspect.iscoroutinefunction(function)
            else maker.synchronous
        )
        wrapped = update_wrapper(wrap(), function)
        setattr(wrapped, _MARK, True)
        return cast("F", wrapped)

    return decorate


def is_hooked(function: Any) -> bool:
    """Whether a function's calls pass the tool hooks already."""
    return getattr(function, _MARK, False) is True


class _Hooked:
    """One function with its hooks."""

    def __init__(
        self,
        config: Config,
        name: str,
        function: Callable[..., Any],
        confirm: Confirm | None,
        on_stop: Callable[[str], None] | None,
    ) -> None:
        self._config = config
        self._function = function
        self._signature = inspect.signature(function)
        self._on_stop = on_stop
        self._run = ToolRun(config, name, confirm=confirm)

    def asynchronous(self) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            admission = await self._run.admit(self._input(args, kwargs))
            if admission.refusal is not None:
                return self._told(admission.refusal)
            args, kwargs = arguments_of(self._signature, admission.tool_input)
            try:
                value = await self._function(*args, **kwargs)
            except Exception as error:
                await self._run.finish(admission, failed(error))
                raise
            result = as_result(value)
            return self._given(value, await self._run.finish(admission, result))

        return call

    def synchronous(self) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            # The function runs here, in the caller's thread; only hooks run elsewhere.
            given = self._input(args, kwargs)
            admission = run_sync(self._config, self._run.admit(given))
            if admission.refusal is not None:
                return self._told(admission.refusal)
            args, kwargs = arguments_of(self._signature, admission.tool_input)
            try:
                value = self._function(*args, **kwargs)
            except Exception as error:
                self._finish(admission, failed(error))
                raise
            return self._given(value, self._finish(admission, as_result(value)))

        return call

    def _input(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        return input_of(self._signature, args, kwargs)

    def _finish(self, admission: Admission, result: ToolResult) -> ToolResult:
        return run_sync(self._config, self._run.finish(admission, result))

    def _given(self, value: Any, result: ToolResult) -> Any:
        """The function's own value, unless hooks changed what the model is to see."""
        if result.llm_content is as_result(value).llm_content:
            return value
        return self._told(result)

    def _told(self, result: ToolResult) -> Any:
        if result.stop_reason is not None and self._on_stop is not None:
            self._on_stop(result.stop_reason)
        return result.llm_content
