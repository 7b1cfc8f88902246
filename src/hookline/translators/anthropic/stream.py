"""One whole Message of what the anthropic package streams.

Takes the raw events of ``create(stream=True)`` and the events of ``.stream()`` alike;
those that the latter adds say nothing new and are passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from hookline.errors import TranslationError
from hookline.translators.fields import get, is_record, wrong

from .sdk import types_of

_GROWING = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
}


def assemble(chunks: Iterable[Any]) -> Any:
    """Make one Message of many events."""
    message: dict[str, Any] | None = None
    blocks: dict[int, _Block] = {}
    for at, event in enumerate(chunks):
        if not is_record(event):
            raise wrong(f"chunks[{at}]", "an event of anthropic", event)
        kind = get(event, "type")
        if kind == "message_start":
            message = _plain(get(event, "message"))
        elif kind == "content_block_start":
            blocks[get(event, "index")] = _Block(_plain(get(event, "content_block")))
        elif kind == "content_block_delta" and get(event, "index") in blocks:
            blocks[get(event, "index")].grow(get(event, "delta"))
        elif kind == "message_delta" and message is not None:
            _finish(message, event)
    if message is None:
        raise TranslationError("chunks: expected a message_start event, got none")
    message["content"] = [blocks[index].whole() for index in sorted(blocks)]
    return types_of().Message.model_construct(**message)


class _Block:
    """A content block that is still arriving: joined once, so the cost is linear."""

    def __init__(self, start: dict[str, Any]) -> None:
        self._start = start
        self._pieces: dict[str, list[str]] = {}
        self._citations: list[Any] = []

    def grow(self, delta: Any) -> None:
        """Take in one delta."""
        kind = get(delta, "type")
        if kind in _GROWING:
            name = _GROWING[kind]
            self._pieces.setdefault(name, []).append(get(delta, name) or "")
        elif kind == "signature_delta":
            self._start["signature"] = get(delta, "signature")
        elif kind == "citations_delta":
            self._citations.append(_plain(get(delta, "citation")))

    def whole(self) -> dict[str, Any]:
        """Give the finished block."""
        block = dict(self._start)
        for name, pieces in self._pieces.items():
            if name == "partial_json":
                block["input"] = _arguments("".join(pieces), block.get("input"))
            else:
                block[name] = (block.get(name) or "") + "".join(pieces)
        if self._citations:
            block["citations"] = [*(block.get("citations") or []), *self._citations]
        return block


def _arguments(text: str, before: Any) -> Any:
    if not text.strip():
        return before or {}
    try:
        return json.loads(text)
    except ValueError:
        return _arguments_so_far(text)


def _arguments_so_far(text: str) -> Any:
    """Read arguments that were cut off, as far as they go, as the SDK does."""
    from jiter import from_json

    try:
        return from_json(text.encode(), partial_mode=True)
    except ValueError:
        return {}


def _finish(message: dict[str, Any], event: Any) -> None:
    for name in ("stop_reason", "stop_sequence", "stop_details", "container"):
        value = get(get(event, "delta"), name)
        if value is not None:
            message[name] = _plain(value) if is_record(value) else value
    counts = _plain(get(event, "usage") or {})
    said = {name: count for name, count in counts.items() if count is not None}
    message["usage"] = {**(message.get("usage") or {}), **said}


def _plain(value: Any) -> dict[str, Any]:
    return dict(value if isinstance(value, dict) else value.to_dict())
