"""Claude Code: its JSON on a hook's stdin, and the answers that it obeys.

Observed with the program (docs/how-to/hosts). A deny goes out with a stop, because
Claude Code runs the tool before it obeys ``continue``; a result of another shape than
the tool's own is ignored, so one that must be withheld and cannot be replaced ends the
run. After a failed tool it obeys neither: the run ends at the PostToolBatch that
follows.
"""

from __future__ import annotations

from collections.abc import Mapping

from hookline.hosts import effects, verbs
from hookline.hosts.conversation import Conversation
from hookline.hosts.effects import Effect, Limits
from hookline.hosts.host import Host, HostEvent, HostFiles, text_field, tool_result
from hookline.hosts.host_verdict import WITHHELD, Answer, HostVerdict, Wire, escape
from hookline.hosts.tools import Tool, tool_names
from hookline.protocol.dialects import (
    CLAUDE_EVENTS,
    CLAUDE_FAILURE_EVENT,
    CLAUDE_MCP_TOOL,
    claude_content,
    claude_replacement,
)
from hookline.protocol.events import HookEventName
from hookline.protocol.outputs import BLOCKED_BY_HOOK

_E = HookEventName
FAILURE = CLAUDE_FAILURE_EVENT
BATCH = "PostToolBatch"
"""Once all tools of a turn have run, and before the model is called."""


class ClaudeHost(Host):
    """Claude Code, and the base of hosts that took over its events and answers."""

    name = "claude"
    title = "Claude Code"
    tested: str | None = "2.1.325"
    files = HostFiles(
        project=".claude/settings.json",
        user="$CLAUDE_CONFIG_DIR/settings.json",
        homes={"CLAUDE_CONFIG_DIR": "~/.claude"},
        extra={"type": "command"},
        closed={"onFailure": "block"},
        readers=("copilot", "vscode", "cursor"),
        off=(("disableAllHooks",), True),
        off_in=(".claude/settings.local.json",),
        next_step="start claude and trust the folder if it asks; /hooks shows hooks",
    )
    places = r"\.claude/[^/]+|\.claude-plugin/[^/]+"
    project_variables: tuple[str, ...] = ("CLAUDE_PROJECT_DIR",)
    events: Mapping[str, HookEventName] = {
        **CLAUDE_EVENTS,
        FAILURE: _E.AfterTool,
        BATCH: _E.AfterTool,
    }
    ignored = frozenset({"MessageDisplay", "PostCompact"})
    tools = tool_names(
        {
            Tool.SHELL: "Bash Monitor PowerShell",
            Tool.READ: "Read",
            Tool.WRITE: "Write",
            Tool.REPLACE: "Edit MultiEdit NotebookEdit",
            Tool.GLOB: "Glob",
            Tool.GREP: "Grep",
            Tool.LIST: "LS",
            Tool.FETCH: "WebFetch",
            Tool.SEARCH: "WebSearch",
            Tool.TASK: "Task Agent",
        }
    )
    server_tool = CLAUDE_MCP_TOOL
    limits: Limits = {
        _E.AfterTool: {
            Effect.WITHHOLD: "the run ends where a result cannot be replaced"
        },
        _E.SubagentStart: effects.NOT_STARTED,
    }
    asks = True
    carries: Mapping[str, Effect] = {"updatedToolOutput": Effect.WITHHOLD}
    shows_notices = True

    def our_event(self, name: str) -> HookEventName | None:
        """Our event; the batch of a turn's tools has none, and says what was kept."""
        event = super().our_event(name)
        return None if name == BATCH else event

    def response(self, tool: str, name: str, payload: Wire) -> Wire:
        """A result in our shape; of a failed tool the error is all there is."""
        if "tool_response" not in payload:
            error = text_field(payload, "error", default="the tool failed")
            return tool_result(error, error)
        response = payload["tool_response"]
        content = claude_content(tool, response)
        result = tool_result(content)
        return result if content is response else result | {"metadata": response}

    def answer(self, event: HostEvent, verdict: HostVerdict) -> Wire | Answer:
        """What to write."""
        context = verdict.model_text()
        match event.event:
            case _E.BeforeTool if verdict.ends:
                denied = verbs.deny(verdict.refusal())
                return verbs.stop(verdict) | verbs.specific(event.name, **denied)
            case _E.BeforeTool:
                values = verbs.question(verdict) | {"updatedInput": verdict.tool_input}
                return verbs.specific(event.name, context, **values)
            case _E.AfterTool if event.name == FAILURE:
                return self.after_failure(event, verdict)
            case _E.AfterTool if verdict.withheld:
                return _withholding(event, verdict)
            case _E.AfterTool:
                reason = verdict.reason or BLOCKED_BY_HOOK
                objection = verbs.block(reason) if verdict.blocked else {}
                return (
                    verbs.stop(verdict)
                    | objection
                    | verbs.specific(event.name, context)
                )
            case _E.BeforeAgent if verdict.ends:
                reason = verdict.reason if verdict.blocked else verdict.stop_reason
                blocked = verbs.block(reason or BLOCKED_BY_HOOK)
                return verbs.stop(verdict) | blocked | verbs.show(verdict.message)
            case _E.BeforeAgent | _E.SessionStart:
                return verbs.specific(event.name, context)
            case _E.SubagentStart:
                return verbs.specific(event.name, verdict.subagent_text())
            # A block goes on with the reason as the next prompt; a stop does not.
            case _E.AfterAgent | _E.SubagentStop if verdict.stop:
                return verbs.stop(verdict) | verbs.show(verdict.message)
            case _E.AfterAgent | _E.SubagentStop if verdict.blocked:
                return verbs.block(verdict.refusal())
            case _E.AfterAgent | _E.SubagentStop | _E.PreCompress:
                return verbs.show(verdict.message) | self._own_answer(event, verdict)
            case None if event.name == BATCH:
                return self.take_stop(event)
        return verbs.show(verdict.message)

    def after_failure(self, event: HostEvent, verdict: HostVerdict) -> Wire:
        """It obeys no stop here; the run ends at the PostToolBatch that follows."""
        if verdict.withheld or verdict.stop:
            self._conversation(event).postpone_stop(verdict.refusal())
        return verbs.specific(event.name, verdict.remark_with_stop())

    def take_stop(self, event: HostEvent) -> Wire:
        """Say a stop that was kept at a failed tool."""
        reason = self._conversation(event).take_stop()
        return {} if reason is None else verbs.end(reason)

    def _conversation(self, event: HostEvent) -> Conversation:
        agent = str(event.fields.get("agent_id", ""))
        return Conversation(self.name, event.session_id, agent)

    def _own_answer(self, event: HostEvent, verdict: HostVerdict) -> Wire:
        """What hooks of its dialect say, and VS Code and Droid do not obey."""
        answers = verdict.host_answers if self.name == "claude" else ()
        blocks = [answer["reason"] for answer in answers if "decision" in answer]
        if blocks:
            return verbs.block("\n".join(dict.fromkeys(blocks)))
        contexts = [escape(answer["additionalContext"]) for answer in answers]
        return verbs.specific(event.name, "\n".join(contexts))


def _withholding(event: HostEvent, verdict: HostVerdict) -> Wire:
    tool = "" if event.call is None else event.call.name
    reason = verdict.refusal(WITHHELD)
    response = event.payload.get("tool_response")
    replacement = claude_replacement(tool, response, reason)
    if replacement is None:
        return verbs.end(f"{tool or 'A tool'}: {reason}")
    return verbs.stop(verdict) | verbs.specific(
        event.name, updatedToolOutput=replacement
    )


HOST = ClaudeHost()
