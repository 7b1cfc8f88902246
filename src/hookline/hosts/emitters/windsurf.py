"""Windsurf's Cascade: exit 2 before something happens is a block.

Written by its documentation alone: it was not run (docs/how-to/hosts/windsurf.md), and
everybody who uses it is told so.
"""

from __future__ import annotations

from hookline.hosts import effects
from hookline.hosts.effects import Effect
from hookline.hosts.host import (
    Host,
    HostFiles,
    Layout,
    mcp_tool,
    object_field,
    text_field,
)
from hookline.hosts.host_verdict import Wire
from hookline.hosts.tools import Tool, ToolCall, read_call
from hookline.protocol.events import HookEventName

_E = HookEventName
_TOOLS = {
    "read_code": Tool.READ,
    "write_code": Tool.REPLACE,
    "run_command": Tool.SHELL,
}
_ACTIONS = (*_TOOLS, "mcp_tool_use")


class WindsurfHost(Host):
    """Windsurf."""

    name = "windsurf"
    title = "Windsurf"
    files = HostFiles(
        project=".windsurf/hooks.json",
        user="~/.codeium/windsurf/hooks.json",
        layout=Layout.ENTRIES,
        timeout_key=None,
        default_ms=0,
        extra={"show_output": True},
        names_event=True,
    )
    places = r"\.windsurf/[^/]+|\.codeium/windsurf/[^/]+"
    events = {
        **{f"pre_{action}": _E.BeforeTool for action in _ACTIONS},
        **{f"post_{action}": _E.AfterTool for action in _ACTIONS},
        "pre_user_prompt": _E.BeforeAgent,
        "post_cascade_response": _E.AfterAgent,
    }
    ignored = frozenset(
        {"post_cascade_response_with_transcript", "post_setup_worktree"}
    )
    spelled = {
        "hook_event_name": "agent_action_name",
        "session_id": "trajectory_id",
        "tool_response": "mcp_result command_output",
        "prompt": "user_prompt",
        "last_assistant_message": "response",
    }
    tools = _TOOLS
    limits = {
        _E.BeforeTool: effects.REFUSALS_ALONE,
        _E.BeforeAgent: effects.ONLY_REFUSED,
        **effects.unheard(effects.NOT_READ, _E.AfterTool),
        **effects.unheard(effects.NOT_READ, _E.AfterAgent, keep=(Effect.STOP,)),
    }

    def plain(self, payload: Wire, name: str) -> Wire:
        """Everything about an event is in one object."""
        if name in self.ignored:
            return payload
        info = object_field(payload, "tool_info")
        plain = payload | info
        if server := text_field(info, "mcp_server_name", default=""):
            tool = text_field(info, "mcp_tool_name")
            plain["mcp_context"] = mcp_tool(server, tool)
        return plain

    def call(self, payload: Wire, name: str) -> ToolCall:
        """What a tool is about to do, or did."""
        info, action = object_field(payload, "tool_info"), name.partition("_")[2]
        if action == "mcp_tool_use":
            tool = text_field(info, "mcp_tool_name")
            return read_call(tool, info.get("mcp_tool_arguments"), {})
        text_field(info, "command_line" if action == "run_command" else "file_path")
        call = read_call(action, info, self.tools)
        edit = call.parts[0][1]
        if action != "write_code" or edit.get("old_string") != "":
            return call
        # An edit of nothing is how a new file is written.
        written = {"path": edit.get("path"), "content": edit.get("new_string")}
        return ToolCall(action, info, ((Tool.WRITE, written),), is_whole=False)


HOST = WindsurfHost()
