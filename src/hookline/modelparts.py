"""Whether what a hook returned is a model request or response, or a part of one.

Hooks may return any part of the stable shape. A part of a wrong shape must not reach
the next hook or the model, so it is judged as a whole: never half a change.
"""

from __future__ import annotations

from typing import Any


def request_problem(value: Any) -> str | None:
    """Say what is wrong with an ``llm_request`` from a hook, or None."""
    if not isinstance(value, dict):
        return "expected an object"
    if not isinstance(value.get("model", ""), str):
        return "model: expected a string"
    for key in ("config", "toolConfig"):
        if not isinstance(value.get(key) or {}, dict):
            return f"{key}: expected an object"
    return _messages_problem(value.get("messages"))


def response_problem(value: Any) -> str | None:
    """Say what is wrong with an ``llm_response`` from a hook, or None."""
    if not isinstance(value, dict) or not value:
        return "expected an object with text or candidates"
    if not isinstance(value.get("text") or "", str):
        return "text: expected a string"
    if not isinstance(value.get("usageMetadata") or {}, dict):
        return "usageMetadata: expected an object"
    return _candidates_problem(value.get("candidates"))


def _messages_problem(messages: Any) -> str | None:
    if messages is None:
        return None
    if not isinstance(messages, list):
        return "messages: expected a list"
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            return f"messages[{index}]: expected an object"
        if not isinstance(message.get("role"), str):
            return f"messages[{index}].role: expected a string"
        if not isinstance(message.get("content"), str):
            return f"messages[{index}].content: expected a string"
    return None


def _candidates_problem(candidates: Any) -> str | None:
    if candidates is None:
        return None
    if not isinstance(candidates, list):
        return "candidates: expected a list"
    for index, candidate in enumerate(candidates):
        place = f"candidates[{index}]"
        if not isinstance(candidate, dict):
            return f"{place}: expected an object"
        content = candidate.get("content") or {}
        if not isinstance(content, dict):
            return f"{place}.content: expected an object"
        if not _is_texts(content.get("parts") or []):
            return f"{place}.content.parts: expected a list of strings"
    return None


def _is_texts(parts: Any) -> bool:
    return isinstance(parts, list) and all(isinstance(part, str) for part in parts)
