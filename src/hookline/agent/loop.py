"""Keep a history short: ask the PreCompress hooks, then leave the oldest turns out.

A host with a better way to compress (a summary, say) gives its own function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from inspect import isawaitable
from itertools import count
from types import TracebackType
from typing import Any, Self

from msgspec import Struct

from hookline.config import Config
from hookline.protocol.events import (
    PreCompressTrigger,
    SessionEndReason,
    SessionStartSource,
)
from hookline.protocol.results import ProcessedHookResult

from .chat import ChatReply, ChatSession, StreamMode
from .conversation import (
    ModelClient,
    Role,
    Tool,
    ToolAnswer,
    Turn,
    by_name,
    tools_turn,
    user_turn,
)
from .scheduler import ToolBatch, ToolScheduler
from .tool_calls import refused
from .triggers import (
    fire_after_agent_hook,
    fire_before_agent_hook,
    fire_pre_compress_hook,
    fire_session_end_hook,
    fire_session_start_hook,
)

Compress = Callable[[Sequence[Turn]], Any]
"""Makes a shorter history of a history; plain or async."""


def keep_latest(turns: Sequence[Turn]) -> list[Turn]:
    """Keep the latest half, from where the person speaks: no call loses its answer."""
    starts = [at for at, turn in enumerate(turns) if turn.role is Role.USER]
    later = [at for at in starts if at >= len(turns) // 2]
    return list(turns[(later or starts[-1:] or [0])[0] :])


class Compression:
    """Compresses a history that has reached its limit, in turns."""

    def __init__(
        self, config: Config, limit: int | None, compress: Compress = keep_latest
    ) -> None:
        self._config = config
        self._limit = limit
        self._compress = compress
        self._shortest = 0

    async def apply(
        self,
        history: list[Turn],
        trigger: PreCompressTrigger | None = None,
    ) -> str | None:
        """Compress in place where it is due; the hooks' word for the model."""
        if trigger is None:
            if not self._is_due(len(history)):
                return None
            trigger = PreCompressTrigger.Auto
        verdict = await fire_pre_compress_hook(self._config, trigger)
        shorter = self._compress(history)
        if isawaitable(shorter):
            shorter = await shorter
        history[:] = list(shorter)
        self._shortest = len(history)
        return None if verdict is None else verdict.system_message

    def _is_due(self, length: int) -> bool:
        # One long turn may leave nothing to cut: it is not asked for again at once.
        return self._limit is not None and length >= max(
            self._limit, 2 * self._shortest
        )


class Ending(StrEnum):
    """How a turn of the agent ended."""

    ANSWERED = "answered"
    BLOCKED = "blocked"
    STOPPED = "stopped"
    OUT_OF_TURNS = "out of turns"


class AgentResult(Struct, frozen=True, kw_only=True):
    """What came of a prompt."""

    ending: Ending = Ending.ANSWERED
    text: str = ""
    reason: str | None = None
    suppress_display: bool = False


def with_context(prompt: str, verdict: ProcessedHookResult | None) -> str:
    """The prompt with what hooks add to it, after a blank line."""
    if verdict is None or verdict.final_output is None:
        return prompt
    context = verdict.final_output.additional_context
    return prompt if context is None else f"{prompt}\n\n{context}"


def words_for_model(verdict: ProcessedHookResult | None) -> list[str]:
    """The context and the system message of an event that has no prompt."""
    if verdict is None or verdict.final_output is None:
        return []
    said = (verdict.final_output.additional_context, verdict.system_message)
    return [text for text in said if text]


def refused_by(verdict: ProcessedHookResult, text: str = "") -> AgentResult:
    """The end that a hook on the agent's turn made."""
    if verdict.should_stop:
        return AgentResult(ending=Ending.STOPPED, text=text, reason=verdict.stop_reason)
    return AgentResult(ending=Ending.BLOCKED, text=text, reason=verdict.reason)


def ended_by(reply: ChatReply) -> AgentResult:
    """The end that a model call made: an answer, a block or a stop."""
    ending = Ending.ANSWERED
    if reply.should_stop:
        ending = Ending.STOPPED
    elif reply.blocked and not reply.text:
        # With a response in the model's place a block is an answer.
        ending = Ending.BLOCKED
    return AgentResult(
        ending=ending,
        text=reply.text,
        reason=reply.stop_reason or reply.reason,
        suppress_display=reply.suppress_display,
    )


def unanswered(reply: ChatReply) -> Turn:
    """Answers for calls that will not be run: a history without them is refused."""
    result = refused(f"Not run: {reply.stop_reason or reply.reason or 'stopped'}")
    return tools_turn([ToolAnswer(call, result) for call in reply.calls])


MAX_REJECTIONS = 8
DEFAULT_MAX_TURNS = 50


class Agent:
    """Works on prompts with a model and tools; use it as ``async with``."""

    def __init__(
        self,
        config: Config,
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
        known = by_name(tools)
        specs = [tool.spec for tool in known.values()]
        self._config = config
        self.chat = ChatSession(
            config, model, tools=specs, system=system, stream_mode=stream_mode
        )
        self._scheduler = ToolScheduler(config, known.values(), **scheduling)
        self._compression = Compression(config, history_limit, compress)
        self._max_turns = max_turns
        self._on_chunk = on_chunk

    async def run(self, prompt: str) -> AgentResult:
        """Work on a prompt until there is an answer that the hooks accept."""
        before = await fire_before_agent_hook(self._config, prompt)
        if before is not None:
            if before.should_stop or before.blocked:
                return refused_by(before)
            self.chat.note(before.system_message)
        turn = user_turn(with_context(prompt, before))
        for rejections in count():
            result = await self._work(turn)
            if result.ending is not Ending.ANSWERED:
                return result
            verdict = await fire_after_agent_hook(
                self._config, prompt, result.text, rejections > 0
            )
            if verdict is None:
                return result
            if verdict.final_output is not None and verdict.final_output.clear_context:
                self.chat.clear()
            self.chat.note(verdict.system_message)
            if verdict.should_stop:
                return refused_by(verdict, result.text)
            if not verdict.blocked:
                return result
            if rejections == MAX_REJECTIONS:
                return refused_by(verdict, result.text)
            turn = user_turn(verdict.reason or "")
        raise AssertionError("the loop above has no end of its own")

    async def _work(self, turn: Turn) -> AgentResult:
        """Model and tool turns until the model has no more calls."""
        for _ in range(self._max_turns):
            self.chat.note(await self._compression.apply(self.chat.history))
            reply = await self._reply(turn)
            if reply.should_stop or reply.blocked or not reply.calls:
                if reply.calls:
                    self.chat.add(unanswered(reply))
                return ended_by(reply)
            batch = await self._run_tools(reply)
            turn = tools_turn(batch.answers)
            if batch.should_stop:
                self.chat.add(turn)
                return AgentResult(ending=Ending.STOPPED, reason=batch.stop_reason)
        self.chat.add(turn)
        reason = f"no answer after {self._max_turns} model calls"
        return AgentResult(ending=Ending.OUT_OF_TURNS, reason=reason)

    async def _run_tools(self, reply: ChatReply) -> ToolBatch:
        try:
            return await self._scheduler.run(reply.calls, reply.allowed_names)
        except BaseException:
            # Cancelled, as a rule: the next prompt needs a history without open calls.
            self.chat.add(unanswered(reply))
            raise

    async def _reply(self, turn: Turn) -> ChatReply:
        async for piece in self.chat.stream(turn):
            if isinstance(piece, ChatReply):
                return piece
            self._on_chunk(piece.text)
        raise AssertionError("a stream ends with a reply")

    async def start(
        self, source: SessionStartSource = SessionStartSource.Startup
    ) -> None:
        """Start the session; what its hooks say is for the model."""
        for text in words_for_model(
            await fire_session_start_hook(self._config, source)
        ):
            self.chat.note(text)

    async def end(self, reason: SessionEndReason = SessionEndReason.Exit) -> None:
        """End the session."""
        await fire_session_end_hook(self._config, reason)

    async def clear(self) -> None:
        """Start over: the session ends, and another one starts with no history."""
        await self.end(SessionEndReason.Clear)
        self.chat.clear()
        await self.start(SessionStartSource.Clear)

    async def compress(self) -> None:
        """Compress the history now, because a person wants it."""
        manual = PreCompressTrigger.Manual
        self.chat.note(await self._compression.apply(self.chat.history, manual))

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.end(SessionEndReason.Other if error else SessionEndReason.Exit)
