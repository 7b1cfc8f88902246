"""``hooked(Anthropic(), config)``: Messages, plain and beta, pass the hooks.

Everything that a client sends goes through its ``request()``: resources, helpers,
pages, raw responses and ``client.post``. There each request is a model call that passes
its hooks, is known to be none, or is refused (decision 0115). Hooks read and change
JSON; the SDK then parses what they left, outside of its retries and middleware, so that
no type, event or snapshot holds anything else.
"""

from __future__ import annotations

import re
from copy import copy
from datetime import timedelta
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import urlsplit

from msgspec import Struct

from hookline.agent.decorator import run_to_end
from hookline.agent.turn import HookedRun
from hookline.errors import MissingExtraError, UnhookedCallError, UnknownClientError
from hookline.protocol.events import HookEventName

from . import ClientHooks
from .anthropic_api import MessagesApi
from .anthropic_tools import with_hooked_runner
from .copy import HookedAsyncClient, HookedSyncClient, hooked_copy
from .http import Endpoints, HttpHooks, ModelRequest, current

try:
    from anthropic import _base_client, _streaming
except ImportError as error:
    raise MissingExtraError("anthropic", "anthropic") from error

_CLIENTS = (_base_client.SyncAPIClient, _base_client.AsyncAPIClient)
# A release without these methods would send or show something past the hooks.
_USED = ("request", "_copy_and_prepare", "_process_response", "_make_sse_decoder")
if not all(hasattr(kind, name) for kind in _CLIENTS for name in _USED):
    raise MissingExtraError("anthropic", "anthropic", "2.8")

_http: Any = vars(_base_client)["httpx2"]
_RAW_HEADER = "X-Stainless-Raw-Response"
_OF_THE_BODY = ("content-encoding", "content-length", "content-type")
_JSON, _EVENT_STREAM = "application/json", "text/event-stream"
_BEFORE_MODEL, _AFTER_MODEL = HookEventName.BeforeModel, HookEventName.AfterModel
_MODEL_EVENTS = (HookEventName.BeforeToolSelection, _BEFORE_MODEL, _AFTER_MODEL)
_TOOL_EVENTS = (HookEventName.BeforeTool, HookEventName.AfterTool)
Hidden = tuple[tuple[HookEventName, ...], str]

# Not another spelling of dots and slashes.
_ID = r"/(?!\.\.?(?:/|$))[^/%\\]+"
# Requests that neither send anything to a model nor show what one has said.
_HARMLESS = re.compile(
    rf"""GET\ /v1/models({_ID})?
    | (GET|POST)\ /v1/files | (GET|DELETE)\ /v1/files{_ID} | GET\ /v1/files{_ID}/content
    | (GET|POST)\ /v1/skills | (GET|DELETE)\ /v1/skills{_ID}
    | (GET|POST)\ /v1/skills{_ID}/versions
    | (GET|DELETE)\ /v1/skills{_ID}/versions{_ID}
    | GET\ /v1/skills{_ID}/versions{_ID}/content
    | GET\ /v1/messages/batches | (GET|DELETE)\ /v1/messages/batches{_ID}
    | POST\ /v1/messages/batches{_ID}/cancel
    """,
    re.VERBOSE,
)
# What some hooks would have to see of other requests, and why they cannot.
_HIDDEN: dict[str, Hidden] = {
    r"POST /v1/messages/batches": (
        _MODEL_EVENTS,
        "the service makes the calls of a batch later",
    ),
    rf"GET /v1/messages/batches{_ID}/results": (
        (_AFTER_MODEL,),
        "it reads what a model answered",
    ),
    r"POST /v1/messages/count_tokens": (
        (_BEFORE_MODEL,),
        "it sends a prompt and is no model call",
    ),
}
_ALL_EVENTS = (*_MODEL_EVENTS, *_TOOL_EVENTS)
_UNKNOWN = (_ALL_EVENTS, "the service may call models or tools by itself")
_NOT_JSON = (_MODEL_EVENTS, "its body is not a JSON object")
_THREAD = (_MODEL_EVENTS, "a thread keeps its messages at the service")
_RUNNER = (_TOOL_EVENTS, "use client.beta.messages.tool_runner()")
_OTHER_ANSWER = ((_AFTER_MODEL,), "a middleware gave a stream of its own")
_MESSAGES = "POST /v1/messages"
_API = MessagesApi()
# A run refuses calls of tools that are not allowed, and tells the model.
_RUN_API = MessagesApi(keeps_calls=True)


def hooked_anthropic(client: Any, hooks: ClientHooks) -> Any:
    """Pass the model calls of an anthropic client, plain or async, through the hooks.

    Also for those of Bedrock, Vertex and the other platforms.
    """
    if not isinstance(client, _CLIENTS):
        raise UnknownClientError(type(client).__qualname__)
    is_async = isinstance(client, _base_client.AsyncAPIClient)
    return _hooked(client, MessagesHooks(hooks, is_async=is_async))


def _hooked(client: Any, hooks: MessagesHooks) -> Any:
    made = hooked_copy(
        client, hooks, HookedAsyncAnthropic if hooks.wait.is_async else HookedAnthropic
    )
    for name, value in vars(client).items():
        if getattr(value, "_client", None) is not client:
            vars(made).setdefault(name, value)  # a field that looks like a resource
    if vars(made).get("_middleware_chain") is not None:
        made._middleware_chain = made._build_middleware_chain()  # noqa: SLF001 - it holds the client
    if "beta" in vars(made):
        made.beta = with_hooked_runner(made.beta, made, _in_run)
    return made


def _in_run(client: Any, run: HookedRun) -> Any:
    """The same client for the calls of one run."""
    hooks: MessagesHooks = client._hookline  # noqa: SLF001 - our own field
    is_async = hooks.wait.is_async
    return _hooked(client, MessagesHooks(hooks.hooks, is_async=is_async, run=run))


class MessagesHooks(HttpHooks):
    """The hooks of one client; with a run, those of a helper that loops."""

    def __init__(
        self, hooks: ClientHooks, *, is_async: bool, run: HookedRun | None = None
    ) -> None:
        super().__init__(hooks, Endpoints((), (), ""), is_async=is_async)
        self.run = run

    async def check(self, method: str, path: str) -> None:
        """Refuse a request that hooks would have to see, and cannot."""
        what = f"{method} {path}"
        known = (hidden for p, hidden in _HIDDEN.items() if re.fullmatch(p, what))
        hidden = next(known, None if _HARMLESS.fullmatch(what) else _UNKNOWN)
        if hidden is not None:
            await self.refuse(what, hidden)

    async def refuse(self, what: str, hidden: Hidden) -> None:
        """Refuse what hooks would have to see, if there are such hooks."""
        events, why = hidden
        has_hooks = self.session.has_hooks
        found = [e for e in events if await self.wait.hooks(has_hooks(e))]
        if found:
            raise UnhookedCallError(what, why, found)

    async def begin(self, options: Any) -> tuple[ModelRequest | None, Any]:
        """Fire the hooks before a model call; gives the options to send."""
        if _target(options) != _MESSAGES:
            await self.check(*_target(options).split(" ", 1))
            return None, options
        body = options.json_data
        headers = (options.headers or {}).items()
        helpers = [v for k, v in headers if k.lower() == "x-stainless-helper"]
        if self.run is None and any(
            not isinstance(name, str) or "ToolRunner" in name for name in helpers
        ):
            await self.refuse(_MESSAGES, _RUNNER)
        if not isinstance(body, dict) or options.content is not None or options.files:
            await self.refuse(_MESSAGES, _NOT_JSON)
            return None, options
        if body.get("thread"):
            await self.refuse(_MESSAGES, _THREAD)
        if body.get("mcp_servers"):
            self.hooks.warn("the service calls tools of mcp_servers without tool hooks")
        run = self.run or self.hooks.begin_run()
        call = await self.wait.hooks(run.begin_model(body, translator=_API.translator))
        if call.request is not body:
            options.json_data = _API.body(call.request)
        api = _API if self.run is None else _RUN_API
        is_stream = bool(body.get("stream"))
        return ModelRequest(self, api, call, is_stream=is_stream), options

    async def exchange(
        self, model_request: Any, request: Any, send: Any, *, stream: bool
    ) -> Any:
        """Send what ``request()`` sends; it shows hooks the response itself."""
        if not request.url.path.endswith(model_request.path):
            await self.check(request.method, request.url.path)
        return await self.wait.value(send(request, stream=stream))

    async def seen(
        self,
        model_request: ModelRequest,
        http: Any,
        make_decoder: Any,
    ) -> Any:
        """The HTTP response, or one with what hooks left of it."""
        is_sse = _EVENT_STREAM in http.headers.get("content-type", "").lower()
        # Calls that are not allowed have to be left out, in every mode.
        is_restricted = model_request.call.allowed_names is not None
        is_needed = self.hooks.buffering.is_needed
        # What the SDK asked for whole has been read: nobody would listen.
        can_listen = is_sse and not http.is_stream_consumed
        if can_listen and not (is_restricted or await self.wait.hooks(is_needed())):
            model_request.listen(http)
            return http
        read = http.aread if self.wait.is_async else http.read
        content = bytes(await self.wait.value(read()))
        if not (is_sse or model_request.is_stream):
            left = await model_request.answer(content, is_stream=False)
            return http if left is content else _response(left, http.request, http)
        events = list(make_decoder().iter_bytes(iter((content,))))
        errors = [e for e in events if e.event == "error"]
        if errors:
            # The stream failed: no hook has seen what came before.
            return _response(_API.encoded(errors[:1]), http.request, http)
        # The SDK skips the others, so they must not end or spoil what hooks read.
        known = [e for e in events if e.event and e.data]
        body = content if is_sse and known == events else _API.encoded(known)
        left = await model_request.answer(body, is_stream=True)
        return http if left is content else _response(left, http.request, http)


def _target(options: Any) -> str:
    """Method and path of a request, as the SDK's resources write them."""
    path = urlsplit(options.url).path
    return f"{options.method.upper()} /{path.lstrip('/')}"


class _Passing(Struct):
    """Marks what ``request()`` sends, so that the HTTP client lets it pass."""

    owner: HttpHooks | None
    path: str
    """How the path ends: platforms send model calls elsewhere, others may not go."""


class MessagesRequest:
    """One call of ``client.request()``; plain and async clients share this code."""

    def __init__(self, client: Any, send: Any, cast_to: Any, more: Any) -> None:
        self._client, self._send = client, send
        self._given = {"cast_to": cast_to, "stream": False, "stream_cls": None, **more}
        self._hooks: MessagesHooks = client._hookline  # noqa: SLF001 - our own field
        self._wait = self._hooks.wait

    async def make(self, options: Any) -> Any:
        """Send the request as its hooks allow."""
        wants_raw = _wants_raw(options, self._given)
        if _target(options) == _MESSAGES:
            # The whole body in ``json_data``, without one-shot iterators.
            prepare = self._client._copy_and_prepare  # noqa: SLF001 - makes every body
            options = await self._wait.value(prepare(options))
        model_request, options = await self._hooks.begin(options)
        if model_request is None:
            return await self._sent(options, _target(options).split(" ", 1)[1])
        options.headers = {_RAW_HEADER: "raw", **(options.headers or {})}
        if model_request.call.refused:
            response = await self._unsent(model_request, options)
        else:
            response = await self._after(model_request, await self._sent(options))
        if wants_raw or not hasattr(response, "http_response"):
            return response
        return await self._wait.value(response.parse())

    async def _sent(self, options: Any, path: str = "") -> Any:
        passing: Any = _Passing(self._hooks, path)
        token = current.set(passing)
        try:
            return await self._wait.value(self._send(options=options, **self._given))
        finally:
            passing.owner = None  # tasks that are left running have it too
            current.reset(token)

    async def _unsent(self, model_request: ModelRequest, options: Any) -> Any:
        """The response of a call that hooks refused, as the SDK would give it."""
        url = self._client.base_url.join(options.url)
        request = _http.Request("POST", url, headers={_RAW_HEADER: "raw"})
        made = self._reader._process_response(  # noqa: SLF001 - makes every response
            options=options,
            response=_response(model_request.refusal(), request),
            **self._given,
        )
        return await self._wait.value(made)

    async def _after(self, model_request: ModelRequest, response: Any) -> Any:
        """A response after the AfterModel hooks."""
        heard = await self._wait.hooks(self._hooks.session.has_hooks(_AFTER_MODEL))
        if not heard and model_request.call.allowed_names is None:
            return response
        given = getattr(response, "http_response", response)
        if isinstance(given, _http.Response):
            decoder = self._client._make_sse_decoder  # noqa: SLF001 - Bedrock has its own
            model_request.is_stream |= self._given["stream"]
            http = await self._hooks.seen(model_request, given, decoder)
            if http is given:
                return response
            return http if given is response else self._with(response, http)
        # A middleware of the client answered by itself, with a value of its own.
        if not hasattr(response, "to_dict"):
            await self._hooks.refuse(_MESSAGES, _OTHER_ANSWER)
            return response
        finish = model_request.call.finish(response)
        return (await self._wait.hooks(finish)).response

    def _with(self, response: Any, http: Any) -> Any:
        """The SDK's response with another HTTP response, and nothing parsed before."""
        made = copy(response)
        fields = {"_client": self._reader, "_parsed_by_type": {}}
        vars(made).update(fields, http_response=http)
        return made

    @cached_property
    def _reader(self) -> Any:
        """The client as the SDK needs it to read what hooks have written."""
        reader = object.__new__(type(self._client))
        vars(reader).update(vars(self._client))
        reader._make_sse_decoder = _streaming.SSEDecoder
        return reader


def _wants_raw(options: Any, given: dict[str, Any]) -> bool:
    """Whether the caller wants the response itself."""
    if _RAW_HEADER in (options.headers or {}):
        return True
    kind = getattr(given["cast_to"], "__origin__", given["cast_to"])
    is_wrapper = isinstance(kind, type) and hasattr(kind, "http_request")
    return is_wrapper and not given["stream"]


def _response(content: bytes, request: Any, before: Any = None) -> Any:
    """An HTTP response with other content than the one before, or one never sent."""
    new = _http.Response
    before = new(200) if before is None else before
    headers = before.headers.multi_items()
    kept = [(k, v) for k, v in headers if k.lower() not in _OF_THE_BODY]
    is_json = content.startswith((b"{", b"[", b'"'))
    made = new(
        before.status_code,
        headers=[*kept, ("content-type", _JSON if is_json else _EVENT_STREAM)],
        content=content,
        request=request,
        extensions=before.extensions,
        history=before.history,
    )
    made.elapsed = getattr(before, "_elapsed", timedelta())
    return made


class _Anthropic:
    """Goes before the class of a client."""

    _hookline: ClassVar[Any]
    # The tool runner then sends the whole conversation, so that hooks see it.
    _supports_message_threads = False

    @cached_property
    def beta(self) -> Any:
        """The SDK's ``beta``, with a tool runner whose tools pass the hooks."""
        sdk: Any = super()
        return with_hooked_runner(sdk.beta, self, _in_run)

    def copy(self, **given: Any) -> Any:
        """The SDK's ``copy()``, whose result passes the hooks too."""
        # The SDK hands credentials on only from its own classes, not from subclasses.
        unhooked: Any = object.__new__(type(self).__bases__[-1])
        vars(unhooked).update(vars(self))
        unhooked._client = vars(self)["_client"].hookline_http  # noqa: SLF001 - as set by the SDK
        return _hooked(unhooked.copy(**given), self._hookline)

    with_options = copy  # as in the SDK


class HookedAnthropic(_Anthropic, HookedSyncClient):
    """Goes before ``Anthropic`` and the plain clients of platforms."""

    def request(self, cast_to: Any, options: Any, **more: Any) -> Any:
        """Send a request as its hooks allow."""
        sdk: Any = super(HookedSyncClient, self)
        return run_to_end(
            MessagesRequest(self, sdk.request, cast_to, more).make(options)
        )


class HookedAsyncAnthropic(_Anthropic, HookedAsyncClient):
    """Goes before ``AsyncAnthropic`` and the async clients of platforms."""

    async def request(self, cast_to: Any, options: Any, **more: Any) -> Any:
        """Send a request as its hooks allow."""
        sdk: Any = super(HookedAsyncClient, self)
        return await MessagesRequest(self, sdk.request, cast_to, more).make(options)
