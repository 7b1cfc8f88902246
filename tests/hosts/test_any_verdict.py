"""Whatever hooks say and hosts send, a host reads only keys that it knows.

hosts/README.md#rules 1: a key that a host does not know makes it drop the answer, and
run the tool. Exact answers are in ``tests/pins/hosts/answers``.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.bridged import EVENT_ARGUMENTS, BridgedProject, payload, tool_call

TOOLS = {
    **dict.fromkeys(("claude", "codex", "vscode", "droid", "cursor"), "Bash"),
    **dict.fromkeys(("gemini", "llxprt", "qwen"), "run_shell_command"),
    "copilot": "bash",
    "opencode": "bash",
    "goose": "shell",
    "kiro": "execute_bash",
    "cline": "run_commands",
    "windsurf": "run_command",
}
STOPS = {"continue", "stopReason", "systemMessage"}
ANSWERS = STOPS | {"decision", "reason", "hookSpecificOutput"}
DECISION = {"permissionDecision", "permissionDecisionReason", "additionalContext"}
KEYS: dict[str, set[str]] = {
    **dict.fromkeys(("claude", "vscode", "droid", "qwen"), ANSWERS),
    **dict.fromkeys(("gemini", "llxprt"), ANSWERS),
    # It refuses continue, stopReason, and a decision beside its own.
    "codex": {"systemMessage", "hookSpecificOutput"},
    "copilot": DECISION | {"modifiedArgs"},
    "opencode": {"block", "args", "context", "output"},
    "cline": {"cancel", "errorMessage", "context", "overrideInput"},
    "goose": {"decision", "reason"},
    "cursor": {"permission", "user_message", "agent_message", "updated_input"},
    "kiro": set(),
    "windsurf": set(),
}
"""What each host takes before a tool: documented, seen, or in its schemas."""
SPECIFIC = {"hookEventName", "tool_input", "updatedInput"} | DECISION
AFTER_EVENTS = {
    "claude/Stop-1": ANSWERS - {"hookSpecificOutput"},
    "codex/Stop-1": STOPS | {"decision", "reason"},
    "codex/PostToolUse-1": ANSWERS,
    "codex/UserPromptSubmit-1": ANSWERS,
    "codex/SessionStart-1": STOPS | {"hookSpecificOutput"},
    "codex/PreCompact-1": STOPS,
    "codex/SessionEnd-1": set(),
}
"""What some hosts take on other events."""

TEXTS = st.sampled_from(["", " ", "\n\t", "\u3000", "\ud800"]) | st.text(max_size=9)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner),
    max_leaves=3,
)
SPECIFICS = st.fixed_dictionaries(
    {},
    optional={
        "additionalContext": TEXTS,
        "tool_input": st.dictionaries(st.text(max_size=3), VALUES, max_size=2),
        **dict.fromkeys(("withholdResult", "clearContext"), st.booleans()),
    },
)
VERDICTS = st.fixed_dictionaries(
    {},
    optional={
        "decision": st.sampled_from(["allow", "deny", "ask", "block"]),
        "continue": st.booleans(),
        "suppressOutput": st.booleans(),
        **dict.fromkeys(("reason", "stopReason", "systemMessage"), TEXTS),
        "hookSpecificOutput": SPECIFICS,
    },
)
NO_CHECKS = settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("host", TOOLS)
@NO_CHECKS
@given(verdict=VERDICTS)
def test_any_verdict_before_a_tool_is_written_in_keys_that_the_host_takes(
    bridged: BridgedProject, host: str, verdict: dict[str, Any]
) -> None:
    """Never a wrong allow: a block or a stop never looks like silence."""
    command = "command_line" if host == "windsurf" else "command"
    call = tool_call(host, TOOLS[host], {command: "ls"})
    bridged.rule("BeforeTool", verdict)
    reply = bridged.ask(host, call, EVENT_ARGUMENTS.get(host))
    refused = verdict.get("decision") in {"deny", "block"}
    refused = refused or verdict.get("continue") is False
    if host in {"kiro", "windsurf"}:
        assert reply.stdout == ""
        assert reply.returncode in ({2} if refused else {0, 2})
        return
    assert reply.returncode == 0
    assert reply.stdout.isascii()
    answer = json.loads(reply.stdout) if reply.stdout else {}
    assert reply.stdout or host == "goose"
    assert answer.keys() <= KEYS[host]
    specific = answer.get("hookSpecificOutput", {})
    assert specific.keys() <= SPECIFIC
    assert "hookSpecificOutput" not in answer or len(specific) > 1
    if refused:
        assert {**answer, **specific}.keys() & (
            {"permissionDecision", "decision", "block", "cancel", "permission"}
        )
        assert not specific.keys() & {"tool_input", "updatedInput"}
    for key in ("reason", "permissionDecisionReason", "errorMessage", "block"):
        if refused and key in {**answer, **specific}:
            assert {**answer, **specific}[key].strip()


@pytest.mark.parametrize("name", AFTER_EVENTS)
@NO_CHECKS
@given(verdict=VERDICTS)
def test_any_verdict_is_written_in_keys_of_the_event(
    bridged: BridgedProject, name: str, verdict: dict[str, Any]
) -> None:
    """Codex: an unknown key or an empty reason, and the answer counts for nothing."""
    host, _, event = name.partition("/")
    ours = {"Stop-1": "AfterAgent", "PostToolUse-1": "AfterTool"}
    ours |= {"UserPromptSubmit-1": "BeforeAgent", "PreCompact-1": "PreCompress"}
    bridged.rule(ours.get(event, event[:-2]), verdict)
    bridged.forget()
    reply = bridged.ask(host, name)
    answer = json.loads(reply.stdout)
    assert reply.returncode == 0
    assert answer.keys() <= AFTER_EVENTS[name]
    assert ("reason" in answer) == ("decision" in answer)
    assert "reason" not in answer or answer["reason"].strip()
    specific = answer.get("hookSpecificOutput", {"hookEventName": event[:-2]})
    assert specific["hookEventName"] == event[:-2]
    assert specific.keys() <= {"hookEventName", "additionalContext"}


FIELDS = [
    *("tool_name", "tool_input", "tool_call", "tool_result", "tool_info", "tool"),
    *("args", "input", "name", "output", "prompt", "message", "cwd", "edits"),
    *("command", "commands", "path", "files", "properties", "info", "turn"),
    *("sessionContext", "workspaceRoots", "workspace_roots", "loop_count"),
    *("tool_response", "tool_output", "llm_request", "toolName", "toolArgs"),
    *("session_id", "source", "reason", "trigger", "title", "details", "agent_id"),
]
EVENTS = {
    "claude": "claude/PostToolUse-1",
    "gemini": "gemini/AfterModel-1",
    "codex": "codex/PostToolUse-3",
    "copilot": "copilot-pascal/PreToolUse-1",
    "qwen": "qwen/PostToolUse-1",
    "opencode": "opencode/tool.execute.after-1",
    "cursor": "cursor/postToolUse",
    "vscode": "vscode/Stop",
    "droid": "droid/PostToolUse",
    "goose": "goose/PostToolUseFailure",
    "kiro": "kiro/postToolUse",
    "windsurf": "windsurf/pre_write_code",
    "cline": "cline/PostToolUse-1",
}


@pytest.mark.parametrize("host", EVENTS)
@NO_CHECKS
@given(sent=st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=8))
def test_any_input_is_read_or_refused(
    bridged: BridgedProject, host: str, sent: dict[str, Any]
) -> None:
    """A host version that sends something else is no crash."""
    bridged.rule("BeforeTool", {}, onError="allow")
    reply = bridged.ask(host, payload(EVENTS[host]) | sent)
    assert "internal error" not in reply.stderr
    assert reply.returncode in (0, 2)
