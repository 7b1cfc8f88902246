"""Generators as hooked tools, and refusals that raise (DESIGN, hooked_tool)."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from hookline import Config, HookEventName, HookSystem, Settings
from hookline.agent import hooked_tool
from hookline.errors import ToolBlockedError

DENY = {"decision": "deny", "reason": "no"}


def config_with(**outputs: Any) -> tuple[Config, list[dict[str, Any]]]:
    config = Config("own", ".", Settings())
    seen: list[dict[str, Any]] = []

    def hook_for(output: Any) -> Any:
        def hook(event: dict[str, Any]) -> Any:
            seen.append(event)
            return output

        return hook

    system = HookSystem(config)
    for event, output in outputs.items():
        system.on(HookEventName.of(event))(hook_for(output))
    return config, seen


def specific(**fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": fields}


def test_a_generator_runs_with_the_changed_input_when_it_is_iterated() -> None:
    config, seen = config_with(BeforeTool=specific(tool_input={"size": 2}))

    @hooked_tool(config)
    def count(size: int) -> Iterator[int]:
        yield from range(size)

    items = count(5)
    assert seen == []
    assert list(items) == [0, 1]
    asyncio.run(config.dispose())


def test_a_blocked_generator_yields_the_reason() -> None:
    config, _ = config_with(BeforeTool=DENY)

    @hooked_tool(config)
    def lines() -> Iterator[str]:
        yield "must not run"

    assert list(lines()) == ["no"]
    asyncio.run(config.dispose())


async def test_an_async_generator_is_held_back_until_hooks_have_seen_it() -> None:
    said = {"reason": "secret", **specific(withholdResult=True)}
    config, seen = config_with(AfterTool=said)

    @hooked_tool(config)
    async def lines() -> AsyncIterator[str]:
        yield "the"
        yield "key"

    async with config:
        assert [line async for line in lines()] == ["secret"]
    assert seen[0]["tool_response"]["llmContent"] == ["the", "key"]


async def test_items_pass_at_once_where_no_hook_waits_for_them() -> None:
    config, _ = config_with(BeforeTool=None)
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
    config, seen = config_with(AfterTool=None)

    @hooked_tool(config)
    async def lines() -> AsyncIterator[str]:
        yield "a"
        raise OSError("gone")

    async with config:
        with pytest.raises(OSError, match="gone"):
            _ = [line async for line in lines()]
    assert seen[0]["tool_response"]["error"] == {"message": "OSError: gone"}


async def test_a_refused_call_can_raise() -> None:
    config, _ = config_with(BeforeTool=DENY)

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


def test_another_word_for_blocked_is_a_mistake() -> None:
    config, _ = config_with()
    with pytest.raises(ValueError, match="expected 'return' or 'raise', got 'never'"):
        hooked_tool(config, blocked="never")  # type: ignore[arg-type] # the mistake
