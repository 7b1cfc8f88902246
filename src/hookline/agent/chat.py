"""Whether a stream's chunks wait for the AfterModel hooks (decision 0052)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct, structs

from hookline.config import Config
from hookline.log import logger
from hookline.protocol.events import HookEventName
from hookline.translators.stable import HookTranslator

from .conversation import (
    ModelClient,
    Role,
    ToolCall,
    ToolSpec,
    Turn,
    system_turn,
    user_turn,
)
from .model_calls import (
    AfterModelHookResult,
    BeforeModelHookResult,
    empty_response,
    fire_after_model_hook,
    fire_before_model_hook,
    fire_before_tool_selection_hook,
    with_system_message,
)
from .triggers import has_hooks_for


class StreamMode(StrEnum):
    """What becomes of chunks while an AfterModel hook may still change the answer."""

    BUFFER = "buffer"
    PASS = "pass"  # noqa: S105 - no password


class HoldBack:
    """Decides for one session or client, and says once what passing on means."""

    def __init__(self, config: Config, mode: StreamMode | str) -> None:
        self._config = config
        self._mode = StreamMode(mode)
        self._has_said_so = False

    async def is_due(self) -> bool:
        """Whether chunks are to be held back now."""
        if not await has_hooks_for(self._config, HookEventName.AfterModel):
            return False
        if self._mode is StreamMode.BUFFER:
            return True
        if not self._has_said_so:
            self._has_said_so = True
            logger.warning(
                "stream_mode 'pass': answers are shown before AfterModel hooks have "
                "spoken; what they change reaches the history only"
            )
        return False


class ChatChunk(Struct, frozen=True):
    """A piece of the answer, for display; ``raw`` is the SDK's own object."""

    text: str
    raw: Any


class ChatReply(Struct, frozen=True, kw_only=True):
    """How a call ended: always the last thing that ``stream`` yields."""

    response: Any = None
    """The SDK's own type, as history keeps it; empty where a hook blocked."""
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    allowed_names: frozenset[str] | None = None
    """The only tools that may be called now; None is: all of them."""
    blocked: bool = False
    reason: str | None = None
    should_stop: bool = False
    stop_reason: str | None = None
    suppress_display: bool = False


class Passage(Struct, frozen=True, kw_only=True):
    """What the hooks before a model call leave of it."""

    request: Any
    allowed_names: frozenset[str] | None = None
    refusal: ChatReply | None = None
    system_message: str | None = None
    """Of a refused call, for the model to see at the next one."""


class ChatSession:
    """Keeps the history, and calls the model through the hooks."""

    def __init__(
        self,
        config: Config,
        model: ModelClient,
        *,
        tools: Sequence[ToolSpec] = (),
        system: str | None = None,
        history: Sequence[Turn] = (),
        stream_mode: StreamMode | str = StreamMode.BUFFER,
    ) -> None:
        self._config = config
        self._model = model
        self.tools = tuple(tools)
        self.system = system
        self.history = list(history)
        self._hold_back = HoldBack(config, stream_mode)
        self._notes: list[Turn] = []

    def note(self, text: str | None) -> None:
        """Let the model know something from its next call on."""
        if text:
            self._notes.append(system_turn(text))

    def add(self, turn: Turn) -> None:
        """Put a turn into the history without calling the model."""
        self.history.append(turn)

    def clear(self) -> None:
        """Start over with an empty history."""
        self.history.clear()
        self._notes.clear()

    async def send(self, message: str | Turn) -> ChatReply:
        """Say something and wait for the whole answer."""
        async for piece in self.stream(message):
            if isinstance(piece, ChatReply):
                return piece
        raise AssertionError("a stream ends with a reply")

    async def stream(self, message: str | Turn) -> AsyncIterator[ChatChunk | ChatReply]:
        """Say something; chunks as they may be shown, then the reply."""
        turn = user_turn(message) if isinstance(message, str) else message
        if turn.role is Role.TOOLS:
            # Whatever comes of this call, the calls before it have their answers.
            self.history.append(turn)
        passage = await self._before(turn)
        if passage.refusal is not None:
            reply = self._keep_refused(turn, passage.refusal)
            self.note(passage.system_message)
            if reply.text and not reply.suppress_display:
                yield ChatChunk(reply.text, reply.response)
            yield reply
            return
        held = await self._hold_back.is_due()
        chunks: list[Any] = []
        async for chunk in self._model.stream(passage.request):
            chunks.append(chunk)
            if not held:
                yield ChatChunk(self._model.text_of(chunk), chunk)
        whole = self._model.assemble(chunks)
        after = await self._after(passage.request, whole)
        if held and not after.suppress_output:
            for shown in chunks if after.response is whole else [after.response]:
                yield ChatChunk(self._model.text_of(shown), shown)
        yield self._keep(turn, after, passage.allowed_names)

    async def _before(self, turn: Turn) -> Passage:
        turns = [*self.history, *_unless_kept(turn), *self._notes]
        request = self._model.build(turns, self.tools, self.system)
        return await pass_before_hooks(self._config, self._model.translator, request)

    async def _after(self, request: Any, whole: Any) -> AfterModelHookResult:
        return await fire_after_model_hook(
            self._config, request, whole, translator=self._model.translator
        )

    def _keep(
        self,
        turn: Turn,
        after: AfterModelHookResult,
        allowed_names: frozenset[str] | None,
    ) -> ChatReply:
        said = self._model.read(after.response)
        self._commit(turn, after.response)
        self.note(after.system_message)
        return ChatReply(
            response=after.response,
            text=said.text,
            calls=said.calls,
            allowed_names=allowed_names,
            should_stop=after.should_stop,
            stop_reason=after.stop_reason,
            suppress_display=after.suppress_output,
        )

    def _keep_refused(self, turn: Turn, refusal: ChatReply) -> ChatReply:
        if refusal.response is None:
            # Blocked words must not come up again with the next call.
            empty = empty_response(self._model.translator)
            return structs.replace(refusal, response=empty)
        self._commit(turn, refusal.response)
        said = self._model.read(refusal.response)
        return structs.replace(refusal, text=said.text)

    def _commit(self, turn: Turn, response: Any) -> None:
        said = self._model.read(response)
        answer = Turn(role=Role.MODEL, text=said.text, calls=said.calls, raw=response)
        # Notes follow the turn: answers of tools must come right after their calls.
        self.history += [*_unless_kept(turn), *self._notes, answer]
        self._notes.clear()


def _unless_kept(turn: Turn) -> tuple[Turn, ...]:
    return () if turn.role is Role.TOOLS else (turn,)


async def pass_before_hooks(
    config: Config, how: HookTranslator, request: Any
) -> Passage:
    """Let the hooks before a model call choose its tools, change it or refuse it."""
    chosen = await fire_before_tool_selection_hook(config, request, translator=how)
    if chosen.should_stop:
        return Passage(
            request=request,
            refusal=_stopped(chosen.stop_reason),
            system_message=chosen.system_message,
        )
    if chosen.modified_request is not None:
        request = chosen.modified_request
    before = await fire_before_model_hook(config, request, translator=how)
    if before.blocked:
        return Passage(
            request=request,
            refusal=_blocked(before),
            system_message=before.system_message,
        )
    if before.modified_request is not None:
        request = before.modified_request
    for message in (chosen.system_message, before.system_message):
        request = with_system_message(how, request, message)
    return Passage(request=request, allowed_names=chosen.allowed_names)


def _stopped(reason: str | None) -> ChatReply:
    return ChatReply(blocked=True, reason=reason, should_stop=True, stop_reason=reason)


def _blocked(before: BeforeModelHookResult) -> ChatReply:
    return ChatReply(
        response=before.synthetic_response,
        blocked=True,
        reason=before.reason,
        should_stop=before.should_stop,
        stop_reason=before.stop_reason,
        suppress_display=before.suppress_output,
    )
