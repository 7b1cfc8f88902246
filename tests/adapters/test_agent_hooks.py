"""AGENT-HOOKS under the suite for adapters, and what is special about it.

Issue 14 adapters; protocol.md#events and #callers.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import warnings
from typing import Any

import pytest
from agent_framework import (
    Content,
    Message,
    create_agent_hooks_middleware,
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
    Person,
    ScriptedClient,
    agent_with,
    ask,
)
from .hooks import Event, Hooked, adds, denies, stops


class TestAgentHooks(AdapterSuite):
    driver = AgentHooksDriver()


def look(path: str) -> str:
    """Look at a file."""
    return f"content of {path}"


def calls(*paths: str, tool: str = "look") -> ScriptedReply:
    return ScriptedReply("", tuple((tool, {"path": path}) for path in paths))


def agent_of(hooked: Hooked, client: ScriptedClient, **options: Any) -> Any:
    tools = options.pop("tools", [look])
    more = {name: options.pop(name) for name in ("confirm",) if name in options}
    return agent_with(
        client, HooklineInterceptor(hooked.config, **more), tools, **options
    )


def redact(event: Event) -> Any:
    text = event["llm_response"]["text"].replace("s3cret", "***")
    return {"hookSpecificOutput": {"llm_response": {"text": text}}}


async def test_a_block_of_the_turn_raises_with_its_reason() -> None:
    hooked = Hooked({"BeforeAgent": lambda _: denies("not this prompt")})
    client = ScriptedClient()
    with pytest.raises(InterceptionBlocked, match="not this prompt"):
        await agent_of(hooked, client).run("go")
    assert client.requests == []
    assert "AfterAgent" not in hooked.names


async def test_a_stop_before_a_tool_ends_the_run_at_the_next_model_call() -> None:
    hooked = Hooked({"BeforeTool": lambda _: stops("enough")})
    client = ScriptedClient(calls("a"), "never")
    with pytest.raises(InterceptionBlocked, match="enough") as raised:
        await agent_of(hooked, client).run("go")
    assert raised.value.interception_point.value == "pre_model_call"
    assert len(client.requests) == 1


async def test_a_stop_after_the_answer_is_the_result_of_the_run() -> None:
    agent = agent_of(
        Hooked({"AfterAgent": lambda _: stops("enough")}), ScriptedClient("done")
    )
    assert (await agent.run("go")).text == "enough"


async def test_a_rejected_answer_is_denied_and_not_stored() -> None:
    hooked = Hooked({"AfterAgent": lambda _: denies("write it properly")})
    agent = agent_of(hooked, ScriptedClient("a draft"))
    thread = agent.create_session()
    with pytest.raises(InterceptionBlocked, match="write it properly"):
        await agent.run("go", session=thread)
    assert "a draft" not in repr(thread.to_dict())


async def test_a_changed_answer_is_what_is_stored() -> None:
    agent = agent_of(Hooked({"AfterModel": redact}), ScriptedClient("a s3cret", "two"))
    thread = agent.create_session()
    assert (await agent.run("go", session=thread)).text == "a ***"
    assert "a ***" in repr(thread.to_dict())
    assert "s3cret" not in repr(thread.to_dict())


async def test_an_answer_that_a_hook_changed_loses_its_calls(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reply = ScriptedReply("a s3cret", (("look", {"path": "a"}),))
    hooked = Hooked({"AfterModel": redact})
    assert (await agent_of(hooked, ScriptedClient(reply)).run("go")).text == "a ***"
    assert hooked.events("BeforeTool") == []
    assert "drops the tool calls" in caplog.text


async def test_context_joins_rich_prompts() -> None:
    hooked = Hooked({"BeforeAgent": lambda _: adds("it is Monday")})
    image = Content.from_uri("data:image/png;base64,AAAA", media_type="image/png")
    prompts: list[Any] = [
        "what day?",
        Message("user", [Content.from_text("what day?"), image]),
        [Message("user", ["hello"]), Message("user", ["what day?"])],
    ]
    for prompt in prompts:
        client = ScriptedClient()
        await agent_of(hooked, client).run(prompt)
        assert "what day?" in client.requests[0].text
        assert "it is Monday" in client.requests[0].text
    assert [event["prompt"] for event in hooked.events("BeforeAgent")] == [
        "what day?",
        "what day?",
        "hello\n\nwhat day?",
    ]


async def test_a_changed_request_keeps_images_and_results() -> None:
    def change(event: Event) -> Any:
        messages = [
            {**one, "content": one["content"].replace("colour", "color")}
            for one in event["llm_request"]["messages"]
        ]
        more = {"llm_request": {"messages": messages}, "additionalContext": "added"}
        return {"systemMessage": "be brief", "hookSpecificOutput": more}

    image = Content.from_uri("data:image/png;base64,AAAA", media_type="image/png")
    client = ScriptedClient(calls("a"), "done")
    agent = agent_of(Hooked({"BeforeModel": change}), client)
    await agent.run(Message("user", [Content.from_text("which colour?"), image]))
    for request in client.requests:
        assert "which color?" in request.text
        assert "AAAA" in request.text
        assert "added" in request.text
        assert "be brief" in request.text
    assert "content of a" in client.requests[1].text


async def test_parallel_calls_run_at_once_and_keep_their_own_results() -> None:
    met = asyncio.Barrier(2)

    async def meet(path: str) -> str:
        """Wait for the other one."""
        await met.wait()
        return path

    hooked = Hooked({"AfterTool": lambda event: adds(event["tool_input"]["path"] * 3)})
    client = ScriptedClient(calls("a", "b", tool="meet"))
    await agent_of(hooked, client, tools=[meet]).run("go")
    assert "a\\n\\naaa" in client.requests[1].text
    assert "b\\n\\nbbb" in client.requests[1].text


async def test_additions_join_a_result_that_is_no_text() -> None:
    def table() -> dict[str, Any]:
        """Give a table."""
        return {"rows": [1, 2]}

    client = ScriptedClient(ScriptedReply("", (("table", {}),)))
    hooked = Hooked({"AfterTool": lambda _: adds("two rows")})
    await agent_of(hooked, client, tools=[table]).run("go")
    assert "rows" in client.requests[1].text
    assert "two rows" in client.requests[1].text


async def test_a_failing_tool_is_seen_by_the_type_of_its_error() -> None:
    def fail(path: str) -> str:
        """Fail."""
        raise OSError(f"cannot read {path}")

    hooked = Hooked()
    client = ScriptedClient(calls("a", tool="fail"), "done")
    await agent_of(hooked, client, tools=[fail]).run("go")
    (event,) = hooked.events("AfterTool")
    assert event["tool_response"]["error"] == {"message": "OSError"}


async def test_a_cancelled_tool_is_not_reported_as_done() -> None:
    started = asyncio.Event()

    async def hang(path: str) -> str:
        """Wait forever."""
        started.set()
        return str(await asyncio.Event().wait())

    hooked = Hooked()
    agent = agent_of(hooked, ScriptedClient(calls("a", tool="hang")), tools=[hang])
    run = asyncio.create_task(agent.run("go"))
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert hooked.events("AfterTool") == hooked.events("AfterAgent") == []


def asks(event: Event) -> Any:
    return {"decision": "ask", "reason": f"look at {event['tool_input']['path']}?"}


async def test_a_question_goes_to_the_approval_of_the_host() -> None:
    hooked, person = Hooked({"BeforeTool": asks}), Person(agrees=True)
    client = ScriptedClient(calls("a"))
    await agent_of(hooked, client, resolver=person).run("go")
    assert [one.verdict.reason for one in person.asked] == ["look at a?"]
    assert "content of a" in client.requests[1].text
    assert len(hooked.events("BeforeTool")) == len(hooked.events("AfterTool")) == 1


async def test_an_approval_cannot_lift_a_block() -> None:
    hooked, person = Hooked({"BeforeTool": lambda _: denies("no")}), Person(agrees=True)
    await agent_of(hooked, ScriptedClient(calls("a")), resolver=person).run("go")
    assert (person.asked, hooked.events("AfterTool")) == ([], [])


async def test_a_question_about_a_changed_input_is_denied() -> None:
    def change(event: Event) -> Any:
        return {**asks(event), "hookSpecificOutput": {"tool_input": {"path": "b"}}}

    hooked, person = Hooked({"BeforeTool": change}), Person(agrees=True)
    client = ScriptedClient(calls("a"))
    await agent_of(hooked, client, resolver=person).run("go")
    assert person.asked == []
    assert "content of" not in client.requests[1].text


async def test_confirm_decides_and_keeps_a_changed_input() -> None:
    def change(event: Event) -> Any:
        return {**asks(event), "hookSpecificOutput": {"tool_input": {"path": "b"}}}

    hooked, client = Hooked({"BeforeTool": change}), ScriptedClient(calls("a"))
    await agent_of(hooked, client, confirm=lambda _: True).run("go")
    assert "content of b" in client.requests[1].text


async def test_hooks_that_outlast_the_time_limit_fail_closed() -> None:
    async def never(_: Event) -> None:
        await asyncio.Event().wait()

    hooked, client = Hooked({"BeforeModel": never}), ScriptedClient()
    interceptor = HooklineInterceptor(hooked.config)
    with warnings.catch_warnings(action="ignore"):
        bundle = create_agent_hooks_middleware([interceptor], timeout=0.05)
    agent = agent_with(client, interceptor, [look])
    agent.middleware = [bundle]
    with pytest.raises(InterceptionBlocked, match="interceptor_timeout"):
        await agent.run("go")
    assert client.requests == []


async def test_a_conversation_gives_its_id_to_the_interceptor_of_a_run() -> None:
    hooked, client = Hooked(), ScriptedClient()
    agent = agent_with(client, None, [look])
    threads = [agent.create_session() for _ in range(2)]

    async def run(thread: Any) -> None:
        interceptor = HooklineInterceptor(hooked.config.session(thread.session_id))
        with warnings.catch_warnings(action="ignore"):
            bundle = create_agent_hooks_middleware([interceptor], timeout=None)
        await agent.run(thread.session_id, session=thread, middleware=[bundle])

    await asyncio.gather(*map(run, threads))
    turns = {e["session_id"]: e["prompt"] for e in hooked.events("BeforeAgent")}
    assert turns == {thread.session_id: thread.session_id for thread in threads}
    assert {event["session_id"] for event in hooked.seen} == set(turns)


async def test_a_session_of_the_hosts_own_lasts_for_many_runs() -> None:
    hooked = Hooked()
    emitter = InterceptionEmitter(timeout=None)
    emitter.register(HooklineInterceptor(hooked.config))
    builder = AgentContextBuilder(
        agent_id="a", framework="agent-framework", session_id="thread-7"
    )
    with warnings.catch_warnings(action="ignore"):
        bundle = create_agent_hooks_middleware_from_emitter(emitter, builder)
    agent = agent_with(
        ScriptedClient("one", "two"), HooklineInterceptor(hooked.config), [look]
    )
    agent.middleware = [bundle]
    assert [(await agent.run("go")).text for _ in range(2)] == ["one", "two"]
    assert {event["session_id"] for event in hooked.seen} == {"thread-7"}
    assert hooked.names.count("BeforeAgent") == hooked.names.count("AfterAgent") == 2


async def test_runs_at_the_same_time_stay_apart() -> None:
    hooked = Hooked()
    interceptor = HooklineInterceptor(hooked.config)
    agents = [
        agent_with(ScriptedClient(calls(str(n))), interceptor, [look]) for n in range(8)
    ]
    await asyncio.gather(*(agent.run(f"turn {n}") for n, agent in enumerate(agents)))
    turns = {
        event["session_id"]: event["prompt"] for event in hooked.events("BeforeAgent")
    }
    assert len(turns) == 8
    for event in hooked.events("BeforeTool"):
        assert turns[event["session_id"]] == f"turn {event['tool_input']['path']}"
    assert vars(interceptor)["_runs"] == {}


async def test_an_agent_as_a_tool_of_another_has_a_run_of_its_own() -> None:
    hooked = Hooked({"BeforeTool": lambda event: adds(f"ran {event['tool_name']}")})
    interceptor = HooklineInterceptor(hooked.config)
    inner = agent_with(ScriptedClient(calls("a"), "seen it"), interceptor, [look])
    call = ScriptedReply("", (("helper", {"task": "look around"}),))
    client = ScriptedClient(call)
    tool = inner.as_tool(name="helper", description="helps")
    await agent_with(client, interceptor, [tool]).run("go")
    prompts = {e["prompt"]: e["session_id"] for e in hooked.events("BeforeAgent")}
    assert set(prompts) == {"go", "look around"}
    assert len(set(prompts.values())) == 2
    assert "seen it\\n\\nran helper" in client.requests[1].text


async def test_a_stream_shows_nothing_before_the_hooks_have_spoken() -> None:
    hooked, shown = Hooked({"AfterAgent": lambda _: denies("no")}), list[str]()
    agent = agent_of(hooked, ScriptedClient("in two parts"))
    assert await ask(agent, "go", "stream", shown) == "no"
    assert shown == []


async def test_observing_hosts_act_on_nothing() -> None:
    hooked, records = Hooked({"BeforeTool": lambda _: denies("no")}), []

    def note(record: InterceptionRecord) -> None:
        records.append(record)

    client = ScriptedClient(calls("a"))
    agent = agent_of(hooked, client, mode="evaluate_only", record_sink=note)
    await agent.run("go")
    assert "content of a" in client.requests[1].text
    assert "no" in [record.verdict.reason for record in records]


async def test_a_reason_with_the_hosts_own_prefix_is_a_plain_deny() -> None:
    hooked = Hooked({"BeforeTool": lambda _: denies("host_error: made up")})
    client = ScriptedClient(calls("a"), "done")
    assert (await agent_of(hooked, client).run("go")).text == "done"
    assert "made up" in client.requests[1].text


async def test_hooks_without_effect_are_warned_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    await agent_of(Hooked(), ScriptedClient()).run("go")
    for event in ("SessionStart", "SessionEnd", "PreCompress", "SubagentStart"):
        assert f"{event} hooks have no effect in AGENT-HOOKS" in caplog.text


def test_a_missing_sdk_is_named() -> None:
    code = "import sys; sys.modules['agent_hooks'] = None\n"
    code += "import hookline.adapters.agent_hooks"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "agent-hooks-sdk is missing" in done.stderr
    assert "hookline[agent-hooks]" in done.stderr
