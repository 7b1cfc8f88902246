"""Hooks of a dialect behind the bridge: they see what the host sent (PROTOCOL 12)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hookline.hosts.bridge import Bridge

from .test_bridge import bridge, event, project, said, write_settings

__all__ = ["bridge", "project"]  # fixtures

EDIT = {
    "file_path": "a.txt",
    "old_string": "x",
    "new_string": "y",
    "replace_all": True,
}


def hook(command: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": command, "dialect": "claude", **more}


async def test_a_claude_hook_sees_what_claude_code_sent(
    project: Path, bridge: Bridge
) -> None:
    write_settings(project, "BeforeTool", hook("cat > seen.json"))
    sent = {"tool_name": "Edit", "tool_input": EDIT, "tool_use_id": "t-1"}
    given = event(project, "PreToolUse", permission_mode="plan", **sent)
    await bridge.answer("claude", None, given)
    seen = json.loads((project / "seen.json").read_bytes())
    expected = {**json.loads(given), "tool_input": EDIT}
    assert {key: seen.get(key) for key in expected} == expected


async def test_an_updated_input_goes_back_whole(project: Path, bridge: Bridge) -> None:
    updated = {**EDIT, "new_string": "z"}
    answer = json.dumps({"hookSpecificOutput": {"updatedInput": updated}})
    write_settings(project, "BeforeTool", hook(f"cat >/dev/null; echo '{answer}'"))
    given = event(project, "PreToolUse", tool_name="Edit", tool_input=EDIT)
    reply = await bridge.answer("claude", None, given)
    assert said(reply)["updatedInput"] == updated


async def test_a_message_is_for_the_person_alone(project: Path, bridge: Bridge) -> None:
    answer = json.dumps({"systemMessage": "for you"})
    write_settings(project, "BeforeTool", hook(f"cat >/dev/null; echo '{answer}'"))
    given = event(project, "PreToolUse", tool_name="Edit", tool_input=EDIT)
    reply = await bridge.answer("claude", None, given)
    assert json.loads(reply.stdout) == {"systemMessage": "for you"}


@pytest.mark.parametrize(
    ("name", "ours", "sent"),
    [
        (
            "PreCompact",
            "PreCompress",
            {"trigger": "manual", "custom_instructions": "x"},
        ),
        (
            "SubagentStop",
            "SubagentStop",
            {"agent_id": "a", "agent_type": "t", "agent_transcript_path": "/t.jsonl"},
        ),
    ],
)
async def test_a_claude_hook_sees_the_fields_that_only_claude_code_has(
    project: Path, bridge: Bridge, name: str, ours: str, sent: dict[str, str]
) -> None:
    write_settings(project, ours, hook("cat > seen.json"))
    await bridge.answer("claude", None, event(project, name, **sent))
    seen = json.loads((project / "seen.json").read_bytes())
    assert {key: seen[key] for key in sent} == sent


async def test_a_failed_tool_reaches_a_claude_hook_as_its_failure_event(
    project: Path, bridge: Bridge
) -> None:
    write_settings(project, "AfterTool", hook("cat > seen.json"))
    failed = {"tool_name": "Bash", "tool_input": {"command": "x"}, "error": "boom"}
    given = event(project, "PostToolUseFailure", **failed)
    await bridge.answer("claude", None, given)
    seen = json.loads((project / "seen.json").read_bytes())
    assert (seen["hook_event_name"], seen["error"]) == ("PostToolUseFailure", "boom")


@pytest.mark.parametrize(
    ("tool", "response"),
    [
        ("Bash", {"stdout": "hi", "stderr": "", "noOutputExpected": False}),
        ("Write", {"type": "create", "filePath": "/a", "structuredPatch": []}),
        ("Agent", {"status": "completed", "content": [{"type": "text", "text": "x"}]}),
    ],
)
async def test_a_claude_hook_sees_the_result_that_claude_code_sent(
    project: Path, bridge: Bridge, tool: str, response: dict[str, Any]
) -> None:
    write_settings(project, "AfterTool", hook("cat > seen.json"))
    sent = {"tool_name": tool, "tool_input": {}, "tool_response": response}
    await bridge.answer("claude", None, event(project, "PostToolUse", **sent))
    seen = json.loads((project / "seen.json").read_bytes())["tool_response"]
    assert {key: seen[key] for key in response} == response


REDACTED = {"hookSpecificOutput": {"updatedToolOutput": "clean"}}


@pytest.mark.parametrize(
    ("dialect", "answer"),
    [("claude", REDACTED), ("gemini", {"decision": "deny", "reason": "clean"})],
)
async def test_what_takes_the_place_of_a_result_is_said_once(
    project: Path, bridge: Bridge, dialect: str, answer: dict[str, Any]
) -> None:
    says = hook(f"cat >/dev/null; echo '{json.dumps(answer)}'", dialect=dialect)
    adds = {"hookSpecificOutput": {"additionalContext": "more"}}
    also = hook(f"cat >/dev/null; echo '{json.dumps(adds)}'")
    write_settings(project, "AfterTool", also, says)
    ran = {"tool_name": "Bash", "tool_input": {"command": "env"}}
    given = event(project, "PostToolUse", **ran, tool_response={"stdout": "SECRET"})
    reply = await bridge.answer("claude", None, given)
    assert said(reply)["updatedToolOutput"]["stdout"] == "clean\n\nmore"


async def test_a_guard_of_a_file_holds_against_its_deletion(
    project: Path, bridge: Bridge
) -> None:
    """Claude Code and Gemini CLI have no tool for it, Codex deletes by a patch."""
    guard = hook('grep -q \'"file_path":"[^"]*.env"\' && exit 2; exit 0')
    file = write_settings(project, "BeforeTool", guard)
    settings = json.loads(file.read_text())
    settings["hooks"]["BeforeTool"][0]["matcher"] = "Edit|Write"
    file.write_text(json.dumps(settings))
    for name, decision in ((".env", "deny"), ("other", None)):
        patch = f"*** Begin Patch\n*** Delete File: {name}\n*** End Patch\n"
        call = {"tool_name": "apply_patch", "tool_input": {"command": patch}}
        given = event(project, "PreToolUse", model="m", **call)
        answer = json.loads((await bridge.answer("codex", None, given)).stdout)
        found = answer.get("hookSpecificOutput", {}).get("permissionDecision")
        assert found == decision
