"""One run of an agent, and one turn: the state that its calls share.

A run remembers what its hooks decided for the calls that follow: the stop, the tools
that may be called, messages for the next request. A turn is a run with a prompt: it
fires BeforeAgent and AfterAgent, or the events of a subagent.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any, Self

from hookline.protocol.outputs import BLOCKED_BY_HOOK
from hookline.protocol.results import ProcessedHookResult
from hookline.translators.shape import HookTranslator

from .model_calls import HookedModelCall, ModelOutcome, begin_model
from .tool_calls import Confirm, HookedToolCall, annotation, refused_result
from .triggers import SessionEvents

MAX_REJECTIONS = 8


class HookedRun:
    """Model and tool calls that belong together; any of them may stop the run.

    ``on_stop`` is called with the reason when a hook stops it.
    """

    def __init__(
        self, session: SessionEvents, on_stop: Callable[[str], None] | None = None
    ) -> None:
        self.session = session
        self.stop_reason: str | None = None
        """Set once a hook has stopped the run: every further call is refused."""
        self.allowed_names: frozenset[str] | None = None
        """The only tools that may be called since the last model call; None: all."""
        self._on_stop = on_stop
        self._notes: list[str] = []

    @property
    def ended(self) -> str | None:
        """Why every further call is refused; None while the run goes on."""
        return self.stop_reason

    def stop(self, reason: str | None) -> None:
        """Refuse every further call of this run."""
        if self.stop_reason is None:
            self.stop_reason = reason or "Stopped by hook"
            if self._on_stop is not None:
                self._on_stop(self.stop_reason)

    def note(self, message: str | None) -> None:
        """Add a system message to the next request of this run."""
        if message:
            self._notes.append(message)

    async def begin_model(
        self,
        request: Any,
        *,
        available_tools: list[Any] | None = None,
        translator: HookTranslator | None = None,
    ) -> HookedModelCall:
        """Fire BeforeToolSelection and BeforeModel, and apply what they say.

        The request is an SDK's own, or in the stable shape; ``translator`` says which
        where its type does not. Without ``available_tools`` they are the request's.
        """
        options = (available_tools, translator)
        if (ended := self.ended) is not None:
            return await begin_model(self.session, request, *options, ended=ended)
        notes, self._notes = self._notes, []
        call = await begin_model(self.session, request, *options, notes=notes)
        call.on_finish = self._heed
        self.allowed_names = call.allowed_names
        self._heed(call)
        return call

    def _heed(self, decided: HookedModelCall | ModelOutcome) -> None:
        self.note(decided.system_message)
        if decided.stop_reason is not None:
            self.stop(decided.stop_reason)

    async def begin_tool(
        self,
        name: str,
        tool_input: Mapping[str, Any],
        *,
        confirm: Confirm | bool | None = None,
        defer: bool = False,
        mcp_context: Mapping[str, Any] | None = None,
        original_request_name: str | None = None,
        on_ask: Callable[[], None] | None = None,
    ) -> HookedToolCall:
        """Fire BeforeTool and apply what it says; ``finish`` fires AfterTool.

        ``confirm`` asks a person, or is what the person said. With ``defer`` a call
        that needs a person is refused with its ``question``, so that a framework's own
        approval can ask. ``on_ask`` is called before a person is asked. ``mcp_context``
        and ``original_request_name`` are fields of the event.
        """
        context = {
            "mcp_context": mcp_context,
            "original_request_name": original_request_name,
        }
        call = HookedToolCall(self.session, name, dict(tool_input), context, self.stop)
        problem = self.problem(name)
        if problem is None:
            await call.begin(confirm, defer=defer, on_ask=on_ask)
        else:
            call.refuse(refused_result(problem))
        return call

    def problem(self, name: str) -> str | None:
        """Why a tool must not be called now."""
        if self.ended is not None:
            return f"Not run: {self.ended}"
        if self.allowed_names is not None and name not in self.allowed_names:
            names = ", ".join(sorted(self.allowed_names)) or "none"
            return f"Tool {name!r} is not allowed now (allowed: {names})"
        return None


class HookedTurn(HookedRun):
    """One turn of an agent: a prompt, and the answer that hooks accept.

    ``on_stop`` is called with the reason when a hook stops it. With an ``agent_type``
    it is a turn of a subagent, which gets an ``agent_id`` unless it has one.
    """

    def __init__(
        self,
        session: SessionEvents,
        prompt: str,
        on_stop: Callable[[str], None] | None = None,
        agent_type: str | None = None,
        agent_id: str | None = None,
    ) -> None:
        super().__init__(session, on_stop)
        self.given = prompt
        """The prompt without what hooks added."""
        self.agent_type = agent_type
        self.agent_id = agent_id or ("" if agent_type is None else str(uuid.uuid4()))
        self.context: str | None = None
        self.system_message: str | None = None
        """What the hooks of the last event said to the model."""
        self.blocked = False
        self.clear_context = False
        """Whether a hook wants the history cleared."""
        self._reason: str | None = None
        self._rejections = 0

    @property
    def stopped(self) -> bool:
        """Whether a hook stopped the agent."""
        return self.stop_reason is not None

    @property
    def refused(self) -> bool:
        """Whether a hook ended the turn."""
        return self.blocked or self.stopped

    @property
    def ended(self) -> str | None:
        """Why every further call is refused: a block or a stop ended the turn."""
        return (self.reason or BLOCKED_BY_HOOK) if self.refused else None

    @property
    def reason(self) -> str | None:
        """Why hooks ended the turn, or rejected its answer."""
        return self.stop_reason or self._reason

    @property
    def additions(self) -> list[str]:
        """What hooks added for the model: context, and system messages as such."""
        message = self.system_message
        notes = [annotation(message)] if message else []
        return [self.context, *notes] if self.context else notes

    @property
    def prompt(self) -> str:
        """The prompt to send, with what hooks added."""
        return "\n\n".join([self.given, *self.additions])

    @property
    def state(self) -> dict[str, Any]:
        """The turn as plain data (JSON), for ``Session.resume_turn``."""
        names = self.allowed_names
        state = {
            "prompt": self.given,
            "blocked": self.blocked,
            "reason": self._reason,
            "rejections": self._rejections,
            "stop_reason": self.stop_reason,
            "allowed_names": None if names is None else sorted(names),
            "notes": list(self._notes),
        }
        if self.agent_type is not None:
            state |= {"agent_type": self.agent_type, "agent_id": self.agent_id}
        return state

    def restore(self, state: Mapping[str, Any]) -> Self:
        """Go on where another object of this turn was when it gave its ``state``."""
        names = state.get("allowed_names")
        self.allowed_names = None if names is None else frozenset(names)
        self.stop_reason = state.get("stop_reason")
        self.blocked = state.get("blocked", False)
        self._reason = state.get("reason")
        self._rejections = state.get("rejections", 0)
        self._notes = list(state.get("notes", ()))
        return self

    async def begin(self) -> Self:
        """Fire the event that starts the turn."""
        if self.agent_type is None:
            result = await self.session.fire_before_agent_event(self.given)
        else:
            result = await self.session.fire_subagent_start_event(
                self.agent_id, self.agent_type, prompt=self.given
            )
        output = result.final_output
        self.context = None if output is None else output.additional_context
        self._take(result)
        self.blocked = result.blocked
        return self

    async def finish(self, answer: str) -> str | None:
        """Show hooks the answer: None, or what to go on with.

        After eight rejections in a row the turn counts as blocked. A turn that hooks
        ended has no answer, and fires nothing.
        """
        if self.refused:
            return None
        is_again = self._rejections > 0
        if self.agent_type is None:
            result = await self.session.fire_after_agent_event(
                self.given, answer, is_again
            )
        else:
            result = await self.session.fire_subagent_stop_event(
                self.agent_id,
                self.agent_type,
                prompt=self.given,
                prompt_response=answer,
                stop_hook_active=is_again,
            )
        output = result.final_output
        self.clear_context = output is not None and output.clear_context
        self.context = None
        self._take(result)
        if self.stopped or not result.blocked:
            return None
        if self._rejections == MAX_REJECTIONS:
            self.blocked = True
            return None
        self._rejections += 1
        return "\n\n".join([result.reason or "", *self.additions])

    def _take(self, result: ProcessedHookResult) -> None:
        self.system_message = result.system_message
        self._reason = result.reason
        if result.should_stop:
            self.stop(result.stop_reason)
