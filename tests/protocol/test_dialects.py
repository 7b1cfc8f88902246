"""Expressions of other hosts, and inputs that their hooks give back.

protocol.md#dialects; what hooks of a dialect are shown is in ``tests/pins/protocol``.
The translation itself is asked: any input that a model makes up has to survive it.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.protocol.dialects import (
    CLAUDE,
    CLAUDE_TOOLS,
    GEMINI,
    GEMINI_TOOLS,
    our_output,
    python_expression,
    shown_input,
)
from hookline.protocol.events import HookEventName


@given(st.text(st.sampled_from("ab|.*+?()[]^$\\<>=!kPn{}1,-"), max_size=20))
def test_translating_an_expression_never_raises_and_happens_once(text: str) -> None:
    once = python_expression(text)
    assert isinstance(once, str)
    if "(?<" not in text and "[" not in text and "\\" not in text:
        assert once == text


TOOLS = sorted({our for ours in CLAUDE_TOOLS.values() for our in ours})
TOOLS += sorted({our for ours in GEMINI_TOOLS.values() for our in ours})
KEYS = ["file_path", "absolute_path", "path", "content", "pattern", "x"]
tool_inputs = st.dictionaries(
    st.sampled_from(KEYS), st.none() | st.text(max_size=5), max_size=4
)


@given(tool=st.sampled_from(TOOLS), tool_input=tool_inputs)
@settings(max_examples=300)
def test_input_that_a_hook_gives_back_unchanged_is_the_input(
    tool: str, tool_input: dict[str, Any]
) -> None:
    event = HookEventName.BeforeTool
    event_input = {"tool_name": tool, "tool_input": tool_input}
    seen = shown_input(CLAUDE, event, event_input)["tool_input"]
    answer = {"hookSpecificOutput": {"updatedInput": seen}}
    ours = our_output(CLAUDE, event, answer, event_input)["hookSpecificOutput"]
    assert ours == {"tool_input": tool_input, "replacesToolInput": True}
    seen = shown_input(GEMINI, event, event_input)["tool_input"]
    answer = {"hookSpecificOutput": {"tool_input": seen}}
    ours = our_output(GEMINI, event, answer, event_input)["hookSpecificOutput"]
    assert ours == {"tool_input": tool_input, "replacesToolInput": True}
