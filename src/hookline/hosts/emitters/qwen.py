"""Qwen Code: Claude Code's events, Gemini CLI's tools, and fewer answers.

Observed with the program (docs/how-to/hosts/qwen.md). It goes on where a hook of Stop
says ``continue: false``, ignores a changed input and a block after a tool, and runs the
tool if an answer is longer than it reads: what it cannot do is written in the stricter
form, and texts are cut.
"""

from __future__ import annotations

from msgspec import structs

from hookline.hosts import effects, verbs
from hookline.hosts.effects import Effect
from hookline.hosts.host import HostEvent, HostFiles
from hookline.hosts.host_verdict import WITHHELD, Answer, HostVerdict, Wire
from hookline.hosts.tools import Tool, ToolCall, tool_names
from hookline.protocol.events import HookEventName

from .claude import BATCH, FAILURE, ClaudeHost

_E = HookEventName
_AGENT_STARTS = "the subagent starts: block the tool task instead"


class QwenHost(ClaudeHost):
    """Qwen Code."""

    name = "qwen"
    title = "Qwen Code"
    tested = "0.24.4"
    files = HostFiles(
        project=".qwen/settings.json",
        user="~/.qwen/settings.json",
        extra={"name": "hookline", "type": "command"},
        unit_ms=1,
        off=(("disableAllHooks",), True),
        next_step="start qwen and trust the folder if it asks; /hooks shows hooks",
    )
    places = r"\.qwen/[^/]+"
    project_variables = ("QWEN_PROJECT_DIR",)
    ignored = frozenset(
        {
            *("UserPromptExpansion", "MessageDisplay", "PostCompact"),
            *("SessionDelete", "PermissionRequest", "PermissionDenied", "StopFailure"),
            *("TodoCreated", "TodoCompleted", "InstructionsLoaded"),
        }
    )
    tools = tool_names(
        {
            Tool.SHELL: "run_shell_command monitor",
            Tool.READ: "read_file",
            Tool.WRITE: "write_file",
            Tool.REPLACE: "replace edit notebook_edit",
            Tool.GLOB: "glob",
            Tool.GREP: "search_file_content grep_search",
            Tool.LIST: "list_directory",
            Tool.FETCH: "web_fetch",
            Tool.TASK: "agent",
        }
    )
    limits = {
        _E.BeforeTool: {
            Effect.CHANGE: "the tool does not run; the model is told the changed input",
            Effect.CONTEXT: effects.NOT_BEFORE,
            Effect.MESSAGE: effects.TO_PERSON,
            Effect.STOP: "the tool does not run, and the turn goes on",
        },
        _E.AfterTool: {
            Effect.WITHHOLD: "that of a failed tool, with all results of its turn",
            Effect.STOP: "the turn goes on without the result",
        },
        _E.SubagentStart: {
            Effect.BLOCK: _AGENT_STARTS,
            Effect.CONTEXT: "lost",
            Effect.MESSAGE: effects.TO_PERSON,
            Effect.STOP: _AGENT_STARTS,
        },
    }
    carries = {"continue": Effect.WITHHOLD}
    longest_text = 64 * 1024  # it reads 1 MiB of an answer

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

    def answer(self, event: HostEvent, verdict: HostVerdict) -> Wire | Answer:
        """What to write."""
        match event.event:
            case _E.BeforeTool if verdict.ends:
                return verbs.specific(event.name, **verbs.deny(verdict.refusal()))
            case _E.BeforeTool:
                question = verbs.specific(event.name, **verbs.question(verdict))
                return question | verbs.show(verdict.message)
            case _E.AfterTool if event.name == FAILURE:
                return self.after_failure(event, verdict)
            case _E.AfterTool if verdict.withheld or verdict.stop:
                return verbs.end(verdict.refusal(WITHHELD))
            case _E.AfterTool:
                return verbs.specific(event.name, verdict.remark())
            case _E.BeforeAgent if verdict.ends:
                return verbs.block(verdict.refusal())
            case _E.BeforeAgent | _E.SessionStart:
                return verbs.specific(event.name, verdict.model_text())
            case _E.AfterAgent | _E.SubagentStop if verdict.stop:
                # ``continue: false`` would be a block: it ends if nothing is said.
                return verbs.show(verdict.stop_reason, verdict.message)
            case _E.AfterAgent | _E.SubagentStop if verdict.blocked:
                return verbs.block(verdict.refusal())
            case None if event.name == BATCH:
                # It replaces the results of all tools of the turn.
                return self.take_stop(event)
        return verbs.show(verdict.message)


HOST = QwenHost()
