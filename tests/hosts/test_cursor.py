"""Cursor by its documentation: examples in, exact answers out (issue 15, 1 to 3)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from hookline.hosts.cursor import CursorHost
from hookline.hosts.host import BadInputError

from .captured import (
    ASK,
    BLOCK,
    CONTEXT,
    MESSAGE,
    STOP,
    WITHHOLD,
    Desk,
    changing,
    desk,
    read_event,
)

__all__ = ["desk"]
CURSOR = CursorHost()
read = partial(read_event, CURSOR)
Wire = dict[str, Any]


def cursor(name: str, **fields: Any) -> Wire:
    ids = {"conversation_id": "s", "generation_id": "g", "model": "m"}
    base = {"cursor_version": "2.0", "workspace_roots": ["/p"], "transcript_path": None}
    return {**ids, **base, "hook_event_name": name, **fields}


LS = {"command": "ls", "working_directory": "/p"}
SHELL = cursor("preToolUse", tool_name="Shell", tool_input=LS, tool_use_id="c")
RAN = SHELL | {
    "hook_event_name": "postToolUse",
    "tool_output": '{"output":"hi","exitCode":0}',
}
MCP_RAN = cursor(
    "postToolUse", tool_name="MCP:notes:add", tool_input={"text": "x"}, tool_output="hi"
)
FAILED = SHELL | {"hook_event_name": "postToolUseFailure", "error_message": "it broke"}
NARROW = cursor("beforeShellExecution", command="ls", cwd="/p")
MCP = cursor("beforeMCPExecution", tool_name="add", tool_input='{"text":"x"}')
READ_FILE = cursor("beforeReadFile", file_path="/p/a", content="x")


def test_a_command_is_shown_in_our_spelling() -> None:
    event = read(SHELL)
    (shown,) = event.inputs(CURSOR.name)
    assert shown["tool_name"] == "run_shell_command"
    assert shown["tool_input"] == LS
    assert shown["tool_use_id"] == "c"
    assert (event.session_id, event.cwd, event.transcript_path) == ("s", "/p", "")


@pytest.mark.parametrize(
    ("given", "name", "tool_input"),
    [
        (NARROW, "run_shell_command", {"command": "ls", "cwd": "/p"}),
        (MCP, "add", {"text": "x"}),
        (READ_FILE, "read_file", {"path": "/p/a", "content": "x"}),
        (
            cursor(
                "afterFileEdit",
                file_path="/p/a",
                edits=[{"old_string": "x", "new_string": "y"}],
            ),
            "replace",
            {"path": "/p/a", "old_string": "x", "new_string": "y"},
        ),
        (
            cursor("preToolUse", tool_name="Write", tool_input={"path": "a"}),
            "write_file",
            {"path": "a"},
        ),
        (
            cursor("preToolUse", tool_name="Delete", tool_input={"file_path": "a"}),
            "delete_file",
            {"path": "a"},
        ),
        (
            SHELL | {"hook_event_name": "PreToolUse", "tool_name": "Bash"},
            "run_shell_command",
            LS,
        ),
    ],
)
def test_tools_and_narrow_events_have_our_names(
    given: Wire, name: str, tool_input: Wire
) -> None:
    (shown,) = read(given).inputs(CURSOR.name)
    assert (shown["tool_name"], shown["tool_input"]) == (name, tool_input)


def test_mcp_tools_have_a_context() -> None:
    context = {"server_name": "notes", "tool_name": "add"}
    assert read(MCP_RAN).fields["mcp_context"] == context
    assert read(MCP).fields["mcp_context"] == {"tool_name": "add"}


def test_results_and_errors_are_carried_over() -> None:
    assert read(RAN).fields["tool_response"]["llmContent"] == "hi"
    failed = read(FAILED).fields["tool_response"]
    assert failed["error"] == {"message": "it broke"}
    shell = cursor("afterShellExecution", command="ls", output="hi")
    assert read(shell).fields["tool_response"]["llmContent"] == "hi"


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        (cursor("beforeSubmitPrompt", prompt="hi"), {"prompt": "hi"}),
        (
            cursor("stop", status="completed", loop_count=1),
            {"prompt": "", "prompt_response": "", "stop_hook_active": True},
        ),
        (cursor("sessionStart", composer_mode="agent"), {"source": "startup"}),
        (cursor("sessionEnd", reason="user_close"), {"reason": "exit"}),
        (cursor("sessionEnd", reason="error"), {"reason": "other"}),
        (cursor("preCompact", trigger="manual"), {"trigger": "manual"}),
        (
            cursor(
                *("subagentStart",), subagent_id="a", subagent_type="plan", task="look"
            ),
            {"agent_id": "a", "agent_type": "plan", "prompt": "look"},
        ),
        (
            cursor("subagentStop", subagent_type="plan", summary="done", loop_count=0),
            {"agent_id": "", "agent_type": "plan", "prompt_response": "done"}
            | {"stop_hook_active": False},
        ),
    ],
)
def test_other_events_have_our_fields(given: Wire, fields: Wire) -> None:
    assert read(given).fields == fields


def denied(reason: bytes) -> bytes:
    wire = b'{"permission":"deny","user_message":"%s","agent_message":"%s"}\n'
    return wire % (reason, reason)


ONLY = rb"hooks allow this call only with another input: {\"command\":\"id\""


@pytest.mark.parametrize(
    ("given", "then", "stdout"),
    [
        (SHELL, None, b"{}\n"),
        (SHELL, BLOCK, denied(b"no <b>")),
        (SHELL, STOP, denied(b"enough")),
        (SHELL, ASK, denied(b"sure?")),
        (SHELL, BLOCK | CONTEXT, denied(b"no <b>\\n\\nsee &lt;b&gt;")),
        (SHELL, CONTEXT, b"{}\n"),
        (
            SHELL,
            changing(command="id"),
            b'{"updated_input":{"command":"id","working_directory":"/p"}}\n',
        ),
        (NARROW, BLOCK, denied(b"no <b>")),
        (NARROW, changing(command="id"), denied(ONLY + rb",\"cwd\":\"/p\"}")),
        (MCP, BLOCK, denied(b"no <b>")),
        (READ_FILE, BLOCK, b'{"permission":"deny","user_message":"no <b>"}\n'),
    ],
)
async def test_before_a_tool(desk: Desk, given: Wire, then: Any, stdout: bytes) -> None:
    if then is not None:
        desk.rule("BeforeTool", then)
    reply = await desk.ask("cursor", given)
    assert (reply.stdout, reply.status) == (stdout, 0)


@pytest.mark.parametrize(
    ("given", "then", "stdout"),
    [
        (RAN, None, b"{}\n"),
        (RAN, BLOCK, b'{"additional_context":"no &lt;b&gt;"}\n'),
        (RAN, CONTEXT, b'{"additional_context":"see &lt;b&gt;"}\n'),
        (RAN, MESSAGE, b'{"additional_context":"a note"}\n'),
        (RAN, STOP, b'{"additional_context":"enough"}\n'),
        (RAN, WITHHOLD | BLOCK, b'{"additional_context":"no &lt;b&gt;"}\n'),
        (
            MCP_RAN,
            WITHHOLD | BLOCK,
            (
                b'{"updated_mcp_tool_output":{"content":'
                b'[{"type":"text","text":"no <b>"}]}}\n'
            ),
        ),
        (FAILED, BLOCK, b"{}\n"),
    ],
    ids=str,
)
async def test_after_a_tool(desk: Desk, given: Wire, then: Any, stdout: bytes) -> None:
    if then is not None:
        desk.rule("AfterTool", then)
    reply = await desk.ask("cursor", given)
    assert (reply.stdout, reply.status) == (stdout, 0)


async def test_the_loss_at_a_failed_tool_is_said(desk: Desk) -> None:
    """Issue 15.2: also where only one of the host's events cannot express it."""
    desk.rule("AfterTool", BLOCK)
    reply = await desk.ask("cursor", FAILED)
    line = b"hookline: Cursor: AfterTool: block: Cursor does not read it\n"
    assert reply.stderr == line


@pytest.mark.parametrize(
    ("event", "given", "then", "stdout"),
    [
        (
            "BeforeAgent",
            cursor("beforeSubmitPrompt", prompt="hi"),
            BLOCK,
            b'{"continue":false,"user_message":"no <b>"}\n',
        ),
        (
            "BeforeAgent",
            cursor("beforeSubmitPrompt", prompt="hi"),
            STOP,
            b'{"continue":false,"user_message":"enough"}\n',
        ),
        ("BeforeAgent", cursor("beforeSubmitPrompt", prompt="hi"), CONTEXT, b"{}\n"),
        (
            "AfterAgent",
            cursor("stop", status="completed", loop_count=0),
            BLOCK,
            b'{"followup_message":"no <b>"}\n',
        ),
        ("AfterAgent", cursor("stop", loop_count=0), STOP | BLOCK, b"{}\n"),
        (
            "SessionStart",
            cursor("sessionStart"),
            CONTEXT,
            b'{"additional_context":"see &lt;b&gt;"}\n',
        ),
        (
            "PreCompress",
            cursor("preCompact", trigger="auto"),
            MESSAGE,
            b'{"user_message":"a note"}\n',
        ),
        ("SessionEnd", cursor("sessionEnd", reason="error"), MESSAGE, b"{}\n"),
        (
            "SubagentStart",
            cursor("subagentStart", subagent_type="plan"),
            BLOCK,
            b'{"permission":"deny","user_message":"no <b>"}\n',
        ),
        (
            "SubagentStop",
            cursor("subagentStop", subagent_type="plan"),
            BLOCK,
            b'{"followup_message":"no <b>"}\n',
        ),
    ],
)
async def test_other_events(
    desk: Desk, event: str, given: Wire, then: Any, stdout: bytes
) -> None:
    desk.rule(event, then)
    reply = await desk.ask("cursor", given)
    assert (reply.stdout, reply.status) == (stdout, 0)


async def test_cursor_is_answered_as_itself_through_claudes_settings(
    desk: Desk,
) -> None:
    """hosts/README.md#rules 9."""
    desk.rule("BeforeTool", BLOCK)
    reply = await desk.ask("claude", SHELL | {"hook_event_name": "PreToolUse"})
    assert reply.stdout == denied(b"no <b>")


@pytest.mark.parametrize(
    "given",
    [
        cursor("preToolUse", tool_name="Shell"),
        cursor("preToolUse", tool_input={}),
        cursor("beforeShellExecution"),
        cursor("beforeSubmitPrompt"),
        cursor("anEventOfNextYear"),
        {},
    ],
)
def test_other_input_is_refused(given: Wire) -> None:
    """Issue 15.3."""
    with pytest.raises(BadInputError):
        read(given)


async def test_what_goes_out_with_a_refusal_is_not_said_to_be_lost(desk: Desk) -> None:
    """Issue 15.2: a loss is reported where there is one."""
    desk.rule("BeforeTool", BLOCK | CONTEXT | MESSAGE)
    assert (await desk.ask("cursor", SHELL)).stderr == b""
    desk.rule("BeforeTool", CONTEXT)
    assert b"BeforeTool: context: " in (await desk.ask("cursor", SHELL)).stderr
    desk.rule("AfterTool", WITHHOLD | BLOCK)
    assert (await desk.ask("cursor", MCP_RAN)).stderr == b""
    assert b"AfterTool: withhold: " in (await desk.ask("cursor", RAN)).stderr
