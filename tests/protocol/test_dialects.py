"""The names that hooks with a dialect are shown and matched by.

protocol.md#dialects
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.protocol.dialects import (
    CLAUDE,
    GEMINI,
    HostNames,
    listed_names,
    python_expression,
    shown_names,
)
from hookline.protocol.events import HookEventName as E


class Tool(StrEnum):
    SHELL = "run_shell_command"


def mcp(server: Any, tool: Any = "save") -> dict[str, Any]:
    return {"mcp_context": {"server_name": server, "tool_name": tool}}


def tool(name: Any, **fields: Any) -> dict[str, Any]:
    return {"tool_name": name, "tool_input": {}, **fields}


@pytest.mark.parametrize(
    ("theirs", "fields", "names"),
    [
        (CLAUDE, tool("run_shell_command"), ("Bash",)),
        (CLAUDE, tool(Tool.SHELL), ("Bash",)),
        (CLAUDE, tool("replace"), ("Edit", "MultiEdit")),
        (CLAUDE, tool("edit"), ("Edit", "MultiEdit")),
        (CLAUDE, tool("task"), ("Task", "Agent")),
        (CLAUDE, tool("Agent"), ("Agent", "Task")),
        (CLAUDE, tool("search_file_content"), ("Grep",)),
        (CLAUDE, tool("grep_search"), ("Grep",)),
        (CLAUDE, tool("Bash"), ("Bash",)),
        (CLAUDE, tool("deploy"), ("deploy",)),
        (CLAUDE, tool("save", **mcp("files")), ("mcp__files__save",)),
        (CLAUDE, tool("mcp_files_save", **mcp("files")), ("mcp__files__save",)),
        (CLAUDE, tool("mcp__f__save", **mcp("f", None)), ("mcp__f__save",)),
        (CLAUDE, tool("save", **mcp("my files.v1")), ("mcp__my_files_v1__save",)),
        (CLAUDE, tool("read_file", **mcp("files", None)), ("mcp__files__read_file",)),
        (CLAUDE, tool("read_file", mcp_context={}), ("read_file",)),
        (CLAUDE, tool("save", mcp_context=MappingProxyType(mcp("f")["mcp_context"])),
         ("mcp__f__save",)),
        (GEMINI, tool("run_shell_command"), ("run_shell_command",)),
        (CLAUDE, tool("delete_file"), ("Write", "Edit")),
        (GEMINI, tool("delete_file"), ("write_file", "replace")),
        (GEMINI, tool("edit"), ("replace",)),
        (GEMINI, tool("web_search"), ("google_web_search",)),
        (GEMINI, tool("search_file_content"), ("grep_search", "search_file_content")),
        (GEMINI, tool("task"), ("invoke_agent", "task")),
        (GEMINI, tool("save", **mcp("files")), ("mcp_files_save",)),
        (GEMINI, tool("mcp_files_save", **mcp("files", None)), ("mcp_files_save",)),
        (GEMINI, tool("mcp__files__save", **mcp("files")), ("mcp_files_save",)),
    ],
    ids=lambda one: json.dumps(one, default=str) if isinstance(one, dict) else None,
)  # fmt: skip
def test_tools_have_the_names_of_the_host(
    theirs: HostNames, fields: dict[str, Any], names: tuple[str, ...]
) -> None:
    assert shown_names(theirs, E.BeforeTool, fields) == names


@pytest.mark.parametrize(
    ("theirs", "host", "ours", "names"),
    [
        (CLAUDE, "claude", "replace", ("MultiEdit",)),
        (GEMINI, "claude", "replace", ("replace",)),
        (CLAUDE, "codex", "write_file", ("Write",)),
        (GEMINI, "gemini", "search_file_content", ("MultiEdit",)),
        (GEMINI, "llxprt", "read_file", ("MultiEdit",)),
    ],
)
def test_the_name_that_their_own_host_sent_is_the_name(
    theirs: HostNames, host: str, ours: str, names: tuple[str, ...]
) -> None:
    """Issue 15.6: ``host`` of the bridge is the most faithful."""
    sent = {"name": host, "event": "x", "tool_name": "MultiEdit", "tool_input": {}}
    assert shown_names(theirs, E.BeforeTool, tool(ours, host=sent)) == names


@pytest.mark.parametrize("theirs", [CLAUDE, GEMINI])
@pytest.mark.parametrize(
    "fields",
    [
        tool(["a"]),
        tool(None),
        tool("save", mcp_context=object()),
        tool("save", **mcp(["files"])),
        tool("save", **mcp("files", 5)),
        tool("x", host={"name": "claude", "tool_name": 5}),
    ],
    ids=["list", "none", "no-mapping", "server", "tool", "host"],
)
def test_where_nobody_can_say_the_name_every_matcher_matches(
    theirs: HostNames, fields: dict[str, Any]
) -> None:
    if theirs is GEMINI and "host" in fields:
        assert shown_names(theirs, E.BeforeTool, fields) == ("x",)
    else:
        assert shown_names(theirs, E.BeforeTool, fields) is None


@pytest.mark.parametrize(
    ("event", "field", "ours", "claude"),
    [
        (E.SessionStart, "source", "compress", "compact"),
        (E.SessionStart, "source", "resume", "resume"),
        (E.SessionEnd, "reason", "exit", "other"),
        (E.SessionEnd, "reason", "logout", "logout"),
        (E.Notification, "notification_type", "ToolPermission", "permission_prompt"),
        (E.Notification, "notification_type", "idle_prompt", "idle_prompt"),
        (E.PreCompress, "trigger", "auto", "auto"),
        (E.SubagentStop, "agent_type", "reviewer", "reviewer"),
    ],
)
def test_values_have_the_names_of_the_host(
    event: E, field: str, ours: str, claude: str
) -> None:
    assert shown_names(CLAUDE, event, {field: ours}) == (claude,)
    assert shown_names(GEMINI, event, {field: ours}) == (ours,)
    assert shown_names(CLAUDE, event, {field: 5}) is None


@pytest.mark.parametrize(
    ("matcher", "names"),
    [
        ("Bash", ("Bash",)),
        ("Write|Edit", ("Write", "Edit")),
        ("Write, Edit |", ("Write", "Edit")),
        ("mcp__my-files__save", ("mcp__my-files__save",)),
        ("general-purpose", ("general-purpose",)),
        ("Bash.*", None),
        ("^Bash$", None),
        ("(Bash)", None),
    ],
)
def test_a_matcher_of_claude_code_is_a_list_of_names_or_an_expression(
    matcher: str, names: tuple[str, ...] | None
) -> None:
    """As in Claude Code 2.1.325; Gemini CLI has expressions only."""
    assert listed_names(CLAUDE, matcher) == names
    assert listed_names(GEMINI, matcher) is None


@pytest.mark.parametrize(
    ("javascript", "python", "found", "missed"),
    [
        (r"^(?<tool>Write)$", r"^(?P<tool>Write)$", "Write", "Edit"),
        (r"(?<a>x)\k<a>", r"(?P<a>x)(?P=a)", "xx", "xy"),
        (r"(?<=mcp__)a", r"(?<=mcp__)a", "mcp__a", "a"),
        (r"(?<!mcp__)a", r"(?<!mcp__)a", "a", "mcp__a"),
        (r"[^]x", r"[\s\S]x", "\nx", "x"),
        (r"a[]b|c", r"a(?!)b|c", "c", "ab"),
        (r"\(\?<n>", r"\(\?<n>", "(?<n>", "n"),
        (r"[(?<n>]x", r"[(?<n>]x", "<x", "bx"),
        (r"[\]](?<n>x)", r"[\]](?P<n>x)", "]x", "x"),
        (r"mcp__\w+__save", r"(?a)mcp__\w+__save", "mcp__a__save", "mcp__é__save"),
    ],
)
def test_an_expression_of_javascript_is_one_of_python(
    javascript: str, python: str, found: str, missed: str
) -> None:
    """Issue 15.6: ``(?<name>...)`` is translated."""
    assert python_expression(javascript) == python
    assert re.search(python, found)
    assert not re.search(python, missed)


@given(st.text(st.sampled_from("ab|.*+?()[]^$\\<>=!kPn{}1,-"), max_size=20))
def test_translating_an_expression_never_raises_and_happens_once(text: str) -> None:
    once = python_expression(text)
    assert isinstance(once, str)
    if "(?<" not in text and "[" not in text and "\\" not in text:
        assert once == text
