"""What a hooked client of openai refuses: nothing slips past (issue 14, clients)."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai import OpenAI
from openai._models import FinalRequestOptions
from openai._resource import SyncAPIResource

from hookline import Config
from hookline.agent import hooked
from hookline.errors import UnhookedCallError, UnseenResponseError

from .openai_ways import CHAT, RESPONSES, config_with

KEY: dict[str, Any] = {"api_key": "k", "base_url": "http://local/v1", "max_retries": 0}


class Wire:
    """A transport that answers everything with an empty object, and remembers it."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(f"{request.method} {request.url.path.removeprefix('/v1')}")
        return httpx2.Response(200, json={})

    def client(self) -> OpenAI:
        http = httpx2.Client(transport=httpx2.MockTransport(self))
        return OpenAI(**KEY, http_client=http)

    def async_client(self) -> openai.AsyncOpenAI:
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(self))
        return openai.AsyncOpenAI(**KEY, http_client=http)


def listening(folder: Path, *events: str) -> Config:
    """A Config whose hooks say nothing."""
    given = events or ("BeforeToolSelection", "BeforeModel", "AfterModel")
    return config_with(folder, **dict.fromkeys(given, lambda _: None))


def resources(owner: Any, name: str = "client") -> Iterator[tuple[str, Any]]:
    """All resources of a client, with the names that lead to them."""
    for key in dir(type(owner)):
        made = inspect.getattr_static(type(owner), key)
        if not isinstance(made, cached_property) or key.startswith("with_"):
            continue
        found = getattr(owner, key)
        if isinstance(found, SyncAPIResource):
            yield f"{name}.{key}", found
            yield from resources(found, f"{name}.{key}")


def methods(client: OpenAI) -> Iterator[tuple[str, Any]]:
    """All methods of all resources, except those that wait for others."""
    for name, resource in resources(client):
        for key, method in inspect.getmembers(resource, inspect.ismethod):
            is_loop = "poll" in key or "wait" in key
            if not key.startswith("_") and not is_loop:
                yield f"{name}.{key}", method


def invoke(method: Any) -> BaseException | None:
    """Call a method with values for what it requires, and enter what it returns."""
    required = [
        name
        for name, one in inspect.signature(method).parameters.items()
        if one.default is one.empty
        and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what the SDK will remove
        return _result(method, {name: VALUES.get(name, "x") for name in required})


def _result(method: Any, given: dict[str, Any]) -> BaseException | None:
    try:
        made = method(**given)
        if hasattr(made, "__enter__"):
            made.__enter__()
    # The SDK's own mistakes with such values, and with the empty answer.
    except Exception as error:  # noqa: BLE001
        return error
    return None


VALUES: dict[str, Any] = {
    "file": b"x",
    "image": b"x",
    "messages": CHAT["messages"],
    "input": "x",
    "data": b"x",
    "files": [],
    "items": [],
    "tool_outputs": [],
}

# What a hooked client sends: nothing of it calls a model or returns an answer of one.
HARMLESS = {
    "DELETE {}",
    "GET /batches", "GET /batches/x",
    "GET /containers", "GET /containers/x", "GET /containers/x/files",
    "GET /containers/x/files/x", "GET /containers/x/files/x/content",
    "GET /files", "GET /files/x", "GET /files/x/content",
    "GET /fine_tuning/checkpoints/x/permissions", "GET /fine_tuning/jobs",
    "GET /fine_tuning/jobs/x", "GET /fine_tuning/jobs/x/checkpoints",
    "GET /fine_tuning/jobs/x/events",
    "GET /models", "GET /models/x",
    "GET /skills", "GET /skills/x", "GET /skills/x/content",
    "GET /skills/x/versions", "GET /skills/x/versions/x",
    "GET /skills/x/versions/x/content",
    "GET /vector_stores", "GET /vector_stores/x",
    "GET /vector_stores/x/file_batches/x", "GET /vector_stores/x/file_batches/x/files",
    "GET /vector_stores/x/files", "GET /vector_stores/x/files/x",
    "GET /vector_stores/x/files/x/content",
    "GET /webhook_endpoints", "GET /webhook_endpoints/x",
    "POST /batches/x/cancel", "POST /containers", "POST /containers/x/files",
    "POST /files", "POST /skills", "POST /uploads", "POST /uploads/x/cancel",
    "POST /uploads/x/complete", "POST /uploads/x/parts",
    "POST /vector_stores", "POST /vector_stores/x",
    "POST /vector_stores/x/file_batches", "POST /vector_stores/x/files",
    "POST /vector_stores/x/files/x", "POST /webhook_endpoints",
    "POST /vector_stores/x/file_batches/x/cancel",
}  # fmt: skip
HOOKED = {"POST /chat/completions", "POST /responses"}


def test_every_method_of_every_resource_passes_the_hooks_or_sends_nothing_for_a_model(
    tmp_path: Path,
) -> None:
    wire = Wire()
    client = hooked(wire.client(), listening(tmp_path))
    refused = {}
    for name, method in methods(client):
        error = invoke(method)
        if isinstance(error, UnhookedCallError):
            refused[name] = str(error)
    sent = {"DELETE {}" if s.startswith("DELETE ") else s for s in wire.sent}
    assert sent <= HARMLESS | HOOKED, sorted(sent - HARMLESS - HOOKED)
    assert {
        "client.audio.speech.create",
        "client.audio.transcriptions.create",
        "client.batches.create",
        "client.beta.assistants.create",
        "client.beta.realtime.connect",
        "client.beta.responses.connect",
        "client.beta.threads.create_and_run",
        "client.beta.threads.messages.create",
        "client.beta.threads.runs.create",
        "client.chat.completions.retrieve",
        "client.completions.create",
        "client.embeddings.create",
        "client.evals.runs.create",
        "client.images.generate",
        "client.moderations.create",
        "client.realtime.connect",
        "client.responses.connect",
        "client.responses.retrieve",
        "client.videos.create",
    } <= set(refused), sorted(refused)


def test_every_web_socket_is_refused(tmp_path: Path) -> None:
    client = hooked(Wire().client(), listening(tmp_path))
    found = {n: invoke(m) for n, m in methods(client) if n.endswith(".connect")}
    assert len(found) >= 6
    assert {n for n, error in found.items() if not _is_refused(error)} == set()


def _is_refused(error: BaseException | None) -> bool:
    return isinstance(error, UnhookedCallError) and "web socket" in str(error)


def test_azure_web_sockets_are_refused(tmp_path: Path) -> None:
    with openai.AzureOpenAI(
        azure_endpoint="http://local", api_version="1", api_key="k"
    ) as azure:
        client = hooked(azure, listening(tmp_path))
        for connect in (client.realtime.connect, client.beta.realtime.connect):
            with pytest.raises(UnhookedCallError, match="web socket"):
                connect(model="m").__enter__()


async def test_async_web_sockets_are_refused(tmp_path: Path) -> None:
    client = hooked(Wire().async_client(), listening(tmp_path))
    for manager in (client.realtime.connect(model="m"), client.responses.connect()):
        with pytest.raises(UnhookedCallError, match="web socket"):
            await manager.__aenter__()


def _by_request(client: OpenAI) -> Any:
    options = FinalRequestOptions(method="post", url="/embeddings", json_data={})
    return client.request(object, options)


def _posted(path: str, **more: Any) -> Any:
    return lambda client: client.post(path, cast_to=object, **more)


def _read(path: str) -> Any:
    return lambda client: client.get(path, cast_to=object)


COMPLETIONS = "/chat/completions"
DIRECT: dict[str, Any] = {
    "post": _posted("/embeddings", body={}),
    "post to a later resource": _posted("/novelties", body={}),
    "an unknown name below a known one": _posted("/files/x/ask"),
    "a known name below an unknown one": _read("/new/files/x"),
    "dots": _read("/files/../responses/x"),
    "another spelling": _read("/files/%2e%2e/responses/x"),
    "put": lambda c: c.put("/embeddings", cast_to=object, body={}),
    "patch": lambda c: c.patch("/embeddings", cast_to=object, body={}),
    "request": _by_request,
    "get": _read("/responses/resp_1"),
    "a whole address": _posted("http://other/v1/embeddings"),
    "http client": lambda c: c._client.post("http://local/v1/chat/completions"),
    "http stream": lambda c: c._client.stream("POST", "http://l/x").__enter__(),
    "http client of a copy": lambda c: c.copy()._client.post("http://local/v1/x"),
    "client of a resource": lambda c: c.chat._client._client.post("http://l/"),
    "raw response": lambda c: c.images.with_raw_response.generate(prompt="a cat"),
    "unreadable body": _posted(COMPLETIONS, content=b"?"),
    "body from an iterator": _posted(COMPLETIONS, content=iter([b"{}"])),
    "files": _posted(COMPLETIONS, body={}, files={"f": b""}),
}


@pytest.mark.parametrize("call", DIRECT.values(), ids=DIRECT)
def test_direct_requests_are_refused(tmp_path: Path, call: Any) -> None:
    wire = Wire()
    client = hooked(wire.client(), listening(tmp_path))
    with pytest.raises(UnhookedCallError, match="refused on a hooked client"):
        call(client)
    assert wire.sent == []


def test_a_request_that_was_sent_is_not_sent_again_without_hooks(
    tmp_path: Path,
) -> None:
    wire = Wire()
    client = hooked(wire.client(), listening(tmp_path))
    raw = client.chat.completions.with_raw_response.create(**CHAT)
    with pytest.raises(UnhookedCallError):
        client._client.send(raw.http_request)
    assert wire.sent == ["POST /chat/completions"]


def test_names_with_special_letters_are_no_other_path(tmp_path: Path) -> None:
    wire = Wire()
    client = hooked(wire.client(), listening(tmp_path))
    client.models.retrieve("ft:gpt-4.1:org::x y")
    client.files.retrieve(".hidden")
    assert len(wire.sent) == 2


async def test_direct_requests_of_an_async_client_are_refused(tmp_path: Path) -> None:
    wire = Wire()
    client = hooked(wire.async_client(), listening(tmp_path))
    with pytest.raises(UnhookedCallError, match=r"POST /v1/chat/completions"):
        await client._client.post("http://local/v1/chat/completions", json=CHAT)
    with pytest.raises(UnhookedCallError, match="POST /embeddings"):
        await client.embeddings.create(model="m", input="x")
    assert wire.sent == []


async def test_a_request_beside_a_model_call_is_no_part_of_it(tmp_path: Path) -> None:
    """Neither in its context, nor in a task that was started there."""
    wire, going_on = Wire(), asyncio.Event()
    refused: list[bool] = []

    async def post() -> None:
        with pytest.raises(UnhookedCallError):
            await client._client.post("http://local/v1/chat/completions", json=CHAT)
        refused.append(True)

    async def later() -> None:
        await going_on.wait()
        await post()

    async def key() -> str:
        tasks.append(asyncio.create_task(later()))
        await post()
        return "k"

    tasks: list[asyncio.Task[None]] = []
    own = wire.async_client().with_options(api_key=key)
    client = hooked(own, listening(tmp_path))
    await client.chat.completions.create(**CHAT)
    going_on.set()
    await asyncio.gather(*tasks)
    assert len(refused) == 2
    assert wire.sent == ["POST /chat/completions"]


class Novelties(SyncAPIResource):
    """A resource that a later release may add."""

    def ask(self, prompt: str) -> object:
        return self._post("/novelties", cast_to=object, body={"prompt": prompt})


class LaterOpenAI(OpenAI):
    """A later release, with one resource made at once and one when it is used."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.early = Novelties(self)

    @cached_property
    def late(self) -> Novelties:
        return Novelties(self)


def test_resources_of_a_later_release_are_refused(tmp_path: Path) -> None:
    wire = Wire()
    http = httpx2.Client(transport=httpx2.MockTransport(wire))
    client = LaterOpenAI(**KEY, http_client=http)
    assert client.late is client.late
    made = hooked(client, listening(tmp_path))
    for resource in (made.early, made.late):
        with pytest.raises(UnhookedCallError, match="POST /novelties"):
            resource.ask("hi")
    assert wire.sent == []
    client.late.ask("hi")  # the client itself is as it was
    assert wire.sent == ["POST /novelties"]


async def test_a_copy_with_another_http_client_has_hooks_too(tmp_path: Path) -> None:
    wire = Wire()
    seen: list[Any] = []
    config = config_with(tmp_path, BeforeModel=seen.append)
    other = httpx2.Client(transport=httpx2.MockTransport(wire))
    made = hooked(Wire().client(), config)
    copied = made.with_options(http_client=other)
    with pytest.raises(UnhookedCallError):
        copied._client.post("http://local/v1/chat/completions")
    with pytest.raises(UnhookedCallError):
        copied.embeddings.create(model="m", input="x")
    copied.responses.create(**RESPONSES)
    fresh = type(made)(**KEY, http_client=other)
    fresh.responses.create(**RESPONSES)
    assert len(seen) == 2
    assert wire.sent == ["POST /responses"] * 2


@pytest.mark.parametrize("event", ["BeforeToolSelection", "BeforeModel", "AfterModel"])
def test_a_refusal_names_the_hooks_that_would_miss_the_call(
    tmp_path: Path, event: str
) -> None:
    client = hooked(Wire().client(), listening(tmp_path, event))
    with pytest.raises(UnhookedCallError) as caught:
        client.images.generate(prompt="a cat")
    assert caught.value.events == (event,)
    assert "use a client without hooks" in str(caught.value)


def test_nothing_is_refused_without_hooks_on_model_calls(tmp_path: Path) -> None:
    wire = Wire()
    client = hooked(wire.client(), listening(tmp_path, "BeforeTool", "SessionStart"))
    client.embeddings.create(model="m", input="x", encoding_format="float")
    client.responses.retrieve("resp_1")
    client._client.post("http://local/v1/anything")
    assert len(wire.sent) == 3


def test_reading_is_allowed_while_only_before_model_hooks_listen(
    tmp_path: Path,
) -> None:
    """A request that sends no prompt has nothing for them."""
    wire = Wire()
    client = hooked(wire.client(), listening(tmp_path, "BeforeModel"))
    client.responses.retrieve("resp_1")
    assert wire.sent == ["GET /responses/resp_1"]


async def test_background_responses_are_refused_while_after_model_hooks_listen(
    tmp_path: Path,
) -> None:
    wire = Wire()
    client = hooked(wire.client(), listening(tmp_path))
    with pytest.raises(UnseenResponseError, match="background"):
        client.responses.create(**RESPONSES, background=True)
    with pytest.raises(UnseenResponseError, match="background"):
        client.responses.create(**RESPONSES, extra_body={"background": True})
    assert wire.sent == []
    before = hooked(wire.client(), listening(tmp_path, "BeforeModel"))
    before.responses.create(**RESPONSES, background=True)
    assert wire.sent == ["POST /responses"]


def test_what_is_in_the_extra_body_is_seen_and_can_be_changed(
    tmp_path: Path,
) -> None:
    seen: list[Any] = []
    config = config_with(tmp_path, BeforeModel=seen.append)
    hidden = {"messages": [{"role": "user", "content": "hidden"}]}
    client = hooked(Wire().client(), config)
    client.chat.completions.create(**CHAT, extra_body=hidden)
    assert [m["content"] for m in seen[0]["llm_request"]["messages"]] == ["hidden"]
