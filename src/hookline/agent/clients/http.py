"""Pass the HTTP requests of an SDK's client through the hooks (decision 0114).

Hooks run before a model call once for all its retries. The SDK gets what hooks left of
the response, so that none of its helpers reads anything else. What is neither a model
call nor known to call no model is refused.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from contextvars import ContextVar
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Any, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from hookline._internal.log import logger
from hookline.agent.decorator import Waiting, run_to_end
from hookline.agent.model_calls import HookedModelCall
from hookline.errors import TranslationError, UnhookedCallError, UnseenResponseError
from hookline.protocol.events import HookEventName
from hookline.translators.shape import HookTranslator

from . import ClientHooks

Body = dict[str, Any]


class ModelApi(Protocol):
    """One API that calls a model: how it spells requests, answers and streams."""

    @property
    def translator(self) -> HookTranslator:
        """The translator of requests and answers."""

    def unseen_option(self, body: Body) -> str | None:
        """An option of the request that keeps the answer from AfterModel hooks."""
        return None

    def refusal(self, body: Body, reason: str) -> Body:
        """The empty answer to a call that hooks refused."""

    def whole(self, events: list[Body]) -> Body:
        """The answer that the events of a stream add up to."""
        return dict(plain(self.translator.assemble_response(events)))

    def is_shown(self, events: list[Body], whole: Body) -> bool:
        """Whether the events say nothing but what the whole answer says."""
        return True

    def is_complete(self, events: list[Body]) -> bool:
        """Whether a stream has come to its end."""

    def stream(self, whole: Body) -> str:
        """The server-sent events of an answer."""

    def without_calls(
        self, whole: Body, allowed: frozenset[str]
    ) -> tuple[Body, list[str]]:
        """The answer without calls of other tools, and the names of those."""


class Endpoints(Struct, frozen=True):
    """What a client may send: model calls, and requests that call no model."""

    models: tuple[tuple[str, ModelApi], ...]
    """Patterns of paths, each with its API."""
    harmless: tuple[str, ...]
    """Patterns of a method and a path; what matches none of them is refused."""
    why: str
    """Why the others are refused."""

    def api(self, method: str, path: str) -> ModelApi | None:
        """The API of a model call."""
        found = (api for pattern, api in self.models if re.search(pattern, path))
        return next(found, None) if method == "POST" else None

    def is_harmless(self, method: str, path: str) -> bool:
        """Whether a request is known to call no model."""
        if _OTHER_SPELLING.search(path):
            return False
        return any(re.fullmatch(known, f"{method} {path}") for known in self.harmless)


# Dots and slashes that make it another path than it seems to be.
_OTHER_SPELLING = re.compile(r"/\.\.?(/|$)|%2[ef]", re.IGNORECASE)
_AFTER_MODEL = HookEventName.AfterModel
_MODEL_EVENTS: tuple[HookEventName, ...] = (
    HookEventName.BeforeToolSelection,
    HookEventName.BeforeModel,
    _AFTER_MODEL,
)
current: ContextVar[ModelRequest | None] = ContextVar(
    "hookline_model_request", default=None
)
"""The model call that the SDK is sending; set around its ``request``."""
_PERMIT = "hookline.permit"


class _Permit:
    """Lets one request of a model call out, once."""

    def __init__(self, model_request: Any) -> None:
        self.owner: HttpHooks | None = model_request.owner
        self.model_request: Any = model_request


def permitted(request: Any) -> Any:
    """A request that the SDK has built; only those of its model calls go out.

    Others that are sent meanwhile, in the same context or a task with a copy of it,
    have no permit.
    """
    if (model_request := current.get()) is not None:
        request.extensions[_PERMIT] = _Permit(model_request)
    return request


class HttpHooks:
    """The hooks of one client, around what it sends."""

    def __init__(
        self, hooks: ClientHooks, endpoints: Endpoints, *, is_async: bool
    ) -> None:
        self.hooks = hooks
        self.session = hooks.session
        self.endpoints = endpoints
        self.wait = Waiting(hooks.session, is_async=is_async)

    async def begin(self, options: Any) -> tuple[ModelRequest | None, Any]:
        """Fire the hooks before a model call; gives the options to send."""
        method, path = options.method.upper(), urlsplit(options.url).path
        api = self.endpoints.api(method, path)
        if api is None:
            await self.check(method, path)
            return None, options
        call = await self.wait.hooks(self._begin(api, options, f"{method} {path}"))
        if call is None:
            return None, options
        new = {"json_data": call.request, "extra_json": None, "content": None}
        is_stream = call.given.get("stream") is True
        request = ModelRequest(self, api, call, is_stream=is_stream)
        return request, options.model_copy(update=new)

    async def _begin(
        self, api: ModelApi, options: Any, what: str
    ) -> HookedModelCall | None:
        listening = await self._listening(_MODEL_EVENTS)
        if not listening:
            return None
        body = _body_of(options)
        if body is None:
            raise UnhookedCallError(what, "its body is not a JSON object", listening)
        run = self.hooks.begin_run()
        call = await run.begin_model(body, translator=api.translator)
        is_judged = call.allowed_names is not None or _AFTER_MODEL in listening
        if is_judged and (option := api.unseen_option(body)) is not None:
            raise UnseenResponseError(option)
        return call

    async def check(self, method: str, path: str) -> None:
        """Refuse a request that hooks would have to see, and cannot."""
        if self.endpoints.is_harmless(method, path):
            return
        why, events = self.endpoints.why, _MODEL_EVENTS
        if method == "GET":
            why = "it may return what hooks took out of an answer"
            events = (HookEventName.BeforeToolSelection, _AFTER_MODEL)
        if found := await self.wait.hooks(self._listening(events)):
            raise UnhookedCallError(f"{method} {path}", why, found)

    def check_socket(self) -> None:
        """Refuse a web socket."""
        if found := self.session.run_sync(self._listening(_MODEL_EVENTS)):
            raise UnhookedCallError("a web socket", "it is no HTTP request", found)

    async def _listening(self, events: Iterable[HookEventName]) -> list[HookEventName]:
        """Those of some events that have hooks."""
        return [event for event in events if await self.session.has_hooks(event)]

    def guarded(self, send: Any, request: Any, *, stream: bool, **more: Any) -> Any:
        """Send a request with a function of the SDK; gives a coroutine if that does."""
        work = self.send(request, partial(send, **more), stream=stream)
        return work if self.wait.is_async else run_to_end(work)

    async def send(self, request: Any, send: Any, *, stream: bool) -> Any:
        """Send a request of the client's; ``send`` is the SDK's own function."""
        permit = request.extensions.get(_PERMIT)
        if not isinstance(permit, _Permit) or permit.owner is not self:
            await self.check(request.method.upper(), request.url.path)
        elif permit.model_request is not None:
            model_request, permit.model_request = permit.model_request, None
            try:
                return await self.exchange(model_request, request, send, stream=stream)
            finally:
                permit.owner = None  # nobody can send it again without hooks
        return await self.wait.value(send(request, stream=stream))

    async def exchange(
        self, model_request: ModelRequest, request: Any, send: Any, *, stream: bool
    ) -> Any:
        """Send the request of a model call, and answer with what hooks left."""
        call = model_request.call
        if call.refused:
            answer = model_request.refusal()
            return _response(request, None, answer, stream=stream)
        response = await self.wait.value(send(request, stream=stream))
        if not response.is_success:
            return response
        # The SDK reads what it asked for, whatever the service calls it.
        kind = str(response.headers.get("content-type", ""))
        is_stream = model_request.is_stream or kind.startswith(_EVENT_STREAM)
        if call.allowed_names is None:
            if not await self.wait.hooks(self.session.has_hooks(_AFTER_MODEL)):
                return response
            # What the SDK asked for whole has been read: nobody would listen.
            can_listen = is_stream and not response.is_stream_consumed
            if can_listen and not await self.wait.hooks(
                self.hooks.buffering.is_needed()
            ):
                model_request.listen(response)
                return response
        read = response.aread if self.wait.is_async else response.read
        content = bytes(await self.wait.value(read()))
        answer = await model_request.answer(content, is_stream=is_stream)
        if answer is content and not stream:
            return response
        return _response(request, response, answer, stream=stream)


class ModelRequest:
    """One model call of a client, with all its retries."""

    def __init__(
        self, owner: HttpHooks, api: ModelApi, call: HookedModelCall, *, is_stream: bool
    ) -> None:
        self.owner = owner
        self.api = api
        self.call = call
        self.is_stream = is_stream

    def refusal(self) -> bytes:
        """The answer in place of the model's."""
        empty = self.api.refusal(self.call.given, self.call.reason or "")
        whole = plain(self.call.response)
        if whole is None:
            whole = empty
        elif isinstance(whole, dict):
            whole = {**whole, "id": empty["id"], "model": empty["model"]}
        return self._encoded(whole, is_stream=self.is_stream)

    async def answer(self, content: bytes, *, is_stream: bool) -> bytes:
        """What hooks left of an answer; the same object if they changed nothing."""
        events, shown = read_events(content) if is_stream else ([], content)
        if problems := [e["error"] for e in events if e.get("error")]:
            # The stream was aborted: no hook has seen what came before.
            return server_sent({"error": problems[0]}).encode()
        whole = self._whole(content, events)
        outcome = await self.owner.wait.hooks(self.call.finish(whole))
        left, is_stopped = plain(outcome.response), outcome.stop_reason is not None
        if isinstance(left, dict):
            left = self._without_calls(left, is_stopped=is_stopped)
        elif is_stopped or self.call.allowed_names is not None:
            # Nobody can tell which tools it calls.
            left = self.api.refusal(self.call.given, "The answer cannot be read")
        if left is whole and self._is_shown(events, whole):
            return shown if events else content
        return self._encoded(left, is_stream=is_stream)

    def _whole(self, content: bytes, events: list[Body]) -> Any:
        try:
            return self.api.whole(events) if events else json.loads(content)
        # The answer may be anything. What is unreadable here the hooks cannot read
        # either, so that one with onError "block" still blocks.
        except Exception as error:  # noqa: BLE001
            logger.warning("cannot read the answer of a model: %s", type(error))
            return content.decode(errors="replace")

    def _is_shown(self, events: list[Body], whole: Any) -> bool:
        try:
            return not events or self.api.is_shown(events, whole)
        except TranslationError:
            return True  # nor could the hooks read it: their policies let it pass

    def _without_calls(self, whole: Body, *, is_stopped: bool) -> Body:
        allowed = frozenset() if is_stopped else self.call.allowed_names
        if allowed is None:
            return whole
        left, lost = self.api.without_calls(whole, allowed)
        if not lost:
            return whole
        self.owner.hooks.warn_dropped(lost, is_stopped=is_stopped)
        return left

    def _encoded(self, whole: Any, *, is_stream: bool) -> bytes:
        if is_stream and isinstance(whole, dict):
            return self.api.stream(whole).encode()
        return json.dumps(whole, ensure_ascii=False).encode()

    def listen(self, response: Any) -> None:
        """Fire AfterModel at the end of a stream that passes at once."""
        module = _http_module(response)
        ended = partial(self._ended, module.Response, response.headers)
        response.stream = _tee_class(module)(response.stream, ended)

    async def _ended(
        self, new: Any, headers: Any, raw: bytes, *, is_whole: bool
    ) -> None:
        content = new(200, headers=headers, content=raw).content
        events, _ = read_events(content)
        if is_whole or self.api.is_complete(events):
            whole = self._whole(content, events)
            await self.owner.wait.hooks(self.call.finish(whole))


class _Tee:
    """The bytes of a stream; ``ended`` gets them when it is over."""

    def __init__(self, stream: Any, ended: Any) -> None:
        self._stream = stream
        self._ended = ended
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
        ended, self._ended = self._ended, None
        if ended is not None:
            await ended(b"".join(self._chunks), is_whole=self._is_whole)


@lru_cache
def _tee_class(module: Any) -> Any:
    return type("Tee", (_Tee, module.SyncByteStream, module.AsyncByteStream), {})


def _http_module(value: Any) -> Any:
    """The package of a request or response: SDKs take clients of httpx and httpx2."""
    found = (kind.__module__.partition(".")[0] for kind in type(value).__mro__)
    return sys.modules[next(name for name in found if name in ("httpx", "httpx2"))]


_OF_THE_BODY = ("content-length", "content-encoding", "transfer-encoding")
_EVENT_STREAM = "text/event-stream"


def _response(request: Any, before: Any, content: bytes, *, stream: bool) -> Any:
    """A response as the SDK wants it: read, or to be read."""
    module = _http_module(request)
    if before is None:
        kind = "application/json" if content.startswith(b"{") else _EVENT_STREAM
        before = module.Response(200, headers={"content-type": kind})
    headers = before.headers.multi_items()
    made = module.Response(
        before.status_code,
        headers=[(k, v) for k, v in headers if k.lower() not in _OF_THE_BODY],
        request=request,
        history=before.history,
        **({"stream": module.ByteStream(content)} if stream else {"content": content}),
    )
    # A transport that gave its content at once has not set it.
    made.elapsed = getattr(before, "_elapsed", timedelta())
    return made


def read_events(content: bytes) -> tuple[list[Body], bytes]:
    """The server-sent events up to ``[DONE]``, and a stream of nothing but these.

    No hook can judge comments, other values than JSON objects, or cut-off events.
    """
    found: list[Body] = []
    kept: list[str] = []
    text = content.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    for event in text.split("\n\n"):
        lines = [line[5:] for line in event.split("\n") if line.startswith("data:")]
        data = "\n".join(line.removeprefix(" ") for line in lines)
        is_end = data.startswith("[DONE]")
        value = None if is_end else _object_of(data)
        if is_end or value is not None:
            kept.append(f"{event}\n\n")
        if is_end:
            break
        if value is not None:
            found.append(value)
    return found, "".join(kept).encode()


def _object_of(data: str) -> Body | None:
    try:
        value = json.loads(data)
    except ValueError:
        value = None
    if isinstance(value, dict):
        return value
    if data:
        logger.warning("left out an event of a stream that is not a JSON object")
    return None


def server_sent(data: Body, event: str | None = None) -> str:
    """One server-sent event."""
    head = "" if event is None else f"event: {event}\n"
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n"


def _body_of(options: Any) -> Body | None:
    """The JSON object that a request will send, as hooks and the service read it."""
    if options.files:
        return None
    body = options.json_data
    try:
        if getattr(options, "content", None) is not None or isinstance(body, bytes):
            body = json.loads(body if isinstance(body, bytes) else options.content)
        merged = {**(body or {}), **(options.extra_json or {})}
        given = {k: v for k, v in merged.items() if type(v).__name__ != "Omit"}
        found = json.loads(json.dumps(given, default=_json_value))
    except (TypeError, ValueError):
        return None
    return dict(found)


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if hasattr(value, "model_dump"):
        return plain(value)
    raise TypeError(f"not a JSON value: {type(value)}")


def plain(value: Any) -> Any:
    """An object of an SDK as a dict; any other value as it is."""
    if not hasattr(value, "model_dump"):
        return value
    return value.model_dump(
        mode="json", exclude_unset=True, by_alias=True, warnings=False
    )
