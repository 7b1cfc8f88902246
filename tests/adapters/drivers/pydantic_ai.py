"""pydantic-ai under the suite for adapters, by each of its entry points."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import date
from typing import Any

from pydantic_ai import (
    Agent,
    Choice,
    Choices,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    ModelRetry,
    NativeOutput,
    PromptedOutput,
    RunContext,
    TextOutput,
    TextPart,
    Tool,
    ToolApproved,
    ToolCallPart,
    ToolFailed,
    ToolOutput,
    ToolReturn,
)
from pydantic_ai.capabilities import (
    AbstractCapability,
    BatchModelRequests,
    NativeTool,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.native_tools import WebSearchTool

from hookline.adapters.pydantic_ai import HooklineCapability
from hookline.agent import ScriptedReply, Session
from hookline.testing.adapters import ModelRequest, Toolbox
from tests.adapters.scenarios import City, Scenario, ScenarioDriver, answer_for

Reply = Callable[[int], ScriptedReply]


class FakeModel:
    """A FunctionModel that answers by a script and keeps what it was sent."""

    def __init__(
        self, reply: Reply, requests: list[ModelRequest] | None = None
    ) -> None:
        self._reply = reply
        self.requests = [] if requests is None else requests
        self.settings: list[Any] = []
        self.model = FunctionModel(
            self._request,
            stream_function=self._stream,
            profile={
                "supports_json_schema_output": True,
                "supports_json_object_output": True,
                "supported_native_tools": frozenset({WebSearchTool}),
            },
        )

    def _take(self, messages: list[ModelMessage], info: AgentInfo) -> ScriptedReply:
        parts = [part for message in messages for part in message.parts]
        lines = [info.instructions or "", *map(_line, parts)]
        text = "\n".join(filter(None, lines))
        names = [tool.name for tool in info.function_tools]
        names += [tool.kind for tool in info.model_request_parameters.native_tools]
        self.settings.append(info.model_settings)
        self.requests.append(ModelRequest(text, names))
        return self._reply(len(self.requests) - 1)

    def _request(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        reply = self._take(messages, info)
        text = [TextPart(reply.text)] if reply.text else []
        return ModelResponse([*text, *(ToolCallPart(*call) for call in reply.calls)])

    async def _stream(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        reply = self._take(messages, info)
        for at in range(0, len(reply.text), 5):
            yield reply.text[at : at + 5]
        for index, (name, given) in enumerate(reply.calls):
            call_id = f"call-{len(self.requests)}-{index}"
            yield {
                index + 1: DeltaToolCall(name, json.dumps(given), tool_call_id=call_id)
            }


def _line(part: Any) -> str:
    if isinstance(part, ToolCallPart):
        return f"call: {part.tool_name} {part.args_as_dict()}"
    return f"{part.part_kind}: {part.content}"


class Shown:
    """What a run showed its caller, and how it ended."""

    def __init__(self, events: list[str]) -> None:
        self.output: Any = None
        self.messages: list[ModelMessage] = []
        self.events = events

    def end(self, run: Any, output: Any) -> None:
        self.output, self.messages = output, run.all_messages()


async def in_thread(start: Callable[[], object]) -> None:
    """Run plain code, with an event loop that pydantic-ai would leave open."""

    def work() -> None:
        with asyncio.Runner() as runner:
            asyncio.set_event_loop(runner.get_loop())
            start()

    await asyncio.to_thread(work)


async def run(agent: Agent[None, Any], shown: Shown, **given: Any) -> None:
    result = await agent.run(**given)
    shown.end(result, result.output)


async def run_sync(agent: Agent[None, Any], shown: Shown, **given: Any) -> None:
    def start() -> None:
        result = agent.run_sync(**given)
        shown.end(result, result.output)

    await in_thread(start)


async def run_stream(agent: Agent[None, Any], shown: Shown, **given: Any) -> None:
    async with agent.run_stream(**given) as result:
        async for output in result.stream_output(debounce_by=None):
            shown.events.append(str(output))
        shown.end(result, await result.get_output())


async def run_stream_sync(agent: Agent[None, Any], shown: Shown, **given: Any) -> None:
    def stream() -> None:
        with agent.run_stream_sync(**given) as result:
            shown.events.extend(map(str, result.stream_output(debounce_by=None)))
            shown.end(result, result.get_output())

    await in_thread(stream)


async def run_stream_events(
    agent: Agent[None, Any], shown: Shown, **given: Any
) -> None:
    async with agent.run_stream_events(**given) as events:
        async for event in events:
            shown.events.append(str(event))
            if event.event_kind == "agent_run_result":
                shown.end(event.result, event.result.output)


async def iterate(agent: Agent[None, Any], shown: Shown, **given: Any) -> None:
    async with agent.iter(**given) as agent_run:
        async for node in agent_run:
            if Agent.is_model_request_node(node) or Agent.is_call_tools_node(node):
                async with node.stream(agent_run.ctx) as stream:
                    shown.events.extend([str(event) async for event in stream])
    assert agent_run.result is not None
    shown.end(agent_run.result, agent_run.result.output)


ENTRIES: dict[str, Any] = {
    "run": run,
    "run_sync": run_sync,
    "run_stream": run_stream,
    "run_stream_sync": run_stream_sync,
    "run_stream_events": run_stream_events,
    "iter": iterate,
}


class PydanticAIDriver(ScenarioDriver):
    """Runs an ``Agent`` with a FunctionModel."""

    entries: Sequence[str] = tuple(ENTRIES)
    usual_entries: Sequence[str] = ("run", "run_stream")
    output_tool = "final_result"

    async def play(
        self, session: Session | None, scenario: Scenario, entry: str
    ) -> None:
        fake = FakeModel(scenario.reply, scenario.requests)
        agent = _agent(session, scenario, fake)
        shown = Shown(scenario.shown)
        common: dict[str, Any] = {"conversation_id": scenario.conversation}
        history = ModelMessagesTypeAdapter.validate_python(
            scenario.options.get("history", [])
        )
        for turn in scenario.turns:
            await ENTRIES[entry](
                agent, shown, user_prompt=turn, message_history=history, **common
            )
            while isinstance(shown.output, DeferredToolRequests):
                scenario.questions += [
                    [call.args_as_dict(), shown.output.metadata.get(call.tool_call_id)]
                    for call in shown.output.approvals
                ]
                answer = scenario.take_answer()
                if answer is None:
                    break
                if scenario.elsewhere:
                    agent = _agent(session, scenario, fake)
                approvals = {
                    call.tool_call_id: _approval(
                        answer_for(answer, call.args_as_dict().get("path"))
                    )
                    for call in shown.output.approvals
                }
                results = DeferredToolResults(approvals=approvals)
                await ENTRIES[entry](
                    agent,
                    shown,
                    message_history=shown.messages,
                    deferred_tool_results=results,
                    **common,
                )
            history = shown.messages
            waits = isinstance(shown.output, DeferredToolRequests)
            scenario.results.append("waiting" if waits else str(shown.output))
            scenario.recorded = str(shown.messages)
            scenario.recorded_inputs = _inputs(shown.messages)
            if scenario.options.get("shows_settings"):
                scenario.notes["settings"] = fake.settings
            if scenario.options.get("shows_history"):
                scenario.notes["history"] = [
                    {
                        name: value
                        for name in KEPT
                        if (value := getattr(part, name, None))
                    }
                    for message in shown.messages
                    for part in message.parts
                ]


KEPT = ("part_kind", "content", "args", "outcome", "metadata")
"""What the history shows of a part."""


def _approval(answer: Any) -> Any:
    return ToolApproved(**answer) if isinstance(answer, dict) else answer


def _outputs(tools: Toolbox) -> dict[str | None, Any]:
    """The kinds of an answer: data, or what a function makes of it."""

    def ship(name: str, note: str = "") -> str:
        tools.ran.append(("ship", {"name": name, "note": note}))
        return f"shipped to {name}"

    async def ship_city(city: City) -> str:
        return ship(city.name, city.note)

    def ship_to(name: str) -> str:
        return ship(name)

    class Shop:
        def ship(self, name: str, note: str) -> str:
            return ship(name, note)

    choices = Choices({"send": Choice("Send it", value=lambda: ship("Oslo"))})
    return {
        None: City,
        "native": NativeOutput(City),
        "prompted": PromptedOutput(City),
        "or text": [City, str],
        "function": ship,
        "method": Shop().ship,
        "function of a model": ship_city,
        "function of one value": ship_to,
        "function as a tool": ToolOutput(ship),
        "function with a name": ToolOutput(ship, name="send"),
        "several functions": [ship, ship_to],
        "function of the text": TextOutput(ship_to),
        "native function": NativeOutput(ship),
        "several native functions": NativeOutput([ship, ship_to]),
        "choices": choices,
        "choices as a tool": ToolOutput(choices),
        "native choices": NativeOutput(choices),
    }


def _peculiar_tools(tools: Toolbox) -> dict[str, Any]:
    """Tools that only pydantic-ai has."""

    def buy(city: City) -> None:
        tools.ran.append(("buy", {"city": city}))

    def book(day: date, city: City) -> None:
        tools.ran.append(("book", {"day": day, "city": city}))

    def picky(path: str) -> str:
        tools.ran.append(("picky", {"path": path}))
        if len(tools.ran) == 1:
            raise ModelRetry("another name, please")
        return "text"

    def give() -> Any:
        return ToolReturn("s3cret", content="also s3cret", metadata="s3cret")

    async def cancel(ctx: RunContext[None]) -> str:
        ctx.cancel()
        await asyncio.Event().wait()
        return "never"

    return {one.__name__: one for one in (buy, book, picky, give, cancel)}


class Meddling(AbstractCapability[Any]):
    """Changes the input of every call."""

    async def before_tool_execute(
        self, ctx: RunContext[Any], *, call: Any, tool_def: Any, args: Any
    ) -> Any:
        return {"path": ".env"}


CAPABILITIES: dict[str, Any] = {
    "meddling": Meddling,
    "batch": BatchModelRequests,
    "search": lambda: NativeTool(WebSearchTool()),
}
"""Other capabilities of a row."""


def _agent(
    session: Session | None, scenario: Scenario, fake: FakeModel
) -> Agent[None, Any]:
    options = scenario.options
    output: Any = str
    if scenario.structured or "output" in options:
        output = _outputs(scenario.tools)[options.get("output")]
    if scenario.answers:
        kinds = output if isinstance(output, list) else [output]
        output = [*kinds, DeferredToolRequests]
    hooks: list[Any] = []
    if session is not None:
        subject = scenario.subject(session)
        hooks.append(HooklineCapability(subject, confirm=scenario.callback))
    peculiar = _peculiar_tools(scenario.tools)
    tools: list[Any] = [*scenario.functions(), *_helpers(hooks, scenario)]
    tools += [peculiar[name] for name in options.get("peculiar_tools", ())]
    given: dict[str, Any] = options.get("tools", {})
    tools = [Tool(one, **given.get(one.__name__, {})) for one in tools]
    if scenario.softens_errors:
        tools[2] = _failing(scenario.tools)
    return Agent(
        fake.model,
        output_type=output,
        tools=tools,
        capabilities=[
            *hooks,
            *(CAPABILITIES[name]() for name in options.get("capabilities", ())),
        ],
        instructions=options.get("system_prompt"),
        **options.get("agent", {}),
    )


def _helpers(hooks: list[Any], scenario: Scenario) -> list[Any]:
    """A tool that runs another agent, if the scenario has one."""
    if not scenario.helper:
        return []
    model = FakeModel(scenario.helper_reply, scenario.helper_requests).model
    agent: Agent[None, str] = Agent(
        model, name="assistant", tools=scenario.functions(), capabilities=hooks
    )

    async def helper(input: str) -> str:  # noqa: A002  # as other frameworks name it
        """Help."""
        return (await agent.run(input)).output

    return [helper]


def _failing(tools: Toolbox) -> Callable[[str], str]:
    def fail(path: str) -> str:
        """Read a file; this is how a tool of pydantic-ai tells a failure."""
        try:
            return tools.fail(path)
        except OSError as error:
            raise ToolFailed(str(error)) from error

    return fail


def _inputs(messages: list[ModelMessage]) -> list[dict[str, Any]]:
    parts = [part for message in messages for part in message.parts]
    return [part.args_as_dict() for part in parts if isinstance(part, ToolCallPart)]
