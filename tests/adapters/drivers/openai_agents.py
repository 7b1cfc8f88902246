"""Runs agents of the OpenAI Agents SDK with its scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    ModelSettings,
    RunConfig,
    Runner,
    RunState,
    SQLiteSession,
    ToolOutputText,
    function_tool,
    handoff,
)
from agents.testing import (
    ModelCall,
    ModelStep,
    ScriptedModel,
    assistant_message,
    function_call,
)

from hookline.adapters.openai_agents import HooklineRunner, hooked_agent
from hookline.agent import ScriptedReply, Session
from hookline.testing.adapters import ModelRequest
from tests.adapters.scenarios import City, Scenario, ScenarioDriver, answer_for

QUIET = RunConfig(tracing_disabled=True)


async def _asks_about_a(_ctx: Any, params: dict[str, Any], _id: str) -> bool:
    return bool(params["path"] == "a")


async def _never_asks(_ctx: Any, _params: dict[str, Any], _id: str) -> bool:
    return False


FUNCTIONS: dict[Any, Any] = {
    "never asks": _never_asks,
    "says sorry": lambda _, error: f"sorry: {error}",
    "asks about a": _asks_about_a,
    "always asks": lambda *_: True,
    "everything": lambda data: data.clone(
        input_history=(), pre_handoff_items=(), new_items=()
    ),
}
"""What options of tools and handoffs in a row name."""


def in_parts(path: str) -> Any:
    """Give a result in parts."""
    return [ToolOutputText(text=path)]


@function_tool(output_type=City)
def declared(path: str) -> City:
    """Give a result of a declared type."""
    return City(name=path)


def with_default(path: str, mode: str = "all") -> str:
    """Have a parameter that a policy may not see."""
    return f"{path} {mode}"


async def _invoke(_ctx: Any, arguments: str) -> str:
    raise ValueError(f"not {json.loads(arguments)['path']}")


by_hand = FunctionTool("by_hand", "By hand.", {}, _invoke, strict_json_schema=False)
TOOLS: dict[str, Any] = {
    "in_parts": in_parts,
    "declared": declared,
    "with_default": with_default,
    "by_hand": by_hand,
}
"""Tools that only this SDK has."""


class OpenAIAgentsDriver(ScenarioDriver):
    """Runs a hooked agent by each method of ``HooklineRunner``."""

    entries: Sequence[str] = ("async", "sync", "stream")
    cannot: Mapping[str, str] = {
        "tool-ask-nobody": "the run waits: the call is in ``result.interruptions``",
    }
    looks = True
    """Whether what a run did is looked at; a benchmark does not."""

    async def play(
        self, session: Session | None, scenario: Scenario, entry: str
    ) -> None:
        model = _model(scenario.replies, scenario.reply)
        helper_model = _model(scenario.helper, scenario.helper_reply, "helper")
        subject = session
        if session is not None and not scenario.is_pinned:
            subject = session.view("other")  # the id comes from the SDK's own session
        agent: Any = _agent(scenario, subject, model, helper_model)
        runner: Any = Runner
        if subject is not None:
            agent = hooked_agent(agent, subject)
            runner = Runner if scenario.options.get("plain") else HooklineRunner
        memory = SQLiteSession(scenario.conversation or "none")
        options: dict[str, Any] = {"run_config": QUIET}
        options |= scenario.options.get("run", {})
        if scenario.conversation is not None:
            options["session"] = memory
        try:
            for turn in scenario.turns:
                await _turn(runner, entry, agent, turn, scenario, options)
        finally:
            if self.looks:
                scenario.requests += map(request_of, model.calls)
                scenario.helper_requests += map(request_of, helper_model.calls)
                if scenario.options.get("shows_settings"):
                    scenario.notes["settings"] = [*map(_settings, model.calls)]
                scenario.recorded += repr(await memory.get_items())


class MeasuredDriver(OpenAIAgentsDriver):
    """Runs an agent without a look at what it did."""

    looks = False


async def _turn(
    runner: Any,
    entry: str,
    agent: Any,
    turn: Any,
    scenario: Scenario,
    options: dict[str, Any],
) -> None:
    given = turn
    while True:
        result = await _ran(
            runner, entry, agent, given, options=options, shown=scenario.shown
        )
        scenario.questions += [
            [call.tool_name, call.arguments] for call in result.interruptions
        ]
        answer = scenario.take_answer() if result.interruptions else None
        if answer is None:
            break
        given = result.to_state()
        if scenario.elsewhere:
            given = await RunState.from_json(agent, given.to_json())
        for item in given.get_interruptions():
            path = json.loads(item.arguments or "{}").get("path")
            decide = given.approve if answer_for(answer, path) else given.reject
            decide(item)
    waits = bool(result.interruptions)
    scenario.results.append("waiting" if waits else str(result.final_output))
    items = result.to_input_list()
    if "handoff" in scenario.options:
        scenario.notes["last agent"] = result.last_agent.name
    if scenario.options.get("shows_history"):
        scenario.notes["history"] = items
    scenario.recorded = repr((items, result.new_items, result.raw_responses))
    scenario.recorded_inputs = [
        _input(item["arguments"])
        for item in items
        if item.get("type") == "function_call"
    ]


def _input(arguments: str) -> Any:
    """The input of a call; the text of the model where it is no JSON."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _agent(
    scenario: Scenario, subject: Any, model: Any, helper_model: Any
) -> Agent[Any]:
    options = scenario.options
    functions: list[Any] = list(scenario.functions())
    functions += [TOOLS[name] for name in options.get("peculiar_tools", ())]
    tools: list[Any] = [
        function
        if isinstance(function, FunctionTool)
        else function_tool(
            function, **_named(options.get("tools", {}).get(function.__name__, {}))
        )
        for function in functions
    ]
    agent: Agent[Any] = Agent(
        name="Worker",
        model=model,
        tools=tools,
        output_type=City if scenario.structured else None,
        instructions=options.get("system_prompt"),
        model_settings=ModelSettings(**options.get("settings", {})),
    )
    if scenario.helper:
        helper: Agent[Any] = Agent(
            name="assistant",
            model=helper_model,
            tools=tools,
            output_type=City if options.get("structured_helper") else None,
        )
        if "handoff" in options:
            agent.handoffs = [_handoff(helper, agent, scenario)]
        else:
            if subject is not None:
                helper = hooked_agent(helper, subject)
            agent.tools = [*tools, helper.as_tool("helper", "Help.")]
    return agent


def _named(options: dict[str, Any]) -> dict[str, Any]:
    return {
        name: FUNCTIONS.get(value, value) if isinstance(value, str) else value
        for name, value in options.items()
    }


def _handoff(helper: Agent[Any], agent: Agent[Any], scenario: Scenario) -> Any:
    """How the helper takes over: with options of the SDK, or in circles."""
    kind = scenario.options["handoff"]
    if kind == "in circles":
        helper.handoffs = [agent]
        return helper
    if kind == "with input":

        async def take(_: Any, city: City) -> None:
            scenario.tools.ran.append(("taken over", {"name": city.name}))

        return handoff(helper, input_type=City, on_handoff=take)
    return handoff(helper, **_named(kind)) if kind else helper


def _model(
    replies: Sequence[Any], reply: Callable[[int], ScriptedReply], ids: str = "call"
) -> Any:
    errors = {
        at: ModelStep(error=answer)
        for at, answer in enumerate(replies)
        if isinstance(answer, Exception)
    }
    return ScriptedModel(
        errors.get(at) or output_of(reply(at), at, ids)
        for at in range(len(replies) + 10)
    )


async def _ran(
    runner: Any, entry: str, *arguments: Any, options: dict[str, Any], shown: list[str]
) -> Any:
    if entry == "async":
        return await runner.run(*arguments, **options)
    if entry == "sync":
        return await asyncio.to_thread(_run_sync, runner, arguments, options)
    result = runner.run_streamed(*arguments, **options)
    shown.extend([repr(event) async for event in result.stream_events()])
    return result


def _run_sync(runner: Any, arguments: Any, options: dict[str, Any]) -> Any:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return runner.run_sync(*arguments, **options)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def output_of(reply: ScriptedReply, at: int, ids: str = "call") -> list[Any]:
    text = [assistant_message(reply.text)] if reply.text else []
    return text + [
        function_call(name, arguments, call_id=f"{ids}-{at}-{index}")
        for index, (name, arguments) in enumerate(reply.calls)
    ]


def request_of(call: ModelCall) -> ModelRequest:
    """What the model was sent, as text."""
    names = [tool.name for tool in call.tools]
    names += [handoff.tool_name for handoff in call.handoffs]
    items: Any = call.input
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    instructions = [call.system_instructions] if call.system_instructions else []
    return ModelRequest("\n".join([*instructions, *map(_line, items)]), names)


def _settings(call: ModelCall) -> dict[str, Any]:
    settings = call.model_settings.to_json_dict()
    return {name: value for name, value in settings.items() if value is not None}


def _line(item: Any) -> str:
    kind = item.get("type", "message")
    if kind == "function_call":
        return f"call: {item['name']} {item['arguments']}"
    if kind == "function_call_output":
        return f"result: {item['output']}"
    content = item["content"]
    if not isinstance(content, str):
        content = " ".join(part.get("text", part["type"]) for part in content)
    return f"{item['role']}: {content}"
