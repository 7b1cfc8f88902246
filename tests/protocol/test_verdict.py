"""The verdict in a word: what beats what; how it is shown is in the pins."""

from __future__ import annotations

import pytest

from hookline.protocol.events import HookEventName
from hookline.protocol.outputs import read_output
from hookline.protocol.results import (
    AggregatedHookResult,
    FailureCause,
    HookExecutionResult,
    process_common_hook_output_fields,
)
from hookline.protocol.verdict import event_verdict, hook_verdict

E = HookEventName
CHANGE = {"hookSpecificOutput": {"tool_input": {"path": "b"}}}


@pytest.mark.parametrize(
    ("event", "wire", "word", "reason"),
    [
        (E.BeforeTool, {}, "allowed", None),
        (E.BeforeTool, CHANGE, "changed", None),
        (E.AfterTool, CHANGE, "allowed", None),
        (
            E.AfterTool,
            {"hookSpecificOutput": {"withholdResult": True}},
            "changed",
            None,
        ),
        (E.BeforeTool, CHANGE | {"decision": "ask", "reason": "ok?"}, "ask", "ok?"),
        (E.BeforeTool, {"decision": "ask", "systemMessage": "ok?"}, "ask", "ok?"),
        (E.BeforeTool, CHANGE | {"decision": "deny", "reason": "no"}, "blocked", "no"),
        (E.BeforeTool, {"decision": "deny"}, "blocked", "No reason provided"),
        (
            E.BeforeTool,
            {
                "decision": "deny",
                "reason": "no",
                "continue": False,
                "stopReason": "end",
            },
            "stopped",
            "end",
        ),
    ],
)
def test_verdict_of_an_event_and_of_its_hook(
    event: HookEventName, wire: dict[str, object], word: str, reason: str | None
) -> None:
    output, _ = read_output(wire, event)
    hook = HookExecutionResult(
        hook_name="h",
        hook_type="rule",
        source="user",
        event_name=event,
        success=True,
        output=output,
    )
    result = process_common_hook_output_fields(
        AggregatedHookResult(final_output=output, all_outputs=[output]), event
    )
    assert (hook_verdict(hook).word, hook_verdict(hook).reason) == (word, reason)
    merged = event_verdict(event, result)
    if (
        word != "changed" or event is not E.BeforeTool
    ):  # the merge makes the whole input
        assert (merged.word, merged.reason) == (word, reason)


def test_failure_is_said_beside_the_block_that_a_policy_makes_of_it() -> None:
    output, _ = read_output({"decision": "deny", "reason": "closed"}, E.BeforeTool)
    hook = HookExecutionResult(
        hook_name="h",
        hook_type="rule",
        source="user",
        event_name=E.BeforeTool,
        success=False,
        cause=FailureCause.TIMEOUT,
        error="timed out",
    )
    assert (hook_verdict(hook).word, hook_verdict(hook).reason) == (
        "failed",
        "timed out",
    )
    closed = HookExecutionResult(
        hook_name="h",
        hook_type="rule",
        source="user",
        event_name=E.BeforeTool,
        success=False,
        cause=FailureCause.TIMEOUT,
        error="timed out",
        output=output,
    )
    assert hook_verdict(closed).word == "blocked"
    assert hook_verdict(closed).failed
