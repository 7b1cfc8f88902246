"""Hooks registered in code: mistakes raise there, and a strict one always closes."""

from __future__ import annotations

import asyncio
import sys
from enum import StrEnum
from types import MappingProxyType
from typing import Any, get_args

import pytest

from hookline import Config, HookEventName, HookSystem
from hookline.engine import registration
from hookline.errors import InvalidHookError, UnknownEventError, UnknownHookError
from hookline.settings.model import FailurePolicy

Event = dict[str, Any]


def test_names_of_events_for_type_checkers_are_all_events() -> None:
    assert get_args(registration.EventName) == tuple(
        event.value for event in HookEventName
    )
    assert set(get_args(registration.Cause)) == set(FailurePolicy.__struct_fields__)


def test_hook_may_name_a_type_that_only_type_checkers_know() -> None:
    """Python 3.14 evaluates annotations when a signature is read."""
    quote = "" if sys.version_info >= (3, 14) else "'"
    scope: dict[str, Any] = {}
    exec(f"def guard(event: {quote}Missing{quote}): ...", scope)
    on = HookSystem(Config()).on("BeforeTool")
    assert on(scope["guard"]) is scope["guard"]


async def test_options_may_be_members_of_enums_and_mappings_of_any_kind() -> None:
    class Name(StrEnum):
        GUARD = "guard"

    hooks = HookSystem(Config())
    hooks.on("BeforeTool", name=Name.GUARD)(lambda _: {"decision": "deny"})
    hooks.set_hook_enabled("guard", False)
    assert [(hook.name, hook.enabled) for hook in hooks.get_all_hooks()] == [
        ("guard", False)
    ]
    with pytest.raises(InvalidHookError, match="unknown cause 'crahs'"):
        hooks.on("BeforeTool", on_error=MappingProxyType({"crahs": "block"}))  # type: ignore[dict-item]


async def test_off_knows_methods_and_takes_an_event() -> None:
    """``hooks.off`` for methods, repeats, one event, unknown functions.

    A function that is registered twice runs twice.
    """
    seen: list[Event] = []

    class Guard:
        def check(self, event: Event) -> None: ...

    guard, other = Guard(), Guard()
    async with HookSystem(Config()) as hooks:
        for event in (HookEventName.BeforeTool, HookEventName.AfterTool):
            for function in (guard.check, seen.append) * 2:
                hooks.on(event)(function)
        await hooks.event_handler.fire_before_tool_event("t", {})
        assert len(seen) == 2
        with pytest.raises(UnknownHookError, match="check is not registered"):
            hooks.off(other.check)
        hooks.off(guard.check, "BeforeTool")
        assert hooks.status.total_hooks == 6
        with pytest.raises(UnknownHookError, match=r"\(registered: append, append\)"):
            hooks.off(guard.check, "BeforeTool")
        with pytest.raises(UnknownEventError):
            hooks.off(guard.check, "BeforTool")
        hooks.off(seen.append)
        hooks.off(guard.check)
        assert hooks.status.total_hooks == 0


async def test_event_in_flight_finishes_with_a_hook_that_is_removed() -> None:
    started, go = asyncio.Event(), asyncio.Event()

    async def guard(event: Event) -> dict[str, str]:
        started.set()
        await go.wait()
        return {"decision": "block", "reason": "no"}

    async with HookSystem(Config()) as hooks:
        hooks.on("BeforeTool")(guard)
        fire = hooks.event_handler.fire_before_tool_event
        running = asyncio.create_task(fire("t", {}))
        await started.wait()
        hooks.off(guard)
        go.set()
        assert (await running).blocked
        assert not (await fire("t", {})).blocked
