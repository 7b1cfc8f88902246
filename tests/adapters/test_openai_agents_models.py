"""Plain runs, output types and models of the OpenAI Agents SDK (issue 14 adapters)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from agents import (
    Agent,
    AgentHooks,
    Model,
    ModelProvider,
    RunConfig,
    Runner,
    UserError,
)
from agents.testing import ScriptedModel
from pydantic import BaseModel

from hookline.adapters.openai_agents import StoppedByHook, hooked_agent

from .openai_agents_lab import QUIET, Lab, call, outputs, run, say, specific

BLOCK = {"decision": "deny", "reason": "not now"}
STOP = {"continue": False, "stopReason": "enough"}


@pytest.fixture
def lab() -> Lab:
    return Lab()


async def plain(lab: Lab, agent: Agent[Any], **options: Any) -> Any:
    async with lab.config:
        return await Runner.run(
            hooked_agent(agent, lab.config), "go", **{"run_config": QUIET, **options}
        )


def test_a_hooked_agent_obeys_hooks_in_a_plain_run(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    """With ``Runner`` only the hooks of the turn are missing, which is said once."""
    lab.on("BeforeTool", BLOCK)
    lab.on("AfterModel", lambda e: changed(e, "found", "hid"))
    agent, _ = lab.agent([[call("note", text="a")], [say("found")]], tools=[lab.tool()])
    with caplog.at_level(logging.WARNING, logger="hookline"):
        result = asyncio.run(plain(lab, agent))
    assert result.final_output == "hid"
    assert lab.ran == []
    warned = [one.message for one in caplog.records if "HooklineRunner" in one.message]
    assert len(warned) == 2
    assert "BeforeAgent" not in lab.names()


def changed(event: dict[str, Any], old: str, new: str) -> Any:
    text = event["llm_response"].get("text") or ""
    return specific(llm_response={"text": text.replace(old, new)}) if text else None


def test_a_stop_ends_a_plain_run_with_the_reason(lab: Lab) -> None:
    lab.on("AfterTool", STOP)
    agent, _ = lab.agent([[call("note", text="a")], [say("ok")]], tools=[lab.tool()])
    assert asyncio.run(plain(lab, agent)).final_output == "enough"


class Answer(BaseModel):
    """A structured output."""

    text: str


def test_a_stop_ends_a_run_whose_output_type_cannot_hold_the_reason(lab: Lab) -> None:
    lab.on("BeforeModel", STOP)
    agent, _ = lab.agent([[say("x")]], output_type=Answer)
    assert run(lab, agent).final_output == "enough"


def test_a_plain_run_whose_output_type_cannot_hold_the_reason_raises(lab: Lab) -> None:
    lab.on("BeforeModel", STOP)
    agent, _ = lab.agent([[say("x")]], output_type=Answer)
    with pytest.raises(StoppedByHook, match="enough"):
        asyncio.run(plain(lab, agent))


def test_a_subagent_that_a_hook_ended_tells_the_reason(lab: Lab) -> None:
    """Also if its output type cannot hold it."""
    lab.on("BeforeModel", lambda e: BLOCK if is_first(e, "look") else None)
    inner, its_model = lab.agent([[say("x")]], name="Inner", output_type=Answer)
    tool = inner.as_tool("ask", "Ask.")
    agent, _ = lab.agent([[call("ask", input="look")], [say("ok")]], tools=[tool])
    assert outputs(run(lab, agent)) == ["not now"]
    assert its_model.calls == ()


def is_first(event: dict[str, Any], text: str) -> bool:
    messages = event["llm_request"]["messages"]
    return len(messages) == 1 and messages[0]["content"] == text


def test_a_structured_answer_is_judged_as_the_model_wrote_it(lab: Lab) -> None:
    agent, _ = lab.agent([[say('{"text": "a"}')]], output_type=Answer)
    lab.on("AfterModel", lambda e: changed(e, '"a"', '"b"'))
    assert run(lab, agent).final_output == Answer(text="b")
    assert lab.of("AfterAgent")[0]["prompt_response"] == '{"text": "b"}'


class Shelf(ModelProvider):
    """Gives one model for every name."""

    def __init__(self, model: Model) -> None:
        self.model, self.names = model, list[str | None]()

    def get_model(self, model_name: str | None) -> Model:
        self.names.append(model_name)
        return self.model


@pytest.mark.parametrize("where", ["agent", "config", "default"])
def test_a_model_given_by_name_is_hooked(lab: Lab, where: str) -> None:
    """A model by name, from a provider in the run config."""
    lab.on("AfterModel", lambda e: changed(e, "found", "hid"))
    shelf = Shelf(ScriptedModel([[say("found")]]))
    agent = Agent(name="Worker", model="small" if where == "agent" else None)
    config = RunConfig(tracing_disabled=True, model_provider=shelf)
    config.model = "small" if where == "config" else None
    assert run(lab, agent, run_config=config).final_output == "hid"
    assert shelf.names == [None if where == "default" else "small"]
    assert config.model_provider is shelf


def test_a_model_in_the_run_config_is_hooked(lab: Lab) -> None:
    lab.on("BeforeModel", BLOCK)
    model = ScriptedModel([[say("found")]])
    config = {"tracing_disabled": True, "model": model}
    result = run(lab, Agent(name="Worker"), run_config=config)
    assert result.final_output == "not now"
    assert model.calls == ()


def test_the_model_of_a_subagent_is_hooked_in_a_plain_run(lab: Lab) -> None:
    """Also if it is given by name."""
    shelf = Shelf(ScriptedModel([[say("found")]]))
    inner = Agent(name="Inner", model="small").as_tool("ask", "Ask.")
    agent, _ = lab.agent([[call("ask", input="x")], [say("ok")]], tools=[inner])
    lab.on("AfterModel", lambda e: changed(e, "found", "hid"))
    config = RunConfig(tracing_disabled=True, model_provider=shelf)
    result = asyncio.run(plain(lab, agent, run_config=config))
    assert outputs(result) == ["hid"]


def test_a_hook_names_another_model(lab: Lab) -> None:
    shelf = Shelf(ScriptedModel([[say("found")]]))
    lab.on("BeforeModel", specific(llm_request={"model": "large"}))
    config = RunConfig(tracing_disabled=True, model_provider=shelf)
    assert run(lab, Agent(name="Worker"), run_config=config).final_output == "found"
    assert shelf.names == [None, "large"]


def test_a_plain_run_does_not_call_a_model_that_hooks_cannot_see(lab: Lab) -> None:
    lab.on("BeforeModel", BLOCK)
    shelf = Shelf(ScriptedModel([[say("found")]]))
    config = RunConfig(tracing_disabled=True, model_provider=shelf)
    with pytest.raises(UserError, match="use HooklineRunner"):
        asyncio.run(plain(lab, Agent(name="Worker", model="x"), run_config=config))
    assert shelf.names == []


class Counter(AgentHooks[Any]):
    """Counts answers, as the SDK's own observers may."""

    answers = 0

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        self.answers += 1


def test_a_plain_run_refuses_the_answer_of_a_model_that_hooks_have_not_seen(
    lab: Lab,
) -> None:
    """``RunConfig(model=...)`` takes the place of the agent's hooked model."""
    agent, own = lab.agent([[say("x")]], hooks=(counter := Counter()))
    config = RunConfig(tracing_disabled=True, model=ScriptedModel([[say("y")]] * 2))
    with pytest.raises(UserError, match="use HooklineRunner"):
        asyncio.run(plain(lab, agent, run_config=config))
    assert run(lab, agent, run_config=config).final_output == "y"
    assert asyncio.run(plain(lab, agent)).final_output == "x"
    assert (own.remaining_steps, counter.answers) == (0, 2)
