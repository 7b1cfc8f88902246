"""Strands agents for the shared suite: a model that follows a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from strands.models import Model


class StrandsModel(Model):
    """Gives replies one by one, in small chunks, and keeps what it was sent.

    A reply is a text, an exception to raise, or a text with calls of tools.
    """

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.requests: list[dict[str, Any]] = []
        self.config: dict[str, Any] = {"model_id": "scripted", "temperature": 1}

    def update_config(self, **model_config: Any) -> None:
        self.config.update(model_config)

    def get_config(self) -> dict[str, Any]:
        return self.config

    async def structured_output(
        self, output_model: Any, prompt: Any, system_prompt: Any = None, **kwargs: Any
    ) -> AsyncGenerator[dict[str, Any], None]:
        yield {"output": output_model()}

    async def stream(
        self, messages: Any, tool_specs: Any = None, system_prompt: Any = None, **kw: Any
    ) -> AsyncGenerator[Any, None]:
        offered = [spec["name"] for spec in tool_specs or []]
        self.requests.append({"messages": messages, "tools": offered, **kw})
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        text, *calls = [reply] if isinstance(reply, str) else reply
        yield {"messageStart": {"role": "assistant"}}
        for chunk in _text_chunks(text):
            await asyncio.sleep(0)
            yield chunk
        for number, (name, tool_input) in enumerate(calls):
            for chunk in _call_chunks(name, f"{len(self.requests)}-{number}", tool_input):
                yield chunk
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}


def _text_chunks(text: str) -> Sequence[dict[str, Any]]:
    if not text:
        return []
    halves = (text[: len(text) // 2], text[len(text) // 2 :])
    deltas = [{"contentBlockDelta": {"delta": {"text": half}}} for half in halves]
    return [{"contentBlockStart": {"start": {}}}, *deltas, {"contentBlockStop": {}}]


def _call_chunks(name: str, call_id: str, tool_input: Any) -> list[dict[str, Any]]:
    import json

    start = {"toolUse": {"name": name, "toolUseId": f"{name}-{call_id}"}}
    delta = {"toolUse": {"input": json.dumps(tool_input)}}
    return [
        {"contentBlockStart": {"start": start}},
        {"contentBlockDelta": {"delta": delta}},
        {"contentBlockStop": {}},
    ]
