"""Google ADK: what a run shows and gives as its answer (issue 14 adapters)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="google-adk has an environment of its own")

from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.tools.agent_tool import AgentTool
from pydantic import BaseModel

from .adk_support import Hooks, Kit, Output, deny, function_responses, stop
from .drivers.google_adk import SSE, answer_of, call, scripted, text_of

pytestmark = [
    # ADK prefers graphs to its workflow agents, which are what people have.
    pytest.mark.filterwarnings(
        "ignore:.*Agent is deprecated in favor of Workflow:DeprecationWarning"
    ),
    pytest.mark.filterwarnings("ignore:.EXPERIMENTAL. ResumabilityConfig:UserWarning"),
    # This is how AgentTool hands on the plugins of its caller.
    pytest.mark.filterwarnings(
        "ignore:The `plugins` argument is deprecated:DeprecationWarning"
    ),
]


class City(BaseModel):
    """What a structured agent answers with."""

    city: str


def city_agent(name: str = "root", **options: Any) -> LlmAgent:
    model = scripted('{"city": "Rome"}')
    return LlmAgent(
        name=name, model=model, output_schema=City, output_key="place", **options
    )


def first(output: Output) -> Any:
    """A hook that says this once, and nothing after it."""
    said = [output]
    return lambda _: said.pop() if said else None


async def test_a_rejected_answer_is_not_shown_before_a_later_event() -> None:
    """A resumable app ends each agent with an event that has no content."""
    hooks = Hooks().on("AfterAgent", first(deny("say more")))
    agent = LlmAgent(name="root", model=scripted("too short", "long enough"))
    events = await Kit(hooks, agent, resumable=True).say("go")
    assert [text for text in map(text_of, events) if text] == ["long enough"]
    assert sum(one.content is None for one in events) == 2


async def test_a_rejected_answer_is_not_shown_before_a_change_of_state() -> None:
    """A callback of the agent's may write state after the answer."""

    def note(callback_context: Any) -> None:
        callback_context.state["done"] = True

    hooks = Hooks().on("AfterAgent", lambda _: stop("enough"))
    agent = LlmAgent(name="root", model=scripted("bad"), after_agent_callback=note)
    kit = Kit(hooks, agent)
    events = await kit.say("go")
    assert [text for text in map(text_of, events) if text] == ["enough"]
    assert (await kit.kept()).state["done"] is True


async def test_an_aborted_run_has_no_answer() -> None:
    """ADK ends it itself: AfterAgent does not fire, and nothing goes on."""
    signal = asyncio.Event()

    async def wait() -> None:
        """Wait."""
        signal.set()
        await asyncio.Event().wait()

    for plain in (False, True):
        signal.clear()
        hooks = Hooks().on("BeforeAgent").on("AfterAgent", lambda _: deny("go on"))
        agent = LlmAgent(name="root", model=scripted(call("wait")), tools=[wait])
        kit = Kit(hooks, agent, plain=plain)
        events = await kit.say("go", abort_signal=signal)
        assert hooks.names == ["BeforeAgent"]
        assert events[-1].error_message == "Invocation was aborted by client."


@pytest.mark.parametrize(
    ("event", "output"),
    [
        ("BeforeAgent", deny("no")),
        ("BeforeModel", deny("no")),
        ("BeforeModel", stop("no")),
        ("AfterModel", stop("no")),
        ("AfterAgent", stop("no")),
    ],
)
@pytest.mark.parametrize("config", [None, SSE], ids=["plain", "stream"])
async def test_a_refusal_fits_no_output_schema(
    event: str, output: Output, config: Any
) -> None:
    """The run ends cleanly with the reason: ADK does not check it by the schema."""
    kit = Kit(Hooks().on(event, lambda _: output), city_agent())
    events = await kit.say("go", run_config=config)
    assert answer_of(events) == "no"
    state = (await kit.kept()).state
    assert state == ({"place": {"city": "Rome"}} if event == "AfterAgent" else {})


@pytest.mark.parametrize(
    ("event", "output", "answer"),
    [
        ("SubagentStart", deny("no"), "done"),
        ("SubagentStart", stop("no"), "no"),
        ("SubagentStop", deny("no"), "done"),
        ("SubagentStop", stop("no"), "no"),
    ],
)
async def test_a_caller_gets_the_reason_in_the_place_of_a_structured_answer(
    event: str, output: Output, answer: str
) -> None:
    """An AgentTool would check the answer by the schema of its agent."""
    model = scripted(call("city", request="go"), "done")
    root = LlmAgent(name="root", model=model, tools=[AgentTool(city_agent("city"))])
    events = await Kit(Hooks().on(event, lambda _: output), root).say("go")
    assert function_responses(events) == [{"result": "no"}]
    assert answer_of(events) == answer


async def test_a_refused_model_call_of_a_structured_agent_as_tool() -> None:
    """Its caller goes on with the reason."""
    hooks = Hooks().on("BeforeModel", lambda _: deny("no") if len(model.seen) else None)
    model = scripted(call("city", request="go"), "done")
    root = LlmAgent(name="root", model=model, tools=[AgentTool(city_agent("city"))])
    events = await Kit(hooks, root).say("go")
    assert function_responses(events) == [{"result": "no"}]


@pytest.mark.parametrize("event", ["SubagentStart", "BeforeModel", "AfterModel"])
async def test_a_structured_step_of_a_sequence_is_stopped_cleanly(event: str) -> None:
    """The same where an agent runs in the session of its parent."""
    root = SequentialAgent(name="root", sub_agents=[city_agent("city")])
    kit = Kit(Hooks().on(event, lambda _: stop("halt")), root)
    assert await kit.ask("go") == "halt"


async def test_a_stop_after_the_last_step_is_the_answer() -> None:
    """A stop by SubagentStop: the run ends with the reason."""
    last = LlmAgent(name="last", model=scripted("finished"))
    root = SequentialAgent(name="root", sub_agents=[last])
    kit = Kit(Hooks().on("SubagentStop", lambda _: stop("halt")), root)
    assert await kit.ask("go") == "halt"
