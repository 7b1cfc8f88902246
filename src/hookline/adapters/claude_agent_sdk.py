"""Claude Agent SDK: Claude Code's events, in this process, through hooks.

``ClaudeAgentOptions(hooks=hookline_hooks(config))``

Events are read as ``hookline bridge claude`` reads them, so that one hook holds in both
(docs/decisions/0162-one-claude-code.md). What Claude Code does with each answer was
observed with the program that the SDK brings, and is tested with it
(docs/how-to/frameworks/claude-agent-sdk.md).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Literal

from hookline.agent import (
    ConfigOrSession,
    Confirm,
    HookedToolCall,
    HookedTurn,
    Session,
    ToolOutcome,
    ToolResult,
)
from hookline.engine.handler import HookEventHandler
from hookline.errors import MissingExtraError
from hookline.hosts.host import HostEvent
from hookline.hosts.registry import host_of
from hookline.hosts.tools import ToolCall
from hookline.hosts.verbs import block, deny, specific
from hookline.protocol.dialects import claude_replacement
from hookline.protocol.events import HookEventName
from hookline.protocol.results import ProcessedHookResult
from hookline.protocol.values import encode

from .kit import Sessions, joined

try:
    from claude_agent_sdk import HookContext, HookMatcher
    from claude_agent_sdk.types import HookEvent
except ImportError as error:
    raise MissingExtraError("claude-agent-sdk", "claude-agent-sdk") from error

logger = logging.getLogger("hookline")
Wire = dict[str, Any]
_CLAUDE = host_of("claude")
_EVENTS: tuple[HookEvent, ...] = (
    *("UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop"),
    *("SubagentStart", "SubagentStop", "Notification", "PreCompact"),
)
_TIMEOUT_S = 3600.0
_MOST_CONVERSATIONS = 10_000
_NO_MODEL = "Claude Code has no hooks around its model"
_NO_EVENT = "the SDK does not have these events"
_INEFFECTIVE = {
    **dict.fromkeys(("BeforeModel", "AfterModel", "BeforeToolSelection"), _NO_MODEL),
    **dict.fromkeys(("SessionStart", "SessionEnd"), _NO_EVENT),
}


def hookline_hooks(
    config_or_session: ConfigOrSession,
    *,
    confirm: Confirm | None = None,
    timeout_s: float = _TIMEOUT_S,
    on_failure: Literal["continue", "block"] | None = None,
) -> dict[HookEvent, list[HookMatcher]]:
    """All hooks for ``ClaudeAgentOptions(hooks=...)``.

    Of a config every conversation is the session that Claude Code says; a session is
    used as it is. ``confirm`` answers the questions of hooks; without it they go to
    ``can_use_tool``. ``timeout_s`` is for all hooks of an event and must leave each
    its own time, and a person theirs. ``on_failure`` is the SDK's: what happens to the
    action if this adapter itself fails.
    """
    sessions = Sessions(config_or_session)
    conversations: dict[str, _Conversation] = {}

    async def answer(payload: Any, _: str | None, __: HookContext) -> Any:
        name = payload["session_id"]
        conversation = conversations.pop(name, None)
        if conversation is None:
            session = sessions.of(name)
            transcript = session.transcript_path or payload.get("transcript_path") or ""
            session = _ClaudeSession(session.config, session.session_id, transcript)
            conversation = _Conversation(session, confirm)
        conversations[name] = conversation
        # No event says that a conversation has ended, so the oldest are dropped.
        if len(conversations) > _MOST_CONVERSATIONS:
            del conversations[next(iter(conversations))]
        return await conversation.answer(payload)

    matcher = HookMatcher(hooks=[answer], timeout=timeout_s, on_failure=on_failure)
    return {name: [matcher] for name in _EVENTS}


_host_event: ContextVar[HostEvent] = ContextVar("hookline_claude_event")


class _ClaudeSession(Session):
    """Adds to events what Claude Code says of them, as the bridge does."""

    async def fire_fields(
        self,
        event: HookEventName,
        fields: Wire,
        session_id: str | None = None,
        transcript_path: str | None = None,
    ) -> ProcessedHookResult:
        host_event = _host_event.get()
        if event is host_event.event:  # a question at it is an event of its own
            fields = {**host_event.inputs(_CLAUDE.name)[0], **fields}
            firer = await self._firer()
            plan = isinstance(firer, HookEventHandler) and (
                firer.pipeline.planner.plan_for(event, {})
            )
            if plan and any(hook.config.is_foreign for hook in plan.hooks):
                # A hook that was written for Claude Code gets what it sent.
                fields["host"] = {**fields["host"], "payload": host_event.payload}
        return await super().fire_fields(event, fields, session_id, transcript_path)


class _Conversation:
    """Answers the events of one conversation: of its prompts, and its subagents."""

    def __init__(self, session: Session, confirm: Confirm | None) -> None:
        self._session, self._confirm = session, confirm
        self._main = HookedTurn(session, "")
        self._subagents: dict[str, HookedTurn] = {}
        self._is_answered = False
        """Whether hooks have accepted a structured answer."""
        self._closed: str | None = None
        """Why no further prompt is taken."""

    async def answer(self, payload: Wire) -> Wire:
        """What Claude Code is told at an event."""
        event = _CLAUDE.read(payload, payload["hook_event_name"])
        _host_event.set(event)
        match event.event, event.call:
            case HookEventName.BeforeAgent, _:
                return await self._begin_turn(event)
            case HookEventName.SubagentStart, _:
                return await self._begin_subagent(event)
            case HookEventName.BeforeTool, ToolCall() as call:
                return await self._before_tool(event, call)
            case HookEventName.AfterTool, ToolCall() as call:
                return await self._after_tool(event, call)
            case HookEventName.AfterAgent | HookEventName.SubagentStop, _:
                return await self._end_turn(event)
            case HookEventName() as advisory, _:
                await self._session.fire_fields(advisory, {})
        return {}

    async def _begin_turn(self, event: HostEvent) -> Wire:
        await self._session.warn_ineffective("the Claude Agent SDK", _INEFFECTIVE)
        if self._closed is not None:
            return block(self._closed)
        turn = await self._session.begin_turn(event.fields["prompt"])
        if turn.stopped:
            return _stop(turn.reason)
        if turn.blocked:
            return block(turn.reason or "")
        self._main, self._is_answered = turn, False
        return specific(event.name, joined(turn.additions))

    async def _begin_subagent(self, event: HostEvent) -> Wire:
        turn = await self._subagent(event).begin()
        self._subagents[event.fields["agent_id"]] = turn
        if turn.stopped:
            self._main.stop(turn.stop_reason)
        # It cannot be kept from starting: it is told, and none of its tools run.
        texts = [f"Do not start: {turn.reason}"] if turn.refused else turn.additions
        return specific(event.name, joined(texts))

    async def _end_turn(self, event: HostEvent) -> Wire:
        turn = self._turn(event)
        if turn is self._main:
            if self._is_answered:
                return {}
            if not event.fields["stop_hook_active"] and not turn.stopped:
                # Work in the background may end one prompt's turn several times.
                self._main = turn = HookedTurn(self._session, turn.given)
        rejection = await turn.finish(event.fields["prompt_response"])
        if rejection is not None:
            return block(rejection)
        if turn.refused:
            # Both: the rejected answer is not the result, and no other is asked for.
            return self._ending(turn, {"decision": "block"})
        self._subagents.pop(event.fields.get("agent_id", ""), None)
        return {}

    async def _before_tool(self, event: HostEvent, tool_call: ToolCall) -> Wire:
        has_asked: list[bool] = []
        calls = await asyncio.gather(
            *(
                self._turn(event).begin_tool(
                    name,
                    part,
                    confirm=self._confirm,
                    defer=True,
                    on_ask=lambda: has_asked.append(True),
                )
                for name, part in tool_call.parts
            )
        )
        turn = self._turn(event)
        refused = [call for call in calls if call.refused and call.question is None]
        refusals = [call.message for call in refused]
        is_answer = tool_call.name == "StructuredOutput" and turn is self._main
        if is_answer and not any(call.refused for call in calls):
            # Claude Code ignores what is said to a structured answer at its Stop.
            rejection = await turn.finish(encode(tool_call.tool_input).decode())
            self._is_answered = rejection is None and not turn.refused
            refusals += [rejection] if rejection else []
        inputs = (call.tool_input if call.changed_names else None for call in calls)
        fields: Wire = {}
        try:
            fields["updatedInput"] = tool_call.changed(inputs)
        except ValueError as error:
            refusals.append(f"hooks changed the input of {tool_call.name}: {error}")
        # A call at the same time may have stopped the run meanwhile.
        if not refusals and (problem := turn.problem(tool_call.name)):
            refusals.append(problem)
        if refusals:
            return self._ending(
                turn, specific(event.name, **deny("\n".join(dict.fromkeys(refusals))))
            )
        reasons = [call.question for call in calls if call.question is not None]
        if reasons or has_asked:
            reason = "\n".join(dict.fromkeys(reasons)) or "approved by a person"
            fields["permissionDecision"] = "ask" if reasons else "allow"
            fields["permissionDecisionReason"] = reason
        return self._ending(turn, specific(event.name, _additions(calls), **fields))

    async def _after_tool(self, event: HostEvent, tool_call: ToolCall) -> Wire:
        if event.payload.get("is_interrupt"):
            return {}  # a cancelled tool has no result
        turn, response = self._turn(event), event.fields["tool_response"]
        error = response.get("error")
        result = ToolResult(
            llm_content=response["llmContent"],
            metadata=response.get("metadata"),
            error=error and error["message"],
        )
        # What BeforeTool hooks added was given to the model before the tool ran.
        calls = [
            HookedToolCall(turn.session, name, part, on_stop=turn.stop)
            for name, part in tool_call.parts
        ]
        outcomes = await asyncio.gather(*(call.finish(result) for call in calls))
        reasons = [str(each.content) for each in outcomes if each.is_replaced]
        name, replaced = tool_call.name, None
        if reasons and error is None:
            reason = "\n".join(dict.fromkeys(reasons))
            replaced = claude_replacement(name, event.payload["tool_response"], reason)
        is_withheld = any(each.withheld for each in outcomes)
        if is_withheld and error is not None:
            problem = (
                "Claude Code shows its model the error of %s, which a hook withholds"
            )
            logger.warning(problem, name)
            turn.stop(reasons[0])
        elif is_withheld and replaced is None:
            # No request may follow with the result, in this turn or a later one.
            turn.stop(f"{name}: {reasons[0]}")
            if turn is self._main:
                self._closed = turn.stop_reason
        answer = specific(event.name, _additions(outcomes), updatedToolOutput=replaced)
        return self._ending(turn, answer)

    def _turn(self, event: HostEvent) -> HookedTurn:
        """The turn that an event belongs to; a stop of the run holds for all."""
        name = event.payload.get("agent_id")
        if not name:
            return self._main
        if name not in self._subagents:
            self._subagents[name] = self._subagent(event)
        if self._main.stopped:
            self._subagents[name].stop(self._main.stop_reason)
        return self._subagents[name]

    def _subagent(self, event: HostEvent) -> HookedTurn:
        kind, name = event.payload.get("agent_type") or "", event.payload["agent_id"]
        return HookedTurn(self._session, "", agent_type=kind, agent_id=name)

    def _ending(self, turn: HookedTurn, answer: Wire) -> Wire:
        """An answer, with what ends Claude Code's run if hooks ended the turn."""
        if turn.stopped:
            self._main.stop(turn.stop_reason)
        return answer if turn.ended is None else {**_stop(turn.ended), **answer}


def _additions(results: Sequence[HookedToolCall | ToolOutcome]) -> str:
    """What hooks added for the model, each text once."""
    return joined(dict.fromkeys(text for each in results for text in each.additions))


def _stop(reason: str | None) -> Wire:
    return {"continue_": False, "stopReason": reason, "reason": reason}
