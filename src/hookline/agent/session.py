"""One conversation of a Config: where turns, model and tool calls begin.

A session is a view: it has an id and a transcript, and shares hooks, workers, limits
and journal with all other sessions of its config.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.config import Config

from .model_calls import HookedModelCall
from .tool_calls import HookedToolCall
from .triggers import SessionEvents, events_of
from .turn import HookedRun, HookedTurn


class Session(SessionEvents):
    """One conversation; made by ``Config.session()``."""

    def view(self, session_id: object, *, transcript_path: str = "") -> Session:
        """Another session of the same config."""
        return Session(self.config, session_id, transcript_path)

    def begin_run(self) -> HookedRun:
        """Start a run of model and tool calls without a turn; fires no event."""
        return HookedRun(self)

    async def begin_turn(self, prompt: str) -> HookedTurn:
        """Fire BeforeAgent and start a turn."""
        return await HookedTurn(self, prompt).begin()

    async def begin_subagent(
        self,
        agent_type: str,
        prompt: str = "",
        *,
        agent_id: str | None = None,
        parent: HookedRun | None = None,
    ) -> HookedTurn:
        """Fire SubagentStart and start the turn of a subagent.

        Without an ``agent_id`` it gets a new one.
        A stop in it also stops ``parent``, the run whose tool the subagent works for.
        Once that has ended nothing starts, and no event fires.
        """
        on_stop = None if parent is None else parent.stop
        turn = HookedTurn(self, prompt, on_stop, agent_type, agent_id)
        if parent is not None and parent.ended is not None:
            turn.stop(parent.ended)
            return turn
        return await turn.begin()

    def resume_turn(
        self, state: Mapping[str, Any], *, parent: HookedRun | None = None
    ) -> HookedTurn:
        """Go on with a turn from its ``state``, for example in another process."""
        on_stop = None if parent is None else parent.stop
        prompt = state.get("prompt", "")
        agent_type, agent_id = state.get("agent_type"), state.get("agent_id")
        return HookedTurn(self, prompt, on_stop, agent_type, agent_id).restore(state)

    async def begin_model(self, request: Any, **options: Any) -> HookedModelCall:
        """Fire the hooks before a model call (see ``HookedRun.begin_model``)."""
        return await self.begin_run().begin_model(request, **options)

    async def begin_tool(
        self, name: str, tool_input: Mapping[str, Any], **options: Any
    ) -> HookedToolCall:
        """Fire the hooks before a tool call (see ``HookedRun.begin_tool``)."""
        return await self.begin_run().begin_tool(name, tool_input, **options)


ConfigOrSession = Config | Session
"""What callers and adapters take: a config's own session, or the given one."""


def session_of(config: ConfigOrSession) -> Session:
    """The session itself if one is given, of a config its own; raises ``TypeError``."""
    return config if isinstance(config, Session) else Session(events_of(config).config)
