"""What clients of the SDKs send: a transport that keeps it, and all their methods."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import anthropic
import httpx2
import openai

from hookline import Config

from .model_calls import CHAT, settled
from .recorded_events import MODEL_EVENTS, TOOL_EVENTS, RecordedHooks

KEY: dict[str, Any] = {"api_key": "k", "max_retries": 0}


class RecordingTransport(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """Answers everything with an empty object, and keeps what was sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(f"{request.method} {request.url.path}")
        return httpx2.Response(200, json={})

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return self.handle_request(request)

    def client(self, kind: Any) -> Any:
        """A client of an SDK that sends everything here."""
        is_async = kind in (openai.AsyncOpenAI, anthropic.AsyncAnthropic)
        http = httpx2.AsyncClient if is_async else httpx2.Client
        is_openai = issubclass(kind, openai.OpenAI | openai.AsyncOpenAI)
        url = "http://local/v1" if is_openai else "http://local"
        return kind(**KEY, base_url=url, http_client=http(transport=self))


def listening(*events: str) -> Config:
    """A Config whose hooks say nothing."""
    return RecordedHooks(dict.fromkeys(events or MODEL_EVENTS + TOOL_EVENTS)).config


def resources(owner: Any, name: str = "client") -> Iterator[tuple[str, Any]]:
    """All resources below a client; with anthropic, raw and streaming forms too."""
    hidden = ("_", "with_") if "openai" in type(owner).__module__ else ("_",)
    for key in dir(type(owner)):
        made = inspect.getattr_static(type(owner), key)
        if key.startswith(hidden) or not isinstance(made, cached_property):
            continue
        value = getattr(owner, key)
        if ".resources" in type(value).__module__:
            yield f"{name}.{key}", value
            yield from resources(value, f"{name}.{key}")


def methods(client: Any) -> Iterator[tuple[str, Any]]:
    """All methods of all resources, except those that wait for others."""
    for path, resource in resources(client):
        for name, method in inspect.getmembers(resource, callable):
            waits = any(word in name for word in ("poll", "wait", "worker", "runner"))
            if not name.startswith("_") and not waits and not inspect.isclass(method):
                yield f"{path}.{name}", method


VALUES: dict[str, Any] = {
    "file": b"x", "image": b"x", "data": b"x", "messages": CHAT["messages"],
    "files": [], "items": [], "tool_outputs": [], "requests": [], "events": [],
    "tools": [], "max_tokens": 1,
}  # fmt: skip


async def invoke(method: Any) -> BaseException | None:
    """Call a method with values for what it requires, and enter what it returns."""
    given = {
        name: VALUES.get(name, "x")
        for name, parameter in inspect.signature(method).parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }
    try:
        made = await settled(method(**given))
        if hasattr(made, "__enter__"):
            made.__enter__()
        elif hasattr(made, "__aenter__"):
            await made.__aenter__()
    # The SDK's own mistakes with such values, and with the empty answer.
    except Exception as error:  # noqa: BLE001
        return error
    return None
