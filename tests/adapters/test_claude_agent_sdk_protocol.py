"""What the SDK is told, and events that no scripted model can cause.

The SDK's own client runs; in place of its program stands a transport.
"""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

from hookline import Config, Settings
from hookline.adapters.claude_agent_sdk import hookline_hooks

from .drivers.claude_program import ScriptedProgram
from .noting import ASKS, BLOCKS, STOPS, WITHHOLDS, NotingHooks, specific

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


async def test_context_goes_along_with_a_question(tmp_path: Path) -> None:
    asks = {**ASKS, **specific(additionalContext="mind this")}
    hooks, program = NotingHooks(tmp_path, BeforeTool=asks), ScriptedProgram()
    async with client(hooks, program):
        answer = await program.fire("PreToolUse", **CALL)
    assert answer["hookSpecificOutput"]["additionalContext"] == "mind this"


async def test_a_withheld_result_that_stays_in_the_history_closes_it(
    tmp_path: Path,
) -> None:
    """A later prompt would send it to the model."""
    hooks, program = NotingHooks(tmp_path, AfterTool=WITHHOLDS), ScriptedProgram()
    fetched = {"tool_name": "ReadMcpResource", "tool_input": {"uri": "x"}}
    async with client(hooks, program):
        ended = await program.fire("PostToolUse", **fetched, tool_response={"a": 1})
        again = await program.fire("UserPromptSubmit", prompt="again")
        other = await program.fire("UserPromptSubmit", prompt="a", session_id="c-2")
    assert ended["continue"] is False
    assert again == {"decision": "block", "reason": "ReadMcpResource: secret"}
    assert other == {}


async def test_a_refused_subagent_stays_refused(tmp_path: Path) -> None:
    """Claude Code can go on with one that has ended."""
    hooks, program = NotingHooks(tmp_path, SubagentStart=BLOCKS), ScriptedProgram()
    agent = {"agent_id": "a", "agent_type": "reader"}
    async with client(hooks, program):
        await program.fire("SubagentStart", **agent)
        await program.fire("SubagentStop", **agent, stop_hook_active=False)
        refused = await program.fire("PreToolUse", **CALL, **agent)
        assert await program.fire("PreToolUse", **CALL) == {}
    assert refused["hookSpecificOutput"]["permissionDecision"] == "deny"


async def test_a_session_given_is_used_as_it_is(tmp_path: Path) -> None:
    hooks, program = NotingHooks(tmp_path, BeforeTool={}), ScriptedProgram()
    own = hookline_hooks(hooks.config.session("ticket-7"))
    async with ClaudeSDKClient(ClaudeAgentOptions(hooks=own), program):
        await program.fire("PreToolUse", **CALL)
    assert hooks.events[0]["session_id"] == "ticket-7"
    assert hooks.events[0]["transcript_path"] == "/t.jsonl"


async def test_mcp_tools_have_their_context(tmp_path: Path) -> None:
    hooks = NotingHooks(tmp_path, BeforeTool={}, AfterTool={})
    program, given = ScriptedProgram(), {**CALL, "tool_name": "mcp__pay__charge"}
    async with client(hooks, program):
        await program.fire("PreToolUse", **given)
        await program.fire("PostToolUse", **given, tool_response=[])
    for event in hooks.events:
        assert event["tool_name"] == "mcp__pay__charge"
        assert event["mcp_context"] == {"server_name": "pay", "tool_name": "charge"}


async def test_a_failed_guard_blocks_if_it_is_told_to(tmp_path: Path) -> None:
    def crash(event: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("broken")

    hooks = NotingHooks(tmp_path, {"onError": "block"}, BeforeTool=crash)
    program = ScriptedProgram()
    async with client(hooks, program):
        answer = await program.fire("PreToolUse", **CALL)
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"


async def test_hooks_that_cannot_work_are_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = NotingHooks(tmp_path, BeforeModel={}, SessionStart={}, AfterAgent={})
    program = ScriptedProgram()
    with caplog.at_level(logging.WARNING, "hookline"):
        async with client(hooks, program):
            for _ in range(2):
                await program.fire("UserPromptSubmit", prompt="go")
    said = [r.getMessage() for r in caplog.records if "no effect" in r.getMessage()]
    assert [line.split()[0] for line in said] == ["BeforeModel", "SessionStart"]


async def test_a_structured_answer_can_be_stopped(tmp_path: Path) -> None:
    hooks, program = NotingHooks(tmp_path, AfterAgent=STOPS), ScriptedProgram()
    given = {"tool_name": "StructuredOutput", "tool_input": {"a": 1}}
    async with client(hooks, program):
        answer = await program.fire("PreToolUse", **given)
    assert (answer["continue"], answer["stopReason"]) == (False, "enough")
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"


async def test_a_stop_after_a_failure_ends_an_answer_too(tmp_path: Path) -> None:
    hooks = NotingHooks(tmp_path, AfterTool=STOPS, AfterAgent={})
    program = ScriptedProgram()
    async with client(hooks, program):
        await program.fire("PostToolUseFailure", **CALL, error="exit 3")
        answer = await program.fire("Stop", stop_hook_active=False)
    assert (answer["continue"], answer["decision"]) == (False, "block")
    assert hooks.of("AfterAgent") == []


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


async def test_a_stop_holds_for_all_subagents_of_a_prompt(tmp_path: Path) -> None:
    def judge(event: dict[str, Any]) -> dict[str, Any]:
        stop = {"continue": False, "stopReason": "enough"}
        return stop if event["tool_input"]["command"] == "stop" else {}

    hooks, program = NotingHooks(tmp_path, BeforeTool=judge), ScriptedProgram()
    first, second = ({"agent_id": name, "agent_type": "reader"} for name in "ab")
    async with client(hooks, program):
        assert await program.fire("PreToolUse", **CALL, **second) == {}
        stop = {**CALL, "tool_input": {"command": "stop"}}
        await program.fire("PreToolUse", **stop, **first)
        for given in (first, second, {}):
            answer = await program.fire("PreToolUse", **CALL, **given)
            assert answer["continue"] is False
            assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
        await program.fire("UserPromptSubmit", prompt="next")
        assert await program.fire("PreToolUse", **CALL) == {}


async def test_a_blocked_prompt_leaves_work_in_the_background_alone(
    tmp_path: Path,
) -> None:
    def judge(event: dict[str, Any]) -> dict[str, Any]:
        return BLOCKS if event["prompt"] == "bad" else {}

    hooks = NotingHooks(tmp_path, BeforeAgent=judge, AfterAgent={})
    program = ScriptedProgram()
    async with client(hooks, program):
        await program.fire("UserPromptSubmit", prompt="good")
        await program.fire("UserPromptSubmit", prompt="bad")
        assert await program.fire("PreToolUse", **CALL) == {}
        assert await program.fire("Stop", stop_hook_active=False) == {}
    assert hooks.of("AfterAgent")[0]["prompt"] == "good"


async def test_hooks_written_for_claude_code_see_its_names(tmp_path: Path) -> None:
    """protocol.md#dialects."""
    command = f"cat >> {tmp_path}/seen; echo >> {tmp_path}/seen"
    hook = {"type": "command", "command": command, "dialect": "claude"}
    groups = [{"matcher": "Bash", "hooks": [hook]}]
    settings = {"hooks": {"BeforeTool": groups, "AfterTool": groups}}
    config = Config("s-1", tmp_path, Settings.from_mapping(settings))
    options, program = (
        ClaudeAgentOptions(hooks=hookline_hooks(config)),
        ScriptedProgram(),
    )
    async with config, ClaudeSDKClient(options, program):
        await program.fire("PreToolUse", **CALL)
        response = {"stdout": "a.md", "stderr": ""}
        await program.fire("PostToolUse", **CALL, tool_response=response)
    before, after = map(json.loads, (tmp_path / "seen").read_text().splitlines())
    assert before["hook_event_name"] == "PreToolUse"
    assert (before["tool_name"], before["tool_input"]) == ("Bash", {"command": "ls"})
    assert after["hook_event_name"] == "PostToolUse"
    assert after["tool_response"]["stdout"] == "a.md"


@pytest.mark.parametrize(
    ("matcher", "when"),
    [
        ("^Write$", "tool_input.file_path == 'a'"),
        ("^write_file$", "tool_input.path == 'a'"),
        ("Write|Edit", "tool_input.path == tool_input.file_path"),
    ],
)
async def test_matchers_and_rules_may_use_claudes_names_and_ours(
    tmp_path: Path, matcher: str, when: str
) -> None:
    """protocol.md#planning, protocol.md#rules."""
    groups = [{"matcher": matcher, "hooks": [{"type": "rule", "when": when}]}]
    settings = Settings.from_mapping({"hooks": {"BeforeTool": groups}})
    config, program = Config("s-1", tmp_path, settings), ScriptedProgram()
    options = ClaudeAgentOptions(hooks=hookline_hooks(config))
    call = {"tool_name": "Write", "tool_input": {"file_path": "a"}, "tool_use_id": "t"}
    async with config, ClaudeSDKClient(options, program):
        said = await program.fire("PreToolUse", **call)
    assert said["hookSpecificOutput"]["permissionDecision"] == "deny"


@pytest.mark.parametrize(
    ("module", "package"),
    [("fastmcp", "fastmcp"), ("claude_agent_sdk", "claude-agent-sdk")],
)
def test_a_missing_framework_names_its_extra(module: str, package: str) -> None:
    code = (
        f"import sys; sys.modules[{module!r}] = None; import hookline.adapters.{module}"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert f"MissingExtraError: {package} is missing" in ended.stderr
    assert f"hookline[{package}]" in ended.stderr
