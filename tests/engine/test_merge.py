"""protocol.md#merging, for any outputs: what survives, and the provenance of fields.

The rules by example are in ``tests/pins/engine/merge.json``.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.engine.explain import (
    Contribution,
    FieldProvenance,
    Outcome,
    trace_result,
)
from hookline.engine.merge import aggregate, merge_outputs
from hookline.protocol.events import HookEventName, Merge
from hookline.protocol.outputs import HookOutput, read_output
from hookline.protocol.results import (
    HookExecutionResult,
    ProcessedHookResult,
    process_common_hook_output_fields,
)

texts = st.sampled_from(["a", "b", "c", "long words"])
outputs = st.fixed_dictionaries(
    {},
    optional={
        "decision": st.sampled_from(["allow", "ask", "block", "deny"]),
        "reason": texts,
        "continue": st.booleans(),
        "stopReason": texts,
        "suppressOutput": st.booleans(),
        "systemMessage": texts,
        "hookSpecificOutput": st.fixed_dictionaries(
            {},
            optional={
                "additionalContext": texts,
                "tool_input": st.dictionaries(texts, st.integers(0, 3), max_size=3),
                "toolConfig": st.fixed_dictionaries(
                    {
                        "mode": st.sampled_from(["NONE", "ANY", "AUTO"]),
                        "allowedFunctionNames": st.lists(texts, max_size=2),
                    }
                ),
                "llm_request": st.fixed_dictionaries(
                    {}, optional={"model": texts, "config": st.just({"topK": 1})}
                ),
            },
        ),
    },
)
several = st.lists(
    outputs.map(lambda wire: read_output(wire, HookEventName.BeforeTool)[0]),
    min_size=1,
    max_size=4,
)
LAST_WINS = {
    HookEventName.BeforeTool: "hookSpecificOutput.tool_input.",
    HookEventName.BeforeModel: "hookSpecificOutput.llm_request.model",
}


def result_of(
    event: HookEventName, values: list[dict[str, Any]]
) -> ProcessedHookResult:
    results = []
    for number, wire in enumerate(values):
        output, _ = read_output(wire, event)
        results.append(
            HookExecutionResult(
                hook_name=f"h{number}",
                hook_type="command",
                source="project",
                event_name=event,
                success=True,
                output=output,
            )
        )
    aggregated = aggregate(results, event, {"tool_input": {}}, 0.0)
    return process_common_hook_output_fields(aggregated, event)


def used(field: FieldProvenance) -> list[Contribution]:
    return [part for part in field.contributions if part.outcome is Outcome.USED]


@settings(max_examples=150)
@given(st.sampled_from(list(HookEventName)), st.lists(outputs, max_size=4))
def test_used_value_is_in_the_merged_field(
    event: HookEventName, values: list[dict[str, Any]]
) -> None:
    for field in trace_result(result_of(event, values)):
        for part in used(field):
            assert field.value is not None
            if isinstance(field.value, str) and field.field != "decision":
                assert part.value in field.value
        if field.field.startswith(LAST_WINS.get(event, "no field")):
            (last,) = used(field)
            assert last is field.contributions[-1]
            assert last.value == field.value


def parts(event: HookEventName, *values: dict[str, Any]) -> dict[str, list[str]]:
    """What became of the value of each hook, by field."""
    return {
        field.field.rpartition(".")[2]: [part.outcome for part in field.contributions]
        for field in trace_result(result_of(event, list(values)))
    }


def test_part_of_each_hook_in_a_decision_and_in_tool_selection() -> None:
    """The first block sets the decision, and the strictest mode wins."""
    decisions = [{"decision": word} for word in ("allow", "deny", "block")]
    assert parts(HookEventName.BeforeTool, *decisions) == {
        "decision": ["lost", "gave", "agreed"]
    }
    selections = [
        {"toolConfig": {"mode": mode, "allowedFunctionNames": [name]}}
        for mode, name in (("ANY", "a"), ("AUTO", "b"))
    ]
    outputs = [{"hookSpecificOutput": selection} for selection in selections]
    assert parts(HookEventName.BeforeToolSelection, *outputs) == {
        "mode": ["gave", "lost"],
        "allowedFunctionNames": ["gave", "gave"],
    }


@given(several, st.sampled_from([Merge.ANY_BLOCKS, Merge.FIELDS]))
def test_stop_and_a_block_by_any_hook_survive_in_any_position(
    outputs_of_hooks: list[HookOutput], merge: Merge
) -> None:
    for outputs_in_order in (outputs_of_hooks, outputs_of_hooks[::-1]):
        merged = merge_outputs(outputs_in_order, merge)
        assert merged.is_blocking is any(
            output.is_blocking for output in outputs_of_hooks
        )
        assert merged.stops is any(output.stops for output in outputs_of_hooks)


REASONS = {"continues", "stop_reason", "suppress_output"}


@given(several, several, st.sampled_from([Merge.ANY_BLOCKS, Merge.FIELDS]))
def test_merge_is_associative_in_all_but_reasons(
    left: list[HookOutput], right: list[HookOutput], merge: Merge
) -> None:
    """Reasons are left out: a merged block keeps only those of the blocking hooks."""
    at_once = merge_outputs([*left, *right], merge)
    halves = [merge_outputs(half, merge) for half in (left, right)]
    in_steps = merge_outputs(halves, merge)
    names = {"system_message", "hook_specific_output", "is_blocking", "stops"}
    for name in names | (REASONS if merge is Merge.ANY_BLOCKS else set()):
        assert getattr(at_once, name) == getattr(in_steps, name)
