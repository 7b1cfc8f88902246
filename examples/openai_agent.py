"""OpenAI: an agent on the SDK's own client, with the hooks at every step."""

import asyncio

from openai import AsyncOpenAI
from shared import PROMPT, is_offline, load_config, local_server, report, write_file

from hookline.agent import Agent, OpenAIModel


def make_client(server):
    if server is None:
        return AsyncOpenAI()
    return AsyncOpenAI(api_key="none", base_url=f"{server.url}/v1")


async def main():
    with local_server(is_offline()) as server:
        async with make_client(server) as client, load_config() as config:
            model = OpenAIModel(client, "gpt-5-mini")
            async with Agent(config, model, [write_file]) as agent:
                result = await agent.run(PROMPT)
    report(result.text)


asyncio.run(main())
