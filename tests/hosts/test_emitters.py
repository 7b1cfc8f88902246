"""Whatever hooks say, a host reads only keys that it knows (issue 15.2)."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.hosts.catalog import host_of
from hookline.hosts.host import BadInputError, HostEvent, Verdict
from hookline.protocol.events import HookEventName

from .captured import capture_names, captured

_E = HookEventName
_TOP = {"continue", "stopReason", "decision", "reason", "systemMessage"}
_CONTEXT = {"additionalContext"}
_DECISION = {"permissionDecision", "permissionDecisionReason"}
_CLAUDE = {
    "PreToolUse": _DECISION | _CONTEXT | {"updatedInput"},
    "PostToolUse": _CONTEXT | {"updatedToolOutput"},
    "PostToolUseFailure": _CONTEXT,
    "PostToolBatch": _CONTEXT,
    "UserPromptSubmit": _CONTEXT,
    "SessionStart": _CONTEXT,
    "SubagentStart": _CONTEXT,
}
_GEMINI = {
    "BeforeTool": {"tool_input"},
    "AfterTool": _CONTEXT,
    "BeforeAgent": _CONTEXT,
    "AfterAgent": {"clearContext"},
    "SessionStart": _CONTEXT,
    "BeforeModel": {"llm_request", "llm_response"},
    "AfterModel": {"llm_response"},
    "BeforeToolSelection": {"toolConfig"},
}
KEYS: dict[str, dict[str, set[str]]] = {
    "claude": _CLAUDE,
    "gemini": _GEMINI,
    "llxprt": _GEMINI,
    "qwen": _CLAUDE | {"PreToolUse": _DECISION, "PostToolUse": _CONTEXT},
}
DECISIONS = {
    "claude": {"block"},
    "gemini": {"deny", "ask"},
    "llxprt": {"deny", "ask"},
    "qwen": {"block"},
}

texts = st.text(st.characters(), max_size=5) | st.just("\ud800")
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner),
    max_leaves=3,
)
objects = st.none() | st.dictionaries(texts, values, max_size=3)
candidates = st.fixed_dictionaries(
    {}, optional={"candidates": values, "text": values, "usageMetadata": values}
)
requests = st.fixed_dictionaries(
    {}, optional={"messages": values, "config": values, "model": values}
)
configs = st.fixed_dictionaries(
    {}, optional={"mode": values, "allowedFunctionNames": values}
)
verdicts = st.builds(
    Verdict,
    blocked=st.booleans(),
    reason=texts,
    ask=st.booleans(),
    stopped=st.booleans(),
    stop_reason=texts,
    context=texts,
    message=texts,
    notice=texts,
    tool_input=objects,
    withheld=st.booleans(),
    suppressed=st.booleans(),
    clear_context=st.booleans(),
    llm_request=st.none() | requests,
    llm_response=st.none() | candidates,
    tool_config=st.none() | configs,
)


FIELDS = [
    *("tool_name", "tool_input", "tool_response", "prompt", "session_id", "cwd"),
    *("llm_request", "llm_response", "error", "source", "reason", "trigger", "title"),
    *("message", "notification_type", "details", "stop_hook_active", "agent_id"),
    *("last_assistant_message", "mcp_context", "transcript_path", "agent_type"),
]
tools = st.sampled_from(["Bash", "Read", "Grep", "mcp__a__b", "edit", "web_fetch"])
inputs = st.dictionaries(st.sampled_from(["prompt", "edits", "command"]), values)
sent = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(FIELDS, values)
    | {"tool_name": tools | values, "tool_input": inputs | values},
)


@cache
def host_events(name: str) -> list[HostEvent]:
    """Every capture of a host, and every event of it that could not be read."""
    host = host_of(name)
    folder = "gemini" if name == "llxprt" else name
    sent = [captured(folder, one) for one in capture_names(folder)]
    read = [host.read(one, one["hook_event_name"]) for one in sent]
    unread = [
        HostEvent(name=theirs, event=ours) for theirs, ours in host.events.items()
    ]
    return [*read, *unread]


@pytest.mark.parametrize("name", KEYS)
@settings(max_examples=100)
@given(data=st.data(), verdict=verdicts)
def test_answers_have_only_keys_that_the_host_knows(
    name: str, data: st.DataObject, verdict: Verdict
) -> None:
    event = data.draw(st.sampled_from(host_events(name)))
    answer = host_of(name).write(event, verdict)
    assert (answer.status, answer.stderr) == (0, "")
    assert answer.stdout.isascii()
    if not answer.stdout:
        assert event.event is _E.BeforeToolSelection
        return
    wire: dict[str, Any] = json.loads(answer.stdout)
    specific = wire.pop("hookSpecificOutput", None)
    assert wire.keys() <= _TOP
    assert wire.get("decision") in {None, *DECISIONS[name]}
    if specific is not None:
        assert specific.pop("hookEventName") == event.name
        assert specific.keys() <= KEYS[name][event.name]
        assert specific


@pytest.mark.parametrize("name", KEYS)
@settings(max_examples=100)
@given(data=st.data(), verdict=verdicts.filter(lambda one: one.blocked or one.stopped))
def test_a_block_or_a_stop_before_a_tool_never_lets_it_run(
    name: str, data: st.DataObject, verdict: Verdict
) -> None:
    """Nor does anything run with a changed input that hooks did not agree to."""
    events = [one for one in host_events(name) if one.event is _E.BeforeTool]
    wire = json.loads(
        host_of(name).write(data.draw(st.sampled_from(events)), verdict).stdout
    )
    specific = wire.get("hookSpecificOutput", {})
    assert "deny" in (wire.get("decision"), specific.get("permissionDecision"))
    assert not {"tool_input", "updatedInput"} & specific.keys()


@pytest.mark.parametrize("name", KEYS)
@settings(max_examples=100)
@given(data=st.data())
def test_any_json_is_read_or_refused(name: str, data: st.DataObject) -> None:
    """Issue 15.3: a host that sends something else is no crash."""
    host = host_of(name)
    event = data.draw(st.sampled_from(sorted(host.events)))
    fields = data.draw(sent)
    try:
        read = host.read(fields, event)
    except BadInputError:
        return
    for one in read.inputs(host.name):
        assert one["host"]["name"] == name
