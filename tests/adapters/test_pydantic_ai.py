"""pydantic-ai agents with hooks: the shared suite, and what rows of a table cannot say.

Conversations, subagents, live streams, real services, and calls that others decide
about or run. All else is in ``tests/pins/adapters/pydantic_ai.json``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pydantic_ai as pai
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel as FakeTestModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from hookline import Config, HookSystem, Settings
from hookline.adapters.pydantic_ai import HooklineCapability
from hookline.agent import ScriptedReply
from hookline.testing.adapters import AdapterSuite
from hookline.testing.modelapi import Answer, ModelServer

from .drivers.pydantic_ai import FakeModel, PydanticAIDriver, in_thread
from .recorded_hooks import RecordedHooks, changes, redacts, specific
from .scenarios import calls, script

DEFERS: Any = [str, pai.DeferredToolRequests]


class TestPydanticAI(AdapterSuite):
    driver = PydanticAIDriver()


READS = calls(("read", {"path": "a"}))


class HookedAgents(RecordedHooks):
    """Hooks, and agents whose model answers by a script; ``ran`` has calls of read."""

    def __init__(self, answers: dict[str, Any] | None = None, **options: Any) -> None:
        super().__init__(answers, **options)
        self.ran: list[str] = []
        self.model = FakeModel(script())

    def read(self, path: str = "") -> str:
        """Read a file."""
        self.ran.append(path)
        return f"content of {path}"

    def agent(self, *replies: ScriptedReply | str, **options: Any) -> Agent[None, Any]:
        """An agent with the tool read, unless it has others."""
        self.model = FakeModel(script(*replies))
        more = options.pop("capabilities", [])
        hooks = HooklineCapability(self.config, approval=options.pop("approval", None))
        tools = options.pop("tools", [self.read])
        return Agent(
            self.model.model, capabilities=[hooks, *more], tools=tools, **options
        )

    @property
    def sent(self) -> list[str]:
        return [request.text for request in self.model.requests]


async def streamed(agent: Agent[None, Any], **options: Any) -> Any:
    async with agent.run_stream("go", **options) as result:
        return await result.get_output()


async def test_conversation_is_a_session_and_its_last_prompt_is_seen() -> None:
    hooks = HookedAgents()
    agent = hooks.agent()
    first = await agent.run("one")
    await agent.run("two", message_history=first.all_messages())
    await agent.run(message_history=first.all_messages()[:1])
    await agent.run("four")
    turns = [(e["session_id"], e["prompt"]) for e in hooks.of("BeforeAgent")]
    session_id = first.conversation_id
    assert turns[:3] == [(session_id, "one"), (session_id, "two"), (session_id, "one")]
    assert turns[3][0] != session_id


async def test_agent_in_a_plain_tool_is_a_subagent_and_one_beside_a_run_is_not() -> (
    None
):
    hooks = HookedAgents()
    model = FakeModel(lambda _: ScriptedReply("helped")).model
    capability = HooklineCapability(hooks.config)
    helper = Agent(model, name="helper", capabilities=[capability])

    def ask() -> str:
        with asyncio.Runner() as runner:
            return runner.run(helper.run("help me")).output

    agent = hooks.agent(calls(("ask", {})), tools=[ask])
    await in_thread(lambda: agent.run_sync("go", conversation_id="chat-1"))
    (start,) = hooks.of("SubagentStart")
    assert (start["agent_type"], start["session_id"]) == ("helper", "chat-1")
    async with hooks.agent().run_stream("one") as result:
        await helper.run("two")
        await result.get_output()
    prompts = [event["prompt"] for event in hooks.of("BeforeAgent")]
    assert (prompts, len(hooks.of("SubagentStart"))) == (["go", "one", "two"], 1)


async def test_hooks_of_two_configs_are_all_obeyed() -> None:
    hooks = HookedAgents({"AfterAgent": [["bad", "block"]]})
    poor = RecordedHooks({"AfterAgent": [["poor", "block"]]})
    other = [HooklineCapability(poor.config)]
    for run in (streamed, lambda agent: agent.run("go")):
        output = await run(hooks.agent("bad", "poor", "fine", capabilities=other))
        assert getattr(output, "output", output) == "fine"


@pytest.mark.parametrize("event", ["BeforeAgent", "BeforeModel", "AfterAgent"])
async def test_no_output_validator_takes_a_stop_for_an_answer(event: str) -> None:
    agent = HookedAgents({event: "stop"}).agent()

    @agent.output_validator
    def check(output: str) -> str:
        raise pai.ModelRetry("not good enough")

    assert (await agent.run("go")).output == "enough"


async def test_error_of_the_model_reaches_the_caller() -> None:
    async def stream(_: list[pai.ModelMessage], __: AgentInfo) -> AsyncIterator[str]:
        yield "half"
        raise ConnectionError("gone")

    hooks = HookedAgents()
    with pytest.raises(ConnectionError, match="gone"):
        await streamed(hooks.agent(), model=FunctionModel(stream_function=stream))
    assert hooks.names == ["BeforeAgent", "BeforeToolSelection", "BeforeModel"]


async def test_stream_is_live_only_while_no_hook_waits_for_the_end() -> None:
    seen = asyncio.Event()

    async def stream(_: list[pai.ModelMessage], __: AgentInfo) -> AsyncIterator[str]:
        yield "first "
        await seen.wait()
        yield "second"

    hooks = HookedAgents(unheard=["AfterModel", "AfterAgent"])
    model = FunctionModel(stream_function=stream)
    shown: list[str] = []
    async with hooks.agent().run_stream("go", model=model) as result:
        async for text in result.stream_text(delta=True, debounce_by=None):
            shown.append(text)
            seen.set()
    assert shown == ["first ", "second"]
    for event in ("AfterModel", "AfterAgent"):
        shown, before = list[str](), list[list[str]]()

        def note(_: Any, shown: Any = shown, before: Any = before) -> None:
            before.append(list(shown))

        agent = HookedAgents({event: note}).agent("a long answer in pieces")
        async with agent.run_stream_events("go") as events:
            async for event_shown in events:
                shown.append(event_shown.event_kind)
        assert before == [[]]
        assert "part_start" in shown


async def test_hook_names_another_model() -> None:
    hooks = HookedAgents({"BeforeModel": specific(llm_request={"model": "test"})})
    assert (await hooks.agent(tools=[]).run("go")).output == "success (no tool calls)"
    assert hooks.sent == []


async def test_translator_of_the_config_is_for_other_requests() -> None:
    config = Config("own", ".", Settings.from_mapping({}), translator="openai")
    HookSystem(config).on("AfterModel")(redacts)
    model = FakeTestModel(custom_output_text="the s3cret")
    agent = Agent(model, capabilities=[HooklineCapability(config)])
    assert (await agent.run("go")).output == "the ***"


@asynccontextmanager
async def real_model(service: str, url: str) -> AsyncIterator[Model]:
    """A model of pydantic-ai's that speaks to a local server."""
    if service == "openai":
        async with AsyncOpenAI(base_url=f"{url}/v1", api_key="key") as client:
            provider = OpenAIProvider(openai_client=client)
            yield OpenAIChatModel("gpt-5", provider=provider)
    else:
        async with AsyncAnthropic(base_url=url, api_key="key") as other:
            yield AnthropicModel(
                "claude-local", provider=AnthropicProvider(anthropic_client=other)
            )


@pytest.mark.parametrize("service", ["openai", "anthropic"])
async def test_service_gets_what_hooks_made_of_requests(service: str) -> None:
    hooks = HookedAgents(
        {
            "BeforeModel": "add",
            "BeforeTool": changes(path="final.md"),
            "AfterModel": "redact",
            "AfterAgent": [["bad", "block"]],
        }
    )
    call = Answer(calls=(("read", {"path": "draft.md"}),))
    with ModelServer([call, "bad s3cret", "good s3cret"]) as server:
        async with real_model(service, server.url) as model:
            assert await streamed(hooks.agent(), model=model) == "good ***"
    bodies = [str(request.body) for request in server.requests]
    assert "s3cret" not in "".join(bodies)
    assert all("mind it" in body for body in bodies)
    assert "content of final.md" in bodies[1]
    assert "draft.md" not in bodies[1]
    assert "not today" in bodies[2]


async def test_handler_of_deferred_calls_answers_for_a_hook_that_asks() -> None:
    def decide(_ctx: Any, asked: pai.DeferredToolRequests) -> pai.DeferredToolResults:
        first, second = (call.tool_call_id for call in asked.approvals)
        return pai.DeferredToolResults(
            approvals={first: True, second: pai.ToolDenied("not b")}
        )

    hooks = HookedAgents({"BeforeTool": "ask"})
    both = calls(("read", {"path": "a"}), ("read", {"path": "b"}))
    await hooks.agent(both, capabilities=[HandleDeferredToolCalls(decide)]).run("go")
    assert hooks.ran == ["a"]
    assert "not b" in hooks.sent[1]


@pytest.mark.parametrize("approval", [None, True], ids=["unknown", "told"])
async def test_approval_of_a_single_run_has_to_be_told(approval: bool | None) -> None:
    agent = HookedAgents({"BeforeTool": "ask"}).agent(READS, approval=approval)
    result: Any = await agent.run("go", output_type=DEFERS)
    assert isinstance(result.output, pai.DeferredToolRequests) is (approval is True)


async def test_capability_works_for_a_single_run() -> None:
    hooks = HookedAgents({"BeforeTool": "block"})
    hooks.agent(READS)
    agent: Agent[None, str] = Agent(hooks.model.model, tools=[hooks.read])
    await agent.run("go", capabilities=[HooklineCapability(hooks.config)])
    assert hooks.ran == []
    assert "not today" in hooks.sent[1]


async def test_tool_that_runs_elsewhere_is_judged_before_it_is_handed_out() -> None:
    schema = {"type": "object", "properties": {"to": {"type": "string"}}}
    deploy = pai.ToolDefinition(name="deploy", parameters_json_schema=schema)
    reply = calls(("deploy", {"to": "production"}))
    options: Any = {"output_type": DEFERS, "toolsets": [pai.ExternalToolset([deploy])]}
    hooks = HookedAgents({"BeforeTool": "block"})
    assert (await hooks.agent(reply, **options).run("go")).output == "the end"
    assert "not today" in hooks.sent[1]
    hooks = HookedAgents({"BeforeTool": changes(to="staging")})
    asked = (await hooks.agent(reply, **options).run("go")).output
    assert [call.args_as_dict() for call in asked.calls] == [{"to": "staging"}]
    assert len(hooks.of("BeforeTool")) == 1
