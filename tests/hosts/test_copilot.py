"""Copilot: captures in, exact answers out (issue 15, items 1 to 3; HOSTS, Copilot)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.hosts.copilot import CopilotHost
from hookline.hosts.host import BadInputError, HostEvent, Verdict
from hookline.protocol.events import HookEventName

from .captured import (
    ASK,
    BLOCK,
    CONTEXT,
    MESSAGE,
    STOP,
    WITHHOLD,
    Desk,
    capture_names,
    captured,
    changing,
    desk,
    line,
)

__all__ = ["desk"]
COPILOT = CopilotHost()
_E = HookEventName
SESSION = "00000000-0000-4000-8000-000000000001"
OWN = [("copilot", name) for name in capture_names("copilot")]
CLAUDES = [
    (folder, name)
    for folder in ("copilot-pascal", "copilot-readsclaude")
    for name in capture_names(folder)
]


def own(name: str, **changes: Any) -> HostEvent:
    """An event with a camelCase name, read."""
    return COPILOT.read(captured("copilot", name) | changes, name.partition("-")[0])


def shown(event: HostEvent) -> dict[str, Any]:
    (fields,) = event.inputs(COPILOT.name)
    return fields


@pytest.mark.parametrize(("folder", "name"), [*OWN, *CLAUDES])
async def test_every_capture_is_read_and_answered(
    desk: Desk, folder: str, name: str
) -> None:
    """Issue 15, how it is judged: every capture; nothing to say is an empty object."""
    capture, event = captured(folder, name), name.partition("-")[0]
    found = COPILOT.event_name(capture, event if folder == "copilot" else None)
    read = COPILOT.read(capture, found)
    assert (read.name, read.session_id) == (event, SESSION)
    assert read.cwd == "/home/user/project"
    assert (read.event is None) == (event == "permissionRequest")
    argument = event if folder == "copilot" else None
    reply = await desk.ask("copilot", capture, argument)
    assert (reply.stdout, reply.stderr, reply.status) == (b"{}\n", b"", 0)


DENY = {"permissionDecision": "deny", "permissionDecisionReason": "no <b>"}
STOPPED = {"permissionDecision": "deny", "permissionDecisionReason": "enough"}
QUESTION = {"permissionDecision": "ask", "permissionDecisionReason": "sure?"}
HIDDEN = {"resultType": "success", "textResultForLlm": "secret"}


@pytest.mark.parametrize(
    ("name", "event", "then", "expected"),
    [
        ("preToolUse-1", "BeforeTool", BLOCK, line(**DENY)),
        ("preToolUse-2", "BeforeTool", {**BLOCK, **CONTEXT, **MESSAGE},
         line(**DENY, additionalContext="see &lt;b&gt;\na note")),
        ("preToolUse-3", "BeforeTool", STOP, line(**STOPPED)),
        ("preToolUse-1", "BeforeTool", ASK, line(**QUESTION)),
        ("preToolUse-1", "BeforeTool", changing(command="ls"),
         line(modifiedArgs={"command": "ls", "description": "say hi"})),
        ("preToolUse-2", "BeforeTool", {**changing(content="c"), **ASK},
         line(**QUESTION, modifiedArgs={"path": "/home/user/project/note.txt",
                                        "file_text": "c"})),
        ("preToolUse-1", "BeforeTool", CONTEXT,
         line(additionalContext="see &lt;b&gt;")),
        ("postToolUse-1", "AfterTool", BLOCK,
         line(additionalContext="no &lt;b&gt;")),
        ("postToolUse-2", "AfterTool", {**BLOCK, **CONTEXT, **MESSAGE},
         line(additionalContext="no &lt;b&gt;\n\nsee &lt;b&gt;\na note")),
        ("postToolUse-1", "AfterTool", {**BLOCK, **WITHHOLD},
         line(modifiedResult=HIDDEN)),
        ("postToolUse-1", "AfterTool", STOP,
         line(modifiedResult=HIDDEN | {"textResultForLlm": "enough"})),
        ("postToolUseFailure-1", "AfterTool", CONTEXT,
         line(additionalContext="see &lt;b&gt;")),
        ("postToolUseFailure-1", "AfterTool", BLOCK,
         line(additionalContext="no &lt;b&gt;")),
        ("userPromptSubmitted-1", "BeforeAgent", BLOCK,
         line(decision="block", reason="no <b>")),
        ("userPromptSubmitted-1", "BeforeAgent", STOP,
         line(decision="block", reason="enough")),
        ("userPromptSubmitted-1", "BeforeAgent", {**CONTEXT, **MESSAGE},
         line(additionalContext="see &lt;b&gt;\na note")),
        ("agentStop-1", "AfterAgent", BLOCK, line(decision="block", reason="no <b>")),
        ("agentStop-2", "AfterAgent", {**BLOCK, **MESSAGE},
         line(decision="block", reason="no <b>\n\na note")),
        ("agentStop-1", "AfterAgent", STOP, b"{}\n"),
        ("agentStop-1", "AfterAgent", {**STOP, **BLOCK}, b"{}\n"),
        ("sessionStart-1", "SessionStart", {**CONTEXT, **MESSAGE},
         line(additionalContext="see &lt;b&gt;\na note")),
        ("sessionStart-1", "SessionStart", BLOCK, b"{}\n"),
        ("sessionEnd-1", "SessionEnd", MESSAGE, b"{}\n"),
        ("permissionRequest-1", "BeforeTool", BLOCK, b"{}\n"),
        ("permissionRequest-2", "Notification", BLOCK, b"{}\n"),
    ],
)  # fmt: skip
async def test_answers_are_these_bytes(
    desk: Desk, name: str, event: str, then: Any, expected: bytes
) -> None:
    """HOSTS, what an answer does; rules 1 to 4 and 12."""
    desk.rule(event, then)
    capture = captured("copilot", name)
    reply = await desk.ask("copilot", capture, name.partition("-")[0])
    assert (reply.stdout, reply.status) == (expected, 0)


async def test_losses_are_told_where_something_is_lost(desk: Desk) -> None:
    """The error of a failed tool cannot be withheld, a result can.

    hosts/README.md#rules 11
    """
    desk.rule("AfterTool", {**BLOCK, **WITHHOLD})
    failed = captured("copilot", "postToolUseFailure-1")
    reply = await desk.ask("copilot", failed, "postToolUseFailure")
    assert reply.stdout == line(additionalContext="secret")
    assert b"the error of a tool that failed reaches the model" in reply.stderr
    done = captured("copilot", "postToolUse-1")
    assert (await desk.ask("copilot", done, "postToolUse")).stderr == b""
    desk.rule("AfterAgent", {**BLOCK, **MESSAGE})
    stop = captured("copilot", "agentStop-1")
    assert (await desk.ask("copilot", stop, "agentStop")).stderr == b""


def specific(**said: Any) -> bytes:
    return line(hookSpecificOutput={"hookEventName": "PreToolUse", **said})


@pytest.mark.parametrize(
    ("folder", "name", "event", "then", "expected"),
    [
        (folder, "PreToolUse-1", "BeforeTool", then, expected)
        for folder in ("copilot-pascal", "copilot-readsclaude")
        for then, expected in (
            (BLOCK, specific(**DENY)),
            (STOP, specific(**STOPPED)),
            (ASK, specific(**QUESTION)),
            (CONTEXT, specific(additionalContext="see &lt;b&gt;")),
            (
                changing(command="ls"),
                specific(updatedInput={"command": "ls", "description": "d"}),
            ),
        )
    ]
    + [
        (folder, "Stop-1", "AfterAgent", BLOCK, line(decision="block", reason="no <b>"))
        for folder in ("copilot-pascal", "copilot-readsclaude")
    ]
    + [
        ("copilot-pascal", *row)
        for row in (
            ("Stop-2", "AfterAgent", STOP, b"{}\n"),
            ("UserPromptSubmit-1", "BeforeAgent", BLOCK,
             line(decision="block", reason="no <b>")),
            ("UserPromptSubmit-1", "BeforeAgent", CONTEXT,
             line(additionalContext="see &lt;b&gt;")),
            ("SessionStart-1", "SessionStart", CONTEXT,
             line(additionalContext="see &lt;b&gt;")),
            ("SessionEnd-1", "SessionEnd", MESSAGE, b"{}\n"),
        )
    ],
)  # fmt: skip
async def test_claudes_spelling_is_answered_as_copilot_obeys_it(
    desk: Desk, folder: str, name: str, event: str, then: Any, expected: bytes
) -> None:
    """HOSTS, Copilot: context in Claude's shape is lost but before a tool."""
    desk.rule(event, then)
    reply = await desk.ask("copilot", captured(folder, name))
    assert (reply.stdout, reply.status) == (expected, 0)


READS_CLAUDE = {"COPILOT_CLI": "1"}
INSIDE_CLAUDE = {"COPILOT_CLI": "1", "CLAUDECODE": "1"}


def seen_by_hooks(desk: Desk, event: str) -> Path:
    """A file with what the hook of an event is shown."""
    file = desk.project / "seen.json"
    hook = {"type": "command", "command": f"cat >{file}"}
    desk.hook(event, hook)
    return file


@pytest.mark.parametrize("variables", [READS_CLAUDE, INSIDE_CLAUDE])
@pytest.mark.parametrize(
    ("name", "event"), [("PreToolUse-1", "BeforeTool"), ("Stop-1", "AfterAgent")]
)
async def test_copilot_is_known_where_it_reads_claudes_settings(
    desk: Desk,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    name: str,
    event: str,
) -> None:
    """hosts/README.md#rules 9: fired as Copilot, answered in Claude's shape."""
    for key, value in variables.items():
        monkeypatch.setenv(key, value)
    file = seen_by_hooks(desk, event)
    capture = captured("copilot-readsclaude", name)
    assert (await desk.ask("claude", capture)).stdout == b"{}\n"
    host = json.loads(file.read_text())["host"]
    assert (host["name"], host["event"]) == ("copilot", name.partition("-")[0])


async def test_claude_inside_copilot_is_claude(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """hosts/README.md#rules 9: both variables, and the JSON of Claude Code."""
    for key, value in INSIDE_CLAUDE.items():
        monkeypatch.setenv(key, value)
    file = seen_by_hooks(desk, "BeforeTool")
    call = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
    await desk.ask("claude", {"hook_event_name": "PreToolUse", **call})
    assert json.loads(file.read_text())["host"]["name"] == "claude"


def test_tools_are_shown_in_our_spelling() -> None:
    """hosts/README.md#what-a-hook-sees; the host's own are beside them."""
    call = shown(own("preToolUse-2"))
    path = "/home/user/project/note.txt"
    assert call["tool_name"] == "write_file"
    assert call["tool_input"] == {"path": path, "content": "hello"}
    given = {"path": path, "file_text": "hello"}
    assert call["host"] == {
        "name": "copilot",
        "event": "preToolUse",
        "tool_name": "create",
        "tool_input": given,
    }
    claudes = captured("copilot-readsclaude", "PreToolUse-1")
    read = shown(COPILOT.read(claudes, "PreToolUse"))
    assert (read["tool_name"], read["host"]["tool_name"]) == (
        "run_shell_command",
        "Bash",
    )


def test_arguments_as_json_text_are_read() -> None:
    """Other versions write the arguments as a string."""
    text = json.dumps({"command": "echo hi"})
    assert shown(own("preToolUse-1", toolArgs=text))["tool_input"]["command"] == (
        "echo hi"
    )


PATCH = "*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b\n*** End Patch\n"


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("preToolUse", {"toolName": "apply_patch", "toolArgs": PATCH}),
        ("preToolUse", {"toolName": "apply_patch", "toolArgs": {"input": PATCH}}),
        ("PreToolUse", {"tool_name": "Edit", "tool_input": PATCH}),
    ],
)
def test_a_patch_is_shown_file_by_file(name: str, sent: dict[str, Any]) -> None:
    """As the program sent it with a model of the gpt-5-codex family."""
    inputs = COPILOT.read(sent, name).inputs(COPILOT.name)
    assert [(one["tool_name"], one["tool_input"]["path"]) for one in inputs] == [
        ("write_file", "a"),
        ("delete_file", "b"),
    ]


def test_mcp_tools_keep_their_names() -> None:
    """Issue 15.1: as the program sent it, for a server called my-notes."""
    call = shown(own("preToolUse-1", toolName="my-notes-add_note", toolArgs={}))
    assert call["tool_name"] == "my-notes-add_note"
    server = {"server_name": "my-notes", "tool_name": "add_note"}
    assert call["mcp_context"] == server
    assert "mcp_context" not in shown(own("preToolUse-1"))


def test_results_and_errors_are_carried_over() -> None:
    text = "hi\n<shellId: 0 completed with exit code 0>"
    result = {"resultType": "success", "textResultForLlm": text}
    expected = {"llmContent": text, "returnDisplay": text, "metadata": result}
    assert shown(own("postToolUse-1"))["tool_response"] == expected
    error = shown(own("postToolUseFailure-1"))["tool_response"]["error"]
    assert error == {"message": "Path does not exist"}
    claudes = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
    snake = {"result_type": "success", "text_result_for_llm": "hi"}
    read = COPILOT.read({**claudes, "tool_result": snake}, "PostToolUse")
    assert shown(read)["tool_response"]["llmContent"] == "hi"


def test_sources_and_reasons_are_ours() -> None:
    assert own("sessionStart-1").fields == {"source": "startup"}
    assert own("sessionEnd-1").fields == {"reason": "exit"}
    assert own("sessionEnd-1", reason="abort").fields == {"reason": "other"}
    assert own("sessionEnd-1", reason="user_exit").fields["reason"] == (
        "prompt_input_exit"
    )


def test_a_notification_keeps_its_event_though_its_json_has_another_name() -> None:
    """As the program sent it: camelCase keys beside ``hook_event_name``."""
    about = {"message": "Path permission needed: /x", "title": "Permission needed"}
    name = {"hook_event_name": "Notification", "sessionId": "s"}
    sent = {**name, **about, "notification_type": "permission_prompt"}
    assert COPILOT.event_name(sent, "notification") == "notification"
    for found in ("notification", "Notification"):
        fields = COPILOT.read(sent, found).fields
        assert fields["notification_type"] == "ToolPermission"
        assert fields["details"] == {"title": "Permission needed"}


AGENT = {"agentId": "a1", "agentType": "general-purpose", "parentAgentId": SESSION}


async def test_subagents_are_carried_over(desk: Desk) -> None:
    """Issue 15.1: as the program sent them."""
    start = {"sessionId": "s", "agentName": "general-purpose", **AGENT}
    stop = {**start, "response": "sub done", "stop_hook_active": True}
    desk.rule("SubagentStop", BLOCK)
    reply = await desk.ask("copilot", stop, "subagentStop")
    assert reply.stdout == line(decision="block", reason="no <b>")
    fields = COPILOT.read(stop, "subagentStop").fields
    assert (fields["agent_id"], fields["prompt_response"]) == ("a1", "sub done")
    assert fields["stop_hook_active"] is True
    desk.rule("SubagentStart", BLOCK)
    told = line(additionalContext="Do not start: no &lt;b&gt;")
    assert (await desk.ask("copilot", start, "subagentStart")).stdout == told
    # With a PascalCase name in its settings, Copilot sends this one without a name.
    assert (await desk.ask("copilot", start)).stdout == told


async def test_the_turns_of_subagents_are_not_turns_of_the_agent(desk: Desk) -> None:
    """Copilot fires both; a rule for the end of a turn holds once."""
    desk.rule("AfterAgent", BLOCK)
    given = captured("copilot", "agentStop-1") | AGENT
    assert (await desk.ask("copilot", given, "agentStop")).stdout == b"{}\n"
    call = shown(own("preToolUse-1", **AGENT))
    assert (call["agent_id"], call["agent_type"]) == ("a1", "general-purpose")


@pytest.mark.parametrize(
    ("event", "sent"),
    [
        ("preToolUse", {"toolName": "bash"}),
        ("preToolUse", {"toolArgs": {}}),
        ("postToolUse", {"toolName": "bash", "toolArgs": {}}),
        ("userPromptSubmitted", {}),
        ("nextYear", {}),
        (None, {"toolName": "bash", "toolArgs": {}}),
        (None, {"hook_event_name": "PreToolUse", "tool_name": "Bash"}),
    ],
)
async def test_what_cannot_be_read_is_blocked_where_a_policy_asks(
    desk: Desk, event: str | None, sent: dict[str, Any]
) -> None:
    """Issue 15.3; never a non-zero exit by accident (hosts/README.md#rules 1)."""
    with pytest.raises(BadInputError):
        COPILOT.read(sent, COPILOT.event_name(sent, event))
    ours = COPILOT.events.get(event or "", _E.BeforeTool)
    for policy, is_open in (("allow", True), ("block", False)):
        desk.rule(ours.value, CONTEXT, onError=policy)
        reply = await desk.ask("copilot", sent, event)
        assert reply.status == 0
        assert b"could not be read" in reply.stderr + reply.stdout
        assert (reply.stdout == b"{}\n") is is_open


KEYS: dict[HookEventName, set[str]] = {
    _E.BeforeTool: {"permissionDecision", "permissionDecisionReason", "modifiedArgs"}
    | {"additionalContext"},
    _E.AfterTool: {"modifiedResult", "additionalContext"},
    _E.BeforeAgent: {"decision", "reason", "additionalContext"},
    _E.AfterAgent: {"decision", "reason"},
    _E.SubagentStop: {"decision", "reason"},
    _E.SessionStart: {"additionalContext"},
    _E.SubagentStart: {"additionalContext"},
}
TEXTS = st.sampled_from(["", " ", "\n"]) | st.text(max_size=9)
VERDICTS = st.builds(
    Verdict,
    blocked=st.booleans(),
    reason=TEXTS,
    ask=st.booleans(),
    stopped=st.booleans(),
    stop_reason=TEXTS,
    context=TEXTS,
    message=TEXTS,
    tool_input=st.none() | st.dictionaries(st.text(max_size=3), TEXTS, max_size=2),
    withheld=st.booleans(),
)


@pytest.mark.parametrize("name", COPILOT.events)
@given(verdict=VERDICTS)
def test_any_verdict_is_written_in_keys_that_copilot_accepts(
    name: str, verdict: Verdict
) -> None:
    """hosts/README.md#rules 1; a block without a reason is ignored at the prompt."""
    ours = COPILOT.events[name]
    answer = COPILOT.write(HostEvent(name=name, event=ours), verdict)
    assert (answer.status, answer.stderr) == (0, "")
    written = json.loads(answer.stdout)
    assert written.keys() <= KEYS.get(ours, set())
    if written.get("decision") or written.get("permissionDecision") == "deny":
        reason = written.get("reason") or written.get("permissionDecisionReason")
        assert reason.strip()
