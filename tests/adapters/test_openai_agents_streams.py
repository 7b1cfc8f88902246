"""Streams, turns and sessions in the OpenAI Agents SDK (issue 14 adapters)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    ModelBehaviorError,
    ModelSettings,
    OutputGuardrailTripwireTriggered,
    RunContextWrapper,
    SQLiteSession,
    function_tool,
    input_guardrail,
    output_guardrail,
)
from agents.testing import ModelStep, ScriptedModel
from openai.types.responses import ResponseIncompleteEvent

from hookline.adapters.openai_agents import HooklineRunner, hooked_agent

from .openai_agents_lab import (
    QUIET,
    Lab,
    call,
    outputs,
    run,
    say,
    sent,
    specific,
    stream,
)

BLOCK = {"decision": "deny", "reason": "not now"}
STOP = {"continue": False, "stopReason": "enough"}


@pytest.fixture
def lab() -> Lab:
    return Lab()


def redact(event: dict[str, Any]) -> Any:
    text = event["llm_response"].get("text") or ""
    if "s3cret" not in text:
        return None
    return specific(llm_response={"text": text.replace("s3cret", "***")})


def deltas(events: list[Any]) -> str:
    """What a person sees of the text."""
    raw = [one.data for one in events if one.type == "raw_response_event"]
    return "".join(one.delta for one in raw if one.type == "response.output_text.delta")


def test_what_a_hook_removes_is_in_no_event(lab: Lab) -> None:
    """Streams: raw events, items, the result and the session are without it."""
    lab.on("AfterModel", redact)
    memory = SQLiteSession("talk")
    agent, _ = lab.agent([[say("the s3cret plan")]], tools=[lab.tool()])
    result, events = stream(lab, agent, session=memory)
    assert deltas(events) == "the *** plan"
    assert result.final_output == "the *** plan"
    kept = asyncio.run(memory.get_items())
    assert "s3cret" not in repr((events, result, result.to_input_list(), kept))


def test_calls_beside_a_changed_text_are_dropped(lab: Lab) -> None:
    """HOOK-079: a changed answer is made of its text alone."""
    lab.on("AfterModel", redact)
    steps = [[say("s3cret"), call("note", text="s3cret")]]
    agent, _ = lab.agent(steps, tools=[lab.tool()])
    result, events = stream(lab, agent)
    assert (result.final_output, lab.ran) == ("***", [])
    assert "s3cret" not in repr(events)


@pytest.mark.parametrize("record", [True, False], ids=["held", "not held"])
def test_an_input_that_a_hook_changes_is_in_no_event(record: bool) -> None:
    """Whether or not an AfterModel hook holds the stream back."""
    lab = Lab(record=record)
    lab.on("BeforeTool", specific(tool_input={"text": "clean"}))
    steps = [[say("I note it"), call("note", text="dirty")], [say("ok")]]
    agent, _ = lab.agent(steps, tools=[lab.tool()])
    result, events = stream(lab, agent)
    assert lab.ran == ["clean"]
    assert deltas(events) == "I note itok"
    assert "dirty" not in repr((events, result.new_items))
    shown = [one.data.type for one in events if one.type == "raw_response_event"]
    assert shown.count("response.completed") == 2


def test_text_is_shown_at_once_if_no_hook_waits_for_it() -> None:
    """Without AfterModel hooks nothing is held back."""
    lab = Lab(record=False)
    model = Halting([[say("early")]])

    async def first() -> str:
        async with lab.config:
            agent = hooked_agent(Agent(name="Worker", model=model), lab.config)
            result = HooklineRunner.run_streamed(agent, "go", run_config=QUIET)
            text = ""
            async for event in result.stream_events():
                text += deltas([event])
                if text:
                    model.may_end.set()
            return text

    assert asyncio.run(first()) == "early"


class Halting(ScriptedModel):
    """Ends its stream only when it is told to."""

    def __init__(self, steps: list[Any]) -> None:
        super().__init__(steps)
        self.may_end = asyncio.Event()

    async def stream_response(self, *args: Any, **more: Any) -> AsyncIterator[Any]:
        async for event in super().stream_response(*args, **more):
            if event.type == "response.completed":
                await self.may_end.wait()
            yield event


def test_an_answer_that_breaks_off_is_not_shown(lab: Lab) -> None:
    """AfterModel has not seen it, and does not fire for it."""
    lab.on("AfterModel", redact)
    agent = Agent(name="Worker", model=Breaking([[say("the s3cret plan")]]))
    shown: list[Any] = []

    async def read() -> None:
        async with lab.config:
            hooked = hooked_agent(agent, lab.config)
            result = HooklineRunner.run_streamed(hooked, "go", run_config=QUIET)
            async for event in result.stream_events():
                shown.append(event)  # noqa: PERF401  # up to the error

    with pytest.raises(ModelBehaviorError):
        asyncio.run(read())
    assert "s3cret" not in repr(shown)
    assert lab.of("AfterModel") == []
    assert lab.of("AfterAgent") == []


class Breaking(ScriptedModel):
    """Gives an answer that is not complete."""

    async def stream_response(self, *args: Any, **more: Any) -> AsyncIterator[Any]:
        async for event in super().stream_response(*args, **more):
            if event.type != "response.completed":
                yield event
                continue
            yield ResponseIncompleteEvent(
                type="response.incomplete",
                response=event.response,
                sequence_number=event.sequence_number,
            )


def test_an_answer_is_seen_whole_if_the_last_event_is_empty(lab: Lab) -> None:
    """Some services give the items of an answer only one by one."""
    lab.on("AfterModel", redact)
    agent = Agent(name="Worker", model=Emptying([[say("the s3cret plan")]]))
    result, events = stream(lab, agent)
    assert result.final_output == deltas(events) == "the *** plan"


class Emptying(ScriptedModel):
    """Ends its stream with a response without items."""

    async def stream_response(self, *args: Any, **more: Any) -> AsyncIterator[Any]:
        async for event in super().stream_response(*args, **more):
            if event.type == "response.completed":
                event.response.output = []
            yield event


def test_a_refused_turn_shows_the_reason_and_leaves_no_trace(lab: Lab) -> None:
    """BeforeAgent: the prompt reaches neither the model nor the history."""
    lab.on("BeforeAgent", BLOCK)
    memory = SQLiteSession("talk")
    agent, model = lab.agent([[say("x")]])
    before = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
    given = [*before, {"role": "user", "content": "bad"}]
    result, events = stream(lab, agent, given)
    assert deltas(events) == result.final_output == "not now"
    assert result.to_input_list() == before
    assert result.is_complete
    assert run(lab, agent, "bad", session=memory).to_input_list() == []
    assert asyncio.run(memory.get_items()) == []
    assert model.calls == ()


def test_a_rejected_answer_goes_on_in_the_same_stream(lab: Lab) -> None:
    """AfterAgent: a rejected answer continues with the reason."""
    lab.on("AfterAgent", lambda e: None if e["stop_hook_active"] else BLOCK)
    agent, model = lab.agent([[say("one")], [say("two")]])
    result, events = stream(lab, agent)
    assert deltas(events) == "onetwo"
    assert result.final_output == "two"
    assert len(result.to_input_list()) == 4
    assert result.context_wrapper.usage is not None
    assert [part in sent(model) for part in ("go", "one", "not now")] == [True] * 3


def test_a_rejected_answer_goes_on_in_the_memory_of_the_session(lab: Lab) -> None:
    lab.on("AfterAgent", lambda e: None if e["stop_hook_active"] else BLOCK)
    memory = SQLiteSession("talk")
    agent, model = lab.agent([[say("one")], [say("two")]])
    run(lab, agent, session=memory)
    kept = asyncio.run(memory.get_items())
    assert [one["role"] for one in kept] == ["user", "assistant"] * 2  # type: ignore[typeddict-item]
    assert len(model.calls[1].input) == 3


def test_a_rejection_can_clear_the_context(lab: Lab) -> None:
    def again(event: dict[str, Any]) -> Any:
        return None if event["stop_hook_active"] else {**BLOCK, **clear}

    clear = specific(clearContext=True)
    lab.on("AfterAgent", again)
    memory = SQLiteSession("talk")
    agent, model = lab.agent([[say("one")], [say("two")]])
    assert run(lab, agent, session=memory).final_output == "two"
    assert len(model.calls[1].input) == 1
    assert "one" not in repr(asyncio.run(memory.get_items()))


def test_a_stop_at_the_answer_is_the_result(lab: Lab) -> None:
    lab.on("AfterAgent", STOP)
    agent, _ = lab.agent([[say("one")]])
    result, _ = stream(lab, agent)
    assert result.final_output == "enough"


def test_a_run_out_of_turns_raises_as_before(lab: Lab) -> None:
    """``max_turns``, plain and in a stream."""
    steps = [[call("note", f"call-{at}", text="a")] for at in range(6)]
    agent, _ = lab.agent(steps, tools=[lab.tool()])
    with pytest.raises(MaxTurnsExceeded):
        run(lab, agent, max_turns=2)
    with pytest.raises(MaxTurnsExceeded):
        stream(lab, agent, max_turns=2)
    assert lab.of("AfterAgent") == []


def test_a_stream_that_is_cancelled_ends(lab: Lab) -> None:
    agent, model = lab.agent([[call("note", text="a")], [say("x")]], tools=[lab.tool()])

    async def read() -> Any:
        async with lab.config:
            hooked = hooked_agent(agent, lab.config)
            result = HooklineRunner.run_streamed(hooked, "go", run_config=QUIET)
            async for event in result.stream_events():
                if event.type == "run_item_stream_event":
                    result.cancel()
            return result

    asyncio.run(read())
    assert lab.of("AfterAgent") == []
    assert len(model.calls) == 1


def test_a_question_in_a_stream_waits_for_a_person(lab: Lab) -> None:
    lab.on("BeforeTool", {"decision": "ask", "reason": "sure?"})
    agent, _ = lab.agent([[call("note", text="a")], [say("x")]], tools=[lab.tool()])

    async def read() -> Any:
        async with lab.config:
            hooked = hooked_agent(agent, lab.config)
            paused = HooklineRunner.run_streamed(hooked, "go", run_config=QUIET)
            events = [event async for event in paused.stream_events()]
            assert events
            state = paused.to_state()
            state.approve(paused.interruptions[0])
            result = HooklineRunner.run_streamed(hooked, state, run_config=QUIET)
            events = [event async for event in result.stream_events()]
            return result

    assert asyncio.run(read()).final_output == "x"
    assert lab.ran == ["a"]


def test_guardrails_of_the_sdk_still_hold(lab: Lab) -> None:
    """Guardrails see the prompt and the answer after the hooks."""
    seen: list[Any] = []

    @input_guardrail(run_in_parallel=False)
    def entry(_c: RunContextWrapper[Any], _a: Any, given: Any) -> Any:
        seen.append(given)
        bad = "bad" in repr(given)
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=bad)

    @output_guardrail
    def ending(_c: RunContextWrapper[Any], _a: Any, output: Any) -> Any:
        seen.append(output)
        bad = "***" not in output
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=bad)

    lab.on("AfterModel", redact)
    lab.on("BeforeAgent", specific(additionalContext="context"))
    steps = [[say("s3cret")], [say("plain")]]
    agent, _ = lab.agent(steps, input_guardrails=[entry], output_guardrails=[ending])
    assert run(lab, agent, "ok").final_output == "***"
    assert seen == ["ok\n\ncontext", "***"]
    with pytest.raises(OutputGuardrailTripwireTriggered):
        run(lab, agent, "ok")
    with pytest.raises(InputGuardrailTripwireTriggered):
        run(lab, agent, "bad")
    assert len(lab.of("AfterAgent")) == 1


def test_plain_code_runs_its_tools_on_its_own_loop(lab: Lab) -> None:
    """Sync entry: only hooks run on the background loop."""
    threads: list[str] = []

    @function_tool
    async def where() -> str:
        """Say where it runs."""
        threads.append(threading.current_thread().name)
        return "here"

    lab.on("BeforeTool", lambda _: lab.ran.append(threading.current_thread().name))
    agent, _ = lab.agent([[call("where")], [say("ok")]], tools=[where])
    hooked = hooked_agent(agent, lab.config)

    def plain() -> None:
        asyncio.set_event_loop(loop := asyncio.new_event_loop())
        result = HooklineRunner.run_sync(hooked, "go", run_config=QUIET)
        assert result.final_output == "ok"
        loop.run_until_complete(lab.config.dispose())
        loop.close()

    thread = threading.Thread(target=plain, name="caller")
    thread.start()
    thread.join()
    assert threads == ["caller"]
    assert [one["prompt_response"] for one in lab.of("AfterAgent")] == ["ok"]


def test_plain_code_inside_a_loop_is_refused_before_any_hook(lab: Lab) -> None:
    """Sync entry: it cannot wait there, as the SDK's own."""
    agent, _ = lab.agent([[say("x")]])

    async def inside() -> Any:
        return HooklineRunner.run_sync(hooked_agent(agent, lab.config), "go")

    with pytest.raises(RuntimeError, match="running loop"):
        asyncio.run(inside())
    assert lab.events == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"session": SQLiteSession("memory")}, "memory"),
        ({"run_config": {"tracing_disabled": True, "group_id": "group"}}, "group"),
        ({"conversation_id": "conv"}, "conv"),
        ({}, "lab"),
    ],
    ids=["session", "group", "conversation", "none"],
)
def test_events_carry_the_id_that_the_sdk_has_for_the_conversation(
    lab: Lab, options: dict[str, Any], expected: str
) -> None:
    """Sessions from the SDK's own conversation id."""
    agent, _ = lab.agent([[call("note", text="a")], [say("x")]], tools=[lab.tool()])
    run(lab, agent, **options)
    assert {one["session_id"] for one in lab.events} == {expected}
    assert "AfterTool" in lab.names()


def test_settings_of_a_request_can_be_changed(lab: Lab) -> None:
    """BeforeModel: a changed request is what the model gets."""
    config = {"temperature": 0.1, "maxOutputTokens": 7}
    lab.on("BeforeModel", specific(llm_request={"config": config}))
    lab.on(
        "BeforeToolSelection",
        specific(toolConfig={"mode": "ANY", "allowedFunctionNames": ["note"]}),
    )
    tools = [lab.tool(), lab.tool(name="other")]
    agent, model = lab.agent([[say("x")]], tools=tools)
    run(lab, agent)
    settings = model.calls[0].model_settings
    assert (settings.temperature, settings.max_tokens) == (0.1, 7)
    assert settings.tool_choice in ("required", "note")
    assert [tool.name for tool in model.calls[0].tools] == ["note"]


def test_no_tool_at_all_leaves_no_choice_of_tools(lab: Lab) -> None:
    """Services reject a choice where there is nothing to choose from."""
    lab.on("BeforeToolSelection", specific(toolConfig={"mode": "NONE"}))
    settings = ModelSettings(tool_choice="required")
    agent, model = lab.agent([[say("x")]], tools=[lab.tool()], model_settings=settings)
    run(lab, agent)
    assert model.calls[0].tools == []
    assert model.calls[0].model_settings.tool_choice is None


def test_a_model_that_fails_is_not_an_answer(lab: Lab) -> None:
    agent, _ = lab.agent([ModelStep(error=RuntimeError("no network"))])
    with pytest.raises(RuntimeError, match="no network"):
        run(lab, agent)
    assert lab.of("AfterModel") == []


def test_the_history_of_a_list_keeps_its_items_beside_added_context(lab: Lab) -> None:
    lab.on("BeforeAgent", specific(additionalContext="it is Monday"))
    given = [{"role": "user", "content": [{"type": "input_text", "text": "what day?"}]}]
    agent, model = lab.agent([[say("x")]])
    run(lab, agent, given)
    assert lab.of("BeforeAgent")[0]["prompt"] == "what day?"
    assert "it is Monday" in sent(model)
    assert outputs(run(lab, lab.agent([[say("y")]])[0], given)) == []
