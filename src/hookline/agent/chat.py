"""A chat: the history, and model calls that pass their hooks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from hookline.errors import TranslationError
from hookline.protocol.events import HookEventName

from .conversation import (
    ModelClient,
    ModelReply,
    Role,
    ToolCall,
    ToolSpec,
    Turn,
    user_turn,
)
from .model_calls import HookedModelCall, ModelOutcome, begin_model, empty_response
from .triggers import ConfigOrEvents, SessionEvents, events_of


class StreamMode(StrEnum):
    """Whether chunks wait for the AfterModel hooks."""

    BUFFER = "buffer"
    """They do, where there are such hooks."""
    PASS = "pass"  # noqa: S105 - not a password
    """They are shown at once: hooks cannot change what was seen."""


class StreamBuffering(Struct):
    """Decides for one session or client whether to buffer streams."""

    session: SessionEvents
    mode: StreamMode

    async def is_needed(self) -> bool:
        """Whether to hold chunks back until the AfterModel hooks have run."""
        if not await self.session.has_hooks(HookEventName.AfterModel):
            return False
        if self.mode is StreamMode.BUFFER:
            return True
        self.session.warn_once(
            "stream_mode 'pass': answers are shown before AfterModel hooks run; "
            "their changes reach the history only"
        )
        return False


class ChatChunk(Struct, frozen=True):
    """A piece of the answer, for display; ``raw`` is the SDK's own object."""

    text: str
    raw: Any


class ChatReply(Struct, frozen=True, kw_only=True):
    """The result of a call: always the last item that ``stream`` yields."""

    response: Any = None
    """In the SDK's own type, as in the history; empty if a hook blocked."""
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    allowed_names: frozenset[str] | None = None
    """The only tools that may be called now; None means all."""
    blocked: bool = False
    reason: str | None = None
    should_stop: bool = False
    stop_reason: str | None = None
    suppress_display: bool = False


class ChatSession:
    """Keeps the history and calls the model through the hooks.

    ``tools`` are offered to the model, ``system`` is its instruction, and ``history``
    what the conversation begins with. ``stream_mode="pass"`` shows an answer before
    AfterModel hooks have seen it; ``"buffer"`` holds it back until then.
    """

    def __init__(
        self,
        config: ConfigOrEvents,
        model: ModelClient,
        *,
        tools: Sequence[ToolSpec] = (),
        system: str | None = None,
        history: Sequence[Turn] = (),
        stream_mode: StreamMode | str = StreamMode.BUFFER,
    ) -> None:
        self._session = events_of(config)
        self._model = model
        self.tools = tuple(tools)
        self.system = system
        self.history = list(history)
        self._buffering = StreamBuffering(self._session, StreamMode(stream_mode))
        self._notes: list[Turn] = []

    def note(self, text: str | None) -> None:
        """Add a system message to the next request."""
        if text:
            self._notes.append(Turn(role=Role.SYSTEM, text=text))

    def add(self, turn: Turn) -> None:
        """Put a turn into the history without calling the model."""
        self.history.append(turn)

    def clear(self) -> None:
        """Start over with an empty history."""
        self.history.clear()
        self._notes.clear()

    async def send(
        self, message: str | Turn, on_chunk: Callable[[str], None] = lambda _: None
    ) -> ChatReply:
        """Send a message and wait for the complete answer.

        ``on_chunk`` is called with each piece of its text as it may be shown.
        """
        async for piece in self.stream(message):
            if isinstance(piece, ChatReply):
                return piece
            on_chunk(piece.text)
        raise AssertionError("a stream ends with a reply")

    async def stream(self, message: str | Turn) -> AsyncIterator[ChatChunk | ChatReply]:
        """Send a message; yields chunks to show, then the reply."""
        turn = message if isinstance(message, Turn) else user_turn(message)
        new_turns = [turn]
        if turn.role is Role.TOOLS:
            # Kept even if this call is refused: tool calls need their answers.
            self.history.append(turn)
            new_turns = []
        model = self._model
        turns = [*self.history, *new_turns, *self._notes]
        request = model.build(turns, self.tools, self.system)
        call = await begin_model(self._session, request, translator=model.translator)
        if call.refused:
            response, text = call.response, ""
            if response is None:
                # A blocked prompt must not go out with the next request (0053).
                response = empty_response(model.translator)
            else:
                text = self._commit(new_turns, response).text
            if text and not call.suppress_display:
                yield ChatChunk(text, response)
            yield self._reply(
                call, response, text=text, blocked=True, reason=call.reason
            )
            return
        is_buffered = await self._buffering.is_needed()
        chunks: list[Any] = []
        async for chunk in model.stream(call.request):
            chunks.append(chunk)
            if not is_buffered:
                yield ChatChunk(model.text_of(chunk), chunk)
        problem = None
        try:
            whole = model.assemble(chunks)
        except TranslationError as error:
            whole, problem = chunks, error
        outcome = await call.finish(whole)
        response = outcome.response
        if problem is not None and not outcome.changed:
            raise problem  # and no hook has closed the call because of it
        if is_buffered and not outcome.suppress_display:
            text = "".join(map(model.text_of, chunks))
            if outcome.changed or text != model.text_of(whole):
                chunks = [response]  # they say anything else than the hooks have seen
            for chunk in chunks:
                yield ChatChunk(model.text_of(chunk), chunk)
        answer = self._commit(new_turns, response)
        allowed_names = call.allowed_names
        fields = {"calls": answer.calls, "allowed_names": allowed_names}
        yield self._reply(outcome, response, text=answer.text, **fields)

    def _commit(self, new_turns: Sequence[Turn], response: Any) -> ModelReply:
        """Take an answer into the history, with what it answers."""
        reply = self._model.read(response)
        answer = Turn(role=Role.MODEL, text=reply.text, calls=reply.calls, raw=response)
        # Notes follow the turn: answers of tools must come right after their calls.
        self.history += [*new_turns, *self._notes, answer]
        self._notes.clear()
        return reply

    def _reply(
        self, decided: HookedModelCall | ModelOutcome, response: Any, **fields: Any
    ) -> ChatReply:
        self.note(decided.system_message)
        return ChatReply(
            response=response,
            should_stop=decided.stop_reason is not None,
            stop_reason=decided.stop_reason,
            suppress_display=decided.suppress_display,
            **fields,
        )
