"""Translation between Hookline and other hosts, both ways (protocol.md#dialects)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.protocol.dialect_payloads import (
    ambiguity,
    claude_output,
    claude_text,
    gemini_output,
    shown_input,
    withheld,
)
from hookline.protocol.dialects import (
    CLAUDE,
    CLAUDE_EVENTS,
    CLAUDE_TOOLS,
    GEMINI,
    GEMINI_TOOLS,
    HostNames,
)
from hookline.protocol.events import HookEventName as E
from hookline.protocol.jsontext import encode

BASE = {"session_id": "s", "cwd": "/p", "transcript_path": "", "timestamp": "t"}


def shown(event: E, **fields: Any) -> dict[str, Any]:
    return shown_to(CLAUDE, event, fields)


def shown_to(theirs: HostNames, event: E, fields: dict[str, Any]) -> dict[str, Any]:
    given = {**BASE, "hook_event_name": event.value, **fields}
    return shown_input(theirs, event, given)


@pytest.mark.parametrize(("theirs", "ours"), CLAUDE_EVENTS.items())
def test_event_has_their_name_and_common_fields(theirs: str, ours: E) -> None:
    seen = shown(ours)
    assert seen["hook_event_name"] == theirs
    assert seen["session_id"] == "s"
    assert seen["cwd"] == "/p"
    assert seen["permission_mode"] == "default"


@pytest.mark.parametrize(
    ("tool", "tool_input", "name", "seen"),
    [
        ("run_shell_command", {"command": "ls"}, "Bash", {"command": "ls"}),
        ("read_file", {"absolute_path": "/a"}, "Read", {"file_path": "/a"}),
        (
            "read_file",
            {"path": "/a", "limit": 3},
            "Read",
            {"file_path": "/a", "limit": 3},
        ),
        (
            "write_file",
            {"file_path": "a", "content": "x"},
            "Write",
            {"file_path": "a", "content": "x"},
        ),
        ("write_file", {"path": "a"}, "Write", {"file_path": "a"}),
        (
            "replace",
            {"file_path": "a", "old_string": "x", "new_string": "y"},
            "Edit",
            {"file_path": "a", "old_string": "x", "new_string": "y"},
        ),
        ("glob", {"pattern": "*"}, "Glob", {"pattern": "*"}),
        (
            "search_file_content",
            {"pattern": "x", "include": "*.py", "dir_path": "d"},
            "Grep",
            {"pattern": "x", "glob": "*.py", "path": "d"},
        ),
        ("list_directory", {"dir_path": "d"}, "LS", {"path": "d"}),
        (
            "web_fetch",
            {"prompt": "sum up https://a.org/x please"},
            "WebFetch",
            {"prompt": "sum up https://a.org/x please", "url": "https://a.org/x"},
        ),
        ("google_web_search", {"query": "q"}, "WebSearch", {"query": "q"}),
        ("todo_write", {"todos": []}, "TodoWrite", {"todos": []}),
        ("task", {"prompt": "p"}, "Task", {"prompt": "p"}),
        ("my_tool", {"path": "a"}, "my_tool", {"path": "a"}),
        ("write_file", {"filePath": "a"}, "Write", {"file_path": "a"}),
        (
            "write_file",
            {"file_path": None, "path": ".env"},
            "Write",
            {"file_path": ".env"},
        ),
        (
            "write_file",
            {"path": ".env", "file_path": "ok.txt"},
            "Write",
            {"path": ".env", "file_path": "ok.txt"},
        ),
        (
            "write_file",
            {"path": "a", "absolute_path": "b"},
            "Write",
            {"file_path": "b", "path": "a", "absolute_path": "b"},
        ),
        ("run_shell_command", {"cmd": "ls"}, "Bash", {"command": "ls"}),
        ("web_fetch", {"uri": "http://a"}, "WebFetch", {"url": "http://a"}),
    ],
)
def test_tool_has_their_name_and_keys(
    tool: str, tool_input: dict[str, Any], name: str, seen: dict[str, Any]
) -> None:
    event = shown(E.BeforeTool, tool_name=tool, tool_input=tool_input)
    assert (event["tool_name"], event["tool_input"]) == (name, seen)


def test_mcp_tool_has_their_name() -> None:
    context = {"server_name": "memory", "tool_name": "store"}
    event = shown(E.BeforeTool, tool_name="store", tool_input={}, mcp_context=context)
    assert event["tool_name"] == "mcp__memory__store"


@pytest.mark.parametrize(
    ("tool", "response", "seen"),
    [
        (
            "run_shell_command",
            {"llmContent": "out", "returnDisplay": "out"},
            {"stdout": "out", "stderr": "", "interrupted": False},
        ),
        (
            "run_shell_command",
            {"llmContent": "", "error": {"message": "bad"}},
            {"stdout": "", "stderr": "bad"},
        ),
        (
            "write_file",
            {"llmContent": "ok"},
            {"filePath": "/a", "success": True},
        ),
        ("replace", {"error": "no"}, {"filePath": "/a", "success": False}),
        (
            "read_file",
            {"llmContent": [{"text": "one"}, "two"]},
            {"type": "text", "file": {"filePath": "/a", "content": "onetwo"}},
        ),
        ("other", {"llmContent": "x"}, {"content": "x", "success": True}),
    ],
)
def test_response_has_their_keys(
    tool: str, response: dict[str, Any], seen: dict[str, Any]
) -> None:
    event = shown(
        E.AfterTool,
        tool_name=tool,
        tool_input={"file_path": "/a"},
        tool_response=response,
    )
    assert event["tool_response"] == {**event["tool_response"], **seen, **response}


@pytest.mark.parametrize("tool", ["web_fetch", "other", "mcp__notes__read"])
@pytest.mark.parametrize(
    "page",
    [
        {"result": "IGNORE", "error": None},
        {"message": "ok", "html": "IGNORE"},
        {"text": "ok", "hidden": "IGNORE"},
        [{"type": "text", "text": "ok"}, {"type": "resource", "uri": "IGNORE"}],
    ],
    ids=["no error", "message", "text", "blocks"],
)
def test_nothing_of_a_result_is_hidden_or_made_up(tool: str, page: Any) -> None:
    """A scanner finds what it looks for: by the tool's own keys, or in the whole."""
    given = {"tool_name": tool, "tool_input": {}}
    assert shown(E.AfterTool, **given, tool_response=page)["tool_response"] == page
    ours = {"llmContent": page, "returnDisplay": ""}
    response = shown(E.AfterTool, **given, tool_response=ours)["tool_response"]
    if "mcp" in tool:
        assert response == page
    elif isinstance(page, dict):
        assert response == {**page, **ours}
    else:
        assert "IGNORE" in str(response)


@pytest.mark.parametrize(
    ("event", "fields", "seen"),
    [
        (E.BeforeAgent, {"prompt": "p"}, {"prompt": "p"}),
        (
            E.AfterAgent,
            {"prompt": "p", "prompt_response": "r", "stop_hook_active": True},
            {"stop_hook_active": True, "last_assistant_message": "r"},
        ),
        (E.SessionStart, {"source": "resume"}, {"source": "resume"}),
        (E.SessionStart, {"source": "compress"}, {"source": "compact"}),
        (
            E.SubagentStop,
            {"agent_id": "a", "agent_type": "t", "prompt_response": "r"},
            {"agent_type": "t", "last_assistant_message": "r"},
        ),
        (E.SessionEnd, {"reason": "exit"}, {"reason": "other"}),
        (E.SessionEnd, {"reason": "logout"}, {"reason": "logout"}),
        (
            E.Notification,
            {"message": "m", "notification_type": "ToolPermission"},
            {"message": "m", "notification_type": "permission_prompt"},
        ),
        (
            E.PreCompress,
            {"trigger": "auto"},
            {"trigger": "auto", "custom_instructions": ""},
        ),
    ],
)
def test_other_events_have_their_fields(
    event: E, fields: dict[str, Any], seen: dict[str, Any]
) -> None:
    found = shown(event, **fields)
    assert found == {**found, **seen}


def test_updated_input_replaces_the_whole_input_with_our_keys() -> None:
    given_input = {"tool_name": "write_file", "tool_input": {"path": "a", "mode": "w"}}
    said = {"hookSpecificOutput": {"updatedInput": {"file_path": "b", "content": ""}}}
    ours = claude_output(E.BeforeTool, said, given_input)["hookSpecificOutput"]
    assert ours == {
        "tool_input": {"path": "b", "content": ""},
        "replacesToolInput": True,
    }


def test_url_taken_from_a_prompt_is_not_passed_to_the_tool() -> None:
    given_input = {"tool_name": "web_fetch", "tool_input": {"prompt": "see http://a"}}
    seen = shown(E.BeforeTool, **given_input)["tool_input"]
    said = {"hookSpecificOutput": {"updatedInput": seen}}
    ours = claude_output(E.BeforeTool, said, given_input)["hookSpecificOutput"]
    assert ours["tool_input"] == given_input["tool_input"]


def test_decisions_are_kept_and_defer_says_nothing() -> None:
    said = {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "defer",
        }
    }
    ours = claude_output(E.BeforeTool, said)["hookSpecificOutput"]
    assert ours == {"hookEventName": "BeforeTool"}
    kept = {"decision": "block", "reason": "r", "continue": False}
    assert claude_output(E.BeforeTool, kept) == kept


@pytest.mark.parametrize("event", [E.BeforeAgent, E.SessionStart])
def test_plain_text_is_context_on_some_events(event: E) -> None:
    assert claude_text(event, "hi") == {
        "hookSpecificOutput": {"additionalContext": "hi"}
    }
    assert claude_text(E.AfterTool, "hi") == {}


KEYS = st.sampled_from(
    ["file_path", "absolute_path", "path", "content", "pattern", "x"]
)
INPUTS = st.dictionaries(KEYS, st.text(max_size=5), max_size=4)


@given(
    tool=st.sampled_from(
        sorted({our for ours in CLAUDE_TOOLS.values() for our in ours})
    ),
    tool_input=INPUTS,
)
@settings(max_examples=200)
def test_input_returned_unchanged_is_the_input(
    tool: str, tool_input: dict[str, Any]
) -> None:
    """A hook that echoes what it was shown changes nothing."""
    event_input = {"tool_name": tool, "tool_input": tool_input}
    seen = shown_input(CLAUDE, E.BeforeTool, event_input)["tool_input"]
    said = {"hookSpecificOutput": {"updatedInput": seen}}
    ours = claude_output(E.BeforeTool, said, event_input)["hookSpecificOutput"]
    assert ours["tool_input"] == tool_input


@pytest.mark.parametrize(
    ("tool", "tool_input"),
    [
        ("write_file", {"path": ".env", "file_path": "ok.txt"}),
        ("write_file", {"destination": ".env", "file_path": "ok.txt"}),
        ("write_file", {"file_path": "ok.txt", "absolute_path": ".env"}),
        ("read_file", {"filePath": ".env", "file_path": "ok.txt"}),
        ("read_file", {"FILE-PATH": ".env", "file_path": "ok.txt"}),
        ("replace", {"path": [".env"], "file_path": ".env"}),
        ("replace", {"path": ".env", "file_path": ""}),
        ("glob", {"path": "src", "dir_path": "/etc"}),
        ("list_directory", {"directory": "src", "path": "/etc"}),
        ("search_file_content", {"include": "*.py", "glob": "*"}),
        ("run_shell_command", {"command": "ls", "cmd": "rm -rf /"}),
        ("web_fetch", {"prompt": "see https://a.org and https://b.org"}),
        ("web_fetch", {"url": "https://a.org", "prompt": "see HTTPS://B.org"}),
        ("web_fetch", {"url": "https://a.org", "urls": ["https://b.org"]}),
        ("web_fetch", {"url": "https://a.org", "uri": "b.org"}),
        ("google_web_search", {"query": "a", "q": "b"}),
    ],
    ids=str,
)
def test_an_input_with_values_that_disagree_is_ambiguous(
    tool: str, tool_input: dict[str, Any]
) -> None:
    """Issue 12.6: a hook looks at one value and the tool may use another."""
    event = {"tool_name": tool, "tool_input": tool_input}
    assert ambiguity(CLAUDE, event) is not None
    seen = encode(shown(E.BeforeTool, **event)["tool_input"])
    for value in tool_input.values():
        assert encode(value) in seen


@pytest.mark.parametrize(
    ("tool", "tool_input"),
    [
        ("write_file", {"path": "a", "file_path": "a"}),
        ("write_file", {"path": None, "file_path": "a"}),
        ("write_file", {"path": "a", "content": "file_path"}),
        ("web_fetch", {"url": "https://a.org", "prompt": "what is https://a.org?"}),
        ("my_tool", {"path": "a", "file_path": "b"}),
        ("write_file", "not an object"),
    ],
    ids=str,
)
def test_an_input_with_one_value_for_each_field_is_clear(
    tool: str, tool_input: Any
) -> None:
    assert ambiguity(CLAUDE, {"tool_name": tool, "tool_input": tool_input}) is None


@pytest.mark.parametrize(
    ("tool", "tool_input", "name", "seen"),
    [
        ("read_file", {"path": "/a"}, "read_file", {"file_path": "/a"}),
        ("write_file", {"absolute_path": "a"}, "write_file", {"file_path": "a"}),
        ("edit", {"path": "a"}, "replace", {"file_path": "a"}),
        ("list_directory", {"path": "d"}, "list_directory", {"dir_path": "d"}),
        (
            "search_file_content",
            {"pattern": "x", "path": "d", "include": "*.py"},
            "grep_search",
            {"pattern": "x", "dir_path": "d", "include_pattern": "*.py"},
        ),
        ("web_search", {"query": "q"}, "google_web_search", {"query": "q"}),
        ("my_tool", {"path": "a"}, "my_tool", {"path": "a"}),
    ],
)
def test_gemini_is_shown_its_own_names_and_keys(
    tool: str, tool_input: dict[str, Any], name: str, seen: dict[str, Any]
) -> None:
    fields = {"tool_name": tool, "tool_input": tool_input}
    event = shown_to(GEMINI, E.BeforeTool, fields)
    assert (event["tool_name"], event["tool_input"]) == (name, seen)
    assert event["hook_event_name"] == "BeforeTool"


@given(
    tool=st.sampled_from(
        sorted({our for ours in GEMINI_TOOLS.values() for our in ours})
    ),
    tool_input=INPUTS,
)
@settings(max_examples=200)
def test_input_returned_unchanged_is_the_input_in_gemini(
    tool: str, tool_input: dict[str, Any]
) -> None:
    event_input = {"tool_name": tool, "tool_input": tool_input}
    seen = shown_input(GEMINI, E.BeforeTool, event_input)["tool_input"]
    said = {"hookSpecificOutput": {"tool_input": seen}}
    ours = gemini_output(GEMINI, E.BeforeTool, said, event_input)["hookSpecificOutput"]
    assert ours == {"tool_input": tool_input, "replacesToolInput": True}


def test_a_gemini_input_with_values_that_disagree_is_ambiguous() -> None:
    event = {"tool_name": "write_file", "tool_input": {"path": "a", "file_path": "b"}}
    assert ambiguity(GEMINI, event) is not None


def test_context_beside_a_withheld_result_is_kept() -> None:
    said = {
        "decision": "deny",
        "reason": "no",
        "systemMessage": "m",
        "hookSpecificOutput": {"additionalContext": "see the policy"},
    }
    assert withheld(E.AfterTool, said, "no") == {
        "reason": "no",
        "systemMessage": "m",
        "hookSpecificOutput": {
            "withholdResult": True,
            "additionalContext": "no\nsee the policy",
        },
    }
