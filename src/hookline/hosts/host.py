"""A coding agent: its files, how its events are read, and how hooks answer it.

A host reads its own JSON into a ``HostEvent`` and writes what the hooks said together,
a ``HostVerdict``, in the form that it obeys. Everything between the two is the same for
all hosts (``bridge.py``). What is said here is as in Claude Code; what differs is in
``emitters``, one file for each agent.
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
from hookline.protocol.values import describe, text_of

from . import effects, verbs
from .effects import Effect, Limits
from .host_verdict import Answer, HostVerdict, Wire
from .tools import ToolCall, read_call

_E = HookEventName
_SOURCES = {"compact": "compress", "new": "startup", "fork": "resume"}
"""Why a session starts: words of hosts, and ours."""
_CARRIED = (
    *("tool_use_id", "permission_mode", "agent_id", "agent_type", "mcp_context"),
    *("agent_transcript_path", "custom_instructions", "original_request_name"),
)
"""Fields that have the same meaning for us."""
_REFUSABLE = frozenset(
    {*(_E.BeforeTool, _E.BeforeAgent, _E.AfterAgent), _E.SubagentStart, _E.SubagentStop}
)
_FAILURES = frozenset({"PostToolUseFailure", "postToolUseFailure"})


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
        is_program = self.layout in {Layout.SCRIPT, Layout.PLUGIN}
        return is_program or "hookline" in self.project


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


class Host:
    """One coding agent."""

    name: str
    """On the command line, and in ``host`` of an event."""
    title: str
    """As people call it."""
    tested: str | None = None
    """The version that was observed; None: written by its documentation alone."""
    files: HostFiles
    places: str
    """A pattern for the ends of paths that are files of this agent."""
    project_variables: tuple[str, ...] = ()
    """What holds the folder where the search for projects starts.

    hosts/README.md#rules 8
    """

    events: Mapping[str, HookEventName]
    """Their events, and ours."""
    aliases: Mapping[str, str] = {}
    """Other names of these events, in the JSON or in older versions."""
    ignored: frozenset[str] = frozenset()
    """Further events that the host is known to have."""
    unanswered: frozenset[str] = frozenset()
    """Events that the host has and the bridge does not answer."""
    hook_keys: frozenset[str] = frozenset()
    """Keys of a hook in settings that only this agent has."""
    spelled: Mapping[str, str] = {}
    """Fields that Claude Code calls otherwise: the host's names, the first one wins."""
    reasons: Mapping[str, str] = {}
    """Why a session ends; where there are any, other words mean ``other``."""
    tools: Mapping[str, str]
    """Their names of tools, and ours."""
    server_tool: re.Pattern[str] | None = None
    """What tools of other servers are called: the server, and the tool."""

    limits: Limits
    """What cannot be expressed, beyond what no host can (``effects.COMMON_LIMITS``)."""
    asks: bool = False
    """Whether it can ask a person before a tool runs."""
    carries: Mapping[str, Effect] = {}
    """Keys of an answer, and what can be said with them in spite of the limits."""
    shows_notices: bool = False
    """Whether every answer may have a ``systemMessage``."""
    longest_text: int | None = None
    """Longer texts of an answer are cut."""

    def __init__(self) -> None:
        by_event: dict[HookEventName, Mapping[Effect, str]] = {}
        for event in self.events.values():
            common = effects.COMMON_LIMITS.get(event, {})
            texts = {**common, **self.limits.get(event, {})}
            by_event[event] = {
                effect: texts[effect]
                for effect in effects.EFFECTS[event]
                if effect in texts
            }
        self.limits = by_event

    def event_name(self, payload: Wire, argument: str | None) -> str:
        """The host's name of an event; raises ``BadInputError``.

        ``argument`` is the one on the command line, for hosts whose JSON has none.
        """
        name = text_field(payload, *self.names("hook_event_name"), default=argument)
        return self.aliases.get(name, name)

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
        plain = self.plain(payload, name)
        if event in (_E.BeforeTool, _E.AfterTool):
            call = self.call(plain, name)
        fields = {} if event is None else self.fields(event, name, plain, call)
        carried = ((key, self.value(plain, key)) for key in _CARRIED)
        # Nothing odd in the first and the last of these keeps hooks from the event.
        return HostEvent(
            name=name,
            event=event,
            fields={key: value for key, value in carried if value is not None} | fields,
            call=call,
            payload=payload,
            session_id=first_text(plain, *self.names("session_id")),
            transcript_path=first_text(plain, "transcript_path"),
            cwd=self.folder(plain),
        )

    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Write what the hooks said."""
        answer = self.answer(event, verdict)
        expressed: set[Effect] = set()
        if not isinstance(answer, Answer):
            if self.shows_notices:
                answer |= verbs.show(answer.get("systemMessage"), verdict.notice)
            keys = {*answer, *answer.get("hookSpecificOutput", ())}
            expressed = {self.carries[key] for key in self.carries.keys() & keys}
            answer = verbs.json_answer(answer, self.longest_text)
        is_ending = event.event in (_E.AfterAgent, _E.SubagentStop)
        refused = verdict.rejects if is_ending else verdict.ends
        if refused and event.event in _REFUSABLE:
            is_obeyed = Effect.BLOCK not in self.limits.get(event.event, {})
            # The reason of a refusal has the rest with it.
            expressed |= {Effect.CONTEXT, Effect.MESSAGE} if is_obeyed else set()
        return structs.replace(answer, expressed=frozenset(expressed))

    def answer(self, event: HostEvent, verdict: HostVerdict) -> Wire | Answer:
        """What to write; here for a host that knows a block alone."""
        if event.event in (_E.BeforeTool, _E.BeforeAgent) and verdict.ends:
            return self.refuse(verdict.refusal())
        return Answer()

    def refuse(self, reason: str) -> Answer:
        """Block an event, also one that could not be read."""
        return Answer(status=2, stderr=reason)

    def plain(self, payload: Wire, name: str) -> Wire:
        """The fields of an event, all in one object."""
        return payload

    def names(self, field: str) -> list[str]:
        """What the host calls a field."""
        return self.spelled.get(field, field).split()

    def value(self, payload: Wire, field: str, default: Any = None) -> Any:
        """A field, whatever it is."""
        values = (payload[name] for name in self.names(field) if name in payload)
        return next(values, default)

    def text(self, payload: Wire, field: str, default: str | None = None) -> str:
        """A field that is a text; raises if it is something else."""
        return text_field(payload, *self.names(field), default=default)

    def call(self, payload: Wire, name: str) -> ToolCall:
        """What a tool is about to do, or did."""
        tool = self.text(payload, "tool_name")
        tool_input = required(payload, *self.names("tool_input"))
        return read_call(tool, tool_input, self.tools)

    def fields(
        self, event: HookEventName, name: str, payload: Wire, call: ToolCall | None
    ) -> Wire:
        """The fields of an event in our spelling."""
        match event:
            case _E.BeforeTool | _E.AfterTool if call is not None:
                fields = {}
                if self.server_tool and (
                    name_parts := self.server_tool.fullmatch(call.name)
                ):
                    fields["mcp_context"] = mcp_tool(*name_parts.groups())
                if event is _E.AfterTool:
                    fields["tool_response"] = self.response(call.name, name, payload)
                return fields
            case _E.BeforeAgent:
                return {"prompt": self.text(payload, "prompt")}
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

    def response(self, tool: str, name: str, payload: Wire) -> Wire:
        """The result of a tool in our shape."""
        content = self.value(payload, "tool_response", "")
        if name not in _FAILURES:
            return tool_result(content)
        error = self.text(payload, "error", "the tool failed")
        return tool_result(content or error, error)

    def ending(self, payload: Wire) -> Wire:
        """The answer at the end of a turn."""
        answer = self.text(payload, "last_assistant_message", "")
        is_again = payload.get("stop_hook_active") is True
        return {"prompt_response": answer, "stop_hook_active": is_again}

    def agent(self, payload: Wire) -> Wire:
        """A subagent."""
        return {key: self.text(payload, key, "") for key in ("agent_id", "agent_type")}

    def folder(self, payload: Wire) -> str:
        """Where the agent works."""
        roots = payload.get("workspace_roots", payload.get("workspaceRoots"))
        root = roots[0] if isinstance(roots, list) and roots else ""
        cwd = first_text(payload, *self.names("cwd"))
        return cwd or (root if isinstance(root, str) else "")


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


def tool_result(content: Any, error: str | None = None) -> Wire:
    """The result of a tool in our shape (protocol.md#events)."""
    result: Wire = {"llmContent": content, "returnDisplay": content}
    return result if error is None else result | {"error": {"message": error}}


def mcp_tool(server: str | None, tool: str) -> Wire:
    """A tool of another server in our shape."""
    return {"server_name": server, "tool_name": tool} if server else {"tool_name": tool}


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
