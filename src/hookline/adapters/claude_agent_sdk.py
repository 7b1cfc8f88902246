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
    session_of,
)
from hookline.agent.turn import SubagentTurn
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
    session_of(config_or_session)  # raises for anything else
    known: dict[str, _Conversation] = {}

    def conversation(given: Wire) -> _Conversation:
        # No event says that a conversation has ended, so the oldest are dropped.
        name = given["session_id"]
        if name not in known:
            session, path = session_of(config_or_session), given.get("transcript_path")
            own_id = name
            if isinstance(config_or_session, Session):
                own_id, path = session.session_id, session.transcript_path or path
            session = _ClaudeSession(session.config, own_id, path or "")
            known[name] = _Conversation(session, confirm)
        known[name] = known.pop(name)
        if len(known) > _KEPT_CONVERSATIONS:
            del known[next(iter(known))]
        return known[name]

    def matcher(answer: Callable[[_Conversation, Wire], Awaitable[Wire]]) -> Any:
        async def call(
            given: Any, tool_use_id: str | None, context: HookContext
        ) -> Any:
            return await answer(conversation(given), given)

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
        ours = CLAUDE_TOOLS.get(fields.get("tool_name", ""), ())
        if known := [name for name in ours if name in SPELLINGS]:
            host = {"name": "claude-agent-sdk", "our_tool_name": known[0]}
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

    async def begin_turn(self, given: Wire) -> Wire:
        await self._session.warn_ineffective("the Claude Agent SDK", _INEFFECTIVE)
        if self._closed is not None:
            return {"decision": "block", "reason": self._closed}
        turn = await self._session.begin_turn(given["prompt"])
        if turn.stopped:
            return _stop(turn.reason)
        if turn.blocked:
            return {"decision": "block", "reason": turn.reason}
        self._main, self._is_answered = turn, False
        return _specific(given, additionalContext=_joined(turn.additions))

    async def end_turn(self, given: Wire) -> Wire:
        if self._is_answered:
            return {}
        if not given.get("stop_hook_active") and not self._main.stopped:
            # Work in the background may end one prompt's turn several times.
            self._main = HookedTurn(self._session, self._main.given)
        return await _finished(self._main, given)

    async def begin_subagent(self, given: Wire) -> Wire:
        kind, name = given["agent_type"], given["agent_id"]
        turn = await self._session.begin_subagent(kind, agent_id=name)
        self._agents[name] = turn
        if turn.stopped:
            self._main.stop(turn.reason)
        # It cannot be kept from starting: it is told, and none of its tools run.
        said = [f"Do not start: {turn.reason}"] if turn.refused else turn.additions
        return _specific(given, additionalContext=_joined(said))

    async def end_subagent(self, given: Wire) -> Wire:
        turn = self._turn(given)
        answer = await _finished(turn, given)
        if not answer:
            del self._agents[given["agent_id"]]
        return self._ending(turn, answer)

    async def before_tool(self, given: Wire) -> Wire:
        name, asked = given["tool_name"], list[bool]()
        call = await self._turn(given).begin_tool(
            name,
            given["tool_input"],
            confirm=self._confirm,
            defer=True,
            mcp_context=_mcp_context(name),
            on_ask=lambda: asked.append(True),
        )
        turn = self._turn(given)
        if name == "StructuredOutput" and turn is self._main and not call.refused:
            await self._judge_structured(call)
        if not call.refused and (problem := turn.problem(name)) is not None:
            # A call at the same time has stopped the run meanwhile.
            call.refuse(ToolResult(llm_content=problem))
        changed = call.tool_input if call.changed_names else None
        verdict = _verdict(call, bool(asked))
        return self._ending(turn, _specific(given, **verdict, updatedInput=changed))

    async def _judge_structured(self, call: HookedToolCall) -> None:
        """Claude Code ignores what is said to a structured answer at its Stop."""
        again = await self._main.finish(encode(call.tool_input).decode())
        self._is_answered = again is None and not self._main.refused
        if again is not None:
            call.refuse(ToolResult(llm_content=again))

    async def after_tool(self, given: Wire) -> Wire:
        turn, name = self._turn(given), given["tool_name"]
        response = given["tool_response"]
        content = claude_content(name, response)
        shown = ToolResult(llm_content=content, metadata={"toolResponse": response})
        outcome = await _finish_tool(turn, given, shown)
        replaced = None
        if outcome.is_replaced:
            replaced = claude_replacement(name, response, str(outcome.content))
        if outcome.withheld and replaced is None:
            # No request may follow with the result, in this turn or a later one.
            turn.stop(f"{name}: {outcome.content}")
            self._closed = turn.stop_reason if turn is self._main else self._closed
        added = _joined(outcome.additions)
        answer = _specific(given, updatedToolOutput=replaced, additionalContext=added)
        return self._ending(turn, answer)

    async def after_failure(self, given: Wire) -> Wire:
        if given.get("is_interrupt"):
            return {}  # a cancelled tool has no result
        turn, name, error = self._turn(given), given["tool_name"], str(given["error"])
        failed = ToolResult(llm_content=f"Error: {error}", error=error)
        outcome = await _finish_tool(turn, given, failed)
        if outcome.withheld:
            logger.warning(
                "Claude Code shows its model the error of %s, which a hook withholds",
                name,
            )
            turn.stop(str(outcome.content))
        added = _joined(outcome.additions)
        return self._ending(turn, _specific(given, additionalContext=added))

    async def notify(self, given: Wire) -> Wire:
        kind = str(given.get("notification_type", ""))
        await self._session.fire_notification_event(
            given["message"],
            notification_type=CLAUDE_NOTIFICATIONS.get(kind, kind),
            details={"title": given.get("title", "")},
        )
        return {}

    async def compress(self, given: Wire) -> Wire:
        await self._session.fire_pre_compress_event(given["trigger"])
        return {}

    def _turn(self, given: Wire) -> HookedTurn:
        """The turn that an event belongs to; a stop of the run holds for all."""
        name, kind = given.get("agent_id"), given.get("agent_type") or ""
        if not name:
            return self._main
        if name not in self._agents:
            self._agents[name] = SubagentTurn(self._session, "", kind, name)
        if self._main.stopped:
            self._agents[name].stop(self._main.stop_reason)
        return self._agents[name]

    def _ending(self, turn: HookedTurn, answer: Wire) -> Wire:
        """An answer, with what ends Claude Code's run if hooks ended the turn."""
        if turn.stopped:
            self._main.stop(turn.stop_reason)
        return answer if turn.ended is None else {**_stop(turn.ended), **answer}


async def _finished(turn: HookedTurn, given: Wire) -> Wire:
    again = await turn.finish(given.get("last_assistant_message") or "")
    if again is not None:
        return {"decision": "block", "reason": again}
    # Both: the rejected answer is not the result, and no other one is asked for.
    return {**_stop(turn.reason), "decision": "block"} if turn.refused else {}


async def _finish_tool(turn: HookedTurn, given: Wire, result: Any) -> ToolOutcome:
    # What BeforeTool hooks added was given to the model before the tool ran.
    name, context = given["tool_name"], _mcp_context(given["tool_name"])
    call = HookedToolCall(
        turn.session, name, given["tool_input"], {"mcp_context": context}, turn.stop
    )
    return await call.finish(result)


def _stop(reason: str | None) -> Wire:
    return {"continue_": False, "stopReason": reason, "reason": reason}


def _verdict(call: HookedToolCall, asked: bool) -> Wire:
    verdict: Wire = {"additionalContext": _joined(call.additions)}
    if call.question is not None:
        decision, reason = "ask", call.question
    elif call.refused:
        # Also with a stop, which by itself lets the tool run first.
        decision, reason, verdict = "deny", call.message, {}
    elif asked:
        decision, reason = "allow", "approved by a person"
    else:
        return verdict
    said = {"permissionDecision": decision, "permissionDecisionReason": reason}
    return verdict | said


def _specific(given: Wire, **fields: Any) -> Wire:
    found = {name: value for name, value in fields.items() if value is not None}
    if not found:
        return {}
    return {"hookSpecificOutput": {"hookEventName": given["hook_event_name"], **found}}


def _joined(additions: list[str]) -> str | None:
    return "\n\n".join(additions) or None


def _mcp_context(name: str) -> dict[str, str] | None:
    found = CLAUDE_MCP_TOOL.fullmatch(name)
    return found and {"server_name": found[1], "tool_name": found[2]}
