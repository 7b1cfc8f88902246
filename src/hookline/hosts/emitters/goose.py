"""Goose, Kiro and Windsurf: hosts that know a block, and little else.

Written by their documentation alone: none of them was run (docs/how-to/hosts), and
everybody who uses them is told so.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from msgspec import structs

from hookline.hosts.host import (
    Answer,
    BadInputError,
    Host,
    HostEvent,
    HostName,
    json_answer,
    object_field,
    text_field,
    tool_result,
)
from hookline.hosts.host_verdict import EFFECTS, Effect, HostVerdict, Limits, Wire
from hookline.hosts.tools import Tool, ToolCall, read_call, tool_names
from hookline.protocol.events import HookEventName

_E = HookEventName
_NO_ASK = "hooks cannot ask here, hooksConfig.onAsk decides"
_NO_CHANGE = "the call is refused, with the input that hooks want"
_ONLY_REFUSED = "the model sees it only with a refusal"
_REFUSED_ONLY = "the call is refused, and the agent goes on"
_UNHEARD = "the answer of a hook is not read here"


def _unheard(*events: HookEventName, keep: tuple[Effect, ...] = ()) -> Limits:
    """Limits of events whose answers are not read at all."""
    return {
        event: {one: _UNHEARD for one in EFFECTS[event] if one not in keep}
        for event in events
    }


_EXIT_STATUS_ONLY: dict[Effect, str] = {
    Effect.ASK: _NO_ASK,
    Effect.CHANGE: _NO_CHANGE,
    Effect.CONTEXT: _ONLY_REFUSED,
    Effect.MESSAGE: _ONLY_REFUSED,
    Effect.STOP: _REFUSED_ONLY,
}
"""Before a tool, in hosts that know a block and nothing else."""


class _PlainHost(Host):
    """What the hosts below share: they block, and little else."""

    name: HostName
    title: str
    tested: str | None = None
    events: Mapping[str, HookEventName]
    ignored: frozenset[str]
    asks = False
    project_variables: tuple[str, ...] = ()
    limits: Limits
    tools: Mapping[str, str]
    name_field: str
    session_field = "session_id"
    folder_field = "cwd"

    def event_name(self, given: Wire, argument: str | None) -> str:
        """Its name is in the JSON."""
        return text_field(given, self.name_field, default=argument)

    def read(self, given: Wire, name: str) -> HostEvent:
        """Read an event of this name."""
        ours = self.our_event(name)
        is_tool = ours in (_E.BeforeTool, _E.AfterTool)
        call = self._call(given, name) if is_tool else None
        return HostEvent(
            name=name,
            event=ours,
            fields={} if ours is None else self._fields(ours, given, call),
            call=call,
            payload=given,
            session_id=text_field(given, self.session_field, default=""),
            cwd=self._folder(given),
        )

    @abstractmethod
    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Write what the hooks said."""

    @abstractmethod
    def refuse(self, reason: str) -> Answer:
        """Block an event."""

    def _refusal(self, verdict: HostVerdict) -> Answer:
        """A block, and with it what would not reach the model otherwise."""
        answer = self.refuse(verdict.refusal())
        told = frozenset({Effect.CONTEXT, Effect.MESSAGE})
        return structs.replace(answer, expressed=told)

    def _folder(self, given: Wire) -> str:
        return text_field(given, self.folder_field, default="")

    def _call(self, given: Wire, name: str) -> ToolCall:
        if "tool_input" not in given:
            raise BadInputError("tool_input: missing")
        tool = text_field(given, "tool_name")
        return read_call(tool, given["tool_input"], self.tools)

    def _fields(self, event: HookEventName, given: Wire, call: ToolCall | None) -> Wire:
        match event:
            case _E.BeforeTool | _E.AfterTool:
                return self._tool_fields(event, given, call)
            case _E.BeforeAgent:
                return {"prompt": self._prompt(given)}
            case _E.AfterAgent:
                answer = {"prompt_response": self._answer(given)}
                return {"prompt": "", **answer, "stop_hook_active": False}
            case _E.SessionStart:
                return {"source": "startup"}
        return {"reason": "other"}

    def _tool_fields(
        self, event: HookEventName, given: Wire, call: ToolCall | None
    ) -> Wire:
        server = None if call is None else self._server(call.name, given)
        fields: Wire = {}
        if server is not None:
            fields["mcp_context"] = {"server_name": server[0], "tool_name": server[1]}
        if event is _E.AfterTool:
            fields["tool_response"] = self._response(given)
        return fields

    def _server(self, tool: str, given: Wire) -> tuple[str, str] | None:
        return None

    def _prompt(self, given: Wire) -> str:
        return text_field(given, "prompt")

    def _answer(self, given: Wire) -> str:
        return text_field(
            *(given, "last_assistant_message", "assistant_response"), default=""
        )

    def _response(self, given: Wire) -> Wire:
        return tool_result(given.get("tool_response", ""))


_GOOSE_TOOLS = tool_names(
    {
        Tool.SHELL: "shell",
        Tool.WRITE: "write",
        Tool.REPLACE: "edit",
        Tool.EDITOR: "text_editor",
    }
    | {Tool.LIST: "tree"}
)


_GOOSE_LIMITS: Limits = {
    _E.BeforeTool: _EXIT_STATUS_ONLY,
    **_unheard(_E.AfterTool, _E.BeforeAgent, _E.SessionStart, _E.SessionEnd),
    **_unheard(_E.AfterAgent, keep=(Effect.BLOCK, Effect.STOP)),
}


class GooseHost(_PlainHost):
    """Goose, by Block: a bare block before a tool and at the end of a turn."""

    name = HostName.GOOSE
    title = "Goose"
    events: Mapping[str, HookEventName] = {
        "PreToolUse": _E.BeforeTool,
        "PostToolUse": _E.AfterTool,
        "PostToolUseFailure": _E.AfterTool,
        "UserPromptSubmit": _E.BeforeAgent,
        "Stop": _E.AfterAgent,
        "SessionStart": _E.SessionStart,
        "SessionEnd": _E.SessionEnd,
    }
    ignored = frozenset(
        {
            *("PreToolUseResult", "BeforeReadFile", "AfterFileEdit"),
            *("BeforeShellExecution", "AfterShellExecution"),
        }
    )
    limits = _GOOSE_LIMITS
    tools: Mapping[str, str] = {
        **{f"developer__{name}": ours for name, ours in _GOOSE_TOOLS.items()},
        **_GOOSE_TOOLS,
    }
    name_field = "event"
    folder_field = "working_dir"

    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Nothing at all where nothing is blocked: ``{}`` counts as a failure."""
        ends = verdict.blocked or verdict.stop
        if event.event is _E.BeforeTool and ends:
            return self._refusal(verdict)
        if event.event is _E.AfterAgent and verdict.blocked and not verdict.stop:
            answer = self.refuse(verdict.refusal())
            return structs.replace(answer, expressed=frozenset({Effect.MESSAGE}))
        return Answer()

    def refuse(self, reason: str) -> Answer:
        """Block a tool, or the end of a turn."""
        return json_answer({"decision": "block", "reason": reason})

    def _tool_fields(
        self, event: HookEventName, given: Wire, call: ToolCall | None
    ) -> Wire:
        identifier = text_field(given, "tool_call_id", default="")
        found: Wire = {"tool_use_id": identifier} if identifier else {}
        return found | super()._tool_fields(event, given, call)

    def _server(self, tool: str, given: Wire) -> tuple[str, str] | None:
        server, mark, rest = tool.partition("__")
        return (server, rest) if mark and server != "developer" else None

    def _prompt(self, given: Wire) -> str:
        return text_field(given, "message")

    def _response(self, given: Wire) -> Wire:
        failed = given.get("event") == "PostToolUseFailure"
        error = text_field(given, "error", default="the tool failed")
        content = given.get("tool_response", given.get("tool_output", ""))
        return tool_result(
            content or (error if failed else ""), error if failed else None
        )


_KIRO_TOOLS = tool_names(
    {
        Tool.SHELL: "execute_bash executeBash shell controlBashProcess",
        Tool.READ: "fs_read fsRead readFile read",
        Tool.EDITOR: "fs_write write",
        Tool.WRITE: "fsWrite",
        Tool.REPLACE: "str_replace strReplace fsAppend",
        Tool.DELETE: "deleteFile",
        Tool.GREP: "grep grepSearch",
        Tool.GLOB: "glob fileSearch",
        Tool.LIST: "listDirectory",
        Tool.FETCH: "web_fetch",
        Tool.SEARCH: "web_search",
        Tool.TASK: "use_subagent invokeSubAgent",
    }
)
_KIRO_NAMES = {
    "agentSpawn": "SessionStart",
    "userPromptSubmit": "UserPromptSubmit",
    "preToolUse": "PreToolUse",
    "postToolUse": "PostToolUse",
    "stop": "Stop",
}
"""The names before version 3, which Amazon Q has too."""


_KIRO_LIMITS: Limits = {
    _E.BeforeTool: _EXIT_STATUS_ONLY,
    **_unheard(_E.AfterTool),
    **_unheard(_E.AfterAgent, keep=(Effect.STOP,)),
}


class KiroHost(_PlainHost):
    """Kiro, and the Amazon Q CLI that it comes from."""

    name = HostName.KIRO
    title = "Kiro"
    events: Mapping[str, HookEventName] = {
        "PreToolUse": _E.BeforeTool,
        "PostToolUse": _E.AfterTool,
        "UserPromptSubmit": _E.BeforeAgent,
        "Stop": _E.AfterAgent,
        "SessionStart": _E.SessionStart,
    }
    ignored = frozenset(
        {
            *("PreTaskExec", "PostTaskExec", "Manual"),
            *("PostFileCreate", "PostFileSave", "PostFileDelete"),
        }
    )
    limits = _KIRO_LIMITS
    tools: Mapping[str, str] = _KIRO_TOOLS
    name_field = "hook_event_name"

    def event_name(self, given: Wire, argument: str | None) -> str:
        """The name since version 3."""
        name = super().event_name(given, argument)
        return _KIRO_NAMES.get(name, name)

    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Exit 2 is a block; what a hook prints is context of a prompt or a session."""
        ends = verdict.blocked or verdict.stop
        if event.event in (_E.BeforeTool, _E.BeforeAgent) and ends:
            return self._refusal(verdict)
        if event.event in (_E.BeforeAgent, _E.SessionStart) and verdict.model_text():
            return Answer(f"{verdict.model_text()}\n".encode(errors="replace"))
        return Answer()

    def refuse(self, reason: str) -> Answer:
        """Kiro hands standard error to the model."""
        return Answer(status=2, stderr=reason)

    def _server(self, tool: str, given: Wire) -> tuple[str, str] | None:
        server, mark, rest = tool.removeprefix("@").partition("/")
        return (server, rest) if mark and tool.startswith("@") else None


_WINDSURF_TOOLS = {
    "read_code": Tool.READ,
    "write_code": Tool.REPLACE,
    "run_command": Tool.SHELL,
}
_WINDSURF_ACTIONS = (*_WINDSURF_TOOLS, "mcp_tool_use")


_WINDSURF_LIMITS: Limits = {
    _E.BeforeTool: _EXIT_STATUS_ONLY,
    _E.BeforeAgent: {Effect.CONTEXT: _ONLY_REFUSED, Effect.MESSAGE: _ONLY_REFUSED},
    **_unheard(_E.AfterTool),
    **_unheard(_E.AfterAgent, keep=(Effect.STOP,)),
}


class WindsurfHost(_PlainHost):
    """Windsurf's Cascade: exit 2 before something happens."""

    name = HostName.WINDSURF
    title = "Windsurf"
    events: Mapping[str, HookEventName] = {
        **{f"pre_{action}": _E.BeforeTool for action in _WINDSURF_ACTIONS},
        **{f"post_{action}": _E.AfterTool for action in _WINDSURF_ACTIONS},
        "pre_user_prompt": _E.BeforeAgent,
        "post_cascade_response": _E.AfterAgent,
    }
    ignored = frozenset(
        {"post_cascade_response_with_transcript", "post_setup_worktree"}
    )
    limits = _WINDSURF_LIMITS
    tools: Mapping[str, str] = _WINDSURF_TOOLS
    name_field = "agent_action_name"
    session_field = "trajectory_id"

    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Exit 2 is a block; nothing else is read."""
        ends = verdict.blocked or verdict.stop
        if event.event in (_E.BeforeTool, _E.BeforeAgent) and ends:
            return self._refusal(verdict)
        return Answer()

    def refuse(self, reason: str) -> Answer:
        """Windsurf hands standard error to the model."""
        return Answer(status=2, stderr=reason)

    def _folder(self, given: Wire) -> str:
        about = given.get("tool_info")
        return text_field(about, "cwd", default="") if isinstance(about, dict) else ""

    def _call(self, given: Wire, name: str) -> ToolCall:
        about, action = object_field(given, "tool_info"), name.partition("_")[2]
        if action == "mcp_tool_use":
            tool = text_field(about, "mcp_tool_name")
            return read_call(tool, about.get("mcp_tool_arguments"), {})
        text_field(about, "command_line" if action == "run_command" else "file_path")
        call = read_call(action, about, self.tools)
        shown = call.parts[0][1]
        if action != "write_code" or shown.get("old_string") != "":
            return call
        # An edit of nothing is how a new file is written.
        written = {"path": shown.get("path"), "content": shown.get("new_string")}
        return ToolCall(action, about, ((Tool.WRITE, written),), is_whole=False)

    def _server(self, tool: str, given: Wire) -> tuple[str, str] | None:
        about = given["tool_info"]
        server = text_field(about, "mcp_server_name", default="")
        return (server, tool) if server else None

    def _prompt(self, given: Wire) -> str:
        return text_field(object_field(given, "tool_info"), "user_prompt")

    def _answer(self, given: Wire) -> str:
        return text_field(object_field(given, "tool_info"), "response", default="")

    def _response(self, given: Wire) -> Wire:
        about = given["tool_info"]
        return tool_result(about.get("mcp_result", about.get("command_output", "")))
