"""GitHub Copilot CLI: its JSON on stdin in two spellings, and the answers it obeys.

Observed with the program (docs/how-to/hosts/copilot.md). Its events have camelCase
names, and the JSON none: the command line says which it is. Under PascalCase names, and
for hooks that it finds in ``.claude/settings.json``, it sends and takes Claude Code's
spelling before a tool; everywhere else its own keys work in both.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Any

from hookline.hosts import effects, verbs
from hookline.hosts.effects import Effect
from hookline.hosts.host import (
    Host,
    HostEvent,
    HostFiles,
    Layout,
    required,
    tool_result,
)
from hookline.hosts.host_verdict import WITHHELD, Answer, HostVerdict, Wire
from hookline.hosts.tools import Tool, ToolCall, tool_names
from hookline.protocol.events import HookEventName
from hookline.protocol.values import decode

from .claude import ClaudeHost

_E = HookEventName
_OWN_NAMES = {"UserPromptSubmit": "userPromptSubmitted", "Stop": "agentStop"}
_FAILURES = frozenset({"postToolUseFailure", "PostToolUseFailure"})
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
MAX_BYTES = 4 * 1024 * 1024
"""How much of the end of the file of a session is read."""


class CopilotHost(Host):
    """GitHub Copilot CLI."""

    name = "copilot"
    title = "GitHub Copilot CLI"
    tested = "1.0.102"
    files = HostFiles(
        project=".github/hooks/hookline.json",
        user="$COPILOT_HOME/hooks/hookline.json",
        homes={"COPILOT_HOME": "~/.copilot"},
        layout=Layout.ENTRIES,
        command_key="bash",
        timeout_key="timeoutSec",
        default_ms=30_000,
        head={"version": 1},
        extra={"type": "command"},
        names_event=True,
        at_root=True,
        readers=("vscode",),
        trusted_in="$COPILOT_HOME/config.json",
        asks_for_trust=True,
        off=(("disableAllHooks",), True),
        off_in=("$COPILOT_HOME/settings.json",),
        next_step="start copilot in the repository and trust the folder if it asks; "
        "'copilot -p' does not ask: --trust-folder trusts it for one run",
    )
    places = r"\.github/(hooks|copilot)/[^/]+|\.copilot/(hooks/)?[^/]+"
    hook_keys = frozenset({"bash", "powershell", "timeoutSec"})
    project_variables = ("COPILOT_PROJECT_DIR", "CLAUDE_PROJECT_DIR")
    events = {
        "preToolUse": _E.BeforeTool,
        "postToolUse": _E.AfterTool,
        "postToolUseFailure": _E.AfterTool,
        "userPromptSubmitted": _E.BeforeAgent,
        "agentStop": _E.AfterAgent,
        "sessionStart": _E.SessionStart,
        "sessionEnd": _E.SessionEnd,
        "notification": _E.Notification,
        "preCompact": _E.PreCompress,
        "subagentStart": _E.SubagentStart,
        "subagentStop": _E.SubagentStop,
    }
    ignored = frozenset(
        {"permissionRequest", "errorOccurred", "userPromptTransformed"}
        | {"preMcpToolCall"}
    )
    # In snake case, as ``plain`` gives them.
    spelled = {
        "hook_event_name": "hook_event_name hookName",
        "tool_input": "tool_args tool_input",
        "agent_type": "agent_type agent_name",
        "last_assistant_message": "response last_assistant_message",
    }
    reasons = {
        **{reason: reason for reason in ("exit", "clear", "logout")},
        **dict.fromkeys(("user_exit", "prompt_input_exit"), "prompt_input_exit"),
        "complete": "exit",
    }
    tools = ClaudeHost.tools | tool_names(
        {
            # The last two type into a shell that runs already.
            Tool.SHELL: "bash powershell write_bash write_powershell",
            Tool.READ: "view",
            Tool.WRITE: "create",
            Tool.REPLACE: "edit",
            Tool.PATCH: "apply_patch",
            Tool.GLOB: "glob",
            Tool.GREP: "grep rg",
            Tool.FETCH: "web_fetch",
            Tool.SEARCH: "web_search",
            Tool.TASK: "task",
        }
    )
    server_tool = re.compile(r"(?s)(.*)-(.*)")  # its own have no hyphen
    limits = {
        _E.BeforeTool: {Effect.STOP: "the call is denied, and the turn goes on"},
        _E.AfterTool: {
            Effect.WITHHOLD: "the error of a tool that failed reaches the model",
            Effect.STOP: "the turn goes on, without the result unless the tool failed",
        },
        _E.SubagentStart: effects.NOT_STARTED,
        **effects.unheard(
            "Copilot has no place for it",
            *(_E.AfterAgent, _E.SubagentStop, _E.SessionEnd),
            *(_E.Notification, _E.PreCompress),
            keep=(Effect.BLOCK, Effect.STOP, Effect.CLEAR),
        ),
    }
    asks = True
    carries = {"modifiedResult": Effect.WITHHOLD}

    def event_name(self, payload: Wire, argument: str | None) -> str:
        """The one on the command line: the JSON has it in one spelling only."""
        if argument is None and "agentName" in payload and "response" not in payload:
            # The start of a subagent is the one event without a name in both.
            argument = "SubagentStart"
        return argument or super().event_name(payload, None)

    def our_event(self, name: str) -> HookEventName | None:
        """Our event, for one in either spelling."""
        return super().our_event(self.file_event(name))

    def file_event(self, name: str) -> str:
        """The camelCase name of an event."""
        return _OWN_NAMES.get(name, name[:1].lower() + name[1:])

    def plain(self, payload: Wire, name: str) -> Wire:
        """The fields in one spelling."""
        return {_CAMEL.sub("_", key).lower(): value for key, value in payload.items()}

    def read(self, payload: Wire, name: str) -> HostEvent:
        """Read an event of this name."""
        is_turn = self.our_event(name) in (_E.BeforeAgent, _E.AfterAgent)
        agents = (payload.get("agentId"), payload.get("agent_id"))
        if is_turn and agents != (None, None):
            # Fired for subagents as well, beside the events of subagents.
            return HostEvent(name=name, event=None, payload=payload)
        return super().read(payload, name)

    def fields(
        self, event: HookEventName, name: str, payload: Wire, call: ToolCall | None
    ) -> Wire:
        """The fields of an event in our spelling."""
        if event is _E.AfterAgent:
            prompt, answer = last_answer(payload.get("transcript_path"))
            payload = payload | {"prompt": prompt, "response": answer}
        fields = super().fields(event, name, payload, call)
        return {"prompt": "", **fields} if event is _E.SubagentStop else fields

    def response(self, tool: str, name: str, payload: Wire) -> Wire:
        """The result of a tool in our shape."""
        if name in _FAILURES:
            return super().response(tool, name, payload)
        result = required(payload, "tool_result", "tool_response")
        for key in ("textResultForLlm", "text_result_for_llm"):
            if isinstance(result, dict) and result.get(key) is not None:
                return tool_result(result[key]) | {"metadata": result}
        return tool_result(result)

    def answer(self, event: HostEvent, verdict: HostVerdict) -> Wire | Answer:
        """What to write."""
        context = {"additionalContext": verdict.model_text()}
        match event.event:
            case _E.BeforeTool:
                is_claude = "tool_name" in event.payload
                changed = "updatedInput" if is_claude else "modifiedArgs"
                wire = verbs.question(verdict) | {changed: verdict.tool_input}
                wire = verbs.deny(verdict.short_refusal()) if verdict.ends else wire
                wire |= context
                wire = {key: wire[key] for key in wire if wire[key] not in (None, "")}
                return verbs.specific(event.name, **wire) if is_claude else wire
            case _E.AfterTool if event.name not in _FAILURES and (
                verdict.withheld or verdict.stop
            ):
                text = verdict.refusal(WITHHELD).strip()
                result = {"resultType": "success", "textResultForLlm": text}
                return {"modifiedResult": result}
            case _E.AfterTool:
                return {"additionalContext": verdict.remark_with_stop()}
            case _E.BeforeAgent if verdict.ends:
                # A block without a reason is ignored by Copilot.
                return verbs.block(verdict.refusal().strip())
            case _E.BeforeAgent | _E.SessionStart:
                return context
            case _E.SubagentStart:
                return {"additionalContext": verdict.subagent_text()}
            # Without an answer the agent stops, which is all that a stop asks.
            case _E.AfterAgent | _E.SubagentStop if verdict.rejects:
                return verbs.block(verdict.refusal().strip())
        return {}

    def refuse(self, reason: str) -> Answer:
        """Copilot ignores the keys of other events: together they block every one."""
        # Under PascalCase names it obeys Claude Code's shape alone.
        claude = verbs.specific("PreToolUse", **verbs.deny(reason))
        return verbs.json_answer(verbs.deny(reason) | claude | verbs.block(reason))


def last_answer(path: Any) -> tuple[str, str]:
    """The prompt of the last turn and the answer to it, empty where there is none.

    Copilot does not tell a hook what the agent answered, but the file of the session
    that it keeps has it.
    """
    end = b""
    # A pipe without a writer would keep us waiting.
    with suppress(OSError, ValueError):
        if isinstance(path, str) and os.path.isfile(path):  # noqa: PTH113
            with open(path, "rb") as file:  # noqa: PTH123
                file.seek(max(0, file.seek(0, os.SEEK_END) - MAX_BYTES))
                end = file.read(MAX_BYTES)
    answer = ""
    for line in reversed(end.split(b"\n")):
        if b'"user.message"' not in line and b'"assistant.message"' not in line:
            continue
        try:
            event = decode(line)
        except ValueError:
            continue
        data = event.get("data") if isinstance(event, dict) else None
        content = data.get("content") if isinstance(data, dict) else None
        # Messages of subagents are in the file as well.
        if not isinstance(content, str) or "agentId" in event:
            continue
        if event.get("type") == "user.message":
            return content, answer
        if event.get("type") == "assistant.message":
            answer = answer or content
    return "", answer


HOST = CopilotHost()
