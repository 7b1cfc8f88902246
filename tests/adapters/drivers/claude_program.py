"""A transport of the Claude Agent SDK that stands in for its program."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Transport

from hookline.adapters.claude_agent_sdk import hookline_hooks
from tests.adapters.recorded_hooks import RecordedHooks

BASE = {"session_id": "c-1", "transcript_path": "/t.jsonl", "cwd": "/"}
CALL = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t-1"}


async def fired(
    recorded: RecordedHooks, events: list[Any], session: str | None = None
) -> list[Any]:
    """What the SDK answers to events, one after the other."""
    subject = recorded.config.session(session) if session else recorded.config
    options, program = (
        ClaudeAgentOptions(hooks=hookline_hooks(subject)),
        ScriptedProgram(),
    )
    told: list[Any] = []
    async with recorded.config, ClaudeSDKClient(options, transport=program):
        told += [await program.fire(name, **fields) for name, fields in events]
    return told


class ScriptedProgram(Transport):
    """Speaks the control protocol of Claude Code: sends events, and keeps answers."""

    def __init__(self) -> None:
        self.hooks: dict[str, Any] = {}
        self._lines: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._answers: dict[str, asyncio.Future[dict[str, Any]]] = {}

    async def fire(self, event: str, **fields: Any) -> dict[str, Any]:
        """Send an event to its hook, and wait for the answer."""
        name = f"r-{len(self._answers)}"
        answer: asyncio.Future[dict[str, Any]] = asyncio.Future()
        self._answers[name] = answer
        given = {**CALL, **fields} if "ToolUse" in event else fields
        request = {
            "subtype": "hook_callback",
            "callback_id": self.hooks[event][0]["hookCallbackIds"][0],
            "input": {**BASE, "hook_event_name": event, **given},
            "tool_use_id": given.get("tool_use_id"),
        }
        line = {"type": "control_request", "request_id": name, "request": request}
        await self._lines.put(line)
        return await answer

    async def connect(self) -> None:
        """Nothing to start."""

    async def write(self, data: str) -> None:
        message = json.loads(data)
        if message["type"] == "control_request":
            self.hooks = message["request"].get("hooks") or self.hooks
            found = {"subtype": "success", "request_id": message["request_id"]}
            answer = {"type": "control_response", "response": {**found, "response": {}}}
            await self._lines.put(answer)
        elif message["type"] == "control_response":
            given = message["response"]
            self._answers[given["request_id"]].set_result(given["response"])

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while (line := await self._lines.get()) is not None:
            yield line

    async def close(self) -> None:
        await self._lines.put(None)

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        """Nothing to close."""
