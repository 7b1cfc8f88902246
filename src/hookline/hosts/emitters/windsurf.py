"""Windsurf's Cascade: exit 2 before something happens is a block.

Written by its documentation alone: it was not run (docs/how-to/hosts/windsurf.md), and
everybody who uses it is told so.
"""

from __future__ import annotations

from collections.abc import Mapping

from hookline.hosts.host import (
    Host,
    HostFiles,
    Layout,
    first_text,
    mcp_tool,
    object_field,
    object_or_empty,
    text_field,
    tool_result,
)
from hookline.hosts.host_verdict import (
    ONLY_REFUSED,
    REFUSALS_ALONE,
    Effect,
    Limits,
    Wire,
    unheard,
)
from hookline.hosts.tools import Tool, ToolCall, read_call
from hookline.protocol.events import HookEventName

_E = HookEventName
_TOOLS = {
    "read_code": Tool.READ,
    "write_code": Tool.REPLACE,
    "run_command": Tool.SHELL,
}
_ACTIONS = (*_TOOLS, "mcp_tool_use")
LIMITS: Limits = {
    _E.BeforeTool: REFUSALS_ALONE,
    _E.BeforeAgent: {Effect.CONTEXT: ONLY_REFUSED, Effect.MESSAGE: ONLY_REFUSED},
    **unheard(_E.AfterTool),
    **unheard(_E.AfterAgent, keep=(Effect.STOP,)),
}


class WindsurfHost(Host):
    """Windsurf."""

    name = "windsurf"
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
    title = "Windsurf"
    events: Mapping[str, HookEventName] = {
        **{f"pre_{action}": _E.BeforeTool for action in _ACTIONS},
        **{f"post_{action}": _E.AfterTool for action in _ACTIONS},
        "pre_user_prompt": _E.BeforeAgent,
        "post_cascade_response": _E.AfterAgent,
    }
    ignored = frozenset(
        {"post_cascade_response_with_transcript", "post_setup_worktree"}
    )
    limits = LIMITS
    tools: Mapping[str, str] = _TOOLS
    name_fields = ("agent_action_name",)
    session_fields = ("trajectory_id",)
    prompt_field = "user_prompt"
    answer_fields = ("response",)

    def folder(self, payload: Wire) -> str:
        """Where the agent works."""
        return first_text(object_or_empty(payload, "tool_info"), "cwd")

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

    def fields(
        self, event: HookEventName, name: str, payload: Wire, call: ToolCall | None
    ) -> Wire:
        """The fields of an event, which are all in one object."""
        info = object_field(payload, "tool_info")
        return super().fields(event, name, info, call)

    def server(self, tool: str, payload: Wire) -> Wire:
        """The server of a tool has a field of its own."""
        server = text_field(payload, "mcp_server_name", default="")
        return mcp_tool(server, tool) if server else {}

    def response(self, tool: str, name: str, payload: Wire) -> Wire:
        """The result of a tool in our shape."""
        content = payload.get("mcp_result", payload.get("command_output", ""))
        return tool_result(content)


HOST = WindsurfHost()
