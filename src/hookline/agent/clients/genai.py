"""A google-genai client whose calls pass the hooks.

The SDK's own loop of model and function calls stays; the hooks sit around each inner
model call (decision 0051) and inside each tool.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from msgspec import structs

from hookline._internal.log import logger
from hookline.agent.conversation import name_of
from hookline.agent.decorator import HOOKED, hooked_tool
from hookline.agent.model_calls import HookedModelCall
from hookline.agent.waiting import Waiting, is_marked, iterate_to_end, run_to_end, wrap
from hookline.errors import MissingExtraError, UnseenResponseError
from hookline.translators.genai import GenAITranslator, GenerateContentRequest
from hookline.translators.values import get, with_field

from . import ClientHooks

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

Response: TypeAlias = types.GenerateContentResponse


def hooked_genai(client: Client, hooks: ClientHooks) -> Client:
    """Pass the calls of a google-genai client through the hooks."""
    if not all(hasattr(kind, n) for kind in (Models, AsyncModels) for n in _OVERRIDDEN):
        raise MissingExtraError("genai", "google-genai", "3.1")
    return cast("Client", HookedClient(client, hooks))


class GenAICall:
    """One call of a client, with all its inner model and function calls.

    Sync and async clients share this code; ``Waiting`` is the difference.
    """

    def __init__(self, hooks: ClientHooks, *, is_async: bool) -> None:
        self.hooks = hooks
        self.run = hooks.begin_run()
        self._wait = Waiting(hooks.session, is_async=is_async)
        self._translator = GenAITranslator()
        self._rounds = 0
        """How many more answers may hold calls that the SDK makes itself."""
        self.guarded_names: set[str] = set()
        """The functions that it calls, each of which refuses what is not allowed."""
        self._open_names: dict[int | None, str] = {}

    async def generate(self, send: Callable[..., Any], arguments: Any) -> Response:
        """Make one model call with the SDK's ``send``."""
        call = await self._wait.hooks(self._begin(arguments))
        if call.refused:
            return _refused(call)
        sending = send(**structs.asdict(call.request))
        outcome = await self._wait.hooks(call.finish(await self._wait.value(sending)))
        return self._without_calls(outcome.response)

    async def stream(
        self, send: Callable[..., Any], arguments: Any
    ) -> AsyncGenerator[Response, None]:
        """Make one streamed model call with the SDK's ``send``."""
        call = await self._wait.hooks(self._begin(arguments))
        if call.refused:
            yield _refused(call)
            return
        buffered = await self._wait.hooks(self.hooks.buffering.is_needed())
        chunks: list[Response] = []
        sending = self._wait.items(send(**structs.asdict(call.request)))
        async with aclosing(sending) as incoming:
            async for chunk in incoming:
                chunks.append(chunk)
                if not buffered:
                    yield self._without_calls(chunk)
        if not chunks:
            return
        whole: Any = chunks
        try:
            whole = self._translator.assemble_response(chunks)
        # Chunks are the SDK's objects. As a list the handler cannot read them either,
        # so that a hook with onError "block" still blocks.
        except Exception as error:  # noqa: BLE001
            logger.warning("cannot assemble the chunks of a stream: %s", error)
        outcome = await self._wait.hooks(call.finish(whole))
        if buffered:
            # Every text of a chunk is in the whole response, which the hooks have seen.
            for chunk in [outcome.response] if outcome.changed else chunks:
                yield self._without_calls(chunk)

    async def _begin(self, arguments: dict[str, Any]) -> HookedModelCall:
        """Fire the hooks before a model call."""
        self._rounds -= 1
        self._open_names.clear()
        request = GenerateContentRequest(**arguments)
        call = await self.run.begin_model(request, translator=self._translator)
        names = ("should_return_http_response", "shouldReturnHttpResponse")
        has_hooks = self.hooks.session.has_hooks
        if get(request.config, *names) and (
            call.allowed_names is not None or await has_hooks("AfterModel")
        ):
            raise UnseenResponseError(names[0])
        return call

    def _without_calls(self, response: Any) -> Response:
        """Take the calls out of an answer that hooks do not allow.

        Those that the SDK makes itself stay: their functions refuse them, and so the
        model is told.
        """
        is_stopped = self.run.ended is not None
        allowed = frozenset[str]() if is_stopped else self.run.allowed_names
        if allowed is None:
            return cast("Response", response)
        if self._rounds > 0:
            allowed |= self.guarded_names
        dropped: list[str] = []
        for candidate in getattr(response, "candidates", None) or ():
            parts = (candidate.content and candidate.content.parts) or ()
            remaining = []
            for part in parts:
                name = None
                if part.function_call is not None:
                    # Only the first piece of a call has its name.
                    first = self._open_names.get(candidate.index, "")
                    name = part.function_call.name or first
                    self._open_names[candidate.index] = name
                if name is None or name in allowed:
                    remaining.append(part)
                else:
                    dropped.append(name)
            if len(remaining) < len(parts):
                candidate.content.parts = remaining
        if dropped:
            self.hooks.warn_dropped(dropped, is_stopped=is_stopped)
        return cast("Response", response)

    def with_hooked_tools(self, config: Any) -> Any:
        """The SDK's config with hooks around its callables and MCP sessions."""
        config = _with_listed_tools(config)
        tools = get(config, "tools")
        if tools is None:
            return config
        if any(get(tool, *_MCP_SERVERS) for tool in tools):
            self.hooks.session.warn_once(
                "tools of mcp_servers are called without tool hooks: "
                "pass an MCP session instead"
            )
        return with_field(config, [self._hooked(tool) for tool in tools], "tools")

    def count_rounds(self, config: Any) -> None:
        """Note how often the SDK will call functions by itself."""
        names = ("automatic_function_calling", "automaticFunctionCalling")
        automatic = get(config, *names)
        limit = get(automatic, "maximum_remote_calls", "maximumRemoteCalls")
        # One of these among the tools makes it call none.
        declared = ("function_declarations", "functionDeclarations", *_MCP_SERVERS)
        is_manual = get(automatic, "disable") or any(
            get(tool, *declared) for tool in get(config, "tools") or ()
        )
        limit = _DEFAULT_ROUNDS if limit is None else int(limit)
        self._rounds = 0 if is_manual else limit

    def _hooked(self, tool: Any) -> Any:
        """A tool with its hooks, which refuses calls while it is not allowed."""
        if is_session(tool):
            return HookedSession(tool, self)
        if not callable(tool) or isinstance(tool, type) or is_marked(tool, _GUARDED):
            return tool
        function: Callable[..., Any] = tool
        if not is_marked(tool, HOOKED):
            decorate = hooked_tool(
                self.hooks.session,
                confirm=self.hooks.confirm,
                on_stop=self.run.stop,
                in_thread=self._wait.is_async,
            )
            function = decorate(tool)
        name, problem = name_of(function), self.run.problem
        self.guarded_names.add(name)

        async def call(wait: Waiting, /, *args: Any, **kwargs: Any) -> Any:
            return problem(name) or await wait.value(function(*args, **kwargs))

        return wrap(function, call, self.hooks.session, _GUARDED)


_GUARDED = "__hookline_guarded__"
_MCP_SERVERS = ("mcp_servers", "mcpServers")
# As the SDK has it; it does not call functions after the last of these answers.
_DEFAULT_ROUNDS = 10


def _with_listed_tools(config: Any) -> Any:
    """The SDK's config with its tools in a list: they may come only once."""
    tools = get(config, "tools")
    if tools is None or isinstance(tools, list):
        return config
    if isinstance(tools, str | Mapping | types.Tool) or not hasattr(tools, "__iter__"):
        raise TypeError(f"tools: expected a list of tools, got {type(tools).__name__}")
    return with_field(config, list(tools), "tools")


def _refused(call: HookedModelCall) -> Response:
    """The response of a call that was not made: a hook's own, or an empty one."""
    if call.response is not None:
        return cast("Response", call.response)
    feedback = types.GenerateContentResponsePromptFeedback(
        block_reason=types.BlockedReason.OTHER, block_reason_message=call.reason
    )
    return Response(prompt_feedback=feedback)


def is_session(tool: Any) -> bool:
    """Whether a tool is an MCP session; works without the mcp package."""
    return hasattr(tool, "call_tool") and hasattr(tool, "list_tools")


class HookedSession:
    """An MCP session with hooks; the SDK recognises sessions by their class."""

    def __init__(self, session: Any, call: GenAICall) -> None:
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
        hooks = self._call.hooks
        hooked = await self._call.run.begin_tool(
            name, arguments or {}, confirm=hooks.confirm, mcp_context={}
        )
        if hooked.refused:
            return hooked.message
        value = await self._session.call_tool(name, hooked.tool_input, **more)
        dump = getattr(value, "model_dump", None)
        content = value if dump is None else dump(mode="json", exclude_none=True)
        outcome = await hooked.finish(content)
        if outcome.is_replaced:
            return outcome.text
        # The value of a program stays as it is: the model is told apart.
        self._call.run.note("\n\n".join(outcome.additions))
        return value

    async def list_tools(self, *args: Any, **more: Any) -> Any:
        """The tools of the server, whose calls by the SDK pass ``call_tool``."""
        result = await self._session.list_tools(*args, **more)
        self._call.guarded_names |= {
            str(get(t, "name")) for t in get(result, "tools") or ()
        }
        return result


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


def _warn_about(hooks: ClientHooks, name: str) -> None:
    """Warn once about a part of the client that does not pass the hooks."""
    hooks.session.warn_once(
        f"client.{name} calls models without hooks: only generate_content, "
        "generate_content_stream and chats pass them"
    )


class _HookedModels:
    """Sync or async models; those of a running call know it."""

    sdk: Any
    is_async: bool

    def __init__(
        self, models: Any, hooks: ClientHooks, call: GenAICall | None = None
    ) -> None:
        # The SDK gives no other way to share a connection.
        super().__init__(models._api_client)  # type: ignore[call-arg]  # noqa: SLF001
        self._hooks = hooks
        self._call = call

    def __getattribute__(self, name: str) -> Any:
        attribute = super().__getattribute__(name)
        if not name.startswith("_") and name not in _MODELS_WITHOUT_WARNING:
            prefix = "aio.models" if self.is_async else "models"
            _warn_about(self._hooks, f"{prefix}.{name}")
        return attribute

    def begin(self, arguments: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The models of one call, and its arguments with hooked tools."""
        call, models = self._call, self
        if call is None:
            call = GenAICall(self._hooks, is_async=self.is_async)
            models = type(self)(self, self._hooks, call)
        config = call.with_hooked_tools(arguments.get("config"))
        if models is not self:
            call.count_rounds(config)
        return models, {**arguments, "config": config}

    def generate_content(self, **arguments: Any) -> Any:
        """Generate through the hooks."""
        models, arguments = self.begin(arguments)
        return self.sdk.generate_content(models, **arguments)

    def generate_content_stream(self, **arguments: Any) -> Any:
        """Generate through the hooks, in chunks."""
        models, arguments = self.begin(arguments)
        return self.sdk.generate_content_stream(models, **arguments)

    def _generate_content_with_continuation(self, **arguments: Any) -> Any:
        sdk: Any = super()
        send = sdk._generate_content_with_continuation  # noqa: SLF001 - overridden here
        work = cast("GenAICall", self._call).generate(send, arguments)
        return work if self.is_async else run_to_end(work)

    def _generate_content_stream_with_continuation(self, **arguments: Any) -> Any:
        sdk: Any = super()
        send = sdk._generate_content_stream_with_continuation  # noqa: SLF001 - same
        chunks = cast("GenAICall", self._call).stream(send, arguments)
        return chunks if self.is_async else iterate_to_end(chunks)


class HookedModels(_HookedModels, Models):
    """``client.models``."""

    sdk = Models
    is_async = False


class HookedAsyncModels(_HookedModels, AsyncModels):
    """``client.aio.models``."""

    sdk = AsyncModels
    is_async = True

    # Coroutine functions like the SDK's: callers may look.
    async def generate_content(self, **arguments: Any) -> Any:
        """Generate through the hooks."""
        return await super().generate_content(**arguments)

    async def generate_content_stream(self, **arguments: Any) -> Any:
        """Generate through the hooks, in chunks."""
        return await super().generate_content_stream(**arguments)


class _HookedChat:
    """A sync or async chat: each message is one call."""

    _config: Any

    def __init__(self, *, modules: Any, **arguments: Any) -> None:
        history = arguments.pop("history", None) or []
        arguments["config"] = _with_listed_tools(arguments.get("config"))
        super().__init__(modules=modules, history=history, **arguments)  # type: ignore[call-arg]  # the SDK's own class
        self._models: _HookedModels = modules

    def _begin(self, config: Any) -> Any:
        self._modules, arguments = self._models.begin(
            {"config": config or self._config}
        )
        return arguments["config"]

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

    def create(self, **arguments: Any) -> HookedChat:
        """Start a chat."""
        return HookedChat(modules=self._modules, **arguments)


class HookedAsyncChats(AsyncChats):
    """``client.aio.chats``."""

    def create(self, **arguments: Any) -> HookedAsyncChat:
        """Start a chat."""
        return HookedAsyncChat(modules=self._modules, **arguments)


class _HookedPart:
    """Passes on what is not hooked, with a warning where it may call a model."""

    _prefix = ""

    def __init__(self, client: Any, hooks: ClientHooks) -> None:
        self._client = client
        self._hooks = hooks

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._client, name)
        if not name.startswith("_") and name not in _CLIENT_WITHOUT_WARNING:
            _warn_about(self._hooks, f"{self._prefix}{name}")
        return attribute


class HookedClient(_HookedPart):
    """Replaces a ``Client``."""

    def __init__(self, client: Client, hooks: ClientHooks) -> None:
        super().__init__(client, hooks)
        self.models = HookedModels(client.models, hooks)
        self.chats = HookedChats(self.models)
        self.aio = HookedAsyncClient(client.aio, hooks)

    def __enter__(self) -> HookedClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()


class HookedAsyncClient(_HookedPart):
    """Replaces ``client.aio``."""

    _prefix = "aio."

    def __init__(self, client: Any, hooks: ClientHooks) -> None:
        super().__init__(client, hooks)
        self.models = HookedAsyncModels(client.models, hooks)
        self.chats = HookedAsyncChats(self.models)

    async def __aenter__(self) -> HookedAsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()
