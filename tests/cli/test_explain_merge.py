"""Who gave a field is read off the merge; it must agree with it for any outputs."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.cli.explain import Origin, Part, origins_of
from hookline.engine.merge import aggregate
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


def result_of(event: HookEventName, said: list[dict[str, Any]]) -> ProcessedHookResult:
    results = []
    for number, wire in enumerate(said):
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


def givers(origin: Origin) -> list[Any]:
    return [said for said in origin.said if said.part is Part.GAVE]


@settings(max_examples=150)
@given(st.sampled_from(list(HookEventName)), st.lists(outputs, max_size=4))
def test_whoever_gave_a_field_said_what_came_out(
    event: HookEventName, said: list[dict[str, Any]]
) -> None:
    for origin in origins_of(result_of(event, said)):
        for one in givers(origin):
            assert origin.value is not None
            if isinstance(origin.value, str) and origin.field != "decision":
                assert one.value in origin.value
        if origin.field.startswith(LAST_WINS.get(event, "no field")):
            (giver,) = givers(origin)
            assert giver is origin.said[-1]
            assert giver.value == origin.value


def test_the_first_block_gives_the_decision_and_other_blocks_agree() -> None:
    said = [{"decision": "allow"}, {"decision": "deny"}, {"decision": "block"}]
    (origin,) = origins_of(result_of(HookEventName.BeforeTool, said))
    assert origin.value == "deny"
    assert [one.part for one in origin.said] == [Part.LOST, Part.GAVE, Part.AGREED]


def test_the_strictest_mode_of_tool_selection_wins() -> None:
    said = [
        {
            "hookSpecificOutput": {
                "toolConfig": {"mode": mode, "allowedFunctionNames": names}
            }
        }
        for mode, names in (("ANY", ["a"]), ("AUTO", ["b"]))
    ]
    found = {
        origin.field.rpartition(".")[2]: [one.part for one in origin.said]
        for origin in origins_of(result_of(HookEventName.BeforeToolSelection, said))
    }
    assert found == {
        "mode": [Part.GAVE, Part.LOST],
        "allowedFunctionNames": [Part.GAVE, Part.GAVE],
    }
