"""The answers of ``hookline.script`` as JSON, and how ``|`` combines them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline import HookEventName
from hookline.protocol.outputs import read_output
from hookline.script import (
    Output,
    add_context,
    allow,
    ask,
    block,
    clear_context,
    modify_input,
    modify_request,
    modify_response,
    respond,
    restrict_tools,
    stop,
    suppress_output,
    system_message,
)

RESPONSE = {
    "text": "hi",
    "candidates": [
        {
            "content": {"role": "model", "parts": ["hi"]},
            "finishReason": "STOP",
            "index": 0,
        }
    ],
}


@pytest.mark.parametrize(
    ("said", "wire"),
    [
        pytest.param(allow(), {"decision": "allow"}, id="allow"),
        pytest.param(
            allow("fine"), {"decision": "allow", "reason": "fine"}, id="allow-why"
        ),
        pytest.param(block("no"), {"decision": "block", "reason": "no"}, id="block"),
        pytest.param(ask("ok?"), {"decision": "ask", "reason": "ok?"}, id="ask"),
        pytest.param(
            stop("done"), {"continue": False, "stopReason": "done"}, id="stop"
        ),
        pytest.param(system_message("psst"), {"systemMessage": "psst"}, id="message"),
        pytest.param(suppress_output(), {"suppressOutput": True}, id="suppress"),
        pytest.param(
            add_context("c"),
            {"hookSpecificOutput": {"additionalContext": "c"}},
            id="context",
        ),
        pytest.param(
            clear_context(), {"hookSpecificOutput": {"clearContext": True}}, id="clear"
        ),
        pytest.param(
            modify_input({"a-b": 1}, c=2),
            {"hookSpecificOutput": {"tool_input": {"a-b": 1, "c": 2}}},
            id="input",
        ),
        pytest.param(
            modify_request(model="m", config={"temperature": 0}),
            {
                "hookSpecificOutput": {
                    "llm_request": {"model": "m", "config": {"temperature": 0}}
                }
            },
            id="request",
        ),
        pytest.param(
            modify_response("hi"),
            {"hookSpecificOutput": {"llm_response": RESPONSE}},
            id="response",
        ),
        pytest.param(
            respond("hi"),
            {
                "decision": "block",
                "reason": "answered by a hook",
                "hookSpecificOutput": {"llm_response": RESPONSE},
            },
            id="respond",
        ),
        pytest.param(
            restrict_tools(["a", "b"]),
            {
                "hookSpecificOutput": {
                    "toolConfig": {"mode": "AUTO", "allowedFunctionNames": ["a", "b"]}
                }
            },
            id="tools",
        ),
        pytest.param(
            restrict_tools([]),
            {
                "hookSpecificOutput": {
                    "toolConfig": {"mode": "NONE", "allowedFunctionNames": []}
                }
            },
            id="no-tools",
        ),
        pytest.param(
            restrict_tools("a", mode="ANY"),
            {
                "hookSpecificOutput": {
                    "toolConfig": {"mode": "ANY", "allowedFunctionNames": ["a"]}
                }
            },
            id="one-tool",
        ),
    ],
)
def test_answer_is_spelt_as_in_the_protocol(said: Output, wire: dict[str, Any]) -> None:
    assert said == wire
    assert json.loads(json.dumps(said)) == wire


@pytest.mark.parametrize(
    "said",
    [modify_response("hi"), respond("hi"), modify_request(messages=[])],
    ids=["modify_response", "respond", "modify_request"],
)
def test_model_answers_are_accepted_by_the_reader(said: Output) -> None:
    """protocol.md#translation: the answers have the stable shape."""
    _, warnings = read_output(said, HookEventName.BeforeModel)
    assert warnings == ()


def test_reason_of_another_type_still_blocks() -> None:
    """A hook that passes its exception must not crash, which may allow."""
    assert block(ValueError("bad"))["reason"] == "bad"  # type: ignore[arg-type]


def test_or_merges_specific_output_key_by_key() -> None:
    said = modify_input(a=1) | modify_input(b=2) | add_context("c") | block("no")
    assert said == {
        "decision": "block",
        "reason": "no",
        "hookSpecificOutput": {
            "tool_input": {"a": 1, "b": 2},
            "additionalContext": "c",
        },
    }
    assert isinstance(said, Output)


def test_or_joins_texts_in_order() -> None:
    said = system_message("1") | system_message("2") | add_context("a")
    said |= add_context("b")
    assert said["systemMessage"] == "1\n2"
    assert said["hookSpecificOutput"] == {"additionalContext": "a\nb"}


def test_or_takes_a_plain_dict_and_refuses_other_things() -> None:
    assert allow() | {"systemMessage": "x"} == {
        "decision": "allow",
        "systemMessage": "x",
    }
    with pytest.raises(TypeError):
        allow() | "no"  # type: ignore[operator]


def test_or_leaves_both_sides_as_they_were() -> None:
    left, right = modify_input(a=1), modify_input(a=2)
    assert (left | right) == modify_input(a=2)
    assert (left, right) == (modify_input(a=1), modify_input(a=2))


DECISIONS = st.sampled_from([allow("a"), ask("k"), block("b"), stop("s"), Output()])


@given(left=DECISIONS, right=DECISIONS)
@settings(max_examples=50)
def test_or_never_softens_a_verdict(left: Output, right: Output) -> None:
    both = left | right
    decisions = {left.get("decision"), right.get("decision")}
    for strict in ("block", "ask", "allow"):
        if strict in decisions:
            assert both["decision"] == strict
            assert both["reason"] == {"block": "b", "ask": "k", "allow": "a"}[strict]
            break
    assert (both.get("continue") is False) == (
        False in (left.get("continue"), right.get("continue"))
    )


def test_module_imports_nothing_of_hookline() -> None:
    """It needs only the standard library (DESIGN)."""
    import hookline.script

    source = Path(hookline.script.__file__).read_text("utf-8")
    assert "import hookline" not in source
    assert "from hookline" not in source
    assert "from ." not in source
