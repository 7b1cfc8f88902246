"""pydantic-ai: the shared suite, and what is peculiar to its outputs and tools.

Issue 14 adapters; protocol.md#events, #callers and #translation.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from typing import Any

import pydantic_ai as pai
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.capabilities import (
    AbstractCapability,
    BatchModelRequests,
    HandleDeferredToolCalls,
    NativeTool,
)
from pydantic_ai.exceptions import RunCancelled, UnexpectedModelBehavior
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel as FakeTestModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from hookline import Config, HookSystem, Settings
from hookline.adapters.pydantic_ai import HooklineCapability
from hookline.agent import ScriptedReply
from hookline.testing.adapters import AdapterSuite
from hookline.testing.modelapi import Answer, ModelServer

from .drivers.pydantic_ai import FakeModel, PydanticAIDriver, in_thread
from .recorded_hooks import RecordedHooks, changes, redacts, specific

DEFERS: Any = [str, pai.DeferredToolRequests]


class TestPydanticAI(AdapterSuite):
    driver = PydanticAIDriver()


def calls(*made: tuple[str, dict[str, Any]], text: str = "") -> ScriptedReply:
    return ScriptedReply(text, made)


READS = calls(("read", {"path": "a"}))


class HookedAgents(RecordedHooks):
    """Hooks, and agents whose model answers by a script; ``ran`` has calls of read."""

    def __init__(self, answers: dict[str, Any] | None = None, **options: Any) -> None:
        super().__init__(answers, **options)
        self.ran: list[str] = []
        self.model = FakeModel(self._reply)
        self._replies: list[ScriptedReply] = []

    def _reply(self, at: int) -> ScriptedReply:
        ended = ScriptedReply("the end")
        return self._replies[at] if at < len(self._replies) else ended

    def read(self, path: str = "") -> str:
        """Read a file."""
        self.ran.append(path)
        return f"content of {path}"

    def agent(self, *replies: ScriptedReply | str, **options: Any) -> Agent[None, Any]:
        """An agent with the tool read, unless it has others."""
        self._replies = [
            ScriptedReply(one) if isinstance(one, str) else one for one in replies
        ]
        self.model.requests.clear()
        more = options.pop("capabilities", [])
        given = {n: options.pop(n) for n in ("confirm", "approval") if n in options}
        hooks = HooklineCapability(self.config, **given)
        tools = options.pop("tools", [self.read])
        return Agent(
            self.model.model, capabilities=[hooks, *more], tools=tools, **options
        )

    @property
    def sent(self) -> list[str]:
        return [request.text for request in self.model.requests]


def parts_of(result: Any, kind: str) -> list[Any]:
    found = [part for message in result.all_messages() for part in message.parts]
    return [part for part in found if part.part_kind == kind]


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
    turns = [(one["session_id"], one["prompt"]) for one in hooks.of("BeforeAgent")]
    own = first.conversation_id
    assert turns[:3] == [(own, "one"), (own, "two"), (own, "one")]
    assert turns[3][0] != own


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
            async for one in events:
                shown.append(one.event_kind)
        assert before == [[]]
        assert "part_start" in shown


class Requests:
    """A model that keeps the last request that it gets."""

    def __init__(self) -> None:
        self.messages: list[pai.ModelMessage] = []
        self.settings: Any = None
        self.native: list[Any] = []
        self.instructions: str | None = None
        self.model = FunctionModel(
            self._answer, profile={"supported_native_tools": frozenset({WebSearchTool})}
        )

    def _answer(
        self, messages: list[pai.ModelMessage], info: AgentInfo
    ) -> pai.ModelResponse:
        self.messages, self.settings = messages, info.model_settings
        self.native = info.model_request_parameters.native_tools
        self.instructions = info.instructions
        return pai.ModelResponse([pai.TextPart("ok")])


IMAGE = pai.ImageUrl("https://example.com/a.png")
HISTORY: list[pai.ModelMessage] = [
    pai.ModelRequest(
        [pai.SystemPromptPart("rules"), pai.UserPromptPart("old question")]
    ),
    pai.ModelResponse([pai.TextPart("old answer"), pai.ToolCallPart("read", {}, "1")]),
    pai.ModelRequest([pai.ToolReturnPart("read", "result", "1")]),
    pai.ModelResponse([pai.TextPart("last answer")]),
]
TEXTS = {
    "rules": "system",
    "old question": "user",
    "old answer": "model",
    "last answer": "model",
    "see this": "user",
}
STABLE = [{"role": role, "content": text} for text, role in TEXTS.items()]
OTHERS: list[Any] = [("tool-call", None), ("tool-return", "result")]
NEW = {"role": "user", "content": "new"}
PROMPT: list[Any] = ["see ", pai.TextContent("this"), IMAGE]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (
            [{**one, "content": one["content"].upper()} for one in STABLE],
            [
                *(("system-prompt", "RULES"), ("user-prompt", "OLD QUESTION")),
                *(("text", "OLD ANSWER"), *OTHERS, ("text", "LAST ANSWER")),
                ("user-prompt", ["SEE THIS", IMAGE]),
            ],
        ),
        (
            [STABLE[0], *STABLE[2:4], NEW, STABLE[4]],
            [
                *(("system-prompt", "rules"), ("text", "old answer"), *OTHERS),
                *(("text", "last answer"), ("user-prompt", "new")),
                ("user-prompt", PROMPT),
            ],
        ),
    ],
    ids=["edited", "removed and inserted"],
)
async def test_changed_request_keeps_images_calls_and_results(
    messages: Any, expected: Any
) -> None:
    config = {"temperature": 0.5, "maxOutputTokens": 7, "topP": None}
    change = specific(llm_request={"messages": messages, "config": config})
    hooks, requests = HookedAgents({"BeforeModel": change}), Requests()
    settings: Any = {"temperature": 1.0, "top_p": 0.9, "seed": 3}
    await hooks.agent().run(
        PROMPT, message_history=HISTORY, model=requests.model, model_settings=settings
    )
    parts = [part for message in requests.messages for part in message.parts]
    sent = [(part.part_kind, getattr(part, "content", None)) for part in parts]
    assert sent == expected
    assert "OLD" not in str(HISTORY)
    assert requests.settings == {"temperature": 0.5, "max_tokens": 7, "seed": 3}
    request = hooks.of("BeforeModel")[0]["llm_request"]
    assert request["messages"] == STABLE
    assert request["config"] == {"temperature": 1.0, "topP": 0.9, "seed": 3}


async def test_hooks_choose_the_model_and_the_mode_of_tools() -> None:
    hooks = HookedAgents({"BeforeModel": specific(llm_request={"model": "test"})})
    assert (await hooks.agent(tools=[]).run("go")).output == "success (no tool calls)"
    assert hooks.sent == []
    requests = Requests()
    hooks = HookedAgents({"BeforeToolSelection": specific(toolConfig={"mode": "ANY"})})
    await hooks.agent().run("go", model=requests.model)
    assert requests.settings == {"tool_choice": "required"}
    only = {"mode": "AUTO", "allowedFunctionNames": ["read"]}
    hooks = HookedAgents({"BeforeToolSelection": specific(toolConfig=only)})
    search = [NativeTool(WebSearchTool())]
    for used, native in ((hooks, 0), (HookedAgents(), 1)):
        await used.agent(capabilities=search).run("go", model=requests.model)
        assert len(requests.native) == native


async def test_translator_of_the_config_is_for_other_requests() -> None:
    config = Config("own", ".", Settings.from_mapping({}), translator="openai")
    HookSystem(config).on("AfterModel")(redacts)
    model = FakeTestModel(custom_output_text="the s3cret")
    agent = Agent(model, capabilities=[HooklineCapability(config)])
    assert (await agent.run("go")).output == "the ***"


async def test_batch_requests_are_refused_because_hooks_cannot_see_them() -> None:
    hooks = HookedAgents()
    with pytest.raises(pai.UserError, match="hooks cannot see"):
        await hooks.agent(capabilities=[BatchModelRequests()]).run("go")
    assert hooks.sent == []


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


class Order(BaseModel):
    city: str
    size: int = 1


SHIPPED: list[tuple[str, int]] = []


def ship(city: str, size: int) -> str:
    SHIPPED.append((city, size))
    return f"shipped to {city}"


async def ship_order(order: Order) -> str:
    return ship(order.city, order.size)


def ship_to(city: str) -> str:
    return ship(city, 1)


class Shop:
    def ship(self, city: str, size: int) -> str:
        return ship(city, size)


ARGS = {"city": "Oslo", "size": 2}
FINAL = calls(("final_result", ARGS))
KINDS: dict[str, tuple[Any, Any, str]] = {
    "function": (ship, FINAL, "ship"),
    "method": (Shop().ship, FINAL, "ship"),
    "model": (ship_order, FINAL, "ship_order"),
    "one value": (ship_to, calls(("final_result", {"city": "Oslo"})), "ship_to"),
    "ToolOutput": (pai.ToolOutput(ship), FINAL, "ship"),
    "named": (pai.ToolOutput(ship, name="send"), calls(("send", ARGS)), "send"),
    "several": ([ship, ship_to], calls(("final_result_ship", ARGS)), "ship"),
    "text": (pai.TextOutput(ship_to), "Oslo", "ship_to"),
    "native": (pai.NativeOutput(ship), '{"city": "Oslo", "size": 2}', "ship"),
}


async def test_output_function_passes_the_hooks_of_tools(
    subtests: pytest.Subtests,
) -> None:
    def change(event: Any) -> Any:
        key = "text" if "text" in event["tool_input"] else "city"
        return changes(**{key: "Rome"})

    for kind, (output, reply, name) in KINDS.items():
        with subtests.test(kind):
            SHIPPED.clear()
            hooks = HookedAgents()
            result: Any = await hooks.agent(reply, output_type=output).run("go")
            assert result.output == "shipped to Oslo"
            (before,), (after,) = hooks.of("BeforeTool"), hooks.of("AfterTool")
            assert before["tool_name"] == after["tool_name"] == name
            assert "Oslo" in before["tool_input"].values()
            assert after["tool_response"]["llmContent"] == "shipped to Oslo"
            changed = HookedAgents({"BeforeTool": change})
            result = await changed.agent(reply, output_type=output).run("go")
            assert (result.output, SHIPPED[-1][0]) == ("shipped to Rome", "Rome")
            blocked = HookedAgents({"BeforeTool": "block"})
            with pytest.raises(UnexpectedModelBehavior):
                await blocked.agent(*[reply] * 3, output_type=output).run("go")
            assert "not today" in blocked.sent[1]
            assert len(SHIPPED) == 2


async def test_output_function_obeys_all_else_that_hooks_say() -> None:
    SHIPPED.clear()
    hooks = HookedAgents({"BeforeTool": changes(extra=1)})
    with pytest.raises(UnexpectedModelBehavior):
        await hooks.agent(FINAL, FINAL, output_type=ship).run("go")
    assert SHIPPED == []
    assert "changed the parameters of ship: extra" in hooks.sent[1]
    for output, reason in (("withhold", "confidential"), ("stop", "enough")):
        hooks = HookedAgents({"AfterTool": output})
        with pytest.raises(pai.AgentRunError, match=reason):
            await hooks.agent(FINAL, output_type=ship).run("go")
        agent = hooks.agent("Oslo", output_type=pai.TextOutput(ship_to))
        assert (await agent.run("go")).output == reason
    none = {"BeforeToolSelection": specific(toolConfig={"mode": "NONE"})}
    result = await HookedAgents(none).agent(FINAL, output_type=ship).run("go")
    assert result.output == "shipped to Oslo"


async def test_output_function_does_not_run_on_parts_of_a_stream() -> None:
    SHIPPED.clear()
    hooks = HookedAgents()
    agent = hooks.agent("Oslo and Rome", output_type=pai.TextOutput(ship_to))
    async with agent.run_stream("go") as stream:
        outputs = [output async for output in stream.stream_output(debounce_by=None)]
    assert outputs[-1] == "shipped to Oslo and Rome"
    assert {city for city, _ in SHIPPED} == {"Oslo and Rome"}
    assert len(hooks.of("BeforeTool")) == len(SHIPPED)


async def test_output_functions_that_hooks_cannot_tell_apart_are_refused() -> None:
    SHIPPED.clear()
    chosen = '{"result": {"kind": "ship_to", "data": {"city": "Oslo"}}}'
    agent = HookedAgents().agent(chosen, output_type=pai.NativeOutput([ship, ship_to]))
    with pytest.raises(pai.UserError, match="which of several output functions"):
        await agent.run("go")
    choices = pai.Choices(
        {"send": pai.Choice("Send it", value=lambda: ship("Oslo", 1))}
    )
    picked = calls(("final_result", {"response": "send"}))
    for kind, reply in (
        *((choices, picked), (pai.ToolOutput(choices), picked)),
        (pai.NativeOutput(choices), '{"response": "send"}'),
    ):
        with pytest.raises(pai.UserError, match="or Choices"):
            await HookedAgents().agent(reply, output_type=kind).run("go")
    assert SHIPPED == []


async def test_input_is_seen_and_changed_as_the_model_gives_it() -> None:
    booked: list[Any] = []

    def buy(order: Order) -> None:
        booked.append(order)

    def book(day: date, order: Order) -> None:
        booked.append((day, order))

    hooks = HookedAgents({"BeforeTool": changes(size=3)})
    result = await hooks.agent(calls(("buy", {"city": "a"})), tools=[buy]).run("go")
    seen = hooks.of("BeforeTool")[0]["tool_input"]
    assert seen == {"city": "a", "size": 1}
    assert booked.pop() == Order(city="a", size=3)
    (call,) = parts_of(result, "tool-call")
    assert call.args_as_dict() == {"city": "a", "size": 3}
    hooks = HookedAgents({"BeforeTool": changes(day="2026-02-03")})
    given = calls(("book", {"day": "2026-01-01", "order": {"city": "a"}}))
    result = await hooks.agent(given, tools=[book]).run("go")
    assert booked.pop() == (date(2026, 2, 3), Order(city="a"))
    (call,) = parts_of(result, "tool-call")
    assert call.args_as_dict() == {"day": "2026-02-03", "order": {"city": "a"}}
    hooks = HookedAgents({"BeforeTool": changes(size="many")})
    await hooks.agent(calls(("buy", {"city": "a"})), tools=[buy]).run("go")
    assert booked == []
    assert "valid integer" in hooks.sent[1]


async def test_hooks_see_what_another_capability_made_of_the_input() -> None:
    class Meddler(AbstractCapability[Any]):
        async def before_tool_execute(
            self, ctx: pai.RunContext[Any], *, call: Any, tool_def: Any, args: Any
        ) -> Any:
            return {"path": ".env"}

    hooks = HookedAgents()
    await hooks.agent(READS, capabilities=[Meddler()]).run("go")
    assert hooks.of("BeforeTool")[0]["tool_input"] == {"path": ".env"}


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


async def test_retry_and_timeout_are_seen_with_what_hooks_add() -> None:
    hooks = HookedAgents({"AfterTool": "add"})
    agent = hooks.agent(*[calls(("shaky", {}))] * 2, calls(("wait", {})))
    tries: list[int] = []

    @agent.tool_plain(retries=2)
    def shaky() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise pai.ModelRetry("another name, please")
        return "text"

    @agent.tool_plain(timeout=0.01)
    async def wait() -> str:
        await asyncio.Event().wait()
        return "never"

    result = await agent.run("go")
    assert "another name, please\n\nmind it" in hooks.sent[1]
    outcomes = [part.outcome for part in parts_of(result, "tool-return")]
    assert outcomes[:2] == ["retried", "success"]
    first, _, last = (one["tool_response"] for one in hooks.of("AfterTool"))
    assert first["error"]["message"] == "ModelRetry: another name, please"
    assert "Timed out" in last["error"]["message"]


async def test_tool_return_is_kept_or_withheld_whole() -> None:
    def give() -> Any:
        return pai.ToolReturn("s3cret", content="also s3cret", metadata="s3cret")

    hooks = HookedAgents({"AfterTool": "withhold"})
    result = await hooks.agent(calls(("give", {})), tools=[give]).run("go")
    shown = hooks.of("AfterTool")[0]["tool_response"]["llmContent"]
    assert shown == {"return_value": "s3cret", "content": "also s3cret"}
    assert "confidential" in hooks.sent[1]
    assert "s3cret" not in str(result.all_messages())
    hooks = HookedAgents({"AfterTool": "add"})
    result = await hooks.agent(calls(("give", {})), tools=[give]).run("go")
    (part,) = parts_of(result, "tool-return")
    assert (part.content, part.metadata) == ("s3cret", "s3cret")
    assert "also s3cret" in hooks.sent[1]
    assert "mind it" in hooks.sent[1]


async def test_run_that_its_tool_cancels_has_no_after_tool() -> None:
    hooks = HookedAgents()
    agent = hooks.agent(calls(("give_up", {})))

    @agent.tool
    async def give_up(ctx: pai.RunContext[None]) -> str:
        ctx.cancel()
        await asyncio.Event().wait()
        return "never"

    with pytest.raises(RunCancelled):
        await agent.run("go")
    assert hooks.of("AfterTool") == []


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
