"""Claude Agent SDK: Claude Code's events, in this process, through hooks.

``ClaudeAgentOptions(hooks=hookline_hooks(config))``

What Claude Code does with each answer was observed with the program that the SDK
brings, and is tested with it (docs/frameworks/claude-agent-sdk.md).
"""

from __future__ import annotations

import re
from collections import OrderedDict
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
from hookline.log import logger
from hookline.protocol.dialects import CLAUDE_NOTIFICATIONS

try:
    from claude_agent_sdk import HookContext, HookMatcher
    from claude_agent_sdk.types import HookCallback, HookEvent
except ImportError as error:
    raise MissingExtraError("claude-agent-sdk", "claude-agent-sdk") from error

Wire = dict[str, Any]
_TIMEOUT_S = 3600.0
_KEPT_TURNS = 10_000
_MCP_TOOL = re.compile(r"mcp__(.+?)__(.+)")
_INEFFECTIVE = {
    **dict.fromkeys(
        ("BeforeModel", "AfterModel", "BeforeToolSelection"),
        "Claude Code has no hooks around its model",
    ),
    **dict.fromkeys(
        ("SessionStart", "SessionEnd"), "the SDK does not have these events"
    ),
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
    conversations = _Conversations(config_or_session, confirm)
    answers: dict[HookEvent, Callable[[Wire], Awaitable[Wire]]] = {
        "UserPromptSubmit": conversations.begin_turn,
        "PreToolUse": conversations.before_tool,
        "PostToolUse": conversations.after_tool,
        "PostToolUseFailure": conversations.after_failure,
        "Stop": conversations.end_turn,
        "SubagentStart": conversations.begin_subagent,
        "SubagentStop": conversations.end_subagent,
        "Notification": conversations.notify,
        "PreCompact": conversations.compress,
    }
    return {
        event: [
            HookMatcher(
                hooks=[_callback(event, answer)],
                timeout=timeout_s,
                on_failure=on_failure,
            )
        ]
        for event, answer in answers.items()
    }


def _callback(event: str, answer: Callable[[Wire], Awaitable[Wire]]) -> HookCallback:
    async def call(given: Any, tool_use_id: str | None, context: HookContext) -> Any:
        return await answer({**given, "hook_event_name": event})

    return cast("HookCallback", call)


class _Conversations:
    """Answers the events of Claude Code, of any number of conversations."""

    def __init__(self, given: ConfigOrSession, confirm: Confirm | None) -> None:
        self._session = session_of(given)
        self._is_own = isinstance(given, Session)
        self._confirm = confirm
        # There is no event for the end of a conversation: the oldest are dropped.
        self._turns: OrderedDict[tuple[str, str], HookedTurn] = OrderedDict()

    async def begin_turn(self, given: Wire) -> Wire:
        session = self._session_for(given)
        await session.warn_ineffective("the Claude Agent SDK", _INEFFECTIVE)
        turn = await session.begin_turn(given["prompt"])
        if turn.stopped:
            return _stop(turn.reason)
        if turn.blocked:
            return {"decision": "block", "reason": turn.reason}
        self._keep(given, "", turn)
        return _specific(given, additionalContext=_joined(turn.additions))

    async def end_turn(self, given: Wire) -> Wire:
        turn = self._turn(given)
        if not given.get("stop_hook_active") and not turn.stopped:
            # Work in the background may end one prompt's turn several times.
            turn = self._keep(given, "", HookedTurn(turn.session, turn.given))
        return await _finished(turn, given)

    async def begin_subagent(self, given: Wire) -> Wire:
        session, name = self._session_for(given), given["agent_id"]
        turn = await session.begin_subagent(given["agent_type"], agent_id=name)
        self._keep(given, name, turn)
        if not turn.refused:
            return _specific(given, additionalContext=_joined(turn.additions))
        if turn.stopped:
            self._main(given).stop(turn.reason)
        # It cannot be kept from starting: it is told, and none of its tools run.
        turn.stop(turn.reason)
        return _specific(given, additionalContext=f"Do not start: {turn.reason}")

    async def end_subagent(self, given: Wire) -> Wire:
        turn = self._turn(given)
        answer = await _finished(turn, given)
        if turn.stopped and not turn.blocked:
            self._main(given).stop(turn.reason)
        if turn.refused or not answer:
            self._turns.pop(self._key(given, given["agent_id"]), None)
        return answer

    async def before_tool(self, given: Wire) -> Wire:
        turn, asked = self._turn(given), []
        call = await turn.begin_tool(
            given["tool_name"],
            given["tool_input"],
            confirm=self._confirm,
            defer=True,
            mcp_context=_mcp_context(given),
            on_ask=lambda: asked.append(True),
        )
        if call.stop_reason is not None:
            self._main(given).stop(call.stop_reason)
        elif turn.stopped and not call.refused:
            # A call at the same time has stopped the run meanwhile.
            call.refuse(ToolResult(llm_content=f"Not run: {turn.stop_reason}"))
        changed = call.tool_input if call.tool_input != given["tool_input"] else None
        verdict = _verdict(call, bool(asked))
        return _stop_of(turn) | _specific(given, **verdict, updatedInput=changed)

    async def after_tool(self, given: Wire) -> Wire:
        turn = self._turn(given)
        outcome = await self._finish(given, turn, _shown(given))
        replaced = None
        if outcome.withheld or outcome.stop_reason is not None:
            replaced = _in_place_of(given, str(outcome.content))
            if replaced is None:
                # Other results cannot be replaced: no request may follow.
                turn.stop(f"{given['tool_name']}: {outcome.content}")
        added = _joined(outcome.additions)
        answer = _specific(given, updatedToolOutput=replaced, additionalContext=added)
        return _stop_of(turn) | answer

    async def after_failure(self, given: Wire) -> Wire:
        if given.get("is_interrupt"):
            return {}  # a cancelled tool has no result
        turn, error = self._turn(given), str(given["error"])
        failed = ToolResult(llm_content=f"Error: {error}", error=error)
        outcome = await self._finish(given, turn, failed)
        if outcome.withheld:
            logger.warning(
                "Claude Code shows its model the error of %s, which a hook withholds",
                given["tool_name"],
            )
            turn.stop(str(outcome.content))
        added = _joined(outcome.additions)
        return _stop_of(turn) | _specific(given, additionalContext=added)

    async def notify(self, given: Wire) -> Wire:
        kind = str(given.get("notification_type", ""))
        await self._session_for(given).fire_notification_event(
            given["message"],
            notification_type=CLAUDE_NOTIFICATIONS.get(kind, kind),
            details={"title": given.get("title", "")},
        )
        return {}

    async def compress(self, given: Wire) -> Wire:
        await self._session_for(given).fire_pre_compress_event(given["trigger"])
        return {}

    async def _finish(self, given: Wire, turn: HookedTurn, result: Any) -> ToolOutcome:
        # What BeforeTool hooks added was given to the model before the tool ran.
        call = HookedToolCall(
            turn.session,
            given["tool_name"],
            given["tool_input"],
            {"mcp_context": _mcp_context(given)},
            turn.stop,
        )
        outcome = await call.finish(result)
        if outcome.stop_reason is not None:
            self._main(given).stop(outcome.stop_reason)
        return outcome

    def _session_for(self, given: Wire) -> Session:
        session, transcript = self._session, given.get("transcript_path") or ""
        name = session.session_id if self._is_own else given["session_id"]
        own = session.transcript_path if self._is_own else ""
        return session.view(name, transcript_path=own or transcript)

    def _turn(self, given: Wire) -> HookedTurn:
        """The turn that an event belongs to: the conversation's, or a subagent's."""
        name = given.get("agent_id") or ""
        if not name:
            return self._main(given)
        turn = self._turns.get(self._key(given, name))
        if turn is None:
            kind = given.get("agent_type") or ""
            turn = SubagentTurn(self._session_for(given), "", kind, name)
            self._keep(given, name, turn)
        if (main := self._main(given)).stopped:
            turn.stop(main.stop_reason)
        return turn

    def _main(self, given: Wire) -> HookedTurn:
        known = self._turns.get(self._key(given, ""))
        if known is not None:
            return known
        return self._keep(given, "", HookedTurn(self._session_for(given), ""))

    def _keep(self, given: Wire, agent: str, turn: HookedTurn) -> HookedTurn:
        key = self._key(given, agent)
        self._turns[key] = turn
        self._turns.move_to_end(key)
        if len(self._turns) > _KEPT_TURNS:
            self._turns.popitem(last=False)
        return turn

    def _key(self, given: Wire, agent: str) -> tuple[str, str]:
        return given["session_id"], agent


async def _finished(turn: HookedTurn, given: Wire) -> Wire:
    again = await turn.finish(given.get("last_assistant_message") or "")
    if again is not None:
        return {"decision": "block", "reason": again}
    # Both: the rejected answer is not the result, and no other one is asked for.
    return {**_stop(turn.reason), "decision": "block"} if turn.refused else {}


def _stop_of(turn: HookedTurn) -> Wire:
    return {} if turn.stop_reason is None else _stop(turn.stop_reason)


def _stop(reason: str | None) -> Wire:
    """What ends Claude Code's run."""
    return {"continue_": False, "stopReason": reason, "reason": reason}


def _verdict(call: HookedToolCall, asked: bool) -> Wire:
    if call.question is not None:
        decision, reason = "ask", call.question
    elif call.refused:
        # Also with a stop, which by itself lets the tool run first.
        decision, reason = "deny", call.message
    elif asked:
        decision, reason = "allow", "approved by a person"
    else:
        return {"additionalContext": _joined(call.additions)}
    verdict = {"permissionDecision": decision, "permissionDecisionReason": reason}
    return (
        verdict
        if call.refused
        else verdict | {"additionalContext": _joined(call.additions)}
    )


def _specific(given: Wire, **fields: Any) -> Wire:
    found = {name: value for name, value in fields.items() if value is not None}
    if not found:
        return {}
    return {"hookSpecificOutput": {"hookEventName": given["hook_event_name"], **found}}


def _joined(additions: list[str]) -> str | None:
    return "\n\n".join(additions) or None


def _mcp_context(given: Wire) -> dict[str, str] | None:
    found = _MCP_TOOL.fullmatch(given["tool_name"])
    return found and {"server_name": found[1], "tool_name": found[2]}


def _shown(given: Wire) -> ToolResult:
    """What AfterTool hooks see: the text where it is known, and Claude's own object."""
    response = given["tool_response"]
    texts = _texts(given["tool_name"], response)
    content = response if None in texts or not texts else "\n".join(map(str, texts))
    return ToolResult(llm_content=content, metadata={"toolResponse": response})


def _texts(name: str, response: Any) -> list[Any]:
    """The text of a result in parts; None among them if there is anything else."""
    if _MCP_TOOL.fullmatch(name) and isinstance(response, list):
        return [one.get("text") for one in response]
    if not isinstance(response, dict):
        return []
    files = response.get("filenames") or []
    known: dict[str, list[Any]] = {
        "Bash": [text for key in ("stdout", "stderr") if (text := response.get(key))],
        "Read": [(response.get("file") or {}).get("content")],
        "Grep": [text] if (text := response.get("content")) else files,
        "Glob": files,
    }
    return known.get(name, [])


def _in_place_of(given: Wire, reason: str) -> Any:
    """A result that Claude Code takes for the tool's own; None if that is unknown.

    A result of another shape is ignored, and the model gets the tool's own.
    """
    name = given["tool_name"]
    if _MCP_TOOL.fullmatch(name):
        return reason
    file = {"filePath": "", "content": reason}
    lines = {"numLines": 1, "startLine": 1, "totalLines": 1}
    no_files = {"mode": "content", "numFiles": 0, "filenames": []}
    known: Wire = {
        "Bash": {
            "stdout": reason,
            "stderr": "",
            "interrupted": False,
            "isImage": False,
        },
        "Read": {"type": "text", "file": {**file, **lines}},
        "Grep": {**no_files, "content": reason, "numLines": 1},
        "Glob": {
            "filenames": [reason],
            "durationMs": 0,
            "numFiles": 1,
            "truncated": False,
        },
    }
    return known.get(name)
