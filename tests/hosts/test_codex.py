"""Codex: captures in, exact answers out (issue 15, items 1 to 3; HOSTS, Codex)."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.hosts.codex import CodexHost
from hookline.hosts.host import BadInputError, HostEvent, Verdict
from hookline.hosts.tools import read_call
from hookline.journal.query import EventFilter, read_journal
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
    read_event,
)

__all__ = ["desk"]
CODEX = CodexHost()
read = partial(read_event, CODEX)
_E = HookEventName
SESSION = "00000000-0000-4000-8000-000000000001"
PATCH = {"command": "*** Begin Patch\n*** Add File: new2.txt\n+hello\n*** End Patch\n"}

COMMON = {"continue", "stopReason", "systemMessage"}
ACCEPTED: dict[str, tuple[set[str], set[str]]] = {
    "PreToolUse": (
        # It refuses continue, stopReason, and a decision beside its own.
        {"systemMessage", "hookSpecificOutput"},
        {"permissionDecision", "permissionDecisionReason", "updatedInput"}
        | {"additionalContext"},
    ),
    "PostToolUse": (
        COMMON | {"decision", "reason", "hookSpecificOutput"},
        {"additionalContext"},
    ),
    "UserPromptSubmit": (
        COMMON | {"decision", "reason", "hookSpecificOutput"},
        {"additionalContext"},
    ),
    "Stop": (COMMON | {"decision", "reason"}, set()),
    "SubagentStop": (COMMON | {"decision", "reason"}, set()),
    "SessionStart": (COMMON | {"hookSpecificOutput"}, {"additionalContext"}),
    "SubagentStart": (COMMON | {"hookSpecificOutput"}, {"additionalContext"}),
    "PreCompact": (COMMON, set()),
    "SessionEnd": (set(), set()),
}
"""Keys of an answer, and of what is specific to an event: its schemas in the binary.

Any other key makes Codex drop the answer and run the tool.
"""


def specific(event: str, **said: Any) -> bytes:
    return line(hookSpecificOutput={"hookEventName": event, **said})


@pytest.mark.parametrize("name", capture_names("codex"))
async def test_every_capture_is_read_and_answered(desk: Desk, name: str) -> None:
    """Issue 15, how it is judged: every capture; nothing to say is an empty object."""
    capture = captured("codex", name)
    event = read(capture)
    assert event.name == name.partition("-")[0]
    assert event.event is CODEX.events.get(event.name)
    assert (event.session_id, event.cwd) == (SESSION, "/home/user/project")
    assert event.transcript_path == capture["transcript_path"]
    reply = await desk.ask("codex", capture)
    assert (reply.stdout, reply.stderr, reply.status) == (b"{}\n", b"", 0)


@pytest.mark.parametrize(
    ("name", "event", "then", "expected"),
    [
        (
            "PreToolUse-1", "BeforeTool", BLOCK,
            specific("PreToolUse", permissionDecision="deny",
                     permissionDecisionReason="no <b>"),
        ),
        (
            "PreToolUse-2", "BeforeTool", BLOCK,
            specific("PreToolUse", permissionDecision="deny",
                     permissionDecisionReason="no <b>"),
        ),
        (
            "PreToolUse-3", "BeforeTool", {**BLOCK, **CONTEXT, **MESSAGE},
            specific("PreToolUse", permissionDecision="deny",
                     permissionDecisionReason="no <b>",
                     additionalContext="see &lt;b&gt;\na note"),
        ),
        (
            "PreToolUse-1", "BeforeTool", STOP,
            specific("PreToolUse", permissionDecision="deny",
                     permissionDecisionReason="enough"),
        ),
        (
            "PreToolUse-1", "BeforeTool", ASK,
            specific("PreToolUse", permissionDecision="deny",
                     permissionDecisionReason="sure?"),
        ),
        (
            "PreToolUse-1", "BeforeTool", changing(command="ls"),
            specific("PreToolUse", permissionDecision="allow",
                     updatedInput={"command": "ls"}),
        ),
        (
            "PreToolUse-3", "BeforeTool", changing(text="c"),
            specific("PreToolUse", permissionDecision="allow",
                     updatedInput={"path": "a", "text": "c"}),
        ),
        (
            "PreToolUse-2", "BeforeTool", changing(content="c"),
            specific("PreToolUse", permissionDecision="deny",
                     permissionDecisionReason="hooks changed the input of apply_patch: "
                     "a change of a part of this call cannot be put back"),
        ),
        (
            "PreToolUse-1", "BeforeTool", CONTEXT,
            specific("PreToolUse", additionalContext="see &lt;b&gt;"),
        ),
        (
            "PostToolUse-1", "AfterTool", BLOCK,
            specific("PostToolUse", additionalContext="no &lt;b&gt;"),
        ),
        (
            "PostToolUse-3", "AfterTool", {**BLOCK, **CONTEXT},
            specific("PostToolUse", additionalContext="no &lt;b&gt;\n\nsee &lt;b&gt;"),
        ),
        (
            "PostToolUse-2", "AfterTool", {**CONTEXT, **MESSAGE},
            specific("PostToolUse", additionalContext="see &lt;b&gt;\na note"),
        ),
        (
            "PostToolUse-1", "AfterTool", {**BLOCK, **WITHHOLD, "reason": "secret"},
            line(decision="block", reason="secret"),
        ),
        (
            "PostToolUse-1", "AfterTool", STOP,
            line(**{"continue": False}, stopReason="enough"),
        ),
        (
            "UserPromptSubmit-1", "BeforeAgent", BLOCK,
            line(decision="block", reason="no <b>"),
        ),
        (
            "UserPromptSubmit-1", "BeforeAgent", STOP,
            line(decision="block", reason="enough"),
        ),
        (
            "UserPromptSubmit-1", "BeforeAgent", {**CONTEXT, **MESSAGE},
            specific("UserPromptSubmit", additionalContext="see &lt;b&gt;\na note"),
        ),
        (
            "Stop-1", "AfterAgent", BLOCK,
            line(decision="block", reason="no <b>"),
        ),
        (
            "Stop-2", "AfterAgent", {**BLOCK, **MESSAGE},
            line(decision="block", reason="no <b>\n\na note"),
        ),
        (
            "Stop-1", "AfterAgent", STOP,
            line(**{"continue": False}, stopReason="enough"),
        ),
        ("Stop-1", "AfterAgent", MESSAGE, line(systemMessage="a note")),
        (
            "SessionStart-1", "SessionStart", CONTEXT,
            specific("SessionStart", additionalContext="see &lt;b&gt;"),
        ),
        (
            "SessionStart-2", "SessionStart", MESSAGE,
            specific("SessionStart", additionalContext="a note"),
        ),
        ("SessionStart-1", "SessionStart", BLOCK, b"{}\n"),
        ("PreCompact-1", "PreCompress", MESSAGE, line(systemMessage="a note")),
        ("SessionEnd-1", "SessionEnd", MESSAGE, b"{}\n"),
        ("PostCompact-1", "PreCompress", MESSAGE, b"{}\n"),
    ],
)  # fmt: skip
async def test_answers_are_these_bytes(
    desk: Desk, name: str, event: str, then: Any, expected: bytes
) -> None:
    """HOSTS, what an answer does; rules 1 to 4 and 12."""
    desk.rule(event, then)
    reply = await desk.ask("codex", captured("codex", name))
    assert (reply.stdout, reply.status) == (expected, 0)


def subagent(name: str, **fields: Any) -> dict[str, Any]:
    base = captured("codex", "Stop-1") | {"hook_event_name": name}
    return base | {"agent_id": "a1", "agent_type": "explorer", **fields}


async def test_subagents_are_carried_over(desk: Desk) -> None:
    """Issue 15.1: SubagentStart and SubagentStop, by the schemas in the binary."""
    given = subagent("SubagentStop", stop_hook_active=True)
    shown = read(given).fields
    assert (shown["agent_id"], shown["agent_type"]) == ("a1", "explorer")
    assert (shown["prompt_response"], shown["stop_hook_active"]) == ("All DONE.", True)
    desk.rule("SubagentStop", BLOCK)
    reply = await desk.ask("codex", given)
    assert reply.stdout == line(decision="block", reason="no <b>")
    desk.rule("SubagentStart", BLOCK)
    reply = await desk.ask("codex", subagent("SubagentStart"))
    told = "Do not start: no &lt;b&gt;"
    assert reply.stdout == specific("SubagentStart", additionalContext=told)
    assert b"the subagent starts, and is told not to work" in reply.stderr


async def test_ask_follows_on_ask_and_the_loss_is_told(desk: Desk) -> None:
    """Issue 15.2, hosts/README.md#rules 11: journal and stderr."""
    file = str(desk.project / "journal.sqlite")
    desk.rule("BeforeTool", ASK, onAsk="allow", journal=file)
    reply = await desk.ask("codex", captured("codex", "PreToolUse-1"))
    assert reply.stdout == b"{}\n"
    loss = "Codex: BeforeTool: ask: nobody can be asked: hooksConfig.onAsk decides"
    assert loss.encode() in reply.stderr
    with read_journal(file) as journal:
        notes = journal.newest(EventFilter(event="Notification"), None)
    assert [one.reason for one in notes] == [loss]


def test_a_shell_command_is_shown_in_our_spelling() -> None:
    """hosts/README.md#what-a-hook-sees; what Codex says besides is beside it."""
    (shown,) = read(captured("codex", "PreToolUse-1")).inputs(CODEX.name)
    assert shown["tool_name"] == "run_shell_command"
    assert shown["tool_input"] == {"command": "echo hi"}
    assert shown["tool_use_id"] == "call_1"
    assert shown["permission_mode"] == "bypassPermissions"
    own = {"tool_name": "Bash", "tool_input": {"command": "echo hi"}}
    assert shown["host"] == {"name": "codex", "event": "PreToolUse", **own}


def test_a_patch_is_shown_file_by_file() -> None:
    """Issue 15.1: one event per file."""
    (shown,) = read(captured("codex", "PreToolUse-2")).inputs(CODEX.name)
    assert shown["tool_name"] == "write_file"
    assert shown["tool_input"] == {"path": "new2.txt", "content": "hello"}
    assert shown["host"]["tool_input"] == PATCH


def test_mcp_tools_keep_their_names() -> None:
    """Issue 15.1: with ``mcp_context``; their results are text.

    hosts/README.md#rules 7
    """
    (before,) = read(captured("codex", "PreToolUse-3")).inputs(CODEX.name)
    (after,) = read(captured("codex", "PostToolUse-3")).inputs(CODEX.name)
    for shown in (before, after):
        assert shown["tool_name"] == "mcp__files__save"
        server = {"server_name": "files", "tool_name": "save"}
        assert shown["mcp_context"] == server
    response = captured("codex", "PostToolUse-3")["tool_response"]
    content = {"llmContent": "saved a", "returnDisplay": "saved a"}
    assert after["tool_response"] == {**content, "metadata": response}


def test_a_failed_mcp_tool_has_an_error() -> None:
    capture = captured("codex", "PostToolUse-3")
    capture["tool_response"]["isError"] = True
    (shown,) = read(capture).inputs(CODEX.name)
    assert shown["tool_response"]["error"] == {"message": "saved a"}


def test_results_answers_and_sources_are_carried_over() -> None:
    (shown,) = read(captured("codex", "PostToolUse-1")).inputs(CODEX.name)
    assert shown["tool_response"] == {"llmContent": "hi\n", "returnDisplay": "hi\n"}
    ending = read(captured("codex", "Stop-2")).fields
    assert (ending["prompt_response"], ending["stop_hook_active"]) == ("ok two", True)
    assert read(captured("codex", "SessionStart-2")).fields["source"] == "compress"
    fork = captured("codex", "SessionStart-1") | {"source": "fork"}
    assert read(fork).fields["source"] == "resume"
    nothing = {"transcript_path": None, "last_assistant_message": None}
    event = read(captured("codex", "Stop-1") | nothing)
    assert (event.transcript_path, event.fields["prompt_response"]) == ("", "")


@pytest.mark.parametrize(
    "event",
    [
        {"hook_event_name": "PreToolUse", "tool_name": "Bash"},
        {"hook_event_name": "PreToolUse", "tool_input": {}},
        {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {}},
        {"hook_event_name": "UserPromptSubmit"},
        {"hook_event_name": "UserPromptSubmit", "prompt": 1},
        {"hook_event_name": "NextYear"},
        {},
    ],
)
async def test_what_cannot_be_read_is_blocked_where_a_policy_asks(
    desk: Desk, event: dict[str, Any]
) -> None:
    """Issue 15.3."""
    with pytest.raises(BadInputError):
        read(event)
    for policy, is_open in (("allow", True), ("block", False)):
        name = event.get("hook_event_name", "PreToolUse")
        ours = CODEX.events.get(name, _E.BeforeTool)
        desk.rule(ours.value, CONTEXT, onError=policy)
        reply = await desk.ask("codex", event)
        assert b"could not be read" in reply.stderr + reply.stdout
        assert (reply.stdout == b"{}\n" and reply.status == 0) is is_open


TEXTS = st.sampled_from(["", " ", "\n\t", "\x1f", "\u3000"]) | st.text(max_size=9)
VERDICTS = st.builds(
    Verdict,
    blocked=st.booleans(),
    reason=TEXTS,
    ask=st.booleans(),
    stopped=st.booleans(),
    stop_reason=TEXTS,
    context=TEXTS,
    message=TEXTS,
    notice=TEXTS,
    tool_input=st.none() | st.dictionaries(st.text(max_size=3), TEXTS, max_size=2),
    withheld=st.booleans(),
    suppressed=st.booleans(),
    clear_context=st.booleans(),
)


@pytest.mark.parametrize("name", CODEX.events)
@given(verdict=VERDICTS)
def test_any_verdict_is_written_in_keys_that_codex_accepts(
    name: str, verdict: Verdict
) -> None:
    """HOSTS, Codex: an unknown key or an empty reason, and the tool runs."""
    ours = CODEX.events[name]
    call = read_call("Bash", {"command": "ls"}, {}) if "ToolUse" in name else None
    answer = CODEX.write(HostEvent(name=name, event=ours, call=call), verdict)
    assert (answer.status, answer.stderr) == (0, "")
    written = json.loads(answer.stdout)
    top, inner = ACCEPTED[name]
    assert written.keys() <= top
    said = written.get("hookSpecificOutput", {})
    assert said.keys() <= inner | {"hookEventName"}
    if said:
        assert said["hookEventName"] == name
    texts = {**written, **said}
    for key in ("reason", "permissionDecisionReason", "additionalContext"):
        assert key not in texts or texts[key].strip() or key == "additionalContext"
    assert ("reason" in written) == ("decision" in written)
    decision = said.get("permissionDecision")
    assert (decision == "deny") == ("permissionDecisionReason" in said)
    assert (decision == "allow") == ("updatedInput" in said)


@given(verdict=VERDICTS)
def test_what_is_refused_before_a_tool_is_always_a_deny(verdict: Verdict) -> None:
    """Issue 15.2: a stop is a deny, and nobody can be asked."""
    event = HostEvent(name="PreToolUse", event=_E.BeforeTool)
    said = json.loads(CODEX.write(event, verdict).stdout).get("hookSpecificOutput", {})
    is_refused = verdict.blocked or verdict.stopped or verdict.ask
    assert (said.get("permissionDecision") == "deny") == is_refused


@given(verdict=VERDICTS.filter(lambda one: one.withheld or one.stopped))
def test_a_hidden_result_is_always_replaced(verdict: Verdict) -> None:
    """hosts/README.md#rules 3: Codex's block and stop replace the output."""
    event = HostEvent(name="PostToolUse", event=_E.AfterTool)
    written = json.loads(CODEX.write(event, verdict).stdout)
    assert written.get("decision") == "block" or written.get("continue") is False
    assert (written.get("reason") or written.get("stopReason", "")).strip()
