"""Qwen Code: captures in, exact answers out (issue 15, items 1 to 3)."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from hookline.hosts.qwen import QwenHost

from .captured import (
    ALL,
    ASK,
    BLOCK,
    CLEAR,
    CONTEXT,
    MESSAGE,
    STOP,
    WITHHOLD,
    Desk,
    capture_names,
    captured,
    changing,
    desk,
    read_event,
    shown_to_hooks,
)

__all__ = ["desk"]
QWEN = QwenHost()
read = partial(read_event, QWEN)
shown = partial(shown_to_hooks, QWEN)


def event(name: str, **fields: Any) -> dict[str, Any]:
    return {"hook_event_name": name, "agent_id": "a", "agent_type": "t", **fields}


@pytest.mark.parametrize("name", capture_names("qwen"))
async def test_every_capture_is_read_and_answered(desk: Desk, name: str) -> None:
    given = captured("qwen", name)
    found = read(given)
    assert found.name == name.partition("-")[0]
    assert found.event is QWEN.events[found.name]
    assert found.cwd == "/home/user/project"
    assert found.session_id == given["session_id"]
    reply = await desk.ask("qwen", given)
    assert (reply.stdout, reply.stderr, reply.status) == (b"{}\n", b"", 0)


def specific(name: str, **fields: Any) -> str:
    text = json.dumps({"hookEventName": name, **fields}, separators=(",", ":"))
    return f'{{"hookSpecificOutput":{text}}}'


def decided(decision: str, reason: str) -> str:
    said = {"permissionDecision": decision, "permissionDecisionReason": reason}
    return specific("PreToolUse", **said)


def told(name: str, text: str) -> str:
    return specific(name, additionalContext=text)


ESCAPED = "see &lt;b&gt;"
WITH_ALL = f"no <b>\n\n{ESCAPED}\na note"
BLOCKED = '{"decision":"block","reason":"no <b>"}'
WITHHELD = '{{"continue":false,"stopReason":"{}"}}'
NOTED = '{"systemMessage":"a note"}'
CHANGED = 'hooks allow this call only with another input: {"file_path":"b"}'
SUBAGENT_START = event("SubagentStart")
SUBAGENT_STOP = event("SubagentStop", last_assistant_message="x")
SESSION_START = event("SessionStart", source="startup")
SESSION_END = event("SessionEnd", reason="exit")

ANSWERS = [
    ("PreToolUse-1", BLOCK, decided("deny", "no <b>")),
    ("PreToolUse-1", ALL, decided("deny", WITH_ALL)),
    ("PreToolUse-1", STOP, decided("deny", "enough")),
    ("PreToolUse-1", {**BLOCK, **STOP}, decided("deny", "enough")),
    ("PreToolUse-1", ASK, decided("ask", "sure?")),
    ("PreToolUse-1", CONTEXT, "{}"),
    ("PreToolUse-1", MESSAGE, NOTED),
    ("PreToolUse-3", changing(path="b"), decided("deny", CHANGED)),
    ("PostToolUse-1", BLOCK, told("PostToolUse", "no &lt;b&gt;")),
    ("PostToolUse-1", CONTEXT, told("PostToolUse", ESCAPED)),
    ("PostToolUse-1", MESSAGE, told("PostToolUse", "a note")),
    ("PostToolUse-1", WITHHOLD, WITHHELD.format("secret")),
    ("PostToolUse-1", STOP, WITHHELD.format("enough")),
    ("PostToolUseFailure-1", BLOCK, told("PostToolUseFailure", "no &lt;b&gt;")),
    ("PostToolUseFailure-1", WITHHOLD, told("PostToolUseFailure", "secret")),
    ("PostToolUseFailure-1", STOP, told("PostToolUseFailure", "enough")),
    ("UserPromptSubmit-1", BLOCK, BLOCKED),
    ("UserPromptSubmit-1", STOP, '{"decision":"block","reason":"enough"}'),
    ("UserPromptSubmit-1", CONTEXT, told("UserPromptSubmit", ESCAPED)),
    ("UserPromptSubmit-1", MESSAGE, told("UserPromptSubmit", "a note")),
    ("Stop-1", BLOCK, BLOCKED),
    ("Stop-1", ALL, f'{{"decision":"block","reason":{json.dumps(WITH_ALL)}}}'),
    ("Stop-1", STOP, '{"systemMessage":"enough"}'),
    ("Stop-1", {**BLOCK, **STOP}, '{"systemMessage":"enough"}'),
    ("Stop-1", MESSAGE, NOTED),
    ("Notification-1", MESSAGE, NOTED),
    ("Notification-1", BLOCK, "{}"),
    (SUBAGENT_STOP, BLOCK, BLOCKED),
    (SUBAGENT_STOP, STOP, '{"systemMessage":"enough"}'),
    (SUBAGENT_START, CONTEXT, "{}"),
    (SUBAGENT_START, BLOCK, "{}"),
    (SESSION_START, CONTEXT, told("SessionStart", ESCAPED)),
    (SESSION_END, MESSAGE, NOTED),
]


@pytest.mark.parametrize(("given", "then", "expected"), ANSWERS)
async def test_each_verdict_has_its_answer(
    desk: Desk, given: Any, then: Any, expected: str
) -> None:
    """hosts/README.md#rules 2 to 4: what it ignores takes the stricter form."""
    given = captured("qwen", given) if isinstance(given, str) else given
    desk.rule(QWEN.events[given["hook_event_name"]].value, then)
    reply = await desk.ask("qwen", given)
    assert (reply.stdout.decode(), reply.status) == (f"{expected}\n", 0)


LOST = [
    ("PreToolUse-1", changing(command="ls"), "change: the tool does not run"),
    ("PreToolUse-1", STOP, "stop: the tool does not run, and the turn goes on"),
    ("PreToolUse-1", CONTEXT, "context: lost"),
    ("PreToolUse-1", ALL, ""),
    ("PostToolUse-1", STOP, "stop: the turn goes on without the result"),
    ("PostToolUse-1", WITHHOLD, ""),
    ("PostToolUseFailure-1", WITHHOLD, "withhold: that of a failed tool"),
    ("Stop-1", CLEAR, "clear context: the context stays as it is"),
]


@pytest.mark.parametrize(("name", "then", "expected"), LOST)
async def test_what_is_lost_is_said_when_it_is_lost(
    desk: Desk, name: str, then: Any, expected: str
) -> None:
    """Issue 15.2, hosts/README.md#rules 11."""
    await desk.check_loss(QWEN, captured("qwen", name), then, expected)


TOOLS = [
    ("run_shell_command", {"command": "x"}, "run_shell_command", {"command": "x"}),
    ("write_file", {"file_path": "a"}, "write_file", {"path": "a"}),
    ("read_file", {"file_path": "a"}, "read_file", {"path": "a"}),
    ("edit", {"file_path": "a"}, "replace", {"path": "a"}),
    ("replace", {"file_path": "a"}, "replace", {"path": "a"}),
    ("grep_search", {"pattern": "x"}, "search_file_content", {"pattern": "x"}),
    ("agent", {"prompt": "p"}, "task", {"prompt": "p"}),
    ("task", {"prompt": "p"}, "task", {"prompt": "p"}),
    (
        "web_fetch",
        {"url": "u", "prompt": "p"},
        "web_fetch",
        {"url": "u", "prompt": "p"},
    ),
    ("exit_plan_mode", {"plan": "p"}, "exit_plan_mode", {"plan": "p"}),
    ("todo_write", {"todos": []}, "todo_write", {"todos": []}),
]


@pytest.mark.parametrize(("tool", "given", "name", "expected"), TOOLS)
def test_tools_have_our_names(tool: str, given: Any, name: str, expected: Any) -> None:
    """hosts/README.md#what-a-hook-sees."""
    call = captured("qwen", "PreToolUse-1")
    found = shown(call | {"tool_name": tool, "tool_input": given})
    assert (found["tool_name"], found["tool_input"]) == (name, expected)
    assert found["host"]["tool_name"] == tool
    assert found["permission_mode"] == "yolo"


def test_mcp_tools_have_a_context() -> None:
    call = captured("qwen", "PreToolUse-1") | {"tool_name": "mcp__files__save"}
    expected = {"server_name": "files", "tool_name": "save"}
    assert shown(call)["mcp_context"] == expected


def test_results_are_as_they_came() -> None:
    given = captured("qwen", "PostToolUse-2")
    assert shown(given)["tool_response"] == given["tool_response"]
    failed = shown(captured("qwen", "PostToolUseFailure-1"))["tool_response"]
    missing = "File not found: /home/user/project/missing.txt"
    assert failed["error"] == {"message": missing}


async def test_a_turn_of_tools_is_no_prompt(desk: Desk) -> None:
    """It fires UserPromptSubmit with an empty prompt for them.

    hosts/README.md#rules 6
    """
    desk.rule("BeforeAgent", BLOCK)
    given = captured("qwen", "UserPromptSubmit-1") | {"prompt": ""}
    assert (await desk.ask("qwen", given)).stdout == b"{}\n"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, False),
        ({"prompt_id": "p"}, True),
        ({"prompt_id": "p", "stop_hook_active": False}, False),
    ],
)
def test_the_first_answer_is_not_a_second(more: Any, expected: bool) -> None:
    """Decision 0130: builds without ``prompt_id`` always say true.

    hosts/README.md#rules 6
    """
    found = shown(captured("qwen", "Stop-1") | more)
    assert found["stop_hook_active"] is expected


def test_notifications_have_our_types() -> None:
    found = shown(captured("qwen", "Notification-1"))
    assert found["notification_type"] == "auth_success"
    given = captured("qwen", "Notification-1")
    asked = shown(given | {"notification_type": "permission_prompt"})
    assert asked["notification_type"] == "ToolPermission"


@pytest.mark.parametrize("key", ["reason", "systemMessage"])
async def test_a_long_answer_is_cut(desk: Desk, key: str) -> None:
    """It reads 1 MiB: half an answer is ignored, and the tool runs."""
    long = {"decision": "deny", "reason": "no", key: "\x01" * 900_000}
    for name in ("PreToolUse-1", "Stop-1", "UserPromptSubmit-1"):
        given = captured("qwen", name)
        desk.rule(QWEN.events[given["hook_event_name"]].value, long)
        reply = await desk.ask("qwen", given)
        assert len(reply.stdout) < 1 << 20
        assert json.loads(reply.stdout)
        assert b"deny" in reply.stdout or b"block" in reply.stdout
