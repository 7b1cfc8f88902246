"""AGENT-HOOKS with hooks: the shared suite, and what is peculiar to the contract.

Prompts and requests with images, the host's time limit, sessions of runs one after the
other and at once, and hosts that only observe. All else is in
``tests/pins/adapters/agent_hooks.json``.
"""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest
from agent_framework import (
    Content,
    Message,
    create_agent_hooks_middleware_from_emitter,
)
from agent_hooks import (
    AgentContextBuilder,
    InterceptionBlocked,
    InterceptionEmitter,
    InterceptionRecord,
)

from hookline.adapters.agent_hooks import HooklineInterceptor
from hookline.agent import ScriptedReply
from hookline.testing.adapters import AdapterSuite

from .drivers.agent_hooks import (
    AgentHooksDriver,
    ScriptedClient,
    agent_with,
    bundle_of,
)
from .recorded_hooks import Event, RecordedHooks, specific
from .scenarios import calls, script


class TestAgentHooks(AdapterSuite):
    driver = AgentHooksDriver()


IMAGE = Content.from_uri("data:image/png;base64,AAAA", media_type="image/png")


def look(path: str) -> str:
    """Look at a file."""
    return f"content of {path}"


def looks(*paths: str) -> ScriptedReply:
    return calls(*(("look", {"path": path}) for path in paths))


def agent_of(hooks: RecordedHooks, client: ScriptedClient, **options: Any) -> Any:
    interceptor = HooklineInterceptor(hooks.config)
    return agent_with(client, interceptor, [look], **options)


async def test_context_joins_rich_prompts() -> None:
    hooks = RecordedHooks({"BeforeAgent": "add"})
    prompts: list[Any] = [
        "what day?",
        Message("user", [Content.from_text("what day?"), IMAGE]),
        [Message("user", ["hello"]), Message("user", ["what day?"])],
    ]
    for prompt in prompts:
        client = ScriptedClient(script())
        await agent_of(hooks, client).run(prompt)
        assert "what day?" in client.requests[0].text
        assert "mind it" in client.requests[0].text
    seen = [event["prompt"] for event in hooks.of("BeforeAgent")]
    assert seen == ["what day?", "what day?", "hello\n\nwhat day?"]


async def test_changed_request_keeps_images() -> None:
    client = ScriptedClient(script(looks("a"), "done"))
    agent = agent_of(RecordedHooks({"BeforeModel": "uppercase"}), client)
    await agent.run(Message("user", [Content.from_text("which colour?"), IMAGE]))
    for request in client.requests:
        for text in ("WHICH COLOUR?", "AAAA", "mind it", "be brief"):
            assert text in request.text
    assert "content of a" in client.requests[1].text


async def test_hooks_that_outlast_the_time_limit_fail_closed() -> None:
    async def never(_: Event) -> None:
        await asyncio.Event().wait()

    hooks, client = RecordedHooks({"BeforeModel": never}), ScriptedClient(script())
    agent = agent_of(hooks, client)
    agent.middleware = [bundle_of(HooklineInterceptor(hooks.config), 0.05)]
    with pytest.raises(InterceptionBlocked, match="interceptor_timeout"):
        await agent.run("go")
    assert client.requests == []


async def test_conversation_gives_its_id_to_the_interceptor_of_a_run() -> None:
    hooks = RecordedHooks()
    agent = agent_with(ScriptedClient(script()), None, [look])
    threads = [agent.create_session() for _ in range(2)]

    async def run(thread: Any) -> None:
        interceptor = HooklineInterceptor(hooks.config.session(thread.session_id))
        middleware = [bundle_of(interceptor)]
        await agent.run(thread.session_id, session=thread, middleware=middleware)

    await asyncio.gather(*map(run, threads))
    turns = {e["session_id"]: e["prompt"] for e in hooks.of("BeforeAgent")}
    assert turns == {thread.session_id: thread.session_id for thread in threads}
    assert hooks.sessions == set(turns)


async def test_session_of_the_host_lasts_for_many_runs() -> None:
    hooks = RecordedHooks()
    emitter = InterceptionEmitter(timeout=None)
    emitter.register(HooklineInterceptor(hooks.config))
    builder = AgentContextBuilder(
        agent_id="a", framework="agent-framework", session_id="thread-7"
    )
    with warnings.catch_warnings(action="ignore"):
        bundle = create_agent_hooks_middleware_from_emitter(emitter, builder)
    agent = agent_of(hooks, ScriptedClient(script("one", "two")))
    agent.middleware = [bundle]
    assert [(await agent.run("go")).text for _ in range(2)] == ["one", "two"]
    assert hooks.sessions == {"thread-7"}
    assert hooks.names.count("BeforeAgent") == hooks.names.count("AfterAgent") == 2


async def test_runs_at_the_same_time_stay_apart_and_leave_nothing() -> None:
    """Reads the private ``_runs``: nothing else shows what a run leaves behind."""
    hooks = RecordedHooks()
    interceptor = HooklineInterceptor(hooks.config)
    agents = [
        agent_with(ScriptedClient(script(looks(str(n)))), interceptor, [look])
        for n in range(8)
    ]
    await asyncio.gather(*(agent.run(f"turn {n}") for n, agent in enumerate(agents)))
    turns = {event["session_id"]: event["prompt"] for event in hooks.of("BeforeAgent")}
    assert len(turns) == 8
    for event in hooks.of("BeforeTool"):
        assert turns[event["session_id"]] == f"turn {event['tool_input']['path']}"
    assert vars(interceptor)["_runs"] == {}


async def test_agent_as_a_tool_of_another_has_a_run_of_its_own() -> None:
    def name_tool(event: Event) -> Any:
        return specific(additionalContext=f"ran {event['tool_name']}")

    hooks = RecordedHooks({"BeforeTool": name_tool})
    interceptor = HooklineInterceptor(hooks.config)
    inner = agent_with(
        ScriptedClient(script(looks("a"), "seen it")), interceptor, [look]
    )
    client = ScriptedClient(script(calls(("helper", {"task": "look around"}))))
    tool = inner.as_tool(name="helper", description="helps")
    await agent_with(client, interceptor, [tool]).run("go")
    prompts = {e["prompt"]: e["session_id"] for e in hooks.of("BeforeAgent")}
    assert set(prompts) == {"go", "look around"}
    assert len(set(prompts.values())) == 2
    assert "seen it\n\nran helper" in client.requests[1].text


async def test_observing_hosts_act_on_nothing() -> None:
    hooks, records = RecordedHooks({"BeforeTool": "block"}), list[Any]()

    def note(record: InterceptionRecord) -> None:
        records.append(record)

    client = ScriptedClient(script(looks("a")))
    agent = agent_of(hooks, client, mode="evaluate_only", record_sink=note)
    await agent.run("go")
    assert "content of a" in client.requests[1].text
    assert "not today" in [record.verdict.reason for record in records]
