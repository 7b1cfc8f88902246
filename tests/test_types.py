"""The public types, for hook authors and for whoever builds agents.

mypy reads this file in strict mode: ``assert_type`` says what an editor shows, and each
ignored error is one that it must report.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import Any, assert_type, get_type_hints

import pytest

import hookline
from hookline import (
    Config,
    HookEventName,
    HookSystem,
    ProcessedHookResult,
    Settings,
    script,
    types,
)
from hookline.agent import ToolOutcome, hooked_tool
from hookline.errors import InvalidHookError
from hookline.protocol.outputs import read_output

EVENT: types.BeforeToolInput = {
    "session_id": "s",
    "cwd": "/w",
    "hook_event_name": "BeforeTool",
    "timestamp": "2026-01-01T00:00:00.000Z",
    "transcript_path": "",
    "tool_name": "write_file",
    "tool_input": {"path": ".env"},
}


def test_output_type_has_the_fields_that_are_read() -> None:
    """Each field is known to the reader, none is kept as unknown.

    protocol.md#process
    """
    output: types.HookOutput = {
        "decision": "allow",
        "reason": "r",
        "continue": True,
        "stopReason": "s",
        "suppressOutput": False,
        "systemMessage": "m",
        "hookSpecificOutput": {"toolConfig": {"mode": "ANY"}},
    }
    assert set(output) == set(get_type_hints(types.HookOutput))
    read, warnings = read_output(output, HookEventName.BeforeToolSelection)
    assert (read.extra, warnings) == ({}, ())


async def test_hooks_are_typed_by_their_event() -> None:
    """Typed events and outputs; a misspelt event is an error in editors."""
    async with HookSystem(Config()) as hooks:

        @hooks.on("BeforeTool", matcher="write_.*", on_error="block", mode="observe")
        def typed(event: types.BeforeToolInput) -> types.HookOutput | None:
            assert_type(event["tool_input"], dict[str, Any])
            return {"decision": "block", "reason": event["tool_name"]}

        @hooks.on(HookEventName.AfterModel, on_error={"crash": "block"})
        async def later(event: types.AfterModelInput) -> None:
            assert_type(event["llm_response"], dict[str, Any])

        @hooks.on("BeforeAgent")
        def plain(event: dict[str, Any]) -> script.Output:
            return script.block(event["prompt"])

        hooks.on("SessionEnd")(print)
        hooks.on(HookEventName.of("SessionStart"))(print)
        assert_type(typed({**EVENT}), types.HookOutput | None)

        @hooks.on("AfterTool")  # type: ignore[type-var] # not an output
        def number(event: types.AfterToolInput) -> int:
            return 1

        with pytest.raises(ValueError, match="BeforeTool"):
            hooks.on("BeforTool")  # type: ignore[arg-type] # no such event
        with pytest.raises(InvalidHookError):
            hooks.on("BeforeTool", mode="watch")  # type: ignore[arg-type] # no such mode
        with pytest.raises(InvalidHookError):
            hooks.on("BeforeTool", on_error="deny")  # type: ignore[arg-type] # as above
        hooks.off(typed)
        result = await hooks.event_handler.fire_before_tool_event("t", {})
    assert_type(result, ProcessedHookResult)
    assert_type(result.reason, str | None)


def silent() -> Config:
    return Config(settings=Settings())


def count(path: str, size: int = 1) -> int:
    return size


async def fetch(url: str) -> bytes:
    return url.encode()


def lines(size: int) -> Iterator[int]:
    yield from range(size)


async def chunks(size: int) -> AsyncIterator[int]:
    yield size


async def test_a_hooked_tool_gives_its_own_value_or_the_reason() -> None:
    """``hooked_tool``, return type kept; 0156: the reason is in the type."""
    async with silent() as config:
        tool = hooked_tool(config)
        hooked_count = tool(count)
        slow = hooked_tool(config, in_thread=True)(count)
        assert_type(hooked_count("a", size=2), int | str)
        assert_type(await tool(fetch)("a"), bytes | str)
        assert_type(tool(lines)(2), Generator[int | str, None, None])
        assert_type(tool(chunks)(2), AsyncGenerator[int | str, None])
        assert_type(await slow("ab"), int | str)
        with pytest.raises(TypeError):
            hooked_count(5, 6, 7)  # type: ignore[call-arg, arg-type] # its parameters
        assert [hooked_count("a", 2), await slow("ab", 3), *tool(lines)(2)] == [
            2,
            3,
            0,
            1,
        ]


class Files:
    """Methods of all kinds."""

    tool = hooked_tool(silent())

    @tool
    def size(self, path: str) -> int:
        return len(path)

    @classmethod
    @tool
    def of(cls, path: str) -> int:
        return len(path)

    @tool
    @classmethod
    async def of_outside(cls, path: str) -> int:
        return len(path)

    @tool
    @staticmethod
    def static(path: str) -> int:
        return len(path)


async def test_methods_as_hooked_tools_are_typed() -> None:
    files = Files()
    assert_type(files.size("a"), int | str)
    assert_type(Files.of("a"), int | str)
    assert_type(await Files.of_outside("a"), int | str)
    assert_type(files.static("a"), int | str)
    assert [files.size("ab"), Files.of("ab"), files.static("ab")] == [2, 2, 2]


async def test_a_hooked_tool_that_raises_keeps_its_type() -> None:
    """``blocked="raise"`` keeps the very type of the function."""
    async with silent() as config:
        tool = hooked_tool(config, blocked="raise")
        slow = hooked_tool(config, blocked="raise", in_thread=True)(count)
        assert_type(tool(count)(path="a"), int)
        assert_type(await tool(fetch)("a"), bytes)
        assert_type(tool(chunks)(2), AsyncIterator[int])
        assert_type(await slow("ab"), int)
        assert [tool(count)("a"), await slow("ab", 2)] == [1, 2]


async def test_the_parts_of_a_call_are_typed() -> None:
    async with silent() as config:
        session = config.session("s")
        call = await session.begin_tool("write", {"path": "a"})
        assert_type(call.tool_input, dict[str, Any])
        outcome = await call.finish("done")
        assert_type(outcome, ToolOutcome)
        assert_type(
            await session.fire("Notification", {"message": "m"}), ProcessedHookResult
        )
    assert_type(hookline.__version__, str)
    assert isinstance(hookline.__version__, str)
