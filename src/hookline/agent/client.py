"""``hooked(client, config)``: a google-genai client whose calls obey hooks."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, cast

from google.genai.chats import AsyncChat, AsyncChats, Chat, Chats

from hookline.config import Config
from hookline.errors import MissingExtraError
from hookline.log import logger
from hookline.translators.genai import GenAITranslator, GenerateContentRequest
from hookline.translators.sdk_objects import get, put

from .chat import ChatReply, HoldBack, Passage, StreamMode, pass_before_hooks
from .decorator import hooked_tool, is_hooked, run_sync
from .model_calls import (
    AfterModelHookResult,
    fire_after_model_hook,
    with_system_message,
)
from .tool_calls import Confirm, ToolResult, ToolRun

if TYPE_CHECKING:
    from google.genai import Client


class CallState:
    """Of one call: who may still be called, and whether it is over."""

    def __init__(self, on_stop: Callable[[str], None] | None = None) -> None:
        self._on_stop = on_stop
        self.stop_reason: str | None = None
        self.allowed_names: frozenset[str] | None = None
        self.notes: list[str] = []

    def stop(self, reason: str | None) -> None:
        """Let nothing more of this call happen."""
        if self.stop_reason is None:
            self.stop_reason = reason or "Stopped by hook"
            if self._on_stop is not None:
                self._on_stop(self.stop_reason)

    def problem(self, name: str) -> str | None:
        """Why a function must not be called now."""
        if self.stop_reason is not None:
            return f"Not run: {self.stop_reason}"
        if self.allowed_names is not None and name not in self.allowed_names:
            left = ", ".join(sorted(self.allowed_names)) or "none"
            return f"Tool {name!r} is not allowed now (allowed: {left})"
        return None


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


try:
    from google.genai import types
    from google.genai.models import AsyncModels, Models
except ImportError as error:
    raise MissingExtraError("genai", "google-genai") from error

# Hooks that the SDK does not reach would be worse than none.
_SEAMS = (
    "_generate_content_with_continuation",
    "_generate_content_stream_with_continuation",
)
if not all(hasattr(kind, name) for kind in (Models, AsyncModels) for name in _SEAMS):
    raise MissingExtraError("genai", "google-genai 3.1 or later")


class HookedModels(Models):
    """``client.models``; a call in progress has a state."""

    def __init__(
        self, api_client: Any, hooks: ClientHooks, state: CallState | None = None
    ) -> None:
        super().__init__(api_client)
        self.hooks = hooks
        self._state = state or hooks.new_state()
        self._in_call = state is not None

    def in_call(self, state: CallState) -> HookedModels:
        """The same, for one call."""
        return HookedModels(self._api_client, self.hooks, state)

    def generate_content(
        self, *, model: str, contents: Any, config: Any = None
    ) -> types.GenerateContentResponse:
        """Generate through the hooks."""
        if not self._in_call:
            call = self.in_call(self.hooks.new_state())
            return call.generate_content(model=model, contents=contents, config=config)
        tools = self.hooks.with_hooked_tools(config, self._state, for_async=False)
        return super().generate_content(model=model, contents=contents, config=tools)

    def generate_content_stream(
        self, *, model: str, contents: Any, config: Any = None
    ) -> Iterator[types.GenerateContentResponse]:
        """Generate through the hooks, in chunks."""
        if not self._in_call:
            call = self.in_call(self.hooks.new_state())
            return call.generate_content_stream(
                model=model, contents=contents, config=config
            )
        tools = self.hooks.with_hooked_tools(config, self._state, for_async=False)
        return super().generate_content_stream(
            model=model, contents=contents, config=tools
        )

    def _generate_content_with_continuation(
        self, *, model: str, contents: Any, config: Any = None
    ) -> types.GenerateContentResponse:
        passage = self._before(model, contents, config)
        if passage.refusal is not None:
            return _refused(passage.refusal)
        request = passage.request
        response = super()._generate_content_with_continuation(
            model=request.model, contents=request.contents, config=request.config
        )
        after = self._after(request, response)
        return cast("types.GenerateContentResponse", after.response)

    def _generate_content_stream_with_continuation(
        self, *, model: str, contents: Any, config: Any = None
    ) -> Iterator[types.GenerateContentResponse]:
        passage = self._before(model, contents, config)
        if passage.refusal is not None:
            yield _refused(passage.refusal)
            return
        request = passage.request
        held = run_sync(self.hooks.config, self.hooks.hold_back.is_due())
        chunks = []
        for chunk in super()._generate_content_stream_with_continuation(
            model=request.model, contents=request.contents, config=request.config
        ):
            chunks.append(chunk)
            if not held:
                yield chunk
        whole = self.hooks.whole(chunks)
        after = self._after(request, whole)
        if held:
            yield from chunks if after.response is whole else [after.response]

    def _before(self, model: str, contents: Any, config: Any) -> Passage:
        request = GenerateContentRequest(model, contents, config)
        return run_sync(self.hooks.config, self.hooks.before(self._state, request))

    def _after(
        self, request: GenerateContentRequest, response: Any
    ) -> AfterModelHookResult:
        after = self.hooks.after(self._state, request, response)
        return run_sync(self.hooks.config, after)


class HookedAsyncModels(AsyncModels):
    """``client.aio.models``; a call in progress has a state."""

    def __init__(
        self, api_client: Any, hooks: ClientHooks, state: CallState | None = None
    ) -> None:
        super().__init__(api_client)
        self.hooks = hooks
        self._state = state or hooks.new_state()
        self._in_call = state is not None

    def in_call(self, state: CallState) -> HookedAsyncModels:
        """The same, for one call."""
        return HookedAsyncModels(self._api_client, self.hooks, state)

    async def generate_content(
        self, *, model: str, contents: Any, config: Any = None
    ) -> types.GenerateContentResponse:
        """Generate through the hooks."""
        if not self._in_call:
            call = self.in_call(self.hooks.new_state())
            return await call.generate_content(
                model=model, contents=contents, config=config
            )
        tools = self.hooks.with_hooked_tools(config, self._state, for_async=True)
        return await super().generate_content(
            model=model, contents=contents, config=tools
        )

    async def generate_content_stream(
        self, *, model: str, contents: Any, config: Any = None
    ) -> AsyncIterator[types.GenerateContentResponse]:
        """Generate through the hooks, in chunks."""
        if not self._in_call:
            call = self.in_call(self.hooks.new_state())
            return await call.generate_content_stream(
                model=model, contents=contents, config=config
            )
        tools = self.hooks.with_hooked_tools(config, self._state, for_async=True)
        return await super().generate_content_stream(
            model=model, contents=contents, config=tools
        )

    async def _generate_content_with_continuation(
        self, *, model: str, contents: Any, config: Any = None
    ) -> types.GenerateContentResponse:
        request = GenerateContentRequest(model, contents, config)
        passage = await self.hooks.before(self._state, request)
        if passage.refusal is not None:
            return _refused(passage.refusal)
        request = passage.request
        response = await super()._generate_content_with_continuation(
            model=request.model, contents=request.contents, config=request.config
        )
        after = await self.hooks.after(self._state, request, response)
        return cast("types.GenerateContentResponse", after.response)

    async def _generate_content_stream_with_continuation(
        self, *, model: str, contents: Any, config: Any = None
    ) -> AsyncIterator[types.GenerateContentResponse]:
        request = GenerateContentRequest(model, contents, config)
        passage = await self.hooks.before(self._state, request)
        if passage.refusal is not None:
            yield _refused(passage.refusal)
            return
        request = passage.request
        held = await self.hooks.hold_back.is_due()
        chunks = []
        async for chunk in super()._generate_content_stream_with_continuation(
            model=request.model, contents=request.contents, config=request.config
        ):
            chunks.append(chunk)
            if not held:
                yield chunk
        whole = self.hooks.whole(chunks)
        after = await self.hooks.after(self._state, request, whole)
        if held:
            for shown in chunks if after.response is whole else [after.response]:
                yield shown


def _refused(refusal: ChatReply) -> types.GenerateContentResponse:
    """The response of a call that was not made: a hook's own, or an empty one."""
    if refusal.response is not None:
        return cast("types.GenerateContentResponse", refusal.response)
    feedback = types.GenerateContentResponsePromptFeedback(
        block_reason=types.BlockedReason.OTHER, block_reason_message=refusal.reason
    )
    return types.GenerateContentResponse(prompt_feedback=feedback)


# First, since it says what to install where the SDK is missing.


class HookedChats(Chats):
    """``client.chats``: chats whose functions obey the hooks too."""

    def __init__(self, models: HookedModels) -> None:
        super().__init__(models)
        self._models = models

    def create(
        self, *, model: str, config: Any = None, history: Any = None
    ) -> HookedChat:
        """Start a chat."""
        return HookedChat(self._models, model, config, history)


class HookedChat(Chat):
    """A chat; each message is one call with a state of its own."""

    def __init__(
        self, models: HookedModels, model: str, config: Any, history: Any
    ) -> None:
        super().__init__(
            modules=models, model=model, config=config, history=history or []
        )
        self._models = models

    def send_message(self, message: Any, config: Any = None) -> Any:
        """Send through the hooks."""
        return super().send_message(message, self._begin(config))

    def send_message_stream(self, message: Any, config: Any = None) -> Any:
        """Send through the hooks, and get chunks."""
        return super().send_message_stream(message, self._begin(config))

    def _begin(self, config: Any) -> Any:
        state = self._models.hooks.new_state()
        self._modules = self._models.in_call(state)
        given = config or self._config
        return self._models.hooks.with_hooked_tools(given, state, for_async=False)


class HookedAsyncChats(AsyncChats):
    """``client.aio.chats``: chats whose functions obey the hooks too."""

    def __init__(self, models: HookedAsyncModels) -> None:
        super().__init__(models)
        self._models = models

    def create(
        self, *, model: str, config: Any = None, history: Any = None
    ) -> HookedAsyncChat:
        """Start a chat."""
        return HookedAsyncChat(self._models, model, config, history)


class HookedAsyncChat(AsyncChat):
    """A chat; each message is one call with a state of its own."""

    def __init__(
        self, models: HookedAsyncModels, model: str, config: Any, history: Any
    ) -> None:
        super().__init__(
            modules=models, model=model, config=config, history=history or []
        )
        self._models = models

    async def send_message(self, message: Any, config: Any = None) -> Any:
        """Send through the hooks."""
        return await super().send_message(message, self._begin(config))

    async def send_message_stream(self, message: Any, config: Any = None) -> Any:
        """Send through the hooks, and get chunks."""
        return await super().send_message_stream(message, self._begin(config))

    def _begin(self, config: Any) -> Any:
        state = self._models.hooks.new_state()
        self._modules = self._models.in_call(state)
        given = config or self._config
        return self._models.hooks.with_hooked_tools(given, state, for_async=True)


def hooked(
    client: Client,
    config: Config,
    *,
    confirm: Confirm | None = None,
    on_stop: Callable[[str], None] | None = None,
    stream_mode: StreamMode | str = StreamMode.BUFFER,
) -> Client:
    """Take a client's calls through the hooks; the client itself stays as it is.

    ``on_stop`` hears the reason when a hook stops the agent.
    """
    hooks = ClientHooks(
        config, confirm=confirm, on_stop=on_stop, stream_mode=stream_mode
    )
    return cast("Client", HookedClient(client, hooks))


class HookedClient:
    """Stands in for a ``Client``."""

    def __init__(self, client: Client, hooks: ClientHooks) -> None:
        self._client = client
        self.models = HookedModels(_api_client(client.models), hooks)
        self.chats = HookedChats(self.models)
        self.aio = HookedAsyncClient(client.aio, hooks)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def __enter__(self) -> HookedClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()


class HookedAsyncClient:
    """Stands in for ``client.aio``."""

    def __init__(self, client: Any, hooks: ClientHooks) -> None:
        self._client = client
        self.models = HookedAsyncModels(_api_client(client.models), hooks)
        self.chats = HookedAsyncChats(self.models)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def __aenter__(self) -> HookedAsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()


def _api_client(models: Any) -> Any:
    return models._api_client  # noqa: SLF001 - the SDK gives no other way to share it
