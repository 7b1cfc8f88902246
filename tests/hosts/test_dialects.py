"""Hooks of a dialect behind the bridge see what the host sent (protocol.md#dialects).

What they answer is in ``tests/pins/hosts/cases.json``.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.bridged import HOSTS_FOLDER, BridgedProject, payload

OURS = {
    "PreToolUse": "BeforeTool",
    "PostToolUse": "AfterTool",
    "PostToolUseFailure": "AfterTool",
    "UserPromptSubmit": "BeforeAgent",
    "Stop": "AfterAgent",
    "PreCompact": "PreCompress",
}
NOT_OURS = ("MessageDisplay", "PostCompact", "PostToolBatch")


def seen_by(
    bridged: BridgedProject,
    host: str,
    sent: dict[str, Any],
    *first: dict[str, Any],
    **hook: Any,
) -> dict[str, Any]:
    """What a hook with a dialect of its own gets; others may run before it."""
    last = {"type": "command", "command": f"cat > {bridged.home}/seen.json", **hook}
    event = OURS.get(sent["hook_event_name"], sent["hook_event_name"])
    group = {"hooks": [*first, {"dialect": "claude", **last}], "sequential": True}
    bridged.settings({"hooks": {event: [group]}})
    bridged.ask(host, sent)
    seen: dict[str, Any] = json.loads((bridged.home / "seen.json").read_bytes())
    return seen


def event(name: str, **fields: Any) -> dict[str, Any]:
    return {"hook_event_name": name, "session_id": "s", "cwd": "/", **fields}


@pytest.mark.parametrize("host", ["claude", "gemini"])
def test_hook_of_the_hosts_dialect_gets_what_the_host_sent_and_nothing_else(
    bridged: BridgedProject, host: str, subtests: pytest.Subtests
) -> None:
    """Every key and value in its place, none added."""
    names = [file.stem for file in (HOSTS_FOLDER / "captures" / host).glob("*.json")]
    for name in sorted(names):
        if name.startswith(NOT_OURS):
            continue
        sent = payload(f"{host}/{name}") | {"cwd": "/", "a_later_key": [{"z": 1}]}
        with subtests.test(name):
            seen = seen_by(bridged, host, sent, dialect=host)
            assert list(seen.items()) == list(sent.items())


def test_result_of_any_shape_reaches_a_claude_hook_to_the_letter(
    bridged: BridgedProject, subtests: pytest.Subtests
) -> None:
    """A scanner of results sees the result."""
    for tool, response in (
        ("WebFetch", {"bytes": 9, "code": 200, "result": "ignore", "url": "http://a"}),
        ("mcp__a__b", "plain text"),
        ("mcp__a__b", [{"type": "text", "text": "x"}]),
        ("Skill", None),
        ("Skill", 7),
        ("Skill", False),
        ("Skill", {"error": None, "llmContent": "theirs"}),
    ):
        call = {"tool_name": tool, "tool_input": {}, "tool_response": response}
        with subtests.test(f"{tool} {response}"):
            seen = seen_by(bridged, "claude", event("PostToolUse", **call))
            assert json.dumps(seen["tool_response"]) == json.dumps(response)


def test_what_a_host_sent_is_shown_with_what_other_hooks_changed(
    bridged: BridgedProject,
) -> None:
    context = {"hookSpecificOutput": {"additionalContext": "more"}}
    rule = {"type": "rule", "name": "adds", "when": "true", "then": context}
    sent = payload("claude/UserPromptSubmit-1")
    seen = seen_by(bridged, "claude", sent, rule)
    assert seen == sent | {"prompt": f"{sent['prompt']}\n\nmore"}


def test_async_claude_hook_sees_the_input_that_the_host_sent(
    bridged: BridgedProject,
) -> None:
    sent = payload("claude/PreToolUse-2")
    assert seen_by(bridged, "claude", sent, **{"async": True}) == sent


def test_key_that_claude_code_always_sends_is_never_missing(
    bridged: BridgedProject,
) -> None:
    """Also where another agent, or an older one, calls; one call has one id."""
    call = {"tool_name": "run_shell_command", "tool_input": {"command": "ls"}}
    other = {"type": "command", "dialect": "claude"}
    other["command"] = f"cat > {bridged.home}/other.json"
    ids = []
    for host, name, tool in (
        ("gemini", "BeforeTool", "run_shell_command"),
        ("gemini", "BeforeTool", "run_shell_command"),
        ("claude", "PreToolUse", "Bash"),
    ):
        sent = event(name, **call | {"tool_name": tool})
        ids.append(seen_by(bridged, host, sent, other)["tool_use_id"])
        second = json.loads((bridged.home / "other.json").read_bytes())
        assert second["tool_use_id"] == ids[-1]
    assert all(identifier.startswith("toolu_") for identifier in ids)
    assert len(set(ids)) == 3
    sent = event("SubagentStop", agent_id="a", agent_type="t")
    assert seen_by(bridged, "claude", sent)["agent_transcript_path"] == ""


@pytest.mark.parametrize("host", ["claude", "codex"])
def test_claude_hook_at_the_end_of_a_turn_is_shown_no_empty_prompt(
    bridged: BridgedProject, host: str
) -> None:
    sent = event("Stop", last_assistant_message="done", model="m")
    seen = seen_by(bridged, host, sent)
    assert "prompt" not in seen
    assert (seen["last_assistant_message"], seen["model"]) == ("done", "m")
