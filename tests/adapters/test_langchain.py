"""LangChain agents with hooks: the shared suite, and what rows of a table cannot say.

No stream, by whatever mode or version, may show what a hook removed; the model, the
state and the threads of the agent must stay what they are without hooks. All else that
hooks do in LangChain is in ``tests/pins/adapters/langchain.json``.
"""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.config import get_stream_writer

from hookline.adapters.langchain import HooklineMiddleware
from hookline.agent import ScriptedReply
from hookline.testing.adapters import AdapterSuite

from .drivers.langchain import MODES, LangChainDriver, ScriptedChat
from .recorded_hooks import RecordedHooks, changes
from .scenarios import calls, script

LEAK = "the s3cret is out"
GO: Any = {"messages": [{"role": "user", "content": "go"}]}


class TestLangChain(AdapterSuite):
    driver = LangChainDriver()


def agent_of(
    hooks: RecordedHooks, *replies: ScriptedReply | str, model: Any = None, **more: Any
) -> Any:
    """An agent, maybe with other middleware ``before`` the hooks."""
    middleware = [*more.pop("before", ()), HooklineMiddleware[Any](hooks.config)]
    model = model or ScriptedChat(reply=script(*replies))
    return create_agent(model, middleware=middleware, **more)


@tool
def note(text: str) -> str:
    """Write a note, and say so."""
    get_stream_writer()(f"noting {text}")
    return f"noted {text}"


async def test_state_of_the_middleware_is_plain_data() -> None:
    """Servers serialize the streams, where private keys of the state appear."""
    async with (hooks := RecordedHooks()).config:
        agent = agent_of(hooks, "done")
        stream = agent.astream(GO, stream_mode="values")
        states = [state["hookline"] async for state in stream if "hookline" in state]
        result = await agent.ainvoke(GO)
    assert states
    assert [json.loads(json.dumps(state)) for state in states] == states
    assert "hookline" not in result


async def test_other_middleware_gets_the_answer_alone() -> None:
    """Also after a call was recorded with another input."""
    answers: list[list[str]] = []

    class Reading(AgentMiddleware[Any, Any, Any]):
        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            response = await handler(request)
            answers.append([str(message.text) for message in response.result])
            return response

    reply = calls(("note", {"text": "a"}), text="noting")
    async with (hooks := RecordedHooks({"BeforeTool": changes(text="b")})).config:
        agent = agent_of(hooks, reply, "done", tools=[note], before=[Reading()])
        result = await agent.ainvoke(GO)
    assert answers == [["noting"], ["done"]]
    assert result["messages"][1].tool_calls[0]["args"] == {"text": "b"}


def shown(chunks: list[Any]) -> str:
    """All that a caller sees, also of a text in pieces."""
    messages = [
        chunk for chunk in chunks if isinstance(chunk, tuple) and chunk[0] == "messages"
    ]
    return "".join(str(chunk[1][0].text) for chunk in messages) + repr(chunks)


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
async def test_no_stream_mode_shows_what_was_removed(
    is_sync: bool, subtests: pytest.Subtests
) -> None:
    for modes in (*([mode] for mode in MODES), MODES):
        async with (hooks := RecordedHooks({"AfterModel": "redact"})).config:
            reply = calls(("note", {"text": "a"}))
            agent = agent_of(hooks, reply, LEAK, tools=[note])

            def plain(agent: Any = agent, modes: Any = modes) -> Any:
                return list(agent.stream(GO, stream_mode=modes))

            if is_sync:
                chunks = await asyncio.to_thread(plain)
            else:
                stream = agent.astream(GO, stream_mode=modes)
                chunks = [chunk async for chunk in stream]
        with subtests.test("+".join(modes)):
            assert "s3cret" not in shown(chunks)
            assert (("custom", "noting a") in chunks) is ("custom" in modes)
            has_answer = modes not in (["custom"], ["checkpoints"])
            assert ("***" in shown(chunks)) is has_answer


@pytest.mark.filterwarnings("ignore:astream_events version='v1' is deprecated")
@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
async def test_no_event_stream_shows_what_was_removed() -> None:
    for version in ("v1", "v2"):
        async with (hooks := RecordedHooks({"AfterModel": "redact"})).config:
            stream = agent_of(hooks, LEAK).astream_events(GO, version=version)
            events = [event async for event in stream]
        assert "s3cret" not in repr(events)
        assert "***" in repr(events)
    async with (hooks := RecordedHooks({"AfterModel": "redact"})).config:
        run = await agent_of(hooks, LEAK).astream_events(GO, version="v3")
        texts = [text async for message in run.messages async for text in message.text]
    assert "".join(texts) == "the *** is out"


async def test_model_keeps_its_own_state() -> None:
    """A copy of the model would start the script again with each call."""

    class Counting(FakeMessagesListChatModel):
        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

    call = {"name": "note", "args": {"text": "a"}, "id": "1"}
    answers = [AIMessage("", tool_calls=[call]), AIMessage(LEAK)]
    async with (hooks := RecordedHooks({"AfterModel": "redact"})).config:
        model = Counting(responses=list(answers))
        result = await agent_of(hooks, model=model, tools=[note]).ainvoke(GO)
    texts = [str(message.text) for message in result["messages"]]
    assert texts == ["go", "", "noted a", "the *** is out"]


async def test_plain_agent_runs_its_tools_in_its_own_threads() -> None:
    threads: list[str] = []

    @tool
    def where() -> str:
        """Say where it runs."""
        threads.append(threading.current_thread().name)
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        return "here"

    def hook(_: Any) -> None:
        threads.append(threading.current_thread().name)

    async with (hooks := RecordedHooks({"BeforeTool": hook})).config:
        agent = agent_of(hooks, calls(("where", {})), tools=[where])
        await asyncio.to_thread(agent.invoke, GO)
    assert len(threads) == 2
    assert "hookline-hooks" not in threads[1]
