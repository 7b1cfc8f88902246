"""Hooks in Claude Code, run by its SDK (issue 14 adapters).

The program that the SDK brings runs for real; its model is a server on this machine.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import PermissionMode, UserMessage

from hookline.adapters.claude_agent_sdk import hookline_hooks
from hookline.testing.modelapi import Answer

from .drivers.claude_agent_sdk import ClaudeCode
from .noting import ASKS, BLOCKS, STOPS, WITHHOLDS, Event, NotingHooks, specific


def use(name: str, **given: Any) -> Answer:
    return Answer("", ((name, given),))


def bash(command: str) -> Answer:
    return use("Bash", command=command, description="x")


def delegate(**more: Any) -> Answer:
    given = {"description": "d", "prompt": "look", "subagent_type": "general-purpose"}
    return use("Agent", **given, run_in_background=False, **more)


ALLOWED = ["Bash", "Read", "Write", "Grep", "Glob", "Agent"]


async def run(
    folder: Path, hooks: NotingHooks, /, *replies: Answer | str, **options: Any
) -> ClaudeCode:
    claude = ClaudeCode(folder, replies)
    given = {"hooks": hookline_hooks(hooks.config), "allowed_tools": ALLOWED}
    given["tools"] = ALLOWED  # Claude Code starts faster with few
    await claude.run("go", **{**given, **options})
    return claude


def on_tool(name: str, answer: dict[str, Any]) -> Any:
    """Answer the events of one tool."""

    def judge(event: Event) -> dict[str, Any] | None:
        return answer if event["tool_name"] == name else None

    return judge


async def test_events_carry_claudes_session_and_tool_names(tmp_path: Path) -> None:
    hooks = NotingHooks(
        tmp_path, BeforeAgent={}, BeforeTool={}, AfterTool={}, AfterAgent={}
    )
    claude = await run(tmp_path, hooks, bash("echo hi"), "done", by_query=True)
    assert claude.answer == "done"
    assert hooks.names() == ["BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent"]
    prompt, before, after, end = hooks.events
    assert prompt["prompt"] == "go"
    assert before["tool_name"] == "Bash"
    assert before["tool_input"]["command"] == "echo hi"
    assert "mcp_context" not in before
    assert after["tool_response"]["llmContent"] == "hi"
    assert after["tool_response"]["metadata"]["toolResponse"]["stdout"] == "hi"
    assert (end["prompt"], end["prompt_response"]) == ("go", "done")
    assert not end["stop_hook_active"]
    sessions = {one["session_id"] for one in hooks.events}
    transcripts = {one["transcript_path"] for one in hooks.events}
    assert {Path(one).stem for one in transcripts} == sessions


async def test_a_stop_is_over_with_the_next_prompt(tmp_path: Path) -> None:
    def judge(event: Event) -> dict[str, Any]:
        return STOPS if "one" in event["tool_input"]["command"] else {}

    hooks = NotingHooks(tmp_path, BeforeTool=judge, AfterAgent={})
    claude = ClaudeCode(tmp_path, [bash("touch one"), bash("touch two"), "done"])
    given = hookline_hooks(hooks.config)
    await claude.run("first", "second", hooks=given, allowed_tools=ALLOWED)
    assert claude.answer == "done"
    assert [file.name for file in claude.project.iterdir()] == ["two"]
    assert [one["prompt"] for one in hooks.of("AfterAgent")] == ["second"]


async def test_the_result_of_a_written_file_is_withheld(tmp_path: Path) -> None:
    hooks = NotingHooks(tmp_path, AfterTool=WITHHOLDS)
    file = tmp_path / "project" / "a.txt"
    write = use("Write", file_path=str(file), content="x")
    claude = await run(tmp_path, hooks, write, "done", permission_mode="acceptEdits")
    assert file.read_text() == "x"
    assert "The file secret has been updated" in str(claude.requests[-1])


async def test_a_stop_after_a_failure_holds_from_the_next_call_on(
    tmp_path: Path,
) -> None:
    """Claude Code ignores it there, but not before the next tool."""
    hooks = NotingHooks(tmp_path, AfterTool=STOPS, AfterAgent={})
    claude = await run(tmp_path, hooks, bash("exit 3"), bash("touch ran"), "done")
    assert not (claude.project / "ran").exists()
    assert len(claude.requests) == 2
    assert "enough" in claude.answer
    assert hooks.names() == ["AfterTool"]


async def test_a_changed_input_still_needs_claudes_permission(tmp_path: Path) -> None:
    changed = specific(tool_input={"command": "touch changed"})
    allows = {"decision": "allow", **changed}
    hooks = NotingHooks(tmp_path, BeforeTool=allows, AfterTool={})
    claude = await run(tmp_path, hooks, bash("true"), "done", allowed_tools=[])
    assert not (claude.project / "changed").exists()
    assert hooks.of("AfterTool") == []


async def test_a_tool_does_not_run_when_the_time_is_up(tmp_path: Path) -> None:
    hooks, over = NotingHooks(tmp_path), asyncio.Event()
    system = hooks.config.get_hook_system()
    assert system is not None

    @system.on("BeforeTool")
    async def wait(event: Event) -> None:
        await over.wait()

    given = hookline_hooks(hooks.config, timeout_s=0.2)
    claude = await run(tmp_path, hooks, bash("touch ran"), "done", hooks=given)
    over.set()
    assert claude.answer == "done"
    assert not (claude.project / "ran").exists()


async def test_subagents_have_events_of_their_own(tmp_path: Path) -> None:
    hooks = NotingHooks(
        tmp_path,
        SubagentStart=specific(additionalContext="be quick"),
        BeforeTool={},
        SubagentStop={},
        AfterAgent={},
    )
    calls = delegate(), bash("echo sub")
    claude = await run(tmp_path, hooks, *calls, "found it", "done")
    assert claude.answer == "done"
    assert hooks.names() == [
        *("BeforeTool", "SubagentStart", "BeforeTool", "SubagentStop", "AfterAgent")
    ]
    (start,), (stop,) = hooks.of("SubagentStart"), hooks.of("SubagentStop")
    assert start["agent_type"] == stop["agent_type"] == "general-purpose"
    assert start["agent_id"] == stop["agent_id"]
    assert stop["prompt_response"] == "found it"
    assert "be quick" in claude.sent(1)


async def test_a_refused_subagent_runs_no_tools(tmp_path: Path) -> None:
    hooks = NotingHooks(tmp_path, SubagentStart=BLOCKS, SubagentStop={}, AfterAgent={})
    calls = delegate(), bash("touch ran")
    claude = await run(tmp_path, hooks, *calls, "done", "end")
    assert not (claude.project / "ran").exists()
    assert "not today" in claude.sent(1)
    assert hooks.of("SubagentStop") == []
    assert len(hooks.of("AfterAgent")) == 1


async def test_compressing_the_history_is_an_event(tmp_path: Path) -> None:
    hooks = NotingHooks(tmp_path, PreCompress={})
    claude = ClaudeCode(tmp_path, ["one", "two", "summary", "summary"])
    await claude.run("go", "on", "/compact", hooks=hookline_hooks(hooks.config))
    assert [one["trigger"] for one in hooks.events] == ["manual"]


def together(*answers: Answer) -> Answer:
    """One answer with the calls of several."""
    return Answer("", tuple(call for one in answers for call in one.calls))


async def test_withheld_results_are_replaced(tmp_path: Path) -> None:
    def judge(event: Event) -> dict[str, Any]:
        seen = event["tool_response"]["llmContent"]
        return WITHHOLDS if "hunter2" in str(seen) else {}

    hooks = NotingHooks(tmp_path, AfterTool=judge)
    claude = ClaudeCode(tmp_path, [])
    for file in ("secret.txt", "hunter2.txt"):
        (claude.project / file).write_text("hunter2\n")
    claude.replies = [
        together(
            bash("cat secret.txt"),
            use("Read", file_path=str(claude.project / "secret.txt")),
            use("Grep", pattern="hunter.", output_mode="content"),
            use("Grep", pattern="hunter."),
            use("Glob", pattern="*hunter*"),
            delegate(),
        ),
        "the password is hunter2",
        "done",
    ]
    given = hookline_hooks(hooks.config)
    answer = await claude.run("go", hooks=given, allowed_tools=ALLOWED)
    assert answer == "done"
    sent = [
        block
        for message in claude.requests[-1]["messages"]
        for block in message["content"]
        if isinstance(block, dict) and block["type"] == "tool_result"
    ]
    assert len(sent) == 6
    for result in sent:
        assert not result.get("is_error")
        assert "secret" in str(result)
        assert "hunter2" not in str(result)
    users = [one for one in claude.messages if isinstance(one, UserMessage)]
    assert "hunter2" not in str([one.content for one in users])


async def test_confirm_answers_for_a_person(tmp_path: Path) -> None:
    hooks = NotingHooks(tmp_path, BeforeTool=ASKS, AfterTool={}, Notification={})
    given = hookline_hooks(
        hooks.config, confirm=lambda asked: "yes" in asked.tool_input["command"]
    )
    calls = together(bash("touch yes"), bash("touch no"))
    claude = await run(tmp_path, hooks, calls, "done", hooks=given, allowed_tools=[])
    assert [one.name for one in claude.project.iterdir()] == ["yes"]
    assert len(hooks.of("AfterTool")) == 1
    assert len(hooks.of("Notification")) == 2
    assert claude.sent(1).count("Declined by the user: really?") == 1


async def test_a_question_holds_in_every_permission_mode(tmp_path: Path) -> None:
    hooks = NotingHooks(tmp_path, BeforeTool=ASKS, AfterTool={})
    modes: list[PermissionMode] = ["acceptEdits", "dontAsk", "bypassPermissions"]
    claude = ClaudeCode(tmp_path, [bash("touch ran"), "done"] * len(modes))
    await claude.run(
        *modes,
        modes=modes,
        hooks=hookline_hooks(hooks.config),
        allowed_tools=ALLOWED,
        permission_mode="bypassPermissions",
        env={"IS_SANDBOX": "1"},  # else refused to root
    )
    assert list(claude.project.iterdir()) == []
    assert "really?" in claude.sent(1)
    assert hooks.names() == ["BeforeTool"] * len(modes)


async def test_a_rejected_subagent_goes_on(tmp_path: Path) -> None:
    def judge(event: Event) -> dict[str, Any]:
        return BLOCKS if event["prompt_response"] == "draft" else {}

    hooks = NotingHooks(tmp_path, SubagentStop=judge)
    claude = await run(tmp_path, hooks, delegate(), "draft", "better", "done")
    assert claude.answer == "done"
    assert [one["stop_hook_active"] for one in hooks.events] == [False, True]
    assert "not today" in claude.sent(2)


@pytest.mark.parametrize("event", ["SubagentStart", "BeforeTool", "SubagentStop"])
async def test_a_stop_in_a_subagent_ends_the_whole_run(
    tmp_path: Path, event: str
) -> None:
    answer: Any = on_tool("Bash", STOPS) if event == "BeforeTool" else STOPS
    hooks = NotingHooks(tmp_path, **{event: answer, "AfterAgent": {}})
    first, then = delegate(), bash("touch ran")
    claude = await run(tmp_path, hooks, first, then, "sub", bash("touch main"))
    names = [one.name for one in claude.project.iterdir()]
    assert names == (["ran"] if event == "SubagentStop" else [])
    assert hooks.of("AfterAgent") == []


STRUCTURED = {
    "type": "json_schema",
    "schema": {"type": "object", "properties": {"a": {"type": "integer"}}},
}


async def test_a_rejected_structured_answer_goes_on(tmp_path: Path) -> None:
    """Claude Code itself ignores what is said to one when it stops."""

    def judge(event: Event) -> dict[str, Any]:
        return BLOCKS if event["prompt_response"] == '{"a":1}' else {}

    hooks = NotingHooks(tmp_path, AfterAgent=judge)
    answers = use("StructuredOutput", a=1), use("StructuredOutput", a=2)
    claude = await run(tmp_path, hooks, *answers, output_format=STRUCTURED)
    assert claude.answer == '{"a":2}'
    assert "not today" in claude.sent(1)
    assert [one["stop_hook_active"] for one in hooks.events] == [False, True]
