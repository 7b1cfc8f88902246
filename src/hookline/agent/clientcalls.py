"""What a hooked client does before and after a model call, and to its functions."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

from hookline.config import Config
from hookline.log import logger
from hookline.translators.fields import get, put
from hookline.translators.genai import GenAITranslator, GenerateContentRequest

from .applying import with_system_message
from .callstate import CallState
from .chat import ChatReply, Passage, pass_before_hooks
from .decorator import hooked_tool, is_hooked
from .models import AfterModelHookResult, fire_after_model_hook
from .sessions import HookedSession, is_session
from .streaming import HoldBack, StreamMode
from .tools import Confirm


class ClientHooks:
    """The hooks of one client: what its calls ask before and after."""

    def __init__(
        self,
        config: Config,
        *,
        confirm: Confirm | None = None,
        on_stop: Callable[[str], None] | None = None,
        stream_mode: StreamMode | str = StreamMode.BUFFER,
    ) -> None:
        self.config = config
        self.translator = GenAITranslator()
        self.hold_back = HoldBack(config, stream_mode)
        self._confirm = confirm
        self._on_stop = on_stop
        self._has_warned = False

    def new_state(self) -> CallState:
        """Begin a call."""
        return CallState(self._on_stop)

    async def before(
        self, state: CallState, request: GenerateContentRequest
    ) -> Passage:
        """Ask before a model call; after a stop nobody is asked any more."""
        if state.stop_reason is not None:
            over = ChatReply(blocked=True, reason=state.stop_reason)
            return Passage(request=request, refusal=over)
        for note in state.notes:
            request = with_system_message(self.translator, request, note)
        state.notes.clear()
        passage = await pass_before_hooks(self.config, self.translator, request)
        state.allowed_names = passage.allowed_names
        if passage.refusal is not None and passage.refusal.should_stop:
            state.stop(passage.refusal.stop_reason)
        return passage

    async def after(
        self, state: CallState, request: GenerateContentRequest, response: Any
    ) -> AfterModelHookResult:
        """Ask after a model call."""
        if response is None:
            return AfterModelHookResult(response=None)
        after = await fire_after_model_hook(
            self.config, request, response, translator=self.translator
        )
        if after.system_message:
            state.notes.append(after.system_message)
        if after.should_stop:
            state.stop(after.stop_reason)
        return after

    def whole(self, chunks: Sequence[Any]) -> Any:
        """One response of the chunks of a stream; None where that cannot be made."""
        try:
            return self.translator.assemble_response(chunks) if chunks else None
        # Chunks are the SDK's objects: what cannot be put together cannot be shown
        # to hooks, and the stream goes on as it is.
        except Exception as error:  # noqa: BLE001
            logger.warning("AfterModel hooks were not asked: %s", error)
            return None

    def with_hooked_tools(
        self, config: Any, state: CallState, *, for_async: bool
    ) -> Any:
        """The SDK's config with its callables and sessions taken through the hooks."""
        tools = get(config, "tools")
        if not isinstance(tools, list | tuple):
            return config
        if not self._has_warned and any(get(tool, "mcp_servers") for tool in tools):
            self._has_warned = True
            logger.warning(
                "tools of mcp_servers are called without asking the tool hooks: "
                "pass an MCP session to have them asked"
            )
        return put(config, self._hooked(tools, state, for_async), "tools")

    def _hooked(
        self, tools: Sequence[Any], state: CallState, for_async: bool
    ) -> list[Any]:
        return [self._hooked_one(tool, state, for_async) for tool in tools]

    def _hooked_one(self, tool: Any, state: CallState, for_async: bool) -> Any:
        if is_session(tool):
            return HookedSession(tool, self.config, state, self._confirm)
        if not callable(tool) or isinstance(tool, type) or _is_guarded(tool):
            return tool
        function = tool
        if not is_hooked(tool):
            if for_async and not inspect.iscoroutinefunction(tool):
                function = _in_thread(tool)
            decorate = hooked_tool(
                self.config, confirm=self._confirm, on_stop=state.stop
            )
            function = decorate(function)
        return _guarded(function, state)


_GUARDED = "__hookline_guarded__"


def _is_guarded(tool: Any) -> bool:
    return getattr(tool, _GUARDED, False) is True


def _guarded(function: Callable[..., Any], state: CallState) -> Callable[..., Any]:
    """Keep a function from being called once the call is over, or outside the list."""
    name = str(getattr(function, "__name__", type(function).__name__))

    def call(*args: Any, **kwargs: Any) -> Any:
        return state.problem(name) or function(*args, **kwargs)

    async def call_async(*args: Any, **kwargs: Any) -> Any:
        return state.problem(name) or await function(*args, **kwargs)

    is_async = inspect.iscoroutinefunction(function)
    guarded = update_wrapper(call_async if is_async else call, function)
    setattr(guarded, _GUARDED, True)
    return guarded


def _in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        return await asyncio.to_thread(function, *args, **kwargs)

    return update_wrapper(call, function)
