"""Hosts by their documentation: examples in, exact answers out (issue 15, 1 to 3).

None of these programs was run; the examples have the fields that their documentation
names (HOSTS, mechanics).
"""

from __future__ import annotations

from typing import Any

import pytest

from hookline.hosts.catalog import host_of
from hookline.hosts.host import BadInputError, HostEvent

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
)

__all__ = ["desk"]
Wire = dict[str, Any]


def windsurf(action: str, **info: Any) -> Wire:
    ids = {"trajectory_id": "s", "execution_id": "e", "timestamp": "2026"}
    return {"agent_action_name": action, **ids, "tool_info": info}


def kiro(name: str, **fields: Any) -> Wire:
    return {"hook_event_name": name, "cwd": "/p", "session_id": "s", **fields}


def goose(name: str, **fields: Any) -> Wire:
    return {"event": name, "session_id": "s", "working_dir": "/p", **fields}


def droid(name: str, **fields: Any) -> Wire:
    base = {"session_id": "s", "cwd": "/p", "transcript_path": "/t"}
    return {**base, "permission_mode": "default", "hook_event_name": name, **fields}


def vscode(name: str, **fields: Any) -> Wire:
    base = {"timestamp": "2026", "cwd": "/p", "sessionId": "s"}
    return {**base, "hookEventName": name, "transcript_path": "/t", **fields}


LS = {"command": "ls"}
SHELL = {
    "windsurf": windsurf("pre_run_command", command_line="ls", cwd="/p"),
    "kiro": kiro("preToolUse", tool_name="execute_bash", tool_input=LS),
    "goose": goose("PreToolUse", tool_name="developer__shell", tool_input=LS),
    "droid": droid("PreToolUse", tool_name="Execute", tool_input=LS),
    "vscode": vscode("PreToolUse", tool_name="run_in_terminal", tool_input=LS),
}
RAN = {
    "windsurf": windsurf("post_run_command", command_line="ls", cwd="/p"),
    "kiro": SHELL["kiro"] | {"hook_event_name": "postToolUse", "tool_response": {}},
    "goose": SHELL["goose"] | {"event": "PostToolUse"},
    "droid": SHELL["droid"] | {"hook_event_name": "PostToolUse", "tool_response": "x"},
    "vscode": SHELL["vscode"] | {"hookEventName": "PostToolUse", "tool_response": "x"},
}
PROMPT = {
    "windsurf": windsurf("pre_user_prompt", user_prompt="hi"),
    "kiro": kiro("UserPromptSubmit", prompt="hi"),
    "goose": goose("UserPromptSubmit", message="hi"),
    "droid": droid("UserPromptSubmit", prompt="hi"),
    "vscode": vscode("UserPromptSubmit", prompt="hi"),
}
ENDED = {
    "windsurf": windsurf("post_cascade_response", response="done"),
    "kiro": kiro("stop", assistant_response="done"),
    "goose": goose("Stop", last_assistant_message="done"),
    "droid": droid("Stop", stop_hook_active=True),
    "vscode": vscode("Stop", stop_hook_active=True),
}
STARTED = {
    "kiro": kiro("agentSpawn"),
    "goose": goose("SessionStart"),
    "droid": droid("SessionStart", source="compact"),
    "vscode": vscode("SessionStart", source="new"),
}


def read(host: str, given: Wire) -> HostEvent:
    found = host_of(host)
    return found.read(given, found.event_name(given, None))


@pytest.mark.parametrize("host", SHELL)
def test_a_command_is_shown_in_our_spelling(host: str) -> None:
    event = read(host, SHELL[host])
    (shown,) = event.inputs(host_of(host).name)
    assert shown["tool_name"] == "run_shell_command"
    assert shown["tool_input"]["command"] == "ls"
    assert shown["host"]["name"] == host
    assert (event.session_id, event.cwd) == ("s", "/p")


@pytest.mark.parametrize("host", PROMPT)
def test_prompts_answers_and_sources_are_carried_over(host: str) -> None:
    assert read(host, PROMPT[host]).fields["prompt"] == "hi"
    ending = read(host, ENDED[host]).fields
    if host in {"droid", "vscode"}:
        assert ending["stop_hook_active"] is True
    else:
        assert ending["prompt_response"] == "done"
    if host in STARTED:
        expected = "compress" if host == "droid" else "startup"
        assert read(host, STARTED[host]).fields["source"] == expected


@pytest.mark.parametrize(
    ("host", "tool", "given", "parts"),
    [
        (
            "kiro",
            "fs_read",
            {"operations": [{"mode": "Line", "path": "a"}, {"path": "b"}]},
            [
                ("read_file", {"mode": "Line", "path": "a"}),
                ("read_file", {"path": "b"}),
            ],
        ),
        (
            "kiro",
            "fs_write",
            {"command": "create", "path": "a", "file_text": "x"},
            [("write_file", {"command": "create", "path": "a", "content": "x"})],
        ),
        (
            "kiro",
            "fs_write",
            {"command": "str_replace", "path": "a", "old_str": "x", "new_str": "y"},
            [
                (
                    "replace",
                    {"command": "str_replace", "path": "a"}
                    | {"old_string": "x", "new_string": "y"},
                )
            ],
        ),
        (
            "goose",
            "developer__edit",
            {"path": "a", "before": "x", "after": "y"},
            [("replace", {"path": "a", "old_string": "x", "new_string": "y"})],
        ),
        (
            "goose",
            "developer__write",
            {"path": "a", "content": "x"},
            [("write_file", {"path": "a", "content": "x"})],
        ),
        (
            "droid",
            "Create",
            {"file_path": "a", "content": "x"},
            [("write_file", {"path": "a", "content": "x"})],
        ),
        (
            "droid",
            "MultiEdit",
            {"file_path": "a", "changes": [{"old_str": "x", "new_str": "y"}]},
            [("replace", {"path": "a", "old_string": "x", "new_string": "y"})],
        ),
        (
            "vscode",
            "multi_replace_string_in_file",
            {
                "replacements": [
                    {"filePath": "a", "oldString": "x", "newString": "y"},
                    {"filePath": "b", "oldString": "1", "newString": "2"},
                ]
            },
            [
                ("replace", {"path": "a", "old_string": "x", "new_string": "y"}),
                ("replace", {"path": "b", "old_string": "1", "new_string": "2"}),
            ],
        ),
        (
            "vscode",
            "create_file",
            {"filePath": "a", "content": "x"},
            [("write_file", {"path": "a", "content": "x"})],
        ),
        (
            "vscode",
            "editFiles",
            {"files": ["a", "b"]},
            [("replace", {"path": "a"}), ("replace", {"path": "b"})],
        ),
        (
            "vscode",
            "editFiles",
            {"files": [{"path": "a", "edits": [{"filePath": "b", "newString": "x"}]}]},
            [
                ("replace", {"path": "a", "new_string": "x"}),
                ("replace", {"path": "b", "new_string": "x"}),
            ],
        ),
        (
            "vscode",
            "fetch_webpage",
            {"urls": ["http://a"], "query": "q"},
            [("web_fetch", {"url": "http://a", "query": "q"})],
        ),
    ],
)
def test_tools_have_our_names(
    host: str, tool: str, given: Wire, parts: list[Any]
) -> None:
    event = read(host, SHELL[host] | {"tool_name": tool, "tool_input": given})
    assert event.call is not None
    assert list(event.call.parts) == parts


@pytest.mark.parametrize(
    ("given", "part"),
    [
        (windsurf("pre_read_code", file_path="a"), ("read_file", {"path": "a"})),
        (
            windsurf(
                "pre_write_code",
                file_path="a",
                edits=[{"old_string": "x", "new_string": "y"}],
            ),
            ("replace", {"path": "a", "old_string": "x", "new_string": "y"}),
        ),
        (
            windsurf(
                "pre_write_code",
                file_path="a",
                edits=[{"old_string": "", "new_string": "all"}],
            ),
            ("write_file", {"path": "a", "content": "all"}),
        ),
    ],
)
def test_actions_of_windsurf_are_tools(given: Wire, part: Any) -> None:
    event = read("windsurf", given)
    assert event.call is not None
    assert event.call.parts == (part,)


@pytest.mark.parametrize(
    ("host", "given", "context"),
    [
        (
            "windsurf",
            windsurf(
                "pre_mcp_tool_use",
                mcp_server_name="notes",
                mcp_tool_name="add",
                mcp_tool_arguments={"text": "x"},
            ),
            {"server_name": "notes", "tool_name": "add"},
        ),
        (
            "kiro",
            kiro("PreToolUse", tool_name="@notes/add", tool_input={"text": "x"}),
            {"server_name": "notes", "tool_name": "add"},
        ),
        (
            "goose",
            goose("PreToolUse", tool_name="notes__add", tool_input={"text": "x"}),
            {"server_name": "notes", "tool_name": "add"},
        ),
        (
            "droid",
            droid("PreToolUse", tool_name="mcp__notes__add", tool_input={"text": "x"}),
            {"server_name": "notes", "tool_name": "add"},
        ),
    ],
)
def test_mcp_tools_have_a_context(host: str, given: Wire, context: Wire) -> None:
    (shown,) = read(host, given).inputs(host_of(host).name)
    assert shown["mcp_context"] == context
    assert shown["tool_input"] == {"text": "x"}
    assert shown["tool_name"] == read(host, given).call.name  # type: ignore[union-attr] # a tool event has one


CHANGED = b'hooks allow this call only with another input: {"command":"id"}'


def specific(event: str, rest: bytes) -> bytes:
    name = b'{"hookSpecificOutput":{"hookEventName":"%s",' % event.encode()
    return name + rest + b"}}\n"


def denied(reason: bytes) -> bytes:
    said = b'"permissionDecision":"deny","permissionDecisionReason":"%s"' % reason
    return specific("PreToolUse", said)


BOTH_DENY = b'{"continue":false,"stopReason":"enough",' + denied(b"enough")[1:]
ASKED = specific(
    "PreToolUse", b'"permissionDecision":"ask","permissionDecisionReason":"sure?"'
)


@pytest.mark.parametrize(
    ("host", "then", "answer"),
    [
        ("windsurf", None, (b"", b"", 0)),
        ("windsurf", BLOCK, (b"", b"no <b>", 2)),
        ("windsurf", BLOCK | CONTEXT, (b"", b"no <b>\n\nsee &lt;b&gt;", 2)),
        ("windsurf", STOP, (b"", b"enough", 2)),
        ("windsurf", ASK, (b"", b"sure?", 2)),
        ("windsurf", changing(command="id"), None),
        ("kiro", None, (b"", b"", 0)),
        ("kiro", BLOCK, (b"", b"no <b>", 2)),
        ("kiro", STOP, (b"", b"enough", 2)),
        ("kiro", ASK, (b"", b"sure?", 2)),
        ("kiro", changing(command="id"), (b"", CHANGED, 2)),
        ("goose", None, (b"", b"", 0)),
        ("goose", BLOCK, (b'{"decision":"block","reason":"no <b>"}\n', b"", 0)),
        ("goose", STOP, (b'{"decision":"block","reason":"enough"}\n', None, 0)),
        ("goose", ASK, (b'{"decision":"block","reason":"sure?"}\n', None, 0)),
        ("droid", None, (b"{}\n", b"", 0)),
        ("droid", BLOCK, (denied(b"no <b>"), b"", 0)),
        ("droid", STOP, (BOTH_DENY, b"", 0)),
        ("droid", ASK, (ASKED, b"", 0)),
        (
            "droid",
            changing(command="id"),
            (specific("PreToolUse", b'"updatedInput":{"command":"id"}'), b"", 0),
        ),
        ("droid", MESSAGE, (b'{"systemMessage":"a note"}\n', None, 0)),
        ("vscode", None, (b"{}\n", b"", 0)),
        ("vscode", BLOCK, (denied(b"no <b>"), b"", 0)),
        ("vscode", STOP, (BOTH_DENY, b"", 0)),
        ("vscode", ASK, (ASKED, b"", 0)),
        (
            "vscode",
            changing(command="id"),
            (specific("PreToolUse", b'"updatedInput":{"command":"id"}'), b"", 0),
        ),
        (
            "vscode",
            CONTEXT,
            (specific("PreToolUse", b'"additionalContext":"see &lt;b&gt;"'), b"", 0),
        ),
    ],
)
async def test_before_a_tool(desk: Desk, host: str, then: Any, answer: Any) -> None:
    if then is not None:
        desk.rule("BeforeTool", then)
    reply = await desk.ask(host, SHELL[host])
    if answer is None:
        assert reply.status == 2
        assert reply.stderr.startswith(b"hooks allow this call only with another input")
        return
    stdout, stderr, status = answer
    assert (reply.stdout, reply.status) == (stdout, status)
    assert stderr is None or reply.stderr == stderr


ENDS = b'{"continue":false,"stopReason":"%s"}\n'


@pytest.mark.parametrize(
    ("host", "then", "stdout"),
    [
        ("windsurf", BLOCK, b""),
        ("windsurf", WITHHOLD | BLOCK, b""),
        ("kiro", BLOCK, b""),
        ("goose", BLOCK, b""),
        ("droid", BLOCK, b'{"decision":"block","reason":"no <b>"}\n'),
        ("droid", WITHHOLD | BLOCK, ENDS % b"no <b>"),
        (
            "droid",
            CONTEXT,
            specific("PostToolUse", b'"additionalContext":"see &lt;b&gt;"'),
        ),
        ("vscode", BLOCK, b'{"systemMessage":"no <b>"}\n'),
        ("vscode", CONTEXT, b'{"systemMessage":"see <b>"}\n'),
        ("vscode", WITHHOLD | BLOCK, ENDS % b"no <b>"),
        ("vscode", STOP, ENDS % b"enough"),
        ("vscode", None, b"{}\n"),
    ],
)
async def test_after_a_tool(desk: Desk, host: str, then: Any, stdout: bytes) -> None:
    if then is not None:
        desk.rule("AfterTool", then)
    reply = await desk.ask(host, RAN[host])
    assert (reply.stdout, reply.status) == (stdout, 0)
    title = host_of(host).title.encode()
    if host in {"windsurf", "kiro", "goose"}:
        assert b"%s: AfterTool: block: " % title in reply.stderr


@pytest.mark.parametrize(
    ("host", "then", "answer"),
    [
        ("windsurf", BLOCK, (b"", 2)),
        ("windsurf", CONTEXT, (b"", 0)),
        ("kiro", BLOCK, (b"", 2)),
        ("kiro", CONTEXT, (b"see &lt;b&gt;\n", 0)),
        ("goose", BLOCK, (b"", 0)),
        ("goose", CONTEXT, (b"", 0)),
        ("droid", BLOCK, (b'{"decision":"block","reason":"no <b>"}\n', 0)),
        (
            "droid",
            CONTEXT,
            (specific("UserPromptSubmit", b'"additionalContext":"see &lt;b&gt;"'), 0),
        ),
        ("vscode", BLOCK, (ENDS % b"no <b>", 0)),
        ("vscode", STOP, (ENDS % b"enough", 0)),
        ("vscode", CONTEXT, (b'{"systemMessage":"see <b>"}\n', 0)),
    ],
)
async def test_at_a_prompt(desk: Desk, host: str, then: Any, answer: Any) -> None:
    desk.rule("BeforeAgent", then)
    reply = await desk.ask(host, PROMPT[host])
    assert (reply.stdout, reply.status) == answer
    if reply.status:
        assert reply.stderr == b"no <b>"


@pytest.mark.parametrize(
    ("host", "then", "stdout"),
    [
        ("windsurf", BLOCK, b""),
        ("kiro", BLOCK, b""),
        ("goose", BLOCK, b'{"decision":"block","reason":"no <b>"}\n'),
        ("goose", STOP | BLOCK, b""),
        ("droid", BLOCK, b'{"decision":"block","reason":"no <b>"}\n'),
        ("vscode", BLOCK, specific("Stop", b'"decision":"block","reason":"no <b>"')),
        ("vscode", STOP, ENDS % b"enough"),
    ],
)
async def test_at_the_end_of_a_turn(
    desk: Desk, host: str, then: Any, stdout: bytes
) -> None:
    desk.rule("AfterAgent", then)
    reply = await desk.ask(host, ENDED[host])
    assert (reply.stdout, reply.status) == (stdout, 0)


@pytest.mark.parametrize(
    ("host", "stdout"),
    [
        ("kiro", b"see &lt;b&gt;\n"),
        ("goose", b""),
        ("droid", specific("SessionStart", b'"additionalContext":"see &lt;b&gt;"')),
        ("vscode", specific("SessionStart", b'"additionalContext":"see &lt;b&gt;"')),
    ],
)
async def test_at_the_start_of_a_session(desk: Desk, host: str, stdout: bytes) -> None:
    desk.rule("SessionStart", CONTEXT)
    reply = await desk.ask(host, STARTED[host])
    assert (reply.stdout, reply.status) == (stdout, 0)


@pytest.mark.parametrize("host", SHELL)
def test_a_call_without_an_input_is_refused(host: str) -> None:
    """Issue 15.3: a guard that sees nothing must not allow it."""
    missing = {"tool_input", "tool_info"}
    given = {key: value for key, value in SHELL[host].items() if key not in missing}
    with pytest.raises(BadInputError):
        read(host, given)


@pytest.mark.parametrize("host", SHELL)
async def test_bad_input_blocks_where_a_policy_asks_for_it(
    desk: Desk, host: str
) -> None:
    """Issue 15.3."""
    desk.rule("BeforeTool", BLOCK)
    reply = await desk.ask(host, b"not json")
    if host == "goose":
        assert reply.stdout.startswith(b'{"decision":"block","reason":"')
    else:
        assert reply.status == 2
        assert b"not valid JSON" in reply.stderr


@pytest.mark.parametrize("action", ["read_code", "write_code", "run_command"])
def test_an_action_of_windsurf_without_its_object_is_refused(action: str) -> None:
    """Issue 15.3."""
    with pytest.raises(BadInputError):
        read("windsurf", windsurf(f"pre_{action}", cwd="/p"))


async def test_vs_code_is_answered_as_itself_through_claudes_settings(
    desk: Desk,
) -> None:
    """hosts/README.md#rules 9."""
    desk.rule("AfterTool", BLOCK)
    reply = await desk.ask("claude", RAN["vscode"])
    assert reply.stdout == b'{"systemMessage":"no <b>"}\n'
