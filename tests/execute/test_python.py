"""Functions as hooks: what they share with their host, and how they are cancelled.

What single functions return and raise is in ``tests/pins/fire/python_hooks.json``, and
functions that settings name in ``python_modules.json``.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest

from hookline import Config, HookEventName, HookSystem, ProcessedHookResult
from hookline.protocol.results import FailureCause

BLOCK = {"decision": "block", "reason": "no"}


async def fire(hooks: HookSystem) -> ProcessedHookResult:
    return await hooks.event_handler.fire_before_tool_event("write_file", {"a": 1})


async def test_decorator_gives_the_function_back_and_names_the_hook() -> None:
    async with HookSystem(Config()) as hooks:

        @hooks.on(HookEventName.BeforeTool, matcher="write_.*")
        async def guard(event: dict[str, Any]) -> dict[str, Any]:
            return {"decision": "block", "reason": event["tool_name"]}

        result = await fire(hooks)
        other = await hooks.event_handler.fire_before_tool_event("read_file", {})
        assert (await guard({"tool_name": "x"}))["reason"] == "x"
    assert (result.reason, other.blocked) == ("write_file", False)
    [ran] = result.aggregated.hook_results
    assert (ran.hook_name, ran.source) == ("guard", "runtime")


async def test_function_gets_a_private_copy_of_the_event() -> None:
    tool_input = {"deep": {"list": [1]}}
    seen: list[Any] = []

    def meddler(event: dict[str, Any]) -> None:
        event["tool_input"]["deep"]["list"].append(2)
        event.clear()

    async with HookSystem(Config()) as hooks:
        hooks.on("BeforeTool")(meddler)
        hooks.on("BeforeTool")(lambda event: seen.append(event["tool_input"]))
        await hooks.event_handler.fire_before_tool_event("t", tool_input)
    assert tool_input == {"deep": {"list": [1]}}
    assert seen == [tool_input]


@pytest.mark.parametrize(
    "error", [SystemError, GeneratorExit, asyncio.CancelledError, StopIteration]
)
@pytest.mark.parametrize("waits", [None, False, True], ids=["plain", "async", "waits"])
async def test_whatever_a_function_raises_others_still_block(
    error: type[BaseException], waits: bool | None
) -> None:
    """protocol.md#several-hooks: no output is lost by a hook that failed."""

    async def broken(_: dict[str, Any]) -> None:
        if waits:
            await asyncio.sleep(0)
        raise error

    def plain(_: dict[str, Any]) -> None:
        raise error

    async with HookSystem(Config()) as hooks:
        hooks.on("BeforeTool")(plain if waits is None else broken)
        hooks.on("BeforeTool")(lambda _: BLOCK)
        result = await fire(hooks)
    assert (result.blocked, result.reason) == (True, "no")
    assert result.aggregated.hook_results[0].cause is FailureCause.CRASH


@pytest.mark.parametrize("ends", ["at its timeout", "with its caller"])
async def test_async_function_is_cancelled(ends: str) -> None:
    state: list[str] = []
    started = asyncio.Event()
    waited: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def slow(_: dict[str, Any]) -> None:
        state.append("started")
        started.set()
        try:
            await waited
        finally:
            state.append("ended")

    async with HookSystem(Config()) as hooks:
        timeout_ms = 50 if ends == "at its timeout" else 60_000
        hooks.on("BeforeTool", timeout_ms=timeout_ms)(slow)
        firing = asyncio.create_task(fire(hooks))
        await started.wait()
        if ends == "with its caller":
            firing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await firing
            await asyncio.sleep(0)
        else:
            assert (await firing).aggregated.hook_results[0].timed_out
    assert (state, waited.cancelled()) == (["started", "ended"], True)


def current_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


variable: ContextVar[str] = ContextVar("variable", default="unset")


async def test_async_function_has_a_task_and_variables_of_its_own() -> None:
    """From its first step on, also around an event that it fires itself."""
    seen: list[tuple[asyncio.Task[Any], str]] = []
    async with HookSystem(Config()) as hooks:

        @hooks.on("BeforeAgent")
        async def inner(event: dict[str, Any]) -> None:
            seen.append((current_task(), variable.get()))
            raise KeyError("inner")

        @hooks.on("BeforeTool")
        async def outer(event: dict[str, Any]) -> dict[str, str]:
            seen.append((current_task(), variable.get()))
            variable.set("hook")
            await hooks.event_handler.fire_before_agent_event("again")
            await asyncio.sleep(0)
            seen.append((current_task(), variable.get()))
            return BLOCK

        caller = current_task()
        variable.set("caller")
        assert (await fire(hooks)).reason == "no"
    assert (current_task(), variable.get()) == (caller, "caller")
    (first, inside, last), values = zip(*seen, strict=True)
    assert values == ("caller", "hook", "hook")
    assert first is last
    assert len({first, inside, caller}) == 3
    await asyncio.sleep(0)
    assert first.done()
