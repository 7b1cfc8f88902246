"""What a failure means, by cause, on every path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from hookline import Config, HookSystem, InMemoryMessageBus, Settings
from hookline.bus.client import HookBusClient
from hookline.engine.admission import CircuitBreaker
from hookline.engine.handler import EventPipeline, HookEventHandler, Reporter
from hookline.engine.planner import HookPlanner
from hookline.engine.registry import HookRegistry
from hookline.engine.runner import HookRunner
from hookline.executors.contract import HookPlan
from hookline.log import LoggingDebugLogger
from hookline.protocol.events import HookEventName
from hookline.protocol.results import FailureCause, Stage
from tests.support.project import Project
from tests.support.workshop import INPUTS, Workshop

CAUSES = {
    "exit 127": FailureCause.SPAWN,
    "exit 126": FailureCause.SPAWN,
    "/no/such/program": FailureCause.SPAWN,
    "exit 1": FailureCause.CRASH,
    "kill -9 $$": FailureCause.CRASH,
    "sleep 60": FailureCause.TIMEOUT,
    "echo hello": FailureCause.OUTPUT,
    "head -c 5000 /dev/zero | tr '\\0' x": FailureCause.OUTPUT,
}
causes = pytest.mark.parametrize(("command", "cause"), CAUSES.items(), ids=str)
LIMITS = {"maxOutputBytes": 4000, "breaker": False}
MORE: dict[str, Any] = {"timeout": 300, "expect": "json"}


@causes
async def test_a_failure_allows_by_default(
    workshop: Workshop, command: str, cause: FailureCause
) -> None:
    hook = workshop.runs(command, **MORE)
    result = await workshop.fire("BeforeTool", hook, config=LIMITS)
    assert [one.cause for one in result.aggregated.hook_results] == [cause]
    assert not result.blocked


HOW = ["hook", "hook by cause", "default", "default by cause"]


@causes
@pytest.mark.parametrize("how", HOW)
async def test_a_failure_blocks_where_the_policy_says_so(
    workshop: Workshop, command: str, cause: FailureCause, how: str
) -> None:
    said: Any = {cause.value: "block"} if "cause" in how else "block"
    own = {"onError": said} if how.startswith("hook") else {}
    general = {"onError": said} if how.startswith("default") else {}
    hook = workshop.runs(command, "guard", **MORE, **own)
    result = await workshop.fire("BeforeTool", hook, config={**LIMITS, **general})
    assert result.blocked
    assert result.reason is not None
    assert "hook 'guard' failed, and onError blocks on" in result.reason


@causes
async def test_a_policy_for_other_causes_does_not_count(
    workshop: Workshop, command: str, cause: FailureCause
) -> None:
    others = {one.value: "block" for one in FailureCause if one is not cause}
    hook = workshop.runs(command, onError=others, **MORE)
    assert not (await workshop.fire("BeforeTool", hook, config=LIMITS)).blocked


async def test_a_block_is_not_a_failure(workshop: Workshop) -> None:
    hook = workshop.runs("echo own reason >&2; exit 2", onError="block")
    result = await workshop.fire("BeforeTool", hook)
    assert result.reason == "own reason"
    assert result.aggregated.hook_results[0].cause is None


async def test_the_hooks_own_policy_overrides_the_default(
    workshop: Workshop,
) -> None:
    hook = workshop.runs("exit 1", onError="allow")
    result = await workshop.fire("BeforeTool", hook, config={"onError": "block"})
    assert not result.blocked


CLOSED = {
    HookEventName.AfterTool: ("withholdResult", True),
    HookEventName.BeforeToolSelection: (
        "toolConfig",
        {"mode": "NONE", "allowedFunctionNames": []},
    ),
}


@pytest.mark.parametrize(("event", "closed"), CLOSED.items(), ids=str)
async def test_an_event_that_cannot_block_gets_its_fail_closed_output(
    workshop: Workshop, event: HookEventName, closed: tuple[str, Any]
) -> None:
    result = await workshop.fire(event, workshop.runs("exit 1", onError="block"))
    assert not result.blocked
    assert result.final_output is not None
    assert result.final_output.hook_specific_output[closed[0]] == closed[1]


async def test_after_model_replaces_the_response_with_a_notice(
    workshop: Workshop,
) -> None:
    hook = workshop.runs("exit 1", "guard", onError="block")
    result = await workshop.fire("AfterModel", hook)
    assert result.final_output is not None
    response = result.final_output.llm_response
    assert response is not None
    assert response["text"].startswith("hook 'guard' failed, and onError blocks on")
    assert response["candidates"][0]["content"]["parts"] == [response["text"]]


MODEL_EVENTS = [
    HookEventName.BeforeModel,
    HookEventName.AfterModel,
    HookEventName.BeforeToolSelection,
]


@pytest.mark.parametrize("event", MODEL_EVENTS)
async def test_a_failed_translation_carries_a_block_or_the_fail_closed_output(
    workshop: Workshop, event: HookEventName
) -> None:
    hook = workshop.runs("true", "guard", onError="block")
    wrong = {"llm_request": 17, "llm_response": 17}
    result = await workshop.fire(event, hook, given=wrong)
    assert [e.stage for e in result.aggregated.errors] == [Stage.TRANSLATION]
    assert result.blocked is (event is HookEventName.BeforeModel)
    assert result.final_output is not None
    reason = "Blocked by the policy of hook 'guard': translation failed"
    assert str(result.final_output.reason).startswith(reason)
    assert bool(result.final_output.hook_specific_output) is not result.blocked


class BrokenPlanner(HookPlanner):
    """A planner with a fault of its own."""

    def plan(
        self,
        event: HookEventName,
        target: str | None,
        fields: Mapping[str, Any] = {},
    ) -> HookPlan | None:
        raise RuntimeError("lost the plan")


@pytest.mark.parametrize("policy", ["allow", "block"])
async def test_a_planning_failure_follows_the_policy(
    workshop: Workshop, policy: str
) -> None:
    hook = workshop.runs("true", "guard", onError=policy)
    config = workshop.config(workshop.settings("BeforeTool", hook))
    registry = HookRegistry(config.settings)
    pipeline = EventPipeline(
        config=config,
        settings=config.settings,
        registry=registry,
        planner=BrokenPlanner(registry),
        runner=HookRunner({}, CircuitBreaker()),
        reporter=Reporter(LoggingDebugLogger()),
    )
    result = await HookEventHandler(pipeline).fire_before_tool_event("x", {})
    assert [e.stage for e in result.aggregated.errors] == [Stage.PLANNING]
    assert result.blocked is (policy == "block")


@pytest.mark.parametrize("policy", ["allow", "block"])
async def test_an_input_of_the_wrong_shape_follows_the_policy(
    workshop: Workshop, policy: str
) -> None:
    hook = workshop.runs("true", "guard", onError=policy)
    wrong: Any = 17
    result = await workshop.fire("BeforeTool", hook, given=wrong)
    assert [e.stage for e in result.aggregated.errors] == [Stage.VALIDATION]
    assert result.blocked is (policy == "block")


async def test_a_failure_inside_hookline_allows_by_default(
    workshop: Workshop,
) -> None:
    hook = workshop.runs("true")
    result = await workshop.fire("BeforeModel", hook, given={"llm_request": 17})
    assert not result.aggregated.success
    assert not result.blocked


@pytest.mark.parametrize("mode", [{"mode": "observe"}, {}], ids=["observe", "enforce"])
async def test_an_observing_hook_does_not_close_a_failed_event(
    workshop: Workshop, mode: dict[str, str]
) -> None:
    hook = workshop.runs("true", onError="block", **mode)
    result = await workshop.fire("BeforeModel", hook, given={"llm_request": 17})
    assert result.blocked is not bool(mode)


async def test_the_policy_holds_over_the_bus(workshop: Workshop) -> None:
    bus = InMemoryMessageBus()
    hook = workshop.runs("exit 1", onError="block")
    config = workshop.config(workshop.settings("BeforeTool", hook))
    async with HookSystem(config, message_bus=bus):
        client = HookBusClient(bus)
        answer = await client.request("BeforeTool", INPUTS[HookEventName.BeforeTool])
    assert answer["success"] is True
    assert answer["processed"]["blocked"] is True


async def test_the_policy_holds_for_functions_of_this_process(
    workshop: Workshop,
) -> None:
    settings = Settings.from_mapping({"hooksConfig": {"onError": "block"}})
    async with HookSystem(Config("s", workshop.folder, settings)) as hooks:

        @hooks.on("BeforeTool")
        def guard(_: dict[str, Any]) -> None:
            raise KeyError("lost")

        result = await hooks.event_handler.fire_before_tool_event("x", {})
    assert result.blocked
    assert result.reason is not None
    assert "onError blocks on crash" in result.reason


async def test_a_broken_hook_does_not_take_anothers_block_away(
    workshop: Workshop,
) -> None:
    """An executor that raises is a failure of that one hook, whoever is to blame."""
    blocking = workshop.runs("sleep 0.2; exit 2", "guard")
    config = workshop.config(workshop.settings("BeforeTool", blocking))
    async with HookSystem(config) as hooks:

        class RaisingDict(dict[str, Any]):
            def items(self) -> Any:
                raise RuntimeError("not even this works")

        @hooks.on("BeforeTool")
        def answers_nonsense(_: dict[str, Any]) -> Any:
            return RaisingDict(decision="allow")

        result = await hooks.event_handler.fire_before_tool_event("x", {})
    assert result.blocked


@pytest.mark.parametrize("trusted", [True, False], ids=["trusted", "untrusted"])
async def test_only_a_trusted_hook_closes_an_event_that_fails_before_the_hooks(
    project: Project, trusted: bool
) -> None:
    """An untrusted project contributes nothing, its policy included.

    protocol.md#settings
    """
    hook = {"type": "command", "command": "exit 0", "onError": "block"}
    project.settings(hook, event="BeforeModel")
    if trusted:
        project.trust()
    unreadable = {"llm_request": object()}
    async with project.system() as hooks:
        handler = hooks.event_handler
        result = await handler.fire_validated(HookEventName.BeforeModel, unreadable)
    assert result.aggregated.errors[0].stage is Stage.TRANSLATION
    assert result.blocked is trusted


async def test_a_disabled_strict_hook_does_not_close_a_failed_event(
    workshop: Workshop,
) -> None:
    strict = workshop.runs("exit 0", "strict", onError="block")
    settings = workshop.settings("BeforeModel", strict, config={"disabled": ["strict"]})
    async with HookSystem(workshop.config(settings)) as hooks:
        result = await hooks.event_handler.fire_validated(
            HookEventName.BeforeModel, {"llm_request": object()}
        )
    assert result.aggregated.errors[0].stage is Stage.TRANSLATION
    assert not result.blocked
