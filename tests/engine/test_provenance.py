"""The provenance of each field agrees with the merge, for any outputs."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.engine.merge import aggregate
from hookline.engine.provenance import (
    Contribution,
    FieldProvenance,
    Outcome,
    trace_result,
)
from hookline.protocol.events import HookEventName
from hookline.protocol.outputs import read_output
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
    return [one for one in field.contributions if one.outcome is Outcome.USED]


@settings(max_examples=150)
@given(st.sampled_from(list(HookEventName)), st.lists(outputs, max_size=4))
def test_a_used_value_is_in_the_merged_field(
    event: HookEventName, values: list[dict[str, Any]]
) -> None:
    for field in trace_result(result_of(event, values)):
        for one in used(field):
            assert field.value is not None
            if isinstance(field.value, str) and field.field != "decision":
                assert one.value in field.value
        if field.field.startswith(LAST_WINS.get(event, "no field")):
            (last,) = used(field)
            assert last is field.contributions[-1]
            assert last.value == field.value


def test_the_first_block_sets_the_decision_and_other_blocks_agree() -> None:
    values = [{"decision": "allow"}, {"decision": "deny"}, {"decision": "block"}]
    (field,) = trace_result(result_of(HookEventName.BeforeTool, values))
    assert field.value == "deny"
    assert [one.outcome for one in field.contributions] == [
        Outcome.OVERRIDDEN,
        Outcome.USED,
        Outcome.AGREED,
    ]


def test_the_strictest_mode_of_tool_selection_wins() -> None:
    values = [
        {
            "hookSpecificOutput": {
                "toolConfig": {"mode": mode, "allowedFunctionNames": names}
            }
        }
        for mode, names in (("ANY", ["a"]), ("AUTO", ["b"]))
    ]
    found = {
        field.field.rpartition(".")[2]: [one.outcome for one in field.contributions]
        for field in trace_result(result_of(HookEventName.BeforeToolSelection, values))
    }
    assert found == {
        "mode": [Outcome.USED, Outcome.OVERRIDDEN],
        "allowedFunctionNames": [Outcome.USED, Outcome.USED],
    }
