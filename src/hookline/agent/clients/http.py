"""Model calls of the clients of openai and anthropic pass the hooks in ``request()``.

Everything that these SDKs send goes through the client's ``request()``: resources,
helpers, pages, raw responses and ``client.post``. There each request is a model call
that passes its hooks, is known to be none, or is refused (decision 0115). Hooks read
and change JSON, once for all retries; the SDK then parses what they left, so that no
type, event or snapshot holds anything else.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from hookline._internal.log import logger
from hookline.agent.model_calls import HookedModelCall
from hookline.agent.turn import HookedRun
from hookline.agent.waiting import Waiting, run_to_end
from hookline.errors import (
    TranslationError,
    UnhookedCallError,
    UnknownClientError,
    UnseenResponseError,
)
from hookline.protocol.events import HookEventName
from hookline.translators.shape import HookTranslator

from . import ClientHooks

Body = dict[str, Any]
Events = tuple[HookEventName, ...]

AFTER_MODEL = HookEventName.AfterModel
MODEL_EVENTS: Events = (
    HookEventName.BeforeToolSelection,
    HookEventName.BeforeModel,
    AFTER_MODEL,
)
_RAW_HEADER = "X-Stainless-Raw-Response"
_JSON, _EVENT_STREAM = "application/json", "text/event-stream"
_OF_THE_BODY = (
    *("content-encoding", "content-length", "content-type", "transfer-encoding"),
)


class ModelApi(Protocol):
    """One API that calls a model: how it spells requests, answers and streams."""

    last_events: tuple[str, ...] = ()
    end_of_stream: str = ""

    @property
    def translator(self) -> HookTranslator:
        """The translator of requests and answers."""

    def unseen_option(self, body: Body) -> str | None:
        """An option of the request that keeps the answer from AfterModel hooks."""
        return None

    def body(self, request: Any) -> Body:
        """The request that hooks left, as the body that is sent."""
        return dict(request)

    def refusal(self, body: Body, reason: str) -> Body:
        """The empty answer to a call that hooks refused."""

    def is_read(self, event: Any) -> bool:
        """Whether the SDK reads a server-sent event."""
        return True

    def failure(self, event: Any, body: Body | None) -> str | None:
        """The event to show if the SDK raises an error for it, without an answer."""
        error = body and body.get("error")
        return server_sent(json.dumps({"error": error})) if error else None

    def is_shown(self, events: list[Body], whole: Body) -> bool:
        """Whether the events say nothing but what the whole answer says."""
        return True

    def is_complete(self, events: list[Body]) -> bool:
        """Whether a stream has come to its end."""
        return any(event.get("type") in self.last_events for event in events)

    def stream(self, whole: Body) -> Iterator[Body]:
        """The events of an answer."""

    def without_calls(
        self, whole: Body, allowed: frozenset[str]
    ) -> tuple[Body, list[str]]:
        """The answer without calls of other tools, and the names of those."""


class Hidden(Struct, frozen=True):
    """Requests that some hooks would have to see and cannot."""

    pattern: str
    """Of a method and a path."""
    events: Events
    why: str


class Endpoints(Struct, frozen=True):
    """What a client may send; the patterns are of a method and a path."""

    models: tuple[tuple[str, ModelApi], ...]
    harmless: tuple[str, ...]
    """They neither send anything to a model nor show what one has said."""
    hidden: tuple[Hidden, ...]
    """The rest; the last pattern matches everything."""

    def api(self, target: str) -> ModelApi | None:
        """The API of a model call; None for another request."""
        apis = (api for p, api in self.models if re.fullmatch(p, target))
        return next(apis, None)

    def hidden_from_hooks(self, target: str) -> Hidden | None:
        """What hooks cannot see of another request; None if it is harmless."""
        is_plain = _OTHER_SPELLING.search(target) is None
        if is_plain and any(re.fullmatch(p, target) for p in self.harmless):
            return None
        return next(h for h in self.hidden if re.fullmatch(h.pattern, target))


# Dots and slashes that make it another path than it seems to be.
_OTHER_SPELLING = re.compile(r"/\.\.?(/|$)|%2[ef]|\\", re.IGNORECASE)


class ClientRequests:
    """What one hooked client sends; ``run`` is that of a helper that loops."""

    endpoints: ClassVar[Endpoints]
    sse_decoder: ClassVar[Any]
    """The SDK's reader of plain server-sent events."""

    def __init__(
        self, hooks: ClientHooks, *, is_async: bool, run: HookedRun | None = None
    ) -> None:
        self.hooks = hooks
        self.session = hooks.session
        self.wait = Waiting(hooks.session, is_async=is_async)
        self.run = run

    async def request(
        self, client: Any, send: Any, cast_to: Any, options: Any, **stream_options: Any
    ) -> Any:
        """Send one request as its hooks allow; ``send`` is the SDK's ``request()``."""
        target = f"{options.method.upper()} /{urlsplit(options.url).path.lstrip('/')}"
        api = self.endpoints.api(target)
        if api is None:
            if hidden := self.endpoints.hidden_from_hooks(target):
                await self.refuse(target, hidden.events, hidden.why)
            return await self.wait.value(send(cast_to, options, **stream_options))

        listening = await self.wait.hooks(self.listening(MODEL_EVENTS))
        options = await self.prepared(client, target, options, listening)
        body = options.json_data
        if not isinstance(body, dict) or options.content is not None or options.files:
            body = None
        if listening and body is None:
            raise UnhookedCallError(target, "its body is not a JSON object", listening)
        if body is None or not (listening or self.run):
            return await self.wait.value(send(cast_to, options, **stream_options))

        run = self.run or self.hooks.begin_run()
        begin = run.begin_model(body, translator=api.translator)
        call = await self.wait.hooks(begin)
        is_judged = call.allowed_names is not None or AFTER_MODEL in listening
        if is_judged and (option := api.unseen_option(body)) is not None:
            raise UnseenResponseError(option)
        is_stream = bool(body.get("stream") or stream_options.get("stream"))
        model_request = ModelRequest(self, api, call, client, is_stream)

        # With this header the SDK returns the raw response, to be parsed afterwards.
        wants_raw = _wants_raw(cast_to, options, stream_options)
        options.headers = {_RAW_HEADER: "raw", **(options.headers or {})}
        if call.request is not body:
            options.json_data = api.body(call.request)
        if call.refused:
            stream_options = {"stream": False, "stream_cls": None, **stream_options}
            unsent = model_request.unsent(options)
            process = model_request.reader._process_response  # noqa: SLF001 - makes every response
            response = await self.wait.value(
                process(
                    cast_to=cast_to, options=options, response=unsent, **stream_options
                )
            )
        else:
            response = await self.wait.value(send(cast_to, options, **stream_options))
            response = await model_request.after_hooks(response, target)
        if wants_raw or not hasattr(response, "http_response"):
            return response
        return await self.wait.value(response.parse())

    async def prepared(
        self, client: Any, target: str, options: Any, listening: list[HookEventName]
    ) -> Any:
        """A copy of the options of a model call, with the whole body as JSON data."""
        raise NotImplementedError

    async def read(self, http: Any) -> bytes:
        """The content of a response that was asked for as a stream."""
        read = http.aread if self.wait.is_async else http.read
        return bytes(await self.wait.value(read()))

    async def refuse(self, target: str, events: Events, why: str) -> None:
        """Refuse what hooks would have to see and cannot, if there are such hooks."""
        if listening := await self.wait.hooks(self.listening(events)):
            raise UnhookedCallError(target, why, listening)

    def refuse_socket(self) -> None:
        """Refuse a web socket, from plain code of any client."""
        if listening := self.session.run_sync(self.listening(MODEL_EVENTS)):
            raise UnhookedCallError("a web socket", "it is no HTTP request", listening)

    async def listening(self, events: Events) -> list[HookEventName]:
        """Those of some events that have hooks."""
        return [event for event in events if await self.session.has_hooks(event)]


def _wants_raw(cast_to: Any, options: Any, stream_options: dict[str, Any]) -> bool:
    """Whether the caller wants the response itself."""
    if _RAW_HEADER in (options.headers or {}):
        return True
    kind = getattr(cast_to, "__origin__", cast_to)
    is_wrapper = isinstance(kind, type) and hasattr(kind, "http_request")
    return is_wrapper and not stream_options.get("stream")


@dataclass(eq=False)
class ModelRequest:
    """One model call of a client, with all its retries."""

    requests: ClientRequests
    api: ModelApi
    call: HookedModelCall
    client: Any
    is_stream: bool

    @cached_property
    def reader(self) -> Any:
        """The client as the SDK needs it to read what hooks have written."""
        reader = object.__new__(type(self.client))
        vars(reader).update(vars(self.client))
        # That of Bedrock reads frames of its own.
        reader._make_sse_decoder = self.requests.sse_decoder
        return reader

    def unsent(self, options: Any) -> Any:
        """The HTTP response in place of the model's."""
        body, answer = self.call.given, plain(self.call.response)
        empty = self.api.refusal(body, self.call.reason or "")
        if answer is None:
            answer = empty
        elif isinstance(answer, dict):
            answer = {**answer, "id": empty["id"], "model": empty["model"]}
        module = http_module(self.client._client)  # noqa: SLF001 - the SDK's name
        url = self.client._prepare_url(options.url)  # noqa: SLF001 - same
        raw = {_RAW_HEADER: options.headers[_RAW_HEADER]}
        request = module.Request("POST", url, headers=raw)
        return _response(module.Response(200, request=request), self._encoded(answer))

    async def after_hooks(self, response: Any, target: str) -> Any:
        """The SDK's response with what hooks left of the answer."""
        has_after_model = self.requests.session.has_hooks(AFTER_MODEL)
        is_restricted = self.call.allowed_names is not None
        if not await self.requests.wait.hooks(has_after_model) and not is_restricted:
            return response
        http = getattr(response, "http_response", response)
        if not hasattr(http, "is_stream_consumed"):
            # A middleware of the client answered with a value of its own.
            if not hasattr(response, "to_dict"):
                why = "a middleware gave a stream of its own"
                await self.requests.refuse(target, (AFTER_MODEL,), why)
                return response
            return (await self.requests.wait.hooks(self.call.finish(response))).response

        # The SDK reads what it asked for, whatever the service calls it.
        kind = http.headers.get("content-type", "").lower()
        self.is_stream |= kind.startswith(_EVENT_STREAM)
        # What the SDK asked for whole has been read: nobody would listen.
        can_listen = self.is_stream and not http.is_stream_consumed
        is_needed = self.requests.hooks.buffering.is_needed
        if can_listen and not (
            is_restricted or await self.requests.wait.hooks(is_needed())
        ):
            tee = _tee_class(http_module(http))
            http.stream = tee(http.stream, partial(self._listen, http))
            return response
        content = await self.requests.read(http)
        judged = await self._judged(content)
        if judged is content:
            return response
        changed = _response(http, judged)
        if http is response:
            return changed
        copied = copy(response)
        # It remembers what it has parsed.
        fields = {"_client": self.reader, "_parsed_by_type": {}}
        vars(copied).update(fields, http_response=changed)
        return copied

    async def _judged(self, content: bytes) -> bytes:
        """What hooks left of an answer; the same object if they changed nothing."""
        events, readable, failure = self._read(content)
        if failure is not None:
            # The stream was aborted: no hook has seen what came before.
            return failure.encode()
        whole = self._whole(content, events)
        outcome = await self.requests.wait.hooks(self.call.finish(whole))
        answer, is_stopped = plain(outcome.response), outcome.stop_reason is not None
        # A run refuses calls of tools that are not allowed, and tells the model.
        if self.requests.run is None:
            answer = self._without_calls(answer, is_stopped=is_stopped)
        is_same = answer is whole
        # What hooks could not read either, their policies let pass.
        with suppress(TranslationError):
            is_same = is_same and (not events or self.api.is_shown(events, whole))
        if is_same:
            return readable if events else content
        return self._encoded(answer)

    def _read(self, content: bytes) -> tuple[list[Body], bytes, str | None]:
        """The events that the SDK reads, a stream of these alone, and its error.

        No hook can judge comments, other values than JSON objects, or cut-off events.
        """
        events: list[Body] = []
        readable: list[str] = []
        if not self.is_stream:
            return events, content, None
        decoder = self.client._make_sse_decoder()  # noqa: SLF001 - Bedrock has its own
        for event in decoder.iter_bytes(iter((content,))):
            if not self.api.is_read(event):
                continue
            if event.data.startswith("[DONE]"):
                readable.append(server_sent(event.data))
                break
            try:
                value = json.loads(event.data)
            except ValueError:
                value = None
            body = value if isinstance(value, dict) else None
            if (failure := self.api.failure(event, body)) is not None:
                return events, b"", failure
            if body is not None:
                events.append(body)
                readable.append(server_sent(event.data, event.event))
            elif event.data:
                problem = "an event of a stream that is not a JSON object"
                logger.warning("left out %s", problem)
        return events, "".join(readable).encode(), None

    def _whole(self, content: bytes, events: list[Body]) -> Any:
        try:
            if not events:
                return json.loads(content)
            return dict(plain(self.api.translator.assemble_response(events)))
        # The answer may be anything. What is unreadable here the hooks cannot read
        # either, so that one with onError "block" still blocks.
        except Exception as error:  # noqa: BLE001
            logger.warning("cannot read the answer of a model: %s", type(error))
            return content.decode(errors="replace")

    def _without_calls(self, answer: Any, *, is_stopped: bool) -> Any:
        allowed = frozenset() if is_stopped else self.call.allowed_names
        if allowed is None:
            return answer
        if not isinstance(answer, dict):
            # Nobody can tell which tools it calls.
            return self.api.refusal(self.call.given, "The answer cannot be read")
        remaining, dropped = self.api.without_calls(answer, allowed)
        if not dropped:
            return answer
        self.requests.hooks.warn_dropped(dropped, is_stopped=is_stopped)
        return remaining

    def _encoded(self, whole: Any) -> bytes:
        if self.is_stream and isinstance(whole, dict):
            events = self.api.stream(whole)
            texts = [server_sent(json.dumps(e), e.get("type")) for e in events]
            return "".join([*texts, self.api.end_of_stream]).encode()
        return json.dumps(whole, ensure_ascii=False).encode()

    async def _listen(self, http: Any, raw: bytes, *, is_whole: bool) -> None:
        """Fire AfterModel at the end of a stream that passed at once."""
        content = type(http)(200, headers=http.headers, content=raw).content
        events, _, failure = self._read(content)
        if (is_whole and failure is None) or self.api.is_complete(events):
            whole = self._whole(content, events)
            await self.requests.wait.hooks(self.call.finish(whole))


class _Tee:
    """The bytes of a stream; ``on_end`` gets them when it is over."""

    def __init__(self, stream: Any, on_end: Any) -> None:
        self._stream = stream
        self._on_end = on_end
        self._chunks: list[bytes] = []
        self._is_whole = False

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            self._chunks.append(chunk)
            yield chunk
        self._is_whole = True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._chunks.append(chunk)
            yield chunk
        self._is_whole = True

    def close(self) -> None:
        self._stream.close()
        run_to_end(self._end())

    async def aclose(self) -> None:
        await self._stream.aclose()
        await self._end()

    async def _end(self) -> None:
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            await on_end(b"".join(self._chunks), is_whole=self._is_whole)


@lru_cache
def _tee_class(module: Any) -> Any:
    return type("Tee", (_Tee, module.SyncByteStream, module.AsyncByteStream), {})


def http_module(value: Any) -> Any:
    """The package of an HTTP client or response: openai takes httpx beside httpx2."""
    names = (kind.__module__.partition(".")[0] for kind in type(value).__mro__)
    return sys.modules[next(name for name in names if name in ("httpx", "httpx2"))]


def _response(before: Any, content: bytes) -> Any:
    """An HTTP response with another content."""
    is_json = content.startswith((b"{", b"[", b'"'))
    headers = before.headers.multi_items()
    changed = type(before)(
        before.status_code,
        headers=[
            *((k, v) for k, v in headers if k.lower() not in _OF_THE_BODY),
            ("content-type", _JSON if is_json else _EVENT_STREAM),
        ],
        content=content,
        request=before.request,
        extensions=before.extensions,
        history=before.history,
    )
    # A transport that gave its content at once has not set it.
    changed.elapsed = getattr(before, "_elapsed", timedelta())
    return changed


def server_sent(data: str, event: str | None = None) -> str:
    """One server-sent event."""
    head = "" if event is None else f"event: {event}\n"
    lines = data.replace("\n", "\ndata: ")
    return f"{head}data: {lines}\n\n"


def plain(value: Any) -> Any:
    """An object of an SDK as a dict; any other value as it is."""
    if not hasattr(value, "model_dump"):
        return value
    return value.model_dump(
        mode="json", exclude_unset=True, by_alias=True, warnings=False
    )


class HookedClient:
    """Goes before the class of an SDK's client."""

    _hookline: ClassVar[ClientRequests]


class HookedSyncClient(HookedClient):
    """A plain client."""

    def request(self, cast_to: Any, options: Any, **stream_options: Any) -> Any:
        """Send a request through the hooks."""
        sdk: Any = super()
        requests = self._hookline
        work = requests.request(self, sdk.request, cast_to, options, **stream_options)
        return run_to_end(work)


class HookedAsyncClient(HookedClient):
    """An async client."""

    async def request(self, cast_to: Any, options: Any, **stream_options: Any) -> Any:
        """Send a request through the hooks."""
        sdk: Any = super()
        requests = self._hookline
        return await requests.request(
            self, sdk.request, cast_to, options, **stream_options
        )


def hooked_copy(
    client: Any, requests: ClientRequests, mixin: type[HookedClient]
) -> Any:
    """A client of the same class with hooks, and the same connections.

    The class is made for it, because the SDK copies clients with ``self.__class__``.
    """
    base = type(client)
    if issubclass(base, HookedClient):
        # It has hooks already; it gets them for another session.
        if client._hookline.session.config is not requests.session.config:  # noqa: SLF001 - ours
            name = base.__qualname__
            raise UnknownClientError(f"{name} with hooks of another config")
        base = base.__bases__[-1]
    names = ("__module__", "__qualname__", "__doc__")
    space = {name: getattr(base, name) for name in names}
    kind: Any = type(base.__name__, (mixin, base), {**space, "_hookline": requests})
    hooked = kind.__new__(kind)
    for name, value in vars(client).items():
        # Resources belong to the other client. Most of them are made on first use.
        is_resource = getattr(value, "_client", None) is client
        if not is_resource:
            vars(hooked)[name] = value
        elif not isinstance(getattr(base, name, None), cached_property):
            vars(hooked)[name] = type(value)(hooked)
    return hooked
