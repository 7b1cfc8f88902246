"""The verbs in which a host is answered: deny, block, end, show, specific.

They are Claude Code's, which most hosts took over. A key without a value is left out of
an answer.
"""

from __future__ import annotations

import re
from typing import Any

from hookline.protocol.outputs import BLOCKED_BY_HOOK
from hookline.protocol.values import encode

from .host_verdict import Answer, HostVerdict, Wire

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")


def json_answer(wire: Wire, longest_text: int | None = None) -> Answer:
    """An answer in JSON, in ASCII because hosts decode their pipes piece by piece.

    An empty object is a value: that of a changed input.
    """
    wire = {key: value for key, value in wire.items() if value not in (None, "")}
    text = encode(wire if longest_text is None else _cut(wire, longest_text))
    if not text.isascii():
        text = _BEYOND_ASCII.sub(_as_escapes, text.decode()).encode()
    return Answer(text + b"\n")


def _cut(value: Any, longest: int) -> Any:
    if isinstance(value, dict):
        return {key: _cut(field, longest) for key, field in value.items()}
    is_long = isinstance(value, str) and len(value) > longest
    return f"{value[:longest]} [cut]" if is_long else value


def _as_escapes(characters: re.Match[str]) -> str:
    units = characters[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def specific(event: str, context: str = "", **values: Any) -> Wire:
    """What goes beside the common keys; nothing where there are no values."""
    values = {key: value for key, value in values.items() if value is not None}
    values |= {"additionalContext": context} if context else {}
    return {"hookSpecificOutput": {"hookEventName": event, **values}} if values else {}


def deny(reason: str) -> Wire:
    """Refuse the call of a tool: values for ``specific``."""
    return {"permissionDecision": "deny", "permissionDecisionReason": reason}


def question(verdict: HostVerdict) -> Wire:
    """Let a person decide, if a hook asks for that: values for ``specific``."""
    if not verdict.ask:
        return {}
    reason = verdict.reason or verdict.message
    return {"permissionDecision": "ask", "permissionDecisionReason": reason}


def block(reason: str) -> Wire:
    """Reject a prompt or an answer."""
    return {"decision": "block", "reason": reason}


def end(reason: str) -> Wire:
    """End the run."""
    return {"continue": False, "stopReason": reason}


def stop(verdict: HostVerdict) -> Wire:
    """End the run if a hook asks for that."""
    return end(verdict.stop_reason or BLOCKED_BY_HOOK) if verdict.stop else {}


def show(*texts: str | None) -> Wire:
    """Show texts to the person."""
    message = "\n".join(filter(None, texts))
    return {"systemMessage": message} if message else {}
