"""protocol.md#events: the input of every event."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hookline import Config, HookSystem
from hookline.engine.handler import HookEventHandler
from hookline.protocol.events import TRAITS, HookEventName
from tests.support.workshop import INPUTS, Workshop

FIELDS: dict[HookEventName, dict[str, Any]] = {
    **INPUTS,
    HookEventName.AfterAgent: {
        "prompt": "do it",
        "prompt_response": "done",
        "stop_hook_active": False,
    },
    HookEventName.Notification: {
        "message": "look",
        "notification_type": "ToolPermission",
        "details": {},
    },
}


@pytest.mark.parametrize("event", list(HookEventName))
async def test_every_event_has_base_fields_and_its_own(
    workshop: Workshop, event: HookEventName
) -> None:
    """HOOK-061, HOOK-062."""
    await workshop.fire(event, workshop.runs("cat > seen.json"))
    seen = workshop.seen()
    assert seen["session_id"] == "s-1"
    assert seen["cwd"] == str(workshop.folder)
    assert seen["hook_event_name"] == event.value
    assert seen["transcript_path"] == ""
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", seen["timestamp"])
    for field, value in FIELDS[event].items():
        if field not in TRAITS[event].model_fields:
            assert seen[field] == value
        assert field in seen


async def test_optional_tool_fields_reach_the_hook(workshop: Workshop) -> None:
    system = workshop.config(
        workshop.settings("BeforeTool", workshop.runs("cat > seen.json"))
    ).get_hook_system()
    assert system is not None
    async with system as hooks:
        await hooks.event_handler.fire_before_tool_event(
            "t", {}, mcp_context={"server": "s"}, original_request_name="o"
        )
    assert workshop.seen()["mcp_context"] == {"server": "s"}
    assert workshop.seen()["original_request_name"] == "o"


@pytest.mark.parametrize(
    ("event", "field", "value"),
    [
        ("SessionStart", "source", ["startup"]),
        ("SessionEnd", "reason", None),
        ("PreCompress", "trigger", 5),
    ],
)
async def test_a_missing_choice_is_a_validation_failure(
    workshop: Workshop, event: str, field: str, value: object
) -> None:
    """DELTA-HPAY-006."""
    hook = workshop.runs("touch ran")
    result = await workshop.fire(event, hook, given={field: value})
    assert result.aggregated.success is False
    assert result.aggregated.errors[0].stage == "validation"
    assert field in result.aggregated.errors[0].message
    assert not workshop.ran("ran")


async def test_model_fields_may_have_either_name(workshop: Workshop) -> None:
    """protocol.md#bus: model_request and llm_request."""
    stable = {"model": "m", "messages": [{"role": "user", "content": "u"}]}
    hook = workshop.runs("cat > seen.json")
    await workshop.fire("BeforeModel", hook, given={"model_request": stable})
    assert workshop.seen()["llm_request"] == stable
    assert "model_request" not in workshop.seen()


async def test_callers_cannot_set_hooklines_own_fields(
    workshop: Workshop,
) -> None:
    given = {**INPUTS[HookEventName.BeforeTool], "cwd": "/", "timestamp": "x"}
    given |= {"hook_event_name": "Other", "session_id": "mine", "transcript_path": "t"}
    await workshop.fire("BeforeTool", workshop.runs("cat > seen.json"), given=given)
    seen = workshop.seen()
    assert (seen["cwd"], seen["hook_event_name"]) == (
        str(workshop.folder),
        "BeforeTool",
    )
    assert seen["timestamp"] != "x"
    assert (seen["session_id"], seen["transcript_path"]) == ("mine", "t")


async def test_a_request_of_an_unknown_shape_is_a_translation_failure(
    workshop: Workshop,
) -> None:
    """DELTA-HPAY-004, rule T3."""
    hook = workshop.runs("touch ran")
    result = await workshop.fire("BeforeModel", hook, given={"llm_request": 5})
    assert result.aggregated.errors[0].stage == "translation"
    assert not workshop.ran("ran")


EVERY_FIRE: list[tuple[str, tuple[Any, ...]]] = [
    ("fire_before_tool_event", ("t", {"a": 1})),
    ("fire_after_tool_event", ("t", {"a": 1}, {"llmContent": "x"})),
    ("fire_before_agent_event", ("p",)),
    ("fire_after_agent_event", ("p", "r")),
    ("fire_before_model_event", ({"model": "m", "messages": []},)),
    (
        "fire_after_model_event",
        ({"model": "m", "messages": []}, {"candidates": [], "text": "x"}),
    ),
    ("fire_before_tool_selection_event", ({"model": "m", "messages": []}, ["t"])),
    ("fire_session_start_event", ("startup",)),
    ("fire_session_end_event", ("exit",)),
    ("fire_notification_event", ("hello",)),
    ("fire_pre_compress_event", ("manual",)),
    ("fire_subagent_start_event", ("a-1", "reviewer")),
    ("fire_subagent_stop_event", ("a-1", "reviewer")),
]


@pytest.mark.parametrize(("method", "args"), EVERY_FIRE, ids=[m for m, _ in EVERY_FIRE])
async def test_every_fire_method_reaches_its_hooks(
    method: str, args: tuple[Any, ...]
) -> None:
    """protocol.md#results: every fire_*_event returns a ProcessedHookResult."""
    async with HookSystem(Config()) as hooks:
        seen: list[dict[str, Any]] = []
        for event in HookEventName:
            hooks.on(event)(seen.append)
        result = await getattr(hooks.event_handler, method)(*args)
    assert [e["hook_event_name"].lower() for e in seen] == [
        method.removeprefix("fire_").removesuffix("_event").replace("_", "")
    ]
    assert result.aggregated.success


def test_the_handler_has_a_fire_method_for_every_event() -> None:
    methods = {m for m in dir(HookEventHandler) if m.startswith("fire_")}
    assert methods - {"fire_validated", "fire_fields"} == {m for m, _ in EVERY_FIRE}
