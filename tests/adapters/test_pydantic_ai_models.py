"""Model calls of pydantic-ai agents under hooks.

issue 14 adapters; protocol.md#translation
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    AgentRunError,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserError,
    UserPromptPart,
)
from pydantic_ai.capabilities import BatchModelRequests, NativeTool
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel as FakeTestModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.output import NativeOutput, PromptedOutput
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from hookline import Config, HookSystem, Settings
from hookline.adapters.pydantic_ai import HooklineCapability
from hookline.agent import ScriptedReply
from hookline.testing.modelapi import Answer, ModelServer

from .pydantic_agents import block, calls, specific, stop, workbench


class City(BaseModel):
    name: str
    note: str = ""


CITY = calls(("final_result", {"name": "Rome", "note": "s3cret"}))


def redact(event: Any) -> Any:
    text = event["llm_response"]["text"]
    if "s3cret" not in text:
        return None
    return specific(llm_response={"text": text.replace("s3cret", "[gone]")})


@pytest.mark.parametrize("event", ["BeforeAgent", "BeforeModel", "AfterModel"])
async def test_a_stop_of_a_run_without_text_output_is_an_error(event: str) -> None:
    async with workbench(**{event: lambda _: stop("not now")}) as bench:
        agent = bench.agent(CITY, output_type=City)
        with pytest.raises(AgentRunError, match="not now"):
            await agent.run("go")
    assert len(bench.sent) == (event == "AfterModel")


@pytest.mark.parametrize("kind", [NativeOutput, PromptedOutput])
async def test_a_stop_is_never_parsed_as_structured_text(kind: Any) -> None:
    async with workbench(BeforeModel=lambda _: stop("not now")) as bench:
        agent = bench.agent(output_type=kind(City))
        with pytest.raises(AgentRunError, match="not now"):
            await agent.run("go")
    assert bench.sent == []


async def test_a_stop_is_the_text_of_an_output_that_may_be_text() -> None:
    async with workbench(BeforeModel=lambda _: stop("not now")) as bench:
        result: Any = await bench.agent(output_type=[City, str]).run("go")
    assert result.output == "not now"


async def test_a_hook_answers_with_json_for_a_structured_output() -> None:
    answer = block() | specific(llm_response={"text": '{"name": "Oslo"}'})
    async with workbench(BeforeModel=lambda _: answer) as bench:
        result: Any = await bench.agent(output_type=City).run("go")
    assert result.output == City(name="Oslo")
    assert bench.sent == []


async def test_a_structured_output_is_shown_and_changed_as_json(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with workbench(AfterModel=redact) as bench:
        agent = bench.agent(CITY, output_type=City)
        result: Any = await agent.run("go")
    assert result.output == City(name="Rome", note="[gone]")
    assert "s3cret" not in str(result.all_messages())
    assert "dropped" not in caplog.text


async def test_nothing_removed_is_in_a_partial_structured_output() -> None:
    shown: list[Any] = []
    async with workbench(AfterModel=redact) as bench:
        agent = bench.agent(CITY, output_type=City)
        async with agent.run_stream("go") as result:
            shown += [one async for one in result.stream_output(debounce_by=None)]
    assert shown[-1] == City(name="Rome", note="[gone]")
    assert "s3cret" not in str(shown)
    assert "s3cret" not in str(result.all_messages())


@pytest.mark.parametrize("stream", [False, True], ids=["run", "run_stream"])
async def test_a_rejected_structured_output_continues(stream: bool) -> None:
    def reject(event: Any) -> Any:
        return block("warmer") if "Oslo" in event["prompt_response"] else None

    oslo = calls(("final_result", {"name": "Oslo"}))
    async with workbench(AfterAgent=reject) as bench:
        agent = bench.agent(oslo, CITY, output_type=City)
        if stream:
            async with agent.run_stream("go") as run:
                output, messages = await run.get_output(), run.all_messages()
        else:
            result: Any = await agent.run("go")
            output, messages = result.output, result.all_messages()
    assert output.name == "Rome"
    told = [part for message in messages for part in message.parts]
    (answer, *_) = [part for part in told if isinstance(part, ToolReturnPart)]
    assert (answer.tool_name, answer.content) == ("final_result", "warmer")


async def test_a_stream_is_live_while_no_hook_waits_for_the_end() -> None:
    seen = asyncio.Event()

    async def stream(_: list[ModelMessage], __: AgentInfo) -> AsyncIterator[str]:
        yield "first "
        await seen.wait()
        yield "second"

    async with Config("own", ".", Settings.from_mapping({})) as config:
        HookSystem(config).on("BeforeModel")(lambda _: None)
        agent = Agent(
            FunctionModel(stream_function=stream),
            capabilities=[HooklineCapability(config)],
        )
        shown: list[str] = []
        async with agent.run_stream("go") as result:
            async for text in result.stream_text(delta=True, debounce_by=None):
                shown.append(text)
                seen.set()
    assert shown == ["first ", "second"]


@pytest.mark.parametrize(
    ("event", "sent"),
    [("BeforeAgent", 0), ("BeforeModel", 0), ("BeforeTool", 1), ("AfterTool", 1)],
)
async def test_a_stop_ends_a_live_stream_with_its_reason(event: str, sent: int) -> None:
    async with workbench(**{event: lambda _: stop("not now")}) as bench:
        agent = bench.agent(calls(("read", {})))

        @agent.tool_plain
        def read() -> str:
            return "text"

        async with agent.run_stream("go") as result:
            shown = [one async for one in result.stream_text(debounce_by=None)]
    assert shown[-1] == "not now"
    assert len(bench.sent) == sent


@pytest.mark.parametrize("event", ["AfterModel", "AfterAgent"])
async def test_a_stream_shows_nothing_before_the_hooks_have_spoken(event: str) -> None:
    shown: list[str] = []
    before: list[list[str]] = []
    async with workbench(**{event: lambda _: before.append(list(shown))}) as bench:
        agent = bench.agent("a long answer in pieces")
        async with agent.run_stream_events("go") as events:
            async for one in events:
                shown += [one.event_kind]
    assert before == [[]]
    assert "part_start" in shown


async def test_run_stream_does_not_accept_a_rejected_answer_beside_calls() -> None:
    reply = ScriptedReply("bad answer", calls(("read", {})).calls)
    async with workbench(AfterAgent=lambda _: block("worse")) as bench:
        agent = bench.agent(reply)

        @agent.tool_plain
        def read() -> str:
            return "text"

        with pytest.raises(AgentRunError, match="worse"):
            async with agent.run_stream("go") as result:
                await result.get_output()


async def test_a_changed_answer_drops_its_calls_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ran: list[str] = []
    reply = ScriptedReply("the s3cret", calls(("read", {})).calls)
    async with workbench(AfterModel=redact) as bench:
        agent = bench.agent(reply)

        @agent.tool_plain
        def read() -> str:
            ran.append("read")
            return "text"

        assert (await agent.run("go")).output == "the [gone]"
    assert ran == []
    assert "calls are dropped: ['read']" in caplog.text


async def test_an_emptied_answer_is_not_asked_for_again() -> None:
    empty = specific(llm_response={"text": ""})
    async with workbench(AfterModel=lambda _: empty) as bench:
        result = await bench.agent("the s3cret").run("go")
    assert result.output == "[System] A hook removed this answer"
    assert len(bench.sent) == 1


class Requests:
    """A model that keeps the requests it gets."""

    def __init__(self) -> None:
        self.messages: list[ModelMessage] = []
        self.settings: Any = None
        self.native: list[Any] = []
        self.instructions: str | None = None
        self.model = FunctionModel(
            self._answer, profile={"supported_native_tools": frozenset({WebSearchTool})}
        )

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.messages, self.settings = messages, info.model_settings
        self.native = info.model_request_parameters.native_tools
        self.instructions = info.instructions
        return ModelResponse([TextPart("ok")])

    @property
    def parts(self) -> list[tuple[str, Any]]:
        found = [part for message in self.messages for part in message.parts]
        return [(part.part_kind, getattr(part, "content", None)) for part in found]


IMAGE = ImageUrl("https://example.com/a.png")
HISTORY: list[ModelMessage] = [
    ModelRequest([SystemPromptPart("rules"), UserPromptPart("old question")]),
    ModelResponse([TextPart("old answer"), ToolCallPart("read", {}, "1")]),
    ModelRequest([ToolReturnPart("read", "result", "1")]),
    ModelResponse([TextPart("last answer")]),
]


async def changed(request: dict[str, Any], **options: Any) -> Requests:
    """What the model is sent after a hook has changed the request."""
    requests = Requests()
    async with workbench(BeforeModel=lambda _: specific(**request)) as bench:
        prompt: list[Any] = ["see ", TextContent("this"), IMAGE]
        agent = bench.agent()
        await agent.run(
            prompt, message_history=HISTORY, model=requests.model, **options
        )
    return requests


TEXTS = ["rules", "old question", "old answer", "last answer", "see this"]
ROLES = ["system", "user", "model", "model", "user"]
STABLE = [
    {"role": role, "content": text} for role, text in zip(ROLES, TEXTS, strict=True)
]


async def test_an_edited_text_leaves_images_calls_and_results_in_place() -> None:
    messages = [{**one, "content": one["content"].upper()} for one in STABLE]
    requests = await changed({"llm_request": {"messages": messages}})
    assert requests.parts == [
        ("system-prompt", "RULES"),
        ("user-prompt", "OLD QUESTION"),
        ("text", "OLD ANSWER"),
        ("tool-call", None),
        ("tool-return", "result"),
        ("text", "LAST ANSWER"),
        ("user-prompt", ["SEE THIS", IMAGE]),
    ]
    assert "OLD" not in str(HISTORY)


async def test_messages_are_removed_and_inserted() -> None:
    messages = [STABLE[0], *STABLE[2:4], {"role": "user", "content": "new"}, STABLE[4]]
    requests = await changed({"llm_request": {"messages": messages}})
    assert [part for part in requests.parts if part[0] != "tool-call"] == [
        ("system-prompt", "rules"),
        ("text", "old answer"),
        ("tool-return", "result"),
        ("text", "last answer"),
        ("user-prompt", "new"),
        ("user-prompt", ["see ", TextContent("this"), IMAGE]),
    ]


async def test_added_context_is_part_of_the_last_request() -> None:
    requests = await changed({"additionalContext": "mind this"})
    assert [part.part_kind for part in requests.messages[-1].parts] == [
        "user-prompt",
        "user-prompt",
    ]
    assert requests.parts[-1] == ("user-prompt", "mind this")


async def test_settings_are_changed_and_the_others_stay() -> None:
    config = {"temperature": 0.5, "maxOutputTokens": 7, "topP": None}
    requests = await changed(
        {"llm_request": {"config": config}},
        model_settings={"temperature": 1.0, "top_p": 0.9, "seed": 3},
    )
    assert requests.settings == {"temperature": 0.5, "max_tokens": 7, "seed": 3}


async def test_a_hook_sees_messages_and_settings_in_the_stable_shape() -> None:
    async with workbench() as bench:
        agent = bench.agent(model_settings={"max_tokens": 5})
        await agent.run(["see ", "this", IMAGE], message_history=HISTORY)
    (event,) = bench.seen("BeforeModel")
    assert event["llm_request"]["messages"] == STABLE
    assert event["llm_request"]["config"] == {"maxOutputTokens": 5}


@pytest.mark.parametrize("prompt", ["hi", None], ids=["prompt", "instructions alone"])
@pytest.mark.parametrize("text", ["keep the [gone]", ""], ids=["edited", "removed"])
async def test_instructions_are_seen_and_changed_like_any_message(
    text: str, prompt: str | None
) -> None:
    seen: list[Any] = []

    def edit(event: Any) -> Any:
        first, *others = seen[:] = event["llm_request"]["messages"]
        kept = [{**first, "content": text}, *others] if text else others
        return specific(llm_request={"messages": kept})

    requests = Requests()
    async with workbench(BeforeModel=edit) as bench:
        agent = bench.agent(instructions="keep the s3cret")
        result = await agent.run(prompt, model=requests.model)
    assert seen[0] == {"role": "system", "content": "keep the s3cret"}
    assert [one["content"] for one in seen[1:]] == ([prompt] if prompt else [])
    assert len(requests.messages) == 1
    assert requests.instructions == (text or None)
    assert "s3cret" not in str(requests.messages)
    assert "s3cret" in str(result.all_messages())


async def test_a_hook_names_another_model() -> None:
    change = specific(llm_request={"model": "test"})
    async with workbench(BeforeModel=lambda _: change) as bench:
        result = await bench.agent().run("go")
    assert result.output == "success (no tool calls)"
    assert bench.sent == []


async def test_a_hook_makes_the_model_call_a_tool() -> None:
    mode = specific(toolConfig={"mode": "ANY"})
    requests = Requests()
    async with workbench(BeforeToolSelection=lambda _: mode) as bench:
        agent = bench.agent()

        @agent.tool_plain
        def read() -> str:
            return "text"

        await agent.run("go", model=requests.model)
    assert requests.settings == {"tool_choice": "required"}


async def test_a_restriction_takes_tools_of_the_service_out_too() -> None:
    only = specific(toolConfig={"mode": "AUTO", "allowedFunctionNames": ["read"]})
    requests = Requests()
    async with workbench(BeforeToolSelection=lambda _: only) as bench:
        agent = bench.agent(capabilities=[NativeTool(WebSearchTool())])
        await agent.run("go", model=requests.model)
        assert requests.native == []


async def test_the_translator_of_the_config_is_for_other_requests() -> None:
    config = Config("own", ".", Settings.from_mapping({}), translator="openai")
    async with config:
        HookSystem(config).on("AfterModel")(redact)
        agent = Agent(
            FakeTestModel(custom_output_text="the s3cret"),
            capabilities=[HooklineCapability(config)],
        )
        assert (await agent.run("go")).output == "the [gone]"


async def test_batch_requests_are_refused_because_hooks_cannot_see_them() -> None:
    async with workbench() as bench:
        agent = bench.agent(capabilities=[BatchModelRequests()])
        with pytest.raises(UserError, match="hooks cannot see"):
            await agent.run("go")
    assert bench.sent == []


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
async def test_a_service_gets_what_hooks_made_of_requests(service: str) -> None:
    hooks = {
        "BeforeModel": lambda _: specific(additionalContext="mind this"),
        "BeforeTool": lambda _: specific(tool_input={"path": "final.md"}),
        "AfterModel": redact,
        "AfterAgent": lambda event: (
            block("once more") if "bad" in event["prompt_response"] else None
        ),
    }
    call = Answer(calls=(("read", {"path": "draft.md"}),))
    with ModelServer([call, "bad s3cret", "good s3cret"]) as server:
        async with (
            workbench(**hooks) as bench,
            real_model(service, server.url) as model,
        ):
            agent = bench.agent()

            @agent.tool_plain
            def read(path: str) -> str:
                return f"content of {path}"

            async with agent.run_stream("go", model=model) as result:
                shown = [one async for one in result.stream_output(debounce_by=None)]
    bodies = [str(request.body) for request in server.requests]
    assert shown[-1] == "good [gone]"
    assert "s3cret" not in str(shown) + "".join(bodies)
    assert all("mind this" in body for body in bodies)
    assert "content of final.md" in bodies[1]
    assert "draft.md" not in bodies[1]
    assert "once more" in bodies[2]
