"""FastMCP: hooks around the tools of a server, wherever the client and its model are.

``FastMCP("files", middleware=[HooklineMiddleware(config)])``
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, TypeAlias

from hookline.agent import (
    ConfigOrSession,
    Confirm,
    Confirmation,
    HookedRun,
    HookedToolCall,
    ToolOutcome,
    fire_before_tool_selection_hook,
)
from hookline.errors import MissingExtraError
from hookline.protocol.values import encode

from .kit import Sessions, joined, shown_result

try:
    import mcp_types as mcp
    from fastmcp import Context
    from fastmcp.exceptions import ToolError
    from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
    from fastmcp.tools import InputRequiredToolResult, Tool, ToolResult
    from mcp import MCPError
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS
except ImportError as error:
    raise MissingExtraError("fastmcp", "fastmcp") from error

CallContext: TypeAlias = MiddlewareContext[mcp.CallToolRequestParams]
_NO_MODEL: dict[str, Any] = {"model": "", "messages": []}
_QUESTION = "hookline-"
_YES_OR_NO: dict[str, Any] = {
    "type": "object",
    "properties": {"value": {"type": "boolean", "title": "Allow this call"}},
    "required": ["value"],
}
_IN_CLIENT = "the model and its turns are in the client"
_TURNS = ("BeforeModel", "AfterModel", "BeforeAgent", "AfterAgent", "PreCompress")
_NO_SESSION = "not every MCP connection has a session"
_INEFFECTIVE = {
    **dict.fromkeys(_TURNS, _IN_CLIENT),
    **dict.fromkeys(("SessionStart", "SessionEnd"), _NO_SESSION),
    **dict.fromkeys(("SubagentStart", "SubagentStop"), "a server has no subagents"),
}
_IN_TASKS = {"AfterTool": "results of background tasks pass no middleware"}


def mcp_session_id(context: Context) -> str | None:
    """The id of the MCP session; None where the server has one conversation only."""
    # Over stdio each modern request has an id of its own, but there is one client.
    is_alone = context.transport == "stdio" and _is_modern(context)
    return None if context.request_context is None or is_alone else context.session_id


class HooklineMiddleware(Middleware):
    """Passes the tool calls of a server through hooks.

    Of a config each MCP session is one of ours, or what ``session_id`` gives for a
    request; a session is used as it is. ``confirm`` answers the questions of hooks;
    without it the client's user is asked if the client supports elicitation, else
    ``hooksConfig.onAsk`` decides.
    """

    def __init__(
        self,
        config_or_session: ConfigOrSession,
        *,
        confirm: Confirm | None = None,
        session_id: Callable[[Context], str | None] = mcp_session_id,
    ) -> None:
        self._sessions = Sessions(config_or_session)
        self._confirm = confirm
        self._session_id = session_id

    async def on_list_tools(
        self,
        context: MiddlewareContext[mcp.ListToolsRequest],
        call_next: CallNext[mcp.ListToolsRequest, Sequence[Tool]],
    ) -> Sequence[Tool]:
        """Offer the tools that BeforeToolSelection hooks allow."""
        tools = await call_next(context)
        run = self._begin(context.fastmcp_context)
        await _select(run, [tool.name for tool in tools])
        return [tool for tool in tools if run.problem(tool.name) is None]

    async def on_call_tool(
        self, context: CallContext, call_next: CallNext[Any, Any]
    ) -> ToolResult:
        """Run a tool as its hooks allow."""
        call = await self._begin_tool(context)
        if call.question is not None:
            return _ask(call)
        if call.refused:
            raise ToolError(call.message)
        message = context.message.model_copy(update={"arguments": call.tool_input})
        try:
            result = await call_next(context.copy(message=message))
        except Exception as error:
            outcome = await call.finish(error)
            if outcome.is_replaced:
                raise ToolError(outcome.text) from error
            # An error of the protocol has a code that the client acts on.
            if not outcome.additions or isinstance(error, MCPError):
                raise
            raise ToolError(joined([str(error), *outcome.additions])) from error
        if isinstance(result, InputRequiredToolResult):
            return result  # a question of the tool: it runs again with the answer
        if not isinstance(result, ToolResult):
            await self._sessions.default.warn_ineffective("FastMCP", _IN_TASKS)
            return result  # type: ignore[no-any-return] # as the server passes it on
        blocks = [b.model_dump(mode="json", exclude_none=True) for b in result.content]
        structured = result.structured_content
        metadata = None if structured is None else {"structuredContent": structured}
        hooked_result = shown_result(
            blocks, is_error=result.is_error, metadata=metadata
        )
        return _after(result, await call.finish(hooked_result))

    async def _begin_tool(self, context: CallContext) -> HookedToolCall:
        server = context.fastmcp_context
        run = self._begin(server)
        session = run.session
        await session.warn_ineffective("FastMCP", _INEFFECTIVE)
        if server is not None and await session.has_hooks("BeforeToolSelection"):
            # Clients list tools once, or never: what they were shown is not a limit.
            tools = await server.fastmcp.list_tools(run_middleware=False)
            await _select(run, [tool.name for tool in tools])
        name = context.message.name
        where = {} if server is None else {"server_name": server.fastmcp.name}
        return await run.begin_tool(
            name,
            context.message.arguments or {},
            mcp_context={**where, "tool_name": name},
            **self._asking(context),
        )

    def _begin(self, context: Context | None) -> HookedRun:
        name = None if context is None else self._session_id(context)
        return self._sessions.of(name).begin_run()

    def _asking(self, context: CallContext) -> dict[str, Any]:
        """How a person is asked whether a call may run."""
        server, message = context.fastmcp_context, context.message
        if self._confirm is not None or server is None or not _can_ask(server):
            return {"confirm": self._confirm}
        if not _is_modern(server):
            return {"confirm": partial(_is_accepted_now, server)}
        answers = message.input_responses or {}
        if any(name.startswith(_QUESTION) for name in answers):
            return {"confirm": partial(_is_accepted, answers)}
        # With answers to the tool's own questions there is no room for ours.
        return {"defer": not answers and message.request_state is None}


async def _select(run: HookedRun, names: list[str]) -> None:
    """Restrict a run to the tools that BeforeToolSelection hooks allow."""
    selected = await fire_before_tool_selection_hook(
        run.session, _NO_MODEL, available_tools=names
    )
    run.allowed_names = selected.allowed_names
    if selected.should_stop:
        run.stop(selected.stop_reason)


def _is_modern(context: Context) -> bool:
    """Whether requests stand alone: no session, and no requests to the client."""
    request = context.request_context
    return request is not None and request.protocol_version in MODERN_PROTOCOL_VERSIONS


def _can_ask(context: Context) -> bool:
    if context.request_context is None:
        return False
    can = context.session.client_capabilities
    asks = None if can is None else can.elicitation
    # Clients from before there were two kinds declare neither.
    return asks is not None and (asks.form is not None or asks.url is None)


def _question(confirmation: Confirmation) -> str:
    tool_input = encode(confirmation.tool_input).decode()
    return f"{confirmation.reason}\n\nAllow {confirmation.tool_name} with {tool_input}?"


def _key(confirmation: Confirmation) -> str:
    """An answer counts for this very question, and no other input of the tool."""
    return _QUESTION + sha256(encode(confirmation)).hexdigest()


def _ask(call: HookedToolCall) -> InputRequiredToolResult:
    """Answer a request with a question; the client repeats it with the answer."""
    confirmation = Confirmation(
        tool_name=call.tool_name, tool_input=call.tool_input, reason=call.question or ""
    )
    form = mcp.ElicitRequestFormParams(
        message=_question(confirmation), requested_schema=_YES_OR_NO
    )
    questions: mcp.InputRequests = {_key(confirmation): mcp.ElicitRequest(params=form)}
    return InputRequiredToolResult(mcp.InputRequiredResult(input_requests=questions))


def _is_accepted(answers: Mapping[str, Any], confirmation: Confirmation) -> bool:
    answer = answers.get(_key(confirmation))
    if not isinstance(answer, mcp.ElicitResult) or answer.action != "accept":
        return False
    return (answer.content or {}).get("value") is True


async def _is_accepted_now(context: Context, confirmation: Confirmation) -> bool:
    answer = await context.elicit(_question(confirmation), bool)
    return answer.action == "accept" and answer.data is True


def _after(result: ToolResult, outcome: ToolOutcome) -> ToolResult:
    if outcome.is_replaced:
        # An error needs no structured content, which a result may have to have.
        raise ToolError(outcome.text)
    if not outcome.additions and not outcome.suppress_display:
        return result
    added = [mcp.TextContent(type="text", text=text) for text in outcome.additions]
    content = [*result.content, *added]
    if outcome.suppress_display:
        unseen = {"annotations": mcp.Annotations(audience=["assistant"])}
        content = [block.model_copy(update=unseen) for block in content]
    return ToolResult(
        content, result.structured_content, result.meta, is_error=result.is_error
    )
