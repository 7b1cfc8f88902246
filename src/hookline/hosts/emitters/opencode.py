"""OpenCode: what our plugin for it asks, and the answers that the plugin obeys.

OpenCode runs plugins, not commands. The plugin, which ``hookline install opencode``
writes, hands on each event as one JSON object and applies the keys of the answer; it
takes any other key for a failure. Observed with the program
(docs/how-to/hosts/opencode.md).
"""

from __future__ import annotations

from hookline.hosts import effects, verbs
from hookline.hosts.effects import Effect
from hookline.hosts.host import (
    BadInputError,
    Host,
    HostEvent,
    HostFiles,
    Layout,
    object_field,
    object_or_empty,
    tool_result,
)
from hookline.hosts.host_verdict import WITHHELD, Answer, HostVerdict, Wire
from hookline.hosts.tools import Tool, tool_names
from hookline.protocol.events import HookEventName

_E = HookEventName
_UNHEARD = "OpenCode only reports this event"


class OpenCodeHost(Host):
    """OpenCode."""

    name = "opencode"
    title = "OpenCode"
    tested = "1.18.33"
    files = HostFiles(
        project=".opencode/plugins/hookline.js",
        user="$XDG_CONFIG_HOME/opencode/plugins/hookline.js",
        homes={"XDG_CONFIG_HOME": "~/.config"},
        layout=Layout.PLUGIN,
        unit_ms=1,
        next_step="restart opencode: it loads plugins when it starts",
    )
    places = r"\.opencode/[^/]+|opencode\.jsonc?"
    events = {
        "tool.execute.before": _E.BeforeTool,
        "tool.execute.after": _E.AfterTool,
        "chat.message": _E.BeforeAgent,
        "event.session.created": _E.SessionStart,
        "event.session.idle": _E.AfterAgent,
    }
    spelled = {
        "session_id": "sessionID",
        "tool_name": "tool",
        "tool_input": "args",
        "tool_use_id": "callID",
    }
    tools = tool_names(
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
    limits = {
        _E.BeforeTool: {
            Effect.ASK: "OpenCode cannot ask for a hook, hooksConfig.onAsk decides",
            Effect.STOP: effects.REFUSED_ONLY,
        },
        _E.AfterTool: {
            Effect.STOP: "the reason takes the place of the result, the agent goes on",
        },
        **effects.unheard(
            _UNHEARD, _E.AfterAgent, _E.SessionStart, keep=(Effect.STOP,)
        ),
    }

    def plain(self, payload: Wire, name: str) -> Wire:
        """Of what is only reported, the properties have the session and the folder."""
        properties = object_or_empty(payload, "properties")
        session_id = properties.get("sessionID", payload.get("sessionID"))
        cwd = payload.get("cwd") or object_or_empty(properties, "info").get("directory")
        return payload | {"sessionID": session_id, "cwd": cwd}

    def response(self, tool: str, name: str, payload: Wire) -> Wire:
        """The result of a tool in our shape."""
        output = object_field(payload, "output")
        if "output" not in output:
            raise BadInputError("output.output: missing")
        return tool_result(output["output"]) | {"metadata": output}

    def answer(self, event: HostEvent, verdict: HostVerdict) -> Wire | Answer:
        """What to write."""
        match event.event:
            case _E.BeforeTool | _E.BeforeAgent if verdict.ends:
                return self.refuse(verdict.refusal())
            case _E.BeforeTool:
                context = {"context": verdict.model_text()}
                return {"args": verdict.tool_input} | context
            case _E.BeforeAgent:
                return {"context": verdict.model_text()}
            case _E.AfterTool if verdict.withheld or verdict.stop:
                return {"output": verdict.refusal(WITHHELD)}
            case _E.AfterTool:
                return {"context": verdict.remark()}
        return {}

    def refuse(self, reason: str) -> Answer:
        """The plugin throws, which blocks a call or a prompt."""
        return verbs.json_answer({"block": reason})


HOST = OpenCodeHost()
