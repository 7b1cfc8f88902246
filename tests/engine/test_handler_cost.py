"""What the hot path does once, and what it does not do at all."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from hookline import Config, HookSystem
from tests.support.workshop import Workshop


class Counted:
    """A foreign object in an input; encoding it asks for its text."""

    def __init__(self) -> None:
        self.times = 0

    def __repr__(self) -> str:
        self.times += 1
        return "counted"


async def test_input_is_encoded_once_for_all_hooks(workshop: Workshop) -> None:
    counted = Counted()
    hooks = [workshop.runs(f"cat > seen{n}.json", f"h{n}") for n in range(5)]
    given: dict[str, Any] = {"tool_name": "t", "tool_input": {"x": counted}}
    await workshop.fire("BeforeTool", *hooks, given=given)
    assert counted.times == 1
    shown = [workshop.seen(f"seen{n}.json") for n in range(5)]
    assert all(one == shown[0] for one in shown)
    assert shown[0]["tool_input"] == {"x": "counted"}


async def test_input_is_not_encoded_when_nothing_matches(workshop: Workshop) -> None:
    counted = Counted()
    hook = workshop.runs("true")
    given = {"tool_name": "t", "tool_input": {"x": counted}}
    result = await workshop.fire("BeforeTool", hook, given=given, matcher="other")
    assert result.aggregated.hook_results == []
    assert counted.times == 0


async def test_children_cost_no_thread(workshop: Workshop) -> None:
    hooks = [workshop.runs("cat go-on", f"h{n}") for n in range(5)]
    (workshop.folder / "go-on").write_text("{}")
    before = threading.active_count()
    most = before

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, threading.active_count())
            await asyncio.sleep(0)

    watching = asyncio.create_task(watch())
    await workshop.fire("BeforeTool", *hooks)
    watching.cancel()
    assert most == before


async def test_plan_follows_what_is_registered_and_switched() -> None:
    """Plans are kept, and thrown away when the registry's version goes up."""
    async with HookSystem(Config("s", ".")) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        assert not (await fire("t", {})).blocked
        hooks.on("BeforeTool", "t", name="late")(lambda _: {"decision": "block"})
        assert (await fire("t", {})).blocked
        hooks.set_hook_enabled("late", False)
        assert not (await fire("t", {})).blocked
        hooks.set_hook_enabled("late", True)
        assert (await fire("t", {})).blocked


@pytest.mark.parametrize("name", ["x" * 257, ["no", "name"], None, 7], ids=repr)
async def test_odd_tool_name_matches_every_matcher(name: Any) -> None:
    """protocol.md#planning: no clever name slips past a guard, nor past the cache."""
    async with HookSystem(Config("s", ".")) as hooks:
        hooks.on("BeforeTool", "^other$")(lambda _: {"decision": "block"})
        for _ in range(2):
            result = await hooks.event_handler.fire_before_tool_event(name, {})
            assert result.blocked


async def test_empty_result_is_a_fresh_one_every_time() -> None:
    """DELTA-HFAIL-004."""
    async with HookSystem(Config("s", ".")) as hooks:
        first = await hooks.event_handler.fire_before_tool_event("t", {})
        second = await hooks.event_handler.fire_before_tool_event("t", {})
    assert first is not second
    assert first.aggregated.hook_results is not second.aggregated.hook_results


async def test_output_of_a_short_lived_hook_is_complete(
    workshop: Workshop,
) -> None:
    """Output is looked at when a young child ends; none of it may be lost."""
    size = 60_000
    hook = workshop.runs(f"head -c {size} /dev/zero | tr '\\0' x; exec 1>&-")
    result = await workshop.fire("BeforeTool", hook)
    assert len(result.aggregated.hook_results[0].stdout) == size


async def test_output_that_fills_the_pipe_at_once_is_read_all_the_same(
    workshop: Workshop,
) -> None:
    size = 1_000_000
    hook = workshop.runs(f"head -c {size} /dev/zero | tr '\\0' x")
    result = await workshop.fire("BeforeTool", hook)
    assert len(result.aggregated.hook_results[0].stdout) == size
