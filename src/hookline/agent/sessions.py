"""MCP sessions in a google-genai client's tools: their calls obey the hooks too."""

from __future__ import annotations

from typing import Any

from hookline.config import Config

from .callstate import CallState
from .toolresults import ToolResult
from .tools import Confirm, ToolRun


def is_session(tool: Any) -> bool:
    """Tell an MCP session from other tools, without needing the mcp package."""
    return hasattr(tool, "call_tool") and hasattr(tool, "list_tools")


class HookedSession:
    """Stands in for an MCP session; the SDK tells sessions by their class."""

    def __init__(
        self, session: Any, config: Config, state: CallState, confirm: Confirm | None
    ) -> None:
        self._session = session
        self._config = config
        self._state = state
        self._confirm = confirm

    @property  # type: ignore[misc]  # a class as a property is meant here
    def __class__(self) -> type:
        return type(self._session)

    def __deepcopy__(self, memo: dict[int, Any]) -> HookedSession:
        return self  # the SDK copies its config; a connection cannot be copied

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def call_tool(
        self, name: str, arguments: dict[str, Any] | None = None, **more: Any
    ) -> Any:
        """Call a tool of the server's, as its hooks allow."""
        problem = self._state.problem(name)
        if problem is not None:
            return problem
        run = ToolRun(self._config, name, confirm=self._confirm, mcp_context={})
        admission = await run.admit(dict(arguments or {}))
        if admission.refusal is not None:
            return self._told(admission.refusal)
        value = await self._session.call_tool(name, admission.tool_input, **more)
        result = ToolResult(llm_content=_plain(value))
        after = await run.finish(admission, result)
        return value if after.llm_content is result.llm_content else self._told(after)

    def _told(self, result: ToolResult) -> Any:
        if result.stop_reason is not None:
            self._state.stop(result.stop_reason)
        return result.text


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    return value if dump is None else dump(mode="json", exclude_none=True)
