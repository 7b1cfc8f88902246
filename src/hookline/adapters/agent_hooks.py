"""AGENT-HOOKS 0.1: an interceptor for Microsoft Agent Framework and other hosts.

``create_agent_hooks_middleware([HooklineInterceptor(config)])``. A block is a deny, a
change a transform, a question a deny that the host's approval may lift. What the
contract cannot say, such as a request that a hook answers, is denied as well.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hookline.agent import (
    ConfigOrSession,
    Confirm,
    HookedModelCall,
    HookedToolCall,
    HookedTurn,
    ToolResult,
    session_of,
)
from hookline.config import Config
from hookline.errors import MissingExtraError
from hookline.log import logger
from hookline.translators.passthrough import StableTranslator

try:
    from agent_hooks import ALLOW, Decision, Transform, Verdict
except ModuleNotFoundError as error:
    raise MissingExtraError("agent-hooks", "agent-hooks-sdk") from error

_NO_EFFECT = {
    "SessionStart": "AGENT-HOOKS starts a session with every run",
    "SessionEnd": "AGENT-HOOKS ends a session with every run",
    "PreCompress": "AGENT-HOOKS has no point for it",
    "SubagentStart": "AGENT-HOOKS does not tell subagents from agents",
    "SubagentStop": "AGENT-HOOKS does not tell subagents from agents",
}
_ROLES = {"assistant": "model", "system": "system"}


@dataclass
class _Run:
    """One run of an agent, from its input to its output."""

    turn: HookedTurn
    model: HookedModelCall | None = None
    tools: dict[str, HookedToolCall] = field(default_factory=dict)


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
        self._session = session_of(config_or_session)
        self._is_fixed = not isinstance(config_or_session, Config)
        self._confirm = confirm
        self._approvals = approvals
        self._runs: dict[str, _Run] = {}
        self._points: dict[str, Callable[[_Run, Any], Awaitable[Verdict]]] = {
            "pre_model_call": self._before_model,
            "post_model_call": self._after_model,
            "pre_tool_call": self._before_tool,
            "post_tool_call": self._after_tool,
            "output": self._output,
        }

    def intercept(self, context: dict[str, Any], /) -> Any:
        """Decide at one point: a verdict to wait for. The host calls it."""
        return self._decide(context)

    async def _decide(self, context: dict[str, Any]) -> Verdict:
        point, key = context["interception_point"], context["session"]["id"]
        if point == "agent_startup":
            await self._session.warn_ineffective("AGENT-HOOKS", _NO_EFFECT)
        elif point == "agent_shutdown":
            self._runs.pop(key, None)
        elif point == "input":
            return await self._input(key, context["target"])
        elif point in self._points:
            # A host may emit no input: then nothing is known of the turn.
            run = self._runs.get(key) or _Run(HookedTurn(self._session_for(key), ""))
            self._runs[key] = run
            return await self._points[point](run, context)
        return ALLOW

    def _session_for(self, key: str) -> Any:
        return self._session if self._is_fixed else self._session.view(key)

    async def _input(self, key: str, target: Any) -> Verdict:
        content = target["content"]
        turn = await self._session_for(key).begin_turn(_text_of(content))
        self._runs[key] = _Run(turn)
        if turn.refused:
            return _deny(turn.reason)
        if not turn.additions:
            return ALLOW
        return _transform(_with_texts(content, turn.additions), ".content")

    async def _before_model(self, run: _Run, context: Any) -> Verdict:
        messages = context["target"]
        request = {"model": context["model"]["id"], "messages": _shown(messages)}
        call = run.model = await run.turn.begin_model(
            request,
            available_tools=[tool["name"] for tool in context.get("tools", [])],
            translator=StableTranslator(),
        )
        if call.refused:
            return _deny(call.stop_reason or call.reason)
        if call.changes.config or call.changes.model:
            logger.warning("AGENT-HOOKS cannot change the model or its settings")
        edited = _edited(messages, call)
        return ALLOW if edited is messages else _transform(edited)

    async def _after_model(self, run: _Run, context: Any) -> Verdict:
        response, call = context["target"], run.model
        if call is None:
            return ALLOW
        run.model = None
        outcome = await call.finish({"text": _text_of(response["content"])})
        text = outcome.text if outcome.stop_reason is None else outcome.stop_reason
        if not outcome.changed and outcome.stop_reason is None:
            return ALLOW
        if response["tool_calls"]:
            logger.warning("a hook's change of an answer drops the tool calls in it")
        answer = {"content": text, "tool_calls": [], "finish_reason": "stop"}
        return _transform({**response, **answer})

    async def _before_tool(self, run: _Run, context: Any) -> Verdict:
        made = context["tool_call"]
        call = await run.turn.begin_tool(
            made["name"],
            made["args"],
            confirm=self._confirm,
            defer=self._approvals,
        )
        is_changed = call.tool_input != made["args"]
        if call.question is not None and not is_changed:
            run.tools[made["id"]] = call
            return Verdict.escalate(reason=_said(call.question))
        if call.question is not None:
            # An approval would run the input that the model gave.
            logger.warning("AGENT-HOOKS cannot ask about an input that hooks changed")
        if call.refused:
            return _deny(call.reason, call.message)
        run.tools[made["id"]] = call
        return _transform(call.tool_input) if is_changed else ALLOW

    async def _after_tool(self, run: _Run, context: Any) -> Verdict:
        call = run.tools.pop(context["tool_call"]["id"], None)
        if call is None:
            return ALLOW
        if call.question is not None:
            call.refusal = None  # a person has lifted it
        call.tool_input = dict(context["tool_call"]["args"])
        value, is_error = context["target"], context["tool_result"]["is_error"]
        given = ToolResult(llm_content=value, error=str(value) if is_error else None)
        outcome = await call.finish(given)
        if outcome.withheld or outcome.stop_reason is not None:
            return _deny(str(outcome.content), outcome.text)
        if not outcome.additions:
            return ALLOW
        return _transform(outcome.result.llm_content)

    async def _output(self, run: _Run, context: Any) -> Verdict:
        turn = run.turn
        was_stopped = turn.stopped
        again = await turn.finish(_text_of(context["target"]["content"]))
        if again is not None:
            return _deny(again)
        if turn.stopped and not was_stopped:
            return _transform(turn.stop_reason, ".content")
        return ALLOW


def _said(reason: str | None) -> str:
    """A reason for the host; it keeps a prefix for itself."""
    text = reason or "Blocked by hook"
    return text.replace("host_error:", "host_error ", 1)


def _deny(reason: str | None, message: str | None = None) -> Verdict:
    more = message if message != reason else None
    return Verdict.deny(reason=_said(reason), message=more)


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


def _shown(messages: list[Any]) -> list[dict[str, Any]]:
    """The stable messages; ``at`` is the place in the host's own list."""
    return [
        {"role": _ROLES.get(message["role"], "user"), "content": text, "at": at}
        for at, message in enumerate(messages)
        if message["role"] != "tool" and (text := _text_of(message["content"]))
    ]


def _with_texts(content: Any, texts: list[str]) -> Any:
    """Add texts to a content value, in its own shape."""
    if isinstance(content, str):
        return "\n\n".join([content, *texts])
    if content and "role" in content[-1]:
        *before, last = content
        return [*before, {**last, "content": _with_texts(last["content"], texts)}]
    return [*content, *({"type": "text", "text": text} for text in texts)]


def _edited(messages: list[Any], call: HookedModelCall) -> list[Any]:
    """The messages as hooks want them; the very list if they changed nothing."""
    changes = call.changes
    if not changes:
        return messages
    number = {shown["at"]: n for n, shown in enumerate(call.given["messages"])}
    edited: list[Any] = []
    for at, message in enumerate(messages):
        n = number.get(at, -1)
        edited += map(_new, changes.inserted.get(n, []))
        if n in changes.edited or n in changes.removed:
            edited += _with_text(message, changes.edited.get(n))
        else:
            edited.append(message)
    return [*edited, *map(_new, changes.appended)]


def _new(message: Any) -> dict[str, Any]:
    role = "assistant" if message.role == "model" else message.role
    return {"role": role, "content": message.content}


def _with_text(message: Any, text: str | None) -> list[Any]:
    """A message with another text, or none; calls, results and files stay."""
    content = [] if isinstance(message["content"], str) else message["content"]
    others = [item for item in content if item.get("type") != "text"]
    if text is not None and not others:
        return [{**message, "content": text}]
    said = [] if text is None else [{"type": "text", "text": text}]
    return [{**message, "content": [*said, *others]}] if said or others else []
