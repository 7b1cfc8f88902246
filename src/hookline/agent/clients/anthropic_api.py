"""How the Messages API of Anthropic spells requests, answers and streams."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from hookline.translators.anthropic import AnthropicTranslator
from hookline.translators.values import get, items, string_of

from .http import Body, ModelApi, server_sent

_SAMPLING = ("temperature", "top_p", "top_k")
_ENDING = ("stop_reason", "stop_sequence", "stop_details")


class MessagesApi(ModelApi):
    """Messages, plain and beta."""

    translator = AnthropicTranslator()

    def __init__(self, *, keeps_calls: bool = False) -> None:
        self._keeps_calls = keeps_calls

    def body(self, request: Any) -> Body:
        """The arguments of ``create()`` as the body that is sent."""
        # The translator puts these there; any other field no hook has seen.
        extra = request.get("extra_body") or {}
        found = {name: extra[name] for name in _SAMPLING if name in extra}
        rest = {name: value for name, value in request.items() if name != "extra_body"}
        return {**rest, **found}

    def refusal(self, body: Body, reason: str) -> Body:
        """An empty message that was refused, with the reason as the explanation."""
        details = {"type": "refusal", "category": None, "explanation": reason or None}
        return {
            "id": "msg_hookline", "type": "message", "role": "assistant",
            "model": str(body.get("model") or ""), "content": [],
            "stop_reason": "refusal", "stop_sequence": None, "stop_details": details,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }  # fmt: skip

    def is_shown(self, events: list[Body], whole: Body) -> bool:
        """Whether the pieces of text are those of the whole message."""
        parts = [part for event in events for part in _text_parts(event)]
        said = "".join(string_of(get(part, "text")) or "" for part in parts)
        blocks = filter(_is_text, items(whole.get("content")))
        return said == "".join(string_of(get(block, "text")) or "" for block in blocks)

    def is_complete(self, events: list[Body]) -> bool:
        """Whether the last event has come."""
        return any(event.get("type") == "message_stop" for event in events)

    def stream(self, whole: Body) -> str:
        """The events of a message."""
        events = _events(whole)
        return "".join(server_sent(event, event["type"]) for event in events)

    def encoded(self, events: Iterable[Any]) -> bytes:
        """Events as the SDK's reader gives them, which may come from another format."""
        pairs = [(e.event, e.data.replace("\n", "\ndata: ")) for e in events]
        return "".join(f"event: {e}\ndata: {data}\n\n" for e, data in pairs).encode()

    def without_calls(
        self, whole: Body, allowed: frozenset[str]
    ) -> tuple[Body, list[str]]:
        """The message without calls of other tools, and their names."""
        if self._keeps_calls:
            return whole, []
        content = items(whole.get("content"))
        lost = [
            block
            for block in content
            if get(block, "type") == "tool_use" and tool_name(block) not in allowed
        ]
        left = [block for block in content if block not in lost]
        changed = {**whole, "content": left}
        if lost and not any(get(block, "type") == "tool_use" for block in left):
            changed["stop_reason"] = "end_turn"
        return changed, [tool_name(block) for block in lost]


def tool_name(block: Any) -> str:
    """The name of a tool as its hooks know it; members of toolsets have two."""
    family, name = get(block, "toolset_name"), str(get(block, "name") or "")
    return name if family is None else f"{family}.{name}"


def _is_text(part: Any) -> bool:
    return get(part, "type") in ("text", "text_delta")


def _text_parts(event: Body) -> list[Any]:
    given = items(get(get(event, "message"), "content"))
    parts = (*given, get(event, "content_block"), get(event, "delta"))
    return list(filter(_is_text, parts))


def _events(whole: Body) -> Iterator[Body]:
    head = {**whole, "content": [], **dict.fromkeys(_ENDING)}
    yield {"type": "message_start", "message": head}
    for at, block in enumerate(items(whole.get("content"))):
        start, deltas = _pieces(dict(block))
        yield {"type": "content_block_start", "index": at, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": at, "delta": delta}
        yield {"type": "content_block_stop", "index": at}
    ending = {name: whole.get(name) for name in _ENDING}
    counts = {"output_tokens": get(whole.get("usage"), "output_tokens") or 0}
    yield {"type": "message_delta", "delta": ending, "usage": counts}
    yield {"type": "message_stop"}


def _pieces(block: Body) -> tuple[Body, list[Body]]:
    """The start of a block and its deltas; most blocks come whole."""
    if block.get("type") == "text":
        delta = {"type": "text_delta", "text": block.get("text") or ""}
        return {**block, "text": ""}, [delta]
    if block.get("type") == "tool_use":
        written = json.dumps(block.get("input") or {})
        delta = {"type": "input_json_delta", "partial_json": written}
        return {**block, "input": {}}, [delta]
    return block, []
