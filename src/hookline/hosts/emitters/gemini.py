"""Gemini CLI and llxprt-code: their JSON on a hook's stdin, and the answers they obey.

Observed with Gemini CLI, and read in its source where that is the only way to know
(docs/how-to/hosts/gemini.md). It hides the result of a tool that a hook denies, shows
an answer that a hook denies, and keeps the messages that a hook leaves out: objections,
replacements and placeholders are written instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from hookline.hosts.host import (
    Answer,
    BadInputError,
    Host,
    HostEvent,
    HostName,
    first_text,
    json_answer,
    object_field,
    required,
    text_field,
    tool_result,
)
from hookline.hosts.host_verdict import WITHHELD, Effect, HostVerdict, Limits, Wire
from hookline.hosts.tools import Tool, ToolCall, read_call
from hookline.protocol.events import HookEventName
from hookline.protocol.outputs import BLOCKED_BY_HOOK
from hookline.protocol.values import encode

_E = HookEventName
TOOLS = {
    "grep_search": Tool.GREP,
    "google_web_search": Tool.SEARCH,
    "invoke_agent": Tool.TASK,
}
_SPELLED = {ours: theirs for theirs, ours in TOOLS.items()}
_SUBAGENTS = (_E.SubagentStart, _E.SubagentStop)
_SAMPLING = ("temperature", "maxOutputTokens", "topP", "topK")
_REMOVED = "[removed by a hook]"
_NOT_BEFORE = "lost, unless it comes with a block: say it after the tool"
_PERSON = "shown to the person, not to the model"

LIMITS: Limits = {
    _E.BeforeTool: {
        Effect.CONTEXT: _NOT_BEFORE,
        Effect.MESSAGE: _PERSON,
    },
    _E.AfterTool: {Effect.SUPPRESS: "the result is shown to the person"},
    _E.AfterAgent: {Effect.CLEAR: "only together with a block or a stop"},
    _E.AfterModel: {
        Effect.CHANGE: "the conversation keeps what the model wrote",
        Effect.MESSAGE: _PERSON,
        Effect.SUPPRESS: "the text is shown to the person",
    },
    _E.BeforeToolSelection: {
        Effect.CHANGE: "the model is told, but a call of another tool runs",
        Effect.MESSAGE: _PERSON,
        Effect.STOP: "the model is called without tools",
    },
    _E.SessionEnd: {Effect.MESSAGE: _PERSON},
    _E.Notification: {Effect.MESSAGE: _PERSON},
    _E.PreCompress: {Effect.MESSAGE: _PERSON},
}
_WITH_REFUSAL: Mapping[HookEventName | None, tuple[Effect, ...]] = {
    _E.BeforeTool: (Effect.CONTEXT, Effect.MESSAGE),
    _E.AfterAgent: (Effect.CLEAR,),
}
"""What can be said together with a block or a stop."""


class GeminiHost(Host):
    """Gemini CLI."""

    name = HostName.GEMINI
    title = "Gemini CLI"
    tested: str | None = "0.61.0"
    events: Mapping[str, HookEventName] = {
        one.value: one for one in HookEventName if one not in _SUBAGENTS
    }
    ignored: frozenset[str] = frozenset()
    asks = True
    project_variables: tuple[str, ...] = ("GEMINI_PROJECT_DIR",)
    tools: Mapping[str, str] = TOOLS
    limits = LIMITS

    def event_name(self, given: Wire, argument: str | None) -> str:
        """Its name is in the JSON."""
        return text_field(given, "hook_event_name", default=argument)

    def read(self, given: Wire, name: str) -> HostEvent:
        """Read an event of this name."""
        ours = self.our_event(name)
        is_tool = ours in (_E.BeforeTool, _E.AfterTool)
        call = _call(given, self.tools) if is_tool else None
        return HostEvent(
            name=name,
            event=ours,
            fields={} if ours is None else _fields(ours, given),
            call=call,
            payload=given,
            session_id=first_text(given, "session_id"),
            transcript_path=first_text(given, "transcript_path"),
            cwd=first_text(given, "cwd"),
        )

    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Write what the hooks said."""
        match event.event:
            case _E.BeforeTool:
                wire = _before_tool(verdict)
            case _E.AfterTool:
                wire = _after_tool(verdict)
            case _E.BeforeAgent:
                wire = _refusing(verdict) or _context(verdict.model_text(escaped=False))
            case _E.AfterAgent:
                wire = _after_agent(verdict)
            case _E.BeforeModel:
                wire = _before_model(event, verdict)
            case _E.AfterModel:
                wire = _after_model(event, verdict)
            case _E.BeforeToolSelection:
                wire = _before_tool_selection(verdict)
            case _E.SessionStart:
                wire = _context(verdict.model_text(escaped=False))
            case _:
                wire = _shown(verdict.message)
        return _answer(event, wire, verdict)

    def refuse(self, reason: str) -> Answer:
        """Exit 2 blocks every event of Gemini CLI that can be blocked."""
        return Answer(status=2, stderr=reason)


class LlxprtHost(GeminiHost):
    """llxprt-code, which has Gemini CLI's events."""

    name = HostName.LLXPRT
    title = "llxprt-code"
    tested: str | None = None
    project_variables: tuple[str, ...] = ("LLXPRT_PROJECT_DIR", "GEMINI_PROJECT_DIR")


def _call(given: Wire, tools: Mapping[str, str]) -> ToolCall:
    name = text_field(given, "tool_name")
    call = read_call(name, required(given, "tool_input"), tools)
    (name, shown), *others = call.parts
    if name != Tool.FETCH or others or "url" in shown:
        return call
    # Its addresses are in the prompt: each of them is fetched.
    prompt = shown.get("prompt")
    words = prompt.split() if isinstance(prompt, str) else []
    addresses = dict.fromkeys(word for word in words if "://" in word)
    parts = tuple((Tool.FETCH, {**shown, "url": word}) for word in addresses)
    return (
        ToolCall(call.name, call.tool_input, parts, is_whole=False) if parts else call
    )


def _fields(event: HookEventName, given: Wire) -> Wire:
    match event:
        case _E.BeforeTool | _E.AfterTool:
            return _tool_fields(event, given)
        case _E.BeforeAgent:
            return {"prompt": text_field(given, "prompt")}
        case _E.AfterAgent:
            return _ending(given)
        case _E.BeforeModel | _E.BeforeToolSelection:
            return {"llm_request": object_field(given, "llm_request")}
        case _E.AfterModel:
            request = given.get("llm_request")
            response = object_field(given, "llm_response")
            return {"llm_request": request or {}, "llm_response": response}
        case _E.SessionStart:
            return {"source": text_field(given, "source", default="startup")}
        case _E.SessionEnd:
            return {"reason": text_field(given, "reason", default="other")}
        case _E.Notification:
            return _notification(given)
    return {"trigger": text_field(given, "trigger", default="auto")}


def _tool_fields(event: HookEventName, given: Wire) -> Wire:
    carried = ("mcp_context", "original_request_name")
    fields = {key: given[key] for key in carried if given.get(key) is not None}
    if event is _E.AfterTool:
        if "tool_response" not in given:
            raise BadInputError("tool_response: missing")
        response = given["tool_response"]
        is_ours = isinstance(response, dict) and "llmContent" in response
        fields["tool_response"] = response if is_ours else tool_result(response)
    return fields


def _ending(given: Wire) -> Wire:
    return {
        "prompt": text_field(given, "prompt", default=""),
        "prompt_response": text_field(given, "prompt_response", default=""),
        "stop_hook_active": given.get("stop_hook_active") is True,
    }


def _notification(given: Wire) -> Wire:
    fields: Wire = {"message": text_field(given, "message", default="")}
    kind = text_field(given, "notification_type", default="")
    fields |= {"notification_type": kind} if kind else {}
    details = given.get("details")
    return fields | ({"details": details} if isinstance(details, dict) else {})


def _before_tool(verdict: HostVerdict) -> Wire:
    if refusal := _refusing(verdict):
        return refusal
    said = {} if verdict.tool_input is None else {"tool_input": verdict.tool_input}
    if not verdict.ask:
        return _specific(**said) | _shown(verdict.message)
    # The question is the system message.
    question = _shown(verdict.reason, verdict.message)
    return {
        "decision": "ask",
        "reason": verdict.reason,
        **question,
        **_specific(**said),
    }


def _after_tool(verdict: HostVerdict) -> Wire:
    if verdict.withheld or verdict.stop:
        reason = verdict.refusal(WITHHELD)
        return {"decision": "deny", "reason": reason} | _stopping(verdict)
    return _context(verdict.remark(escaped=False))


def _after_agent(verdict: HostVerdict) -> Wire:
    """A deny goes on with the reason as the next prompt; a stop does not."""
    wire = _stopping(verdict) or _refusing(verdict)
    wire |= _shown("" if "reason" in wire else verdict.message)
    return wire | (_specific(clearContext=True) if verdict.clear_context else {})


def _before_model(event: HostEvent, verdict: HostVerdict) -> Wire:
    if refusal := _refusing(verdict):
        if verdict.llm_response is None:
            return refusal
        return refusal | _specific(llm_response=_response({}, verdict.llm_response))
    request = _request(event.payload.get("llm_request"), verdict)
    return {} if request is None else _specific(llm_request=request)


def _after_model(event: HostEvent, verdict: HostVerdict) -> Wire:
    wire = _stopping(verdict) | _shown(verdict.message)
    if verdict.llm_response is None:
        return wire
    replaced = _response(event.payload.get("llm_response"), verdict.llm_response)
    return wire | _specific(llm_response=replaced)


def _before_tool_selection(verdict: HostVerdict) -> Wire:
    config = verdict.tools
    if verdict.stop:
        config = {"mode": "NONE", "allowedFunctionNames": []}
    if config is None:
        return _shown(verdict.message)
    names = config.get("allowedFunctionNames")
    if isinstance(names, list):
        theirs = [_SPELLED.get(one, one) for one in names if isinstance(one, str)]
        config = {**config, "allowedFunctionNames": theirs}
    return _specific(toolConfig=config) | _shown(verdict.message)


def _request(shown: Any, verdict: HostVerdict) -> Wire | None:
    """The whole request: Gemini CLI forgets what a hook leaves out of ``config``."""
    base = shown if isinstance(shown, dict) else {}
    changed, added = verdict.llm_request, verdict.model_text()
    if changed is None and not added:
        return None
    request = {**base, **(changed or {})}
    request["config"] = _sampling(base.get("config")) | _sampling(request.get("config"))
    before, after = base.get("messages"), request.get("messages")
    messages = _aligned(_objects(before), _objects(after))
    messages += [{"role": "user", "content": added}] if added else []
    known = {key: request[key] for key in ("model", "config") if request.get(key)}
    return known | {"messages": messages}


def _sampling(config: Any) -> Wire:
    found = config if isinstance(config, dict) else {}
    return {key: found[key] for key in _SAMPLING if key in found}


def _objects(found: Any) -> list[Wire]:
    listed = found if isinstance(found, list) else []
    return [one for one in listed if isinstance(one, dict)]


def _aligned(before: list[Wire], after: list[Wire]) -> list[Wire]:
    """The messages of a hook, with a placeholder for each that it left out.

    Gemini CLI puts them in the places of its own one by one, and keeps its own where
    there are fewer of them.
    """
    if len(after) >= len(before):
        return list(after)
    from difflib import SequenceMatcher  # rarely needed

    shown, left = (list(map(encode, one)) for one in (before, after))
    matcher = SequenceMatcher(None, shown, left, autojunk=False)
    found: list[Wire] = []
    for _, a, b, c, d in matcher.get_opcodes():
        missing = before[a:b][d - c :]
        found += after[c:d] + [{**one, "content": _REMOVED} for one in missing]
    return found


def _response(shown: Any, changed: Wire) -> Wire:
    """A response that counts: one without parts would be ignored."""
    base = shown if isinstance(shown, dict) else {}
    given = changed.get("candidates", [_candidate(changed.get("text"))])
    found = _objects(given) or [_candidate("")]
    first = next(iter(_objects(base.get("candidates"))), {})
    ending = {key: first[key] for key in ("finishReason", "index") if key in first}
    candidates = [{**ending, **one, "content": _content(one)} for one in found]
    usage = {**base, **changed}.get("usageMetadata")
    text = "".join(candidates[0]["content"]["parts"])
    response: Wire = {"text": text, "candidates": candidates}
    return response | ({"usageMetadata": usage} if usage else {})


def _candidate(text: Any) -> Wire:
    return {"content": {"parts": [text]}}


def _content(candidate: Wire) -> Wire:
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    listed = parts if isinstance(parts, list) else []
    texts = [one for one in listed if isinstance(one, str)]
    return {"role": "model", "parts": texts or [""]}


def _refusing(verdict: HostVerdict) -> Wire:
    """A deny; a stop takes one with it, for what the host does before it obeys."""
    if not verdict.blocked and not verdict.stop:
        return {}
    reason = verdict.refusal()
    return {"decision": "deny", "reason": reason} | _stopping(verdict)


def _stopping(verdict: HostVerdict) -> Wire:
    if not verdict.stop:
        return {}
    return {"continue": False, "stopReason": verdict.stop_reason or BLOCKED_BY_HOOK}


def _context(text: str) -> Wire:
    """What the model is told; Gemini CLI escapes it itself.

    hosts/README.md#rules 5
    """
    return _specific(additionalContext=text) if text else {}


def _answer(event: HostEvent, wire: Wire, verdict: HostVerdict) -> Answer:
    wire |= _shown(wire.get("systemMessage"), verdict.notice)
    if event.event is _E.BeforeToolSelection and not wire:
        # Any object, even an empty one, replaces the host's own choice of tools.
        return Answer()
    if specific := wire.get("hookSpecificOutput"):
        wire["hookSpecificOutput"] = {"hookEventName": event.name, **specific}
    refused = verdict.blocked or verdict.stop
    unused = _unused(verdict) if event.event is _E.BeforeModel else ()
    answer = json_answer(wire, *(_WITH_REFUSAL.get(event.event, ()) if refused else ()))
    return structs.replace(answer, lost=unused)


def _unused(verdict: HostVerdict) -> tuple[str, ...]:
    """What hooks changed of a request and Gemini CLI does not read."""
    changed = verdict.llm_request or {}
    config = changed.get("config")
    keys = config if isinstance(config, dict) else {}
    unused = [f"config.{key}" for key in keys if key not in _SAMPLING]
    unused += ["toolConfig"] if "toolConfig" in changed else []
    return tuple(f"change: {one} is not used" for one in unused)


def _shown(*texts: str | None) -> Wire:
    found = "\n".join(filter(None, texts))
    return {"systemMessage": found} if found else {}


def _specific(**said: Any) -> Wire:
    return {"hookSpecificOutput": said} if said else {}
