"""OpenCode: what its plugin asks, exact answers out (issue 15, items 1 to 3 and 7)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from hookline.hosts.host import BadInputError
from hookline.hosts.opencode import OpenCodeHost

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
    read_event,
)

__all__ = ["desk"]
OPENCODE = OpenCodeHost()
read = partial(read_event, OPENCODE)
BEFORE, AFTER = "tool.execute.before-1", "tool.execute.after-1"
CHAT, CREATED = "chat.message-1", "event.session.created-1"
IDLE = "event.session.idle-1"
SESSION = "ses_e20ff3d06ffePRAnrhAnMWFy4h"


def tool_call(tool: str, args: Any) -> dict[str, Any]:
    return captured("opencode", BEFORE) | {"tool": tool, "args": args}


@pytest.mark.parametrize("name", capture_names("opencode"))
def test_every_capture_is_read_as_its_file_says(name: str) -> None:
    event = read(captured("opencode", name))
    assert event.name == name.rpartition("-")[0]
    assert event.event is OPENCODE.events[event.name]
    assert event.session_id == SESSION
    if name != IDLE:
        assert event.cwd == "/home/user/project"


def test_a_command_is_shown_in_our_spelling() -> None:
    (shown,) = read(captured("opencode", BEFORE)).inputs(OPENCODE.name)
    assert shown["tool_name"] == "run_shell_command"
    assert shown["tool_input"] == {"command": "echo hi", "description": "d"}
    assert shown["tool_use_id"] == "call_2"
    assert shown["host"] == {
        "name": "opencode",
        "event": "tool.execute.before",
        "tool_name": "bash",
        "tool_input": {"command": "echo hi", "description": "d"},
    }


def test_the_result_and_the_prompt_are_carried_over() -> None:
    given = captured("opencode", AFTER)
    (shown,) = read(given).inputs(OPENCODE.name)
    assert shown["tool_response"] == {
        "llmContent": "hi\n",
        "returnDisplay": "hi\n",
        "metadata": given["output"],
    }
    prompt = read(captured("opencode", CHAT)).fields["prompt"]
    assert prompt == '"please work"'


@pytest.mark.parametrize(
    ("tool", "args", "part"),
    [
        ("read", {"filePath": "a"}, ("read_file", {"path": "a"})),
        (
            "write",
            {"filePath": "a", "content": "x"},
            ("write_file", {"path": "a", "content": "x"}),
        ),
        (
            "edit",
            {"filePath": "a", "oldString": "x", "newString": "y"},
            ("replace", {"path": "a", "old_string": "x", "new_string": "y"}),
        ),
        (
            "apply_patch",
            {"patchText": "*** Begin Patch\n*** Delete File: a\n*** End Patch"},
            ("delete_file", {"path": "a"}),
        ),
        ("glob", {"pattern": "*"}, ("glob", {"pattern": "*"})),
        ("grep", {"pattern": "x"}, ("search_file_content", {"pattern": "x"})),
        ("list", {"path": "a"}, ("list_directory", {"path": "a"})),
        ("webfetch", {"url": "http://a"}, ("web_fetch", {"url": "http://a"})),
        ("task", {"prompt": "p"}, ("task", {"prompt": "p"})),
        ("notes_add", {"text": "x"}, ("notes_add", {"text": "x"})),
    ],
)
def test_tools_have_our_names(tool: str, args: Any, part: Any) -> None:
    event = read(tool_call(tool, args))
    assert event.call is not None
    assert event.call.parts == (part,)


@pytest.mark.parametrize(
    ("then", "stdout"),
    [
        (None, b"{}\n"),
        (BLOCK, b'{"block":"no <b>"}\n'),
        (STOP, b'{"block":"enough"}\n'),
        (ASK, b'{"block":"sure?"}\n'),
        (
            changing(command="ls"),
            b'{"args":{"command":"ls","description":"d"}}\n',
        ),
        (CONTEXT, b'{"context":"see &lt;b&gt;"}\n'),
        (MESSAGE, b'{"context":"a note"}\n'),
        (CONTEXT | BLOCK, b'{"block":"no <b>\\n\\nsee &lt;b&gt;"}\n'),
    ],
)
async def test_before_a_tool(desk: Desk, then: Any, stdout: bytes) -> None:
    if then is not None:
        desk.rule("BeforeTool", then)
    reply = await desk.ask("opencode", captured("opencode", BEFORE))
    assert (reply.stdout, reply.status) == (stdout, 0)


@pytest.mark.parametrize(
    ("then", "stdout"),
    [
        (None, b"{}\n"),
        (BLOCK, b'{"context":"no &lt;b&gt;"}\n'),
        (CONTEXT, b'{"context":"see &lt;b&gt;"}\n'),
        (MESSAGE, b'{"context":"a note"}\n'),
        (STOP, b'{"output":"enough"}\n'),
        (WITHHOLD | BLOCK, b'{"output":"no <b>"}\n'),
        ({"suppressOutput": True}, b"{}\n"),
    ],
)
async def test_after_a_tool(desk: Desk, then: Any, stdout: bytes) -> None:
    if then is not None:
        desk.rule("AfterTool", then)
    reply = await desk.ask("opencode", captured("opencode", AFTER))
    assert (reply.stdout, reply.status) == (stdout, 0)


@pytest.mark.parametrize(
    ("then", "stdout"),
    [
        (None, b"{}\n"),
        (BLOCK, b'{"block":"no <b>"}\n'),
        (STOP, b'{"block":"enough"}\n'),
        (CONTEXT, b'{"context":"see &lt;b&gt;"}\n'),
        (MESSAGE, b'{"context":"a note"}\n'),
    ],
)
async def test_at_a_prompt(desk: Desk, then: Any, stdout: bytes) -> None:
    if then is not None:
        desk.rule("BeforeAgent", then)
    reply = await desk.ask("opencode", captured("opencode", CHAT))
    assert (reply.stdout, reply.status) == (stdout, 0)


@pytest.mark.parametrize(
    ("name", "event", "then"),
    [(CREATED, "SessionStart", CONTEXT), (IDLE, "AfterAgent", BLOCK)],
)
async def test_reported_events_take_no_answer_and_the_loss_is_said(
    desk: Desk, name: str, event: str, then: Any
) -> None:
    desk.rule(event, then)
    reply = await desk.ask("opencode", captured("opencode", name))
    assert (reply.stdout, reply.status) == (b"{}\n", 0)
    assert b"OpenCode only reports this event" in reply.stderr


@pytest.mark.parametrize(
    "given",
    [
        {"hook_event_name": "tool.execute.before", "tool": "bash"},
        {"hook_event_name": "tool.execute.before", "tool": "bash", "args": "ls"},
        {"hook_event_name": "tool.execute.before", "args": {}},
        {"hook_event_name": "tool.execute.after", "tool": "bash", "args": {}},
        {"hook_event_name": "chat.message"},
        {"hook_event_name": "chat.params"},
        {},
    ],
)
def test_other_input_is_refused(given: dict[str, Any]) -> None:
    """Issue 15.3."""
    with pytest.raises(BadInputError):
        read(given)


async def test_bad_input_blocks_where_a_policy_asks_for_it(desk: Desk) -> None:
    """Issue 15.3."""
    desk.rule("BeforeTool", BLOCK)
    given = {"hook_event_name": "tool.execute.before", "tool": "bash"}
    reply = await desk.ask("opencode", given)
    assert reply.status == 0
    assert reply.stdout.startswith(b'{"block":"')
