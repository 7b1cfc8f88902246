"""Agents of pydantic-ai with hooks that are plain functions, for its tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai import Agent

from hookline import Config, HookEventName, HookSystem, Settings
from hookline.adapters.pydantic_ai import HooklineCapability
from hookline.agent import ScriptedReply

from .drivers.pydantic_ai import FakeModel

Hook = Callable[[dict[str, Any]], Any]


class Workbench:
    """A config with hooks and the agents that use it; ``events`` lists all events."""

    def __init__(self, hooks: dict[str, Hook]) -> None:
        self.events: list[dict[str, Any]] = []
        self.config = Config("own", ".", Settings.from_mapping({}))
        self._system = HookSystem(self.config)
        for event in ("BeforeTool", "AfterTool", "SubagentStart", "SubagentStop"):
            self._system.on(event, recheck=False)(self.events.append)
        for event in ("BeforeAgent", "BeforeModel"):
            self._system.on(HookEventName.of(event), recheck=False)(self.events.append)
        for event, hook in hooks.items():
            self._system.on(HookEventName.of(event))(hook)
        self.model = FakeModel(self._reply)
        self.replies: list[ScriptedReply] = []

    def _reply(self, at: int) -> ScriptedReply:
        given = self.replies
        return given[at] if at < len(given) else ScriptedReply("the end")

    def agent(self, *replies: ScriptedReply | str, **options: Any) -> Agent[None, Any]:
        """An agent whose model gives these replies."""
        self.replies = [
            ScriptedReply(one) if isinstance(one, str) else one for one in replies
        ]
        more = options.pop("capabilities", [])
        hooks = {n: options.pop(n) for n in ("confirm", "approval") if n in options}
        capability = HooklineCapability(self.config, **hooks)
        return Agent(self.model.model, capabilities=[capability, *more], **options)

    def seen(self, event: str) -> list[dict[str, Any]]:
        """The inputs of one event."""
        return [one for one in self.events if one["hook_event_name"] == event]

    @property
    def sent(self) -> list[str]:
        """The text of each request to the model."""
        return [request.text for request in self.model.requests]


@asynccontextmanager
async def workbench(**hooks: Hook) -> AsyncIterator[Workbench]:
    """A workbench whose hooks are given by the names of their events."""
    bench = Workbench(hooks)
    async with bench.config:
        yield bench


def calls(*given: tuple[str, dict[str, Any]]) -> ScriptedReply:
    """A reply of tool calls."""
    return ScriptedReply(calls=given)


def block(reason: str = "no") -> dict[str, Any]:
    """The output of a hook that blocks."""
    return {"decision": "deny", "reason": reason}


def stop(reason: str = "enough") -> dict[str, Any]:
    """The output of a hook that stops."""
    return {"continue": False, "stopReason": reason}


def specific(**fields: Any) -> dict[str, Any]:
    """The output of a hook with fields of its event."""
    return {"hookSpecificOutput": fields}
