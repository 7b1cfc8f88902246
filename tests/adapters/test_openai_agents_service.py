"""The OpenAI Agents SDK with its own models against a server (issue 14 adapters)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import Agent, OpenAIProvider, RunConfig
from openai import AsyncOpenAI

from hookline.adapters.openai_agents import HooklineRunner, hooked_agent
from hookline.testing.modelapi import Answer, ModelServer

from .openai_agents_lab import Lab, specific


def redact(event: dict[str, Any]) -> Any:
    text = event["llm_response"].get("text") or ""
    if "s3cret" not in text:
        return None
    return specific(llm_response={"text": text.replace("s3cret", "***")})


def shorten(event: dict[str, Any]) -> Any:
    messages = [
        {**one, "content": one["content"].replace("please ", "")}
        for one in event["llm_request"]["messages"]
    ]
    return specific(llm_request={"messages": messages, "model": "large"})


async def asked(lab: Lab, url: str, streams: bool) -> tuple[Any, list[Any]]:
    """Run an agent with the SDK's own model; the result, and what was shown."""
    agent = Agent(name="Worker", model="small", tools=[lab.tool()])
    hooked = hooked_agent(agent, lab.config)
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
    async with lab.config, client:
        provider = OpenAIProvider(openai_client=client, use_responses=False)
        config = RunConfig(tracing_disabled=True, model_provider=provider)
        if not streams:
            return await HooklineRunner.run(hooked, "please go", run_config=config), []
        result = HooklineRunner.run_streamed(hooked, "please go", run_config=config)
        return result, [event async for event in result.stream_events()]


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
def test_calls_to_a_service_obey_hooks(streams: bool) -> None:
    """A model by name: request, tool call and answer after the hooks, on the wire."""
    lab = Lab()
    lab.on("BeforeModel", shorten)
    lab.on("BeforeTool", specific(tool_input={"text": "clean"}))
    lab.on("AfterModel", redact)
    call = Answer(calls=(("note", {"text": "dirty"}),))
    with ModelServer([call, "the s3cret plan"]) as server:
        result, shown = asyncio.run(asked(lab, server.url, streams))
    assert result.final_output == "the *** plan"
    assert lab.ran == ["clean"]
    assert "s3cret" not in repr((shown, result.to_input_list()))
    assert "dirty" not in repr((shown, result.to_input_list()))
    bodies = [one.body for one in server.requests]
    assert [one["model"] for one in bodies] == ["large", "large"]
    assert [one["messages"][0]["content"] for one in bodies] == ["go", "go"]
    assert "clean" in repr(bodies[1]["messages"])
    assert lab.of("BeforeModel")[0]["llm_request"]["model"] == "small"
