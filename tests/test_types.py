"""The public types for hook authors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

import pytest

from hookline import Config, HookEventName, HookSystem, types
from hookline.protocol.outputs import read_output
from tests.support.workshop import INPUTS


def test_hook_with_typed_input_and_output_runs() -> None:
    def no_env_files(event: types.BeforeToolInput) -> types.HookOutput | None:
        if event["tool_input"].get("path") == ".env":
            return {"decision": "block", "reason": f"not in {event['cwd']}"}
        return None

    event: types.BeforeToolInput = {
        "session_id": "s",
        "cwd": "/w",
        "hook_event_name": "BeforeTool",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "transcript_path": "",
        "tool_name": "write_file",
        "tool_input": {"path": ".env"},
    }
    assert no_env_files(event) == {"decision": "block", "reason": "not in /w"}


@pytest.mark.parametrize("event", list(HookEventName))
async def test_input_type_has_the_fields_that_hooks_get(event: HookEventName) -> None:
    """HOOK-062 and PROTOCOL 1: what is required in the type is in every input."""
    seen: list[Mapping[str, Any]] = []
    async with HookSystem(Config()) as hooks:
        hooks.on(event)(seen.append)
        await hooks.event_handler.fire(event, INPUTS[event])
    input_type = getattr(types, f"{event.value}Input")
    hints = get_type_hints(input_type)
    of_agents = event in {HookEventName.SubagentStart, HookEventName.SubagentStop}
    optional = OPTIONAL if of_agents else OPTIONAL | OF_SUBAGENTS
    required = {name for name in hints if name not in optional}
    assert required <= set(seen[0]) <= set(hints)


OPTIONAL = {
    *("mcp_context", "original_request_name", "available_tools", "level"),
    *("host", "permission_mode", "tool_use_id"),
}
OF_SUBAGENTS = {"agent_id", "agent_type"}


def test_output_type_has_the_fields_that_are_read() -> None:
    """PROTOCOL 4: each field is known to the reader, none is kept as unknown."""
    output: types.HookOutput = {
        "decision": "allow",
        "reason": "r",
        "continue": True,
        "stopReason": "s",
        "suppressOutput": False,
        "systemMessage": "m",
        "hookSpecificOutput": {"toolConfig": {"mode": "ANY"}},
    }
    assert set(output) == set(get_type_hints(types.HookOutput))
    read, warnings = read_output(output, HookEventName.BeforeToolSelection)
    assert (read.extra, warnings) == ({}, ())
