"""Cline: its JSON on a hook's stdin, and the answers that it obeys.

Observed with the program (docs/how-to/hosts/cline.md). It waits for the answer before
and after a tool only; every other hook is started and left alone. A block ends the
whole run, which is also the only way to keep a tool's result from the model.
"""

from __future__ import annotations

from collections.abc import Mapping

from hookline.hosts.host import (
    Answer,
    Host,
    HostEvent,
    HostFiles,
    Layout,
    first_text,
    json_answer,
    mcp_tool,
    object_field,
    object_or_empty,
    required,
    text_field,
    tool_result,
)
from hookline.hosts.host_verdict import (
    RESULT_SHOWN,
    WITHHELD,
    Effect,
    HostVerdict,
    Limits,
    Wire,
)
from hookline.hosts.tools import Tool, ToolCall, read_call
from hookline.protocol.events import HookEventName

_E = HookEventName
_NAMES = {
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
"""The names in its JSON, and those of its hook files."""
_RECORDS = {"PreToolUse": "tool_call", "PostToolUse": "tool_result"}
_UNHEARD = "Cline does not wait for the answer"
LIMITS: Limits = {
    _E.BeforeTool: {
        Effect.BLOCK: "the whole run ends, and the model is not told why",
        Effect.ASK: "Cline cannot ask for a hook, hooksConfig.onAsk decides",
    },
    _E.AfterTool: {
        Effect.WITHHOLD: "the whole run ends before the model sees the result",
        Effect.SUPPRESS: RESULT_SHOWN,
    },
    _E.AfterAgent: {
        Effect.BLOCK: f"the answer stands: {_UNHEARD}",
        Effect.MESSAGE: _UNHEARD,
        Effect.CLEAR: _UNHEARD,
    },
    _E.SessionStart: {Effect.CONTEXT: _UNHEARD, Effect.MESSAGE: _UNHEARD},
    _E.SessionEnd: {Effect.MESSAGE: _UNHEARD},
}


class ClineHost(Host):
    """Cline."""

    name = "cline"
    files = HostFiles(
        project=".cline/hooks/{event}.sh",
        user="~/.cline/hooks/{event}.sh",
        layout=Layout.SCRIPT,
        timeout_key=None,
        default_ms=120_000,
        names_event=True,
    )
    places = r"\.cline(rules)?/(hooks/)?[^/]+"
    title = "Cline"
    tested = "3.0.65"
    events: Mapping[str, HookEventName] = {
        "PreToolUse": _E.BeforeTool,
        "PostToolUse": _E.AfterTool,
        "TaskStart": _E.SessionStart,
        "TaskResume": _E.SessionStart,
        "TaskComplete": _E.AfterAgent,
        "SessionShutdown": _E.SessionEnd,
    }
    ignored = frozenset({"TaskCancel", "TaskError", "UserPromptSubmit", "PreCompact"})
    limits = LIMITS
    tools: Mapping[str, str] = {
        "run_commands": Tool.SHELL,
        "read_files": Tool.READ,
        "editor": Tool.EDITOR,
        "apply_patch": Tool.PATCH,
        "search_codebase": Tool.GREP,
        "fetch_web_content": Tool.FETCH,
    }
    name_fields = ("hookName",)

    def event_name(self, payload: Wire, argument: str | None) -> str:
        """The name of the hook file."""
        name = super().event_name(payload, argument)
        return _NAMES.get(name, name)

    def session(self, payload: Wire) -> str:
        """The session, of which a task is a part."""
        context = object_or_empty(payload, "sessionContext")
        return first_text(context, "rootSessionId") or first_text(payload, "taskId")

    def folder(self, payload: Wire) -> str:
        """Where the agent works."""
        roots = payload.get("workspaceRoots")
        root = roots[0] if isinstance(roots, list) and roots else None
        return root if isinstance(root, str) else ""

    def call(self, payload: Wire, name: str) -> ToolCall:
        """What a tool is about to do, or did."""
        record = object_field(payload, _RECORDS[name])
        tool_input = required(record, "input")
        return read_call(text_field(record, "name"), tool_input, self.tools)

    def fields(
        self, event: HookEventName, name: str, payload: Wire, call: ToolCall | None
    ) -> Wire:
        """The fields of an event in our spelling."""
        fields = super().fields(event, name, payload, call)
        if isinstance(agent := payload.get("agent_id"), str):
            fields["agent_id"] = agent
        if name == "TaskResume":
            fields["source"] = "resume"
        if call is not None:
            identifier = text_field(payload[_RECORDS[name]], "id", default="")
            fields["tool_use_id"] = identifier
        return fields

    def server(self, tool: str, payload: Wire) -> Wire:
        """Tools of other servers are ``SERVER__TOOL``."""
        server, _, name = tool.partition("__")
        return mcp_tool(server, name) if server and name else {}

    def response(self, tool: str, name: str, payload: Wire) -> Wire:
        """The text of a result that has one for each command or file."""
        record = payload["tool_result"]
        content = record.get("output")
        items = content if isinstance(content, list) else []
        results = [item.get("result") for item in items if isinstance(item, dict)]
        texts = [result for result in results if isinstance(result, str)]
        if texts and len(texts) == len(items):
            content = "\n".join(texts)
        return tool_result(content, text_field(record, "error", default="") or None)

    def ending(self, payload: Wire) -> Wire:
        """The answer at the end of a turn."""
        turn = object_or_empty(payload, "turn")
        answer = text_field(turn, "outputText", default="")
        return {"prompt_response": answer, "stop_hook_active": False}

    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Write what the hooks said."""
        match event.event:
            case _E.BeforeTool if verdict.ends:
                return self.refusal(verdict)
            case _E.BeforeTool:
                changed = {"overrideInput": verdict.tool_input}
                return json_answer(changed | {"context": verdict.model_text()})
            case _E.AfterTool if verdict.withheld or verdict.stop:
                return self.refuse(verdict.refusal(WITHHELD))
            case _E.AfterTool:
                return json_answer({"context": verdict.remark()})
        return json_answer({})

    def refuse(self, reason: str) -> Answer:
        """Cline ignores exit 2."""
        return json_answer({"cancel": True, "errorMessage": reason})


HOST = ClineHost()
