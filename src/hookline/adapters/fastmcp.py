"""FastMCP: hooks around the tools of a server, wherever the client and its model are.

``FastMCP("files", middleware=[HooklineMiddleware(config)])``

The smallest of the adapters, and the one to copy for a framework of your own
(docs/how-to/frameworks/your-own.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, TypeAlias

from hookline.agent import (
    ConfigOrSession,
    Confirm,
    Confirmation,
    HookedRun,
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
        run = await self._run(context.fastmcp_context, tools)
        return [tool for tool in tools if run.problem(tool.name) is None]

    async def on_call_tool(
        self, context: CallContext, call_next: CallNext[Any, Any]
    ) -> ToolResult:
        """Run a tool as its hooks allow."""
        server, message = context.fastmcp_context, context.message
        run = await self._run(server)
        await run.session.warn_ineffective("FastMCP", _INEFFECTIVE)
        server_name = {} if server is None else {"server_name": server.fastmcp.name}
        call = await run.begin_tool(
            message.name,
            message.arguments or {},
            mcp_context={**server_name, "tool_name": message.name},
            **self._asking(context),
        )
        if call.question is not None:
            # The client repeats the request with the answer.
            question = Confirmation(
                tool_name=call.tool_name,
                tool_input=call.tool_input,
                reason=call.question,
            )
            form = mcp.ElicitRequestFormParams(
                message=_question(question), requested_schema=_YES_OR_NO
            )
            asked: mcp.InputRequests = {_key(question): mcp.ElicitRequest(params=form)}
            return InputRequiredToolResult(
                mcp.InputRequiredResult(input_requests=asked)
            )
        if call.refused:
            raise ToolError(call.message)
        message = message.model_copy(update={"arguments": call.tool_input})
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
            await run.session.warn_ineffective("FastMCP", _IN_TASKS)
            return result  # type: ignore[no-any-return] # as the server passes it on
        blocks = [b.model_dump(mode="json", exclude_none=True) for b in result.content]
        structured = result.structured_content
        metadata = None if structured is None else {"structuredContent": structured}
        shown = shown_result(blocks, is_error=result.is_error, metadata=metadata)
        outcome = await call.finish(shown)
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
        return ToolResult(content, structured, result.meta, is_error=result.is_error)

    async def _run(
        self, server: Context | None, tools: Sequence[Tool] | None = None
    ) -> HookedRun:
        """A run with the tools that BeforeToolSelection hooks allow."""
        name = None if server is None else self._session_id(server)
        run = self._sessions.of(name).begin_run()
        if tools is None:
            # Clients list tools once, or never: what they were shown is not a limit.
            if server is None or not await run.session.has_hooks("BeforeToolSelection"):
                return run
            tools = await server.fastmcp.list_tools(run_middleware=False)
        selected = await fire_before_tool_selection_hook(
            run.session, _NO_MODEL, available_tools=[tool.name for tool in tools]
        )
        run.allowed_names = selected.allowed_names
        if selected.should_stop:
            run.stop(selected.stop_reason)
        return run

    def _asking(self, context: CallContext) -> dict[str, Any]:
        """How a person is asked whether a call may run."""
        server, message = context.fastmcp_context, context.message
        request = None if server is None else server.request_context
        if self._confirm is not None or server is None or request is None:
            return {"confirm": self._confirm}
        can = server.session.client_capabilities
        asks = None if can is None else can.elicitation
        # Clients from before there were two kinds declare neither.
        if asks is None or (asks.form is None and asks.url is not None):
            return {"confirm": None}
        if not _is_modern(server):

            async def ask_now(question: Confirmation) -> bool:
                answer = await server.elicit(_question(question), bool)
                return answer.action == "accept" and answer.data is True

            return {"confirm": ask_now}
        answers = message.input_responses or {}
        if any(name.startswith(_KEY) for name in answers):

            def was_accepted(question: Confirmation) -> bool:
                match answers.get(_key(question)):
                    case mcp.ElicitResult(action="accept", content={"value": True}):
                        return True
                return False

            return {"confirm": was_accepted}
        # With answers to the tool's own questions there is no room for ours.
        return {"defer": not answers and message.request_state is None}


def _is_modern(context: Context) -> bool:
    """Whether requests stand alone: no session, and no requests to the client."""
    request = context.request_context
    return request is not None and request.protocol_version in MODERN_PROTOCOL_VERSIONS


_KEY = "hookline-"
_YES_OR_NO: dict[str, Any] = {
    "type": "object",
    "properties": {"value": {"type": "boolean", "title": "Allow this call"}},
    "required": ["value"],
}


def _question(question: Confirmation) -> str:
    tool_input = encode(question.tool_input).decode()
    return f"{question.reason}\n\nAllow {question.tool_name} with {tool_input}?"


def _key(question: Confirmation) -> str:
    """An answer counts for this very question, and no other input of the tool."""
    return _KEY + sha256(encode(question)).hexdigest()
