"""Cline: its JSON on a hook's stdin, and the answers that it obeys.

Observed with the program (docs/how-to/hosts/cline.md). It waits for the answer before
and after a tool only; every other hook is started and left alone. A block ends the
whole run, which is also the only way to keep a tool's result from the model.
"""

from __future__ import annotations

import re

from hookline.hosts import effects, verbs
from hookline.hosts.effects import Effect
from hookline.hosts.host import (
    Host,
    HostEvent,
    HostFiles,
    Layout,
    object_field,
    object_or_empty,
    tool_result,
)
from hookline.hosts.host_verdict import WITHHELD, Answer, HostVerdict, Wire
from hookline.hosts.tools import Tool
from hookline.protocol.events import HookEventName

_E = HookEventName
_RECORDS = {"PreToolUse": "tool_call", "PostToolUse": "tool_result"}
_UNHEARD = "Cline does not wait for the answer"


class ClineHost(Host):
    """Cline."""

    name = "cline"
    title = "Cline"
    tested = "3.0.65"
    files = HostFiles(
        project=".cline/hooks/{event}.sh",
        user="~/.cline/hooks/{event}.sh",
        layout=Layout.SCRIPT,
        timeout_key=None,
        default_ms=120_000,
        names_event=True,
    )
    places = r"\.cline(rules)?/(hooks/)?[^/]+"
    events = {
        "PreToolUse": _E.BeforeTool,
        "PostToolUse": _E.AfterTool,
        "TaskStart": _E.SessionStart,
        "TaskResume": _E.SessionStart,
        "TaskComplete": _E.AfterAgent,
        "SessionShutdown": _E.SessionEnd,
    }
    # The names in its JSON, and those of its hook files.
    aliases = {
        "agent_start": "TaskStart",
        "agent_resume": "TaskResume",
        "agent_abort": "TaskCancel",
        "agent_end": "TaskComplete",
        "agent_error": "TaskError",
        "tool_call": "PreToolUse",
        "tool_result": "PostToolUse",
        "prompt_submit": "UserPromptSubmit",
        "session_shutdown": "SessionShutdown",
    }
    ignored = frozenset({"TaskCancel", "TaskError", "UserPromptSubmit", "PreCompact"})
    spelled = {"hook_event_name": "hookName"}
    tools = {
        "run_commands": Tool.SHELL,
        "read_files": Tool.READ,
        "editor": Tool.EDITOR,
        "apply_patch": Tool.PATCH,
        "search_codebase": Tool.GREP,
        "fetch_web_content": Tool.FETCH,
    }
    server_tool = re.compile(r"(?s)(.+?)__(.+)")
    limits = {
        _E.BeforeTool: {
            Effect.BLOCK: "the whole run ends, and the model is not told why",
            Effect.ASK: "Cline cannot ask for a hook, hooksConfig.onAsk decides",
        },
        _E.AfterTool: {
            Effect.WITHHOLD: "the whole run ends before the model sees the result"
        },
        **effects.unheard(
            _UNHEARD, _E.AfterAgent, _E.SessionStart, _E.SessionEnd, keep=(Effect.STOP,)
        ),
    }

    def plain(self, payload: Wire, name: str) -> Wire:
        """The record of a tool and the turn, with the names of Claude Code."""
        context = object_or_empty(payload, "sessionContext")
        turn = object_or_empty(payload, "turn")
        plain = payload | {
            "session_id": context.get("rootSessionId") or payload.get("taskId"),
            "source": "resume" if name == "TaskResume" else payload.get("source"),
            "last_assistant_message": turn.get("outputText"),
        }
        if name in _RECORDS:
            record = object_field(payload, _RECORDS[name])
            names = {"id": "tool_use_id", "output": "tool_response", "error": "error"}
            names |= {"name": "tool_name", "input": "tool_input"}
            plain |= {ours: record[key] for key, ours in names.items() if key in record}
        return plain

    def response(self, tool: str, name: str, payload: Wire) -> Wire:
        """The text of a result that has one for each command or file."""
        content = payload.get("tool_response")
        items = content if isinstance(content, list) else []
        results = [item.get("result") for item in items if isinstance(item, dict)]
        texts = [result for result in results if isinstance(result, str)]
        if texts and len(texts) == len(items):
            content = "\n".join(texts)
        return tool_result(content, self.text(payload, "error", "") or None)

    def answer(self, event: HostEvent, verdict: HostVerdict) -> Wire | Answer:
        """What to write."""
        match event.event:
            case _E.BeforeTool if verdict.ends:
                return self.refuse(verdict.refusal())
            case _E.BeforeTool:
                context = {"context": verdict.model_text()}
                return {"overrideInput": verdict.tool_input} | context
            case _E.AfterTool if verdict.withheld or verdict.stop:
                return self.refuse(verdict.refusal(WITHHELD))
            case _E.AfterTool:
                return {"context": verdict.remark()}
        return {}

    def refuse(self, reason: str) -> Answer:
        """Cline ignores exit 2."""
        return verbs.json_answer({"cancel": True, "errorMessage": reason})


HOST = ClineHost()
