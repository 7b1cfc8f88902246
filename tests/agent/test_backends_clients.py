"""Models of the agent take plain clients too (issue 14, "Clients: one line")."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from hookline.agent import Agent, AnthropicModel, GenAIModel
from hookline.testing.modelapi import Answer, ModelServer

from .anthropic_ways import config_in, plain_client
from .servers import genai_client


def look(path: str) -> str:
    """Look at a file."""
    return f"{path} is empty"


CALL = Answer("let me look", (("look", {"path": "a"}),))


def plain_anthropic(server: ModelServer) -> tuple[Any, Any]:
    client = plain_client(server)
    return AnthropicModel(client, "m"), client


def async_genai(server: ModelServer) -> tuple[Any, Any]:
    client = genai_client(server)
    return GenAIModel(client.aio, "m"), client


@pytest.mark.parametrize("make", [plain_anthropic, async_genai])
async def test_an_agent_runs_with_it(make: Any, tmp_path: Path) -> None:
    with ModelServer([CALL, "all empty"]) as server:
        model, client = make(server)
        async with config_in(tmp_path) as config, Agent(config, model, [look]) as agent:
            result = await agent.run("go")
        client.close()
        if hasattr(client, "aio"):
            await client.aio.aclose()
    assert result.text == "all empty"


async def test_a_plain_client_does_not_block_the_event_loop() -> None:
    with ModelServer(["one two"]) as server:
        server.gate = threading.Event()
        model, client = plain_anthropic(server)
        chunks: list[Any] = []
        started = asyncio.Event()

        async def read() -> None:
            async for chunk in model.stream(model.build([], [], None)):
                chunks.append(chunk)
                started.set()

        work = asyncio.create_task(read())
        await started.wait()
        # The stream waits for this, and this loop runs.
        server.gate.set()
        await work
        client.close()
    assert model.text_of(model.assemble(chunks)) == "one two"


async def test_a_stream_that_is_left_is_closed() -> None:
    with ModelServer(["one two"]) as server:
        model, client = plain_anthropic(server)
        stream = model.stream(model.build([], [], None))
        assert (await anext(stream)).type == "message_start"
        await stream.aclose()
        client.close()
