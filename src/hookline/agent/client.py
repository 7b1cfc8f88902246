"""``hooked(client, config)``: a google-genai client whose calls pass the hooks.

The SDK's own loop of model and function calls stays; the hooks sit around each inner
model call (decision 0051) and inside each tool.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from msgspec import structs

from hookline.config import Config
from hookline.errors import MissingExtraError, TranslationError, UnseenResponseError
from hookline.log import logger
from hookline.protocol.events import HookEventName
from hookline.translators.genai import GenAITranslator, GenerateContentRequest
from hookline.translators.sdk_objects import get, with_field

from .chat import PreparedCall, StreamBuffering, StreamMode, prepare_call
from .conversation import name_of
from .decorator import (
    HOOKED,
    Waiting,
    hooked_tool,
    is_marked,
    iterate_to_end,
    run_to_end,
    wrap,
)
from .model_calls import fire_after_model_hook, with_message
from .tool_calls import Confirm, ToolResult, ToolRun, not_allowed, not_run
from .triggers import has_hooks_for

try:
    from google.genai import types
    from google.genai.chats import AsyncChat, AsyncChats, Chat, Chats
    from google.genai.models import AsyncModels, Models
except ImportError as error:
    raise MissingExtraError("genai", "google-genai") from error

if TYPE_CHECKING:
    from google.genai import Client

# A release without these methods would silently skip the hooks.
_OVERRIDDEN = (
    "_generate_content_with_continuation",
    "_generate_content_stream_with_continuation",
)
if not all(hasattr(kind, n) for kind in (Models, AsyncModels) for n in _OVERRIDDEN):
    raise MissingExtraError("genai", "google-genai 3.1 or later")

Response = types.GenerateContentResponse


def hooked(
    client: Client,
    config: Config,
    *,
    confirm: Confirm | None = None,
    on_stop: Callable[[str], None] | None = None,
    stream_mode: StreamMode | str = StreamMode.BUFFER,
) -> Client:
    """Pass a client's calls through the hooks; the client itself does not change.

    ``on_stop`` is called with the reason when a hook stops the agent.
    """
    hooks = ClientHooks(config, confirm, on_stop, stream_mode)
    return cast("Client", HookedClient(client, hooks))


@dataclass
class ClientHooks:
    """The options of one hooked client, and what it does once."""

    config: Config
    confirm: Confirm | None = None
    on_stop: Callable[[str], None] | None = None
    stream_mode: StreamMode | str = StreamMode.BUFFER
    _warned: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self.buffering = StreamBuffering(self.config, StreamMode(self.stream_mode))

    def warn_about_servers(self, tools: Sequence[Any]) -> None:
        """Warn once about MCP servers that the SDK's service calls by itself."""
        if any(get(tool, "mcp_servers", "mcpServers") for tool in tools):
            self._warn(
                "tools of mcp_servers are called without tool hooks: "
                "pass an MCP session instead"
            )

    def warn_about(self, name: str) -> None:
        """Warn once about a part of the client that does not pass the hooks."""
        self._warn(
            f"client.{name} calls models without hooks: only generate_content, "
            "generate_content_stream and chats pass them"
        )

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            logger.warning("%s", message)


class HookedCall:
    """One call of a client, with all its inner model and function calls.

    Sync and async clients share this code; ``Waiting`` is the difference.
    """

    def __init__(self, hooks: ClientHooks, *, is_async: bool) -> None:
        self.hooks = hooks
        self._wait = Waiting(hooks.config, is_async=is_async)
        self._translator = GenAITranslator()
        self._notes: list[str] = []
        self.stop_reason: str | None = None
        self.allowed_names: frozenset[str] | None = None

    def stop(self, reason: str | None) -> None:
        """Refuse everything else in this call."""
        if self.stop_reason is None:
            self.stop_reason = reason or "Stopped by hook"
            if self.hooks.on_stop is not None:
                self.hooks.on_stop(self.stop_reason)

    def problem(self, name: str) -> str | None:
        """Why a function must not be called now."""
        if self.stop_reason is not None:
            return not_run(self.stop_reason).text
        if self.allowed_names is not None and name not in self.allowed_names:
            return not_allowed(name, self.allowed_names)
        return None

    async def generate(self, send: Callable[..., Any], given: Any) -> Response:
        """Make one model call with the SDK's ``send``."""
        prepared = await self._wait.hooks(self._before(given))
        if prepared.blocked:
            return _refused(prepared)
        request = prepared.modified_request
        response = await self._wait.value(send(**structs.asdict(request)))
        return cast("Response", await self._wait.hooks(self._after(request, response)))

    async def stream(
        self, send: Callable[..., Any], given: Any
    ) -> AsyncGenerator[Response, None]:
        """Make one streamed model call with the SDK's ``send``."""
        prepared = await self._wait.hooks(self._before(given))
        if prepared.blocked:
            yield _refused(prepared)
            return
        request = prepared.modified_request
        buffered = await self._wait.hooks(self.hooks.buffering.is_needed())
        chunks: list[Response] = []
        sent = self._wait.items(send(**structs.asdict(request)))
        async with aclosing(sent) as incoming:
            async for chunk in incoming:
                chunks.append(chunk)
                if not buffered:
                    yield chunk
        if not chunks:
            return
        whole = self._assembled(chunks)
        response = await self._wait.hooks(self._after(request, whole))
        if buffered:
            for chunk in self._shown(chunks, whole, response):
                yield chunk

    async def _before(self, given: dict[str, Any]) -> PreparedCall:
        """Fire the hooks before a model call, unless the call is stopped."""
        if self.stop_reason is not None:
            return PreparedCall(blocked=True, reason=self.stop_reason)
        await self._refuse_raw_responses(given.get("config"))
        request: Any = GenerateContentRequest(**given)
        for note in self._notes:
            request = with_message(self._translator, request, note)
        self._notes.clear()
        prepared = await prepare_call(self.hooks.config, self._translator, request)
        self.allowed_names = prepared.allowed_names
        if prepared.should_stop:
            self.stop(prepared.stop_reason)
        return prepared

    async def _refuse_raw_responses(self, config: Any) -> None:
        names = ("should_return_http_response", "shouldReturnHttpResponse")
        if get(config, *names) and await has_hooks_for(
            self.hooks.config, HookEventName.AfterModel
        ):
            raise UnseenResponseError(names[0])

    async def _after(self, request: Any, response: Any) -> Any:
        after = await fire_after_model_hook(
            self.hooks.config, request, response, translator=self._translator
        )
        if after.system_message:
            self._notes.append(after.system_message)
        if after.should_stop:
            self.stop(after.stop_reason)
        return after.response

    def _assembled(self, chunks: list[Response]) -> Any:
        try:
            return self._translator.assemble_response(chunks)
        # Chunks are the SDK's objects. As a list the handler cannot read them either,
        # so that a hook with onError "block" still blocks.
        except Exception as error:  # noqa: BLE001
            logger.warning("cannot assemble the chunks of a stream: %s", error)
            return chunks

    def _shown(self, chunks: list[Response], whole: Any, response: Any) -> list[Any]:
        """The chunks, unless they say anything else than what the hooks have seen."""
        if response is not whole:
            return [response]
        try:
            return chunks if self._texts(chunks) == self._texts([whole]) else [whole]
        except TranslationError:
            return chunks  # nor could the hooks read it: their policies let it pass

    def _texts(self, responses: Iterable[Any]) -> dict[int, str]:
        found: defaultdict[int, str] = defaultdict(str)
        for response in responses:
            for one in self._translator.to_hook_llm_response(response).candidates:
                found[one.index or 0] += "".join(one.content.parts)
        return found

    def with_hooked_tools(self, config: Any) -> Any:
        """The SDK's config with hooks around its callables and MCP sessions."""
        tools = get(config, "tools")
        if not isinstance(tools, list | tuple):
            return config
        self.hooks.warn_about_servers(tools)
        return with_field(config, [self._hooked(tool) for tool in tools], "tools")

    def _hooked(self, tool: Any) -> Any:
        if is_session(tool):
            return HookedSession(tool, self)
        if not callable(tool) or isinstance(tool, type) or is_marked(tool, _GUARDED):
            return tool
        function = tool
        if not is_marked(tool, HOOKED):
            decorate = hooked_tool(
                self.hooks.config,
                confirm=self.hooks.confirm,
                on_stop=self.stop,
                in_thread=self._wait.is_async,
            )
            function = decorate(tool)
        return _guarded(function, self)


def _refused(prepared: PreparedCall) -> Response:
    """The response of a call that was not made: a hook's own, or an empty one."""
    if prepared.synthetic_response is not None:
        return cast("Response", prepared.synthetic_response)
    feedback = types.GenerateContentResponsePromptFeedback(
        block_reason=types.BlockedReason.OTHER, block_reason_message=prepared.reason
    )
    return Response(prompt_feedback=feedback)


_GUARDED = "__hookline_guarded__"


def _guarded(function: Callable[..., Any], inside: HookedCall) -> Callable[..., Any]:
    """Refuse calls of a function that is not allowed, or after a stop."""
    name = name_of(function)

    async def call(wait: Waiting, /, *args: Any, **kwargs: Any) -> Any:
        return inside.problem(name) or await wait.value(function(*args, **kwargs))

    return wrap(function, call, inside.hooks.config, _GUARDED)


def is_session(tool: Any) -> bool:
    """Whether a tool is an MCP session; works without the mcp package."""
    return hasattr(tool, "call_tool") and hasattr(tool, "list_tools")


class HookedSession:
    """An MCP session with hooks; the SDK recognises sessions by their class."""

    def __init__(self, session: Any, call: HookedCall) -> None:
        self._session = session
        self._call = call

    @property  # type: ignore[misc]  # overriding __class__ with a property is intended
    def __class__(self) -> type:
        return type(self._session)

    def __deepcopy__(self, memo: dict[int, Any]) -> HookedSession:
        return self  # the SDK copies its config; a connection cannot be copied

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def call_tool(
        self, name: str, arguments: dict[str, Any] | None = None, **more: Any
    ) -> Any:
        """Call a tool of the server as its hooks allow."""
        problem = self._call.problem(name)
        if problem is not None:
            return problem
        hooks = self._call.hooks
        tool_input = dict(arguments or {})
        context: dict[str, Any] = {"mcp_context": {}}
        run = ToolRun(hooks.config, name, tool_input, hooks.confirm, context=context)
        refusal = await run.begin()
        if refusal is not None:
            return self._text(refusal)
        value = await self._session.call_tool(name, run.tool_input, **more)
        dump = getattr(value, "model_dump", None)
        content = value if dump is None else dump(mode="json", exclude_none=True)
        after = await run.finish(ToolResult(llm_content=content))
        return value if after.llm_content is content else self._text(after)

    def _text(self, result: ToolResult) -> str:
        if result.stop_reason is not None:
            self._call.stop(result.stop_reason)
        return result.text


# All else is taken to call a model, also what a later release of the SDK adds.
_MODELS_WITHOUT_WARNING = frozenset(
    {
        "generate_content", "generate_content_stream", "begin", "sdk", "is_async",
        "get", "list", "update", "delete", "vertexai",
    }
)  # fmt: skip
_CLIENT_WITHOUT_WARNING = frozenset(
    {
        "close", "aclose", "credentials", "vertexai", "files", "file_search_stores",
        "operations", "auth_tokens", "webhooks",
    }
)  # fmt: skip


class _HookedModels:
    """Sync or async models; those of a running call know it."""

    sdk: Any = Models
    is_async = False
    _prefix = "models"

    def __init__(
        self, models: Any, hooks: ClientHooks, call: HookedCall | None = None
    ) -> None:
        # The SDK gives no other way to share a connection.
        super().__init__(models._api_client)  # type: ignore[call-arg]  # noqa: SLF001
        self._hooks = hooks
        self._in_call = call is not None
        self._call = call or HookedCall(hooks, is_async=self.is_async)

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if not name.startswith("_") and name not in _MODELS_WITHOUT_WARNING:
            self._hooks.warn_about(f"{self._prefix}.{name}")
        return found

    def begin(self, given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The models of one call, and its arguments with hooked tools."""
        call, models = self._call, self
        if not self._in_call:
            call = HookedCall(self._hooks, is_async=self.is_async)
            models = type(self)(self, self._hooks, call)
        config = call.with_hooked_tools(given.get("config"))
        return models, {**given, "config": config}

    def generate_content(self, **given: Any) -> Any:
        """Generate through the hooks."""
        models, given = self.begin(given)
        return self.sdk.generate_content(models, **given)

    def generate_content_stream(self, **given: Any) -> Any:
        """Generate through the hooks, in chunks."""
        models, given = self.begin(given)
        return self.sdk.generate_content_stream(models, **given)

    def _generate_content_with_continuation(self, **given: Any) -> Any:
        sdk: Any = super()
        send = sdk._generate_content_with_continuation  # noqa: SLF001 - overridden here
        work = self._call.generate(send, given)
        return work if self.is_async else run_to_end(work)

    def _generate_content_stream_with_continuation(self, **given: Any) -> Any:
        sdk: Any = super()
        send = sdk._generate_content_stream_with_continuation  # noqa: SLF001 - same
        chunks = self._call.stream(send, given)
        return chunks if self.is_async else iterate_to_end(chunks)


class HookedModels(_HookedModels, Models):
    """``client.models``."""


class HookedAsyncModels(_HookedModels, AsyncModels):
    """``client.aio.models``."""

    sdk = AsyncModels
    is_async = True
    _prefix = "aio.models"

    # Coroutine functions like the SDK's: callers may look.
    async def generate_content(self, **given: Any) -> Any:
        """Generate through the hooks."""
        return await super().generate_content(**given)

    async def generate_content_stream(self, **given: Any) -> Any:
        """Generate through the hooks, in chunks."""
        return await super().generate_content_stream(**given)


class _HookedChat:
    """A sync or async chat: each message is one call."""

    _config: Any

    def __init__(self, models: _HookedModels, given: dict[str, Any]) -> None:
        history = given.pop("history", None) or []
        super().__init__(modules=models, history=history, **given)  # type: ignore[call-arg]  # the SDK's own class
        self._models = models

    def _begin(self, config: Any) -> Any:
        given = {"config": config or self._config}
        self._modules, given = self._models.begin(given)
        return given["config"]

    def send_message(self, message: Any, config: Any = None) -> Any:
        """Send through the hooks."""
        sdk: Any = super()
        return sdk.send_message(message, self._begin(config))

    def send_message_stream(self, message: Any, config: Any = None) -> Any:
        """Send through the hooks, and get chunks."""
        sdk: Any = super()
        return sdk.send_message_stream(message, self._begin(config))


class HookedChat(_HookedChat, Chat):
    """A chat of ``client.chats``."""


class HookedAsyncChat(_HookedChat, AsyncChat):
    """A chat of ``client.aio.chats``."""

    async def send_message(self, message: Any, config: Any = None) -> Any:
        """Send through the hooks."""
        return await super().send_message(message, config)

    async def send_message_stream(self, message: Any, config: Any = None) -> Any:
        """Send through the hooks, and get chunks."""
        return await super().send_message_stream(message, config)


class HookedChats(Chats):
    """``client.chats``."""

    def create(self, **given: Any) -> HookedChat:
        """Start a chat."""
        return HookedChat(cast("HookedModels", self._modules), given)


class HookedAsyncChats(AsyncChats):
    """``client.aio.chats``."""

    def create(self, **given: Any) -> HookedAsyncChat:
        """Start a chat."""
        return HookedAsyncChat(cast("HookedAsyncModels", self._modules), given)


class HookedClient:
    """Replaces a ``Client``."""

    def __init__(self, client: Client, hooks: ClientHooks) -> None:
        self._client = client
        self._hooks = hooks
        self.models = HookedModels(client.models, hooks)
        self.chats = HookedChats(self.models)
        self.aio = HookedAsyncClient(client.aio, hooks)

    def __getattr__(self, name: str) -> Any:
        return _unhooked_part(self._client, name, self._hooks)

    def __enter__(self) -> HookedClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()


def _unhooked_part(client: Any, name: str, hooks: ClientHooks, prefix: str = "") -> Any:
    found = getattr(client, name)
    if not name.startswith("_") and name not in _CLIENT_WITHOUT_WARNING:
        hooks.warn_about(f"{prefix}{name}")
    return found


class HookedAsyncClient:
    """Replaces ``client.aio``."""

    def __init__(self, client: Any, hooks: ClientHooks) -> None:
        self._client = client
        self._hooks = hooks
        self.models = HookedAsyncModels(client.models, hooks)
        self.chats = HookedAsyncChats(self.models)

    def __getattr__(self, name: str) -> Any:
        return _unhooked_part(self._client, name, self._hooks, "aio.")

    async def __aenter__(self) -> HookedAsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()
