"""LangChain: what AfterModel removes is in no stream (issue 14 adapters)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelFallbackMiddleware
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.config import get_stream_writer

from hookline.adapters.langchain import HooklineMiddleware

from .drivers.langchain import ScriptedChat
from .langchain_scenes import (
    SECRET,
    agent_of,
    ask,
    calls,
    hooked,
    named,
    redact,
    thread,
)

MODES = ["values", "updates", "messages", "custom", "debug", "tasks", "checkpoints"]
LEAK = f"the {SECRET} is out"


@tool
def note(text: str) -> str:
    """Write a note, and say so."""
    get_stream_writer()(f"noting {text}")
    return f"noted {text}"


def shown(chunks: list[Any]) -> str:
    """All that a caller sees, also of a text in pieces."""
    texts = [str(one[1][0].text) for one in chunks if is_message(one)]
    return "".join(texts) + repr(chunks)


def is_message(chunk: Any) -> bool:
    return isinstance(chunk, tuple) and chunk[0] == "messages"


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
@pytest.mark.parametrize("modes", [*([mode] for mode in MODES), MODES], ids="+".join)
async def test_no_stream_mode_shows_what_was_removed(
    modes: list[str], is_sync: bool
) -> None:
    async with hooked(AfterModel=redact) as (config, _):
        agent, _ = agent_of(config, calls(("note", {"text": "a"})), LEAK, tools=[note])
        chunks: list[Any] = []
        given = (ask("hi"), thread("1"))
        if is_sync:
            chunks = await asyncio.to_thread(
                lambda: list(agent.stream(*given, stream_mode=modes))
            )
        else:
            async for chunk in agent.astream(*given, stream_mode=modes):
                chunks.append(chunk)
    assert SECRET not in shown(chunks)
    assert ("custom", "noting a") in chunks or "custom" not in modes
    if modes not in (["custom"], ["checkpoints"]):
        assert "[redacted]" in shown(chunks)


@pytest.mark.filterwarnings("ignore:astream_events version='v1' is deprecated")
@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_no_event_shows_what_was_removed(version: str) -> None:
    async with hooked(AfterModel=redact) as (config, _):
        agent, _ = agent_of(config, calls(("note", {"text": "a"})), LEAK, tools=[note])
        events = [
            event async for event in agent.astream_events(ask("hi"), version=version)
        ]
    assert SECRET not in repr(events)
    assert "[redacted]" in repr(events)


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
async def test_the_typed_streams_show_the_new_answer() -> None:
    async with hooked(AfterModel=redact) as (config, _):
        agent, _ = agent_of(config, LEAK)
        run = await agent.astream_events(ask("hi"), version="v3")
        texts = [text async for one in run.messages async for text in one.text]
    assert "".join(texts) == "the [redacted] is out"


async def test_tokens_stream_at_once_where_no_hook_listens() -> None:
    async with hooked() as (config, _):
        agent, _ = agent_of(config, LEAK)
        chunks = [
            message.text
            async for message, _ in agent.astream(ask("hi"), stream_mode="messages")
        ]
    assert len(chunks) > 1
    assert "".join(chunks) == LEAK


async def test_a_model_that_another_middleware_chose_is_held_back_too() -> None:
    class Broken(ScriptedChat):
        def _message(self, *_: Any) -> AIMessage:
            raise OSError("no service")

    spare = ScriptedChat(reply=lambda _: calls(text=LEAK))
    async with hooked(AfterModel=redact) as (config, _):
        agent: Any = create_agent(
            Broken(reply=lambda _: calls()),
            middleware=[HooklineMiddleware(config), ModelFallbackMiddleware(spare)],
        )
        chunks = [
            chunk
            async for chunk in agent.astream(
                ask("hi"), stream_mode=["messages", "values"]
            )
        ]
    assert SECRET not in shown(chunks)
    assert "[redacted]" in shown(chunks)


async def test_a_model_keeps_its_own_state() -> None:
    """A copy of the model would start the script again with each call."""

    class Counting(FakeMessagesListChatModel):
        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

    call = {"name": "note", "args": {"text": "a"}, "id": "1"}
    script = [AIMessage("", tool_calls=[call]), AIMessage(LEAK)]
    async with hooked(AfterModel=redact) as (config, _):
        agent: Any = create_agent(
            Counting(responses=list(script)),
            [note],
            middleware=[HooklineMiddleware(config)],
        )
        result = await agent.ainvoke(ask("hi"))
    assert [str(one.text) for one in result["messages"]] == [
        *("hi", "", "noted a"),
        "the [redacted] is out",
    ]


async def test_a_changed_answer_loses_its_tool_calls_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """HOOK-079."""
    caplog.set_level(logging.WARNING, "hookline")
    async with hooked(AfterModel=redact) as (config, events):
        reply = calls(("note", {"text": "a"}), text=LEAK)
        agent, model = agent_of(config, reply, tools=[note])
        result = await agent.ainvoke(ask("hi"))
    assert named(events, "BeforeTool") == []
    assert len(model.requests) == 1
    assert not result["messages"][-1].tool_calls
    assert "note not called" in caplog.text


async def test_a_subagent_shows_nothing_either() -> None:
    async with hooked(AfterModel=redact) as (config, _):
        scout, _ = agent_of(config, LEAK, name="scout")

        @tool
        async def research(text: str) -> str:
            """Ask the scout."""
            result = await scout.ainvoke(ask(text))
            return str(result["messages"][-1].text)

        agent, _ = agent_of(
            config, calls(("research", {"text": "x"})), tools=[research]
        )
        chunks = [
            (mode, chunk)
            async for _, mode, chunk in agent.astream(
                ask("hi"), stream_mode=MODES, subgraphs=True
            )
        ]
    assert SECRET not in shown(chunks)
    assert "[redacted]" in shown(chunks)
