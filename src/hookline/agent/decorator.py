"""``hooked_tool``: a function, method or generator as a tool that obeys hooks."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
)
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing, suppress
from functools import partial, update_wrapper
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

from msgspec import Struct, structs

from hookline._internal.log import logger
from hookline.engine.registration import signature_of
from hookline.errors import ToolBlockedError
from hookline.protocol.events import HookEventName

from .conversation import arguments_of, input_of, is_coroutine_function, name_of
from .tool_calls import (
    Confirm,
    HookedToolCall,
    ToolOutcome,
    ToolResult,
    as_result,
    failed,
    refused_result,
)
from .triggers import ConfigOrEvents, SessionEvents, events_of

if TYPE_CHECKING:
    from .decorator_types import (
        AddsReason,
        AddsReasonInThread,
        KeepsType,
        KeepsTypeInThread,
    )

T = TypeVar("T")
_ITERTOOLS = {"from_iterable"}
"""The public names that iterators of the standard library have."""


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

    session: SessionEvents
    is_async: bool

    async def hooks(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for the coroutine of a hook call."""
        return await work if self.is_async else self.session.run_sync(work)

    async def last_hooks(self, work: Coroutine[Any, Any, Any]) -> None:
        """Wait for hooks though the caller is cancelled, or is gone."""
        if self.is_async:
            # A scope that cancels again ends the wait, not the hooks.
            await asyncio.shield(asyncio.ensure_future(work))
        else:
            self.session.run_sync(work)

    async def value(self, given: Any) -> Any:
        """What a function returned; a plain function's value is never awaited."""
        return await given if self.is_async else given

    def items(self, given: Any) -> AsyncGenerator[Any, None]:
        """What a generator function returned, to iterate over."""
        return given if isinstance(given, AsyncGenerator) else _as_async(given)


async def _as_async(items: Any) -> AsyncGenerator[Any, None]:
    if not isinstance(items, AsyncIterable):
        for item in items:
            yield item
        return
    async for item in items:
        yield item


def wrap(
    function: Callable[..., Any],
    work: Callable[..., Coroutine[Any, Any, Any]],
    session: SessionEvents,
    mark: str,
    *,
    is_async: bool | None = None,
) -> Callable[..., Any]:
    """Call ``work(waiting, ...)`` in place of a function; plain or async as that is."""
    if is_async is None:
        is_async = inspect.iscoroutinefunction(function)
    wait = Waiting(session, is_async=is_async)

    async def call_async(*args: Any, **kwargs: Any) -> Any:
        return await work(wait, *args, **kwargs)

    def call(*args: Any, **kwargs: Any) -> Any:
        # The function runs here, in the caller's thread; only hooks run elsewhere.
        return run_to_end(work(wait, *args, **kwargs))

    return _marked(call_async if wait.is_async else call, function, mark)


def _marked(
    wrapper: Callable[..., Any], function: Callable[..., Any], mark: str
) -> Callable[..., Any]:
    wrapper = update_wrapper(wrapper, function)
    wrapper.__name__ = name_of(function)  # a partial has none to copy
    setattr(wrapper, mark, True)
    return wrapper


def is_marked(function: Any, mark: str) -> bool:
    """Whether ``wrap`` made this function, with this mark."""
    return getattr(function, mark, False) is True


HOOKED = "__hookline_hooked__"
"""Marks a function whose calls pass the tool hooks."""

Stopped = Callable[[str], None]


@overload
def hooked_tool(
    config: ConfigOrEvents,
    *,
    name: str | None = None,
    confirm: Confirm | None = None,
    on_stop: Stopped | None = None,
    in_thread: Literal[False] = False,
    blocked: Literal["return"] = "return",
) -> AddsReason: ...
@overload
def hooked_tool(
    config: ConfigOrEvents,
    *,
    name: str | None = None,
    confirm: Confirm | None = None,
    on_stop: Stopped | None = None,
    in_thread: Literal[False] = False,
    blocked: Literal["raise"],
) -> KeepsType: ...
@overload
def hooked_tool(
    config: ConfigOrEvents,
    *,
    name: str | None = None,
    confirm: Confirm | None = None,
    on_stop: Stopped | None = None,
    in_thread: Literal[True],
    blocked: Literal["return"] = "return",
) -> AddsReasonInThread: ...
@overload
def hooked_tool(
    config: ConfigOrEvents,
    *,
    name: str | None = None,
    confirm: Confirm | None = None,
    on_stop: Stopped | None = None,
    in_thread: Literal[True],
    blocked: Literal["raise"],
) -> KeepsTypeInThread: ...
@overload
def hooked_tool(
    config: ConfigOrEvents,
    *,
    name: str | None = None,
    confirm: Confirm | None = None,
    on_stop: Stopped | None = None,
    in_thread: bool = False,
    blocked: Literal["return", "raise"] = "return",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
def hooked_tool(
    config: Any = None,
    *,
    name: str | None = None,
    confirm: Confirm | None = None,
    on_stop: Stopped | None = None,
    in_thread: bool = False,
    blocked: Literal["return", "raise"] = "return",
) -> Any:
    """Make a decorator that passes a function's calls through the tool hooks.

    Hooks see every parameter by name, with the defaults and what a partial has bound;
    of a method those after ``self`` or ``cls``. ``name`` is what hooks match, by
    default the function's. ``confirm`` asks a person where a hook wants one; without
    it ``hooksConfig.onAsk`` decides. ``on_stop`` is called with the reason when a hook
    stops the agent. With ``in_thread`` a plain function becomes an async tool that runs
    in a thread.

    A refused call returns the reason. With ``blocked="raise"`` it raises
    ``ToolBlockedError``, also where a hook withholds the result or what the function
    raised. Only a text gets what hooks add: any other value is returned as it is. An
    awaitable that a plain function returns is awaited before AfterTool.

    The hooks of a generator run when its first item is asked for, and when it ends, is
    closed or cancelled; what it yields is held back while an AfterTool hook listens.
    """
    if blocked not in ("return", "raise"):
        raise ValueError(f"blocked: expected 'return' or 'raise', got {blocked!r}")
    hint = "write @hooked_tool(config), with config = Config.load()"
    session = events_of(config, hint)

    def decorate(function: Any, has_receiver: bool | None = None) -> Any:
        if isinstance(function, classmethod | staticmethod):
            is_class_method = isinstance(function, classmethod)
            return type(function)(decorate(function.__func__, is_class_method))
        start = partial(
            HookedToolCall, session, name or name_of(function), on_stop=on_stop
        )
        hooked = _HookedFunction(function, start, confirm, has_receiver)
        hooked.raises = blocked == "raise"
        is_async = is_coroutine_function(hooked.function)
        if in_thread and not is_async and not hooked.is_generator:
            hooked.invoke = partial(asyncio.to_thread, hooked.function)
            is_async = True
        if hooked.is_generator:
            hooked.wrapper = _wrap_generator(function, hooked, session)
        else:
            hooked.wrapper = wrap(
                function, hooked.call, session, HOOKED, is_async=is_async
            )
        return hooked.wrapper

    return decorate


def _wrap_generator(
    function: Callable[..., Any], hooked: _HookedFunction, session: SessionEvents
) -> Callable[..., Any]:
    is_async = inspect.isasyncgenfunction(hooked.function)
    wait = Waiting(session, is_async=is_async)

    async def call_async(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        # Closing this one closes that one now, not when it is collected.
        async with aclosing(hooked.iterate(wait, *args, **kwargs)) as items:
            async for item in items:
                yield item

    def call(*args: Any, **kwargs: Any) -> Iterator[Any]:
        yield from iterate_to_end(hooked.iterate(wait, *args, **kwargs))

    return _marked(call_async if is_async else call, function, HOOKED)


class _HookedFunction:
    """One function with its hooks."""

    def __init__(
        self,
        given: Callable[..., Any],
        start: Callable[[dict[str, Any]], HookedToolCall],
        confirm: Confirm | None,
        has_receiver: bool | None,
    ) -> None:
        self.function, self.args, self.kwargs = _without_partials(given)
        self.invoke = self.function
        self.is_generator = inspect.isgeneratorfunction(
            self.function
        ) or inspect.isasyncgenfunction(self.function)
        self.wrapper: Callable[..., Any] | None = None
        self.raises = False
        self._signature = _parameters(self.function)
        self._first = next(iter(self._signature.parameters), "")
        self._start = start
        self._confirm = confirm
        self._has_receiver = has_receiver
        if has_receiver is None and _is_named_as_method(self.function, self._first):
            self._has_receiver = True

    async def call(self, wait: Waiting, /, *args: Any, **kwargs: Any) -> Any:
        hooked, args, kwargs = await self._begin(wait, args, kwargs)
        if hooked.refusal is None:
            return await self._finish(wait, hooked, self._invoke(wait, args, kwargs))
        reason = self._refused(hooked, hooked.refusal)
        if not wait.is_async:
            with suppress(RuntimeError):
                asyncio.get_running_loop()
                # A plain function may return an awaitable, so its caller may await.
                return _AwaitableText(reason)
        return reason

    async def _invoke(
        self, wait: Waiting, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return await wait.value(self.invoke(*args, **kwargs))

    async def _finish(
        self, wait: Waiting, hooked: HookedToolCall, work: Awaitable[Any]
    ) -> Any:
        """What a function gives, as its hooks allow."""
        outcome = None
        try:
            value = await work
        except Exception as error:
            outcome = await wait.hooks(hooked.finish(error))
            if not outcome.is_replaced:
                _warn_lost("an exception", outcome)
                raise
        if outcome is not None:  # out of the handler: our error must not show that one
            return self._refused(hooked, outcome.result)
        return await self._shown(wait, hooked, value)

    async def _shown(self, wait: Waiting, hooked: HookedToolCall, value: Any) -> Any:
        if isinstance(value, Future):
            if not wait.is_async:
                return self._finished_later(wait, hooked, value)
            value = asyncio.wrap_future(value)
        if isawaitable(value) and not isinstance(value, _AwaitableText):
            # The function has not run yet: its result comes later.
            if wait.is_async:
                return await self._finish(wait, hooked, value)
            later = self._finish(Waiting(wait.session, is_async=True), hooked, value)
            is_running = isinstance(value, asyncio.Future)
            return asyncio.ensure_future(later) if is_running else later
        is_iterator = isinstance(value, Iterator | AsyncIterator)
        if isinstance(value, Generator | AsyncGenerator) or (
            is_iterator
            # One with methods of its own, such as a cursor or a file, has other uses.
            and {name for name in dir(type(value)) if name[0] != "_"} <= _ITERTOOLS
            and await wait.hooks(wait.session.has_hooks(HookEventName.AfterTool))
        ):
            wait = Waiting(wait.session, is_async=isinstance(value, AsyncIterator))
            items = self._items(wait, hooked, wait.items(value))
            return items if wait.is_async else iterate_to_end(items)
        outcome = await wait.hooks(hooked.finish(as_result(value)))
        if outcome.is_replaced:
            return self._refused(hooked, outcome.result)
        if isinstance(value, ToolResult):
            return outcome.result
        if isinstance(value, str) and outcome.additions:
            return outcome.text
        _warn_lost("a value of another type than text", outcome)
        return value

    def _finished_later(
        self, wait: Waiting, hooked: HookedToolCall, running: Future[Any]
    ) -> Future[Any]:
        """A future with what hooks leave of the result of another."""

        async def result() -> Any:
            return running.result()

        # Neither the caller nor the thread that works for it has to wait for hooks.
        pool = ThreadPoolExecutor(1)
        later = pool.submit(run_to_end, self._finish(wait, hooked, result()))
        pool.shutdown(wait=False)
        return later

    async def iterate(
        self, wait: Waiting, /, *args: Any, **kwargs: Any
    ) -> AsyncGenerator[Any, None]:
        """The items of a generator, as its hooks allow."""
        hooked, args, kwargs = await self._begin(wait, args, kwargs)
        if hooked.refusal is not None:
            yield self._refused(hooked, hooked.refusal)
            return
        items = wait.items(self.invoke(*args, **kwargs))
        async with aclosing(self._items(wait, hooked, items)) as seen:
            async for item in seen:
                yield item

    async def _items(
        self, wait: Waiting, hooked: HookedToolCall, items: AsyncGenerator[Any, None]
    ) -> AsyncGenerator[Any, None]:
        held = await wait.hooks(wait.session.has_hooks(HookEventName.AfterTool))
        made: list[Any] = []
        outcome = None
        try:
            async for item in items:
                made.append(item)
                if not held:
                    yield item
        except Exception as error:
            outcome = await wait.hooks(hooked.finish(_ended_early(error, made)))
            if not outcome.is_replaced:
                raise
        except BaseException as error:  # closed or cancelled
            await wait.last_hooks(hooked.finish(_ended_early(error, made)))
            raise
        finally:
            await items.aclose()
        if outcome is None:
            outcome = await wait.hooks(hooked.finish(made))
        if outcome.is_replaced:
            yield self._refused(hooked, outcome.result)
            return
        left = made if held else []
        if all(isinstance(item, str) for item in made):
            left = [*left, *outcome.additions]
        else:
            _warn_lost("a stream", outcome)
        for item in left:
            yield item

    async def _begin(
        self, wait: Waiting, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[HookedToolCall, tuple[Any, ...], dict[str, Any]]:
        args, kwargs = (*self.args, *args), {**self.kwargs, **kwargs}
        try:
            tool_input = input_of(self._signature, args, kwargs)
        except TypeError as error:
            raise TypeError(f"{name_of(self.function)}(): {error}") from None
        receiver = self._take_receiver(tool_input)
        hooked = self._start(tool_input)
        await wait.hooks(hooked.begin(self._confirm))
        if hooked.refused:
            return hooked, (), {}
        tool_input = {**hooked.tool_input, **receiver}
        try:
            args, kwargs = arguments_of(self._signature, tool_input)
            self._signature.bind(*args, **kwargs)
        except (TypeError, ValueError) as error:
            problem = "Not run: a hook changed the input so that it does not fit"
            hooked.refuse(refused_result(f"{problem} {hooked.tool_name}(): {error}"))
        return hooked, args, kwargs

    def _refused(self, hooked: HookedToolCall, refusal: ToolResult) -> Any:
        if self.raises:
            raise ToolBlockedError(hooked.tool_name, refusal.text)
        return refusal.llm_content

    def _take_receiver(self, tool_input: dict[str, Any]) -> dict[str, Any]:
        """Take ``self`` or ``cls`` out of an input, whatever its parameter's name."""
        if self._first not in tool_input or self._has_receiver is False:
            return {}
        value = tool_input[self._first]
        if self._has_receiver or _is_method_of(value, self.wrapper):
            return {self._first: tool_input.pop(self._first)}
        return {}


class _AwaitableText(str):
    """A text for plain callers that is the same when it is awaited."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, str]:
        yield from ()  # makes it a generator
        return str(self)


def _parameters(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return signature_of(function)
    except ValueError:  # some of the interpreter's own have none
        hint = "decorate a function that calls it"
        problem = f"{name_of(function)} does not say what its parameters are"
        raise TypeError(f"{problem}: {hint}") from None


def _ended_early(error: BaseException, made: list[Any]) -> ToolResult:
    """What a generator gave before it raised, was cancelled or closed."""
    if isinstance(error, GeneratorExit):
        return as_result(made)
    shown = failed(error)
    return structs.replace(shown, llm_content=[*made, shown.llm_content])


def _warn_lost(what: str, outcome: ToolOutcome) -> None:
    if outcome.additions:
        logger.warning("%s cannot carry what hooks add: %s", what, outcome.additions)


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
