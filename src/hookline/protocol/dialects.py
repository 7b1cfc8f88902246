"""How Claude Code, Gemini CLI and llxprt-code name and shape what hooks see and say.

Tables of names, and the translation of an input and of an answer by them. Pure. What
has no counterpart keeps its name and is shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct, structs

from .events import TRAITS, HookEventName, Matching
from .results import fail_closed_output
from .values import decode, plain_text, same_json, text_of

_E = HookEventName
Wire = dict[str, Any]
Names = tuple[str, ...]

# The fields of our tools, and what coding agents call them.

_FILE: Names = ("path", "file_path", "absolute_path", "file", "file_name")
_FILE += ("target_file", "notebook_path")
_FOLDER: Names = ("path", "dir_path", "directory", "dir", "folder")
_FOLDER += ("directory_path", "target_directory")
_CONTENT = ("content", "file_text", "contents", "code", "new_text")
_COMMAND = ("command", "cmd", "command_line", "script")
_TYPED = ("input", "chars")  # into a shell that runs already
OLD = ("old_string", "old_str", "old_text", "before")
_NEW = ("new_string", "new_str", "new_text", "after", "insert_text", "new_source")
SPELLINGS: dict[str, dict[str, Names]] = {
    "run_shell_command": {"command": _COMMAND + _TYPED},
    "read_file": {"path": _FILE},
    "write_file": {"path": _FILE, "content": _CONTENT},
    "replace": {"path": _FILE, "old_string": OLD, "new_string": _NEW},
    "delete_file": {"path": _FILE},
    "glob": {"pattern": ("pattern", "glob_pattern", "glob", "query"), "path": _FOLDER},
    "search_file_content": {"pattern": ("pattern", "query", "regex"), "path": _FOLDER},
    "list_directory": {"path": _FOLDER},
    "web_fetch": {"url": ("url", "uri")},
    "web_search": {"query": ("query", "search_term")},
    "task": {"prompt": ("prompt", "task", "message")},
}
"""Case, ``_`` and ``-`` make no difference: ``filePath`` is ``file_path``."""


def folded_key(key: str) -> str:
    """A name without what spellings differ in: case, ``_`` and ``-``."""
    return key.replace("_", "").replace("-", "").lower()


def keys_of(tool_input: Mapping[str, Any], spellings: Names) -> list[str]:
    """The keys of an input that are names of one field, in their order of weight."""
    folded = [folded_key(name) for name in spellings]
    weights = {
        key: (key != spellings[0], folded.index(folded_key(key)))
        for key, value in tool_input.items()
        if folded_key(key) in folded and value is not None
    }
    return sorted(weights, key=weights.__getitem__)


def with_agent_spellings(
    event: Mapping[str, Any], words: Collection[str]
) -> Mapping[str, Any]:
    """An agent's event with those spellings of ``tool_input`` that a rule mentions.

    A spelling counts if it is ours, or one that the agent itself has used in the call;
    a list of the agent's, such as ``edits``, is as it came. Only what is mentioned is
    added: rules that look at all keys see no more of them
    (docs/reference/protocol.md#rules).
    """
    host, tool_input = event.get("host"), event.get("tool_input")
    if not isinstance(host, Mapping) or not isinstance(tool_input, Mapping):
        return event
    agent_input = host.get("tool_input")
    agent_keys: set[str] = set()
    added: dict[str, Any] = {}
    if isinstance(agent_input, Mapping):
        agent_keys.update(agent_input)
        # Also of the objects in its lists: one for each file, say.
        for value in agent_input.values():
            for item in value if isinstance(value, list) else [value]:
                agent_keys.update(item if isinstance(item, Mapping) else ())
        for word in words:
            if isinstance(agent_input.get(word), list) and word not in tool_input:
                added[word] = agent_input[word]
    tool_names = (event.get("tool_name"), host.get("our_tool_name"))
    fields = next((SPELLINGS[name] for name in tool_names if name in SPELLINGS), {})
    for field, spellings in fields.items():
        folded = [folded_key(name) for name in spellings]
        mentioned = [
            word
            for word in words
            if word not in tool_input
            and folded_key(word) in folded
            and (word == field or word in agent_keys)
        ]
        if mentioned and (keys := keys_of(tool_input, spellings)):
            added |= dict.fromkeys(mentioned, tool_input[keys[0]])
    return {**event, "tool_input": {**tool_input, **added}} if added else event


# What hosts call events, tools, and the fields of their tools.

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
CLAUDE_TOOLS: dict[str, Names] = {
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
GEMINI_TOOLS: dict[str, Names] = {
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

_ANY_FILE: dict[str, Names] = {
    "file_path": (
        *("file_path", "absolute_path", *_FILE, "target", "target_path", "full_path"),
        *("output_path", "path_name", "destination", "dest"),
    )
}
_ANY_FOLDER: dict[str, Names] = {"dir_path": _FOLDER}
_GLOB = ("include", "glob", "include_pattern")
_QUERY: dict[str, Names] = {"query": ("query", "q")}
_CLAUDE_KEYS: dict[str, dict[str, Names]] = {
    "Bash": {"command": _COMMAND},
    **dict.fromkeys(("Read", "Write", "Edit", "MultiEdit"), _ANY_FILE),
    "Glob": {"path": _FOLDER},
    "LS": {"path": _FOLDER},
    "Grep": {"path": _FOLDER, "glob": _GLOB},
    "WebFetch": {"url": ("url", "uri", "href")},
    "WebSearch": _QUERY,
}
"""For each of their tools: the keys of its input, and our names for each."""
_SEARCH = {**_ANY_FOLDER, "include_pattern": _GLOB}
_GEMINI_KEYS: dict[str, dict[str, Names]] = {
    "run_shell_command": {"command": _COMMAND},
    **dict.fromkeys(("read_file", "write_file", "replace"), _ANY_FILE),
    **dict.fromkeys(("glob", "list_directory"), _ANY_FOLDER),
    **dict.fromkeys(("grep_search", "search_file_content"), _SEARCH),
    "google_web_search": _QUERY,
}
_NOTIFICATIONS = {"ToolPermission": "permission_prompt"}
CLAUDE_NOTIFICATIONS = {value: name for name, value in _NOTIFICATIONS.items()}
CLAUDE_MCP_TOOL = re.compile(r"mcp__(.+?)__(.+)")


class HostNames(Struct, frozen=True, kw_only=True):
    """The names of one host."""

    events: Mapping[HookEventName, str]
    tools: Mapping[str, Names]
    keys: Mapping[str, dict[str, Names]]
    values: Mapping[HookEventName, Mapping[str, str]]
    """Our values of the field that matchers are compared with, and theirs."""
    synonyms: Mapping[str, str]
    """Two names of theirs for the same tool."""
    mcp_tool: str
    mcp_invalid: str
    """The characters that become ``_`` in the name of an MCP tool."""
    hosts: frozenset[str]
    """The hosts whose own fields its hooks know."""
    changed_input: str
    """The key of an answer that replaces the whole input of a tool."""
    searches_all: bool
    """Whether a matcher can be a regular expression on every event."""


CLAUDE = HostNames(
    events={event: name for name, event in CLAUDE_EVENTS.items()},
    tools=CLAUDE_TOOLS,
    keys=_CLAUDE_KEYS,
    values={
        _E.SessionStart: {"compress": "compact"},
        _E.SessionEnd: {"exit": "other"},
        _E.Notification: _NOTIFICATIONS,
    },
    synonyms={"Task": "Agent", "Agent": "Task"},
    mcp_tool="mcp__{}__{}",
    mcp_invalid=r"[^a-zA-Z0-9_-]",
    hosts=frozenset({"claude"}),
    changed_input="updatedInput",
    searches_all=True,
)
GEMINI = HostNames(
    events={},
    tools=GEMINI_TOOLS,
    keys=_GEMINI_KEYS,
    values={},
    synonyms={
        "grep_search": "search_file_content",
        "search_file_content": "grep_search",
    },
    mcp_tool="mcp_{}_{}",
    mcp_invalid=r"[^a-zA-Z0-9_.:-]",
    hosts=frozenset({"gemini", "llxprt"}),
    changed_input="tool_input",
    searches_all=False,
)
LLXPRT = structs.replace(GEMINI)
DIALECTS = {"claude": CLAUDE, "gemini": GEMINI, "llxprt": LLXPRT}
"""By the value of ``dialect`` in settings."""


# The names that matchers are compared with.


def shown_names(
    dialect: HostNames, event: HookEventName, fields: Mapping[str, Any]
) -> Names | None:
    """What matchers are compared with; None where nobody can say, so that all match."""
    traits = TRAITS[event]
    if traits.matching is Matching.REGEX:
        return _tool_names(dialect, fields)
    value = plain_text(fields.get(traits.matched_field))
    if value is None:
        return None
    return (dialect.values.get(event, {}).get(value, value),)


def _tool_names(dialect: HostNames, fields: Mapping[str, Any]) -> Names | None:
    """Their names of a tool, the usual one first; None where nobody can say."""
    name, context = plain_text(fields.get("tool_name")), fields.get("mcp_context")
    host_name = _host_event(dialect, fields).get("tool_name")
    if host_name is not None:
        name, context = plain_text(host_name), None
    if name is None:
        return None
    if context is not None:
        if not isinstance(context, Mapping):
            return None
        server, tool = context.get("server_name"), context.get("tool_name")
        if not server:
            return (name,)
        if plain_text(server) is None or (tool and plain_text(tool) is None):
            return None
        tool = tool or name.removeprefix(dialect.mcp_tool.format(server, ""))
        mcp_name = dialect.mcp_tool.format(server, tool)
        return (re.sub(dialect.mcp_invalid, "_", mcp_name),)
    names = tuple(n for n, our_names in dialect.tools.items() if name in our_names)
    if host_name is None and names:
        return names
    return (name, dialect.synonyms[name]) if name in dialect.synonyms else (name,)


def _host_event(dialect: HostNames, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The event as its host sent it, where that is a host that the hook knows."""
    host = fields.get("host")
    is_known = (
        isinstance(host, Mapping) and plain_text(host.get("name")) in dialect.hosts
    )
    return host if is_known and host is not None else {}


_NAMES = re.compile(r"[a-zA-Z0-9_|, -]+")
"""Of these characters Claude Code makes a list of names (observed in 2.1.325)."""


def listed_names(dialect: HostNames, matcher: str) -> Names | None:
    """The names in a matcher that is a list of them; None if it is an expression."""
    if dialect.searches_all and _NAMES.fullmatch(matcher):
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
_PYTHON_ITEMS = {"group": "(?P<", "any": r"[\s\S]", "none": "(?!)"}


def python_expression(javascript: str) -> str:
    """A regular expression of JavaScript in Python's syntax, as far as it differs."""

    def translated(item: re.Match[str]) -> str:
        if item["reference"]:
            return f"(?P={item['reference']})"
        return _PYTHON_ITEMS.get(item.lastgroup or "", item[0])

    expression = _JS_ITEM.sub(translated, javascript)
    # \w, \d and \b mean ASCII there.
    return f"(?a){expression}" if re.search(r"\\[wWdDbB]", expression) else expression


# What a hook is shown.


def shown_input(
    dialect: HostNames,
    event: HookEventName,
    event_input: Mapping[str, Any],
    *,
    tool_name: str | None = None,
    changed: Collection[str] = (),
    call_id: str = "",
) -> Wire:
    """What a hook is shown of an event.

    Of its own host: what that sent, to the letter. ``tool_name``: which of their names
    for the tool, where there are several. ``changed``: the fields that other hooks
    changed, where the host's own are out of date. ``call_id``: for callers without one.
    """
    host, sender = _host_event(dialect, event_input), event_input.get("host")
    payload = sender.get("payload") if isinstance(sender, Mapping) else None
    if not isinstance(payload, Mapping):
        payload = {}  # no coding agent sent it
    is_own = bool(host and payload)
    if is_own:
        hook_input = {**payload, **{key: event_input[key] for key in changed}}
        for key in ("session_id", "transcript_path", "cwd", "hook_event_name"):
            hook_input.setdefault(key, event_input.get(key))
    else:
        hook_input = {**payload, **event_input}
        event_name = host.get("event") or dialect.events.get(event, event.value)
        hook_input["hook_event_name"] = event_name
    if "tool_name" in event_input:
        hook_input["tool_name"] = tool_name or _usual_name(dialect, event_input)
        hook_input["tool_input"] = tool_input = event_input.get("tool_input")
        if has_own_input(dialect, event_input) and "tool_input" not in changed:
            hook_input["tool_input"] = payload.get("tool_input", host["tool_input"])
        elif isinstance(tool_input, dict):
            hook_input["tool_input"] = _their_tool_input(
                dialect, hook_input["tool_name"], tool_input
            )
        if dialect is CLAUDE and hook_input.get("tool_use_id") is None:
            hook_input["tool_use_id"] = call_id
    if dialect is not CLAUDE:
        return hook_input
    if event is _E.SubagentStop:
        hook_input.setdefault("agent_transcript_path", "")
    return hook_input if is_own else _with_claude_fields(event, hook_input)


def has_own_input(dialect: HostNames, event_input: Mapping[str, Any]) -> bool:
    """Whether the host that hooks know has sent the input, and uses it as it is."""
    return isinstance(_host_event(dialect, event_input).get("tool_input"), dict)


def _usual_name(dialect: HostNames, event_input: Mapping[str, Any]) -> str:
    """Their usual name of a tool."""
    names = _tool_names(dialect, event_input)
    return names[0] if names else str(event_input.get("tool_name", ""))


def _with_claude_fields(event: HookEventName, hook_input: Wire) -> Wire:
    """What Claude Code always sends, as far as it follows from our fields."""
    hook_input.setdefault("permission_mode", "default")
    response = hook_input.get("tool_response")
    # A result of another shape than ours is shown as the caller gave it.
    if isinstance(response, dict) and (
        "llmContent" in response or response.get("error") is not None
    ):
        name, error = hook_input["tool_name"], response.get("error")
        if error is None and CLAUDE_MCP_TOOL.fullmatch(name):
            hook_input["tool_response"] = claude_content(name, response["llmContent"])
        else:
            fields = _claude_response(name, hook_input["tool_input"], response)
            hook_input["tool_response"] = fields | response
        if error is not None:
            hook_input |= {
                "hook_event_name": CLAUDE_FAILURE_EVENT,
                "is_interrupt": False,
            }
            hook_input["error"] = _joined_text(error)
    if event is _E.AfterTool:
        hook_input.setdefault("duration_ms", 0)
    if event in (_E.AfterAgent, _E.SubagentStop):
        hook_input["last_assistant_message"] = hook_input.get("prompt_response", "")
        for field in ("background_tasks", "session_crons"):
            hook_input.setdefault(field, [])  # always there, and not known here
        if hook_input.get("prompt") == "":
            del hook_input["prompt"]  # hooks tell a prompt from an ending by this key
    elif event is _E.PreCompress:
        hook_input.setdefault("custom_instructions", "")
    for field in ("source", "reason", "notification_type"):
        if isinstance(hook_input.get(field), str):
            values = CLAUDE.values.get(event, {})
            hook_input[field] = values.get(hook_input[field], hook_input[field])
    return hook_input


def _claude_response(name: str, tool_input: Any, response: Wire) -> Wire:
    """The fields of a tool's result in Claude Code."""
    content, error = response.get("llmContent"), response.get("error")
    text, is_success = _joined_text(content), error is None
    tool_input = tool_input if isinstance(tool_input, dict) else {}
    path = tool_input.get("file_path", "")
    if name == "Bash":
        stderr = "" if is_success else _joined_text(error)
        streams = {"stdout": text, "stderr": stderr}
        return {**streams, "interrupted": False, "isImage": False}
    if name in ("Write", "Edit"):
        return {"filePath": path, "success": is_success}
    if name == "Read":
        return {"type": "text", "file": {"filePath": path, "content": text}}
    if isinstance(content, dict) and content.keys() - {"type", "text"}:
        return content  # an object has its own keys
    if name == "WebFetch":
        return {"result": text, "url": tool_input.get("url", ""), "code": 200}
    if name == "WebSearch":
        return {"query": tool_input.get("query", ""), "results": [text]}
    return {"content": text, "success": is_success}


def _joined_text(content: Any) -> str:
    """The texts of a result; without recursion, it may be deep."""
    texts, stack = [], [content]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack += reversed(item)
        elif isinstance(item, dict):
            stack.append(item.get("text") or item.get("message"))
        elif item is not None:
            texts.append(text_of(item))
    return "".join(texts)


def _their_tool_input(dialect: HostNames, name: str, tool_input: Wire) -> Wire:
    hook_input = dict(tool_input)
    for field, spellings in dialect.keys.get(name, {}).items():
        keys = keys_of(tool_input, (field, *spellings))
        if keys and keys[0] != field:
            hook_input[field] = tool_input[keys[0]]
            if len(keys) == 1:
                del hook_input[keys[0]]
    if name == "WebFetch" and hook_input.get("url") is None:
        addresses = _addresses(tool_input)
        hook_input |= {"url": addresses[0]} if addresses else {}
    if name == "MultiEdit" and "old_string" in tool_input and "edits" not in tool_input:
        edit_keys = ("old_string", "new_string", "replace_all")
        hook_input["edits"] = [
            {key: hook_input.pop(key) for key in edit_keys if key in hook_input}
        ]
    return hook_input


def ambiguity(
    dialect: HostNames, event_input: Mapping[str, Any], tool_name: str | None = None
) -> str | None:
    """Why a hook cannot tell what a tool will use; None where it can.

    Their tools have one name for a field. Where an input has several that disagree,
    a hook looks at one of them and the tool may use another.
    """
    tool_input = event_input.get("tool_input")
    if not isinstance(tool_input, dict):
        return None
    name = tool_name or _usual_name(dialect, event_input)
    for field, spellings in dialect.keys.get(name, {}).items():
        keys = keys_of(tool_input, (field, *spellings))
        if not all(same_json(tool_input[key], tool_input[keys[0]]) for key in keys):
            return f"the input has several values for {field}: {', '.join(keys)}"
    if name == "WebFetch" and len(addresses := _addresses(tool_input)) > 1:
        return f"the input has several addresses: {', '.join(addresses)}"
    return None


_ADDRESS = re.compile(r"(?i)\bhttps?://[^\s\"'<>]+")


def _addresses(tool_input: Wire) -> list[str]:
    """Every address in the input of ``WebFetch``, each once."""
    addresses: list[str] = []
    stack: list[Any] = [tool_input]
    while stack:  # without recursion, it may be deep
        item = stack.pop()
        if isinstance(item, str):
            addresses += (match.rstrip(".,;:!?)]}") for match in _ADDRESS.findall(item))
        elif isinstance(item, dict | list):
            stack += reversed(item.values() if isinstance(item, dict) else item)
    return list(dict.fromkeys(addresses))


# What a hook answers.


def our_output(
    dialect: HostNames,
    event: HookEventName,
    wire: Wire,
    event_input: Mapping[str, Any],
    tool_name: str | None = None,
) -> Wire:
    """Convert the JSON output of a hook of another host to ours.

    A changed input replaces the whole of it, hence ``replacesToolInput``. ``defer`` of
    Claude Code leaves the decision to others: nothing is said.
    """
    if dialect is CLAUDE:
        wire = _without_defer(wire)
    specific = wire.get("hookSpecificOutput")
    if not isinstance(specific, dict):
        return wire
    specific = dict(specific) if dialect is not CLAUDE else _without_defer(specific)
    if "hookEventName" in specific:
        specific["hookEventName"] = event.value
    changed_input = specific.pop(dialect.changed_input, None)
    if isinstance(changed_input, dict):
        name = tool_name or _usual_name(dialect, event_input)
        changed_input = _our_tool_input(dialect, name, changed_input, event_input)
        specific["replacesToolInput"] = True
    if changed_input is not None:  # of a wrong type it is ignored with a warning
        specific["tool_input"] = changed_input
    wire = {**wire, "hookSpecificOutput": specific}
    if dialect is not CLAUDE:
        return wire
    result_keys = ("updatedToolOutput", "updatedMCPToolOutput")
    updated = [specific.pop(key, None) for key in result_keys]
    result = next((value for value in updated if value is not None), None)
    if event is not _E.AfterTool or result is None:
        return wire
    content = claude_content(tool_name or _usual_name(CLAUDE, event_input), result)
    text = content if isinstance(content, str) else text_of(result)
    return withheld(event, wire, text)


def _without_defer(fields: Wire) -> Wire:
    decision = fields.get("permissionDecision")
    if not isinstance(decision, str) or decision.strip().lower() != "defer":
        return dict(fields)
    dropped = ("permissionDecision", "permissionDecisionReason")
    return {key: value for key, value in fields.items() if key not in dropped}


def _our_tool_input(
    dialect: HostNames, name: str, changed: Wire, event_input: Mapping[str, Any]
) -> Wire:
    """Rename their keys to those of the input that the hook was given."""
    tool_input = event_input.get("tool_input")
    tool_input = tool_input if isinstance(tool_input, dict) else {}
    changed = dict(changed)
    for field, spellings in dialect.keys.get(name, {}).items():
        keys = keys_of(tool_input, (field, *spellings))
        # Theirs is shown beside several of ours and stands for the first.
        if field in changed and keys and keys[0] != field:
            changed[keys[0]] = changed.pop(field)
            if tool_input.get(field, keys) is None:
                changed[field] = None  # it was hidden from the hook
    if name == "WebFetch" and not keys_of(tool_input, ("url", "uri", "href")):
        changed.pop("url", None)  # _their_tool_input added it
    if name == "MultiEdit" and "edits" not in tool_input:
        match changed.get("edits"):
            case [dict(edit)]:
                del changed["edits"]
                changed |= edit
    return changed


def withheld(event: HookEventName, wire: Wire, text: str) -> Wire:
    """An output that puts a text in the place of a tool's result or an answer."""
    specific = wire.get("hookSpecificOutput")
    specific = specific if isinstance(specific, dict) else {}
    closed = fail_closed_output(event, text)
    closed_specific = closed["hookSpecificOutput"]
    context = specific.get("additionalContext")
    if event is _E.AfterTool and isinstance(context, str) and context:
        closed_specific["additionalContext"] = f"{text}\n{context}"
    output = {key: value for key, value in wire.items() if key != "decision"} | closed
    return output | {"hookSpecificOutput": {**specific, **closed_specific}}


def async_timeout(line: bytes, default_s: float) -> float | None:
    """How long a hook may go on whose first line says that nobody should wait for it.

    None where it does not say so.
    """
    if b"}" not in line or b"async" not in line:
        return None
    try:
        answer = decode(line)
    except ValueError:
        return None
    if not isinstance(answer, dict) or answer.get("async") is not True:
        return None
    limit_ms = answer.get("asyncTimeout")
    if isinstance(limit_ms, bool) or not isinstance(limit_ms, (int, float)):
        return default_s
    # A number of seconds that an event loop can count: at most a day.
    return min(limit_ms, 86_400_000) / 1000 if limit_ms > 0 else default_s


# The results of Claude Code's tools.


def claude_content(name: str, response: Any) -> Any:
    """The text of a result of Claude Code where it is known, else its own object."""
    texts: list[Any] = []
    if CLAUDE_MCP_TOOL.fullmatch(name) and isinstance(response, list):
        texts = [isinstance(item, dict) and item.get("text") for item in response]
    elif name in ("Bash", "Read", "Grep", "Glob") and isinstance(response, dict):
        file, names = response.get("file"), response.get("filenames")
        values = [response.get(key) for key in ("stdout", "stderr", "content")]
        values.append(file.get("content") if isinstance(file, dict) else None)
        texts = [value for value in values if value]
        texts = texts or (names if isinstance(names, list) else [])
    is_text = texts and all(isinstance(text, str) for text in texts)
    return "\n".join(texts) if is_text else response


def claude_replacement(name: str, response: Any, text: str) -> Any:
    """A text as the result of a tool of Claude Code; None if its shape is not known.

    Claude Code ignores a result of another shape than the tool's own, and its model
    gets what the tool said: only shapes that were seen to work are written.
    """
    content = [{"type": "text", "text": text}]
    if CLAUDE_MCP_TOOL.fullmatch(name):
        return content if isinstance(response, list) else text
    if name in ("Agent", "Task"):
        has_answer = isinstance(response, dict) and "content" in response
        return {**response, "content": content} if has_answer else None
    # Of an edit the model is told the path alone: the text takes its place.
    edit = {"filePath": text, "originalFile": "", "structuredPatch": []}
    lines = {"numLines": 1, "startLine": 1, "totalLines": 1}
    shapes: Wire = {
        "Bash": {"stdout": text, "stderr": "", "interrupted": False, "isImage": False},
        "Read": {"type": "text", "file": {"filePath": "", "content": text, **lines}},
        "Write": {"type": "update", "content": text, **edit},
        "Edit": {"oldString": "", "newString": "", "userModified": False}
        | {"replaceAll": False, **edit},
        "Grep": {"mode": "content", "numFiles": 0, "filenames": []}
        | {"content": text, "numLines": 1},
        "Glob": {"filenames": [text], "numFiles": 1, "durationMs": 0}
        | {"truncated": False},
        "WebFetch": {"result": text, "url": "", "bytes": 0, "code": 200}
        | {"codeText": "", "durationMs": 0},
        "WebSearch": {"query": "", "results": [text], "durationSeconds": 0},
    }
    return shapes.get(name)
