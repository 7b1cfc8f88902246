"""``hooked(OpenAI(), config)``: Chat Completions and Responses pass the hooks.

Every other call of a model is refused while hooks listen to model calls: embeddings,
images, audio, assistants, batches, web sockets, and what a later release adds.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from hookline.errors import MissingExtraError, UnknownClientError
from hookline.protocol.events import HookEventName
from hookline.translators.openai import OpenAITranslator, ResponsesTranslator
from hookline.translators.values import get, items

from . import ClientHooks
from .http import (
    AFTER_MODEL,
    MODEL_EVENTS,
    Body,
    ClientRequests,
    Endpoints,
    Hidden,
    HookedAsyncClient,
    HookedClient,
    HookedSyncClient,
    ModelApi,
    hooked_copy,
    http_module,
    plain,
    server_sent,
)

try:
    from openai import (
        APIConnectionError,
        APITimeoutError,
        AsyncOpenAI,
        OpenAI,
        _streaming,
    )
except ImportError as error:
    raise MissingExtraError("openai", "openai") from error

# A release without these would send or show something past the hooks.
_USED = (
    "request",
    "_process_response",
    "_make_sse_decoder",
    "_prepare_url",
    "_websocket_query_params",
    "auth_headers",
)
if not all(hasattr(kind, name) for kind in (OpenAI, AsyncOpenAI) for name in _USED):
    raise MissingExtraError("openai", "openai", "3.49")


def hooked_openai(client: Any, hooks: ClientHooks) -> Any:
    """Pass the model calls of an ``OpenAI`` or ``AsyncOpenAI`` through the hooks."""
    is_async = isinstance(client, AsyncOpenAI)
    if not is_async and not isinstance(client, OpenAI):
        raise UnknownClientError(type(client).__qualname__)
    mixin = HookedAsyncOpenAI if is_async else HookedOpenAI
    return hooked_copy(client, OpenAIRequests(hooks, is_async=is_async), mixin)


def _no_socket(name: str) -> Any:
    """Something of the SDK that every web socket begins with, and nothing else."""

    def checked(client: Any) -> Any:
        client._hookline.refuse_socket()  # noqa: SLF001 - our own field
        return getattr(super(_OpenAI, client), name)

    return property(checked)


class _OpenAI(HookedClient):
    auth_headers = _no_socket("auth_headers")
    _websocket_query_params = _no_socket("_websocket_query_params")
    _configure_realtime = _no_socket("_configure_realtime")
    _configure_realtime_with_api_key = _no_socket("_configure_realtime_with_api_key")


class HookedOpenAI(_OpenAI, HookedSyncClient):
    """Goes before ``OpenAI`` or a subclass of it."""


class HookedAsyncOpenAI(_OpenAI, HookedAsyncClient):
    """Goes before ``AsyncOpenAI`` or a subclass of it."""


def _filtered(api: ModelApi, body: Body, prefix: str) -> Body:
    """The answer that a service filtered, without a text."""
    candidate = {"finishReason": "SAFETY", "content": {"role": "model", "parts": []}}
    answer = plain(api.translator.from_hook_llm_response({"candidates": [candidate]}))
    model = str(body.get("model") or "")
    return {**answer, "id": f"{prefix}{uuid.uuid4().hex}", "model": model}


class ChatApi(ModelApi):
    """Chat Completions."""

    translator = OpenAITranslator()
    end_of_stream = server_sent("[DONE]")

    def refusal(self, body: Body, reason: str) -> Body:
        """A completion that was filtered, with the reason as the refusal."""
        whole = _filtered(self, body, "chatcmpl-hookline-")
        message = {"role": "assistant", "content": None, "refusal": reason or None}
        whole["choices"][0]["message"] = message
        return whole

    def is_complete(self, events: list[Body]) -> bool:
        """Whether every choice has its reason to end."""
        choices = [c for event in events for c in items(event.get("choices"))]
        finished = {get(c, "index") for c in choices if get(c, "finish_reason")}
        return bool(choices) and finished.issuperset(get(c, "index") for c in choices)

    def stream(self, whole: Body) -> Iterator[Body]:
        """The chunks of a completion."""
        head = {**whole, "object": "chat.completion.chunk"}
        usage = head.pop("usage", None)
        for choice in items(whole.get("choices")):
            message = {k: v for k, v in _message(choice).items() if v is not None}
            if "tool_calls" in message:
                calls = enumerate(message["tool_calls"])
                message["tool_calls"] = [{**call, "index": at} for at, call in calls]
            fields = {k: v for k, v in choice.items() if k != "message"}
            start = {**fields, "delta": message, "finish_reason": None}
            yield {**head, "choices": [start]}
            yield {**head, "choices": [{**fields, "delta": {}, "logprobs": None}]}
        if usage is not None:
            yield {**head, "choices": [], "usage": usage}

    def without_calls(
        self, whole: Body, allowed: frozenset[str]
    ) -> tuple[Body, list[str]]:
        """The completion without calls of other tools, and their names."""
        dropped: list[str] = []
        choices: list[Body] = []
        for choice in items(whole.get("choices")):
            message = _message(choice)
            calls = items(message.pop("tool_calls", None))
            remaining = [call for call in calls if _chat_name(call) in allowed]
            dropped += [_chat_name(call) for call in calls if call not in remaining]
            if remaining:
                message["tool_calls"] = remaining
            older_call = message.get("function_call")
            if older_call and _chat_name(older_call) not in allowed:
                dropped.append(_chat_name(message.pop("function_call")))
            reason = choice.get("finish_reason")
            if reason in ("tool_calls", "function_call") and not (
                remaining or "function_call" in message
            ):
                reason = "stop"
            choices.append({**choice, "message": message, "finish_reason": reason})
        return {**whole, "choices": choices}, dropped


def _message(choice: Body) -> Body:
    return dict(get(choice, "message") or {})


def _chat_name(call: Body) -> str:
    return str(get(get(call, "function", "custom") or call, "name") or "")


_OWN_ID = "resp_hookline_"


class ResponsesApi(ModelApi):
    """Responses."""

    translator = ResponsesTranslator()
    last_events = ("response.completed", "response.incomplete", "response.failed")

    def unseen_option(self, body: Body) -> str | None:
        """``background``: the answer comes with another request."""
        return "background" if body.get("background") else None

    def refusal(self, body: Body, reason: str) -> Body:
        """A response that was filtered, with the reason as a refusal."""
        whole = _filtered(self, body, _OWN_ID)
        if previous := body.get("previous_response_id"):
            whole |= {"id": f"{whole['id']}.{previous}"}
        content = [{"type": "refusal", "refusal": reason}]
        message = {**whole["output"][0], "status": "incomplete", "content": content}
        return {**whole, "output": [message] if reason else []}

    def is_shown(self, events: list[Body], whole: Body) -> bool:
        """Whether all texts and calls are those of the last event's response."""
        kind = "response.output_text.delta"
        deltas = [str(e.get("delta")) for e in events if e.get("type") == kind]
        text = self.translator.to_hook_llm_response(whole).text or ""
        is_same = "".join(deltas) == text
        return is_same and {"", *_texts(whole)}.issuperset(_texts(events))

    def stream(self, whole: Body) -> Iterator[Body]:
        """The events of a response."""
        started = {
            **whole, "status": "in_progress", "output": [], "usage": None,
            "incomplete_details": None,
        }  # fmt: skip
        events: list[Body] = [
            {"type": "response.created", "response": started},
            {"type": "response.in_progress", "response": started},
        ]
        for at, item in enumerate(items(whole.get("output"))):
            events += [{"output_index": at, **e} for e in _item_events(item)]
        # Even if it is incomplete: the SDK's helpers fail without this event.
        last = "failed" if whole.get("status") == "failed" else "completed"
        events.append({"type": f"response.{last}", "response": whole})
        for number, event in enumerate(events):
            yield {**event, "sequence_number": number}

    def without_calls(
        self, whole: Body, allowed: frozenset[str]
    ) -> tuple[Body, list[str]]:
        """The response without calls of other tools, and their names."""
        output = items(whole.get("output"))
        dropped = [i for i in output if _is_call(i) and i.get("name") not in allowed]
        remaining = [item for item in output if item not in dropped]
        while remaining and remaining[-1].get("type") == "reasoning":
            del remaining[-1]  # the service takes no reasoning that nothing follows
        names = [str(item.get("name") or item.get("type")) for item in dropped]
        return {**whole, "output": remaining}, names


def _texts(value: Any) -> Iterator[str]:
    """The texts and calls within some events or a response, wherever they are."""
    if isinstance(value, dict):
        if value.get("type") in ("output_text", "response.output_text.done"):
            yield str(value.get("text"))
        elif _is_call(value):
            yield str(value.get("name"))
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _is_call(item: Body) -> bool:
    """Whether the caller has to act on an item; the service runs the others."""
    kind = str(item.get("type"))
    if kind in ("function_call", "mcp_approval_request"):
        return True
    return kind.endswith("_call") and item.get("call_id") is not None


def _item_events(item: Body) -> Iterator[Body]:
    """The events of one item of the output."""
    kind, place = item.get("type"), {"item_id": item.get("id")}
    empty: Body = {"message": {"content": []}, "function_call": {"arguments": ""}}
    added = {**item, "status": "in_progress", **empty.get(str(kind), {})}
    yield {"type": "response.output_item.added", "item": added}
    for at, part in enumerate(items(item.get("content")) if kind == "message" else ()):
        is_text = part.get("type") == "output_text"
        key, name = ("text", "output_text") if is_text else ("refusal", "refusal")
        text = str(part.get(key) or "")
        place |= {"content_index": at}
        fields: Body = {**place, "logprobs": []} if is_text else place
        empty_part = {**part, key: ""}
        yield {"type": "response.content_part.added", "part": empty_part, **place}
        yield {"type": f"response.{name}.delta", "delta": text, **fields}
        yield {"type": f"response.{name}.done", key: text, **fields}
        yield {"type": "response.content_part.done", "part": part, **place}
    if kind == "function_call":
        name, arguments = "response.function_call_arguments", item["arguments"]
        yield {"type": f"{name}.delta", "delta": arguments, **place}
        call = {"arguments": arguments, "name": item.get("name")}
        yield {"type": f"{name}.done", **call, **place}
    yield {"type": "response.output_item.done", "item": item}


# Versions, deployments and the paths of proxies may come before.
_START = r"(?:/.*/(?:v\d\w*|openai|openapi)|/.*/deployments/[^/]+)?"
_STORED = "files|uploads|vector_stores|containers|skills|webhook_endpoints"


class OpenAIRequests(ClientRequests):
    """What one client sends."""

    sse_decoder = _streaming.SSEDecoder
    endpoints = Endpoints(
        models=(
            (r"POST /(.*/)?chat/completions/?", ChatApi()),
            (r"POST /(.*/)?responses/?", ResponsesApi()),
        ),
        harmless=(
            "DELETE .*",
            rf"GET {_START}/(?:models|batches|fine_tuning|{_STORED})(?:/.*)?",
            rf"POST {_START}/(?:files|uploads|containers|skills|webhook_endpoints)",
            rf"POST {_START}/uploads/[^/]+/(?:parts|complete|cancel)",
            rf"POST {_START}/vector_stores(?:/[^/]+)?",
            rf"POST {_START}/vector_stores/[^/]+/(?:files|file_batches)(?:/[^/]+)?",
            rf"POST {_START}/containers/[^/]+/files",
            rf"POST {_START}/batches/[^/]+/cancel",
        ),
        hidden=(
            Hidden(
                "GET .*",
                (HookEventName.BeforeToolSelection, AFTER_MODEL),
                "it may return what hooks took out of an answer",
            ),
            Hidden(
                ".*",
                MODEL_EVENTS,
                "only client.chat.completions and client.responses pass the hooks",
            ),
        ),
    )

    async def prepared(
        self, client: Any, target: str, options: Any, listening: list[HookEventName]
    ) -> Any:
        """The options, whose request may follow a response that hooks gave."""
        body = options.json_data
        previous = str(get(body, "previous_response_id") or "")
        if isinstance(body, dict) and previous.startswith(_OWN_ID):
            # The service does not know it, but what came before.
            body = {k: v for k, v in body.items() if k != "previous_response_id"}
            if earlier_id := previous.partition(".")[2]:
                body["previous_response_id"] = earlier_id
        changes = {"json_data": body}
        if listening and not options.files:
            whole = _whole_body(options, body)
            if whole is not None:
                changes = {"json_data": whole, "extra_json": None, "content": None}
        return options.model_copy(update=changes)

    async def read(self, http: Any) -> bytes:
        """The content of a stream, with the errors that the SDK raises for it."""
        httpx = http_module(http)
        try:
            return await super().read(http)
        except httpx.TimeoutException as error:
            raise APITimeoutError(request=http.request) from error
        except httpx.RequestError as error:
            raise APIConnectionError(request=http.request) from error


def _whole_body(options: Any, body: Any) -> Body | None:
    """The JSON object that a request will send, as hooks and the service read it."""
    try:
        if isinstance(body, bytes) or options.content is not None:
            body = json.loads(body if isinstance(body, bytes) else options.content)
        merged = {**(body or {}), **(options.extra_json or {})}
        fields = {k: v for k, v in merged.items() if type(v).__name__ != "Omit"}
        return dict(json.loads(json.dumps(fields, default=_json_value)))
    except (TypeError, ValueError):
        return None


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if hasattr(value, "model_dump"):
        return plain(value)
    raise TypeError(f"not a JSON value: {type(value)}")
