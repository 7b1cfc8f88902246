"""The parts of google-genai's contents: which are text, and changing that text."""

from __future__ import annotations

from typing import Any

from hookline.translators.fields import get, is_mapping, put, wrong

_PART_FIELDS = (
    "text", "thought", "inline_data", "inlineData", "file_data", "fileData",
    "function_call", "functionCall", "function_response", "functionResponse",
    "executable_code", "executableCode", "code_execution_result",
    "codeExecutionResult", "tool_call", "toolCall", "tool_response", "toolResponse",
    "file_uri", "fileUri",
)  # fmt: skip


def is_text(part: Any) -> bool:
    """Tell a text part from others; a thought is no text."""
    if isinstance(part, str):
        return True
    return get(part, "text") is not None and not get(part, "thought")


def part_text(part: Any, place: str) -> str:
    """Read the text of a text part."""
    text = part if isinstance(part, str) else get(part, "text")
    if not isinstance(text, str):
        raise wrong(f"{place}.text", "a string", text)
    return text


def is_part(raw: Any) -> bool:
    """Tell a loose part from a Content."""
    if not is_mapping(raw):
        return not hasattr(raw, "parts")  # a Part, or a File, which is one to the SDK
    if "parts" in raw or "role" in raw:
        return False
    return any(name in raw for name in _PART_FIELDS)


def edited_parts(parts: list[Any], text: str) -> list[Any]:
    """Put a text into the first text part; the other text parts go."""
    first = next(at for at, part in enumerate(parts) if is_text(part))
    head = parts[first]
    edited = text if isinstance(head, str) else put(head, text, "text")
    rest = [part for part in parts[first + 1 :] if not is_text(part)]
    return [*parts[:first], edited, *rest]
