"""Hooks of a dialect behind the bridge: they see what the host sent (PROTOCOL 12)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


async def test_a_failed_tool_reaches_a_claude_hook_as_its_failure_event(
    project: Path, bridge: Bridge
) -> None:
    write_settings(project, "AfterTool", hook("cat > seen.json"))
    failed = {"tool_name": "Bash", "tool_input": {"command": "x"}, "error": "boom"}
    given = event(project, "PostToolUseFailure", **failed)
    await bridge.answer("claude", None, given)
    seen = json.loads((project / "seen.json").read_bytes())
    assert (seen["hook_event_name"], seen["error"]) == ("PostToolUseFailure", "boom")
