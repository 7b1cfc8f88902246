"""Cline: captures in, exact answers out (issue 15, items 1 to 3; HOSTS, Cline)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from hookline.hosts.cline import ClineHost
from hookline.hosts.host import BadInputError
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
    read_event,
)

__all__ = ["desk"]
CLINE = ClineHost()
read = partial(read_event, CLINE)
_E = HookEventName


def tool_call(name: str, tool_input: Any) -> dict[str, Any]:
    given = captured("cline", "PreToolUse-1")
    return given | {"tool_call": {"id": "c", "name": name, "input": tool_input}}


@pytest.mark.parametrize("name", capture_names("cline"))
def test_every_capture_is_read_as_its_file_says(name: str) -> None:
    event = read(captured("cline", name))
    assert event.name == name.partition("-")[0]
    assert event.event is CLINE.events[event.name]
    assert event.cwd == "/home/user/project"
    assert event.session_id.startswith("17947426")
    assert event.fields["agent_id"].startswith("agent_17947426")


def test_a_command_is_shown_in_our_spelling() -> None:
    """hosts/README.md#what-a-hook-sees; the host's own are beside it."""
    (shown,) = read(captured("cline", "PreToolUse-1")).inputs(CLINE.name)
    assert shown["tool_name"] == "run_shell_command"
    assert shown["tool_input"] == {"command": "echo hi"}
    assert shown["tool_use_id"] == "call_1"
    assert shown["host"] == {
        "name": "cline",
        "event": "PreToolUse",
        "tool_name": "run_commands",
        "tool_input": {"commands": ["echo hi"]},
    }


def test_the_result_of_a_command_is_its_text() -> None:
    (shown,) = read(captured("cline", "PostToolUse-1")).inputs(CLINE.name)
    expected = {"llmContent": "hi\n", "returnDisplay": "hi\n"}
    assert shown["tool_response"] == expected


def test_a_failed_tool_has_an_error() -> None:
    given = captured("cline", "PostToolUse-1")
    given["tool_result"] |= {"error": "it broke", "output": {"error": "it broke"}}
    (shown,) = read(given).inputs(CLINE.name)
    assert shown["tool_response"]["error"] == {"message": "it broke"}


def test_the_last_answer_and_the_source_are_carried_over() -> None:
    ending = read(captured("cline", "TaskComplete-1")).fields
    assert ending["prompt_response"] == "All DONE."
    assert read(captured("cline", "TaskStart-1")).fields["source"] == "startup"
    resumed = captured("cline", "TaskStart-1") | {"hookName": "agent_resume"}
    assert read(resumed).fields["source"] == "resume"
    assert read(captured("cline", "SessionShutdown-1")).fields["reason"] == "other"


@pytest.mark.parametrize(
    ("tool", "tool_input", "parts"),
    [
        (
            "run_commands",
            {"commands": ["a", {"command": "git", "args": ["x y"]}]},
            [
                ("run_shell_command", {"command": "a"}),
                ("run_shell_command", {"command": "git 'x y'", "args": ["x y"]}),
            ],
        ),
        ("run_commands", "ls", [("run_shell_command", {"command": "ls"})]),
        ("run_commands", {"cmd": "ls"}, [("run_shell_command", {"command": "ls"})]),
        (
            "run_commands",
            ["ls", "id"],
            [
                ("run_shell_command", {"command": "ls"}),
                ("run_shell_command", {"command": "id"}),
            ],
        ),
        (
            "read_files",
            {"files": [{"path": "a", "start_line": 1}, {"filePath": "b"}, "c"]},
            [
                ("read_file", {"path": "a", "start_line": 1}),
                ("read_file", {"path": "b"}),
                ("read_file", {"path": "c"}),
            ],
        ),
        ("read_files", {"file_paths": "a"}, [("read_file", {"path": "a"})]),
        ("read_files", "a", [("read_file", {"path": "a"})]),
        (
            "read_files",
            {"path": "b", "files": ["a"]},
            [("read_file", {"path": "a"}), ("read_file", {"path": "b"})],
        ),
        (
            "editor",
            {"path": "a", "new_text": "x"},
            [("write_file", {"path": "a", "content": "x"})],
        ),
        (
            "editor",
            {"path": "a", "old_text": "x", "new_text": "y"},
            [("replace", {"path": "a", "old_string": "x", "new_string": "y"})],
        ),
        (
            "editor",
            {"path": "a", "new_text": "y", "insert_line": 3},
            [("replace", {"path": "a", "new_string": "y", "insert_line": 3})],
        ),
        (
            "apply_patch",
            "*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b\n*** End Patch",
            [
                ("write_file", {"path": "a", "content": "x"}),
                ("delete_file", {"path": "b"}),
            ],
        ),
        (
            "fetch_web_content",
            {"requests": [{"url": "http://a", "prompt": "p"}]},
            [("web_fetch", {"url": "http://a", "prompt": "p"})],
        ),
        (
            "search_codebase",
            {"queries": ["x", "y"]},
            [
                ("search_file_content", {"pattern": "x"}),
                ("search_file_content", {"pattern": "y"}),
            ],
        ),
        ("notes__add", {"text": "x"}, [("notes__add", {"text": "x"})]),
    ],
)
def test_tools_have_our_names_one_event_for_each_file(
    tool: str, tool_input: Any, parts: list[Any]
) -> None:
    """hosts/README.md#what-a-hook-sees: a guard sees every file and every command."""
    event = read(tool_call(tool, tool_input))
    assert event.call is not None
    assert list(event.call.parts) == parts


def test_mcp_tools_keep_their_name_and_have_a_context() -> None:
    fields = read(tool_call("notes__add", {"text": "x"})).fields
    assert fields["mcp_context"] == {"server_name": "notes", "tool_name": "add"}


CANCELLED = b'{"cancel":true,"errorMessage":"no <b>"}\n'


@pytest.mark.parametrize(
    ("then", "stdout"),
    [
        (None, b"{}\n"),
        (BLOCK, CANCELLED),
        (STOP, b'{"cancel":true,"errorMessage":"enough"}\n'),
        (ASK, b'{"cancel":true,"errorMessage":"sure?"}\n'),
        (changing(command="ls"), b'{"overrideInput":{"commands":["ls"]}}\n'),
        (CONTEXT, b'{"context":"see &lt;b&gt;"}\n'),
        (MESSAGE, b'{"context":"a note"}\n'),
        (CONTEXT | MESSAGE, b'{"context":"see &lt;b&gt;\\na note"}\n'),
        (
            CONTEXT | BLOCK,
            b'{"cancel":true,"errorMessage":"no <b>\\n\\nsee &lt;b&gt;"}\n',
        ),
    ],
)
async def test_before_a_tool(desk: Desk, then: Any, stdout: bytes) -> None:
    if then is not None:
        desk.rule("BeforeTool", then)
    reply = await desk.ask("cline", captured("cline", "PreToolUse-1"))
    assert (reply.stdout, reply.status) == (stdout, 0)


async def test_an_ask_goes_through_where_the_settings_say_so(desk: Desk) -> None:
    """Issue 15.2: where nobody can be asked, ``onAsk`` decides."""
    desk.rule("BeforeTool", ASK, onAsk="allow")
    reply = await desk.ask("cline", captured("cline", "PreToolUse-1"))
    assert reply.stdout == b"{}\n"
    assert b"Cline: BeforeTool: ask: " in reply.stderr


@pytest.mark.parametrize(
    ("commands", "then", "why"),
    [
        (
            ["a", "b"],
            changing(command="ls"),
            b"a change of a part of this call cannot be put back",
        ),
        (
            ["a"],
            changing(timeout=5),
            b"an item of commands cannot have further fields",
        ),
    ],
)
async def test_a_change_that_cannot_be_put_back_blocks(
    desk: Desk, commands: list[str], then: Any, why: bytes
) -> None:
    """hosts/README.md#what-a-hook-sees: a call is never run with half a change."""
    desk.rule("BeforeTool", then)
    given = tool_call("run_commands", {"commands": commands})
    told = b"hooks changed the input of run_commands: "
    stdout = b'{"cancel":true,"errorMessage":"%s%s"}\n' % (told, why)
    assert (await desk.ask("cline", given)).stdout == stdout


async def test_any_of_several_commands_is_blocked(desk: Desk) -> None:
    desk.rule("BeforeTool", BLOCK, "tool_input.command == 'rm x'")
    commands = {"commands": ["ls", "rm x", "id"]}
    reply = await desk.ask("cline", tool_call("run_commands", commands))
    assert reply.stdout == CANCELLED


@pytest.mark.parametrize(
    ("then", "stdout"),
    [
        (None, b"{}\n"),
        (BLOCK, b'{"context":"no &lt;b&gt;"}\n'),
        (CONTEXT, b'{"context":"see &lt;b&gt;"}\n'),
        (MESSAGE, b'{"context":"a note"}\n'),
        (BLOCK | CONTEXT, b'{"context":"no &lt;b&gt;\\n\\nsee &lt;b&gt;"}\n'),
        (STOP, b'{"cancel":true,"errorMessage":"enough"}\n'),
        (WITHHOLD | BLOCK, CANCELLED),
        ({"suppressOutput": True}, b"{}\n"),
    ],
)
async def test_after_a_tool(desk: Desk, then: Any, stdout: bytes) -> None:
    if then is not None:
        desk.rule("AfterTool", then)
    reply = await desk.ask("cline", captured("cline", "PostToolUse-1"))
    assert (reply.stdout, reply.status) == (stdout, 0)


@pytest.mark.parametrize(
    ("name", "event", "then"),
    [
        ("TaskStart-1", "SessionStart", CONTEXT),
        ("TaskComplete-1", "AfterAgent", BLOCK),
        ("SessionShutdown-1", "SessionEnd", MESSAGE),
    ],
)
async def test_what_cline_does_not_wait_for_is_said_to_be_lost(
    desk: Desk, name: str, event: str, then: Any
) -> None:
    """Issue 15.2: the loss is a line on stderr."""
    desk.rule(event, then)
    reply = await desk.ask("cline", captured("cline", name))
    assert (reply.stdout, reply.status) == (b"{}\n", 0)
    assert b"Cline does not wait for the answer" in reply.stderr


@pytest.mark.parametrize(
    "given",
    [
        {"hookName": "tool_call"},
        {"hookName": "tool_call", "tool_call": {"name": "x"}},
        {"hookName": "tool_call", "tool_call": {"name": 5, "input": {}}},
        {"hookName": "tool_call", "tool_call": ["x"]},
        {"hookName": "a_new_event"},
        {"hookName": 5},
        {},
    ],
)
def test_other_input_is_refused(given: dict[str, Any]) -> None:
    """Issue 15.3."""
    with pytest.raises(BadInputError):
        read(given)


@pytest.mark.parametrize("given", [b"", b"[]", b"{", b'{"hookName": "tool_call"}'])
async def test_bad_input_blocks_where_a_policy_asks_for_it(
    desk: Desk, given: bytes
) -> None:
    """Issue 15.3: never a wrong allow, and never a non-zero exit by accident."""
    desk.rule("BeforeTool", BLOCK)
    reply = await desk.ask("cline", given)
    assert reply.status == 0
    assert reply.stdout.startswith(b'{"cancel":true,"errorMessage":"')
    assert reply.stderr.startswith(b"hookline: Cline: ")


async def test_an_event_that_only_cline_has_gets_an_empty_answer(desk: Desk) -> None:
    given = captured("cline", "TaskStart-1") | {"hookName": "agent_abort"}
    assert (await desk.ask("cline", given)).stdout == b"{}\n"


async def test_an_input_that_is_emptied_is_still_a_change(desk: Desk) -> None:
    """hosts/README.md#rules 12: an empty object is not the same as no change."""
    emptied = {"tool_input": {}, "replacesToolInput": True}
    desk.rule("BeforeTool", {"hookSpecificOutput": emptied})
    reply = await desk.ask("cline", tool_call("notes__add", {"text": "x"}))
    assert reply.stdout == b'{"overrideInput":{}}\n'
