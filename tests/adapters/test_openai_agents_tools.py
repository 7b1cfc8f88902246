"""Tools of hooked agents in the OpenAI Agents SDK (issue 14 adapters)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    RunContextWrapper,
    RunState,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrailData,
    ToolOutputText,
    ToolTimeoutError,
    UserError,
    function_tool,
    tool_input_guardrail,
)
from agents.testing import ModelStep, ScriptedModel, function_call
from agents.tool_context import ToolContext
from pydantic import BaseModel

from hookline.adapters.openai_agents import HooklineRunner, hooked_agent

from .openai_agents_lab import QUIET, Lab, call, outputs, run, say, sent, specific

BLOCK = {"decision": "deny", "reason": "not now"}
STOP = {"continue": False, "stopReason": "enough"}


@pytest.fixture
def lab() -> Lab:
    return Lab()


def test_the_agent_that_was_given_stays_as_it_was(lab: Lab) -> None:
    tool = lab.tool()
    agent, model = lab.agent([[say("ok")]], tools=[tool])
    before = dict(vars(agent)), dict(vars(tool))
    run(lab, agent)
    assert (dict(vars(agent)), dict(vars(tool))) == before
    assert agent.model is model
    assert type(agent) is Agent


def test_the_error_of_a_failing_tool_is_seen_and_formatted_as_the_tool_wants(
    lab: Lab,
) -> None:
    """AfterTool: a failing tool is seen with its error."""

    def broken(_: str) -> None:
        raise ValueError("broken pipe")

    def told(_ctx: RunContextWrapper[Any], error: Exception) -> str:
        return f"sorry: {error}"

    tool = lab.tool(broken, failure_error_function=told)
    lab.on("AfterTool", specific(additionalContext="call the plumber"))
    agent, _ = lab.agent([[call("note", text="a")], [say("ok")]], tools=[tool])
    result = run(lab, agent)
    (event,) = lab.of("AfterTool")
    assert "broken pipe" in event["tool_response"]["error"]["message"]
    assert outputs(result) == ["sorry: broken pipe\n\ncall the plumber"]


def test_the_error_of_a_failing_tool_can_be_withheld(lab: Lab) -> None:
    def broken(_: str) -> None:
        raise ValueError("password hunter2")

    tool = lab.tool(broken, failure_error_function=lambda _ctx, error: str(error))
    lab.on("AfterTool", {"reason": "secret", **specific(withholdResult=True)})
    agent, model = lab.agent([[call("note", text="a")], [say("ok")]], tools=[tool])
    assert outputs(run(lab, agent)) == ["secret"]
    assert "hunter2" not in sent(model)


def test_a_tool_that_lets_its_errors_through_ends_the_run_after_its_hooks(
    lab: Lab,
) -> None:
    def broken(_: str) -> None:
        raise ValueError("broken pipe")

    tool = lab.tool(broken, failure_error_function=None)
    agent, _ = lab.agent([[call("note", text="a")], [say("ok")]], tools=[tool])
    with pytest.raises(UserError, match="broken pipe"):
        run(lab, agent)
    assert lab.of("AfterTool")[0]["tool_response"]["error"] is not None
    assert lab.of("AfterAgent") == []


def test_a_tool_made_by_hand_is_hooked_and_raises_as_before(lab: Lab) -> None:
    async def invoke(_ctx: ToolContext[Any], arguments: str) -> str:
        if json.loads(arguments)["text"] == "bad":
            raise ValueError("bad text")
        return "fine"

    tool = FunctionTool("by_hand", "By hand.", {}, invoke, strict_json_schema=False)
    lab.on("BeforeTool", specific(tool_input={"text": "bad"}), matcher="by_hand")
    agent, _ = lab.agent([[call("by_hand", text="good")], [say("ok")]], tools=[tool])
    with pytest.raises(UserError, match="bad text"):
        run(lab, agent)


def slow_tool(lab: Lab, **options: Any) -> Any:
    decorate: Any = function_tool(name_override="note", timeout=0.01, **options)

    @decorate  # type: ignore[untyped-decorator]  # the options are of any kind
    async def note(text: str) -> str:
        """Never ends."""
        lab.ran.append(text)
        await asyncio.Event().wait()
        return "never"

    return note


def test_a_timeout_is_seen_as_an_error(lab: Lab) -> None:
    """A tool that times out: seen by AfterTool, and told to the model."""
    lab.on("AfterTool", specific(additionalContext="too slow"))
    agent, _ = lab.agent(
        [[call("note", text="a")], [say("ok")]], tools=[slow_tool(lab)]
    )
    (output,) = outputs(run(lab, agent))
    assert "timed out" in output
    assert output.endswith("too slow")
    (event,) = lab.of("AfterTool")
    assert "timed out" in event["tool_response"]["error"]["message"]


def test_a_timeout_that_the_tool_raises_ends_the_run(lab: Lab) -> None:
    tool = slow_tool(lab, timeout_behavior="raise_exception")
    agent, _ = lab.agent([[call("note", text="a")], [say("ok")]], tools=[tool])
    with pytest.raises(ToolTimeoutError):
        run(lab, agent)
    assert len(lab.of("AfterTool")) == 1


def test_a_cancelled_run_shows_hooks_no_result(lab: Lab) -> None:
    started = asyncio.Event()

    @function_tool
    async def wait() -> str:
        """Wait for ever."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    agent, _ = lab.agent([[call("wait")], [say("ok")]], tools=[wait])

    async def cancelled() -> None:
        async with lab.config:
            hooked = hooked_agent(agent, lab.config)
            task = asyncio.ensure_future(
                HooklineRunner.run(hooked, "go", run_config=QUIET)
            )
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancelled())
    assert len(lab.of("BeforeTool")) == 1
    assert lab.of("AfterTool") == []
    assert lab.of("AfterAgent") == []


def test_a_changed_input_is_what_guardrails_and_tools_get(lab: Lab) -> None:
    """BeforeTool: a changed input is what runs, and what the SDK records."""
    seen: list[str] = []

    @tool_input_guardrail
    def watch(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        seen.append(data.context.tool_arguments)
        return ToolGuardrailFunctionOutput.allow()

    tool = lab.tool(tool_input_guardrails=[watch])
    lab.on("BeforeTool", specific(tool_input={"text": "clean"}))
    agent, _ = lab.agent([[call("note", text="dirty")], [say("ok")]], tools=[tool])
    result = run(lab, agent)
    assert lab.ran == ["clean"]
    assert seen == ['{"text": "clean"}']
    assert "dirty" not in repr((result.new_items, result.raw_responses))


def test_arguments_that_are_no_json_are_an_error_of_the_call_as_before(
    lab: Lab,
) -> None:
    """Hooks see them as they are; the SDK does not ask a person about them."""
    broken = function_call("note", "{not json", call_id="call-1")
    agent, _ = lab.agent([[broken], [say("ok")]], tools=[lab.tool()])
    result = run(lab, agent)
    assert result.final_output == "ok"
    assert lab.of("BeforeTool")[0]["tool_input"] == {"arguments": "{not json"}
    assert lab.ran == []


def test_structured_results_keep_their_parts_and_get_the_additions(lab: Lab) -> None:
    tool = lab.tool(lambda text: [ToolOutputText(text=text)])
    lab.on("AfterTool", specific(additionalContext="and mind this"))
    agent, _ = lab.agent([[call("note", text="a")], [say("ok")]], tools=[tool])
    (output,) = outputs(run(lab, agent))
    assert [part["text"] for part in output] == ["a", "and mind this"]


def test_a_result_that_is_no_text_stays_and_the_model_is_told_apart(lab: Lab) -> None:
    """protocol.md#callers: notices never go into a result that is not text."""
    tool = lab.tool(lambda text: {"rows": [text]})
    lab.on("AfterTool", specific(additionalContext="and mind this"))
    agent, model = lab.agent([[call("note", text="a")], [say("ok")]], tools=[tool])
    result = run(lab, agent)
    assert outputs(result) == ["{'rows': ['a']}"]
    assert "and mind this" in sent(model)


class Note(BaseModel):
    """The declared result of a tool."""

    text: str


@pytest.mark.parametrize("event", ["BeforeTool", "AfterTool"])
def test_a_tool_with_a_declared_result_can_be_refused(lab: Lab, event: str) -> None:
    @function_tool(output_type=Note)
    def note(text: str) -> Note:
        """Note."""
        return Note(text=text)

    withhold = {"reason": "not now", **specific(withholdResult=True)}
    lab.on(event, BLOCK if event == "BeforeTool" else withhold)
    agent, _ = lab.agent([[call("note", text="a")], [say("ok")]], tools=[note])
    assert outputs(run(lab, agent)) == ["not now"]


def test_a_stop_before_one_of_several_calls_lets_no_later_one_run(lab: Lab) -> None:
    steps = [[call("note", f"call-{at}", text=str(at)) for at in range(3)], [say("ok")]]
    lab.on("BeforeTool", lambda e: STOP if e["tool_input"]["text"] == "1" else None)
    agent, model = lab.agent(steps, tools=[lab.tool()])
    result = run(lab, agent)
    assert result.final_output == "enough"
    assert lab.ran == []
    assert len(model.calls) == 1


def test_a_stop_holds_where_no_turn_is_left_to_say_so(lab: Lab) -> None:
    """``max_turns``: a stop ends the run cleanly also in its last turn."""
    lab.on("AfterTool", STOP)
    agent, _ = lab.agent([[call("note", text="a")]], tools=[lab.tool()])
    result = run(lab, agent, max_turns=1)
    assert result.final_output == "enough"
    assert [item["type"] for item in result.to_input_list()[1:]] == [
        "function_call",
        "function_call_output",
    ]


def test_a_person_decides_about_the_changed_input(lab: Lab) -> None:
    """``ask`` uses the SDK's own approval: an interruption, approve or reject."""
    ask = {"decision": "ask", "reason": "sure?", **specific(tool_input={"text": "b"})}
    lab.on("BeforeTool", ask)
    agent, model = lab.agent(
        [[call("note", text="a")], [say("ok")]], tools=[lab.tool()]
    )

    async def asked() -> Any:
        async with lab.config:
            hooked = hooked_agent(agent, lab.config)
            paused = await HooklineRunner.run(hooked, "go", run_config=QUIET)
            (item,) = paused.interruptions
            assert item.arguments == '{"text": "b"}'
            assert lab.ran == []
            # As from another process.
            state = await RunState.from_json(hooked, paused.to_state().to_json())
            state.approve(state.get_interruptions()[0])
            return await HooklineRunner.run(hooked, state, run_config=QUIET)

    result = asyncio.run(asked())
    assert result.final_output == "ok"
    assert lab.ran == ["b"]
    assert lab.names().count("BeforeAgent") == 1
    assert lab.of("AfterAgent")[0]["prompt_response"] == "ok"
    assert lab.of("AfterAgent")[0]["prompt"] == "go"
    assert [one["message"] for one in lab.of("Notification")]
    assert len(model.calls) == 2


def test_a_call_that_nobody_approved_does_not_run(lab: Lab) -> None:
    def ask(event: dict[str, Any]) -> Any:
        return {"decision": "ask", "reason": "sure?"}

    lab.on("BeforeTool", ask)
    steps = [
        [call("note", "one", text="1"), call("note", "two", text="2")],
        [say("ok")],
    ]
    agent, _ = lab.agent(steps, tools=[lab.tool()])

    async def asked() -> Any:
        async with lab.config:
            hooked = hooked_agent(agent, lab.config)
            paused = await HooklineRunner.run(hooked, "go", run_config=QUIET)
            state = paused.to_state()
            state.approve(paused.interruptions[0])
            again = await HooklineRunner.run(hooked, state, run_config=QUIET)
            assert lab.ran == ["1"]
            state = again.to_state()
            state.reject(again.interruptions[0])
            return await HooklineRunner.run(hooked, state, run_config=QUIET)

    assert asyncio.run(asked()).final_output == "ok"
    assert lab.ran == ["1"]


def test_a_policy_of_the_tool_still_asks(lab: Lab) -> None:
    async def policy(_ctx: Any, params: dict[str, Any], _id: str) -> bool:
        return bool(params["text"] == "a")

    steps = [
        [call("note", "one", text="a"), call("note", "two", text="b")],
        [say("ok")],
    ]
    agent, _ = lab.agent(steps, tools=[lab.tool(needs_approval=policy)])
    paused = run(lab, agent)
    assert [item.call_id for item in paused.interruptions] == ["one"]
    assert lab.ran == ["b"]


@pytest.mark.parametrize("policy", [True, lambda *_: True], ids=["always", "policy"])
def test_nobody_is_asked_about_a_call_that_a_hook_blocks(lab: Lab, policy: Any) -> None:
    lab.on("BeforeTool", lambda e: BLOCK if e["tool_input"]["text"] == "a" else None)
    steps = [[call("note", "one", text="a")], [call("note", "two", text="b")]]
    agent, _ = lab.agent(steps, tools=[lab.tool(needs_approval=policy)])
    paused = run(lab, agent)
    assert outputs(paused) == ["not now"]
    assert [item.call_id for item in paused.interruptions] == ["two"]
    assert lab.ran == []


def test_a_policy_does_not_decide_about_arguments_that_it_has_not_seen(
    lab: Lab,
) -> None:
    """As the SDK does: defaults that the policy cannot see need a person."""

    async def never(_ctx: Any, _params: dict[str, Any], _id: str) -> bool:
        return False

    @function_tool(needs_approval=never)
    def note(text: str, mode: str = "all") -> str:
        """Note."""
        lab.ran.append(mode)
        return "done"

    agent, _ = lab.agent([[call("note", text="a")], [say("ok")]], tools=[note])
    assert len(run(lab, agent).interruptions) == 1
    assert lab.ran == []


def test_two_runs_of_one_agent_at_once_stay_apart(lab: Lab) -> None:
    """Two conversations at once: state is per run."""
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

    lab.on("BeforeTool", lambda e: specific(tool_input={"text": f"{e['session_id']}!"}))
    steps = [ModelStep(responder=answer) for _ in range(4)]
    agent = Agent(name="Worker", model=ScriptedModel(steps), tools=[meet])

    async def both() -> Any:
        async with lab.config:
            hooked = hooked_agent(agent, lab.config)
            return await asyncio.gather(
                *(
                    HooklineRunner.run(
                        hooked,
                        f"I am {name}",
                        run_config={"tracing_disabled": True, "group_id": name},
                    )
                    for name in ("one", "two")
                )
            )

    results = asyncio.run(both())
    assert [one.final_output for one in results] == ["bye one", "bye two"]
    said = "\n\n[System] A hook changed the tool's input: text"
    assert [outputs(one) for one in results] == [[f"one!{said}"], [f"two!{said}"]]
    assert {one["session_id"] for one in lab.events} == {"one", "two"}
