"""The agent loop: prompts, model calls, tools and a history, with all hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from inspect import isawaitable
from typing import Any, Self

from msgspec import Struct

from hookline.protocol.events import (
    PreCompressTrigger,
    SessionEndReason,
    SessionStartSource,
)
from hookline.protocol.results import ProcessedHookResult, make_empty_success_result

from .chat import ChatReply, ChatSession, StreamMode
from .conversation import (
    ModelClient,
    Role,
    Tool,
    ToolAnswer,
    Turn,
    tools_turn,
    user_turn,
)
from .scheduler import ToolScheduler
from .session import ConfigOrSession, session_of
from .tool_calls import refused_result
from .triggers import (
    fire_pre_compress_hook,
    fire_session_end_hook,
    fire_session_start_hook,
)
from .turn import HookedTurn

Compress = Callable[[Sequence[Turn]], Any]
"""Returns a shorter history, for example with a summary; plain or async."""

_NO_OUTPUT = ProcessedHookResult(aggregated=make_empty_success_result())
DEFAULT_MAX_TURNS = 50


def keep_latest(turns: Sequence[Turn]) -> list[Turn]:
    """Keep the latest half, from a user's turn on: no call loses its answer."""
    starts = [at for at, turn in enumerate(turns) if turn.role is Role.USER]
    later = [at for at in starts if at >= len(turns) // 2]
    return list(turns[(later or starts[-1:] or [0])[0] :])


class Ending(StrEnum):
    """How a run of the agent ended."""

    ANSWERED = "answered"
    BLOCKED = "blocked"
    STOPPED = "stopped"
    OUT_OF_TURNS = "out of turns"


class AgentResult(Struct, frozen=True, kw_only=True):
    """The answer to a prompt, or why there is none."""

    ending: Ending = Ending.ANSWERED
    text: str = ""
    reason: str | None = None
    suppress_display: bool = False


class Agent:
    """Works on prompts with a model and tools; use it as ``async with``.

    ``system`` is the instruction to the model, ``max_turns`` the limit of model calls
    for one prompt. A history of more than ``history_limit`` turns is given to
    ``compress``. ``on_chunk`` gets the text of the answer piece by piece, as hooks let
    it through (``stream_mode``). Further arguments are those of ``ToolScheduler``.
    """

    def __init__(
        self,
        config: ConfigOrSession,
        model: ModelClient,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        *,
        system: str | None = None,
        stream_mode: StreamMode | str = StreamMode.BUFFER,
        max_turns: int = DEFAULT_MAX_TURNS,
        history_limit: int | None = None,
        compress: Compress = keep_latest,
        on_chunk: Callable[[str], None] = lambda _: None,
        **scheduling: Any,
    ) -> None:
        self._session = session_of(config)
        self._scheduler = ToolScheduler(config, tools, **scheduling)
        specs = [tool.spec for tool in self._scheduler.tools.values()]
        self.chat = ChatSession(
            config, model, tools=specs, system=system, stream_mode=stream_mode
        )
        self._history_limit = history_limit
        self._compress = compress
        self._compressed_length = 0
        self._max_turns = max_turns
        self._on_chunk = on_chunk

    async def run(self, prompt: str) -> AgentResult:
        """Work on a prompt until there is an answer that the hooks accept."""
        hooked_turn = await self._session.begin_turn(prompt)
        if hooked_turn.refused:
            return _ended_by_hook(hooked_turn)
        context = hooked_turn.context
        text = f"{prompt}\n\n{context}" if context else prompt
        while True:
            self.chat.note(hooked_turn.system_message)
            result = await self._work(user_turn(text))
            if result.ending is not Ending.ANSWERED:
                return result
            rejection = await hooked_turn.finish(result.text)
            if hooked_turn.clear_context:
                self.chat.clear()
            if rejection is None:
                self.chat.note(hooked_turn.system_message)
                if hooked_turn.ended is not None:
                    return _ended_by_hook(hooked_turn, result.text)
                return result
            text = hooked_turn.reason or ""

    async def _work(self, turn: Turn) -> AgentResult:
        """Model and tool turns until the model has no more calls."""
        for _ in range(self._max_turns):
            # One long turn may leave nothing to cut: do not compress it again at once.
            if self._history_limit is not None and len(self.chat.history) >= max(
                self._history_limit, 2 * self._compressed_length
            ):
                await self.compress(PreCompressTrigger.Auto)
            reply = await self.chat.send(turn, self._on_chunk)
            if reply.should_stop or reply.blocked or not reply.calls:
                if reply.calls:
                    self.chat.add(_not_run(reply))
                ending = Ending.ANSWERED
                if reply.should_stop:
                    ending = Ending.STOPPED
                elif reply.blocked and not reply.text:
                    # A block with a synthetic response is an answer.
                    ending = Ending.BLOCKED
                return AgentResult(
                    ending=ending,
                    text=reply.text,
                    reason=reply.stop_reason or reply.reason,
                    suppress_display=reply.suppress_display,
                )
            try:
                batch = await self._scheduler.run(reply.calls, reply.allowed_names)
            except BaseException:
                # Usually a cancellation: the next prompt needs a history in which
                # every call has an answer.
                self.chat.add(_not_run(reply))
                raise
            turn = tools_turn(batch.answers)
            if batch.should_stop:
                self.chat.add(turn)
                return AgentResult(ending=Ending.STOPPED, reason=batch.stop_reason)
        self.chat.add(turn)
        reason = f"no answer after {self._max_turns} model calls"
        return AgentResult(ending=Ending.OUT_OF_TURNS, reason=reason)

    async def compress(
        self, trigger: PreCompressTrigger = PreCompressTrigger.Manual
    ) -> None:
        """Compress the history now, by default on the user's request."""
        result = await fire_pre_compress_hook(self._session, trigger) or _NO_OUTPUT
        shorter = self._compress(self.chat.history)
        if isawaitable(shorter):
            shorter = await shorter
        self.chat.history[:] = list(shorter)
        self._compressed_length = len(self.chat.history)
        self.chat.note(result.system_message)
        # What hooks added at the start may be gone with the history.
        await self.start(SessionStartSource.Compress)

    async def start(
        self, source: SessionStartSource = SessionStartSource.Startup
    ) -> None:
        """Start the session; the output of its hooks is for the model."""
        result = await fire_session_start_hook(self._session, source) or _NO_OUTPUT
        output = result.final_output
        self.chat.note(None if output is None else output.additional_context)
        self.chat.note(result.system_message)

    async def end(self, reason: SessionEndReason = SessionEndReason.Exit) -> None:
        """End the session."""
        await fire_session_end_hook(self._session, reason)

    async def clear(self) -> None:
        """End the session and start a new one with an empty history."""
        await self.end(SessionEndReason.Clear)
        self.chat.clear()
        await self.start(SessionStartSource.Clear)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, _kind: object, error: object, _trace: object) -> None:
        await self.end(SessionEndReason.Other if error else SessionEndReason.Exit)


def _ended_by_hook(turn: HookedTurn, text: str = "") -> AgentResult:
    ending = Ending.STOPPED if turn.stopped else Ending.BLOCKED
    return AgentResult(ending=ending, text=text, reason=turn.reason)


def _not_run(reply: ChatReply) -> Turn:
    """Answers for calls that will not run: services reject a history without them."""
    reason = reply.stop_reason or reply.reason or "stopped"
    result = refused_result(f"Not run: {reason}")
    return tools_turn([ToolAnswer(call, result) for call in reply.calls])
