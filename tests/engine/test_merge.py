"""protocol.md#merging: how several outputs become one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.engine.merge import merge_outputs
from hookline.protocol.events import TRAITS, HookEventName, Merge
from hookline.protocol.outputs import HookOutput, read_output
from hookline.settings.model import ToolSelection
from tests.support.workshop import Workshop

Wire = dict[str, Any]


def merged(event: HookEventName, *said: Wire, **options: Any) -> Wire:
    outputs = [read_output(one, event)[0] for one in said]
    return merge_outputs(outputs, TRAITS[event].merge, **options).to_wire()


def any_blocks(*said: Wire) -> Wire:
    return merged(HookEventName.BeforeTool, *said)


def fields(*said: Wire) -> Wire:
    return merged(HookEventName.BeforeModel, *said)


def tools(*configs: Wire, how: ToolSelection = ToolSelection.UNION) -> Wire:
    said = [{"hookSpecificOutput": {"toolConfig": config}} for config in configs]
    found = merged(HookEventName.BeforeToolSelection, *said, tool_selection=how)
    config: Wire = found["hookSpecificOutput"]["toolConfig"]
    return config


def test_any_block_blocks_and_the_first_blocking_decision_is_kept() -> None:
    said = [{"decision": d} for d in ("allow", "block", "ask", "deny")]
    assert any_blocks(*said)["decision"] == "block"


def test_any_ask_asks_where_none_blocks() -> None:
    assert (
        any_blocks({"decision": "approve"}, {"decision": "ask"}, {})["decision"]
        == "ask"
    )


@pytest.mark.parametrize("event", ["BeforeTool", "BeforeAgent", "BeforeModel"])
async def test_reason_that_several_hooks_give_is_said_once(
    workshop: Workshop, event: str
) -> None:
    """protocol.md#merging: identical reasons once, and in plan order."""
    answers = [{"decision": "deny", "reason": one} for one in ("b", "a", "b", "a")]
    hooks = [
        {"type": "rule", "name": str(number), "when": "true", "then": answer}
        for number, answer in enumerate(answers)
    ]
    result = await workshop.fire(event, *hooks)
    assert result.reason == "b\na"
    assert result.final_output is not None
    assert result.final_output.reason == "b\na"


def test_no_decision_allows_unless_stopped() -> None:
    assert any_blocks({}, {})["decision"] == "allow"
    assert "decision" not in any_blocks({"continue": False}, {"decision": "allow"})


def test_continue_false_anywhere_stops() -> None:
    assert any_blocks({"continue": True}, {"continue": False})["continue"] is False


def test_suppress_output_if_any() -> None:
    assert any_blocks({"suppressOutput": True}, {"suppressOutput": False})[
        "suppressOutput"
    ]


def test_texts_are_joined_with_newlines_in_plan_order() -> None:
    def said(n: int) -> Wire:
        return {
            "stopReason": f"s{n}",
            "systemMessage": f"m{n}",
            "reason": f"r{n}",
            "hookSpecificOutput": {"additionalContext": f"c{n}"},
        }

    found = any_blocks(said(1), {}, said(2))
    assert found["stopReason"] == "s1\ns2"
    assert found["systemMessage"] == "m1\nm2"
    assert found["reason"] == "r1\nr2"
    assert found["hookSpecificOutput"]["additionalContext"] == "c1\nc2"


def test_reasons_are_those_of_the_blocking_hooks_if_any_blocks() -> None:
    found = any_blocks(
        {"decision": "allow", "reason": "fine"},
        {"decision": "deny", "reason": "one"},
        {"decision": "block", "reason": "two"},
    )
    assert found["reason"] == "one\ntwo"


def test_tool_input_keys_of_later_hooks_win() -> None:
    def said(**keys: Any) -> Wire:
        return {"hookSpecificOutput": {"tool_input": keys}}

    found = any_blocks(said(a=1, b=1), said(b=2))
    assert found["hookSpecificOutput"]["tool_input"] == {"a": 1, "b": 2}


def test_clear_context_if_any() -> None:
    said = [{"hookSpecificOutput": {"clearContext": flag}} for flag in (True, False)]
    found = merged(HookEventName.AfterAgent, *said)
    assert found["hookSpecificOutput"]["clearContext"] is True


async def test_parallel_hooks_that_disagree_on_a_key_are_warned_about(
    workshop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    def said(content: str) -> Wire:
        return {"hookSpecificOutput": {"tool_input": {"content": content}}}

    await workshop.fire(
        "BeforeTool",
        workshop.says(said("a"), "first"),
        workshop.says(said("b"), "next"),
    )
    told = [r.getMessage() for r in caplog.records if "disagree" in r.getMessage()]
    assert len(told) == 1
    assert all(word in told[0] for word in ("first", "next", "tool_input.content"))


async def test_a_chain_that_changes_a_key_twice_is_not_a_conflict(
    workshop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = [
        workshop.says({"hookSpecificOutput": {"tool_input": {"content": c}}}, c)
        for c in "ab"
    ]
    await workshop.fire("BeforeTool", *hooks, sequential=True)
    assert not [r for r in caplog.records if "disagree" in r.getMessage()]


def test_fields_of_later_outputs_replace_earlier_ones() -> None:
    found = fields(
        {"systemMessage": "a", "x": 1, "reason": "r"}, {"systemMessage": "b"}
    )
    assert found == {"systemMessage": "b", "x": 1, "reason": "r"}


def test_model_parts_merge_key_by_key_and_config_within_them() -> None:
    def said(**request: Any) -> Wire:
        return {"hookSpecificOutput": {"llm_request": request}}

    found = fields(
        said(model="a", config={"temperature": 0, "topP": 1}),
        said(config={"topP": 2}),
        {"hookSpecificOutput": {"x": 1}},
    )
    assert found["hookSpecificOutput"] == {
        "llm_request": {"model": "a", "config": {"temperature": 0, "topP": 2}},
        "x": 1,
    }


def test_a_block_survives_a_later_allow_with_its_reason() -> None:
    found = fields(
        {"decision": "block", "reason": "budget"}, {"decision": "allow", "reason": "ok"}
    )
    assert (found["decision"], found["reason"]) == ("block", "budget")


def test_a_stop_survives_a_later_continue_with_its_reason() -> None:
    found = fields(
        {"continue": False, "stopReason": "enough"},
        {"continue": True, "stopReason": "-"},
    )
    assert (found["continue"], found["stopReason"]) == (False, "enough")


@pytest.mark.parametrize(
    ("modes", "mode"),
    [
        (["AUTO", "ANY"], "ANY"),
        (["NONE", "ANY"], "NONE"),
        (["AUTO", "NONE"], "NONE"),
        ([None], "AUTO"),
    ],
)
def test_none_beats_any_beats_auto(modes: list[str | None], mode: str) -> None:
    configs = [{"mode": m, "allowedFunctionNames": ["a"]} for m in modes]
    assert tools(*configs)["mode"] == mode


def test_names_are_united_and_sorted_and_empty_under_none() -> None:
    some = {"mode": "ANY", "allowedFunctionNames": ["z", "b"]}
    more = {"allowedFunctionNames": ["a", "b"]}
    assert tools(some, more)["allowedFunctionNames"] == ["a", "b", "z"]
    assert tools(some, {"mode": "NONE"})["allowedFunctionNames"] == []


def test_a_hook_that_names_no_tool_adds_none() -> None:
    some = {"mode": "ANY", "allowedFunctionNames": ["a"]}
    for how in ToolSelection:
        assert tools(some, {"mode": "AUTO"}, how=how) == some


def test_intersection_keeps_common_names_and_an_empty_one_is_none() -> None:
    one = {"mode": "ANY", "allowedFunctionNames": ["a", "b"]}
    two = {"mode": "ANY", "allowedFunctionNames": ["b", "c"]}
    other = {"mode": "ANY", "allowedFunctionNames": ["d"]}
    intersect = ToolSelection.INTERSECT
    assert tools(one, two, how=intersect)["allowedFunctionNames"] == ["b"]
    assert tools(one, other, how=intersect)["mode"] == "NONE"


async def test_intersection_is_asked_for_in_settings(workshop: Workshop) -> None:
    def said(*names: str) -> Wire:
        config = {"mode": "ANY", "allowedFunctionNames": list(names)}
        return {"hookSpecificOutput": {"toolConfig": config}}

    result = await workshop.fire(
        "BeforeToolSelection",
        workshop.says(said("a", "b"), "x"),
        workshop.says(said("b"), "y"),
        config={"toolSelection": "intersect"},
    )
    assert result.final_output is not None
    assert result.final_output.tool_config == {
        "mode": "ANY",
        "allowedFunctionNames": ["b"],
    }


def test_stop_and_messages_survive_tool_selection() -> None:
    """HOOK-181."""
    found = merged(
        HookEventName.BeforeToolSelection,
        {"continue": False, "stopReason": "halt", "systemMessage": "a"},
        {"hookSpecificOutput": {"toolConfig": {"mode": "AUTO"}}, "systemMessage": "b"},
    )
    assert (found["continue"], found["stopReason"]) == (False, "halt")
    assert found["systemMessage"] == "a\nb"


def test_last_wins_field_by_field() -> None:
    found = merged(
        HookEventName.Notification,
        {"systemMessage": "a", "hookSpecificOutput": {"x": 1}, "mine": 1},
        {"systemMessage": "b", "hookSpecificOutput": {"y": 2}},
    )
    assert found == {"systemMessage": "b", "hookSpecificOutput": {"y": 2}, "mine": 1}


texts = st.text(alphabet="ab", min_size=1, max_size=3)
outputs = st.builds(
    HookOutput,
    decision=st.sampled_from([None, "allow", "ask", "block", "deny"]).map(
        lambda d: read_output({"decision": d}, HookEventName.BeforeTool)[0].decision
    ),
    reason=st.none() | texts,
    continues=st.none() | st.booleans(),
    stop_reason=st.none() | texts,
    suppress_output=st.none() | st.booleans(),
    system_message=st.none() | texts,
    hook_specific_output=st.fixed_dictionaries(
        {},
        optional={
            "additionalContext": texts,
            "tool_input": st.dictionaries(texts, st.integers(), max_size=3),
            "llm_request": st.fixed_dictionaries(
                {}, optional={"config": st.dictionaries(texts, st.integers())}
            ),
        },
    ),
)
several = st.lists(outputs, min_size=1, max_size=4)


@given(several, st.sampled_from(Merge))
def test_a_stop_by_any_hook_survives_every_merge(
    said: list[HookOutput], merge: Merge
) -> None:
    if merge is not Merge.LAST_WINS:
        assert merge_outputs(said, merge).stops is any(o.stops for o in said)


@given(several, st.sampled_from([Merge.ANY_BLOCKS, Merge.FIELDS]))
def test_a_block_by_any_hook_survives_in_any_position(
    said: list[HookOutput], merge: Merge
) -> None:
    blocks = any(output.is_blocking for output in said)
    assert merge_outputs(said, merge).is_blocking is blocks
    assert merge_outputs(said[::-1], merge).is_blocking is blocks


@given(several, several)
def test_or_merge_is_associative_in_all_but_reasons(
    left: list[HookOutput], right: list[HookOutput]
) -> None:
    """Reasons are left out: a merged block keeps only those of the blocking hooks."""
    at_once = merge_outputs([*left, *right], Merge.ANY_BLOCKS)
    halves = [merge_outputs(half, Merge.ANY_BLOCKS) for half in (left, right)]
    in_steps = merge_outputs(halves, Merge.ANY_BLOCKS)
    for name in (
        "continues",
        "stop_reason",
        "suppress_output",
        "system_message",
        "hook_specific_output",
        "is_blocking",
    ):
        assert getattr(at_once, name) == getattr(in_steps, name)


@given(several, several)
def test_field_merge_is_associative_in_what_it_replaces(
    left: list[HookOutput], right: list[HookOutput]
) -> None:
    at_once = merge_outputs([*left, *right], Merge.FIELDS)
    halves = [merge_outputs(half, Merge.FIELDS) for half in (left, right)]
    in_steps = merge_outputs(halves, Merge.FIELDS)
    for name in ("system_message", "hook_specific_output", "is_blocking", "stops"):
        assert getattr(at_once, name) == getattr(in_steps, name)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
known_fields = st.sampled_from(
    [
        *("decision", "reason", "continue", "stopReason", "suppressOutput"),
        *("systemMessage", "hookSpecificOutput"),
    ]
)
specific_fields = st.sampled_from(
    [
        *("additionalContext", "tool_input", "clearContext", "llm_request"),
        *("llm_response", "toolConfig", "permissionDecision"),
    ]
)
wires = st.dictionaries(
    known_fields,
    json_values | st.dictionaries(specific_fields, json_values, max_size=3),
    max_size=5,
)


@given(st.lists(wires, min_size=1, max_size=3), st.sampled_from(HookEventName))
def test_nothing_raises_on_any_json(said: list[Wire], event: HookEventName) -> None:
    found = [read_output(one, event)[0] for one in said]
    final = merge_outputs(found, TRAITS[event].merge)
    assert isinstance(final.to_wire(), dict)
    assert final.additional_context is None or "<" not in final.additional_context


@pytest.mark.parametrize("event", ["BeforeTool", "BeforeModel", "Notification"])
async def test_results_of_all_hooks_are_merged_by_the_rule_of_their_event(
    workshop: Workshop, event: str
) -> None:
    """HOOK-166."""
    result = await workshop.fire(
        event,
        workshop.says({"systemMessage": "a", "reason": "r"}, "first"),
        workshop.runs("exit 7", "broken"),
        workshop.says({"systemMessage": "b"}, "last"),
    )
    aggregated = result.aggregated
    names = [hook.hook_name for hook in aggregated.hook_results]
    assert names == ["first", "broken", "last"]
    assert [error.hook_name for error in aggregated.errors] == ["broken"]
    assert len(aggregated.all_outputs) == 2
    rule = TRAITS[HookEventName(event)].merge
    assert aggregated.final_output == merge_outputs(aggregated.all_outputs, rule)
