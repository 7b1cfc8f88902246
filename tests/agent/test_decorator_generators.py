"""Generators as hooked tools, and refusals that raise (DESIGN, hooked_tool)."""

from __future__ import annotations

import asyncio
import gc
import logging
import pickle
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from hookline import Config, HookSystem, Settings
from hookline.adapters.claude_agent_sdk import hookline_hooks
from hookline.agent import Agent, ScriptedModel, hooked, hooked_tool
from hookline.errors import ToolBlockedError

from .scenes import recording_config

DENY = {"decision": "deny", "reason": "no"}


def specific(**fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": fields}


def test_a_generator_runs_with_the_changed_input_when_it_is_iterated() -> None:
    config, seen = recording_config(BeforeTool=specific(tool_input={"size": 2}))

    @hooked_tool(config)
    def count(size: int) -> Iterator[int]:
        yield from range(size)

    items = count(5)
    assert seen == []
    assert list(items) == [0, 1]
    asyncio.run(config.dispose())


def test_a_blocked_generator_yields_the_reason() -> None:
    config, _ = recording_config(BeforeTool=DENY)

    @hooked_tool(config)
    def lines() -> Iterator[str]:
        yield "must not run"

    assert list(lines()) == ["no"]
    asyncio.run(config.dispose())


async def test_an_async_generator_is_held_back_until_hooks_have_seen_it() -> None:
    said = {"reason": "secret", **specific(withholdResult=True)}
    config, seen = recording_config(AfterTool=said)

    @hooked_tool(config)
    async def lines() -> AsyncIterator[str]:
        yield "the"
        yield "key"

    async with config:
        assert [line async for line in lines()] == ["secret"]
    assert seen[0]["tool_response"]["llmContent"] == ["the", "key"]


async def test_items_pass_at_once_where_no_hook_waits_for_them() -> None:
    config, _ = recording_config(BeforeTool=None)
    made: list[int] = []

    @hooked_tool(config)
    async def numbers() -> AsyncIterator[int]:
        for at in range(3):
            made.append(at)
            yield at

    async with config:
        async for number in numbers():
            assert made[-1] == number
            break


async def test_a_failing_generator_is_shown_to_hooks_and_raises() -> None:
    config, seen = recording_config(AfterTool=None)

    @hooked_tool(config)
    async def lines() -> AsyncIterator[str]:
        yield "a"
        raise OSError("gone")

    async with config:
        with pytest.raises(OSError, match="gone"):
            _ = [line async for line in lines()]
    response = seen[0]["tool_response"]
    assert response["error"] == {"message": "OSError: gone"}
    assert response["llmContent"] == ["a", "Error: OSError: gone"]
    assert len(seen) == 1


class Registered:
    """An AfterTool hook that is registered while a generator runs, so nothing waits."""

    def __init__(self) -> None:
        self.config = Config("own", ".", Settings())
        self.system = HookSystem(self.config)
        self.responses: list[dict[str, Any]] = []
        self.told = asyncio.Event()

    def listen(self) -> None:
        self.system.on("AfterTool")(self._note)

    def _note(self, event: dict[str, Any]) -> None:
        self.responses.append(event["tool_response"])
        self.told.set()

    @property
    def contents(self) -> list[Any]:
        return [one["llmContent"] for one in self.responses]


def stop_by_break(items: Iterator[Any]) -> None:
    for _ in items:
        break


def stop_by_close(items: Any) -> None:
    next(items)
    items.close()


def stop_by_throw(items: Any) -> None:
    next(items)
    with pytest.raises(KeyError):
        items.throw(KeyError("x"))


@pytest.mark.parametrize("stop", [stop_by_break, stop_by_close, stop_by_throw])
def test_a_generator_that_is_stopped_early_is_shown_to_hooks_once(
    stop: Callable[[Any], None],
) -> None:
    """Issue 17: generators fire AfterTool when they end, also when they are left."""
    hooks = Registered()
    closed: list[int] = []

    @hooked_tool(hooks.config)
    def numbers() -> Iterator[int]:
        try:
            hooks.listen()
            yield 1
            yield 2
        finally:
            closed.append(1)

    stop(numbers())
    gc.collect()
    assert hooks.contents in ([[1]], [[1, "Error: KeyError: 'x'"]])
    assert closed == [1]
    asyncio.run(hooks.config.dispose())


@pytest.mark.parametrize("how", ["break", "aclose", "cancel", "collected"])
async def test_an_async_generator_that_is_stopped_early_is_shown_to_hooks_once(
    how: str,
) -> None:
    """Issue 17: break, close, cancellation, or nobody holds it any more."""
    hooks = Registered()
    waiting = asyncio.Event()

    @hooked_tool(hooks.config)
    async def numbers() -> AsyncGenerator[int, None]:
        hooks.listen()
        yield 1
        waiting.set()
        await asyncio.Event().wait()

    async def consume() -> None:
        async for _ in numbers():
            if how == "break":
                break

    async with hooks.config:
        if how == "aclose":
            items = numbers()
            await anext(items)
            await items.aclose()
        elif how == "collected":
            items = numbers()
            await anext(items)
            del items
        else:
            task = asyncio.create_task(consume())
            if how == "cancel":
                await waiting.wait()
                task.cancel()
            await asyncio.wait([task])
            assert task.cancelled() is (how == "cancel")
        gc.collect()
        await asyncio.wait_for(hooks.told.wait(), 30)
    expected = [1, "Error: CancelledError"] if how == "cancel" else [1]
    assert hooks.contents == [expected]


async def test_a_cancelled_generator_that_was_held_back_is_shown_to_hooks() -> None:
    config, seen = recording_config(AfterTool=None)
    waiting = asyncio.Event()

    @hooked_tool(config)
    async def lines() -> AsyncIterator[str]:
        yield "a"
        waiting.set()
        await asyncio.Event().wait()

    async def consume() -> list[str]:
        return [line async for line in lines()]

    async with config:
        task = asyncio.create_task(consume())
        await waiting.wait()
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()
    [event] = seen
    assert event["tool_response"]["llmContent"] == ["a", "Error: CancelledError"]


def test_a_generator_left_among_items_that_were_held_back_is_shown_once() -> None:
    config, seen = recording_config(AfterTool=None)

    @hooked_tool(config)
    def numbers() -> Iterator[int]:
        yield from range(3)

    assert next(numbers()) == 0
    gc.collect()
    assert [one["tool_response"]["llmContent"] for one in seen] == [[0, 1, 2]]
    numbers()  # never asked for an item: not called, and no hook fires
    gc.collect()
    assert len(seen) == 1
    asyncio.run(config.dispose())


async def test_a_refused_call_can_raise() -> None:
    config, _ = recording_config(BeforeTool=DENY)

    @hooked_tool(config, blocked="raise")
    async def write(path: str) -> str:
        raise AssertionError(path)

    @hooked_tool(config, blocked="raise")
    def read(path: str) -> str:
        raise AssertionError(path)

    async with config:
        with pytest.raises(ToolBlockedError, match="write: no") as caught:
            await write("a")
        with pytest.raises(ToolBlockedError, match="read: no"):
            read("a")
    assert (caught.value.tool_name, caught.value.reason) == ("write", "no")
    assert str(pickle.loads(pickle.dumps(caught.value))) == "write: no"


WITHHELD = {"reason": "secret", **specific(withholdResult=True)}
STOPS = {"continue": False, "stopReason": "enough"}


@pytest.mark.parametrize(
    ("said", "reason"), [(WITHHELD, "secret"), (STOPS, "enough")], ids=["held", "stop"]
)
async def test_a_withheld_result_raises_too(said: Any, reason: str) -> None:
    """0156: with ``blocked="raise"`` a function never returns another type."""
    config, _ = recording_config(AfterTool=said)
    stopped: list[str] = []
    tool = hooked_tool(config, blocked="raise", on_stop=stopped.append)

    @tool
    def size(path: str) -> int:
        return len(path)

    @tool
    async def numbers() -> AsyncIterator[int]:
        yield 1

    async with config:
        with pytest.raises(ToolBlockedError, match=reason):
            size("a")
        with pytest.raises(ToolBlockedError, match=reason):
            _ = [number async for number in numbers()]
    assert stopped == ([] if said is WITHHELD else ["enough", "enough"])


def test_only_a_text_gets_additions_where_the_type_is_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config, _ = recording_config(AfterTool=specific(additionalContext="more"))
    tool = hooked_tool(config, blocked="raise")

    @tool
    def text() -> str:
        return "text"

    assert text() == "text\n\nmore"
    with caplog.at_level(logging.WARNING):
        assert tool(lambda: [1])() == [1]
    assert "cannot carry what hooks add: ['more']" in caplog.text
    asyncio.run(config.dispose())


@pytest.mark.parametrize(
    ("given", "got"),
    [
        (print, "builtin_function_or_method 'print'"),
        (recording_config, "function 'recording_config'"),
        ("write_file", "str"),
        (None, "None"),
        (Settings(), "Settings"),
        ({"hooks": {}}, "dict"),
    ],
)
def test_a_forgotten_config_says_what_to_write(given: Any, got: str) -> None:
    """Issue 17: ``@hooked_tool`` without ``(config)``, and adapters without one."""
    tool: Any = hooked_tool
    wrong = rf"expected a Config or a session, got {got}: "
    with pytest.raises(TypeError, match=rf"{wrong}write @hooked_tool\(config\)"):
        tool(given)
    with pytest.raises(TypeError, match=rf"{wrong}pass Config.load\(\)"):
        hookline_hooks(given)
    with pytest.raises(TypeError, match=wrong):
        Agent(given, ScriptedModel([]))


def test_a_config_that_was_left_out_is_named() -> None:
    with pytest.raises(TypeError, match=r"write @hooked_tool\(config\)"):
        hooked_tool()  # type: ignore[call-overload] # the mistake
    with pytest.raises(TypeError, match="'config'"):
        hooked(object())  # type: ignore[call-arg] # the mistake


def test_another_word_for_blocked_is_a_mistake() -> None:
    config, _ = recording_config()
    with pytest.raises(ValueError, match="expected 'return' or 'raise', got 'never'"):
        hooked_tool(config, blocked="never")  # type: ignore[call-overload] # the mistake
