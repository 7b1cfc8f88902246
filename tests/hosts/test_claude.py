"""Claude Code: captures in, exact answers out (issue 15, items 1 to 3)."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from hookline.hosts.claude import BATCH, ClaudeHost
from hookline.hosts.host import Verdict
from hookline.protocol.events import HookEventName

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
CLAUDE = ClaudeHost()
read = partial(read_event, CLAUDE)
shown = partial(shown_to_hooks, CLAUDE)
_E = HookEventName


def call(name: str, **tool_input: Any) -> dict[str, Any]:
    given = captured("claude", "PreToolUse-1")
    return given | {"tool_name": name, "tool_input": tool_input}


def result(name: str, response: Any) -> dict[str, Any]:
    given = captured("claude", "PostToolUse-1")
    return given | {"tool_name": name, "tool_response": response}


@pytest.mark.parametrize("name", capture_names("claude"))
async def test_every_capture_is_read_and_answered(desk: Desk, name: str) -> None:
    given = captured("claude", name)
    event = read(given)
    assert event.name == name.partition("-")[0]
    if event.name != BATCH:
        assert event.event is CLAUDE.events.get(event.name)
    assert (event.event is None) == (event.name in {*CLAUDE.ignored, BATCH})
    assert event.cwd == "/home/user/project"
    assert event.session_id == given["session_id"]
    assert event.transcript_path == given["transcript_path"]
    reply = await desk.ask("claude", given)
    assert (reply.stdout, reply.stderr, reply.status) == (b"{}\n", b"", 0)


def specific(event: str, **fields: Any) -> str:
    text = json.dumps({"hookEventName": event, **fields}, separators=(",", ":"))
    return f'{{"hookSpecificOutput":{text}}}'


def denied(reason: str) -> str:
    said = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return specific("PreToolUse", **said)


STOPPED = '{"continue":false,"stopReason":"enough"'
DENIED_STOP = f"{STOPPED},{denied('enough')[1:]}"
ASKED = specific(
    "PreToolUse", permissionDecision="ask", permissionDecisionReason="sure?"
)
ESCAPED = "see &lt;b&gt;"
BOTH_TOLD = f"{ESCAPED}\na note"
MISSING = "File does not exist. Note: your current working directory is {}."
BLOCKED = '{"decision":"block","reason":"no <b>"}'
BLOCKED_WITH_ALL = '{"decision":"block","reason":"no <b>\\n\\nsee &lt;b&gt;\\na note"}'
NOTED = '{"systemMessage":"a note"}'


def told(event: str, text: str) -> str:
    return specific(event, additionalContext=text)


ANSWERS = [
    ("PreToolUse-1", BLOCK, denied("no <b>")),
    ("PreToolUse-1", ALL, denied("no <b>\n\nsee &lt;b&gt;\na note")),
    ("PreToolUse-1", {"decision": "deny"}, denied("No reason provided")),
    ("PreToolUse-1", ASK, ASKED),
    ("PreToolUse-1", STOP, DENIED_STOP),
    ("PreToolUse-1", {**BLOCK, **STOP}, DENIED_STOP),
    ("PreToolUse-1", CONTEXT, told("PreToolUse", ESCAPED)),
    ("PreToolUse-1", MESSAGE, told("PreToolUse", "a note")),
    ("PreToolUse-1", {**CONTEXT, **MESSAGE}, told("PreToolUse", BOTH_TOLD)),
    ("PreToolUse-1", {"suppressOutput": True}, "{}"),
    (
        "PreToolUse-1",
        changing(command="ls"),
        specific("PreToolUse", updatedInput={"command": "ls", "description": "say hi"}),
    ),
    (
        "PreToolUse-2",
        changing(path="b"),
        specific("PreToolUse", updatedInput={"file_path": "b", "content": "hello"}),
    ),
    (
        "PreToolUse-6",
        changing(path="b"),
        specific("PreToolUse", updatedInput={"path": "b", "text": "b"}),
    ),
    ("PostToolUse-1", BLOCK, BLOCKED),
    (
        "PostToolUse-1",
        ALL,
        f"{BLOCKED[:-1]},{told('PostToolUse', BOTH_TOLD)[1:]}",
    ),
    ("PostToolUse-1", STOP, f"{STOPPED}}}"),
    ("PostToolUse-1", CONTEXT, told("PostToolUse", ESCAPED)),
    ("PostToolUse-1", MESSAGE, told("PostToolUse", "a note")),
    ("PostToolUseFailure-1", BLOCK, told("PostToolUseFailure", "no &lt;b&gt;")),
    ("PostToolUseFailure-1", CONTEXT, told("PostToolUseFailure", ESCAPED)),
    ("PostToolUseFailure-1", STOP, told("PostToolUseFailure", "enough")),
    ("PostToolUseFailure-1", WITHHOLD, told("PostToolUseFailure", "secret")),
    ("UserPromptSubmit-1", BLOCK, BLOCKED),
    ("UserPromptSubmit-1", ALL, f"{BLOCKED[:-1]},{NOTED[1:]}"),
    ("UserPromptSubmit-1", STOP, f'{STOPPED},"decision":"block","reason":"enough"}}'),
    ("UserPromptSubmit-1", CONTEXT, told("UserPromptSubmit", ESCAPED)),
    ("UserPromptSubmit-1", MESSAGE, told("UserPromptSubmit", "a note")),
    ("Stop-1", BLOCK, BLOCKED),
    ("Stop-1", ALL, BLOCKED_WITH_ALL),
    ("Stop-1", STOP, f"{STOPPED}}}"),
    ("Stop-1", {**BLOCK, **STOP}, f"{STOPPED}}}"),
    ("Stop-1", MESSAGE, NOTED),
    ("SubagentStop-1", BLOCK, BLOCKED),
    ("SubagentStop-1", STOP, f"{STOPPED}}}"),
    (
        "SubagentStart-1",
        BLOCK,
        told("SubagentStart", "Do not start: no &lt;b&gt;"),
    ),
    ("SubagentStart-1", STOP, told("SubagentStart", "Do not start: enough")),
    ("SubagentStart-1", CONTEXT, told("SubagentStart", ESCAPED)),
    ("SessionStart-1", CONTEXT, told("SessionStart", ESCAPED)),
    ("SessionStart-1", MESSAGE, told("SessionStart", "a note")),
    ("SessionStart-1", {**BLOCK, **CONTEXT}, told("SessionStart", ESCAPED)),
    ("SessionStart-1", STOP, "{}"),
    ("SessionEnd-1", MESSAGE, NOTED),
    ("SessionEnd-1", BLOCK, "{}"),
    ("PreCompact-1", MESSAGE, NOTED),
    ("PreCompact-1", STOP, "{}"),
]


@pytest.mark.parametrize(("name", "then", "expected"), ANSWERS)
async def test_each_verdict_has_its_answer(
    desk: Desk, name: str, then: Any, expected: str
) -> None:
    """Issue 15.2, hosts/README.md#rules 2 to 4 and 12."""
    given = captured("claude", name)
    desk.rule(CLAUDE.events[given["hook_event_name"]].value, then)
    reply = await desk.ask("claude", given)
    assert (reply.stdout.decode(), reply.status) == (f"{expected}\n", 0)


LINES = {"numLines": 1, "startLine": 1, "totalLines": 1}
PART = [{"type": "text", "text": "secret"}]
EDITED = {"filePath": "secret", "originalFile": "", "structuredPatch": []}
REPLACED = {
    "Bash": {"stdout": "secret", "stderr": "", "interrupted": False, "isImage": False},
    "Read": {"type": "text", "file": {"filePath": "", "content": "secret", **LINES}},
    "Write": {"type": "update", "content": "secret", **EDITED},
    "Edit": {"oldString": "", "newString": "", "userModified": False}
    | {"replaceAll": False, **EDITED},
    "Grep": {"mode": "content", "numFiles": 0, "filenames": []}
    | {"content": "secret", "numLines": 1},
    "Glob": {"filenames": ["secret"], "numFiles": 1, "durationMs": 0}
    | {"truncated": False},
    "WebFetch": {"result": "secret", "url": "", "bytes": 0, "code": 200}
    | {"codeText": "", "durationMs": 0},
    "WebSearch": {"query": "", "results": ["secret"], "durationSeconds": 0},
    "Agent": {"status": "completed", "content": PART},
}
RESPONSES: dict[str, Any] = {"Agent": {"status": "completed", "content": [1]}}


@pytest.mark.parametrize(("tool", "expected"), REPLACED.items())
async def test_withheld_result_is_replaced_in_the_shape_of_its_tool(
    desk: Desk, tool: str, expected: Any
) -> None:
    """Another shape would be ignored, and the result would leak.

    hosts/README.md#rules 3
    """
    desk.rule("AfterTool", WITHHOLD)
    reply = await desk.ask("claude", result(tool, RESPONSES.get(tool, {"x": "top"})))
    said = specific("PostToolUse", updatedToolOutput=expected)
    assert (reply.stdout.decode(), reply.stderr) == (f"{said}\n", b"")


@pytest.mark.parametrize(("response", "expected"), [("text", "secret"), (PART, PART)])
async def test_withheld_result_of_an_mcp_tool_keeps_its_kind(
    desk: Desk, response: Any, expected: Any
) -> None:
    desk.rule("AfterTool", WITHHOLD)
    reply = await desk.ask("claude", result("mcp__files__save", response))
    said = specific("PostToolUse", updatedToolOutput=expected)
    assert reply.stdout.decode() == f"{said}\n"


@pytest.mark.parametrize(
    ("tool", "response"),
    [("Agent", {"status": "async_launched"}), ("Skill", {"text": "x"}), ("Task", "x")],
)
async def test_result_that_cannot_be_replaced_ends_the_run(
    desk: Desk, tool: str, response: Any
) -> None:
    """hosts/README.md#rules 11: the stricter form, and a line that says so."""
    desk.rule("AfterTool", WITHHOLD)
    reply = await desk.ask("claude", result(tool, response))
    expected = f'{{"continue":false,"stopReason":"{tool}: secret"}}\n'
    assert reply.stdout.decode() == expected
    assert b"withhold: the run ends" in reply.stderr


LOST = [
    ("PostToolUseFailure-1", WITHHOLD, "withhold: "),
    ("PostToolUseFailure-1", STOP, ""),
    ("PostToolUse-1", {"suppressOutput": True}, "suppress output: "),
    ("SubagentStart-1", BLOCK, "block: the subagent starts"),
    ("SubagentStart-1", STOP, "stop: the subagent starts"),
    ("Stop-1", CLEAR, "clear context: the context stays as it is"),
    ("SessionEnd-1", MESSAGE, "message: shown to the person, not to the model"),
    ("PostToolUse-1", STOP, ""),
    ("PostToolUse-1", WITHHOLD, ""),
]


@pytest.mark.parametrize(("name", "then", "expected"), LOST)
async def test_what_is_lost_is_said_when_it_is_lost(
    desk: Desk, name: str, then: Any, expected: str
) -> None:
    """Issue 15.2, hosts/README.md#rules 11."""
    await desk.check_loss(CLAUDE, captured("claude", name), then, expected)


TOOLS = [
    ("Bash", {"command": "ls"}, "run_shell_command", {"command": "ls"}),
    ("Read", {"file_path": "a"}, "read_file", {"path": "a"}),
    (
        "Write",
        {"file_path": "a", "content": "b"},
        "write_file",
        {"path": "a", "content": "b"},
    ),
    (
        "Edit",
        {"file_path": "a", "old_string": "b", "new_string": "c", "replace_all": True},
        "replace",
        {"path": "a", "old_string": "b", "new_string": "c", "replace_all": True},
    ),
    (
        "MultiEdit",
        {"file_path": "a", "edits": [{"old_string": "b", "new_string": "c"}] * 2},
        "replace",
        {"path": "a", "old_string": "b\nb", "new_string": "c\nc"},
    ),
    ("Glob", {"pattern": "*"}, "glob", {"pattern": "*"}),
    (
        "Grep",
        {"pattern": "x", "path": "."},
        "search_file_content",
        {"pattern": "x", "path": "."},
    ),
    ("LS", {"path": "."}, "list_directory", {"path": "."}),
    ("WebFetch", {"url": "u", "prompt": "p"}, "web_fetch", {"url": "u", "prompt": "p"}),
    ("WebSearch", {"query": "q"}, "web_search", {"query": "q"}),
    ("Agent", {"prompt": "p"}, "task", {"prompt": "p"}),
    ("Task", {"prompt": "p"}, "task", {"prompt": "p"}),
    ("Skill", {"skill": "s"}, "Skill", {"skill": "s"}),
]


@pytest.mark.parametrize(("tool", "given", "name", "expected"), TOOLS)
def test_tools_have_our_names(tool: str, given: Any, name: str, expected: Any) -> None:
    """hosts/README.md#what-a-hook-sees; the host's own are beside it (issue 15.1)."""
    found = shown(call(tool, **given))
    assert (found["tool_name"], found["tool_input"]) == (name, expected)
    about = {"name": "claude", "event": "PreToolUse", "tool_name": tool}
    assert found["host"] == {**about, "tool_input": given}


def test_what_claude_knows_of_a_call_is_carried_over() -> None:
    found = shown(captured("claude", "PreToolUse-5"))
    assert found["tool_use_id"] == "toolu_0025"
    assert found["permission_mode"] == "acceptEdits"
    assert found["agent_id"] == "aac3f0fdf2d831b8a"
    assert found["agent_type"] == "general-purpose"


def test_mcp_tools_keep_their_name_and_have_a_context() -> None:
    found = shown(captured("claude", "PreToolUse-6"))
    assert found["tool_name"] == "mcp__files__save"
    assert found["mcp_context"] == {"server_name": "files", "tool_name": "save"}


RESULTS = [
    ("PostToolUse-1", "hi"),
    ("PostToolUse-5", '{"result":"saved a"}'),
    ("PostToolUseFailure-1", MISSING.format("/home/user/project")),
]


@pytest.mark.parametrize(("name", "expected"), RESULTS)
def test_results_are_shown_in_our_shape(name: str, expected: str) -> None:
    """protocol.md#events; hosts/README.md#rules 7."""
    response = shown(captured("claude", name))["tool_response"]
    assert response["llmContent"] == expected
    is_failure = name.startswith("PostToolUseFailure")
    assert response.get("error") == ({"message": expected} if is_failure else None)


def test_the_object_of_a_result_is_its_metadata() -> None:
    response = shown(captured("claude", "PostToolUse-1"))["tool_response"]
    assert response["metadata"]["stdout"] == "hi"
    listed = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    found = shown(result("mcp__files__save", listed))["tool_response"]
    assert found["llmContent"] == "a\nb"


FIELDS = [
    ("SessionStart-1", {"source": "startup"}),
    ("SessionStart-2", {"source": "resume"}),
    ("SessionStart-3", {"source": "compress"}),
    ("SessionEnd-1", {"reason": "other"}),
    ("PreCompact-1", {"trigger": "manual"}),
    ("UserPromptSubmit-1", {"prompt": "please work"}),
    ("Stop-1", {"prompt_response": "All DONE.", "stop_hook_active": False}),
    ("Stop-2", {"prompt_response": "ok two", "stop_hook_active": True}),
    ("SubagentStart-1", {"agent_type": "general-purpose"}),
    ("SubagentStop-1", {"prompt_response": "sub finished", "stop_hook_active": False}),
]


@pytest.mark.parametrize(("name", "expected"), FIELDS)
def test_fields_have_our_names_and_values(name: str, expected: Any) -> None:
    assert expected.items() <= shown(captured("claude", name)).items()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"notification_type": "permission_prompt"}, "ToolPermission"),
        ({"notification_type": "idle_prompt"}, "idle_prompt"),
    ],
)
def test_notifications_have_our_types(given: Any, expected: str) -> None:
    fields = {"hook_event_name": "Notification", "message": "m", "title": "t", **given}
    found = shown(fields)
    assert found["notification_type"] == expected
    assert (found["message"], found["details"]) == ("m", {"title": "t"})


def test_a_notice_is_for_the_person() -> None:
    """protocol.md#dialects: what hooks for Claude Code say goes to the person."""
    verdict = Verdict(notice="look", context="c")
    answer = CLAUDE.write(read(captured("claude", "PreToolUse-1")), verdict)
    said = told("PreToolUse", "c")
    assert answer.stdout.decode() == f'{said[:-1]},"systemMessage":"look"}}\n'


def test_answers_are_ascii() -> None:
    """Node decodes a pipe piece by piece: a character in two pieces would break."""
    verdict = Verdict(blocked=True, reason="n\u00e9 \U0001f600")
    answer = CLAUDE.write(read(captured("claude", "Stop-1")), verdict)
    expected = rb'{"decision":"block","reason":"n\u00e9 \ud83d\ude00"}'
    assert answer.stdout == expected + b"\n"


def test_an_event_of_another_name_is_unknown() -> None:
    """Names count to the letter, and the JSON before the command line."""
    given = captured("claude", "PreToolUse-1")
    assert CLAUDE.event_name(given, "Notification") == "PreToolUse"
    assert CLAUDE.event_name({}, "Stop") == "Stop"
    assert CLAUDE.events.get("pretooluse") is None
