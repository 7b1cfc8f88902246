"""Every method of every resource of a hooked anthropic client, of this release.

Issue 14, "Clients: one line": each passes the hooks or is refused.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import AsyncIterable, Iterator
from pathlib import Path
from typing import Any

import httpx2
from anthropic import Anthropic, AsyncAnthropic

from hookline import Config
from hookline.agent import hooked
from hookline.errors import UnhookedCallError

from .anthropic_ways import REQUEST, Hooks, config_in

EVENTS = ("BeforeToolSelection", "BeforeModel", "AfterModel", "BeforeTool", "AfterTool")
VALUES: dict[str, Any] = {
    "messages": REQUEST["messages"],
    "requests": [],
    "events": [],
    "tools": [],
    "files": [],
    "file": b"x",
    "max_tokens": 1,
}
HOOKED = {"POST /v1/messages"}
HARMLESS = {
    "GET /v1/models", "GET /v1/models/x",
    "GET /v1/files", "POST /v1/files", "GET /v1/files/x", "DELETE /v1/files/x",
    "GET /v1/files/x/content",
    "GET /v1/skills", "POST /v1/skills", "GET /v1/skills/x", "DELETE /v1/skills/x",
    "GET /v1/skills/x/versions", "POST /v1/skills/x/versions",
    "GET /v1/skills/x/versions/x", "DELETE /v1/skills/x/versions/x",
    "GET /v1/skills/x/versions/x/content",
    "GET /v1/messages/batches", "GET /v1/messages/batches/x",
    "DELETE /v1/messages/batches/x", "POST /v1/messages/batches/x/cancel",
}  # fmt: skip


class Wire(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """Answers with nothing, and keeps what was sent."""

    def __init__(self) -> None:
        self.sent: set[str] = set()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.add(f"{request.method} {request.url.path}")
        return httpx2.Response(200, json={})

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return self.handle_request(request)


def resources(parent: Any, path: str = "client") -> Iterator[tuple[str, Any]]:
    """All resources below a client, and their raw and streaming forms."""
    for name in dir(type(parent)):
        if name.startswith("_") or name in ("with_options", "copy"):
            continue
        kind = getattr(type(parent), name)
        if not isinstance(kind, property) and not hasattr(kind, "func"):
            continue
        found = getattr(parent, name)
        if type(found).__module__.startswith("anthropic.resources"):
            yield f"{path}.{name}", found
            yield from resources(found, f"{path}.{name}")


def methods(client: Any) -> Iterator[tuple[str, Any]]:
    """All methods of all resources, except those that wait for others."""
    for path, resource in resources(client):
        for name, method in inspect.getmembers(resource, callable):
            is_loop = any(word in name for word in ("poll", "worker", "runner"))
            if not name.startswith("_") and not is_loop and not inspect.isclass(method):
                yield f"{path}.{name}", method


def given_to(method: Any) -> dict[str, Any]:
    """Values for what a method requires."""
    return {
        name: VALUES.get(name, "x")
        for name, one in inspect.signature(method).parameters.items()
        if one.default is one.empty
        and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    }


def invoke(method: Any) -> BaseException | None:
    try:
        made = method(**given_to(method))
        if hasattr(made, "__enter__"):
            made.__enter__()
    # The SDK's own mistakes with such values, and with the empty answer.
    except Exception as error:  # noqa: BLE001
        return error
    return None


async def invoke_async(method: Any) -> BaseException | None:
    try:
        made = method(**given_to(method))
        if inspect.isawaitable(made):
            made = await made
        if hasattr(made, "__aenter__"):
            await made.__aenter__()
    except Exception as error:  # noqa: BLE001 - as above
        return error
    return None


REFUSED = {
    "client.messages.batches.create",
    "client.messages.count_tokens",
    "client.beta.messages.batches.create",
    "client.beta.agents.create",
    "client.beta.sessions.create",
    "client.beta.sessions.events.send",
    "client.beta.sessions.events.list",
    "client.beta.environments.create",
    "client.beta.deployments.create",
    "client.beta.dreams.create",
    "client.beta.memory_stores.create",
    "client.beta.messages.with_raw_response.count_tokens",
}


def listening(folder: Path) -> Config:
    return Hooks(config_in(folder), **dict.fromkeys(EVENTS)).config


def test_every_method_passes_the_hooks_or_sends_nothing_for_a_model(
    tmp_path: Path,
) -> None:
    wire = Wire()
    http = httpx2.Client(transport=wire)
    client = hooked(Anthropic(api_key="k", http_client=http), listening(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what the SDK will remove
        found = {name: invoke(method) for name, method in methods(client)}
    refused = {n for n, e in found.items() if isinstance(e, UnhookedCallError)}
    assert len(found) > 500
    assert wire.sent <= HOOKED | HARMLESS, sorted(wire.sent - HOOKED - HARMLESS)
    assert wire.sent >= HOOKED
    assert refused >= REFUSED


async def test_every_method_of_an_async_client_does_the_same(tmp_path: Path) -> None:
    wire = Wire()
    http = httpx2.AsyncClient(transport=wire)
    client = hooked(AsyncAnthropic(api_key="k", http_client=http), listening(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {n: await invoke_async(method) for n, method in methods(client)}
    refused = {n for n, e in found.items() if isinstance(e, UnhookedCallError)}
    assert wire.sent <= HOOKED | HARMLESS, sorted(wire.sent - HOOKED - HARMLESS)
    assert "client.messages.batches.create" in refused
    assert "client.beta.sessions.events.send" in refused


async def test_helpers_that_run_tools_for_the_service_are_refused(
    tmp_path: Path,
) -> None:
    wire = Wire()
    http = httpx2.AsyncClient(transport=wire)
    client: Any = hooked(
        AsyncAnthropic(api_key="k", http_client=http), listening(tmp_path)
    )
    runner = client.beta.sessions.events.tool_runner(session_id="s", tools=[])
    work = client.beta.environments.work
    poller = work.poller(environment_id="e", environment_key="k")
    for helper in (runner, poller):
        assert "refused on a hooked client" in await why_refused(helper)
    assert not wire.sent


async def why_refused(helper: AsyncIterable[Any]) -> str:
    try:
        found = [one async for one in helper]
    except UnhookedCallError as error:
        return str(error)
    except ExceptionGroup as errors:
        return str(errors.exceptions[0])
    return str(found)
