"""What Claude Code, Gemini CLI and llxprt-code call events, tools, fields and values.

Tables, and the names that a hook with a ``dialect`` is shown and matched by. What has
no counterpart keeps its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, structs

from .events import TRAITS, HookEventName, Matching

_E = HookEventName
Wire = dict[str, Any]

CLAUDE_EVENTS: dict[str, HookEventName] = {
    "PreToolUse": _E.BeforeTool,
    "PostToolUse": _E.AfterTool,
    "UserPromptSubmit": _E.BeforeAgent,
    "Stop": _E.AfterAgent,
    "SessionStart": _E.SessionStart,
    "SessionEnd": _E.SessionEnd,
    "Notification": _E.Notification,
    "PreCompact": _E.PreCompress,
    "SubagentStart": _E.SubagentStart,
    "SubagentStop": _E.SubagentStop,
}
CLAUDE_FAILURE_EVENT = "PostToolUseFailure"
"""Their name of AfterTool where the tool failed."""

CLAUDE_TOOLS: dict[str, tuple[str, ...]] = {
    "Bash": ("run_shell_command",),
    "Read": ("read_file",),
    "Write": ("write_file", "delete_file"),
    "Edit": ("replace", "edit", "delete_file"),
    "MultiEdit": ("replace", "edit"),
    "Glob": ("glob",),
    "Grep": ("search_file_content", "grep_search"),
    "LS": ("list_directory",),
    "WebFetch": ("web_fetch",),
    "WebSearch": ("google_web_search", "web_search"),
    "Task": ("task",),
    "Agent": ("task",),
    "TodoWrite": ("todo_write", "write_todos"),
}
"""Their tool names and ours; a hook is shown the first that its matcher matches.

They have no tool that deletes a file: who guards a file against changes means that too.
"""

GEMINI_TOOLS: dict[str, tuple[str, ...]] = {
    "write_file": ("write_file", "delete_file"),
    "replace": ("replace", "edit", "delete_file"),
    "grep_search": ("search_file_content", "grep_search"),
    "search_file_content": ("search_file_content", "grep_search"),
    "google_web_search": ("web_search", "google_web_search"),
    "write_todos": ("write_todos", "todo_write"),
    "invoke_agent": ("task",),
    "task": ("task",),
}
"""The same for Gemini CLI and llxprt-code, where they differ from ours."""

_FILE = (
    "file_path", "absolute_path", "path", "file_name", "file", "target_file", "target",
    "target_path", "full_path", "output_path", "path_name", "destination", "dest",
)  # fmt: skip
_FOLDER = ("path", "dir_path", "directory", "dir", "folder")
_COMMAND = ("command", "cmd", "script")
_QUERY = ("query", "q")
Keys = dict[str, dict[str, tuple[str, ...]]]
CLAUDE_KEYS: Keys = {
    "Bash": {"command": _COMMAND},
    "Read": {"file_path": _FILE},
    "Write": {"file_path": _FILE},
    "Edit": {"file_path": _FILE},
    "MultiEdit": {"file_path": _FILE},
    "Glob": {"path": _FOLDER},
    "Grep": {"path": _FOLDER, "glob": ("include", "glob", "include_pattern")},
    "LS": {"path": _FOLDER},
    "WebFetch": {"url": ("url", "uri", "href")},
    "WebSearch": {"query": _QUERY},
}
"""For each of their tools: the keys of its input, and our names for each.

Case, ``_`` and ``-`` make no difference: ``filePath`` is ``file_path``.
"""
_SEARCH = {
    "dir_path": _FOLDER,
    "include_pattern": ("include", "glob", "include_pattern"),
}
GEMINI_KEYS: Keys = {
    "run_shell_command": {"command": _COMMAND},
    "read_file": {"file_path": _FILE},
    "write_file": {"file_path": _FILE},
    "replace": {"file_path": _FILE},
    "glob": {"dir_path": _FOLDER},
    "grep_search": _SEARCH,
    "search_file_content": _SEARCH,
    "list_directory": {"dir_path": _FOLDER},
    "google_web_search": {"query": _QUERY},
}

_NOTIFICATIONS = {"ToolPermission": "permission_prompt"}
CLAUDE_NOTIFICATIONS = {their: our for our, their in _NOTIFICATIONS.items()}
CLAUDE_MCP_TOOL = re.compile(r"mcp__(.+?)__(.+)")
CLAUDE_ONLY_SUCCESS = (
    "!has(event.tool_response) || !has(tool_response.error) || "
    "tool_response.error == null"
)
CLAUDE_ONLY_FAILURE = "has(tool_response.error) && tool_response.error != null"
"""The ``if`` of a PostToolUse and of a PostToolUseFailure hook (decision 0125)."""


class HostNames(Struct, frozen=True, kw_only=True):
    """The names of one host."""

    events: Mapping[HookEventName, str]
    tools: Mapping[str, tuple[str, ...]]
    keys: Keys
    values: Mapping[HookEventName, Mapping[str, str]]
    """Our values of the field that matchers are compared with, and theirs."""
    synonyms: Mapping[str, str]
    """Two names of theirs for the same tool."""
    mcp_tool: str
    mcp_invalid: str
    """The characters that become ``_`` in the name of an MCP tool."""
    hosts: frozenset[str]
    """The hosts whose own fields its hooks know."""
    searches_all: bool
    """Whether a matcher can be a regular expression on every event."""


CLAUDE = HostNames(
    events={ours: theirs for theirs, ours in CLAUDE_EVENTS.items()},
    tools=CLAUDE_TOOLS,
    keys=CLAUDE_KEYS,
    values={
        _E.SessionStart: {"compress": "compact"},
        _E.SessionEnd: {"exit": "other"},
        _E.Notification: _NOTIFICATIONS,
    },
    synonyms={"Task": "Agent", "Agent": "Task"},
    mcp_tool="mcp__{}__{}",
    mcp_invalid=r"[^a-zA-Z0-9_-]",
    hosts=frozenset({"claude"}),
    searches_all=True,
)
GEMINI = HostNames(
    events={},
    tools=GEMINI_TOOLS,
    keys=GEMINI_KEYS,
    values={},
    synonyms={
        "grep_search": "search_file_content",
        "search_file_content": "grep_search",
    },
    mcp_tool="mcp_{}_{}",
    mcp_invalid=r"[^a-zA-Z0-9_.:-]",
    hosts=frozenset({"gemini", "llxprt"}),
    searches_all=False,
)
LLXPRT = structs.replace(GEMINI)
DIALECTS: dict[str, HostNames] = {
    "claude": CLAUDE,
    "gemini": GEMINI,
    "llxprt": LLXPRT,
}
"""By the value of ``dialect`` in settings."""


def shown_names(
    theirs: HostNames, event: HookEventName, fields: Mapping[str, Any]
) -> tuple[str, ...] | None:
    """What matchers are compared with; None where nobody can say, so that all match."""
    traits = TRAITS[event]
    if traits.matching is Matching.REGEX:
        return tool_names(theirs, fields)
    value = _text(fields.get(traits.matched_field))
    if value is None:
        return None
    return (theirs.values.get(event, {}).get(value, value),)


def tool_names(theirs: HostNames, fields: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Their names of a tool, the usual one first; None where nobody can say."""
    name, context = _text(fields.get("tool_name")), fields.get("mcp_context")
    own = host_fields(theirs, fields).get("tool_name")
    if own is not None:
        name, context = _text(own), None
    if name is None:
        return None
    if context is not None:
        return _mcp_names(theirs, name, context)
    known = tuple(their for their, ours in theirs.tools.items() if name in ours)
    if own is None and known:
        return known
    return (name, theirs.synonyms[name]) if name in theirs.synonyms else (name,)


def host_fields(theirs: HostNames, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The event as its host sent it, where that is a host that the hook knows."""
    host = fields.get("host")
    known = isinstance(host, Mapping) and _text(host.get("name")) in theirs.hosts
    return host if known and host is not None else {}


def _mcp_names(theirs: HostNames, name: str, context: Any) -> tuple[str, ...] | None:
    if not isinstance(context, Mapping):
        return None
    server, tool = context.get("server_name"), context.get("tool_name")
    if not server:
        return (name,)
    if _text(server) is None or (tool and _text(tool) is None):
        return None
    prefix = theirs.mcp_tool.format(server, "")
    tool = tool or name.removeprefix(prefix)
    return (re.sub(theirs.mcp_invalid, "_", theirs.mcp_tool.format(server, tool)),)


def _text(value: object) -> str | None:
    return str.__str__(value) if issubclass(type(value), str) else None


_NAMES = re.compile(r"[a-zA-Z0-9_|, -]+")
"""Of these characters Claude Code makes a list of names (observed in 2.1.325)."""


def listed_names(theirs: HostNames, matcher: str) -> tuple[str, ...] | None:
    """The names in a matcher that is a list of them; None if it is an expression."""
    if theirs.searches_all and _NAMES.fullmatch(matcher):
        names = (name.strip() for name in re.split("[|,]", matcher))
        return tuple(name for name in names if name)
    return None


_JS_ITEM = re.compile(
    r"""
      (?P<escape>  \\ (?: k<(?P<reference>\w+)> | . ) )
    | (?P<group>   \(\?<(?![=!]) )
    | (?P<any>     \[\^\] )
    | (?P<none>    \[\] )
    | (?P<set>     \[ (?: \\. | [^\]\\] )* \] )
    """,
    re.VERBOSE | re.DOTALL,
)


def python_expression(javascript: str) -> str:
    """A regular expression of JavaScript in Python's syntax, as far as it differs."""
    found = _JS_ITEM.sub(_python_item, javascript)
    # \w, \d and \b mean ASCII there.
    return f"(?a){found}" if re.search(r"\\[wWdDbB]", found) else found


def _python_item(item: re.Match[str]) -> str:
    if item["reference"]:
        return f"(?P={item['reference']})"
    known = {"group": "(?P<", "any": r"[\s\S]", "none": "(?!)"}
    return known.get(item.lastgroup or "", item[0])


_TEXT_TOOLS = frozenset({"Bash", "Read", "Grep", "Glob"})


def claude_content(name: str, response: Any) -> Any:
    """The text of a result of Claude Code where it is known, else its own object."""
    parts: list[Any] = []
    if CLAUDE_MCP_TOOL.fullmatch(name) and isinstance(response, list):
        parts = [isinstance(one, dict) and one.get("text") for one in response]
    elif name in _TEXT_TOOLS and isinstance(response, dict):
        file = response.get("file")
        file = file if isinstance(file, dict) else {}
        found = [response.get(key) for key in ("stdout", "stderr", "content")]
        texts = [one for one in [*found, file.get("content")] if one]
        names = response.get("filenames")
        parts = texts or (names if isinstance(names, list) else [])
    is_text = parts and all(isinstance(one, str) for one in parts)
    return "\n".join(parts) if is_text else response


def claude_replacement(name: str, response: Any, text: str) -> Any:
    """A text as the result of a tool of Claude Code; None if its shape is not known.

    Claude Code ignores a result of another shape than the tool's own, and its model
    gets what the tool said: only shapes that were seen to work are written.
    """
    if CLAUDE_MCP_TOOL.fullmatch(name):
        is_list = isinstance(response, list)
        return [{"type": "text", "text": text}] if is_list else text
    if name in ("Agent", "Task"):
        has_answer = isinstance(response, dict) and "content" in response
        content = [{"type": "text", "text": text}]
        return {**response, "content": content} if has_answer else None
    known: Wire = {
        "Bash": {"stdout": text, "stderr": "", "interrupted": False, "isImage": False},
        "Read": {"type": "text", "file": {"filePath": "", "content": text, **_LINES}},
        "Write": {"type": "update", "content": text, **_claude_edit(text)},
        "Edit": {"oldString": "", "newString": "", "userModified": False}
        | {"replaceAll": False, **_claude_edit(text)},
        "Grep": {"mode": "content", "numFiles": 0, "filenames": []}
        | {"content": text, "numLines": 1},
        "Glob": {"filenames": [text], "numFiles": 1, "durationMs": 0}
        | {"truncated": False},
        "WebFetch": {"result": text, "url": "", "bytes": 0, "code": 200}
        | {"codeText": "", "durationMs": 0},
        "WebSearch": {"query": "", "results": [text], "durationSeconds": 0},
    }
    return known.get(name)


_LINES = {"numLines": 1, "startLine": 1, "totalLines": 1}


def _claude_edit(text: str) -> Wire:
    """Of an edit the model is told the path alone: the text takes its place."""
    return {"filePath": text, "originalFile": "", "structuredPatch": []}
