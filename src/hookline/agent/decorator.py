"""``hooked_tool``: a function or method as a tool that obeys hooks.

A plain function has no event loop to wait on, so its hooks run on one background loop
per Config (decision 0050).
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, ContextVar, copy_context
from functools import partial, update_wrapper
from typing import Any, TypeVar, cast

from msgspec import Struct

from hookline.config import Config

from .conversation import arguments_of, input_of, name_of
from .tool_calls import Confirm, ToolResult, ToolRun, as_result, failed

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
        """Run a coroutine and wait for its result in this thread."""
        if _in_hooks.get():
            # A hook in this process calls a hooked tool: it may run on this very
            # loop, which would then wait for itself.
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
    with _lock:
        loop = _loops.get(config)
        if loop is None or not loop.is_alive():
            loop = _loops[config] = BackgroundLoop()
            _close_with(config, loop)
    return loop.run(work)


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


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, in this thread and without a loop.

    This is how plain code shares an ``async def`` with async code: what the plain
    caller hands in to be awaited blocks instead of suspending.
    """
    try:
        work.send(None)
    except StopIteration as ended:
        return cast("T", ended.value)
    raise RuntimeError("a plain call was suspended")


def iterate_to_end(items: AsyncGenerator[T, None]) -> Iterator[T]:
    """Iterate over an async generator that never suspends."""
    try:
        while True:
            yield run_to_end(items.__anext__())
    except StopAsyncIteration:
        return
    finally:
        run_to_end(items.aclose())


class Waiting(Struct, frozen=True):
    """How shared code waits: on the caller's loop, or blocking a plain caller."""

    config: Config
    is_async: bool

    async def hooks(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for the coroutine of a hook call."""
        return await work if self.is_async else run_sync(self.config, work)

    async def value(self, given: Any) -> Any:
        """What a function returned; a plain function's value is never awaited."""
        return await given if self.is_async else given

    def items(self, given: Any) -> AsyncGenerator[Any, None]:
        """What a generator function returned, to iterate over."""
        return given if self.is_async else _as_async(given)


async def _as_async(items: Iterable[T]) -> AsyncGenerator[T, None]:
    for item in items:
        yield item


def wrap(
    function: Callable[..., Any],
    work: Callable[..., Coroutine[Any, Any, Any]],
    config: Config,
    mark: str,
    *,
    is_async: bool | None = None,
) -> Callable[..., Any]:
    """Call ``work(waiting, ...)`` in place of a function; plain or async as that is."""
    if is_async is None:
        is_async = inspect.iscoroutinefunction(function)
    wait = Waiting(config, is_async=is_async)

    async def call_async(*args: Any, **kwargs: Any) -> Any:
        return await work(wait, *args, **kwargs)

    def call(*args: Any, **kwargs: Any) -> Any:
        # The function runs here, in the caller's thread; only hooks run elsewhere.
        return run_to_end(work(wait, *args, **kwargs))

    wrapper = update_wrapper(call_async if wait.is_async else call, function)
    wrapper.__name__ = name_of(function)  # a partial has none to copy
    setattr(wrapper, mark, True)
    return wrapper


def is_marked(function: Any, mark: str) -> bool:
    """Whether ``wrap`` made this function, with this mark."""
    return getattr(function, mark, False) is True


HOOKED = "__hookline_hooked__"
"""Marks a function whose calls pass the tool hooks."""

F = TypeVar(
    "F",
    bound="Callable[..., Any] | classmethod[Any, ..., Any] | staticmethod[..., Any]",
)


def hooked_tool(
    config: Config,
    *,
    name: str | None = None,
    confirm: Confirm | None = None,
    on_stop: Callable[[str], None] | None = None,
    in_thread: bool = False,
) -> Callable[[F], F]:
    """Make a decorator that passes a function's calls through the tool hooks.

    Hooks see every parameter by name, with the defaults and what a partial has bound;
    of a method those after ``self`` or ``cls``. ``on_stop`` is called with the reason
    when a hook stops the agent. With ``in_thread`` a plain function becomes an async
    tool that runs in a thread.
    """

    def decorate(function: Any, has_receiver: bool | None = None) -> Any:
        if isinstance(function, classmethod | staticmethod):
            is_class_method = isinstance(function, classmethod)
            return type(function)(decorate(function.__func__, is_class_method))
        start = partial(ToolRun, config, name or name_of(function), confirm=confirm)
        hooked = _HookedFunction(function, start, on_stop, has_receiver)
        is_async = inspect.iscoroutinefunction(function)
        if in_thread and not is_async:
            hooked.invoke = partial(asyncio.to_thread, hooked.function)
        hooked.wrapper = wrap(
            function, hooked.call, config, HOOKED, is_async=is_async or in_thread
        )
        return hooked.wrapper

    return decorate


class _HookedFunction:
    """One function with its hooks."""

    def __init__(
        self,
        given: Callable[..., Any],
        start: Callable[[dict[str, Any]], ToolRun],
        on_stop: Callable[[str], None] | None,
        has_receiver: bool | None,
    ) -> None:
        self.function, self.args, self.kwargs = _without_partials(given)
        self.invoke = self.function
        self.wrapper: Callable[..., Any] | None = None
        self._signature = inspect.signature(self.function)
        self._first = next(iter(self._signature.parameters), "")
        self._start = start
        self._on_stop = on_stop
        self._has_receiver = has_receiver
        if has_receiver is None and _is_named_as_method(self.function, self._first):
            self._has_receiver = True

    async def call(self, wait: Waiting, /, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = (*self.args, *args), {**self.kwargs, **kwargs}
        tool_input = input_of(self._signature, args, kwargs)
        receiver = self._take_receiver(tool_input)
        run = self._start(tool_input)
        refusal = await wait.hooks(run.begin())
        if refusal is not None:
            return self._content(refusal)
        args, kwargs = arguments_of(self._signature, {**run.tool_input, **receiver})
        try:
            value = await wait.value(self.invoke(*args, **kwargs))
        except Exception as error:
            await wait.hooks(run.finish(failed(error)))
            raise
        before = as_result(value)
        after = await wait.hooks(run.finish(before))
        # The function's own value, unless hooks changed what the model sees.
        unchanged = after.llm_content is before.llm_content
        return value if unchanged else self._content(after)

    def _take_receiver(self, tool_input: dict[str, Any]) -> dict[str, Any]:
        """Take ``self`` or ``cls`` out of an input, whatever its parameter's name."""
        if self._first not in tool_input or self._has_receiver is False:
            return {}
        value = tool_input[self._first]
        if self._has_receiver or _is_method_of(value, self.wrapper):
            return {self._first: tool_input.pop(self._first)}
        return {}

    def _content(self, result: ToolResult) -> Any:
        if result.stop_reason is not None and self._on_stop is not None:
            self._on_stop(result.stop_reason)
        return result.llm_content


def _without_partials(
    function: Any,
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """A function and the arguments that partials around it have bound."""
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    while isinstance(function, partial):
        args, kwargs = (*function.args, *args), {**function.keywords, **kwargs}
        function = function.func
    return function, args, kwargs


def _is_named_as_method(function: Any, first: str) -> bool:
    """Whether a function is defined in a class and takes ``self`` or ``cls``."""
    scope = getattr(function, "__qualname__", "").rpartition(".")[0]
    if not inspect.isfunction(function) or not scope or scope.endswith("<locals>"):
        return False
    # A static method is defined in a class too: only the name tells them apart.
    return first in {"self", "cls"}


_NEVER_RECEIVERS = (str, int, float, bool, bytes, dict, list, tuple, set, type(None))


def _is_method_of(value: Any, wrapper: Any) -> bool:
    """Whether the class of a value has this function as a method."""
    if type(value) in _NEVER_RECEIVERS:
        return False
    kind = value if isinstance(value, type) else type(value)
    return any(
        _leads_to(attribute, wrapper)
        for base in kind.__mro__
        for attribute in vars(base).values()
    )


def _leads_to(attribute: Any, wrapper: Any) -> bool:
    if isinstance(attribute, staticmethod):
        return False
    attribute = getattr(attribute, "__func__", attribute)
    while inspect.isfunction(attribute):
        if attribute is wrapper:
            return True
        attribute = getattr(attribute, "__wrapped__", None)
    return False
