"""Anthropic: an agent on the SDK's own client, with the hooks at every step."""

import asyncio

from anthropic import AsyncAnthropic
from shared import PROMPT, is_offline, load_config, local_server, report, write_file

from hookline.agent import Agent, AnthropicModel


def make_client(server):
    if server is None:
        return AsyncAnthropic()
    return AsyncAnthropic(api_key="none", base_url=server.url)


async def main():
    with local_server(is_offline()) as server:
        async with make_client(server) as client, load_config() as config:
            model = AnthropicModel(client, "claude-sonnet-4-5")
            async with Agent(config, model, [write_file]) as agent:
                result = await agent.run(PROMPT)
    report(result.text)


asyncio.run(main())
