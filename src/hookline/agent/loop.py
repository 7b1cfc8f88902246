"""An agent: prompts in, answers out, every step through its hooks.

The stages have their own rooms: ``chat`` calls the model, ``scheduler`` runs the
tools, ``compression`` keeps the history short, ``lifecycle`` fires around them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from types import TracebackType
from typing import Any, Self

from hookline.config import Config
from hookline.events import PreCompressTrigger, SessionEndReason, SessionStartSource

from .chat import ChatReply, ChatSession
from .compression import Compress, Compression, keep_latest
from .conversation import ModelClient, Turn, tools_turn, user_turn
from .functions import Tool, by_name
from .lifecycle import (
    fire_after_agent_hook,
    fire_before_agent_hook,
    fire_session_end_hook,
    fire_session_start_hook,
)
from .outcome import (
    AgentResult,
    Ending,
    ended_by,
    refused_by,
    unanswered,
    with_context,
    words_for_model,
)
from .scheduler import ToolBatch, ToolScheduler
from .streaming import StreamMode

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
