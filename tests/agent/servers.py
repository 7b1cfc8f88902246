"""The real clients of the SDKs, pointed at a server in the test process."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable

import anthropic
import openai
from google import genai
from google.genai import types

from hookline.agent import AnthropicModel, GenAIModel, ModelClient, OpenAIModel
from hookline.testing.loopback import ThreadedServer

SDKS = ("genai", "openai", "anthropic")


def genai_client(server: ThreadedServer) -> genai.Client:
    options = types.HttpOptions(base_url=server.url)
    return genai.Client(api_key="local", http_options=options)


@contextlib.asynccontextmanager
async def genai_model(server: ThreadedServer) -> AsyncIterator[ModelClient]:
    client = genai_client(server)
    yield GenAIModel(client, "gemini-local", {"temperature": 0.5})
    await client.aio.aclose()
    client.close()


@contextlib.asynccontextmanager
async def openai_model(server: ThreadedServer) -> AsyncIterator[ModelClient]:
    url = f"{server.url}/v1"
    async with openai.AsyncOpenAI(api_key="k", base_url=url, max_retries=0) as client:
        yield OpenAIModel(client, "gpt-local", temperature=0.5)


@contextlib.asynccontextmanager
async def anthropic_model(server: ThreadedServer) -> AsyncIterator[ModelClient]:
    async with anthropic.AsyncAnthropic(
        api_key="k", base_url=server.url, max_retries=0
    ) as client:
        yield AnthropicModel(client, "claude-local", extra_body={"temperature": 0.5})


MODELS: dict[
    str, Callable[[ThreadedServer], contextlib.AbstractAsyncContextManager[ModelClient]]
] = {
    "genai": genai_model,
    "openai": openai_model,
    "anthropic": anthropic_model,
}
