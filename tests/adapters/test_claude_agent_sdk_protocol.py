"""What the SDK is told, and events that no scripted model can cause.

The SDK's own client runs; in place of its program stands a transport.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

from hookline.adapters.claude_agent_sdk import hookline_hooks

from .drivers.claude_program import ScriptedProgram
from .noting import ASKS, BLOCKS, NotingHooks, specific

CALL = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t-1"}


def client(hooks: NotingHooks, program: ScriptedProgram) -> ClaudeSDKClient:
    options = ClaudeAgentOptions(hooks=hookline_hooks(hooks.config))
    return ClaudeSDKClient(options, transport=program)


async def test_every_event_has_time_for_its_hooks_and_a_person(tmp_path: Path) -> None:
    """The SDK's own limit is a minute."""
    program = ScriptedProgram()
    async with client(NotingHooks(tmp_path), program):
        assert len(program.hooks) == 9
        for (matcher,) in program.hooks.values():
            assert matcher["timeout"] == 3600
            assert matcher["matcher"] is None
            assert "onFailure" not in matcher


async def test_the_sdks_failure_policy_is_handed_on(tmp_path: Path) -> None:
    given = hookline_hooks(
        NotingHooks(tmp_path).config, timeout_s=5, on_failure="block"
    )
    assert {one.on_failure for (one,) in given.values()} == {"block"}
    assert {one.timeout for (one,) in given.values()} == {5}


async def test_notifications_are_events(tmp_path: Path) -> None:
    hooks, program = NotingHooks(tmp_path, Notification={}), ScriptedProgram()
    async with client(hooks, program):
        for kind in ("permission_prompt", "idle_prompt"):
            said = {"message": "hello", "notification_type": kind}
            assert await program.fire("Notification", **said) == {}
    kinds = [event["notification_type"] for event in hooks.events]
    assert kinds == ["ToolPermission", "idle_prompt"]
    assert hooks.events[0]["message"] == "hello"
    assert hooks.events[0]["session_id"] == "c-1"
    assert hooks.events[0]["transcript_path"] == "/t.jsonl"


async def test_a_cancelled_tool_has_no_result(tmp_path: Path) -> None:
    hooks, program = NotingHooks(tmp_path, AfterTool={}), ScriptedProgram()
    async with client(hooks, program):
        cancelled = {**CALL, "error": "interrupted", "is_interrupt": True}
        assert await program.fire("PostToolUseFailure", **cancelled) == {}
    assert hooks.events == []


async def test_a_conversation_may_be_joined_at_any_event(tmp_path: Path) -> None:
    hooks = NotingHooks(tmp_path, AfterTool={}, AfterAgent=BLOCKS, SubagentStop=BLOCKS)
    program = ScriptedProgram()
    async with client(hooks, program):
        assert await program.fire("PostToolUse", **CALL, tool_response="x") == {}
        end = {"stop_hook_active": False, "last_assistant_message": "hi"}
        rejected = {"decision": "block", "reason": "not today"}
        assert await program.fire("Stop", **end) == rejected
        agent = {"agent_id": "a-1", "agent_type": "reader"}
        assert await program.fire("SubagentStop", **end, **agent) == rejected
    assert hooks.of("AfterAgent")[0]["prompt"] == ""
    assert hooks.of("SubagentStop")[0]["agent_type"] == "reader"


async def test_a_question_shows_the_changed_input(tmp_path: Path) -> None:
    said = {**ASKS, **specific(tool_input={"command": "ls -l"})}
    hooks, program = NotingHooks(tmp_path, BeforeTool=said), ScriptedProgram()
    async with client(hooks, program):
        answer = await program.fire("PreToolUse", **CALL)
    assert answer["hookSpecificOutput"] == {
        "hookEventName": "PreToolUse",
        "permissionDecision": "ask",
        "permissionDecisionReason": "really?",
        "updatedInput": {"command": "ls -l"},
    }


async def test_two_conversations_of_one_config_do_not_mix(tmp_path: Path) -> None:
    def judge(event: dict[str, Any]) -> dict[str, Any]:
        stop = {"continue": False, "stopReason": "enough"}
        return stop if event["session_id"] == "one" else {}

    hooks, program = NotingHooks(tmp_path, BeforeTool=judge), ScriptedProgram()
    async with client(hooks, program):
        one, two = await asyncio.gather(
            program.fire("PreToolUse", **CALL, session_id="one"),
            program.fire("PreToolUse", **CALL, session_id="two"),
        )
        again = await program.fire("PreToolUse", **CALL, session_id="two")
    assert one["continue"] is False
    assert one["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert (two, again) == ({}, {})


async def test_a_call_at_the_same_time_as_a_stop_does_not_run(tmp_path: Path) -> None:
    hooks, program = NotingHooks(tmp_path), ScriptedProgram()
    system = hooks.config.get_hook_system()
    assert system is not None
    begun, stopped = asyncio.Event(), asyncio.Event()

    @system.on("BeforeTool")
    async def judge(event: dict[str, Any]) -> dict[str, Any]:
        if event["tool_input"]["command"] == "stop":
            return {"continue": False, "stopReason": "enough"}
        begun.set()
        await stopped.wait()
        return {}

    async with client(hooks, program):
        slow = asyncio.create_task(program.fire("PreToolUse", **CALL))
        await begun.wait()
        stop = {**CALL, "tool_input": {"command": "stop"}}
        await program.fire("PreToolUse", **stop)
        stopped.set()
        answer = await slow
    assert answer["continue"] is False
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
