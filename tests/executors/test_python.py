"""Python hooks: functions in this process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hookline import (
    Config,
    HookEventName,
    HookSystem,
    ProcessedHookResult,
    Settings,
)
from hookline.protocol.jsontext import decode, encode
from hookline.protocol.results import FailureCause
from tests.support.workshop import INPUTS, Workshop


async def fire_with(function: Any, **options: Any) -> ProcessedHookResult:
    async with HookSystem(Config()) as hooks:
        hooks.on("BeforeTool", **options)(function)
        return await hooks.event_handler.fire_before_tool_event("write_file", {"a": 1})


async def test_a_plain_function_blocks() -> None:
    result = await fire_with(lambda event: {"decision": "block", "reason": "no"})
    assert (result.blocked, result.reason) == (True, "no")
    assert result.aggregated.hook_results[0].source == "runtime"


async def test_an_async_function_blocks_and_the_decorator_gives_it_back() -> None:
    async with HookSystem(Config()) as hooks:

        @hooks.on(HookEventName.BeforeTool, matcher="write_.*")
        async def guard(event: dict[str, Any]) -> dict[str, Any]:
            await asyncio.sleep(0)
            return {"decision": "block", "reason": event["tool_name"]}

        result = await hooks.event_handler.fire_before_tool_event("write_file", {})
        other = await hooks.event_handler.fire_before_tool_event("read_file", {})
        assert (await guard({"tool_name": "x"}))["reason"] == "x"
    assert (result.reason, other.blocked) == ("write_file", False)
    assert result.aggregated.hook_results[0].hook_name == "guard"


async def test_a_value_of_hookline_script_is_an_answer() -> None:
    from hookline.script import block

    assert (await fire_with(lambda event: block("never"))).reason == "never"


HIDDEN = {"role": "user", "content": "redacted"}
ANSWER = {"content": {"role": "model", "parts": ("redacted",)}}
WITH_TUPLES: dict[str, dict[str, Any]] = {
    "BeforeModel": {"llm_request": {"messages": (HIDDEN,)}},
    "AfterModel": {"llm_response": {"candidates": (ANSWER,)}},
    "BeforeToolSelection": {
        "toolConfig": {"mode": "ANY", "allowedFunctionNames": ("redacted",)}
    },
}


@pytest.mark.parametrize("event", WITH_TUPLES)
async def test_a_tuple_in_an_answer_is_a_list(event: str) -> None:
    """Issue 12.5: a redaction was ignored for it; in JSON they are the same."""
    said = WITH_TUPLES[event]
    async with HookSystem(Config()) as hooks:
        hooks.on(HookEventName.of(event))(lambda _: {"hookSpecificOutput": said})
        given = INPUTS[HookEventName(event)]
        result = await hooks.event_handler.fire(event, given)
    assert result.aggregated.hook_results[0].warnings == ()
    assert result.final_output is not None
    assert result.final_output.hook_specific_output == decode(encode(said))


async def test_a_function_gets_a_private_copy_of_the_event() -> None:
    given = {"deep": {"list": [1]}}

    def meddler(event: dict[str, Any]) -> None:
        event["tool_input"]["deep"]["list"].append(2)
        event.clear()

    seen: list[Any] = []
    async with HookSystem(Config()) as hooks:
        hooks.on("BeforeTool")(meddler)
        hooks.on("BeforeTool")(lambda event: seen.append(event["tool_input"]))
        await hooks.event_handler.fire_before_tool_event("t", given)
    assert given == {"deep": {"list": [1]}}
    assert seen == [given]


async def test_a_function_that_raises_fails_open() -> None:
    def broken(event: dict[str, Any]) -> None:
        raise KeyError("missing")

    result = await fire_with(broken)
    hook = result.aggregated.hook_results[0]
    assert (hook.success, hook.cause, result.blocked) == (
        False,
        FailureCause.CRASH,
        False,
    )
    assert "KeyError: 'missing'" in (hook.error or "")
    assert "broken" in hook.stderr


class OutcomeError(BaseException):
    """As test frameworks raise them, past ``except Exception``."""


@pytest.mark.parametrize(
    "error", [OutcomeError, GeneratorExit, asyncio.CancelledError, StopIteration]
)
@pytest.mark.parametrize("waits", [None, False, True], ids=["plain", "async", "waits"])
async def test_whatever_a_function_raises_is_a_crash_and_others_still_block(
    error: type[BaseException], waits: bool | None
) -> None:
    """One that raises has failed; protocol.md#several-hooks: no output is lost by that.

    protocol.md#process
    """

    async def broken(event: dict[str, Any]) -> None:
        if waits:
            await asyncio.sleep(0)
        raise error

    def plain(event: dict[str, Any]) -> None:
        raise error

    async with HookSystem(Config()) as hooks:
        hooks.on("BeforeTool")(plain if waits is None else broken)
        hooks.on("BeforeTool")(lambda _: {"decision": "block", "reason": "no"})
        result = await hooks.event_handler.fire_before_tool_event("x", {})
    assert (result.blocked, result.reason) == (True, "no")
    assert result.aggregated.hook_results[0].cause is FailureCause.CRASH


async def test_a_module_that_exits_when_it_is_imported_cannot_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.joinpath("exits_at_once.py").write_text("import sys; sys.exit()")
    monkeypatch.syspath_prepend(tmp_path)
    hook = {"type": "python", "function": "exits_at_once:guard", "onError": "block"}
    settings = {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    config = Config("s", tmp_path, Settings.from_mapping(settings))
    async with HookSystem(config) as hooks:
        result = await hooks.event_handler.fire_before_tool_event("x", {})
    assert (result.blocked, result.aggregated.hook_results[0].cause) == (
        True,
        FailureCause.SPAWN,
    )


async def test_a_timeout_error_of_the_functions_own_is_a_crash() -> None:
    async def broken(event: dict[str, Any]) -> None:
        raise TimeoutError("mine")

    hook = (await fire_with(broken)).aggregated.hook_results[0]
    assert (hook.cause, hook.timed_out) == (FailureCause.CRASH, False)


async def test_an_async_function_is_cancelled_at_its_timeout() -> None:
    cancelled = []

    async def slow(event: dict[str, Any]) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    hook = (await fire_with(slow, timeout_ms=50)).aggregated.hook_results[0]
    assert (hook.success, hook.timed_out) == (False, True)
    assert "timed out after 50 ms" in (hook.error or "")
    assert cancelled == [True]


async def test_cancelling_the_caller_cancels_the_function() -> None:
    state: list[str] = []
    started = asyncio.Event()

    async def slow(event: dict[str, Any]) -> None:
        state.append("started")
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            state.append("ended")

    task = asyncio.create_task(fire_with(slow))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    assert state == ["started", "ended"]


@pytest.mark.parametrize(
    ("code", "blocked", "success"),
    [(2, True, False), (0, False, True), (None, False, True), (3, False, False)],
)
async def test_system_exit_is_read_by_the_table(
    code: int | None, blocked: bool, success: bool
) -> None:
    def leaves(event: dict[str, Any]) -> None:
        raise SystemExit(code)

    result = await fire_with(leaves)
    assert (result.blocked, result.aggregated.success) == (blocked, success)


async def test_system_exit_with_a_text_is_a_warning() -> None:
    def leaves(event: dict[str, Any]) -> None:
        raise SystemExit("went wrong")

    assert (await fire_with(leaves)).system_message == "Warning: went wrong"


async def test_an_answer_of_an_unknown_type_is_a_failure() -> None:
    hook = (await fire_with(lambda event: "block")).aggregated.hook_results[0]
    assert (hook.success, hook.cause) == (False, FailureCause.OUTPUT)
    assert "returned str" in (hook.error or "")


async def test_python_hooks_are_named_in_settings(workshop: Workshop) -> None:
    hook = {"type": "python", "function": "tests.executors.functions:guard"}
    assert (await workshop.fire("BeforeTool", hook)).reason == "write_file"


@pytest.mark.parametrize(
    "function",
    [
        "no.such.module:guard",
        "tests.executors.functions:missing",
        "tests.executors.functions:NOT",
    ],
)
async def test_a_python_hook_that_cannot_be_loaded_fails_open(
    workshop: Workshop, function: str
) -> None:
    hook = {"type": "python", "function": function}
    found = (await workshop.fire("BeforeTool", hook)).aggregated.hook_results[0]
    assert (found.success, found.cause) == (False, FailureCause.SPAWN)
    assert function in (found.error or "")


@pytest.mark.parametrize("answer", [None, {"decision": "allow"}])
async def test_a_function_that_swallows_its_cancellation_has_timed_out(
    answer: dict[str, str] | None,
) -> None:
    """protocol.md#process: an async hook is cancelled at its timeout."""

    async def stubborn(event: dict[str, Any]) -> dict[str, str] | None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
        return answer

    hook = (await fire_with(stubborn, timeout_ms=50)).aggregated.hook_results[0]
    assert (hook.success, hook.cause) == (False, FailureCause.TIMEOUT)
    assert hook.output is None
