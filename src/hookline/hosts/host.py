"""A coding agent: how it is read, and the verbs in which most of them are answered.

A host reads its own JSON into a ``HostEvent`` and writes what the hooks said together,
a ``HostVerdict``, in the form that it obeys. Everything between the two is the same for
all hosts (``bridge.py``). What most hosts share is here, in Claude Code's spelling;
what differs is in ``emitters``, one file for each agent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, structs

from hookline.errors import HooklineError
from hookline.protocol.convert import KeyPath
from hookline.protocol.dialects import CLAUDE_NOTIFICATIONS
from hookline.protocol.events import HookEventName
from hookline.protocol.outputs import BLOCKED_BY_HOOK
from hookline.protocol.values import describe, encode, text_of

from .host_verdict import Effect, HostVerdict, Limits, Wire
from .tools import ToolCall, read_call

_E = HookEventName
_SOURCES = {"compact": "compress", "new": "startup", "fork": "resume"}
"""Why a session starts: words of hosts, and ours."""
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")


class Layout(StrEnum):
    """How a file says which command runs on which event."""

    GROUPS = "groups"
    """``{EVENT: [{"hooks": [{"command": ...}]}]}``"""
    ENTRIES = "entries"
    """``{EVENT: [{"command": ...}]}``"""
    TRIGGERS = "triggers"
    """``[{"trigger": EVENT, "action": {"command": ...}}]``"""
    SCRIPT = "script"
    """A file of its own for each event."""
    PLUGIN = "plugin"
    """A program that asks the bridge."""


class HostFiles(Struct, frozen=True, kw_only=True):
    """The files of one host; ``{event}`` in a path stands for its event."""

    project: str
    user: str
    """With ``~``, or with a variable of ``homes``."""
    homes: Mapping[str, str] = {}
    """Variables in ``user``, and what they are where the environment has none.

    Of several folders, with ``:`` between them, the first that exists; else the first.
    """
    layout: Layout = Layout.GROUPS
    keys: KeyPath = ("hooks",)
    """Where the events are in the file."""
    command_key: str = "command"
    timeout_key: str | None = "timeout"
    unit_ms: int = 1000
    default_ms: int = 60_000
    """How long the host waits unless told; 0 is unknown."""
    head: Mapping[str, Any] = {}
    """What a new file needs beside the hooks."""
    extra: Mapping[str, Any] = {}
    """Further keys of a hook."""
    closed: Mapping[str, Any] = {}
    """Further keys that make the host block a tool where it gets no answer.

    Hosts without such a key get a command that ends with a block.
    """
    denies_failures: bool = False
    """Whether any exit status above 1 with a text is a block, at every event."""
    manifest: tuple[str, Mapping[str, Any]] | None = None
    """Another file that the host needs, relative to the first."""
    names_event: bool = False
    """Whether the command names the event, because the host's JSON may not."""
    at_root: bool = False
    """Whether the project's file is in the root of the repository."""
    readers: tuple[str, ...] = ()
    """Other hosts that run the hooks in these files."""
    trusted_in: str = ""
    """The user's file that names the projects whose files the host reads."""
    asks_for_trust: bool = False
    """Whether the host asks its user to trust a project that is not named there."""
    is_strict: bool = False
    """Whether the host ignores a file with comments or trailing commas."""
    off: tuple[KeyPath, bool] | None = None
    """The key that switches all hooks off, and with which value."""
    off_in: tuple[str, ...] = ()
    """Further files that can have this key; one of the user has a variable."""
    approval: str = ""
    """When the host runs the hooks, if that cannot be seen from here."""
    next_step: str = ""
    """What the host wants of its user before it runs the hooks."""

    @property
    def is_own(self) -> bool:
        """Whether the file has Hookline's name, and holds nothing of others."""
        own = self.layout in {Layout.SCRIPT, Layout.PLUGIN}
        return own or "hookline" in self.project


class BadInputError(HooklineError):
    """A host sent something that is not the event it should be."""


class HostEvent(Struct, frozen=True, kw_only=True):
    """One event, read from a host."""

    name: str
    """The host's own name of it."""
    event: HookEventName | None
    """None: the host has this event, and Hookline does not."""
    fields: Wire = {}
    """The fields of the event in our spelling, without the call of a tool."""
    call: ToolCall | None = None
    """Of a tool event: what the tool is about to do, in our spelling."""
    payload: Wire = {}
    """As the host sent it."""
    session_id: str = ""
    transcript_path: str = ""
    cwd: str = ""

    def inputs(self, host: str) -> list[Wire]:
        """The fields of each event to fire: one for each file that a call touches."""
        about: Wire = {"name": host, "event": self.name}
        if self.call is None:
            return [self.fields | {"host": about}]
        about |= {"tool_name": self.call.name, "tool_input": self.call.tool_input}
        return [
            {"tool_name": name, "tool_input": part, **self.fields, "host": about}
            for name, part in self.call.parts
        ]


class Answer(Struct, frozen=True):
    """What a host reads."""

    stdout: bytes = b""
    status: int = 0
    stderr: str = ""
    lost: tuple[str, ...] = ()
    """What this event could not express, beyond the limits of the host."""
    expressed: frozenset[Effect] = frozenset()
    """What the host cannot express on every event, and could on this one."""


class Host:
    """One coding agent."""

    name: str
    """On the command line, and in ``host`` of an event."""
    title: str
    """As people call it."""
    tested: str | None = None
    """The version that was observed; None: written by its documentation alone."""
    events: Mapping[str, HookEventName]
    """Their events, and ours."""
    ignored: frozenset[str] = frozenset()
    """Further events that the host is known to have."""
    limits: Limits
    files: HostFiles
    places: str
    """A pattern for the ends of paths that are files of this agent."""
    asks: bool = False
    """Whether it can ask a person before a tool runs."""
    tools: Mapping[str, str]
    """Their names of tools, and ours."""
    project_variables: tuple[str, ...] = ()
    """What holds the folder where the search for projects starts.

    hosts/README.md#rules 8
    """

    name_fields: tuple[str, ...] = ("hook_event_name",)
    session_fields: tuple[str, ...] = ("session_id",)
    folder_field = "cwd"
    prompt_field = "prompt"
    answer_fields: tuple[str, ...] = ("last_assistant_message",)
    carried: tuple[str, ...] = ()
    """Fields that have the same name and meaning as ours."""
    reasons: Mapping[str, str] = {}
    """Why a session ends; where there are any, other words mean ``other``."""

    def event_name(self, payload: Wire, argument: str | None) -> str:
        """The host's name of an event; raises ``BadInputError``.

        ``argument`` is the one on the command line, for hosts whose JSON has none.
        """
        return text_field(payload, *self.name_fields, default=argument)

    def our_event(self, name: str) -> HookEventName | None:
        """Our event for one of the host's; raises for one that it does not have."""
        event = self.events.get(name)
        if event is None and name not in self.ignored:
            raise BadInputError(f"unknown event {describe(name)}")
        return event

    def file_event(self, name: str) -> str:
        """The name of an event in the host's own files."""
        return name

    def read(self, payload: Wire, name: str) -> HostEvent:
        """Read an event of this name; raises ``BadInputError``."""
        event, call = self.our_event(name), None
        if event in (_E.BeforeTool, _E.AfterTool):
            call = self.call(payload, name)
        fields = {} if event is None else self.fields(event, name, payload, call)
        carried = [key for key in self.carried if payload.get(key) is not None]
        return HostEvent(
            name=name,
            event=event,
            fields={key: payload[key] for key in carried} | fields,
            call=call,
            payload=payload,
            # Nothing odd in these keeps hooks from seeing the event.
            session_id=self.session(payload),
            transcript_path=first_text(payload, "transcript_path"),
            cwd=self.folder(payload),
        )

    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Write what the hooks said; here for a host that knows a block alone."""
        if event.event in (_E.BeforeTool, _E.BeforeAgent) and verdict.ends:
            return self.refusal(verdict)
        return Answer()

    def refuse(self, reason: str) -> Answer:
        """Block an event that could not be read, whichever it is."""
        return Answer(status=2, stderr=reason)

    def refusal(self, verdict: HostVerdict) -> Answer:
        """Block, and say with it what would not reach the model otherwise."""
        answer = self.refuse(verdict.refusal())
        expressed = frozenset({Effect.CONTEXT, Effect.MESSAGE})
        return structs.replace(answer, expressed=expressed)

    def session(self, payload: Wire) -> str:
        """The session that an event belongs to."""
        return first_text(payload, *self.session_fields)

    def folder(self, payload: Wire) -> str:
        """Where the agent works."""
        return first_text(payload, self.folder_field)

    def call(self, payload: Wire, name: str) -> ToolCall:
        """What a tool is about to do, or did."""
        tool = text_field(payload, "tool_name")
        return read_call(tool, required(payload, "tool_input"), self.tools)

    def fields(
        self, event: HookEventName, name: str, payload: Wire, call: ToolCall | None
    ) -> Wire:
        """The fields of an event in our spelling."""
        match event:
            case _E.BeforeTool | _E.AfterTool if call is not None:
                server = self.server(call.name, payload)
                fields = {"mcp_context": server} if server else {}
                if event is _E.AfterTool:
                    fields["tool_response"] = self.response(call.name, name, payload)
                return fields
            case _E.BeforeAgent:
                return {"prompt": text_field(payload, self.prompt_field)}
            case _E.AfterAgent:
                prompt = text_field(payload, "prompt", default="")
                return {"prompt": prompt, **self.ending(payload)}
            case _E.SubagentStart:
                return self.agent(payload)
            case _E.SubagentStop:
                return self.agent(payload) | self.ending(payload)
            case _E.SessionStart:
                source = text_field(payload, "source", default="startup")
                return {"source": _SOURCES.get(source, source)}
            case _E.SessionEnd:
                reason = text_field(payload, "reason", default="other")
                other = "other" if self.reasons else reason
                return {"reason": self.reasons.get(reason, other)}
            case _E.Notification:
                return _notification(payload)
        return {"trigger": text_field(payload, "trigger", default="auto")}

    def server(self, tool: str, payload: Wire) -> Wire:
        """The ``mcp_context`` of a tool of another server; empty for other tools."""
        return {}

    def response(self, tool: str, name: str, payload: Wire) -> Wire:
        """The result of a tool in our shape."""
        return tool_result(payload.get("tool_response", ""))

    def ending(self, payload: Wire) -> Wire:
        """The answer at the end of a turn."""
        answer = text_field(payload, *self.answer_fields, default="")
        is_again = payload.get("stop_hook_active") is True
        return {"prompt_response": answer, "stop_hook_active": is_again}

    def agent(self, payload: Wire) -> Wire:
        """A subagent."""
        kind = text_field(payload, "agent_type", "agent_name", default="")
        identifier = text_field(payload, "agent_id", default="")
        return {"agent_id": identifier, "agent_type": kind}


def _notification(payload: Wire) -> Wire:
    fields: Wire = {"message": text_field(payload, "message", default="")}
    if kind := text_field(payload, "notification_type", default=""):
        fields["notification_type"] = CLAUDE_NOTIFICATIONS.get(kind, kind)
    title, details = payload.get("title"), payload.get("details")
    if isinstance(details, dict) or title:
        fields["details"] = details if isinstance(details, dict) else {"title": title}
    return fields


def lost(
    host: Host, event: HookEventName, verdict: HostVerdict, answer: Answer
) -> list[str]:
    """What a verdict asks and the answer cannot say, and what happens instead."""
    limits = host.limits.get(event, {})
    effects = sorted(verdict.asked() & limits.keys() - answer.expressed)
    losses = [*(f"{effect}: {limits[effect]}" for effect in effects), *answer.lost]
    return [f"{host.title}: {event.value}: {loss}" for loss in losses]


# The verbs: what to put into an answer. A key without a value is left out of it.


def specific(event: HostEvent, context: str = "", **values: Any) -> Wire:
    """What goes beside the common keys; nothing where there are no values."""
    values = {key: value for key, value in values.items() if value is not None}
    values |= {"additionalContext": context} if context else {}
    name = {"hookEventName": event.name}
    return {"hookSpecificOutput": name | values} if values else {}


def deny(event: HostEvent, reason: str, context: str = "") -> Wire:
    """Refuse the call of a tool."""
    decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return specific(event, context, **decision)


def question(verdict: HostVerdict) -> Wire:
    """Let a person decide, if a hook asks for that: values for ``specific``."""
    if not verdict.ask:
        return {}
    reason = verdict.reason or verdict.message
    return {"permissionDecision": "ask", "permissionDecisionReason": reason}


def block(reason: str) -> Wire:
    """Reject a prompt or an answer."""
    return {"decision": "block", "reason": reason}


def end(reason: str) -> Wire:
    """End the run."""
    return {"continue": False, "stopReason": reason}


def stop(verdict: HostVerdict) -> Wire:
    """End the run if a hook asks for that."""
    return end(verdict.stop_reason or BLOCKED_BY_HOOK) if verdict.stop else {}


def show(*texts: str | None) -> Wire:
    """Show texts to the person."""
    message = "\n".join(filter(None, texts))
    return {"systemMessage": message} if message else {}


def with_notice(wire: Wire, verdict: HostVerdict) -> Wire:
    """Show what hooks say to the person alone, after the rest."""
    return wire | show(wire.get("systemMessage"), verdict.notice)


def json_answer(wire: Wire, *expressed: Effect) -> Answer:
    """An answer in JSON, in ASCII because hosts decode their pipes piece by piece.

    An empty object is a value: that of a changed input.
    """
    wire = {key: value for key, value in wire.items() if value not in (None, "")}
    text = encode(wire)
    if not text.isascii():
        text = _BEYOND_ASCII.sub(_as_escapes, text.decode()).encode()
    return Answer(text + b"\n", expressed=frozenset(expressed))


def _as_escapes(characters: re.Match[str]) -> str:
    units = characters[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


# Fields of what a host sends.


def tool_result(content: Any, error: str | None = None) -> Wire:
    """The result of a tool in our shape (protocol.md#events)."""
    result: Wire = {"llmContent": content, "returnDisplay": content}
    return result if error is None else result | {"error": {"message": error}}


def mcp_tool(server: str, tool: str) -> Wire:
    """A tool of another server in our shape."""
    return {"server_name": server, "tool_name": tool}


def object_field(payload: Wire, name: str) -> Wire:
    """A field that is an object; raises if it is missing or something else."""
    value = payload.get(name)
    if isinstance(value, dict):
        return value
    problem = "missing" if value is None else f"expected an object, got {value!r:.60}"
    raise BadInputError(f"{name}: {problem}")


def object_or_empty(payload: Wire, name: str) -> Wire:
    """A field that is an object; empty if it is missing or something else."""
    value = payload.get(name)
    return value if isinstance(value, dict) else {}


def required(payload: Wire, *names: str) -> Any:
    """The first of these fields that is there, null included; raises if none is."""
    for name in names:
        if name in payload:
            return payload[name]
    raise BadInputError(f"{names[0]}: missing")


def text_field(payload: Wire, *names: str, default: str | None = None) -> str:
    """The first of these fields that is there; raises if it is no text."""
    for name in names:
        if (value := payload.get(name)) is not None:
            if isinstance(value, str):
                return value
            raise BadInputError(f"{name}: expected text, got {value!r:.60}")
    if default is None:
        raise BadInputError(f"{names[0]}: missing")
    return default


def first_text(payload: Wire, *names: str) -> str:
    """The first of these fields that says something, as text."""
    values = (payload.get(name) for name in names)
    return next((text_of(value) for value in values if value not in (None, "")), "")
