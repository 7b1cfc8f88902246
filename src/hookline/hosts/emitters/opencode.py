"""OpenCode: what our plugin for it asks, and the answers that the plugin obeys.

OpenCode runs plugins, not commands. The plugin, which ``hookline install opencode``
writes, hands on each event as one JSON object and applies the keys of the answer; it
takes any other key for a failure. Observed with the program
(docs/how-to/hosts/opencode.md).
"""

from __future__ import annotations

from collections.abc import Mapping

from hookline.hosts.host import (
    Answer,
    BadInputError,
    Host,
    HostEvent,
    HostFiles,
    Layout,
    first_text,
    json_answer,
    object_field,
    object_or_empty,
    text_field,
    tool_result,
)
from hookline.hosts.host_verdict import (
    REFUSED_ONLY,
    RESULT_SHOWN,
    WITHHELD,
    Effect,
    HostVerdict,
    Limits,
    Wire,
)
from hookline.hosts.tools import Tool, ToolCall, read_call, tool_names
from hookline.protocol.events import HookEventName

_E = HookEventName
_UNHEARD = "OpenCode only reports this event"
LIMITS: Limits = {
    _E.BeforeTool: {
        Effect.ASK: "OpenCode cannot ask for a hook, hooksConfig.onAsk decides",
        Effect.STOP: REFUSED_ONLY,
    },
    _E.AfterTool: {
        Effect.SUPPRESS: RESULT_SHOWN,
        Effect.STOP: "the reason takes the place of the result, the agent goes on",
    },
    _E.AfterAgent: {
        Effect.BLOCK: f"the answer stands: {_UNHEARD}",
        Effect.MESSAGE: _UNHEARD,
        Effect.CLEAR: _UNHEARD,
    },
    _E.SessionStart: {Effect.CONTEXT: _UNHEARD, Effect.MESSAGE: _UNHEARD},
}


class OpenCodeHost(Host):
    """OpenCode."""

    name = "opencode"
    files = HostFiles(
        project=".opencode/plugins/hookline.js",
        user="$XDG_CONFIG_HOME/opencode/plugins/hookline.js",
        homes={"XDG_CONFIG_HOME": "~/.config"},
        layout=Layout.PLUGIN,
        unit_ms=1,
        next_step="restart opencode: it loads plugins when it starts",
    )
    places = r"\.opencode/[^/]+|opencode\.jsonc?"
    title = "OpenCode"
    tested = "1.18.33"
    events: Mapping[str, HookEventName] = {
        "tool.execute.before": _E.BeforeTool,
        "tool.execute.after": _E.AfterTool,
        "chat.message": _E.BeforeAgent,
        "event.session.created": _E.SessionStart,
        "event.session.idle": _E.AfterAgent,
    }
    limits = LIMITS
    tools: Mapping[str, str] = tool_names(
        {
            Tool.SHELL: "bash",
            Tool.READ: "read",
            Tool.WRITE: "write",
            Tool.REPLACE: "edit multiedit",
            Tool.PATCH: "patch apply_patch",
            Tool.GLOB: "glob",
            Tool.GREP: "grep",
            Tool.LIST: "list",
            Tool.FETCH: "webfetch",
            Tool.SEARCH: "websearch",
            Tool.TASK: "task",
        }
    )

    def session(self, payload: Wire) -> str:
        """The session, which is a property of what is only reported."""
        properties = object_or_empty(payload, "properties")
        return first_text(payload | properties, "sessionID")

    def folder(self, payload: Wire) -> str:
        """Where the agent works."""
        info = object_or_empty(object_or_empty(payload, "properties"), "info")
        return first_text(payload, "cwd") or first_text(info, "directory")

    def call(self, payload: Wire, name: str) -> ToolCall:
        """What a tool is about to do, or did."""
        tool, args = text_field(payload, "tool"), object_field(payload, "args")
        return read_call(tool, args, self.tools)

    def fields(
        self, event: HookEventName, name: str, payload: Wire, call: ToolCall | None
    ) -> Wire:
        """The fields of an event in our spelling."""
        fields = super().fields(event, name, payload, call)
        if call is not None:
            fields["tool_use_id"] = text_field(payload, "callID", default="")
        return fields

    def response(self, tool: str, name: str, payload: Wire) -> Wire:
        """The result of a tool in our shape."""
        output = object_field(payload, "output")
        if "output" not in output:
            raise BadInputError("output.output: missing")
        return tool_result(output["output"]) | {"metadata": output}

    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Write what the hooks said."""
        match event.event:
            case _E.BeforeTool | _E.BeforeAgent if verdict.ends:
                return self.refusal(verdict)
            case _E.BeforeTool:
                args = {"args": verdict.tool_input}
                return json_answer(args | {"context": verdict.model_text()})
            case _E.BeforeAgent:
                return json_answer({"context": verdict.model_text()})
            case _E.AfterTool if verdict.withheld or verdict.stop:
                return json_answer({"output": verdict.refusal(WITHHELD)})
            case _E.AfterTool:
                return json_answer({"context": verdict.remark()})
        return json_answer({})

    def refuse(self, reason: str) -> Answer:
        """The plugin throws, which blocks a call or a prompt."""
        return json_answer({"block": reason})


HOST = OpenCodeHost()
