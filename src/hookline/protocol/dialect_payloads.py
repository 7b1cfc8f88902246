"""Translate the input and the answer of a hook that was written for another host.

Pure. A field that has no counterpart is shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from .dialects import (
    CLAUDE,
    CLAUDE_FAILURE_EVENT,
    CLAUDE_MCP_TOOL,
    HostNames,
    Wire,
    claude_content,
    host_fields,
    tool_names,
)
from .events import HookEventName
from .results import fail_closed_output
from .tool_fields import keys_of
from .values import decode, same_json, text_of

_E = HookEventName
_TEXT_IS_CONTEXT = frozenset({_E.BeforeAgent, _E.SessionStart})
_ADDRESS = re.compile(r"(?i)\bhttps?://[^\s\"'<>]+")
_AFTER_ADDRESS = ".,;:!?)]}"
_EDIT = ("old_string", "new_string", "replace_all")


def shown_input(
    theirs: HostNames,
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
    host, payload = host_fields(theirs, event_input), _payload(event_input)
    is_own = bool(host and payload)
    if is_own:
        shown = {**payload, **{key: event_input[key] for key in changed}}
        for key in _BASE:
            shown.setdefault(key, event_input.get(key))
    else:
        shown = {**payload, **event_input}
        named = host.get("event") or theirs.events.get(event, event.value)
        shown["hook_event_name"] = named
    if "tool_name" in event_input:
        name = tool_name or their_tool_name(theirs, event_input)
        shown |= {"tool_name": name, "tool_input": event_input.get("tool_input")}
        if has_own_input(theirs, event_input) and "tool_input" not in changed:
            shown["tool_input"] = payload.get("tool_input", host["tool_input"])
        elif isinstance(shown["tool_input"], dict):
            shown["tool_input"] = _their_tool_input(theirs, name, shown["tool_input"])
        if theirs is CLAUDE and shown.get("tool_use_id") is None:
            shown["tool_use_id"] = call_id
    if theirs is not CLAUDE:
        return shown
    if event is _E.SubagentStop:
        shown.setdefault("agent_transcript_path", "")
    return shown if is_own else _claude_fields(event, shown)


_BASE = ("session_id", "transcript_path", "cwd", "hook_event_name")


def _payload(event_input: Mapping[str, Any]) -> Mapping[str, Any]:
    """The event as a coding agent sent it; empty for any other caller."""
    host = event_input.get("host")
    payload = host.get("payload") if isinstance(host, Mapping) else None
    return payload if isinstance(payload, Mapping) else {}


def has_own_input(theirs: HostNames, event_input: Mapping[str, Any]) -> bool:
    """Whether the host that hooks know has sent the input, and uses it as it is."""
    return isinstance(host_fields(theirs, event_input).get("tool_input"), dict)


def their_tool_name(theirs: HostNames, event_input: Mapping[str, Any]) -> str:
    """Their usual name of a tool."""
    names = tool_names(theirs, event_input)
    return names[0] if names else str(event_input.get("tool_name", ""))


def claude_output(
    event: HookEventName,
    wire: Wire,
    event_input: Mapping[str, Any] | None = None,
    tool_name: str | None = None,
) -> Wire:
    """Convert the JSON output of a hook for Claude Code to ours.

    ``updatedInput`` replaces the whole tool input, hence ``replacesToolInput``.
    ``defer`` leaves the decision to others: nothing is said.
    """
    wire = _without_defer(wire)
    specific = wire.get("hookSpecificOutput")
    if not isinstance(specific, dict):
        return wire
    given = event_input or {}
    name = tool_name or their_tool_name(CLAUDE, given)
    ours = _with_our_event(_without_defer(specific), event)
    updated = ours.pop("updatedInput", None)
    if isinstance(updated, dict):
        ours["tool_input"] = _our_tool_input(CLAUDE, name, updated, given)
        ours["replacesToolInput"] = True
    elif updated is not None:
        ours["tool_input"] = updated  # of a wrong type: it is ignored with a warning
    replaced = [ours.pop(key, None) for key in _REPLACED_OUTPUTS]
    said = {**wire, "hookSpecificOutput": ours}
    output = next((one for one in replaced if one is not None), None)
    if event is not _E.AfterTool or output is None:
        return said
    content = claude_content(name, output)
    return withheld(
        event, said, content if isinstance(content, str) else text_of(output)
    )


def _without_defer(said: Wire) -> Wire:
    decision = said.get("permissionDecision")
    if not isinstance(decision, str) or decision.strip().lower() != "defer":
        return said
    dropped = ("permissionDecision", "permissionDecisionReason")
    return {key: value for key, value in said.items() if key not in dropped}


_REPLACED_OUTPUTS = ("updatedToolOutput", "updatedMCPToolOutput")


def async_timeout(line: bytes, default_s: float) -> float | None:
    """How long a hook may go on whose first line says that nobody should wait for it.

    None where it does not say so.
    """
    if b"}" not in line or b"async" not in line:
        return None
    try:
        said = decode(line)
    except ValueError:
        return None
    if not isinstance(said, dict) or said.get("async") is not True:
        return None
    limit_ms = said.get("asyncTimeout")
    if isinstance(limit_ms, bool) or not isinstance(limit_ms, (int, float)):
        return default_s
    return min(limit_ms, _DAY_MS) / 1000 if limit_ms > 0 else default_s


_DAY_MS = 86_400_000
"""A limit must be a number of seconds that an event loop can count."""


def claude_text(event: HookEventName, text: str) -> Wire:
    """Convert the text output of such a hook; on some events it is context."""
    if event in _TEXT_IS_CONTEXT and text:
        return {"hookSpecificOutput": {"additionalContext": text}}
    return {}


def gemini_output(
    theirs: HostNames,
    event: HookEventName,
    wire: Wire,
    event_input: Mapping[str, Any],
    tool_name: str | None = None,
) -> Wire:
    """Convert the JSON output of a hook for Gemini CLI to ours."""
    specific = wire.get("hookSpecificOutput")
    if not isinstance(specific, dict):
        return wire
    ours = _with_our_event(specific, event)
    if isinstance(ours.get("tool_input"), dict):
        name = tool_name or their_tool_name(theirs, event_input)
        updated = ours["tool_input"]
        ours["tool_input"] = _our_tool_input(theirs, name, updated, event_input)
        ours["replacesToolInput"] = True
    return {**wire, "hookSpecificOutput": ours}


def withheld(event: HookEventName, wire: Wire, text: str) -> Wire:
    """An output that puts a text in the place of a tool's result or an answer."""
    given = wire.get("hookSpecificOutput")
    specific = given if isinstance(given, dict) else {}
    closed = fail_closed_output(event, text)
    added = specific.get("additionalContext")
    if event is _E.AfterTool and isinstance(added, str) and added:
        closed["hookSpecificOutput"]["additionalContext"] = f"{text}\n{added}"
    rest = {key: value for key, value in wire.items() if key != "decision"}
    return (
        rest
        | closed
        | {"hookSpecificOutput": {**specific, **closed["hookSpecificOutput"]}}
    )


def ambiguity(
    theirs: HostNames, event_input: Mapping[str, Any], tool_name: str | None = None
) -> str | None:
    """Why a hook cannot tell what a tool will use; None where it can.

    Their tools have one name for a field. Where an input has several that disagree,
    a hook looks at one of them and the tool may use another.
    """
    given = event_input.get("tool_input")
    if not isinstance(given, dict):
        return None
    name = tool_name or their_tool_name(theirs, event_input)
    for field, ours in theirs.keys.get(name, {}).items():
        keys = keys_of(given, (field, *ours))
        if not all(same_json(given[key], given[keys[0]]) for key in keys):
            return f"the input has several values for {field}: {', '.join(keys)}"
    if name == "WebFetch" and len(addresses := _addresses(given)) > 1:
        return f"the input has several addresses: {', '.join(addresses)}"
    return None


def _with_our_event(specific: Wire, event: HookEventName) -> Wire:
    named = {"hookEventName": event.value} if "hookEventName" in specific else {}
    return {**specific, **named}


_UNKNOWN: Wire = {"background_tasks": [], "session_crons": []}
"""What Claude Code always says at the end of a turn, and others do not know."""


def _claude_fields(event: HookEventName, shown: Wire) -> Wire:
    shown.setdefault("permission_mode", "default")
    response = shown.get("tool_response")
    # A result of another shape than ours is shown as the caller gave it.
    if isinstance(response, dict) and (
        "llmContent" in response or response.get("error") is not None
    ):
        shown |= _claude_result(shown, response)
    if event is _E.AfterTool:
        shown.setdefault("duration_ms", 0)
    if event in (_E.AfterAgent, _E.SubagentStop):
        shown["last_assistant_message"] = shown.get("prompt_response", "")
        shown = _UNKNOWN | shown
        if shown.get("prompt") == "":
            del shown["prompt"]  # hooks tell a prompt from an ending by this key
    elif event is _E.PreCompress:
        shown.setdefault("custom_instructions", "")
    for field in ("source", "reason", "notification_type"):
        values = CLAUDE.values.get(event, {})
        if isinstance(shown.get(field), str):
            shown[field] = values.get(shown[field], shown[field])
    return shown


def _claude_result(shown: Wire, response: Wire) -> Wire:
    name, error = shown["tool_name"], response.get("error")
    if error is None and CLAUDE_MCP_TOOL.fullmatch(name):
        return {"tool_response": claude_content(name, response["llmContent"])}
    theirs = _their_response(name, shown["tool_input"], response)
    fields: Wire = {"tool_response": theirs | response}
    if error is not None:
        named = {"hook_event_name": CLAUDE_FAILURE_EVENT, "error": _text_of(error)}
        fields |= {"is_interrupt": False, **named}
    return fields


def _their_tool_input(theirs: HostNames, name: str, given: Wire) -> Wire:
    shown = dict(given)
    for field, ours in theirs.keys.get(name, {}).items():
        keys = keys_of(given, (field, *ours))
        if keys and keys[0] != field:
            shown[field] = given[keys[0]]
            if len(keys) == 1:
                del shown[keys[0]]
    if name == "WebFetch" and shown.get("url") is None:
        addresses = _addresses(given)
        shown |= {"url": addresses[0]} if addresses else {}
    if name == "MultiEdit" and "old_string" in given and "edits" not in given:
        shown["edits"] = [{key: shown.pop(key) for key in _EDIT if key in shown}]
    return shown


def _our_tool_input(
    theirs: HostNames, name: str, updated: Wire, event_input: Mapping[str, Any]
) -> Wire:
    """Rename their keys to those of the input that the hook was given."""
    given = event_input.get("tool_input")
    given = given if isinstance(given, dict) else {}
    ours = dict(updated)
    for field, alternatives in theirs.keys.get(name, {}).items():
        keys = keys_of(given, (field, *alternatives))
        # Theirs is shown beside several of ours and stands for the first.
        if field in ours and keys and keys[0] != field:
            ours[keys[0]] = ours.pop(field)
            if given.get(field, keys) is None:
                ours[field] = None  # it was hidden from the hook
    if name == "WebFetch" and not keys_of(given, ("url", "uri", "href")):
        ours.pop("url", None)  # _their_tool_input added it
    edits = ours.get("edits")
    if name == "MultiEdit" and "edits" not in given and isinstance(edits, list):
        match edits:
            case [dict(edit)]:
                del ours["edits"]
                ours |= edit
    return ours


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
    content, error = response.get("llmContent"), response.get("error")
    text, failed = _text_of(content), error is not None
    given = tool_input if isinstance(tool_input, dict) else {}
    path = given.get("file_path", "")
    if name == "Bash":
        stderr = _text_of(error) if failed else ""
        streams = {"stdout": text, "stderr": stderr}
        return streams | {"interrupted": False, "isImage": False}
    if name in ("Write", "Edit"):
        return {"filePath": path, "success": not failed}
    if name == "Read":
        return {"type": "text", "file": {"filePath": path, "content": text}}
    if isinstance(content, dict) and content.keys() - {"type", "text"}:
        return content  # an object has its own keys
    if name == "WebFetch":
        return {"result": text, "url": given.get("url", ""), "code": 200}
    if name == "WebSearch":
        return {"query": given.get("query", ""), "results": [text]}
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
