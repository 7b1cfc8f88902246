"""Qwen Code: Claude Code's events, Gemini CLI's tools, and fewer answers.

Observed with the program (docs/how-to/hosts/qwen.md). It goes on where a hook of Stop
says ``continue: false``, ignores a changed input and a block after a tool, and runs the
tool if an answer is longer than it reads: what it cannot do is written in the stricter
form, and texts are cut.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from hookline.hosts.host import (
    Answer,
    HostEvent,
    HostFiles,
    block,
    deny,
    end,
    json_answer,
    question,
    show,
    specific,
    with_notice,
)
from hookline.hosts.host_verdict import (
    NO_CLEAR,
    NOT_BEFORE,
    RESULT_SHOWN,
    TO_PERSON,
    WITHHELD,
    Effect,
    HostVerdict,
    Limits,
    Wire,
)
from hookline.hosts.tools import Tool, ToolCall, tool_names
from hookline.protocol.events import HookEventName

from .claude import BATCH, FAILURE, ClaudeHost

_E = HookEventName
_LONGEST = 64 * 1024
_AGENT_STARTS = "the subagent starts: block the tool task instead"
LIMITS: Limits = {
    _E.BeforeTool: {
        Effect.CHANGE: "the tool does not run; the model is told the changed input",
        Effect.CONTEXT: NOT_BEFORE,
        Effect.MESSAGE: TO_PERSON,
        Effect.STOP: "the tool does not run, and the turn goes on",
    },
    _E.AfterTool: {
        Effect.WITHHOLD: "that of a failed tool, with all results of its turn",
        Effect.SUPPRESS: RESULT_SHOWN,
        Effect.STOP: "the turn goes on without the result",
    },
    _E.AfterAgent: {Effect.CLEAR: NO_CLEAR},
    _E.SessionEnd: {Effect.MESSAGE: TO_PERSON},
    _E.Notification: {Effect.MESSAGE: TO_PERSON},
    _E.PreCompress: {Effect.MESSAGE: TO_PERSON},
    _E.SubagentStart: {
        Effect.BLOCK: _AGENT_STARTS,
        Effect.CONTEXT: "lost",
        Effect.MESSAGE: TO_PERSON,
        Effect.STOP: _AGENT_STARTS,
    },
    _E.SubagentStop: {Effect.CLEAR: NO_CLEAR},
}


class QwenHost(ClaudeHost):
    """Qwen Code."""

    name = "qwen"
    files = HostFiles(
        project=".qwen/settings.json",
        user="~/.qwen/settings.json",
        extra={"name": "hookline", "type": "command"},
        unit_ms=1,
        off=(("disableAllHooks",), True),
        next_step="start qwen and trust the folder if it asks; /hooks shows hooks",
    )
    places = r"\.qwen/[^/]+"
    title = "Qwen Code"
    tested: str | None = "0.24.4"
    ignored = frozenset(
        {
            *("UserPromptExpansion", "MessageDisplay", "PostCompact"),
            *("SessionDelete", "PermissionRequest", "PermissionDenied", "StopFailure"),
            *("TodoCreated", "TodoCompleted", "InstructionsLoaded"),
        }
    )
    tools: Mapping[str, str] = tool_names(
        {
            Tool.REPLACE: "edit notebook_edit",
            Tool.SHELL: "monitor",
            Tool.GREP: "grep_search",
            Tool.TASK: "agent",
        }
    )
    project_variables: tuple[str, ...] = ("QWEN_PROJECT_DIR",)
    limits = LIMITS

    def read(self, payload: Wire, name: str) -> HostEvent:
        """Read an event of this name."""
        event = super().read(payload, name)
        if event.event is _E.BeforeAgent and not event.fields["prompt"]:
            # The result of a tool, and no prompt (hosts/README.md#rules 6).
            return structs.replace(event, event=None)
        return event

    def response(self, tool: str, name: str, payload: Wire) -> Wire:
        """Its own shape of a result is ours."""
        if isinstance(response := payload.get("tool_response"), dict):
            return response
        return super().response(tool, name, payload)

    def fields(
        self, event: HookEventName, name: str, payload: Wire, call: ToolCall | None
    ) -> Wire:
        """Versions without ``prompt_id`` call the first answer a second one."""
        fields = super().fields(event, name, payload, call)
        if event is _E.AfterAgent and "prompt_id" not in payload:
            fields["stop_hook_active"] = False
        return fields

    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Write what the hooks said."""
        expressed: tuple[Effect, ...] = ()
        if event.event is _E.AfterTool and event.name != FAILURE:
            expressed = (Effect.WITHHOLD,)
        match event.event:
            case _E.BeforeTool if verdict.ends:
                wire = deny(event, verdict.refusal())
                expressed = (Effect.CONTEXT, Effect.MESSAGE)
            case _E.BeforeTool:
                wire = specific(event, **question(verdict)) | show(verdict.message)
            case _E.AfterTool if event.name == FAILURE:
                wire = self.after_failure(event, verdict)
            case _E.AfterTool if verdict.withheld or verdict.stop:
                wire = end(verdict.refusal(WITHHELD))
            case _E.AfterTool:
                wire = specific(event, verdict.remark())
            case _E.BeforeAgent if verdict.ends:
                wire = block(verdict.refusal())
            case _E.BeforeAgent | _E.SessionStart:
                wire = specific(event, verdict.model_text())
            case _E.AfterAgent | _E.SubagentStop if verdict.stop:
                # ``continue: false`` would be a block: it ends if nothing is said.
                wire = show(verdict.stop_reason, verdict.message)
            case _E.AfterAgent | _E.SubagentStop if verdict.blocked:
                wire = block(verdict.refusal())
            case None if event.name == BATCH:
                # It replaces the results of all tools of the turn.
                wire = self.take_stop(event)
            case _:
                wire = show(verdict.message)
        return json_answer(_cut(with_notice(wire, verdict)), *expressed)


def _cut(wire: Wire) -> Wire:
    """Keep an answer below the 1 MiB that Qwen Code reads of it."""
    cut = dict(wire)
    for key, value in wire.items():
        if isinstance(value, dict):
            cut[key] = _cut(value)
        elif isinstance(value, str) and len(value) > _LONGEST:
            cut[key] = f"{value[:_LONGEST]} [cut]"
    return cut


HOST = QwenHost()
