"""Chats and agents: when chunks are shown, and what is left of a failed turn.

What hooks do to chats and agents is recorded in ``tests/pins/agent``.
Seed 004 section 11; protocol.md#callers.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hookline import Config
from hookline.agent import (
    Agent,
    AnthropicModel,
    ChatSession,
    Ending,
    Role,
    ScriptedModel,
    ScriptedReply,
    Turn,
)
from hookline.testing.modelapi import Answer
from tests.support.model_calls import SDKS, ScriptedServer, client_of, model_of
from tests.support.recorded_events import RecordedHooks, warnings_of


def look(path: str) -> str:
    """Look at a file."""
    return f"text of {path}"


class SteppedModel(ScriptedModel):
    """Notes how far its stream has been read."""

    produced = 0

    async def stream(self, request: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        async for chunk in super().stream(request):
            self.produced += 1
            yield chunk


@pytest.mark.parametrize(
    ("hooks", "options", "produced", "warnings"),
    [
        ({"AfterModel": None}, {}, [4, 4, 4, 4, 4], 0),
        ({"BeforeModel": None}, {}, [1, 2, 3, 4, 4], 0),
        ({"AfterModel": None}, {"stream_mode": "pass"}, [1, 2, 3, 4, 4], 1),
    ],
    ids=["held back", "nobody waits", "pass"],
)
async def test_chunks_are_held_back_only_for_after_model(
    hooks: dict[str, Any], options: Any, produced: list[int], warnings: int
) -> None:
    """protocol.md#callers, stream_mode; what is shown cannot be taken back."""
    recorded = RecordedHooks(hooks)
    model = SteppedModel(["one two three", "again"])
    with warnings_of() as log:
        async with recorded.config:
            chat = ChatSession(recorded.config, model, **options)
            assert [model.produced async for _ in chat.stream("hi")] == produced
            await chat.send("again")
    assert ["stream_mode 'pass'" in line for line in log] == [True] * warnings


@pytest.mark.parametrize("sdk", ["scripted", *SDKS])
async def test_an_aborted_stream_fires_no_after_model_and_keeps_no_history(
    model_server: ScriptedServer, sdk: str
) -> None:
    """Seed 004 section 11: never for an aborted one."""
    hooks = RecordedHooks({"AfterModel": None})
    model_server.answers("one two three")
    model_server.gate = threading.Event()

    async def abort(model: Any) -> list[Any]:
        chat = ChatSession(hooks.config, model, stream_mode="pass")
        pieces: Any = chat.stream("hi")
        await anext(pieces)
        await pieces.aclose()
        return chat.history

    async with hooks.config:
        if sdk == "scripted":
            history = await abort(ScriptedModel(["one two"]))
        else:
            async with model_of(sdk, model_server) as model:
                history = await abort(model)
                model_server.gate.set()
    assert (hooks.names, history) == ([], [])


async def test_session_end_says_when_the_agent_failed() -> None:
    hooks = RecordedHooks({"SessionStart": None, "SessionEnd": None})
    async with hooks.config:
        with pytest.raises(KeyError):
            async with Agent(hooks.config, ScriptedModel([])):
                raise KeyError
        async with Agent(hooks.config, ScriptedModel([])):
            pass
    ends = [event["reason"] for event in hooks.of("SessionEnd")]
    assert ends == ["other", "exit"]
    assert len(hooks.events) == 4


async def test_a_cancelled_agent_cancels_and_answers_its_tool_calls() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    model = ScriptedModel([ScriptedReply("", (("wait", {}),))])
    agent = Agent(Config("s-1"), model, [wait])
    task = asyncio.create_task(agent.run("go"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cancelled.is_set()
    calls, answers = agent.chat.history[-2:]
    assert [answer.call for answer in answers.answers] == list(calls.calls)
    assert answers.role is Role.TOOLS


async def test_a_hosts_own_compression_is_used() -> None:
    seen: list[list[str]] = []

    async def forget(turns: Any) -> list[Turn]:
        seen.append([turn.text for turn in turns])
        return []

    model = ScriptedModel(["one", "two"])
    agent = Agent(Config("s-1"), model, history_limit=2, compress=forget)
    await agent.run("first")
    await agent.run("second")
    assert seen == [["first", "one"]]
    assert "first" not in str(model.requests[1]["messages"])


@pytest.mark.parametrize("sdk", [*SDKS, "genai aio", "anthropic sync", "openai sync"])
async def test_agents_send_turns_with_tools_back_as_the_service_wrote_them(
    model_server: ScriptedServer, sdk: str
) -> None:
    def write(path: str, content: str) -> str:
        """Write a file."""
        return f"wrote {len(content)} to {path}"

    calls = (("look", {"path": "a.txt"}), ("write", {"path": "b", "content": "ü"}))
    model_server.answers(Answer("let me see", calls), "all done")
    config = Config("s-1")
    async with config, model_of(sdk, model_server) as model:
        agent = Agent(config, model, [look, write], system="be good")
        result = await agent.run("go")
    assert (result.ending, result.text) == (Ending.ANSWERED, "all done")
    assert len(model_server.bodies) == 2
    body = str(model_server.bodies[1])
    assert "be good" in body
    places = [
        body.index(text) for text in ("let me see", "text of a.txt", "wrote 1 to b")
    ]
    assert places == sorted(places)


async def test_plain_clients_block_no_loop_and_streams_that_are_left_are_closed(
    model_server: ScriptedServer,
) -> None:
    model_server.answers("one two", "one two")
    model_server.gate = threading.Event()
    client = client_of("anthropic", model_server)
    model = AnthropicModel(client, "m")
    chunks: list[Any] = []
    started = asyncio.Event()

    async def read() -> None:
        async for chunk in model.stream(model.build([], [], None)):
            chunks.append(chunk)
            started.set()

    work = asyncio.create_task(read())
    await started.wait()
    model_server.gate.set()  # the stream waits for this, and this loop runs
    await work
    assert model.text_of(model.assemble(chunks)) == "one two"
    stream: Any = model.stream(model.build([], [], None))
    assert (await anext(stream)).type == "message_start"
    await stream.aclose()
    client.close()
