"""Claude Agent SDK: Claude Code's events, in this process, through hooks.

``ClaudeAgentOptions(hooks=hookline_hooks(config))``

What Claude Code does with each answer was observed with the program that the SDK
brings, and is tested with it (docs/how-to/frameworks/claude-agent-sdk.md).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Literal, cast

from hookline.agent import (
    ConfigOrSession,
    Confirm,
    HookedToolCall,
    HookedTurn,
    Session,
    ToolOutcome,
    ToolResult,
)
from hookline.errors import MissingExtraError
from hookline.protocol.dialects import (
    CLAUDE_MCP_TOOL,
    CLAUDE_NOTIFICATIONS,
    CLAUDE_TOOLS,
    SPELLINGS,
    claude_content,
    claude_replacement,
)
from hookline.protocol.events import HookEventName
from hookline.protocol.results import ProcessedHookResult
from hookline.protocol.values import encode

from .kit import Sessions, joined

try:
    from claude_agent_sdk import HookContext, HookMatcher
    from claude_agent_sdk.types import HookCallback, HookEvent
except ImportError as error:
    raise MissingExtraError("claude-agent-sdk", "claude-agent-sdk") from error

logger = logging.getLogger("hookline")
Wire = dict[str, Any]
_TIMEOUT_S = 3600.0
_KEPT_CONVERSATIONS = 10_000
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

    def conversation(event: Wire) -> _Conversation:
        # No event says that a conversation has ended, so the oldest are dropped.
        name = event["session_id"]
        if name not in conversations:
            session = sessions.of(name)
            path = session.transcript_path or event.get("transcript_path") or ""
            session = _ClaudeSession(session.config, session.session_id, path)
            conversations[name] = _Conversation(session, confirm)
        conversations[name] = conversations.pop(name)
        if len(conversations) > _KEPT_CONVERSATIONS:
            del conversations[next(iter(conversations))]
        return conversations[name]

    def matcher(answer: Callable[[_Conversation, Wire], Awaitable[Wire]]) -> Any:
        async def call(
            event: Any, tool_use_id: str | None, context: HookContext
        ) -> Any:
            return await answer(conversation(event), event)

        hooks = [cast("HookCallback", call)]
        return HookMatcher(hooks=hooks, timeout=timeout_s, on_failure=on_failure)

    return {
        "UserPromptSubmit": [matcher(_Conversation.begin_turn)],
        "PreToolUse": [matcher(_Conversation.before_tool)],
        "PostToolUse": [matcher(_Conversation.after_tool)],
        "PostToolUseFailure": [matcher(_Conversation.after_failure)],
        "Stop": [matcher(_Conversation.end_turn)],
        "SubagentStart": [matcher(_Conversation.begin_subagent)],
        "SubagentStop": [matcher(_Conversation.end_subagent)],
        "Notification": [matcher(_Conversation.notify)],
        "PreCompact": [matcher(_Conversation.compress)],
    }


class _ClaudeSession(Session):
    """Hooks see Claude's names of tools; matchers and rules may use ours as well."""

    async def fire_fields(
        self,
        event: HookEventName,
        fields: Wire,
        session_id: str | None = None,
        transcript_path: str | None = None,
    ) -> ProcessedHookResult:
        our_names = CLAUDE_TOOLS.get(fields.get("tool_name", ""), ())
        if spelled := [name for name in our_names if name in SPELLINGS]:
            host = {"name": "claude-agent-sdk", "our_tool_name": spelled[0]}
            fields = {**fields, "host": host}
        return await super().fire_fields(event, fields, session_id, transcript_path)


class _Conversation:
    """Answers the events of one conversation: of its prompts, and its subagents."""

    def __init__(self, session: Session, confirm: Confirm | None) -> None:
        self._session, self._confirm = session, confirm
        self._main = HookedTurn(session, "")
        self._agents: dict[str, HookedTurn] = {}
        self._is_answered = False
        self._closed: str | None = None

    async def begin_turn(self, event: Wire) -> Wire:
        await self._session.warn_ineffective("the Claude Agent SDK", _INEFFECTIVE)
        if self._closed is not None:
            return {"decision": "block", "reason": self._closed}
        turn = await self._session.begin_turn(event["prompt"])
        if turn.stopped:
            return _stop(turn.reason)
        if turn.blocked:
            return {"decision": "block", "reason": turn.reason}
        self._main, self._is_answered = turn, False
        return _specific(event, additionalContext=_joined(turn.additions))

    async def end_turn(self, event: Wire) -> Wire:
        if self._is_answered:
            return {}
        if not event.get("stop_hook_active") and not self._main.stopped:
            # Work in the background may end one prompt's turn several times.
            self._main = HookedTurn(self._session, self._main.given)
        return await _finish_turn(self._main, event)

    async def begin_subagent(self, event: Wire) -> Wire:
        kind, name = event["agent_type"], event["agent_id"]
        turn = await self._session.begin_subagent(kind, agent_id=name)
        self._agents[name] = turn
        if turn.stopped:
            self._main.stop(turn.reason)
        # It cannot be kept from starting: it is told, and none of its tools run.
        texts = [f"Do not start: {turn.reason}"] if turn.refused else turn.additions
        return _specific(event, additionalContext=_joined(texts))

    async def end_subagent(self, event: Wire) -> Wire:
        turn = self._turn(event)
        answer = await _finish_turn(turn, event)
        if not answer:
            del self._agents[event["agent_id"]]
        return self._ending(turn, answer)

    async def before_tool(self, event: Wire) -> Wire:
        name, questions = event["tool_name"], list[bool]()
        call = await self._turn(event).begin_tool(
            name,
            event["tool_input"],
            confirm=self._confirm,
            defer=True,
            mcp_context=_mcp_context(name),
            on_ask=lambda: questions.append(True),
        )
        turn = self._turn(event)
        if name == "StructuredOutput" and turn is self._main and not call.refused:
            await self._judge_structured(call)
        if not call.refused and (problem := turn.problem(name)) is not None:
            # A call at the same time has stopped the run meanwhile.
            call.refuse(ToolResult(llm_content=problem))
        changed = call.tool_input if call.changed_names else None
        verdict = _verdict(call, bool(questions))
        return self._ending(turn, _specific(event, **verdict, updatedInput=changed))

    async def _judge_structured(self, call: HookedToolCall) -> None:
        """Claude Code ignores what is said to a structured answer at its Stop."""
        rejection = await self._main.finish(encode(call.tool_input).decode())
        self._is_answered = rejection is None and not self._main.refused
        if rejection is not None:
            call.refuse(ToolResult(llm_content=rejection))

    async def after_tool(self, event: Wire) -> Wire:
        turn, name = self._turn(event), event["tool_name"]
        response = event["tool_response"]
        content = claude_content(name, response)
        result = ToolResult(llm_content=content, metadata={"toolResponse": response})
        outcome = await _finish_tool(turn, event, result)
        replaced = None
        if outcome.is_replaced:
            replaced = claude_replacement(name, response, str(outcome.content))
        if outcome.withheld and replaced is None:
            # No request may follow with the result, in this turn or a later one.
            turn.stop(f"{name}: {outcome.content}")
            self._closed = turn.stop_reason if turn is self._main else self._closed
        added = _joined(outcome.additions)
        answer = _specific(event, updatedToolOutput=replaced, additionalContext=added)
        return self._ending(turn, answer)

    async def after_failure(self, event: Wire) -> Wire:
        if event.get("is_interrupt"):
            return {}  # a cancelled tool has no result
        turn, name, error = self._turn(event), event["tool_name"], str(event["error"])
        failed = ToolResult(llm_content=f"Error: {error}", error=error)
        outcome = await _finish_tool(turn, event, failed)
        if outcome.withheld:
            logger.warning(
                "Claude Code shows its model the error of %s, which a hook withholds",
                name,
            )
            turn.stop(str(outcome.content))
        added = _joined(outcome.additions)
        return self._ending(turn, _specific(event, additionalContext=added))

    async def notify(self, event: Wire) -> Wire:
        kind = str(event.get("notification_type", ""))
        await self._session.fire_notification_event(
            event["message"],
            notification_type=CLAUDE_NOTIFICATIONS.get(kind, kind),
            details={"title": event.get("title", "")},
        )
        return {}

    async def compress(self, event: Wire) -> Wire:
        await self._session.fire_pre_compress_event(event["trigger"])
        return {}

    def _turn(self, event: Wire) -> HookedTurn:
        """The turn that an event belongs to; a stop of the run holds for all."""
        name, kind = event.get("agent_id"), event.get("agent_type") or ""
        if not name:
            return self._main
        if name not in self._agents:
            self._agents[name] = HookedTurn(
                self._session, "", agent_type=kind, agent_id=name
            )
        if self._main.stopped:
            self._agents[name].stop(self._main.stop_reason)
        return self._agents[name]

    def _ending(self, turn: HookedTurn, answer: Wire) -> Wire:
        """An answer, with what ends Claude Code's run if hooks ended the turn."""
        if turn.stopped:
            self._main.stop(turn.stop_reason)
        return answer if turn.ended is None else {**_stop(turn.ended), **answer}


async def _finish_turn(turn: HookedTurn, event: Wire) -> Wire:
    rejection = await turn.finish(event.get("last_assistant_message") or "")
    if rejection is not None:
        return {"decision": "block", "reason": rejection}
    # Both: the rejected answer is not the result, and no other one is asked for.
    return {**_stop(turn.reason), "decision": "block"} if turn.refused else {}


async def _finish_tool(turn: HookedTurn, event: Wire, result: Any) -> ToolOutcome:
    # What BeforeTool hooks added was given to the model before the tool ran.
    name, context = event["tool_name"], _mcp_context(event["tool_name"])
    call = HookedToolCall(
        turn.session, name, event["tool_input"], {"mcp_context": context}, turn.stop
    )
    return await call.finish(result)


def _stop(reason: str | None) -> Wire:
    return {"continue_": False, "stopReason": reason, "reason": reason}


def _verdict(call: HookedToolCall, is_approved: bool) -> Wire:
    verdict: Wire = {"additionalContext": _joined(call.additions)}
    if call.question is not None:
        decision, reason = "ask", call.question
    elif call.refused:
        # Also with a stop, which by itself lets the tool run first.
        decision, reason, verdict = "deny", call.message, {}
    elif is_approved:
        decision, reason = "allow", "approved by a person"
    else:
        return verdict
    permission = {"permissionDecision": decision, "permissionDecisionReason": reason}
    return verdict | permission


def _specific(event: Wire, **fields: Any) -> Wire:
    set_fields = {name: value for name, value in fields.items() if value is not None}
    if not set_fields:
        return {}
    return {
        "hookSpecificOutput": {"hookEventName": event["hook_event_name"], **set_fields}
    }


def _joined(additions: list[str]) -> str | None:
    return joined(additions) or None


def _mcp_context(name: str) -> dict[str, str] | None:
    match = CLAUDE_MCP_TOOL.fullmatch(name)
    return match and {"server_name": match[1], "tool_name": match[2]}
