"""Gemini CLI: its JSON on a hook's stdin, and the answers that it obeys.

Observed with Gemini CLI, and read in its source where that is the only way to know
(docs/how-to/hosts/gemini.md). It hides the result of a tool that a hook denies, shows
an answer that a hook denies, and keeps the messages that a hook leaves out: objections,
replacements and placeholders are written instead. It escapes the context itself
(hosts/README.md#rules 5).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from hookline.hosts import effects, verbs
from hookline.hosts.effects import Effect, Limits
from hookline.hosts.host import (
    Host,
    HostEvent,
    HostFiles,
    object_field,
    object_or_empty,
    required,
    tool_result,
)
from hookline.hosts.host_verdict import WITHHELD, Answer, HostVerdict, Wire
from hookline.hosts.tools import Tool, ToolCall
from hookline.protocol.events import HookEventName
from hookline.protocol.values import encode

_E = HookEventName
_TOOLS = {
    "grep_search": Tool.GREP,
    "google_web_search": Tool.SEARCH,
    "invoke_agent": Tool.TASK,
}
_SPELLED = {tool: name for name, tool in _TOOLS.items()}
_ENDING = ("finishReason", "index")
_SAMPLING = ("temperature", "maxOutputTokens", "topP", "topK")


class GeminiHost(Host):
    """Gemini CLI."""

    name = "gemini"
    title = "Gemini CLI"
    tested: str | None = "0.61.0"
    files = HostFiles(
        project=".gemini/settings.json",
        user="$GEMINI_CLI_HOME/.gemini/settings.json",
        denies_failures=True,
        homes={"GEMINI_CLI_HOME": "~"},
        extra={"name": "hookline", "type": "command"},
        unit_ms=1,
        off=(("hooksConfig", "enabled"), False),
        next_step="start gemini and trust the folder if it asks: it runs no hooks of "
        "other folders; /hooks shows hooks",
    )
    places = r"\.gemini/[^/]+|gemini-extension\.json"
    project_variables: tuple[str, ...] = ("GEMINI_PROJECT_DIR",)
    events = {
        event.value: event
        for event in HookEventName
        if event not in (_E.SubagentStart, _E.SubagentStop)
    }
    spelled = {"last_assistant_message": "prompt_response"}
    tools = _TOOLS
    limits: Limits = {
        _E.BeforeTool: {
            Effect.CONTEXT: effects.NOT_BEFORE,
            Effect.MESSAGE: effects.TO_PERSON,
        },
        _E.AfterAgent: {Effect.CLEAR: "only together with a block or a stop"},
        _E.AfterModel: {
            Effect.CHANGE: "the conversation keeps what the model wrote",
            Effect.MESSAGE: effects.TO_PERSON,
            Effect.SUPPRESS: "the text is shown to the person",
        },
        _E.BeforeToolSelection: {
            Effect.CHANGE: "the model is told, but a call of another tool runs",
            Effect.MESSAGE: effects.TO_PERSON,
            Effect.STOP: "the model is called without tools",
        },
    }
    asks = True
    carries: Mapping[str, Effect] = dict.fromkeys(
        ("decision", "continue"), Effect.CLEAR
    )
    shows_notices = True

    def call(self, payload: Wire, name: str) -> ToolCall:
        """A tool that fetches: each of the addresses in its prompt is one."""
        call = super().call(payload, name)
        tool, tool_input = call.parts[0]
        if tool != Tool.FETCH or len(call.parts) > 1 or "url" in tool_input:
            return call
        prompt = tool_input.get("prompt")
        words = prompt.split() if isinstance(prompt, str) else []
        addresses = dict.fromkeys(word for word in words if "://" in word)
        parts = tuple((Tool.FETCH, {**tool_input, "url": url}) for url in addresses)
        return structs.replace(call, parts=parts, is_whole=False) if parts else call

    def fields(
        self, event: HookEventName, name: str, payload: Wire, call: ToolCall | None
    ) -> Wire:
        """The fields of an event in our spelling; models' requests have ours."""
        match event:
            case _E.BeforeModel | _E.BeforeToolSelection:
                return {"llm_request": object_field(payload, "llm_request")}
            case _E.AfterModel:
                response = object_field(payload, "llm_response")
                request = payload.get("llm_request") or {}
                return {"llm_request": request, "llm_response": response}
        return super().fields(event, name, payload, call)

    def response(self, tool: str, name: str, payload: Wire) -> Wire:
        """The result of a tool, which has our shape since some version."""
        response = required(payload, "tool_response")
        is_ours = isinstance(response, dict) and "llmContent" in response
        return response if is_ours else tool_result(response)

    def answer(self, event: HostEvent, verdict: HostVerdict) -> Wire | Answer:
        """What to write."""
        match event.event:
            case _E.BeforeTool | _E.BeforeAgent if verdict.ends:
                return _deny(verdict.refusal()) | verbs.stop(verdict)
            case _E.BeforeTool:
                ask = (
                    {"decision": "ask", "reason": verdict.reason} if verdict.ask else {}
                )
                # The question is the system message.
                ask |= verbs.show(ask.get("reason"), verdict.message)
                return ask | verbs.specific(event.name, tool_input=verdict.tool_input)
            case _E.AfterTool if verdict.withheld or verdict.stop:
                return _deny(verdict.refusal(WITHHELD)) | verbs.stop(verdict)
            case _E.AfterTool:
                return verbs.specific(event.name, verdict.remark(escaped=False))
            case _E.BeforeAgent | _E.SessionStart:
                return verbs.specific(event.name, verdict.model_text(escaped=False))
            case _E.AfterAgent:
                # A deny goes on with the reason as the next prompt; a stop does not.
                wire = verbs.stop(verdict) | verbs.show(verdict.message)
                wire = _deny(verdict.refusal()) if verdict.rejects else wire
                clear = verdict.clear_context or None
                return wire | verbs.specific(event.name, clearContext=clear)
            case _E.BeforeModel:
                return _before_model(event, verdict)
            case _E.AfterModel:
                wire = verbs.stop(verdict) | verbs.show(verdict.message)
                if (changed := verdict.llm_response) is not None:
                    response = _response(event.payload.get("llm_response"), changed)
                    wire |= verbs.specific(event.name, llm_response=response)
                return wire
            case _E.BeforeToolSelection:
                return _before_tool_selection(event, verdict)
        return verbs.show(verdict.message)

    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Write what the hooks said."""
        answer = super().write(event, verdict)
        if event.event is _E.BeforeToolSelection and answer == verbs.json_answer({}):
            # Any object, even an empty one, replaces the host's own choice of tools.
            return Answer()
        lost = _unused(verdict) if event.event is _E.BeforeModel else ()
        return structs.replace(answer, lost=tuple(lost))


def _deny(reason: str) -> Wire:
    """A stop takes one with it, for what the host does before it obeys."""
    return {"decision": "deny", "reason": reason}


def _before_model(event: HostEvent, verdict: HostVerdict) -> Wire:
    """The whole request: Gemini CLI forgets what a hook leaves out of ``config``."""
    changed, context = verdict.llm_request, verdict.model_text()
    if verdict.ends:
        wire = _deny(verdict.refusal()) | verbs.stop(verdict)
        if verdict.llm_response is None:
            return wire
        return wire | verbs.specific(
            event.name, llm_response=_response({}, verdict.llm_response)
        )
    if changed is None and not context:
        return {}
    original = object_or_empty(event.payload, "llm_request")
    request = original | (changed or {})
    config = _sampling(original.get("config")) | _sampling(request.get("config"))
    messages = _objects(request.get("messages"))
    messages = _aligned(_objects(original.get("messages")), messages)
    messages += [{"role": "user", "content": context}] if context else []
    wire = {"model": request["model"]} if request.get("model") else {}
    wire |= {"config": config} if config else {}
    return verbs.specific(event.name, llm_request=wire | {"messages": messages})


def _before_tool_selection(event: HostEvent, verdict: HostVerdict) -> Wire:
    config = verdict.tools
    if verdict.stop:
        config = {"mode": "NONE", "allowedFunctionNames": []}
    names = None if config is None else config.get("allowedFunctionNames")
    if isinstance(names, list):
        names = [_SPELLED.get(name, name) for name in names if isinstance(name, str)]
        config = {**config, "allowedFunctionNames": names}
    return verbs.specific(event.name, toolConfig=config) | verbs.show(verdict.message)


def _sampling(config: Any) -> Wire:
    config = config if isinstance(config, dict) else {}
    return {key: config[key] for key in _SAMPLING if key in config}


def _unused(verdict: HostVerdict) -> list[str]:
    """What hooks changed of a request and Gemini CLI does not read."""
    changed = verdict.llm_request or {}
    config = object_or_empty(changed, "config")
    unused = [f"config.{key}" for key in config if key not in _SAMPLING]
    unused += ["toolConfig"] if "toolConfig" in changed else []
    return [f"change: {key} is not used" for key in unused]


def _objects(values: Any) -> list[Wire]:
    values = values if isinstance(values, list) else []
    return [value for value in values if isinstance(value, dict)]


def _aligned(before: list[Wire], after: list[Wire]) -> list[Wire]:
    """The messages of a hook, with a placeholder for each that it left out.

    Gemini CLI puts them in the places of its own one by one, and keeps its own where
    there are fewer of them.
    """
    if len(after) >= len(before):
        return after
    from difflib import SequenceMatcher  # rarely needed

    old, new = ([encode(message) for message in side] for side in (before, after))
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    messages: list[Wire] = []
    for _, a, b, c, d in matcher.get_opcodes():
        removed = before[a:b][d - c :]
        messages += after[c:d]
        messages += [{**text, "content": "[removed by a hook]"} for text in removed]
    return messages


def _response(response: Any, changed: Wire) -> Wire:
    """A response that counts: one without parts would be ignored."""
    original = response if isinstance(response, dict) else {}
    only_text = {"content": {"parts": [changed.get("text")]}}
    candidates = _objects(changed.get("candidates", [only_text])) or [{}]
    first = next(iter(_objects(original.get("candidates"))), {})
    ending: Wire = {key: first[key] for key in _ENDING if key in first}
    candidates = [ending | each | {"content": _content(each)} for each in candidates]
    text = "".join(candidates[0]["content"]["parts"])
    usage = (original | changed).get("usageMetadata")
    wire = {"text": text, "candidates": candidates}
    return wire | ({"usageMetadata": usage} if usage else {})


def _content(candidate: Wire) -> Wire:
    parts = object_or_empty(candidate, "content").get("parts")
    parts = parts if isinstance(parts, list) else []
    texts = [part for part in parts if isinstance(part, str)]
    return {"role": "model", "parts": texts or [""]}


HOST = GeminiHost()
