"""``hooked_tool``: a function, method or generator as a tool that obeys hooks."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Generator,
    Iterator,
)
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing, suppress
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from msgspec import structs

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
from .waiting import Waiting, iterate_to_end, run_to_end, wrap

if TYPE_CHECKING:
    from .decorator_types import (
        AddsReason,
        AddsReasonInThread,
        KeepsType,
        KeepsTypeInThread,
    )

HOOKED = "__hookline_hooked__"
"""Marks a function whose calls pass the tool hooks."""


class ToolOptions(TypedDict, total=False):
    """The options of ``hooked_tool`` that do not change the type of a function."""

    name: str | None
    hide: Collection[str]
    confirm: Confirm | None
    on_stop: Callable[[str], None] | None


@overload
def hooked_tool(
    config: ConfigOrEvents,
    *,
    in_thread: Literal[False] = False,
    blocked: Literal["return"] = "return",
    **options: Unpack[ToolOptions],
) -> AddsReason: ...
@overload
def hooked_tool(
    config: ConfigOrEvents,
    *,
    in_thread: Literal[False] = False,
    blocked: Literal["raise"],
    **options: Unpack[ToolOptions],
) -> KeepsType: ...
@overload
def hooked_tool(
    config: ConfigOrEvents,
    *,
    in_thread: Literal[True],
    blocked: Literal["return"] = "return",
    **options: Unpack[ToolOptions],
) -> AddsReasonInThread: ...
@overload
def hooked_tool(
    config: ConfigOrEvents,
    *,
    in_thread: Literal[True],
    blocked: Literal["raise"],
    **options: Unpack[ToolOptions],
) -> KeepsTypeInThread: ...
@overload
def hooked_tool(
    config: ConfigOrEvents,
    *,
    in_thread: bool = False,
    blocked: Literal["return", "raise"] = "return",
    **options: Unpack[ToolOptions],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
def hooked_tool(
    config: Any = None,
    *,
    name: str | None = None,
    hide: Collection[str] = (),
    confirm: Confirm | None = None,
    on_stop: Callable[[str], None] | None = None,
    in_thread: bool = False,
    blocked: Literal["return", "raise"] = "return",
) -> Any:
    """Make a decorator that passes a function's calls through the tool hooks.

    Hooks see every parameter by name, with the defaults and what a partial has bound;
    of a method those after ``self`` or ``cls``, and none of those in ``hide``. ``name``
    is what hooks match, by default the function's. ``confirm`` asks a person where a
    hook wants one; without it ``hooksConfig.onAsk`` decides. ``on_stop`` is called with
    the reason when a hook stops the agent. With ``in_thread`` a plain function becomes
    an async tool that runs in a thread.

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
        hooked = _HookedFunction(
            function,
            session,
            tool_name=name or name_of(function),
            hidden_names=frozenset([hide] if isinstance(hide, str) else hide),
            has_receiver=has_receiver,
            in_thread=in_thread,
        )
        hooked.confirm, hooked.on_stop = confirm, on_stop
        hooked.raises = blocked == "raise"
        return hooked.wrapper

    return decorate


class _HookedFunction:
    """One function with its hooks; ``wrapper`` takes its place."""

    confirm: Confirm | None = None
    on_stop: Callable[[str], None] | None = None
    raises = False

    def __init__(
        self,
        function: Any,
        session: SessionEvents,
        *,
        tool_name: str,
        hidden_names: frozenset[str],
        has_receiver: bool | None,
        in_thread: bool,
    ) -> None:
        original = function
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        while isinstance(function, partial):
            self._args = (*function.args, *self._args)
            self._kwargs = {**function.keywords, **self._kwargs}
            function = function.func
        self._function = self._invoke = function
        self._session, self._tool_name = session, tool_name
        try:
            self._signature = signature_of(function)
        except ValueError:  # some of the interpreter's own have none
            problem = f"{name_of(function)} does not say what its parameters are"
            hint = "decorate a function that calls it"
            raise TypeError(f"{problem}: {hint}") from None
        self._first = next(iter(self._signature.parameters), "")
        if inspect.isfunction(function) and self._first in {"self", "cls"}:
            scope = function.__qualname__.rpartition(".")[0]
            if has_receiver is None and scope and not scope.endswith("<locals>"):
                has_receiver = True
        self._hidden_names = hidden_names | ({self._first} if has_receiver else set())
        # Of other functions the value of the first parameter tells.
        self._may_be_method = has_receiver is None
        work: Callable[..., Any] = self.iterate
        is_async = inspect.isasyncgenfunction(function)
        if not is_async and not inspect.isgeneratorfunction(function):
            work, is_async = self.call, is_coroutine_function(function)
            if in_thread and not is_async:
                self._invoke = partial(asyncio.to_thread, function)
                is_async = True
        self.wrapper = wrap(original, work, session, HOOKED, is_async=is_async)

    async def call(self, wait: Waiting, /, *args: Any, **kwargs: Any) -> Any:
        """Call the function, as its hooks allow."""
        call, args, kwargs = await self._begin(wait, args, kwargs)
        if call.refusal is None:
            work = self._value(wait, args, kwargs)
            return await self._finish(wait, call, work)
        reason = self._refused(call, call.refusal)
        if not wait.is_async:
            with suppress(RuntimeError):
                asyncio.get_running_loop()
                # A plain function may return an awaitable, so its caller may await.
                return _AwaitableText(reason)
        return reason

    async def iterate(
        self, wait: Waiting, /, *args: Any, **kwargs: Any
    ) -> AsyncGenerator[Any, None]:
        """The items of a generator, as its hooks allow."""
        call, args, kwargs = await self._begin(wait, args, kwargs)
        if call.refusal is not None:
            yield self._refused(call, call.refusal)
            return
        generator = self._invoke(*args, **kwargs)
        async with aclosing(self._items(wait, call, generator)) as items:
            async for item in items:
                yield item

    async def _begin(
        self, wait: Waiting, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[HookedToolCall, tuple[Any, ...], dict[str, Any]]:
        """Ask the hooks; the call, and the arguments to run the function with."""
        args, kwargs = (*self._args, *args), {**self._kwargs, **kwargs}
        try:
            tool_input = input_of(self._signature, args, kwargs)
        except TypeError as error:
            raise TypeError(f"{name_of(self._function)}(): {error}") from None
        names = self._hidden_names
        if self._may_be_method and self._receives(tool_input.get(self._first)):
            names |= {self._first}
        hidden = {name: tool_input.pop(name) for name in names & tool_input.keys()}
        call = HookedToolCall(
            self._session, self._tool_name, tool_input, on_stop=self.on_stop
        )
        await wait.hooks(call.begin(self.confirm))
        if call.refused:
            return call, (), {}
        for hidden_name in hidden:
            call.tool_input.pop(hidden_name, None)  # no hook has seen what it is
        try:
            args, kwargs = arguments_of(self._signature, {**call.tool_input, **hidden})
            self._signature.bind(*args, **kwargs)
        except (TypeError, ValueError) as error:
            problem = "Not run: a hook changed the input so that it does not fit"
            call.refuse(refused_result(f"{problem} {self._tool_name}(): {error}"))
        return call, args, kwargs

    def _receives(self, value: Any) -> bool:
        """Whether the function is a method of a value, or of its class."""
        kind = value if isinstance(value, type) else type(value)
        for base in kind.__mro__:
            attribute = vars(base).get(self.wrapper.__name__)
            if not isinstance(attribute, staticmethod):
                attribute = getattr(attribute, "__func__", attribute)
                while inspect.isfunction(attribute):
                    if attribute is self.wrapper:
                        return True
                    attribute = getattr(attribute, "__wrapped__", None)
        return False

    async def _value(
        self, wait: Waiting, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return await wait.value(self._invoke(*args, **kwargs))

    async def _finish(
        self, wait: Waiting, call: HookedToolCall, work: Awaitable[Any]
    ) -> Any:
        """What a function gives or raises, as its hooks allow."""
        try:
            value = await work
        except Exception as error:
            outcome = await wait.hooks(call.finish(error))
            if not outcome.is_replaced:
                _warn_lost("an exception", outcome)
                raise
        else:
            return await self._show(wait, call, value)
        # Out of the handler: our error must not show that one.
        return self._refused(call, outcome.result)

    async def _show(self, wait: Waiting, call: HookedToolCall, value: Any) -> Any:
        """What a function returned, as its hooks allow; some values come later."""
        if isinstance(value, Future) and not wait.is_async:
            future = value

            async def result() -> Any:
                return future.result()

            # Neither the caller nor the thread that works for it waits for hooks.
            pool = ThreadPoolExecutor(1)
            later = pool.submit(run_to_end, self._finish(wait, call, result()))
            pool.shutdown(wait=False)
            return later
        if isinstance(value, Future):
            value = asyncio.wrap_future(value)
        if isawaitable(value) and not isinstance(value, _AwaitableText):
            if wait.is_async:
                return await self._finish(wait, call, value)
            coming = self._finish(Waiting(wait.session, is_async=True), call, value)
            is_running = isinstance(value, asyncio.Future)
            return asyncio.ensure_future(coming) if is_running else coming
        if isinstance(value, Generator | AsyncGenerator) or (
            isinstance(value, Iterator | AsyncIterator)
            # One with methods of its own, such as a cursor or a file, has other uses.
            and {n for n in dir(type(value)) if n[0] != "_"} <= {"from_iterable"}
            and await wait.hooks(wait.session.has_hooks(HookEventName.AfterTool))
        ):
            is_async = isinstance(value, AsyncIterator)
            items = self._items(Waiting(wait.session, is_async), call, value)
            return items if is_async else iterate_to_end(items)
        outcome = await wait.hooks(call.finish(as_result(value)))
        if outcome.is_replaced:
            return self._refused(call, outcome.result)
        if isinstance(value, ToolResult):
            return outcome.result
        if isinstance(value, str) and outcome.additions:
            return outcome.text
        _warn_lost("a value of another type than text", outcome)
        return value

    async def _items(
        self, wait: Waiting, call: HookedToolCall, iterator: Any
    ) -> AsyncGenerator[Any, None]:
        """The items of a generator or another iterator, as its hooks allow."""
        is_held = await wait.hooks(wait.session.has_hooks(HookEventName.AfterTool))
        source, items = wait.items(iterator), list[Any]()
        outcome = None
        try:
            async for item in source:
                items.append(item)
                if not is_held:
                    yield item
        except Exception as error:
            outcome = await wait.hooks(call.finish(_ended_early(error, items)))
            if not outcome.is_replaced:
                raise
        except BaseException as error:  # closed or cancelled
            await wait.last_hooks(call.finish(_ended_early(error, items)))
            raise
        finally:
            await source.aclose()
        if outcome is None:
            outcome = await wait.hooks(call.finish(items))
        if outcome.is_replaced:
            yield self._refused(call, outcome.result)
            return
        for item in items if is_held else ():
            yield item
        if not all(isinstance(item, str) for item in items):
            _warn_lost("a stream", outcome)
            return
        for addition in outcome.additions:
            yield addition

    def _refused(self, call: HookedToolCall, refusal: ToolResult) -> Any:
        if self.raises:
            raise ToolBlockedError(call.tool_name, refusal.text)
        return refusal.llm_content


class _AwaitableText(str):
    """A text for plain callers that is the same when it is awaited."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, str]:
        yield from ()  # makes it a generator
        return str(self)


def _ended_early(error: BaseException, items: list[Any]) -> ToolResult:
    """What a generator gave before it raised, was cancelled or closed."""
    if isinstance(error, GeneratorExit):
        return as_result(items)
    result = failed(error)
    return structs.replace(result, llm_content=[*items, result.llm_content])


def _warn_lost(carrier: str, outcome: ToolOutcome) -> None:
    if outcome.additions:
        message = "%s cannot carry what hooks add: %s"
        logger.warning(message, carrier, outcome.additions)
