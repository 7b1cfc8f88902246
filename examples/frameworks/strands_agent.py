"""Strands with hooks, offline: a fake model, a tool, and three hooks.

The file is not called ``strands.py``: Python would import it in place of the package.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from strands import Agent, tool
from strands.models import Model

from hookline import Config, HookSystem
from hookline.adapters.strands import HooklineHooks

config = Config()
hooks = HookSystem(config)  # hooks from settings files work the same


@hooks.on("BeforeTool", matcher="write_file")
def guard(event: dict[str, Any]) -> dict[str, Any] | None:
    path = event["tool_input"]["path"]
    if path.endswith(".env"):
        return {"decision": "deny", "reason": "keep secrets out of files"}
    if path.endswith(".sh"):
        return {"decision": "ask", "reason": f"May {path} be written?"}
    return None


@hooks.on("AfterModel")
def redact(event: dict[str, Any]) -> dict[str, Any] | None:
    text = event["llm_response"]["text"].replace("ops@example.com", "[e-mail]")
    return {"hookSpecificOutput": {"llm_response": {"text": text}}}


@hooks.on("AfterAgent")
def be_polite(event: dict[str, Any]) -> dict[str, Any] | None:
    if "Thank you" in event["prompt_response"]:
        return None
    return {"decision": "block", "reason": "Say thank you."}


@tool
def write_file(path: str, text: str) -> str:
    """Write a file."""
    print(f"  (the tool writes {path})")
    return f"wrote {path}"


class FakeModel(Model):
    """A model that calls tools, or talks, as it is told."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)

    def update_config(self, **_: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any: ...

    async def stream(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        reply = self.replies.pop(0)
        start: Any = {}
        delta: Any = {"text": reply}
        if isinstance(reply, dict):
            start = {"toolUse": {"name": "write_file", "toolUseId": reply["path"]}}
            delta = {"toolUse": {"input": json.dumps(reply)}}
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": start}}
        yield {"contentBlockDelta": {"delta": delta}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if start else "end_turn"}}


def show(**event: Any) -> None:
    """What a person sees: a callback handler of Strands'."""
    if "data" in event:
        print("model:", event["data"])
    for block in event.get("message", {}).get("content", []):
        if "toolResult" in block:
            print("tool:", block["toolResult"]["content"][0]["text"])


agent = Agent(
    model=FakeModel(
        {"path": "prod.env", "text": "KEY=1"},
        {"path": "deploy.sh", "text": "..."},
        "Done. Ask ops@example.com about it.",
        "Done. Thank you.",
    ),
    tools=[write_file],
    hooks=[HooklineHooks(config)],
    callback_handler=show,
)


def main() -> None:
    result = agent("Set it up.")
    while result.stop_reason == "interrupt":
        answers: list[Any] = []
        for question in result.interrupts or []:
            print("question:", question.reason["reason"])
            answer = {"interruptId": question.id, "response": "yes"}  # a person says
            answers.append({"interruptResponse": answer})
        result = agent(answers)
    print("result:", result)


if __name__ == "__main__":
    main()
