"""AGENT-HOOKS 0.1: an interceptor for Microsoft Agent Framework and other hosts.

``create_agent_hooks_middleware([HooklineInterceptor(config)])``. A block is a deny, a
change a transform, a question a deny that the host's approval may lift. What the
contract cannot say, such as a request that a hook answers, is denied as well.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hookline.agent import (
    ConfigOrSession,
    Confirm,
    HookedModelCall,
    HookedToolCall,
    HookedTurn,
    ToolResult,
)
from hookline.errors import MissingExtraError
from hookline.protocol.outputs import BLOCKED_BY_HOOK
from hookline.translators.stable import StableTranslator

from .kit import (
    MessageShape,
    Sessions,
    changed_answer,
    extended,
    joined,
    service_role,
    stable_role,
    warn_of_settings,
    with_text,
)

try:
    from agent_hooks import ALLOW, Decision, Transform, Verdict
except ModuleNotFoundError as error:
    raise MissingExtraError("agent-hooks", "agent-hooks-sdk") from error

logger = logging.getLogger("hookline")
_NO_EFFECT = {
    "SessionStart": "AGENT-HOOKS starts a session with every run",
    "SessionEnd": "AGENT-HOOKS ends a session with every run",
    "PreCompress": "AGENT-HOOKS has no point for it",
    "SubagentStart": "AGENT-HOOKS does not tell subagents from agents",
    "SubagentStop": "AGENT-HOOKS does not tell subagents from agents",
}


@dataclass
class _Run:
    """One run of an agent, with a method for each point after its input."""

    turn: HookedTurn
    confirm: Confirm | None
    approvals: bool
    model: HookedModelCall | None = None
    tools: dict[str, HookedToolCall] = field(default_factory=dict)

    async def pre_model_call(self, context: Any) -> Verdict:
        messages = context["target"]
        call = self.model = await self.turn.begin_model(
            {"model": context["model"]["id"], "messages": _MESSAGES.shown(messages)},
            available_tools=[tool["name"] for tool in context.get("tools", [])],
            translator=StableTranslator(),
        )
        if call.refused:
            return _deny(call.stop_reason or call.reason)
        changes = call.changes
        warn_of_settings("AGENT-HOOKS", changes)
        edited = _MESSAGES.changed(messages, changes)
        return ALLOW if edited == messages else _transform(edited)

    async def post_model_call(self, context: Any) -> Verdict:
        response, call = context["target"], self.model
        if call is None:
            return ALLOW
        self.model = None
        outcome = await call.finish({"text": _text_of(response["content"])})
        answer = changed_answer(outcome, (c["name"] for c in response["tool_calls"]))
        if answer is None:
            return ALLOW
        new = {"content": answer.text, "tool_calls": [], "finish_reason": "stop"}
        return _transform({**response, **new})

    async def pre_tool_call(self, context: Any) -> Verdict:
        tool_call = context["tool_call"]
        name, args = tool_call["name"], tool_call["args"]
        call = await self.turn.begin_tool(
            name, args, confirm=self.confirm, defer=self.approvals
        )
        is_changed = bool(call.changed_names)
        if call.question is not None and is_changed:
            # An approval would run the input that the model gave.
            logger.warning("AGENT-HOOKS cannot ask about an input that hooks changed")
        elif call.question is not None:
            self.tools[tool_call["id"]] = call
            return Verdict.escalate(reason=_reason_text(call.question))
        if call.refused:
            return _deny(call.reason, call.message)
        self.tools[tool_call["id"]] = call
        return _transform(call.tool_input) if is_changed else ALLOW

    async def post_tool_call(self, context: Any) -> Verdict:
        call = self.tools.pop(context["tool_call"]["id"], None)
        if call is None:
            return ALLOW
        if call.question is not None:
            call.refused_as = None  # a person has lifted it
        call.tool_input = dict(context["tool_call"]["args"])
        value = context["target"]
        error = str(value) if context["tool_result"]["is_error"] else None
        outcome = await call.finish(ToolResult(llm_content=value, error=error))
        if outcome.is_replaced:
            return _deny(str(outcome.content), outcome.text)
        if outcome.additions and isinstance(value, str):
            return _transform(outcome.text)
        # The value of a program stays as it is: the model is told apart.
        self.turn.note(joined(outcome.additions))
        return ALLOW

    async def output(self, context: Any) -> Verdict:
        turn = self.turn
        was_stopped = turn.stopped
        rejection = await turn.finish(_text_of(context["target"]["content"]))
        if rejection is not None:
            return _deny(rejection)
        if turn.stopped and not was_stopped:
            return _transform(turn.stop_reason, ".content")
        return ALLOW


class HooklineInterceptor:
    """Asks the hooks of a config at every interception point.

    With a Config, events carry the id of the AGENT-HOOKS session; with a session its
    own. A call that a hook asks about is denied until the host's approval resolver
    lifts that; with ``confirm`` that decides, with ``approvals=False``
    ``hooksConfig.onAsk``.
    """

    def __init__(
        self,
        config_or_session: ConfigOrSession,
        *,
        confirm: Confirm | None = None,
        approvals: bool = True,
    ) -> None:
        self._sessions = Sessions(config_or_session)
        self._run = partial(_Run, confirm=confirm, approvals=approvals)
        self._runs: dict[str, _Run] = {}

    def intercept(self, context: dict[str, Any], /) -> Any:
        """Decide at one point: a verdict to wait for. The host calls it."""
        # Hosts wait for it, but the SDK's type is that of a plain verdict.
        return self._decide(context)

    async def _decide(self, context: dict[str, Any]) -> Verdict:
        point, key = context["interception_point"], context["session"]["id"]
        session = self._sessions.of(key)
        if point == "agent_startup":
            await session.warn_ineffective("AGENT-HOOKS", _NO_EFFECT)
        elif point == "agent_shutdown":
            self._runs.pop(key, None)
        elif point == "input":
            content = context["target"]["content"]
            turn = await session.begin_turn(_text_of(content))
            self._runs[key] = self._run(turn)
            if turn.refused:
                return _deny(turn.reason)
            if turn.additions:
                return _transform(_with_texts(content, turn.additions), ".content")
        elif (decide := getattr(_Run, point, None)) is not None:
            # A host may emit no input: then nothing is known of the turn.
            run = self._runs.setdefault(key, self._run(HookedTurn(session, "")))
            verdict: Verdict = await decide(run, context)
            return verdict
        return ALLOW


def _reason_text(reason: str | None) -> str:
    """A reason for the host; it keeps a prefix for itself."""
    text = reason or BLOCKED_BY_HOOK
    return text.replace("host_error:", "host_error ", 1)


def _deny(reason: str | None, message: str | None = None) -> Verdict:
    more = message if message != reason else None
    return Verdict.deny(reason=_reason_text(reason), message=more)


def _transform(value: Any, path: str = "") -> Verdict:
    return Verdict(Decision.TRANSFORM, transform=Transform(f"$target{path}", value))


def _text_of(content: Any) -> str:
    """The text of a content value: a string, or messages and items that hold text."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return _text_of(content.get("text", content.get("content")) or "")
    texts = filter(None, map(_text_of, content or []))
    return ("\n\n" if content and "role" in content[0] else "").join(texts)


def _with_texts(content: Any, texts: list[str]) -> Any:
    """Add texts to a content value, in its own shape."""
    if isinstance(content, str) or not content or "role" not in content[-1]:
        return extended(content, texts)
    *before, last = content
    return [*before, {**last, "content": extended(last["content"], texts)}]


def _with_text(message: Any, text: str | None) -> Any:
    """A message with another text, or without; calls, results and files stay."""
    content = with_text(message["content"], text)
    return {**message, "content": content} if content else None


_MESSAGES: MessageShape[Any] = MessageShape(
    role_of=lambda message: stable_role(message["role"]),
    # Results of tools have events of their own.
    text_of=lambda m: "" if m["role"] == "tool" else _text_of(m["content"]),
    with_text=_with_text,
    new=lambda new: {"role": service_role(new.role), "content": new.content},
)
