"""Functions of every kind as hooked tools, and what a call of one came to."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from inspect import isawaitable
from typing import Any

from hookline.agent import ToolResult, hooked_tool

from .recorded_events import RecordedHooks


class Work:
    """What the functions do: note the call, and give or raise what a row says."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.calls: list[list[Any]] = []
        self._row = row

    def __call__(self, path: Any, size: int = 1) -> Any:
        self.calls.append([path, size])
        if "fails" in self._row:
            raise ValueError(self._row["fails"])
        return self._row.get("result", f"wrote {path} {size}")


Tool = Callable[[Callable[..., Any]], Any]


class Later:
    """An awaitable of somebody's own."""

    def __init__(self, work: Work, *given: Any) -> None:
        self._work, self._given = work, given

    def __await__(self) -> Any:
        return _later(self._work, *self._given).__await__()


class Items:
    """An async iterator that is no generator."""

    def __init__(self, work: Work, *given: Any) -> None:
        self._left = _items(work, *given)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        for item in self._left:
            return item
        raise StopAsyncIteration


async def _later(work: Work, path: Any, size: int = 1) -> Any:
    await asyncio.sleep(0)
    return work(path, size)


def _items(work: Work, path: Any, size: int = 1) -> Iterator[Any]:
    yield "first"
    yield work(path, size)


async def _async_items(work: Work, path: Any, size: int = 1) -> AsyncIterator[Any]:
    for item in _items(work, path, size):
        yield item


def _from(make: Callable[..., Any]) -> Callable[[Tool, Work], Any]:
    """A plain function that gives what another one makes."""

    def kind(tool: Tool, work: Work) -> Any:
        def write(path: Any, size: int = 1) -> Any:
            return make(work, path, size)

        return tool(write)

    return kind


def _async_function(tool: Tool, work: Work) -> Any:
    @tool
    async def write(path: Any, size: int = 1) -> Any:
        return await _later(work, path, size)

    return write


def _generator(tool: Tool, work: Work) -> Any:
    @tool
    def write(path: Any, size: int = 1) -> Iterator[Any]:
        yield from _items(work, path, size)

    return write


def _async_generator(tool: Tool, work: Work) -> Any:
    @tool
    async def write(path: Any, size: int = 1) -> AsyncIterator[Any]:
        async for item in _async_items(work, path, size):
            yield item

    return write


def _coroutine_of_async_items(tool: Tool, work: Work) -> Any:
    @tool
    async def write(path: Any, size: int = 1) -> Any:
        return _async_items(work, path, size)

    return write


def _partial(tool: Tool, work: Work) -> Any:
    def write(extra: str, path: Any, size: int = 1) -> Any:
        return work(path, size)

    return tool(functools.partial(functools.partial(write, "bound")))


def _wraps(tool: Tool, work: Work) -> Any:
    async def write(path: Any, size: int = 1) -> Any:
        return await _later(work, path, size)

    @functools.wraps(write)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return write(*args, **kwargs)

    return tool(wrapper)


def _callable_object(tool: Tool, work: Work) -> Any:
    class Writer:
        async def __call__(self, path: Any, size: int = 1) -> Any:
            return await _later(work, path, size)

    return tool(Writer())


def _method(name: str) -> Callable[[Tool, Work], Any]:
    def kind(tool: Tool, work: Work) -> Any:
        class Files:
            @tool
            def method(this, path: Any, size: int = 1) -> Any:  # noqa: N805 - any name
                assert isinstance(this, Files)
                return work(path, size)

            @tool
            async def async_method(self, path: Any, size: int = 1) -> Any:
                assert isinstance(self, Files)
                return await _later(work, path, size)

            @tool
            def generator_method(self, path: Any, size: int = 1) -> Iterator[Any]:
                yield from _items(work, path, size)

            @classmethod
            @tool
            def class_method(cls, path: Any, size: int = 1) -> Any:
                assert cls is Files
                return work(path, size)

            @tool
            @classmethod
            def class_method_inside(cls, path: Any, size: int = 1) -> Any:
                assert cls is Files
                return work(path, size)

            @staticmethod
            @tool
            def static_method(path: Any, size: int = 1) -> Any:
                return work(path, size)

            @tool
            @staticmethod
            def static_method_inside(path: Any, size: int = 1) -> Any:
                return work(path, size)

        return getattr(Files(), name.replace(" ", "_"))

    return kind


def _in_pool(work: Work, path: Any, size: int) -> Future[Any]:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work, path, size)


def _task(work: Work, path: Any, size: int) -> asyncio.Task[Any]:
    return asyncio.create_task(_later(work, path, size))


def _nested(work: Work, path: Any, size: int) -> Any:
    return asyncio.sleep(0, _later(work, path, size))


def _tool_result(work: Work, path: Any, size: int) -> ToolResult:
    return ToolResult(llm_content=work(path, size))


_METHODS = (
    *("method", "async method", "generator method", "class method"),
    *("class method inside", "static method", "static method inside"),
)
KINDS: dict[str, Callable[[Tool, Work], Any]] = {
    "function": _from(lambda work, *given: work(*given)),
    "async function": _async_function,
    "generator": _generator,
    "async generator": _async_generator,
    **{name: _method(name) for name in _METHODS},
    "partial": _partial,
    "callable object": _callable_object,
    "function around a coroutine": _from(_later),
    "functools.wraps of a coroutine": _wraps,
    "function of an awaitable": _from(Later),
    "function of an awaitable of an awaitable": _from(_nested),
    "function of a task": _from(_task),
    "function of a future": _from(_in_pool),
    "function of a generator": _from(_items),
    "function of an iterator": _from(lambda *given: map(str, _items(*given))),
    "function of an async generator": _from(_async_items),
    "function of an async iterator": _from(Items),
    "coroutine of an async generator": _coroutine_of_async_items,
    "function of a ToolResult": _from(_tool_result),
    "function in a thread": _from(lambda work, *given: work(*given)),
    "function around a coroutine in a thread": _from(_later),
    "function of a future in a thread": _from(_in_pool),
}
"""By name: makes a tool of a function of this kind that does some work."""


async def called(kind: str, hooks: RecordedHooks, row: dict[str, Any]) -> Any:
    """Call a tool as a row says: what came back, what ran, and what stopped."""
    work, stops = Work(row), list[str]()
    options = {"on_stop": stops.append, **row.get("options", {})}
    if kind.endswith("in a thread"):
        options["in_thread"] = True
    tool: Any = hooked_tool(hooks.config, name="write", **options)
    outcome: dict[str, Any] = {}
    try:
        value = KINDS[kind](tool, work)(*row.get("args", ["a"]), **row.get("more", {}))
        if "coroutine" in kind or "awaitable" in kind or "task" in kind:
            value = await value  # a refusal can be awaited too
        outcome |= await _settled(value)
    except Exception as error:  # noqa: BLE001 - which one, the row says
        outcome["raised"] = f"{type(error).__name__}: {error}"
        if error.__context__ is not None:
            outcome["context"] = repr(error.__context__)
    return {**outcome, "ran": work.calls, "stops": stops}


async def _settled(value: Any) -> dict[str, Any]:
    if isinstance(value, Future):
        value = asyncio.wrap_future(value)
    if isawaitable(value):
        return await _settled(await value)
    if hasattr(value, "__anext__"):
        return {"yielded": [item async for item in value]}
    if hasattr(value, "__next__"):
        return {"yielded": list(value)}
    if isinstance(value, ToolResult):
        return {"result": [value.llm_content, value.text]}
    return {"returned": value}
