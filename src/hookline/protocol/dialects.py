"""Translate events, tools and fields between Hookline and Claude Code.

Tables and pure functions. A hook with ``"dialect": "claude"`` gets its input from
``claude_input``; its output is read with ``claude_output`` (JSON) or ``claude_text``
(any other text). What has no counterpart stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .events import HookEventName
from .jsontext import encode, text_of

_E = HookEventName
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
_TO_CLAUDE_EVENT = {ours: theirs for theirs, ours in CLAUDE_EVENTS.items()}

CLAUDE_TOOLS: dict[str, tuple[str, ...]] = {
    "Bash": ("run_shell_command",),
    "Read": ("read_file",),
    "Write": ("write_file",),
    "Edit": ("replace", "edit"),
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
"""Their tool names and ours; of two names for one tool the first is shown."""
_TO_CLAUDE_TOOL = {
    our: their for their, ours in reversed(CLAUDE_TOOLS.items()) for our in ours
}

_FILE = (
    "file_path", "absolute_path", "path", "file_name", "file", "target_file", "target",
    "target_path", "full_path", "output_path", "path_name", "destination", "dest",
)  # fmt: skip
_FOLDER = ("path", "dir_path", "directory", "dir", "folder")
CLAUDE_KEYS: dict[str, dict[str, tuple[str, ...]]] = {
    "Bash": {"command": ("command", "cmd", "script")},
    "Read": {"file_path": _FILE},
    "Write": {"file_path": _FILE},
    "Edit": {"file_path": _FILE},
    "Glob": {"path": _FOLDER},
    "Grep": {"path": _FOLDER, "glob": ("include", "glob")},
    "LS": {"path": _FOLDER},
    "WebFetch": {"url": ("url", "uri", "href")},
    "WebSearch": {"query": ("query", "q")},
}
"""For each of their tools: the keys of its input, and our names for each.

Case, ``_`` and ``-`` make no difference: ``filePath`` is ``file_path``.
"""

_NOTIFICATIONS = {"ToolPermission": "permission_prompt"}
CLAUDE_NOTIFICATIONS = {their: our for our, their in _NOTIFICATIONS.items()}
CLAUDE_MCP_TOOL = re.compile(r"mcp__(.+?)__(.+)")
_TEXT_TOOLS = frozenset({"Bash", "Read", "Grep", "Glob"})
_TEXT_IS_CONTEXT = frozenset({_E.BeforeAgent, _E.SessionStart})
_ADDRESS = re.compile(r"(?i)\bhttps?://[^\s\"'<>]+")
_AFTER_ADDRESS = ".,;:!?)]}"

Wire = dict[str, Any]


def claude_input(event: HookEventName, event_input: Mapping[str, Any]) -> Wire:
    """Convert an input for a hook written for Claude Code."""
    shown = {
        **event_input,
        "hook_event_name": _TO_CLAUDE_EVENT.get(event, event.value),
        "permission_mode": "default",
    }
    if "tool_name" in event_input:
        shown |= _tool_fields(event_input)
    if event in (_E.AfterAgent, _E.SubagentStop):
        shown["last_assistant_message"] = event_input.get("prompt_response", "")
    elif event is _E.SessionStart and event_input.get("source") == "compress":
        shown["source"] = "compact"
    elif event is _E.SessionEnd and event_input.get("reason") == "exit":
        shown["reason"] = "other"
    elif event is _E.Notification:
        kind = event_input.get("notification_type", "")
        shown["notification_type"] = _NOTIFICATIONS.get(kind, kind)
    elif event is _E.PreCompress:
        shown["custom_instructions"] = ""
    return shown


def claude_output(
    event: HookEventName, wire: Wire, event_input: Mapping[str, Any] | None = None
) -> Wire:
    """Convert the JSON output of such a hook to ours.

    ``updatedInput`` replaces the whole tool input, hence ``replacesToolInput``.
    """
    specific = wire.get("hookSpecificOutput")
    if not isinstance(specific, dict):
        return wire
    ours = dict(specific)
    if "hookEventName" in ours:
        ours["hookEventName"] = event.value
    if ours.get("permissionDecision") == "defer":
        ours["permissionDecision"] = "ask"
    updated = ours.pop("updatedInput", None)
    if isinstance(updated, dict):
        ours["tool_input"] = _our_tool_input(updated, event_input or {})
        ours["replacesToolInput"] = True
    return {**wire, "hookSpecificOutput": ours}


def claude_text(event: HookEventName, text: str) -> Wire:
    """Convert the text output of such a hook; on some events it is context."""
    if event in _TEXT_IS_CONTEXT and text:
        return {"hookSpecificOutput": {"additionalContext": text}}
    return {}


def claude_tool_name(event_input: Mapping[str, Any]) -> str:
    """Their name of a tool; an MCP tool is ``mcp__server__tool``."""
    name = str(event_input.get("tool_name", ""))
    context = event_input.get("mcp_context")
    if isinstance(context, dict) and context.get("server_name"):
        tool = context.get("tool_name") or name
        return f"mcp__{context['server_name']}__{tool}"
    return _TO_CLAUDE_TOOL.get(name, name)


def _tool_fields(event_input: Mapping[str, Any]) -> Wire:
    name = claude_tool_name(event_input)
    given = event_input.get("tool_input")
    tool_input = _their_tool_input(name, given) if isinstance(given, dict) else given
    fields: Wire = {"tool_name": name, "tool_input": tool_input}
    response = event_input.get("tool_response")
    if isinstance(response, dict):
        fields["tool_response"] = _their_response(name, tool_input, response) | response
    return fields


def claude_ambiguity(event_input: Mapping[str, Any]) -> str | None:
    """Why a hook cannot tell what a tool will use; None where it can.

    Their tools have one name for a field. Where an input has several that disagree,
    a hook looks at one of them and the tool may use another.
    """
    given = event_input.get("tool_input")
    if not isinstance(given, dict):
        return None
    name = claude_tool_name(event_input)
    for theirs, ours in CLAUDE_KEYS.get(name, {}).items():
        keys = _spellings(given, theirs, ours)
        if any(encode(given[key]) != encode(given[keys[0]]) for key in keys):
            return f"the input has several values for {theirs}: {', '.join(keys)}"
    if name == "WebFetch" and len(addresses := _addresses(given)) > 1:
        return f"the input has several addresses: {', '.join(addresses)}"
    return None


def _their_tool_input(name: str, given: Wire) -> Wire:
    shown = dict(given)
    for theirs, ours in CLAUDE_KEYS.get(name, {}).items():
        keys = _spellings(given, theirs, ours)
        if keys and keys[0] != theirs:
            shown[theirs] = given[keys[0]]
            if len(keys) == 1:
                del shown[keys[0]]
    if name == "WebFetch" and shown.get("url") is None:
        addresses = _addresses(given)
        shown |= {"url": addresses[0]} if addresses else {}
    return shown


def _our_tool_input(updated: Wire, event_input: Mapping[str, Any]) -> Wire:
    """Rename their keys to those of the input that the hook was given."""
    name = claude_tool_name(event_input)
    given = event_input.get("tool_input")
    given = given if isinstance(given, dict) else {}
    ours = dict(updated)
    for theirs, alternatives in CLAUDE_KEYS.get(name, {}).items():
        keys = _spellings(given, theirs, alternatives)
        # Theirs is shown beside several of ours and stands for the first.
        if theirs in ours and keys and keys[0] != theirs:
            ours[keys[0]] = ours.pop(theirs)
    if name == "WebFetch" and not _spellings(given, "url", ("url", "uri", "href")):
        ours.pop("url", None)  # _their_tool_input added it
    return ours


def _spellings(given: Wire, theirs: str, ours: tuple[str, ...]) -> list[str]:
    """The keys of an input that are names of one field, theirs first."""
    wanted = [_folded(theirs), *map(_folded, ours)]
    found = [k for k, v in given.items() if v is not None and _folded(k) in wanted]
    return sorted(found, key=lambda key: (key != theirs, wanted.index(_folded(key))))


def _folded(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def _addresses(given: Wire) -> list[str]:
    """Every address in the input of ``WebFetch``, each once."""
    texts = _texts_in(given)
    found = (one.rstrip(_AFTER_ADDRESS) for t in texts for one in _ADDRESS.findall(t))
    return list(dict.fromkeys(found))


def _texts_in(value: Any) -> Iterator[str]:
    """Every string in a value, in order; without recursion, it may be deep."""
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            left += reversed(item.values())
        elif isinstance(item, list):
            left += reversed(item)


def _their_response(name: str, tool_input: Any, response: Wire) -> Wire:
    text, error = _text_of(response.get("llmContent")), response.get("error")
    failed = error is not None
    path = tool_input.get("file_path", "") if isinstance(tool_input, dict) else ""
    if name == "Bash":
        stderr = _text_of(error) if failed else ""
        streams = {"stdout": text, "stderr": stderr}
        return streams | {"interrupted": False, "isImage": False}
    if name in ("Write", "Edit"):
        return {"filePath": path, "success": not failed}
    if name == "Read":
        return {"type": "text", "file": {"filePath": path, "content": text}}
    return {"content": text, "success": not failed}


def _text_of(content: Any) -> str:
    found, left = [], [content]
    while left:
        item = left.pop()
        if isinstance(item, list):
            left += reversed(item)
        elif isinstance(item, dict):
            left.append(item.get("text") or item.get("message"))
        elif item is not None:
            found.append(text_of(item))
    return "".join(found)


def claude_content(name: str, response: Any) -> Any:
    """The text of a result of Claude Code where it is known, else its own object."""
    parts: list[Any] = []
    if CLAUDE_MCP_TOOL.fullmatch(name) and isinstance(response, list):
        parts = [one.get("text") for one in response]
    elif name in _TEXT_TOOLS and isinstance(response, dict):
        file = response.get("file") or {}
        found = [response.get(key) for key in ("stdout", "stderr", "content")]
        texts = [one for one in [*found, file.get("content")] if one]
        parts = texts or response.get("filenames") or []
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
