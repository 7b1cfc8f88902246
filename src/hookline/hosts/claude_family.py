"""VS Code and Droid: hosts with the shape of Claude Code, and fewer answers.

Written by their documentation alone: neither was run (docs/how-to/hosts), and everybody
who uses them is told so.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from hookline.protocol.dialects import CLAUDE_EVENTS
from hookline.protocol.events import HookEventName
from hookline.protocol.outputs import BLOCKED_BY_HOOK

from . import claude
from .host import (
    Answer,
    Effect,
    HostEvent,
    HostName,
    Limits,
    Verdict,
    Wire,
    json_answer,
    text_field,
)
from .tools import (
    DELETE,
    FETCH,
    GLOB,
    GREP,
    LIST,
    PATCH,
    READ,
    REPLACE,
    SHELL,
    TASK,
    WRITE,
    tool_names,
)

_E = HookEventName
_NO_CLEAR = "the context stays as it is"
_ONLY_REFUSED = "the model sees it only with a refusal"
_SHOWN = "the result is shown to the person"

_VSCODE_TOOLS = claude.TOOLS | tool_names(
    {
        SHELL: "run_in_terminal runInTerminal runTerminalCommand send_to_terminal",
        READ: "read_file readFile",
        WRITE: "create_file createFile insert_edit_into_file",
        REPLACE: "replace_string_in_file multi_replace_string_in_file editFiles",
        PATCH: "apply_patch",
        DELETE: "deleteFile",
        GLOB: "file_search",
        GREP: "grep_search",
        LIST: "list_dir",
        FETCH: "fetch_webpage",
        TASK: "runSubagent",
    }
)
_SESSION_ENDS = "the whole session stops"
_PERSON = "shown to the person, not to the model"
_VSCODE_LIMITS: Limits = {
    _E.AfterTool: {
        Effect.BLOCK: _PERSON,
        Effect.CONTEXT: _PERSON,
        Effect.MESSAGE: _PERSON,
        Effect.WITHHOLD: "the whole session stops before the model sees the result",
        Effect.SUPPRESS: _SHOWN,
    },
    _E.BeforeAgent: {
        Effect.BLOCK: _SESSION_ENDS,
        Effect.CONTEXT: _PERSON,
        Effect.MESSAGE: _PERSON,
    },
    _E.AfterAgent: {Effect.CLEAR: _NO_CLEAR},
    _E.SubagentStart: {Effect.BLOCK: _SESSION_ENDS},
    _E.SubagentStop: {Effect.CLEAR: _NO_CLEAR},
}
_VSCODE_EVENTS = {
    name: ours
    for name, ours in CLAUDE_EVENTS.items()
    if ours not in (_E.SessionEnd, _E.Notification)
}


class VSCodeHost(claude.ClaudeHost):
    """The agent of Visual Studio Code."""

    name = HostName.VSCODE
    title = "VS Code"
    tested: str | None = None
    events: Mapping[str, HookEventName] = _VSCODE_EVENTS
    ignored: frozenset[str] = frozenset()
    project_variables: tuple[str, ...] = ()
    tools: Mapping[str, str] = _VSCODE_TOOLS
    limits = _VSCODE_LIMITS

    def event_name(self, given: Wire, argument: str | None) -> str:
        """Its name is in the JSON; Copilot's files call it by another name."""
        name = text_field(given, "hookEventName", "hook_event_name", default=argument)
        return f"{name[:1].upper()}{name[1:]}"

    def read(self, given: Wire, name: str) -> HostEvent:
        """Read an event of this name."""
        session = text_field(given, "sessionId", "session_id", default="")
        shown = {**given, "session_id": session}
        if given.get("source") == "new":
            shown["source"] = "startup"
        return structs.replace(super().read(shown, name), given=given)

    def write(self, event: HostEvent, verdict: Verdict) -> Answer:
        """Write what the hooks said."""
        ends = verdict.blocked or verdict.stopped
        match event.event:
            case _E.AfterTool if verdict.withheld or verdict.stopped:
                return _session_ends(verdict)
            case _E.AfterTool:
                said = verdict.remark(escaped=False)
                shown = filter(None, [said, verdict.notice])
                return json_answer({"systemMessage": "\n".join(shown)})
            case _E.BeforeAgent | _E.SubagentStart if ends:
                return _session_ends(verdict)
            case _E.BeforeAgent:
                said = verdict.told(escaped=False)
                shown = filter(None, [said, verdict.notice])
                return json_answer({"systemMessage": "\n".join(shown)})
            case _E.AfterAgent if verdict.stopped:
                return _session_ends(verdict)
            case _E.AfterAgent if verdict.blocked:
                reason = verdict.refusal() or BLOCKED_BY_HOOK
                block = {"decision": "block", "reason": reason}
                return json_answer(
                    {
                        "hookSpecificOutput": {"hookEventName": event.name, **block},
                        "systemMessage": verdict.message,
                    }
                )
        return super().write(event, verdict)


def _session_ends(verdict: Verdict) -> Answer:
    reason = verdict.refusal() or BLOCKED_BY_HOOK
    return json_answer({"continue": False, "stopReason": reason})


_DROID_TOOLS = claude.TOOLS | tool_names(
    {SHELL: "Execute", WRITE: "Create", PATCH: "ApplyPatch", FETCH: "FetchUrl"}
)
_DROID_EVENTS = {
    name: ours for name, ours in CLAUDE_EVENTS.items() if ours is not _E.SubagentStart
}
_DROID_LIMITS: Limits = {
    _E.BeforeTool: {Effect.CONTEXT: _ONLY_REFUSED, Effect.MESSAGE: _ONLY_REFUSED},
    _E.AfterTool: {
        Effect.WITHHOLD: "the run ends before the model sees the result",
        Effect.SUPPRESS: _SHOWN,
    },
    _E.AfterAgent: {Effect.CLEAR: _NO_CLEAR},
    _E.SubagentStop: {Effect.CLEAR: _NO_CLEAR},
}


class DroidHost(claude.ClaudeHost):
    """Droid, by Factory."""

    name = HostName.DROID
    title = "Droid"
    tested: str | None = None
    events: Mapping[str, HookEventName] = _DROID_EVENTS
    ignored = frozenset({"PermissionRequest"})
    project_variables: tuple[str, ...] = ("FACTORY_PROJECT_DIR",)
    tools: Mapping[str, str] = _DROID_TOOLS
    limits = _DROID_LIMITS

    def write(self, event: HostEvent, verdict: Verdict) -> Answer:
        """Write what the hooks said."""
        if event.event is _E.AfterTool and verdict.withheld:
            return _session_ends(verdict)
        if event.event is not _E.BeforeTool:
            return super().write(event, verdict)
        if verdict.blocked or verdict.stopped:
            told = frozenset({Effect.CONTEXT, Effect.MESSAGE})
            return structs.replace(super().write(event, verdict), expressed=told)
        shown = "\n".join(filter(None, [verdict.message, verdict.notice]))
        verdict = structs.replace(verdict, context="", message="", notice=shown)
        return super().write(event, verdict)
