"""Hooks in Claude Code, run by its SDK: the shared suite, and what only it has.

The program that the SDK brings runs for real; its model is a server on this machine.
What the SDK is told event by event, and most of what the program does with it, is in
``tests/pins/adapters``.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

from hookline.adapters.claude_agent_sdk import hookline_hooks
from hookline.testing.adapters import AdapterSuite
from hookline.testing.modelapi import Answer

from .drivers.claude_agent_sdk import ALLOWED, ClaudeCode, ClaudeDriver, bash
from .drivers.claude_program import ScriptedProgram
from .recorded_hooks import STOPS, Event, RecordedHooks


class TestClaudeCode(AdapterSuite):
    driver = ClaudeDriver()


async def run(
    folder: Path, hooks: RecordedHooks, /, *replies: Answer | str, **options: Any
) -> ClaudeCode:
    claude = ClaudeCode(folder, replies)
    defaults = {"hooks": hookline_hooks(hooks.config), "allowed_tools": ALLOWED}
    prompts = options.pop("prompts", ["go"])
    await claude.run(*prompts, **{**defaults, "tools": ALLOWED, **options})
    return claude


def files(claude: ClaudeCode) -> list[str]:
    return [file.name for file in claude.project.iterdir()]


async def test_events_carry_the_session_of_claude_and_our_names(tmp_path: Path) -> None:
    hooks = RecordedHooks()
    claude = await run(tmp_path, hooks, bash("echo hi"), "done", by_query=True)
    assert claude.answer == "done"
    assert hooks.names == ["BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent"]
    prompt, before, after, end = hooks.events
    assert prompt["prompt"] == "go"
    assert before["tool_name"] == "run_shell_command"
    assert before["host"]["tool_name"] == "Bash"
    assert before["tool_input"]["command"] == "echo hi"
    assert after["tool_response"]["llmContent"] == "hi"
    assert after["tool_response"]["metadata"]["stdout"] == "hi"
    assert (end["prompt"], end["prompt_response"]) == ("go", "done")
    assert not end["stop_hook_active"]
    transcripts = {event["transcript_path"] for event in hooks.events}
    assert {Path(transcript).stem for transcript in transcripts} == hooks.sessions


async def test_tool_does_not_run_when_the_time_is_up(tmp_path: Path) -> None:
    hooks, over = RecordedHooks(), asyncio.Event()

    @hooks.system.on("BeforeTool")
    async def wait(event: Event) -> None:
        await over.wait()

    claude_hooks = hookline_hooks(hooks.config, timeout_s=0.2)
    claude = await run(tmp_path, hooks, bash("touch ran"), "done", hooks=claude_hooks)
    over.set()
    assert (claude.answer, files(claude)) == ("done", [])


async def test_confirm_answers_for_a_person(tmp_path: Path) -> None:
    hooks = RecordedHooks({"BeforeTool": "ask"})
    claude_hooks = hookline_hooks(
        hooks.config, confirm=lambda asked: "yes" in asked.tool_input["command"]
    )
    calls = bash("touch yes", "touch no")
    options = {"hooks": claude_hooks, "allowed_tools": []}
    claude = await run(tmp_path, hooks, calls, "done", **options)
    assert files(claude) == ["yes"]
    assert (len(hooks.of("AfterTool")), len(hooks.of("Notification"))) == (1, 2)
    assert claude.sent(1).count("Declined by the user: really?") == 1


async def test_every_event_has_time_for_its_hooks_and_a_person() -> None:
    """The SDK's own limit is a minute; its failure policy is handed on."""
    config, program = RecordedHooks().config, ScriptedProgram()
    options = ClaudeAgentOptions(hooks=hookline_hooks(config))
    async with ClaudeSDKClient(options, transport=program):
        assert len(program.hooks) == 9
        for (matcher,) in program.hooks.values():
            assert (matcher["timeout"], matcher["matcher"]) == (3600, None)
            assert "onFailure" not in matcher
    matchers = hookline_hooks(config, timeout_s=5, on_failure="block")
    limits = {(matcher.on_failure, matcher.timeout) for (matcher,) in matchers.values()}
    assert limits == {("block", 5)}


async def test_call_at_the_same_time_as_a_stop_does_not_run() -> None:
    hooks, program = RecordedHooks(), ScriptedProgram()
    begun, stopped = asyncio.Event(), asyncio.Event()

    @hooks.system.on("BeforeTool")
    async def judge(event: Event) -> Any:
        if event["tool_input"]["command"] == "stop":
            return STOPS
        begun.set()
        await stopped.wait()
        return None

    options = ClaudeAgentOptions(hooks=hookline_hooks(hooks.config))
    async with ClaudeSDKClient(options, transport=program):
        slow = asyncio.create_task(program.fire("PreToolUse"))
        await begun.wait()
        await program.fire("PreToolUse", tool_input={"command": "stop"})
        stopped.set()
        answer = await slow
    assert answer["continue"] is False
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
