"""Several agents in the OpenAI Agents SDK: handoffs, subagents, MCP servers.

Issue 14 adapters.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    CustomTool,
    HandoffInputData,
    LocalShellTool,
    RunConfig,
    Runner,
    ShellTool,
    UserError,
    WebSearchTool,
    function_tool,
    handoff,
)
from agents.mcp import MCPServerStdio
from agents.testing import ScriptedModel
from pydantic import BaseModel

from hookline import Config
from hookline.adapters.openai_agents import HooklineRunner, hooked_agent

from .openai_agents_lab import QUIET, Lab, call, outputs, run, say, sent, specific

BLOCK = {"decision": "deny", "reason": "not now"}
STOP = {"continue": False, "stopReason": "enough"}


@pytest.fixture
def lab() -> Lab:
    return Lab()


def triage(lab: Lab, **options: Any) -> tuple[Agent[Any], Any, Any]:
    """An agent that hands off to another, which uses a tool."""
    billing, its_model = lab.agent(
        [[call("note", "call-2", text="bill")], [say("paid")]],
        name="Billing",
        tools=[lab.tool()],
    )
    target = handoff(billing, **options) if options else billing
    agent, model = lab.agent(
        [[call("transfer_to_billing")], [say("I do it myself")]], handoffs=[target]
    )
    return agent, model, its_model


def test_the_agent_that_takes_over_is_hooked(lab: Lab) -> None:
    """Handoffs: the target's tools and model obey hooks, in the same session."""
    lab.on("BeforeTool", BLOCK, matcher="note")
    agent, _, its_model = triage(lab)
    result = run(lab, agent)
    assert result.final_output == "paid"
    assert result.last_agent.name == "Billing"
    assert lab.ran == []
    assert "not now" in sent(its_model)
    (start,), (stop,) = lab.of("SubagentStart"), lab.of("SubagentStop")
    assert (start["agent_type"], start["prompt"]) == ("Billing", "go")
    assert (stop["agent_type"], stop["prompt_response"]) == ("Billing", "paid")
    assert lab.names()[-2:] == ["SubagentStop", "AfterAgent"]


@pytest.mark.parametrize(
    ("event", "matcher"),
    [("BeforeTool", "transfer_to_billing"), ("SubagentStart", "Billing")],
)
def test_a_refused_handoff_leaves_the_agent_as_it_is(
    lab: Lab, event: str, matcher: str
) -> None:
    lab.on(event, BLOCK, matcher=matcher)
    agent, model, its_model = triage(lab, input_filter=without_everything)
    result = run(lab, agent)
    assert result.final_output == "I do it myself"
    assert result.last_agent.name == "Worker"
    assert outputs(result) == ["not now"]
    assert "not now" in sent(model)
    assert its_model.calls == ()


class Transfer(BaseModel):
    text: str


@pytest.mark.parametrize("texts", [("bad", "good"), ("good", "bad")], ids=str)
def test_each_of_several_handoffs_has_its_own_verdict(
    lab: Lab, texts: tuple[str, str]
) -> None:
    """The SDK makes the first: the verdict on another must not decide about it."""
    taken: list[str] = []

    async def take(_: Any, given: Transfer) -> None:
        taken.append(given.text)

    def guard(event: dict[str, Any]) -> Any:
        return BLOCK if event["tool_input"].get("text") == "bad" else None

    lab.on("BeforeTool", guard)
    agent, model, _ = triage(lab, on_handoff=take, input_type=Transfer)
    made = [call("transfer_to_billing", text, text=text) for text in texts]
    model = ScriptedModel([made, [say("I do it myself")]])
    run(lab, agent.clone(model=model))
    assert taken == (["good"] if texts[0] == "good" else [])


def without_everything(data: HandoffInputData) -> HandoffInputData:
    return data.clone(input_history=(), pre_handoff_items=(), new_items=())


def test_context_for_a_subagent_reaches_the_agent_that_takes_over(lab: Lab) -> None:
    lab.on("SubagentStart", specific(additionalContext="be exact"))
    agent, _, its_model = triage(lab)
    run(lab, agent)
    assert "be exact" in sent(its_model, 0)


def test_a_rejected_answer_goes_on_with_the_agent_that_took_over(lab: Lab) -> None:
    def once(event: dict[str, Any]) -> Any:
        return None if event["stop_hook_active"] else BLOCK

    lab.on("SubagentStop", once)
    agent, model, its_model = triage(lab)
    its_model.enqueue([say("paid again")])
    assert run(lab, agent).final_output == "paid again"
    assert "not now" in sent(its_model)
    assert len(model.calls) == 1


def test_agents_that_hand_off_in_circles_are_hooked_once(lab: Lab) -> None:
    first, _ = lab.agent([[call("transfer_to_second")], [say("end")]], name="First")
    second, _ = lab.agent(
        [[call("transfer_to_first", "call-2")]], name="Second", handoffs=[first]
    )
    first.handoffs.append(second)
    result = run(lab, first)
    assert result.final_output == "end"
    assert result.last_agent.name == "First"
    started = [one["agent_type"] for one in lab.of("SubagentStart")]
    assert started == ["Second", "First"]


def nesting(lab: Lab, given: Any = None, **options: Any) -> tuple[Agent[Any], Any, Any]:
    """An agent with another one as a tool, which uses a tool itself."""
    inner, its_model = lab.agent(
        [[call("note", text="deep")], [say("found it")]],
        name="Researcher",
        tools=[lab.tool()],
    )
    tool = inner.as_tool("research", "Research.", **options)
    agent, model = lab.agent(
        [[call("research", **given or {"input": "look"})], [say("done")]], tools=[tool]
    )
    return agent, model, its_model


def test_an_agent_that_is_a_tool_is_hooked_too(lab: Lab) -> None:
    """Agents as tools: their tools and models obey hooks, as a subagent."""
    agent, _, its_model = nesting(lab)
    lab.on("BeforeTool", BLOCK, matcher="note")
    lab.on("SubagentStart", specific(additionalContext="be exact"))
    result = run(lab, agent)
    assert lab.ran == []
    assert outputs(result) == ["found it"]
    assert "be exact" in sent(its_model, 0)
    assert "be exact" in sent(its_model, 1)
    (start,), (stop,) = lab.of("SubagentStart"), lab.of("SubagentStop")
    assert (start["agent_type"], start["prompt"]) == ("Researcher", "look")
    assert stop["prompt_response"] == "found it"
    assert start["agent_id"] == stop["agent_id"]
    assert lab.names().count("BeforeAgent") == 1


def test_a_subagent_can_be_refused(lab: Lab) -> None:
    agent, _, its_model = nesting(lab)
    lab.on("SubagentStart", BLOCK, matcher="Researcher")
    assert outputs(run(lab, agent)) == ["not now"]
    assert its_model.calls == ()


def test_a_rejected_answer_of_a_subagent_goes_on_with_the_reason(lab: Lab) -> None:
    agent, _, its_model = nesting(lab)
    its_model.enqueue([say("found more")])

    def once(event: dict[str, Any]) -> Any:
        return None if event["stop_hook_active"] else BLOCK

    lab.on("SubagentStop", once)
    assert outputs(run(lab, agent)) == ["found more"]
    assert "found it" in sent(its_model)
    assert "not now" in sent(its_model)


def test_a_stop_in_a_subagent_stops_the_whole_run(lab: Lab) -> None:
    agent, model, _ = nesting(lab)
    lab.on("BeforeTool", STOP, matcher="note")
    assert run(lab, agent).final_output == "enough"
    assert len(model.calls) == 1
    assert lab.ran == []
    assert lab.of("AfterAgent") == []


class Request(BaseModel):
    """The parameters of an agent that is a tool."""

    topic: str


def test_an_agent_with_parameters_and_options_of_its_own_is_hooked(lab: Lab) -> None:
    seen: list[str] = []

    async def shorter(result: Any) -> str:
        seen.append(result.last_agent.name)
        return "short"

    agent, _, its_model = nesting(
        lab,
        given={"topic": "cats"},
        parameters=Request,
        custom_output_extractor=shorter,
        run_config=RunConfig(tracing_disabled=True, model=ScriptedModel([[say("x")]])),
    )
    lab.on(
        "BeforeModel", lambda e: BLOCK if "cats" in repr(e) and is_inner(e) else None
    )
    lab.on("SubagentStart", specific(additionalContext="inner"))
    assert outputs(run(lab, agent)) == ["short"]
    assert its_model.calls == ()
    assert seen == ["Researcher"]


def is_inner(event: dict[str, Any]) -> bool:
    return any(one["content"] == "inner" for one in event["llm_request"]["messages"])


def test_a_hooked_agent_can_be_made_a_tool(lab: Lab) -> None:
    inner, _ = lab.agent([[say("found it")]], name="Researcher")
    tool = hooked_agent(inner, lab.config).as_tool("research", "Research.")
    agent, _ = lab.agent(
        [[call("research", input="look")], [say("done")]], tools=[tool]
    )
    assert outputs(run(lab, agent)) == ["found it"]
    assert lab.names().count("SubagentStart") == 1


def test_a_question_inside_a_subagent_waits_for_a_person(lab: Lab) -> None:
    agent, _, _ = nesting(lab)
    lab.on("BeforeTool", {"decision": "ask", "reason": "sure?"}, matcher="note")

    async def asked() -> Any:
        async with lab.config:
            hooked = hooked_agent(agent, lab.config)
            paused = await HooklineRunner.run(hooked, "go", run_config=QUIET)
            assert [item.tool_name for item in paused.interruptions] == ["note"]
            assert lab.of("SubagentStop") == []
            state = paused.to_state()
            state.approve(paused.interruptions[0])
            return await HooklineRunner.run(hooked, state, run_config=QUIET)

    result = asyncio.run(asked())
    assert lab.ran == ["deep"]
    assert result.final_output == "done"
    for name in ("SubagentStart", "SubagentStop"):
        assert len(lab.of(name)) == 1
    before = [one["tool_name"] for one in lab.of("BeforeTool")]
    assert before == ["research", "note", "note"]  # again with the person's answer


def test_an_agent_that_took_over_is_known_after_a_question(lab: Lab) -> None:
    agent, _, _ = triage(lab)
    lab.on("BeforeTool", {"decision": "ask", "reason": "sure?"}, matcher="note")

    async def asked() -> Any:
        async with lab.config:
            hooked = hooked_agent(agent, lab.config)
            paused = await HooklineRunner.run(hooked, "go", run_config=QUIET)
            state = paused.to_state()
            state.approve(paused.interruptions[0])
            return await HooklineRunner.run(hooked, state, run_config=QUIET)

    assert asyncio.run(asked()).final_output == "paid"
    assert lab.ran == ["bill"]
    assert [one["agent_type"] for one in lab.of("SubagentStop")] == ["Billing"]


def test_an_agent_that_a_tool_runs_itself_has_the_session_of_the_run(lab: Lab) -> None:
    inner, _ = lab.agent([[call("note", text="deep")], [say("x")]], tools=[lab.tool()])
    hooked = hooked_agent(inner, lab.config)

    @function_tool
    async def ask() -> str:
        """Ask another agent."""
        return str((await Runner.run(hooked, "go", run_config=QUIET)).final_output)

    agent, _ = lab.agent([[call("ask")], [say("ok")]], tools=[ask])
    config = {"tracing_disabled": True, "group_id": "talk"}
    assert outputs(run(lab, agent, run_config=config)) == ["x"]
    assert {one["session_id"] for one in lab.events} == {"talk"}
    assert len(lab.of("BeforeTool")) == 2
    assert len(lab.of("AfterAgent")) == 1


def test_a_copy_of_a_hooked_agent_is_hooked(lab: Lab) -> None:
    lab.on("BeforeTool", BLOCK)
    agent, _ = lab.agent([[say("unused")]])
    hooked = hooked_agent(agent, lab.config)
    model = ScriptedModel([[call("note", text="a")], [say("ok")]])
    other = hooked.clone(model=model, tools=[lab.tool()])
    assert outputs(run(lab, other)) == ["not now"]


def test_tools_that_an_agent_gets_later_are_hooked(lab: Lab) -> None:
    lab.on("BeforeTool", BLOCK)
    agent, _ = lab.agent([[call("note", text="a")], [say("ok")]])
    hooked = hooked_agent(agent, lab.config)
    hooked.tools.append(lab.tool())
    assert outputs(run(lab, hooked)) == ["not now"]


def test_an_agent_is_hooked_with_one_session_only(lab: Lab) -> None:
    agent, _ = lab.agent([[say("x")]])
    hooked = hooked_agent(agent, lab.config)
    assert hooked_agent(hooked, lab.config) is hooked
    for other in (lab.config.session("other"), Config("lab", ".")):
        with pytest.raises(UserError, match="another session"):
            hooked_agent(hooked, other)


def test_a_hooked_model_can_be_copied_and_looks_like_its_own(lab: Lab) -> None:
    agent, model = lab.agent([[say("x")]])
    hooked: Any = hooked_agent(agent, lab.config).model
    assert copy.copy(hooked).inner is model
    assert hooked.remaining_steps == 1


def test_the_runner_wants_a_hooked_agent() -> None:
    with pytest.raises(UserError, match="hooked_agent"):
        asyncio.run(HooklineRunner.run(Agent(name="Worker"), "go"))


def test_hosted_tools_are_not_seen_which_is_said_once(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    """Hosted tools: a warning, and a restriction of tools leaves them out."""
    restricted = {"mode": "AUTO", "allowedFunctionNames": ["note"]}
    lab.on("BeforeToolSelection", specific(toolConfig=restricted))
    agent, model = lab.agent(
        [[call("note", text="a")], [say("ok")]], tools=[WebSearchTool(), lab.tool()]
    )
    with caplog.at_level(logging.WARNING, logger="hookline"):
        run(lab, agent)
    assert [tool.name for tool in model.calls[0].tools] == ["note"]
    warned = [one.message for one in caplog.records if "web_search" in one.message]
    assert sorted(one.split()[0] for one in warned) == ["AfterTool", "BeforeTool"]


async def script(_ctx: Any, _text: str) -> str:
    return "done"


@pytest.mark.parametrize(
    "tool",
    [
        ShellTool(executor=lambda _: "done"),
        LocalShellTool(executor=lambda _: "done"),
        CustomTool("script", "Run it.", script),
    ],
    ids=["shell", "local shell", "custom"],
)
def test_tools_that_would_run_past_their_hooks_are_refused(lab: Lab, tool: Any) -> None:
    """Tools of this process that are no functions: an error, before any request."""
    agent, model = lab.agent([[say("ok")]], tools=[tool])
    with pytest.raises(UserError, match=f"{tool.name!r} would run without its hooks"):
        run(lab, agent)
    assert model.calls == ()
    free = Lab(record=False)
    assert run(free, free.agent([[say("ok")]], tools=[tool])[0]).final_output == "ok"


SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("files")
@server.tool()
def read(path: str) -> str:
    return "content of " + path
server.run()
"""


def test_tools_of_mcp_servers_are_hooked(lab: Lab, tmp_path: Path) -> None:
    """MCP tools: hooks see the server, change the input, and block."""
    (tmp_path / "server.py").write_text(SERVER)
    lab.on(
        "BeforeTool",
        lambda e: (
            BLOCK
            if e["tool_input"]["path"] == ".env"
            else specific(tool_input={"path": "b.md"})
        ),
    )
    steps = [
        [call("read", "one", path="a.md"), call("read", "two", path=".env")],
        [say("ok")],
    ]

    async def with_server() -> Any:
        params = {"command": sys.executable, "args": [str(tmp_path / "server.py")]}
        async with lab.config, MCPServerStdio(params, name="files") as server:  # type: ignore[arg-type]
            agent, _ = lab.agent(steps, mcp_servers=[server])
            hooked = hooked_agent(agent, lab.config)
            return await HooklineRunner.run(hooked, "go", run_config=QUIET)

    first, second = outputs(asyncio.run(with_server()))
    assert "content of b.md" in repr(first)
    assert second == "not now"
    assert lab.of("BeforeTool")[0]["mcp_context"] == {
        "server_name": "files",
        "tool_name": "read",
    }
