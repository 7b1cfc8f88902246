"""What hooked clients refuse beside what ``tests/pins/clients`` records.

Whatever a client can send passes the hooks or is refused: nothing is sent unseen.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable
from functools import cached_property
from typing import Any

import anthropic
import openai
import pytest
from openai._models import FinalRequestOptions
from openai._resource import SyncAPIResource

from hookline.agent import hooked
from hookline.errors import UnhookedCallError
from tests.support.client_requests import RecordingTransport, listening


def test_azure_web_sockets_are_refused() -> None:
    with openai.AzureOpenAI(
        azure_endpoint="http://local", api_version="1", api_key="k"
    ) as azure:
        client = hooked(azure, listening())
        for connect in (client.realtime.connect, client.beta.realtime.connect):
            with pytest.raises(UnhookedCallError, match="web socket"):
                connect(model="m").__enter__()


async def test_helpers_that_run_tools_for_the_service_are_refused() -> None:
    transport = RecordingTransport()
    client = hooked(transport.client(anthropic.AsyncAnthropic), listening())
    runner = client.beta.sessions.events.tool_runner(session_id="s", tools=[])
    work = client.beta.environments.work
    poller = work.poller(environment_id="e", environment_key="k")
    for helper in (runner, poller):
        assert "refused on a hooked client" in await reason_of_refusal(helper)
    assert not transport.sent


async def reason_of_refusal(helper: AsyncIterable[Any]) -> str:
    try:
        items = [item async for item in helper]
    except UnhookedCallError as error:
        return str(error)
    except ExceptionGroup as errors:
        return str(errors.exceptions[0])
    return str(items)


def _by_request(client: openai.OpenAI) -> Any:
    options = FinalRequestOptions(method="post", url="/embeddings", json_data={})
    return client.request(object, options)


DIRECT: dict[str, Callable[[Any], Any]] = {
    "request": _by_request,
    "files": lambda c: c.post(
        "/chat/completions", cast_to=object, body={}, files={"f": b""}
    ),
    "unreadable body": lambda c: c.post(
        "/chat/completions", cast_to=object, content=b"?"
    ),
    "body from an iterator": lambda c: c.post(
        "/chat/completions", cast_to=object, content=iter([b"{}"])
    ),
}


@pytest.mark.parametrize("name", list(DIRECT))
def test_direct_requests_are_refused(name: str) -> None:
    transport = RecordingTransport()
    client = hooked(transport.client(openai.OpenAI), listening("BeforeModel"))
    with pytest.raises(
        UnhookedCallError, match=r"refused on a hooked client.*BeforeModel hooks"
    ) as caught:
        DIRECT[name](client)
    assert caught.value.events == ("BeforeModel",)
    assert transport.sent == []


@pytest.mark.parametrize("kind", [openai.AsyncOpenAI, anthropic.AsyncAnthropic])
async def test_async_clients_refuse_direct_requests(kind: Any) -> None:
    transport = RecordingTransport()
    client = hooked(transport.client(kind), listening())
    with pytest.raises(UnhookedCallError, match="POST /novelties"):
        await client.with_options(timeout=3).post("/novelties", cast_to=object)
    assert transport.sent == []


class Novelties(SyncAPIResource):
    """A resource that a later release may add."""

    def ask(self, prompt: str) -> object:
        return self._post("/novelties", cast_to=object, body={"prompt": prompt})


class LaterOpenAI(openai.OpenAI):
    """A later release, with one resource made at once and one when it is used."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.early = Novelties(self)

    @cached_property
    def late(self) -> Novelties:
        return Novelties(self)


def test_resources_of_a_later_release_are_refused() -> None:
    transport = RecordingTransport()
    client = transport.client(LaterOpenAI)
    assert client.late is client.late
    guarded = hooked(client, listening())
    for resource in (guarded.early, guarded.late):
        with pytest.raises(UnhookedCallError, match="POST /novelties"):
            resource.ask("hi")
    assert transport.sent == []
    client.late.ask("hi")  # the client itself is as it was
    assert transport.sent == ["POST /v1/novelties"]
