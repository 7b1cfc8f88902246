"""Results of hooked functions: awaitables, exceptions, values that are not text."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from sqlite3 import connect
from typing import Any

import pytest

from hookline.agent import (
    Agent,
    ScriptedModel,
    ScriptedReply,
    ToolResult,
    execute_tool_with_hooks,
    hooked_tool,
)
from hookline.errors import ToolBlockedError

from .scenes import recording_config

WITHHELD = {"reason": "secret", "hookSpecificOutput": {"withholdResult": True}}
STOPS = {"continue": False, "stopReason": "enough"}
NOTICE = "[System] A hook changed the tool's input: size"


async def fetch(size: int) -> str:
    await asyncio.sleep(0)
    return "x" * size


def behind_plain(function: Callable[..., Any]) -> Callable[..., Any]:
    def inner(size: int) -> Any:
        return function(size)

    return inner


def behind_wraps(function: Callable[..., Any]) -> Callable[..., Any]:
    return functools.wraps(function)(behind_plain(function))


class Fetcher:
    async def __call__(self, size: int) -> str:
        return await fetch(size)


class Later:
    """An awaitable of somebody's own."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __await__(self) -> Any:
        return fetch(self._size).__await__()


def task(size: int) -> asyncio.Task[str]:
    return asyncio.create_task(fetch(size))


AWAITABLES = {
    "plain decorator": behind_plain(fetch),
    "functools.wraps": behind_wraps(fetch),
    "async __call__": Fetcher(),
    "partial": functools.partial(behind_plain(fetch)),
    "task": task,
    "custom awaitable": behind_plain(Later),
    "awaitable of an awaitable": behind_plain(
        lambda size: asyncio.sleep(0, fetch(size))
    ),
}


@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize("kind", AWAITABLES)
async def test_an_awaitable_of_a_plain_function_is_shown_when_it_has_run(
    kind: str, in_thread: bool
) -> None:
    """protocol.md#callers: AfterTool sees the result, and the caller what it left."""
    if in_thread and kind == "task":
        pytest.skip("there is no loop in a thread")
    config, seen = recording_config(AfterTool=None)
    withholding, _ = recording_config(AfterTool=WITHHELD)
    function: Any = AWAITABLES[kind]
    async with config, withholding:
        given = hooked_tool(config, in_thread=in_thread)(function)(2)
        assert seen == []
        assert await given == "xx"
        assert [event["tool_response"]["llmContent"] for event in seen] == ["xx"]
        assert await hooked_tool(withholding, in_thread=in_thread)(function)(2) == (
            "secret"
        )


@pytest.mark.parametrize("kind", AWAITABLES)
async def test_a_refused_call_of_a_plain_function_may_be_awaited(kind: str) -> None:
    config, _ = recording_config(BeforeTool={"decision": "deny", "reason": "no"})
    function: Any = AWAITABLES[kind]
    async with config:
        assert await hooked_tool(config)(function)(2) == "no"
        with pytest.raises(ToolBlockedError, match="no"):
            await hooked_tool(config, blocked="raise")(function)(2)


async def test_a_task_of_a_plain_function_stays_one() -> None:
    config, _ = recording_config(AfterTool=None)
    async with config:
        made: Any = hooked_tool(config)(task)(1)
        assert isinstance(made, asyncio.Task)
        assert await made == "x"


async def test_a_generator_that_a_plain_function_returns_is_held_back() -> None:
    """protocol.md#callers: nothing reaches the caller before AfterTool."""
    config, seen = recording_config(AfterTool=WITHHELD)

    def numbers(size: int) -> Iterator[int]:
        yield from range(size)

    async def async_numbers(size: int) -> AsyncIterator[int]:
        for number in range(size):
            yield number

    async def later(size: int) -> AsyncIterator[int]:
        return async_numbers(size)

    tool: Any = hooked_tool(config)
    async with config:
        assert list(tool(behind_plain(numbers))(2)) == ["secret"]
        items = tool(behind_plain(async_numbers))(2)
        assert [item async for item in items] == ["secret"]
        assert [item async for item in await tool(later)(2)] == ["secret"]
    assert [event["tool_response"]["llmContent"] for event in seen] == [[0, 1]] * 3


class Numbers:
    """An async iterator that is no generator."""

    def __init__(self, size: int) -> None:
        self._left = iter(range(size))

    def __aiter__(self) -> AsyncIterator[int]:
        return self

    async def __anext__(self) -> int:
        for number in self._left:
            return number
        raise StopAsyncIteration


def mapped(size: int) -> Iterator[int]:
    return map(int, range(size))


async def test_an_iterator_that_a_function_returns_is_held_back() -> None:
    """protocol.md#callers: nothing reaches the caller before AfterTool."""
    config, seen = recording_config(AfterTool=WITHHELD)
    tool: Any = hooked_tool(config)
    async with config:
        assert list(tool(mapped)(2)) == ["secret"]
        items = tool(behind_plain(Numbers))(2)
        assert [item async for item in items] == ["secret"]
    assert [event["tool_response"]["llmContent"] for event in seen] == [[0, 1]] * 2


async def test_an_iterator_stays_as_it_is_where_no_hook_sees_results() -> None:
    config, _ = recording_config(BeforeTool=None)
    numbers = iter([1])
    async with config:
        tool: Any = hooked_tool(config)
        assert tool(behind_plain(lambda _: numbers))(1) is numbers


async def test_an_iterator_with_other_uses_stays_as_it_is(tmp_path: Path) -> None:
    config, seen = recording_config(AfterTool=None)
    (tmp_path / "a").write_text("text")
    tool: Any = hooked_tool(config)
    async with config:
        with (tmp_path / "a").open() as file, closing(connect(":memory:")) as database:
            for value in (file, database.execute("SELECT 1")):
                assert tool(behind_plain(lambda _, kept=value: kept))(1) is value
    assert len(seen) == 2


@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("output", [None, WITHHELD, STOPS], ids=str)
async def test_a_future_of_a_thread_is_shown_when_it_has_run(
    output: Any, raises: bool, in_thread: bool
) -> None:
    config, seen = recording_config(AfterTool=output)
    start, stops = threading.Event(), list[str]()

    def work(size: int) -> str:
        start.wait()
        return broken(size) if raises else "x" * size

    async with config:
        with ThreadPoolExecutor() as pool:
            decorate: Any = hooked_tool(
                config, in_thread=in_thread, on_stop=stops.append
            )
            given = decorate(behind_plain(lambda size: pool.submit(work, size)))(2)
            assert seen == []
            start.set()
            given = given if in_thread else asyncio.wrap_future(given)
            if raises and output is None:
                with pytest.raises(ValueError, match="token 2"):
                    await given
            else:
                left = {str(None): "xx", str(WITHHELD): "secret", str(STOPS): "enough"}
                assert await given == left[str(output)]
    shown = "Error: ValueError: token 2" if raises else "xx"
    assert [event["tool_response"]["llmContent"] for event in seen] == [shown]
    assert stops == (["enough"] if output is STOPS else [])


def broken(size: int) -> str:
    raise ValueError(f"token {size}")


async def broken_async(size: int) -> str:
    return broken(size)


def broken_items(size: int) -> Iterator[str]:
    yield "x"
    broken(size)


@pytest.mark.parametrize("blocked", ["return", "raise"])
@pytest.mark.parametrize(
    ("said", "reason"), [(WITHHELD, "secret"), (STOPS, "enough")], ids=["held", "stop"]
)
@pytest.mark.parametrize(
    "kind", [broken, broken_async, behind_plain(broken_async), broken_items]
)
async def test_what_a_function_raised_is_withheld_or_stops_the_agent(
    kind: Any, said: Any, reason: str, blocked: Any
) -> None:
    """protocol.md#callers: as execute_tool_with_hooks does for a tool that raises."""
    config, _ = recording_config(AfterTool=said)
    stopped: list[str] = []

    async def call() -> Any:
        made: Any = hooked_tool(config, blocked=blocked, on_stop=stopped.append)(kind)
        value = made(7)
        if kind is broken_items:
            [value] = value
        return await value if isinstance(value, Awaitable) else value

    async with config:
        if blocked == "return":
            assert await call() == reason
        else:
            with pytest.raises(ToolBlockedError, match=reason) as caught:
                await call()
            assert caught.value.__context__ is None
        executed = await execute_tool_with_hooks(config, "t", {}, lambda _: broken(7))
    assert executed.text == reason
    assert stopped == (["enough"] if said is STOPS else [])


VALUES = [[0, 1], {"size": 1}, 5, None, True, 1.5, (1, "a"), {"x"}, b"x"]


@pytest.mark.parametrize("value", VALUES, ids=repr)
async def test_a_notice_leaves_a_value_that_is_not_text_alone(
    value: object, caplog: pytest.LogCaptureFixture
) -> None:
    """protocol.md#callers: the notice is for the model, not for a program's value."""
    change = {"hookSpecificOutput": {"tool_input": {"size": 2}}}
    config, _ = recording_config(BeforeTool=change)
    async with config:
        for blocked in ("return", "raise"):
            caplog.clear()
            with caplog.at_level(logging.WARNING):
                made = hooked_tool(config, blocked=blocked)
                assert made(lambda size: value)(1) is value
            assert NOTICE in caplog.text
        result = await execute_tool_with_hooks(
            config, "t", {"size": 1}, lambda _: value
        )
        assert result.llm_content is value
        assert result.text.endswith(NOTICE)
        call = await config.session("s").begin_tool("t", {"size": 1})
        outcome = await call.finish(value)
        assert outcome.content is outcome.result.llm_content is value
        assert outcome.additions == [NOTICE]


async def test_a_notice_reaches_the_model_beside_a_value_that_is_not_text() -> None:
    change = {"hookSpecificOutput": {"tool_input": {"size": 2}}}
    config, _ = recording_config(BeforeTool=change)

    def rows(size: int) -> list[int]:
        return list(range(size))

    async with config:
        reply = ScriptedReply(calls=(("rows", {"size": 5}),))
        model = ScriptedModel([reply, "done"])
        await Agent(config, model, tools=[rows]).run("go")
    [answer] = model.requests[-1]["turns"][-1].answers
    assert answer.result.llm_content == [0, 1]
    assert answer.result.text == f"[0,1]\n\n{NOTICE}"


async def test_a_tool_result_of_a_function_stays_one() -> None:
    config, _ = recording_config(AfterTool={"systemMessage": "mind"})
    async with config:
        made = hooked_tool(config)(lambda: ToolResult(llm_content="a"))()
    assert isinstance(made, ToolResult)
    assert made.llm_content == "a\n\n[System] mind"


class Files:
    def write(self, path: str, size: int = 1) -> str:
        raise AssertionError(path)

    async def write_async(self, path: str, size: int = 1) -> str:
        raise AssertionError(path)

    def write_items(self, path: str, size: int = 1) -> Iterator[str]:
        yield self.write(path)


@pytest.mark.parametrize("blocked", ["return", "raise"])
@pytest.mark.parametrize("kind", [Files.write, Files.write_async, Files.write_items])
@pytest.mark.parametrize(
    ("change", "problem"),
    [({"extra": 1}, "unexpected keyword argument 'extra'"), (None, "'path'")],
    ids=["unknown", "removed"],
)
async def test_a_change_that_does_not_fit_the_function_refuses_the_call(
    change: Any, problem: str, kind: Any, blocked: Any
) -> None:
    """protocol.md#callers: a hook's mistake is a reason, not an error of the tool's."""
    specific = {"tool_input": change or {}, "replacesToolInput": change is None}
    config, seen = recording_config(
        BeforeTool={"hookSpecificOutput": specific}, AfterTool=None
    )

    async def call() -> Any:
        value = hooked_tool(config, blocked=blocked)(kind)(Files(), "a")
        if kind is Files.write_items:
            [value] = value
        return await value if isinstance(value, Awaitable) else value

    async with config:
        if blocked == "return":
            assert problem in await call()
        else:
            with pytest.raises(ToolBlockedError, match=problem):
                await call()
    assert {event["hook_event_name"] for event in seen} == {"BeforeTool"}
