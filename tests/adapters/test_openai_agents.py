"""The OpenAI Agents SDK with hooks: the shared suite, and what rows cannot say.

Agents made of hooked ones, models by name, tools and models that would run past their
hooks, MCP servers, services, broken streams, guardrails and event loops. All else is in
``tests/pins/adapters/openai_agents.json``.
"""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import agents as sdk
import pytest
from agents import Agent, RunConfig, Runner, function_tool
from agents.mcp import MCPServerStdio
from agents.testing import ModelStep, ScriptedModel, function_call
from agents.testing import assistant_message as say
from openai import AsyncOpenAI
from openai.types.responses import ResponseIncompleteEvent
from pydantic import BaseModel

from hookline import Config
from hookline.adapters.openai_agents import HooklineRunner, hooked_agent
from hookline.testing.adapters import AdapterSuite
from hookline.testing.modelapi import Answer, ModelServer

from .drivers.openai_agents import OpenAIAgentsDriver
from .recorded_hooks import RecordedHooks, changes, specific

QUIET = RunConfig(tracing_disabled=True)


class TestOpenAIAgents(AdapterSuite):
    driver = OpenAIAgentsDriver()


def call(name: str = "note", call_id: str = "call-1", **arguments: Any) -> Any:
    return function_call(name, arguments or {"text": "a"}, call_id=call_id)


class HookedAgents(RecordedHooks):
    """Hooks, and a tool for agents that writes down its argument in ``ran``."""

    def __init__(self, answers: dict[str, Any] | None = None, **options: Any) -> None:
        super().__init__(answers, **options)
        self.ran: list[str] = []

    def tool(self, work: Callable[[str], Any] | None = None, **options: Any) -> Any:
        decorate: Any = function_tool(name_override="note", **options)

        @decorate  # type: ignore[untyped-decorator]  # the options are of any kind
        def note(text: str) -> Any:
            """Note a text."""
            self.ran.append(text)
            return f"noted {text}" if work is None else work(text)

        return note

    def agent(self, *steps: Any, **options: Any) -> tuple[Agent[Any], Any]:
        """An agent with the tool, unless it has others, and its model."""
        model = ScriptedModel(
            [step if isinstance(step, list) else [step] for step in steps]
        )
        fields = {"name": "Worker", "tools": [self.tool()], **options}
        return Agent(model=model, **fields), model

    async def run(self, agent: Agent[Any], prompt: Any = "go", **options: Any) -> Any:
        """Run an agent to its end, with hooks."""
        runner = options.pop("runner", HooklineRunner)
        hooked = hooked_agent(agent, self.config)
        return await runner.run(hooked, prompt, **{"run_config": QUIET, **options})

    async def stream(self, agent: Agent[Any], **options: Any) -> tuple[Any, list[Any]]:
        """The result of a run, and the events that it showed."""
        hooked, prompt = hooked_agent(agent, self.config), options.pop("prompt", "go")
        options = {"run_config": QUIET, **options}
        result = HooklineRunner.run_streamed(hooked, prompt, **options)
        return result, [event async for event in result.stream_events()]


def outputs(result: Any) -> list[Any]:
    items = result.to_input_list()
    results = [item for item in items if item.get("type") == "function_call_output"]
    return [result["output"] for result in results]


def deltas(events: list[Any]) -> str:
    """What a person sees of the text."""
    raw = [event.data for event in events if event.type == "raw_response_event"]
    return "".join(e.delta for e in raw if e.type == "response.output_text.delta")


class Transfer(BaseModel):
    text: str


async def test_agent_as_a_tool_keeps_its_own_options() -> None:
    """Parameters and output; one without hooks is refused, and so is a model."""
    seen: list[str] = []

    async def shorter(result: Any) -> str:
        seen.append(result.last_agent.name)
        return "short"

    hooks = HookedAgents()
    inner, _ = hooks.agent(say("found it"), name="Researcher")
    agent, model = hooks.agent(call("research", text="cats"), say("done"))
    agent.tools = [inner.as_tool("research", "Research.")]
    with pytest.raises(sdk.UserError, match=r"use hooked_agent\(.*as_tool"):
        await hooks.run(agent)
    assert model.calls == ()
    inner = hooked_agent(inner, hooks.config)
    agent.tools = [
        inner.as_tool(
            "research",
            "Research.",
            parameters=Transfer,
            custom_output_extractor=shorter,
        )
    ]
    assert outputs(await hooks.run(agent)) == ["short"]
    assert seen == ["Researcher"]
    assert len(hooks.of("SubagentStart")) == 1
    config = RunConfig(tracing_disabled=True, model=ScriptedModel([[say("secret")]]))
    tool = inner.as_tool("research", "Research.", run_config=config)
    agent, _ = hooks.agent(call("research", input="look"), say("done"), tools=[tool])
    with pytest.raises(sdk.UserError, match="model is that of the run config"):
        await hooks.run(agent)


async def test_agent_that_a_tool_runs_itself_has_the_session_of_the_run() -> None:
    hooks = HookedAgents()
    hooked = hooked_agent(hooks.agent(call(), say("x"))[0], hooks.config)

    @function_tool
    async def ask() -> str:
        """Ask another agent."""
        return str((await Runner.run(hooked, "go", run_config=QUIET)).final_output)

    agent, _ = hooks.agent(
        function_call("ask", {}, call_id="call-1"), say("ok"), tools=[ask]
    )
    config = {"tracing_disabled": True, "group_id": "talk"}
    assert outputs(await hooks.run(agent, run_config=config)) == ["x"]
    assert hooks.sessions == {"talk"}
    assert (len(hooks.of("BeforeTool")), len(hooks.of("AfterAgent"))) == (2, 1)


async def test_what_is_made_of_a_hooked_agent_is_hooked() -> None:
    """A copy, and tools that it gets later; the agent that was given stays."""
    hooks = HookedAgents({"BeforeTool": "block"})
    tool = hooks.tool()
    agent, model = hooks.agent(call(), say("ok"), tools=[])
    before = dict(vars(agent)), dict(vars(tool))
    hooked = hooked_agent(agent, hooks.config)
    other = hooked.clone(model=ScriptedModel([[call()], [say("ok")]]), tools=[tool])
    assert outputs(await hooks.run(other)) == ["not today"]
    hooked.tools.append(tool)
    assert outputs(await hooks.run(hooked)) == ["not today"]
    agent.tools.clear()
    assert (dict(vars(agent)), dict(vars(tool))) == before
    assert type(agent) is Agent
    assert hooked_agent(hooked, hooks.config) is hooked
    for session in (hooks.config.session("other"), Config("own", ".")):
        with pytest.raises(sdk.UserError, match="another session"):
            hooked_agent(hooked, session)
    its_model: Any = hooked.model
    assert copy.copy(its_model).inner is model
    assert its_model.remaining_steps == 0


async def test_hooks_that_cannot_hold_are_warned_about_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Hosted tools, which a restriction leaves out; those of the turn with Runner."""
    restricted = {"mode": "AUTO", "allowedFunctionNames": ["note"]}
    hooks = HookedAgents({"BeforeToolSelection": specific(toolConfig=restricted)})
    tools = [sdk.WebSearchTool(), hooks.tool()]
    agent, model = hooks.agent(call(), say("ok"), tools=tools)
    with caplog.at_level(logging.WARNING, logger="hookline"):
        await hooks.run(agent)
        await hooks.run(hooks.agent(say("ok"))[0], runner=Runner)
    assert [tool.name for tool in model.calls[0].tools] == ["note"]
    for text, events in (
        ("web_search", ["AfterTool", "BeforeTool"]),
        ("HooklineRunner", ["AfterAgent", "BeforeAgent"]),
    ):
        warned = [record.message for record in caplog.records if text in record.message]
        assert sorted(message.split()[0] for message in warned) == events


async def test_tools_that_would_run_past_their_hooks_are_refused() -> None:
    """Tools of this process that are no functions: an error, before any request."""
    with pytest.raises(sdk.UserError, match="hooked_agent"):
        await HooklineRunner.run(Agent(name="Worker"), "go")

    async def script(_ctx: Any, _text: str) -> str:
        return "done"

    tools: list[Any] = [
        sdk.ShellTool(executor=lambda _: "done"),
        sdk.LocalShellTool(executor=lambda _: "done"),
        sdk.CustomTool("script", "Run it.", script),
    ]
    for tool in tools:
        hooks = HookedAgents()
        agent, model = hooks.agent(say("ok"), tools=[tool])
        expected = f"{tool.name!r} would run without its hooks"
        with pytest.raises(sdk.UserError, match=expected):
            await hooks.run(agent)
        assert model.calls == ()
        free = HookedAgents(unheard=["BeforeTool", "AfterTool"])
        assert (await free.run(agent)).final_output == "ok"


SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("files")
@server.tool()
def read(path: str) -> str:
    return "content of " + path
server.run()
"""


async def test_tools_of_mcp_servers_are_hooked(tmp_path: Path) -> None:
    """MCP tools: hooks see the server, change the input, and block."""
    (tmp_path / "server.py").write_text(SERVER)

    judge = [[".env", "block"], ["", changes(path="b.md")]]
    hooks = HookedAgents({"BeforeTool": judge})
    reads = [call("read", "one", path="a.md"), call("read", "two", path=".env")]
    params: Any = {"command": sys.executable, "args": [str(tmp_path / "server.py")]}
    async with MCPServerStdio(params, name="files") as server:
        agent, _ = hooks.agent(reads, say("ok"), mcp_servers=[server])
        first, second = outputs(await hooks.run(agent))
    assert "content of b.md" in repr(first)
    assert second == "not today"
    context = {"server_name": "files", "tool_name": "read"}
    assert hooks.of("BeforeTool")[0]["mcp_context"] == context


class Shelf(sdk.ModelProvider):
    """Gives one model for every name."""

    def __init__(self) -> None:
        self.model = ScriptedModel([[say("s3cret")]])
        self.names: list[str | None] = []
        self.config = RunConfig(tracing_disabled=True, model_provider=self)

    def get_model(self, model_name: str | None) -> sdk.Model:
        self.names.append(model_name)
        return self.model


@pytest.mark.parametrize("where", ["agent", "config", "default", "subagent"])
async def test_model_given_by_name_is_hooked(where: str) -> None:
    """A model by name, from a provider in the run config; of a subagent as well."""
    hooks, shelf = HookedAgents({"AfterModel": "redact"}), Shelf()
    named = where in ("agent", "subagent")
    agent: Any = Agent(name="Worker", model="small" if named else None)
    if where == "subagent":
        tools = [hooked_agent(agent, hooks.config).as_tool("ask", "Ask.")]
        agent, _ = hooks.agent(call("ask", input="x"), say("ok"), tools=tools)
        result = await hooks.run(agent, run_config=shelf.config, runner=Runner)
        assert outputs(result) == ["***"]
    else:
        shelf.config.model = "small" if where == "config" else None
        result = await hooks.run(agent, run_config=shelf.config)
        assert result.final_output == "***"
    assert shelf.names == [None if where == "default" else "small"]
    assert shelf.config.model_provider is shelf


async def test_hook_names_another_model() -> None:
    hooks = HookedAgents({"BeforeModel": specific(llm_request={"model": "large"})})
    shelf = Shelf()
    await hooks.run(Agent(name="Worker"), run_config=shelf.config)
    assert shelf.names == [None, "large"]


class Counter(sdk.AgentHooks[Any]):
    """Counts answers, as the SDK's own observers may."""

    answers = 0

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        self.answers += 1


async def test_model_that_hooks_have_not_seen_is_refused_in_a_plain_run() -> None:
    """``RunConfig(model=...)`` takes the place of the agent's hooked model."""
    hooks, shelf = HookedAgents(), Shelf()
    agent: Agent[Any] = Agent(name="Worker", model="x")
    with pytest.raises(sdk.UserError, match="use HooklineRunner"):
        await hooks.run(agent, run_config=shelf.config, runner=Runner)
    assert shelf.names == []
    agent, agent_model = hooks.agent(say("x"), hooks=(counter := Counter()))
    config = RunConfig(tracing_disabled=True, model=ScriptedModel([[say("y")]] * 2))
    with pytest.raises(sdk.UserError, match="use HooklineRunner"):
        await hooks.run(agent, run_config=config, runner=Runner)
    assert (await hooks.run(agent, run_config=config)).final_output == "y"
    assert (await hooks.run(agent, runner=Runner)).final_output == "x"
    assert (agent_model.remaining_steps, counter.answers) == (0, 2)
    model = ScriptedModel([[say("found")]])
    config = RunConfig(tracing_disabled=True, model=model)
    blocked = HookedAgents({"BeforeModel": "block"})
    result = await blocked.run(Agent(name="Worker"), run_config=config)
    assert (result.final_output, model.calls) == ("not today", ())


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
async def test_calls_to_a_service_obey_hooks(streams: bool) -> None:
    """A model by name: request, tool call and answer after the hooks, on the wire."""

    def shorten(event: Any) -> Any:
        messages = [
            {**message, "content": message["content"].replace("please ", "")}
            for message in event["llm_request"]["messages"]
        ]
        return specific(llm_request={"messages": messages, "model": "large"})

    hooks = HookedAgents(
        {
            "BeforeModel": shorten,
            "AfterModel": "redact",
            "BeforeTool": changes(text="clean"),
        }
    )
    agent: Agent[Any] = Agent(name="Worker", model="small", tools=[hooks.tool()])
    dirty = Answer(calls=(("note", {"text": "dirty"}),))
    with ModelServer([dirty, "the s3cret plan"]) as server:
        async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
            provider = sdk.OpenAIProvider(openai_client=client, use_responses=False)
            options: Any = {"model_provider": provider, "tracing_disabled": True}
            config, shown = RunConfig(**options), list[Any]()
            if streams:
                result, shown = await hooks.stream(
                    agent, prompt="please go", run_config=config
                )
            else:
                result = await hooks.run(agent, "please go", run_config=config)
    assert (result.final_output, hooks.ran) == ("the *** plan", ["clean"])
    seen = repr((shown, result.to_input_list()))
    assert "s3cret" not in seen
    assert "dirty" not in seen
    bodies = [request.body for request in server.requests]
    assert [body["model"] for body in bodies] == ["large", "large"]
    assert [body["messages"][0]["content"] for body in bodies] == ["go", "go"]
    assert "clean" in repr(bodies[1]["messages"])
    assert hooks.of("BeforeModel")[0]["llm_request"]["model"] == "small"


class EndingModel(ScriptedModel):
    """Ends its stream in a way of its own."""

    end: Callable[[Any], Any]

    async def stream_response(self, *args: Any, **more: Any) -> AsyncIterator[Any]:
        async for event in super().stream_response(*args, **more):
            if event.type == "response.completed":
                event = await self.end(event)  # noqa: PLW2901
            yield event


def ending(text: str, end: Callable[[Any], Any]) -> Agent[Any]:
    model = EndingModel([[say(text)]])
    model.end = end
    return Agent(name="Worker", model=model)


async def test_text_is_shown_at_once_if_no_hook_waits_for_it() -> None:
    hooks, may_end, text = HookedAgents(unheard=["AfterModel"]), asyncio.Event(), ""

    async def waits(event: Any) -> Any:
        await may_end.wait()
        return event

    hooked = hooked_agent(ending("early", waits), hooks.config)
    result = HooklineRunner.run_streamed(hooked, "go", run_config=QUIET)
    async for event in result.stream_events():
        text += deltas([event])
        if text:
            may_end.set()
    assert text == "early"


async def test_answer_that_breaks_off_is_not_shown() -> None:
    """AfterModel has not seen it; one whose last event is empty is seen whole."""

    async def breaks(event: Any) -> Any:
        return ResponseIncompleteEvent(
            type="response.incomplete",
            response=event.response,
            sequence_number=event.sequence_number,
        )

    async def read(result: Any) -> None:
        async for event in result.stream_events():
            shown.append(event)  # up to the error

    async def empties(event: Any) -> Any:
        event.response.output = []  # some services give the items only one by one
        return event

    hooks, shown = HookedAgents({"AfterModel": "redact"}), list[Any]()
    hooked = hooked_agent(ending("the s3cret plan", breaks), hooks.config)
    result = HooklineRunner.run_streamed(hooked, "go", run_config=QUIET)
    with pytest.raises(sdk.ModelBehaviorError):
        await read(result)
    assert "s3cret" not in repr(shown)
    assert "AfterModel" not in hooks.names
    assert "AfterAgent" not in hooks.names
    result, events = await hooks.stream(ending("the s3cret plan", empties))
    assert result.final_output == deltas(events) == "the *** plan"


async def test_run_that_is_cut_off_has_no_answer_for_hooks() -> None:
    """A stream that its caller cancels."""
    hooks = HookedAgents()
    agent, model = hooks.agent(*(call("note", f"call-{at}") for at in range(6)))
    hooked = hooked_agent(agent, hooks.config)
    result = HooklineRunner.run_streamed(hooked, "go", run_config=QUIET)
    async for event in result.stream_events():
        if event.type == "run_item_stream_event":
            result.cancel()
    assert (len(model.calls), hooks.of("AfterAgent")) == (1, [])


async def test_guardrails_of_the_sdk_still_hold() -> None:
    """They see prompt, tool input and answer after the hooks."""
    seen: list[Any] = []

    @sdk.input_guardrail(run_in_parallel=False)
    def entry(_c: Any, _a: Any, prompt: Any) -> Any:
        seen.append(prompt)
        bad = "bad" in repr(prompt)
        return sdk.GuardrailFunctionOutput(output_info=None, tripwire_triggered=bad)

    @sdk.output_guardrail
    def exit_(_c: Any, _a: Any, output: Any) -> Any:
        seen.append(output)
        bad = "***" not in output
        return sdk.GuardrailFunctionOutput(output_info=None, tripwire_triggered=bad)

    @sdk.tool_input_guardrail
    def watch(data: Any) -> sdk.ToolGuardrailFunctionOutput:
        seen.append(data.context.tool_arguments)
        return sdk.ToolGuardrailFunctionOutput.allow()

    hooks = HookedAgents(
        {
            "AfterModel": "redact",
            "BeforeAgent": "add",
            "BeforeTool": changes(text="clean"),
        }
    )
    agent, _ = hooks.agent(
        *(call(text="dirty"), say("s3cret"), say("plain")),
        input_guardrails=[entry],
        output_guardrails=[exit_],
        tools=[hooks.tool(tool_input_guardrails=[watch])],
    )
    assert (await hooks.run(agent, "ok")).final_output == "***"
    assert seen == ["ok\n\nmind it", '{"text": "clean"}', "***"]
    with pytest.raises(sdk.OutputGuardrailTripwireTriggered):
        await hooks.run(agent, "ok")
    with pytest.raises(sdk.InputGuardrailTripwireTriggered):
        await hooks.run(agent, "bad")
    assert len(hooks.of("AfterAgent")) == 1


async def test_plain_code_runs_its_tools_on_its_own_loop() -> None:
    """Sync entry: only hooks run on the background loop; not inside another one."""
    threads: list[str] = []

    @function_tool
    async def where() -> str:
        """Say where it runs."""
        threads.append(threading.current_thread().name)
        return "here"

    hooks = HookedAgents()
    agent, _ = hooks.agent(
        function_call("where", {}, call_id="call-1"), say("ok"), tools=[where]
    )
    hooked = hooked_agent(agent, hooks.config)
    with pytest.raises(RuntimeError, match="running loop"):
        HooklineRunner.run_sync(hooked, "go")
    assert hooks.events == []

    def plain() -> None:
        asyncio.set_event_loop(loop := asyncio.new_event_loop())
        HooklineRunner.run_sync(hooked, "go", run_config=QUIET)
        loop.run_until_complete(hooks.config.dispose())
        loop.close()

    thread = threading.Thread(target=plain, name="caller")
    thread.start()
    await asyncio.to_thread(thread.join)
    assert threads == ["caller"]
    assert [event["prompt_response"] for event in hooks.of("AfterAgent")] == ["ok"]


async def test_two_runs_of_one_agent_with_the_same_call_ids_stay_apart() -> None:
    """State is per run."""
    barrier = asyncio.Barrier(2)

    @function_tool
    async def meet(text: str) -> str:
        """Wait for the other one."""
        await barrier.wait()
        return text

    def answer(made: Any) -> list[Any]:
        history = json.dumps(made.input, default=repr)
        name = "one" if "I am one" in history else "two"
        done = "function_call_output" in history
        return [say(f"bye {name}")] if done else [call("meet", "same-id", text=name)]

    hooks = HookedAgents({"BeforeTool": lambda e: changes(text=f"{e['session_id']}!")})
    steps = [ModelStep(responder=answer) for _ in range(4)]
    agent = hooked_agent(
        Agent(name="Worker", model=ScriptedModel(steps), tools=[meet]), hooks.config
    )
    configs = [{"tracing_disabled": True, "group_id": name} for name in ("one", "two")]
    results = await asyncio.gather(
        *(hooks.run(agent, f"I am {c['group_id']}", run_config=c) for c in configs)
    )
    assert [one.final_output for one in results] == ["bye one", "bye two"]
    notice = "\n\n[System] A hook changed the tool's input: text"
    assert [outputs(one) for one in results] == [[f"one!{notice}"], [f"two!{notice}"]]
    assert hooks.sessions == {"one", "two"}
