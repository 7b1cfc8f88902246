"""A directory with hook scripts and settings, and events fired on them for real."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hookline import Config, HookSystem, ProcessedHookResult, Settings
from hookline.protocol.events import HookEventName

TOOL = {"tool_name": "write_file", "tool_input": {"path": "a.txt", "content": "hello"}}
GENAI_REQUEST = {
    "model": "m-1",
    "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    "config": {"temperature": 0.5},
}
GENAI_RESPONSE = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "yo"}]}}]
}

SUBAGENT = {"agent_id": "a-1", "agent_type": "reviewer", "prompt": "look"}
INPUTS: dict[HookEventName, dict[str, Any]] = {
    HookEventName.BeforeTool: TOOL,
    HookEventName.AfterTool: {
        **TOOL,
        "tool_response": {"llmContent": "x", "returnDisplay": "x"},
    },
    HookEventName.BeforeAgent: {"prompt": "do it"},
    HookEventName.AfterAgent: {"prompt": "do it", "prompt_response": "done"},
    HookEventName.BeforeModel: {"llm_request": GENAI_REQUEST},
    HookEventName.AfterModel: {
        "llm_request": GENAI_REQUEST,
        "llm_response": GENAI_RESPONSE,
    },
    HookEventName.BeforeToolSelection: {"llm_request": GENAI_REQUEST},
    HookEventName.SessionStart: {"source": "startup"},
    HookEventName.SessionEnd: {"reason": "exit"},
    HookEventName.Notification: {"message": "look"},
    HookEventName.PreCompress: {"trigger": "auto"},
    HookEventName.SubagentStart: SUBAGENT,
    HookEventName.SubagentStop: {**SUBAGENT, "prompt_response": "done"},
}
"""A plain input for every event."""


class Workspace:
    """Hooks in a directory of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def says(self, output: object, name: str = "says") -> dict[str, Any]:
        """A hook that prints a JSON value and exits 0."""
        return self.runs(
            f"cat >/dev/null; cat <<'END'\n{json.dumps(output)}\nEND", name
        )

    def runs(
        self, command: str, name: str | None = None, **more: Any
    ) -> dict[str, Any]:
        """A hook that runs a shell command."""
        named = {} if name is None else {"name": name}
        return {"type": "command", "command": command, **named, **more}

    def settings(
        self, event: str, *hooks: dict[str, Any], config: Any = None, **group: Any
    ) -> dict[str, Any]:
        """Settings with one group of hooks."""
        whole: dict[str, Any] = {"hooks": {event: [{"hooks": list(hooks), **group}]}}
        if config is not None:
            whole["hooksConfig"] = config
        return whole

    def config(self, settings: dict[str, Any], **more: Any) -> Config:
        """A Config over settings, in this directory."""
        chosen = Settings.from_mapping(settings)
        return Config("s-1", self.folder, chosen, **more)

    async def fire(
        self,
        event: HookEventName | str,
        *hooks: dict[str, Any],
        given: dict[str, Any] | None = None,
        config: Any = None,
        **group: Any,
    ) -> ProcessedHookResult:
        """Fire one event on one group of hooks."""
        settings = self.settings(event, *hooks, config=config, **group)
        return await self.fire_on(settings, event, given)

    async def fire_on(
        self,
        settings: dict[str, Any],
        event: HookEventName | str,
        given: dict[str, Any] | None = None,
    ) -> ProcessedHookResult:
        """Fire one event on whole settings."""
        system = HookSystem(self.config(settings))
        event_input = INPUTS[HookEventName(event)] if given is None else given
        async with system:
            return await system.event_handler.fire(event, event_input)

    def seen(self, name: str = "seen.json") -> dict[str, Any]:
        """What a hook wrote down of its input."""
        event_input: dict[str, Any] = json.loads((self.folder / name).read_bytes())
        return event_input

    def ran(self, name: str) -> bool:
        """Whether a hook left its mark."""
        return (self.folder / name).exists()
