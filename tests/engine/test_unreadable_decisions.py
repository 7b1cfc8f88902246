"""A decision that is none of the words is an answer that cannot be read.

protocol.md#process: the hook has failed, cause ``output``, and its policy applies.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from hookline import Config, HookEventName, HookSystem, Settings
from hookline.bus import HookBusClient, InMemoryMessageBus, RemoteHooks
from hookline.protocol.results import FailureCause, ProcessedHookResult
from tests.support.workshop import INPUTS, TOOL, Workshop

WORDS = ["reject", "no", "", " ", "DENIED", False, True, 0, 1, [], {}, ["deny"], 1.5]
UNREADABLE = [
    word for word in WORDS if not (isinstance(word, str) and not word.strip())
]
PLACES = ["decision", "permissionDecision", "hookSpecificOutput.permissionDecision"]


def answer(place: str, word: object, **more: Any) -> dict[str, Any]:
    specific: dict[str, Any] = {"tool_input": {"path": "b"}}
    specific["additionalContext"] = "ctx"
    said: dict[str, Any] = {
        "systemMessage": "m",
        "hookSpecificOutput": specific,
        **more,
    }
    if place.startswith("hookSpecificOutput."):
        specific["permissionDecision"] = word
    else:
        said[place] = word
    return said


async def fired_in_code(
    said: Any, event: HookEventName = HookEventName.BeforeTool, **options: Any
) -> ProcessedHookResult:
    config = Config(settings=Settings.from_mapping({}))
    hooks = HookSystem(config)
    hooks.on(event, name="guard", **options)(lambda _event: said)
    async with config:
        return await config.session().fire(event, INPUTS[event])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("word", UNREADABLE, ids=repr)
async def test_unknown_decision_is_a_failed_hook_whose_policy_applies(
    place: str, word: object
) -> None:
    """protocol.md#process: of any type; messages and context count, changes do not."""
    said = answer(place, word)
    allowed = await fired_in_code(said)
    [result] = allowed.aggregated.hook_results
    assert (result.success, result.cause) == (False, FailureCause.OUTPUT)
    assert result.error is not None
    assert place in result.error
    assert (allowed.blocked, allowed.ask, allowed.should_stop) == (False, False, False)
    assert allowed.system_message == "m"
    final = allowed.final_output
    assert final is not None
    assert (final.additional_context, final.modified_tool_input) == ("ctx", None)

    blocked = await fired_in_code(said, on_error="block")
    assert blocked.blocked
    assert blocked.system_message == "m"

    stopped = await fired_in_code({**said, "continue": False, "stopReason": "enough"})
    assert (stopped.should_stop, stopped.stop_reason) == (True, "enough")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("word", ["", "  ", "\n", None])
async def test_blank_decision_is_none(place: str, word: object) -> None:
    """protocol.md#process: blank text is null, and the rest of the answer counts."""
    result = await fired_in_code(answer(place, word), on_error="block")
    assert result.aggregated.success
    assert not result.blocked
    assert result.final_output is not None
    changed = {"path": "b", "content": "hello"}
    assert result.final_output.modified_tool_input == changed


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("word", "verdict"),
    [
        *((word, "blocked") for word in ("DENY", "Deny ", "BLOCK", "\tblock\n")),
        *((word, "ask") for word in ("Ask", " ASK ")),
        *((word, "allowed") for word in ("ALLOW", "Approve", "allow ")),
    ],
)
async def test_decision_is_read_without_regard_to_case_and_blanks(
    place: str, word: str, verdict: str
) -> None:
    """protocol.md#process."""
    result = await fired_in_code(answer(place, word, reason="r"))
    told = "blocked" if result.blocked else "ask" if result.ask else "allowed"
    assert (told, result.aggregated.success) == (verdict, True)


async def test_stricter_of_two_permission_decisions_counts() -> None:
    """protocol.md#process: one is at the top level, the other beside the event."""
    for top, inner in (("deny", "allow"), ("allow", "DENY"), ("deny", "reject")):
        specific = {"permissionDecision": inner}
        said = {"permissionDecision": top, "hookSpecificOutput": specific}
        assert (await fired_in_code(said)).blocked, said


@pytest.mark.parametrize("event", HookEventName)
async def test_unknown_decision_closes_every_event_as_its_policy_says(
    event: HookEventName, workshop: Workshop
) -> None:
    """protocol.md#results: the closed form of the event, and the hook's context."""
    context = {"additionalContext": "ctx"}
    said = {"decision": "reject", "hookSpecificOutput": context, "systemMessage": "m"}
    hook = workshop.says(said) | {"onError": "block"}
    result = await workshop.fire(event, hook)
    [hook_result] = result.aggregated.hook_results
    assert hook_result.cause is FailureCause.OUTPUT
    final = result.final_output
    assert final is not None
    assert result.system_message == "m"
    if event in ("AfterTool", "SessionStart", "BeforeAgent"):
        assert "ctx" in (final.additional_context or "")
    closed = {
        HookEventName.AfterTool: final.withholds_result,
        HookEventName.AfterModel: "reject" in str(final.llm_response),
        HookEventName.BeforeToolSelection: (final.tool_config or {}).get("mode")
        == "NONE",
    }
    advisory = ("SessionStart", "SessionEnd", "Notification", "PreCompress")
    assert closed.get(event, result.blocked) is (event not in advisory)


def kinds(workshop: Workshop) -> dict[str, dict[str, Any]]:
    rule = {"type": "rule", "when": "true", "then": {"decision": "reject"}}
    return {
        "command": workshop.says({"decision": "reject"}),
        "text in text": workshop.says(json.dumps({"decision": "reject"})),
        "rule": rule,
        "claude": workshop.says({"decision": "reject"}) | {"dialect": "claude"},
        "gemini": workshop.says({"decision": "reject"}) | {"dialect": "gemini"},
    }


@pytest.mark.parametrize(
    "kind", ["command", "text in text", "rule", "claude", "gemini"]
)
async def test_unknown_decision_blocks_whatever_the_type_of_the_hook(
    kind: str, workshop: Workshop
) -> None:
    """protocol.md#process, protocol.md#dialects: the same for hooks of other hosts."""
    hook = kinds(workshop)[kind] | {"name": "guard", "onError": "block"}
    result = await workshop.fire("BeforeTool", hook)
    assert result.blocked
    assert result.aggregated.hook_results[0].cause is FailureCause.OUTPUT
    observed = await workshop.fire("BeforeTool", hook | {"mode": "observe"})
    assert not observed.blocked
    assert observed.aggregated.hook_results[0].would_block


@pytest.mark.parametrize("word", ["allow", "Allow", "approve"])
async def test_words_of_claude_are_readable_in_its_dialect(
    word: str, workshop: Workshop
) -> None:
    """protocol.md#dialects."""
    for said in (
        {"decision": word},
        {"hookSpecificOutput": {"permissionDecision": word}},
    ):
        hook = workshop.says(said) | {"dialect": "claude", "onError": "block"}
        result = await workshop.fire("BeforeTool", hook)
        assert (result.blocked, result.aggregated.success) == (False, True)


async def test_defer_of_claude_is_not_a_failure(workshop: Workshop) -> None:
    """protocol.md#dialects: a word that only Claude Code has."""
    said = {"hookSpecificOutput": {"permissionDecision": "defer"}}
    hook = workshop.says(said) | {"dialect": "claude", "onError": "block"}
    result = await workshop.fire("BeforeTool", hook)
    assert (result.blocked, result.aggregated.success) == (False, True)


async def test_unknown_decision_changes_nothing_for_the_next_hook_of_a_chain(
    workshop: Workshop,
) -> None:
    """protocol.md#several-hooks."""
    first = workshop.says(answer("decision", "reject"), "first")
    second = workshop.runs("cat >seen.json", "second")
    result = await workshop.fire("BeforeTool", first, second, sequential=True)
    assert not result.blocked
    assert workshop.seen()["tool_input"] == TOOL["tool_input"]


async def test_unknown_decision_in_a_recheck_applies_the_policy(
    workshop: Workshop,
) -> None:
    """protocol.md#several-hooks: a guard that is asked again."""
    told = (
        'cat >/dev/null; [ -z "$HOOKLINE_RECHECK" ] || echo \'{"decision": "reject"}\''
    )
    guard = workshop.runs(told, "guard", onError="block")
    changes = workshop.says({"hookSpecificOutput": {"tool_input": {"path": "b"}}})
    result = await workshop.fire("BeforeTool", guard, changes)
    assert result.blocked
    assert result.aggregated.hook_results[-1].recheck


async def test_stricter_of_a_repeated_decision_counts_in_any_case(
    workshop: Workshop,
) -> None:
    """protocol.md#process: a key that an answer gives twice."""
    for first, second in (("DENY", "allow"), ("allow", "Deny"), ("reject", "allow")):
        text = f'{{"decision": "{first}", "decision": "{second}"}}'
        hook = workshop.runs(f"cat >/dev/null; echo '{text}'", onError="block")
        assert (await workshop.fire("BeforeTool", hook)).blocked, text


async def test_unknown_decision_means_the_same_over_the_bus() -> None:
    """protocol.md#bus."""
    bus = InMemoryMessageBus()
    hooks = HookSystem(Config(settings=Settings.from_mapping({})), bus)
    said = answer("permissionDecision", "reject")
    hooks.on("BeforeTool", name="open")(lambda _event: said)
    async with hooks:
        remote = RemoteHooks(HookBusClient(bus))
        result = await remote.fire("BeforeTool", TOOL)
    [hook_result] = result.aggregated.hook_results
    assert (result.blocked, result.system_message) == (False, "m")
    assert not hook_result.success
    assert result.final_output is not None
    assert result.final_output.modified_tool_input is None
