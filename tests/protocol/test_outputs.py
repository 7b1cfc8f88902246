"""protocol.md#process: the fields of an output."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from hookline.protocol.events import HookEventName
from hookline.protocol.outputs import read_output
from tests.support.workshop import Workshop


@pytest.mark.parametrize("decision", ["block", "deny"])
async def test_block_and_deny_block(workshop: Workshop, decision: str) -> None:
    result = await workshop.fire("BeforeTool", workshop.says({"decision": decision}))
    assert (result.blocked, result.reason) == (True, "No reason provided")


@pytest.mark.parametrize("decision", ["allow", "approve", None])
async def test_other_decisions_do_not_block(workshop: Workshop, decision: Any) -> None:
    result = await workshop.fire("BeforeTool", workshop.says({"decision": decision}))
    assert (result.blocked, result.reason, result.ask) == (False, None, False)


async def test_ask_is_reported_and_does_not_block(workshop: Workshop) -> None:
    hook = workshop.says({"decision": "ask", "reason": "sure?"})
    result = await workshop.fire("BeforeTool", hook)
    assert (result.blocked, result.ask) == (False, True)
    assert result.final_output is not None
    assert result.final_output.reason == "sure?"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"stopReason": "s", "reason": "r"}, "s"),
        ({"reason": "r"}, "r"),
        ({"stopReason": "  ", "reason": " r "}, "r"),
        ({}, "No reason provided"),
    ],
)
async def test_effective_reason_is_stop_reason_else_reason_else_default(
    workshop: Workshop, said: dict[str, Any], reason: str
) -> None:
    """DELTA-HRUN-002, DELTA-HAPP-002."""
    hook = workshop.says({"continue": False, **said})
    result = await workshop.fire("BeforeTool", hook)
    assert (result.should_stop, result.stop_reason) == (True, reason)


@pytest.mark.parametrize("permission", ["deny", "block"])
async def test_permission_decision_blocks_before_a_tool(
    workshop: Workshop, permission: str
) -> None:
    said = {"permissionDecision": permission, "permissionDecisionReason": "p"}
    hook = workshop.says({"reason": "r", "hookSpecificOutput": said})
    result = await workshop.fire("BeforeTool", hook)
    assert (result.blocked, result.reason) == (True, "p")


async def test_permission_decision_asks_before_a_tool(workshop: Workshop) -> None:
    said = {"permissionDecision": "ask", "permissionDecisionReason": "p"}
    result = await workshop.fire(
        "BeforeTool", workshop.says({"hookSpecificOutput": said})
    )
    assert (result.ask, result.blocked) == (True, False)
    assert result.final_output is not None
    assert result.final_output.reason == "p"


async def test_permission_decision_is_ignored_on_other_events(
    workshop: Workshop,
) -> None:
    said = {"hookSpecificOutput": {"permissionDecision": "deny"}}
    result = await workshop.fire("BeforeAgent", workshop.says(said))
    assert not result.blocked


async def test_permission_deny_survives_a_later_allow(workshop: Workshop) -> None:
    """protocol.md#process: also when several hooks are merged."""
    deny = {"permissionDecision": "deny", "permissionDecisionReason": "claude style"}
    result = await workshop.fire(
        "BeforeTool",
        workshop.says({"hookSpecificOutput": deny}, "a"),
        workshop.says({"hookSpecificOutput": {"permissionDecision": "allow"}}, "b"),
    )
    assert (result.blocked, result.reason) == (True, "claude style")
    assert result.final_output is not None
    assert result.final_output.hook_specific_output["permissionDecision"] == "deny"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"continue": "false"}, "continue"),
    ({"continue": 0}, "continue"),
    ({"reason": 5}, "reason"),
    ({"stopReason": {}}, "stopReason"),
    ({"suppressOutput": "yes"}, "suppressOutput"),
    ({"systemMessage": 1}, "systemMessage"),
    ({"hookSpecificOutput": []}, "hookSpecificOutput"),
    ({"hookSpecificOutput": {"tool_input": "x"}}, "hookSpecificOutput.tool_input"),
    ({"hookSpecificOutput": {"additionalContext": 1}}, "additionalContext"),
    ({"hookSpecificOutput": {"clearContext": "y"}}, "clearContext"),
    ({"hookSpecificOutput": {"toolConfig": {"mode": "any"}}}, "toolConfig.mode"),
    (
        {"hookSpecificOutput": {"toolConfig": {"allowedFunctionNames": "a"}}},
        "toolConfig.allowedFunctionNames",
    ),
    ({"hookSpecificOutput": {"llm_request": {"messages": 1}}}, "messages"),
    ({"hookSpecificOutput": {"llm_request": {"model": 1}}}, "model"),
    ({"hookSpecificOutput": {"llm_request": {"config": 1}}}, "config"),
    ({"hookSpecificOutput": {"llm_request": 1}}, "llm_request"),
    ({"hookSpecificOutput": {"llm_response": {}}}, "llm_response"),
    ({"hookSpecificOutput": {"llm_response": {"text": 1}}}, "text"),
    ({"hookSpecificOutput": {"llm_response": {"candidates": 1}}}, "candidates"),
    ({"hookSpecificOutput": {"llm_response": {"usageMetadata": 3}}}, "usageMetadata"),
]


@pytest.mark.parametrize(("said", "field"), WRONG, ids=[field for _, field in WRONG])
def test_a_wrong_field_is_ignored_with_a_warning_that_names_it(
    said: dict[str, Any], field: str
) -> None:
    output, warnings = read_output(said, HookEventName.BeforeTool)
    assert not output.is_blocking
    assert not output.stops
    assert not output.asks
    assert output.tool_input is None
    assert output.llm_request is None
    assert output.llm_response is None
    assert len(warnings) == 1
    assert field in warnings[0]


async def test_the_warning_about_a_wrong_field_names_the_hook(
    workshop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "hookline"):
        result = await workshop.fire(
            "BeforeTool", workshop.says({"continue": "false"}, "sloppy")
        )
    assert not result.should_stop
    assert any(
        "sloppy" in record.getMessage() and "continue" in record.getMessage()
        for record in caplog.records
    )


async def test_additional_context_is_escaped(workshop: Workshop) -> None:
    said = {"hookSpecificOutput": {"additionalContext": "<b> & </b>"}}
    result = await workshop.fire("AfterTool", workshop.says(said))
    assert result.final_output is not None
    assert result.final_output.additional_context == "&lt;b&gt; & &lt;/b&gt;"


async def test_unknown_fields_are_kept(workshop: Workshop) -> None:
    result = await workshop.fire("BeforeTool", workshop.says({"mine": [1]}))
    assert result.final_output is not None
    assert result.final_output.to_wire() == {"decision": "allow", "mine": [1]}


MESSAGES = [{"role": "user", "content": "[redacted]"}]
ANSWER = [{"content": {"parts": ["[redacted]"]}}]
PARTLY: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    *(
        (
            "llm_request",
            {"messages": MESSAGES, key: value},
            {"messages": MESSAGES},
            f"llm_request.{key}: expected",
        )
        for key, value in (
            ("model", None),
            ("model", 5),
            ("config", "x"),
            ("toolConfig", ["x"]),
        )
    ),
    *(
        (
            "llm_request",
            {"messages": MESSAGES, "config": {"topP": 0.5, key: value}},
            {"messages": MESSAGES, "config": {"topP": 0.5}},
            f"llm_request.config.{key}: expected",
        )
        for key, value in (
            ("maxOutputTokens", "4096"),
            ("maxOutputTokens", 1.5),
            ("maxOutputTokens", True),
            ("temperature", "0.5"),
            ("stopSequences", "x"),
            ("stopSequences", ["x", 5]),
            ("seed", {}),
        )
    ),
    (
        "llm_request",
        {"messages": [*MESSAGES, {"role": "user", "content": 5}, "x"]},
        {"messages": MESSAGES},
        "llm_request.messages[1]: content: expected a string",
    ),
    (
        "llm_request",
        {"messages": [{"role": "user", "content": [{"text": "x"}]}]},
        {"messages": []},
        "llm_request.messages[0]: content: expected a string",
    ),
    (
        "llm_response",
        {"candidates": [*ANSWER, 5]},
        {"candidates": [*ANSWER, {"content": {"parts": []}}]},
        "llm_response.candidates[1]: expected an object",
    ),
    (
        "llm_response",
        {"candidates": [{"content": {"parts": ["a", 5]}, "index": "0"}]},
        {"candidates": [{"content": {"parts": ["a"]}}]},
        "llm_response.candidates[0].content.parts[1]: expected a string",
    ),
    (
        "llm_response",
        {"text": "x", "usageMetadata": {"totalTokenCount": "5", "more": 1}},
        {"text": "x", "usageMetadata": {"more": 1}},
        "llm_response.usageMetadata.totalTokenCount: expected a whole number",
    ),
    (
        "toolConfig",
        {"mode": "any", "allowedFunctionNames": ["read", 5]},
        {"allowedFunctionNames": ["read"]},
        "toolConfig.mode: expected one of",
    ),
    (
        "toolConfig",
        {"mode": "ANY", "allowedFunctionNames": [5]},
        {"mode": "ANY", "allowedFunctionNames": []},
        "toolConfig.allowedFunctionNames[0]: expected a string",
    ),
]


@pytest.mark.parametrize(
    ("part", "said", "kept", "warning"), PARTLY, ids=map(str, range(len(PARTLY)))
)
def test_a_wrong_value_inside_a_part_is_ignored_by_itself(
    part: str, said: dict[str, Any], kept: dict[str, Any], warning: str
) -> None:
    """protocol.md#process, issue 12.5: the rest of the change holds."""
    wire = {"hookSpecificOutput": {part: said}}
    output, warnings = read_output(wire, HookEventName.BeforeModel)
    assert output.hook_specific_output == {part: kept}
    assert any(f"hookSpecificOutput.{warning}" in one for one in warnings)


def test_a_number_with_a_fraction_of_zero_is_a_whole_number() -> None:
    config = {"maxOutputTokens": 4096.0, "temperature": 1.0, "seed": None}
    usage = {"totalTokenCount": 5.0}
    parts = {
        "llm_request": {"config": config},
        "llm_response": {"text": None, "usageMetadata": usage},
    }
    wire = {"hookSpecificOutput": parts}
    output, warnings = read_output(wire, HookEventName.AfterModel)
    assert repr(output.llm_request) == repr(
        {"config": {"seed": None, "maxOutputTokens": 4096, "temperature": 1.0}}
    )
    assert repr(output.llm_response) == repr(
        {"text": None, "usageMetadata": {"totalTokenCount": 5}}
    )
    assert warnings == ()


@pytest.mark.parametrize(
    ("said", "warning"),
    [
        (
            {"decison": "block"},
            "decison: unknown key, ignored: did you mean 'decision'?",
        ),
        ({"Decision": "block"}, "did you mean 'decision'?"),
        ({"system_message": "x"}, "did you mean 'systemMessage'?"),
        ({"stopreason": "x"}, "did you mean 'stopReason'?"),
        ({"additionalContext": "x"}, "it belongs in hookSpecificOutput"),
        (
            {"hookSpecificOutput": {"permissionDecison": "deny"}},
            (
                "hookSpecificOutput.permissionDecison: unknown key, ignored: "
                "did you mean 'permissionDecision'?"
            ),
        ),
        (
            {"hookSpecificOutput": {"additionalcontext": "x"}},
            "did you mean 'additionalContext'?",
        ),
        ({"hookSpecificOutput": {"toolInput": {}}}, "did you mean 'tool_input'?"),
        ({"hookSpecificOutput": {"decision": "deny"}}, "it belongs at the top level"),
    ],
    ids=str,
)
def test_an_unknown_key_is_warned_about_with_the_nearest_name(
    said: dict[str, Any], warning: str
) -> None:
    """protocol.md#process, issue 12.4."""
    _, [found] = read_output(said, HookEventName.BeforeTool)
    assert warning in found


def test_other_keys_need_no_warning() -> None:
    said = {"version": 1, "data": {}, "x" * 1000: 1, "hookSpecificOutput": {"note": 1}}
    assert read_output(said, HookEventName.BeforeTool)[1] == ()
