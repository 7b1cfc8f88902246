"""Google ADK: tool calls and their hooks (protocol.md#callers, issue 14 adapters)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="google-adk has an environment of its own")

from google.adk.agents import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from hookline.agent import ScriptedReply

from .adk_support import Hooks, Kit, deny, function_responses, specific, stop
from .drivers.google_adk import (
    SSE,
    ScriptedLlm,
    answer_of,
    approval,
    call,
    scripted,
    sent,
)


class Files:
    """Tools that note what they ran with."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def write(self, path: str) -> str:
        """Write a file."""
        self.ran.append(path)
        return f"wrote {path}"

    def fail(self, path: str) -> str:
        """Fail."""
        raise OSError(f"cannot read {path}")

    def start(self, path: str) -> None:
        """Start work whose result comes later."""
        self.ran.append(path)


def agent_with(*tools: Any, model: Any = None) -> LlmAgent:
    llm = model or scripted(call("write", path="a"))
    return LlmAgent(name="root", model=llm, tools=list(tools))


async def test_a_stop_by_one_parallel_call_keeps_all_of_them_from_running() -> None:
    """Issue 14: the hooks of all calls are asked before the first tool runs."""
    files = Files()
    calls = tuple(("write", {"path": path}) for path in ("a", "b", "c"))
    hooks = Hooks().on(
        "BeforeTool",
        lambda e: stop("enough") if e["tool_input"]["path"] == "c" else None,
    )
    kit = Kit(
        hooks, agent_with(files.write, model=scripted(ScriptedReply(calls=calls)))
    )
    assert await kit.ask("go") == "enough"
    assert files.ran == []


async def test_parallel_calls_run_at_once() -> None:
    running: list[str] = []
    both = asyncio.Event()

    async def meet(name: str) -> str:
        """Wait for the other call."""
        running.append(name)
        if len(running) == 2:
            both.set()
        await both.wait()
        return name

    calls = tuple(("meet", {"name": name}) for name in ("a", "b"))
    hooks = Hooks().on("BeforeTool").on("AfterTool")
    kit = Kit(hooks, agent_with(meet, model=scripted(ScriptedReply(calls=calls))))
    assert await kit.ask("go") == "the end"
    names = [one["tool_input"]["name"] for one in hooks.seen("AfterTool")]
    assert sorted(names) == ["a", "b"]


async def test_calls_of_one_id_are_judged_apart() -> None:
    """What runs is what hooks have seen, whatever ids a model gives."""
    files = Files()

    def denied(event: dict[str, Any]) -> Any:
        return deny("no") if event["tool_input"]["path"] == "bad" else None

    parts = [
        types.Part(function_call=types.FunctionCall(id="1", name="write", args=args))
        for args in ({"path": "bad"}, {"path": "good"})
    ]

    class Twins(BasePlugin):
        async def after_model_callback(self, **given: Any) -> None:
            response = given["llm_response"]
            if response.get_function_calls():
                response.content = types.Content(role="model", parts=parts)

    root = agent_with(files.write)
    kit = Kit(Hooks().on("BeforeTool", denied), root, before=[Twins(name="twins")])
    await kit.say("go")
    assert files.ran == ["good"]


async def test_a_changed_input_is_not_written_into_the_models_own_objects() -> None:
    """A cache of responses, say, would hand the change to other conversations."""
    given = types.FunctionCall(name="write", args={"path": "a"})
    content = types.Content(role="model", parts=[types.Part(function_call=given)])

    class Cached(ScriptedLlm):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            async for one in super().generate_content_async(llm_request, stream):
                yield LlmResponse(content=content) if len(self.seen) == 1 else one

    files = Files()
    hooks = Hooks().on("BeforeTool", lambda _: specific(tool_input={"path": "b"}))
    model = Cached(reply=scripted().reply)
    kit = Kit(hooks, agent_with(files.write, model=model))
    await kit.say("go")
    assert files.ran == ["b"]
    assert await kit.inputs() == [{"path": "b"}]
    assert given.args == {"path": "a"}


async def test_a_failing_tool_ends_the_run_as_without_hooks_if_none_adds() -> None:
    hooks = Hooks().on("AfterTool")
    model = scripted(call("fail", path="x"))
    kit = Kit(hooks, agent_with(Files().fail, model=model))
    with pytest.raises(OSError, match="cannot read x"):
        await kit.say("go")
    (seen,) = hooks.seen("AfterTool")
    assert "cannot read x" in seen["tool_response"]["error"]["message"]


async def test_a_cancelled_tool_has_no_result_and_leaves_nothing() -> None:
    """Issue 14: AfterTool does not fire for a tool that is cancelled."""
    started = asyncio.Event()

    async def wait() -> str:
        """Wait for ever."""
        started.set()
        await asyncio.Event().wait()
        return ""

    hooks = Hooks().on("BeforeTool").on("AfterTool")
    kit = Kit(hooks, agent_with(wait, model=scripted(call("wait"), "second")))
    run = asyncio.create_task(kit.say("go"))
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert hooks.names == ["BeforeTool"]
    assert await kit.ask("again", "s2") == "second"


async def test_a_tool_that_times_out_is_seen_with_its_error() -> None:
    async def slow() -> str:
        """Give up."""
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
        return ""

    hooks = Hooks().on("AfterTool", lambda _: specific(additionalContext="try later"))
    kit = Kit(hooks, agent_with(slow, model=scripted(call("slow"))))
    events = await kit.say("go")
    (result,) = function_responses(events)
    assert "TimeoutError" in result["error"]
    assert result["additional_context"] == "try later"


async def test_an_unknown_tool_is_asked_about_and_answered_by_adk() -> None:
    hooks = Hooks().on("BeforeTool").on("AfterTool")
    kit = Kit(hooks, agent_with(Files().write, model=scripted(call("nothing"))))
    (result,) = function_responses(await kit.say("go"))
    assert "no tool with that name" in result["error"]
    (seen,) = hooks.seen("AfterTool")
    assert "'nothing' not found" in seen["tool_response"]["error"]["message"]


async def test_additions_keep_the_keys_of_a_result() -> None:
    def look() -> dict[str, Any]:
        """Look."""
        return {"found": 3}

    hooks = Hooks().on("AfterTool", lambda _: {"systemMessage": "count again"})
    kit = Kit(hooks, agent_with(look, model=scripted(call("look"))))
    (result,) = function_responses(await kit.say("go"))
    assert result == {"found": 3, "additional_context": "[System] count again"}


def asking(event: dict[str, Any]) -> Any:
    path = event["tool_input"]["path"]
    if path == "draft":
        return {
            "decision": "ask",
            "reason": "sure?",
            **(specific(tool_input={"path": "final"}) or {}),
        }
    return {"decision": "ask", "reason": "sure?"}


@pytest.mark.parametrize("mode", [None, SSE], ids=["plain", "sse"])
@pytest.mark.parametrize("is_plain", [True, False], ids=["plugin", "runner"])
async def test_ask_is_a_tool_confirmation_of_adk(is_plain: bool, mode: Any) -> None:
    """Issue 14: the question is ADK's own, with the input that would run."""
    files = Files()
    hooks = Hooks().on("BeforeAgent").on("BeforeTool", asking).on("AfterAgent")
    root = agent_with(files.write, model=scripted(call("write", path="draft")))
    kit = Kit(hooks, root, plain=is_plain)
    events = await kit.say("go", run_config=mode)
    asked = [fc for e in events for fc in e.get_function_calls() if fc.name != "write"]
    assert [fc.args["toolConfirmation"]["hint"] for fc in asked if fc.args] == ["sure?"]
    assert files.ran == []
    assert hooks.names == ["BeforeAgent", "BeforeTool"]
    said = approval(events, confirmed=True)
    assert said is not None
    assert answer_of(await kit.send(said, run_config=mode)) == "the end"
    assert files.ran == ["final"]
    assert hooks.names == ["BeforeAgent", "BeforeTool", "BeforeTool", "AfterAgent"]
    assert hooks.seen("AfterAgent")[0]["prompt"] == "go"
    assert await kit.inputs() == [{"path": "final"}]


@pytest.mark.filterwarnings("ignore:.*ResumabilityConfig:UserWarning")
@pytest.mark.parametrize("is_resumable", [True, False])
async def test_a_question_holds_up_only_its_own_call(is_resumable: bool) -> None:
    """The other calls of the response run at once, and only once."""
    files = Files()
    calls = tuple(("write", {"path": path}) for path in ("a", "ask", ".env"))

    def decide(event: dict[str, Any]) -> Any:
        path = event["tool_input"]["path"]
        said = {"ask": asking(event), ".env": deny("no secrets")}
        return said.get(path)

    kit = Kit(
        Hooks().on("BeforeTool", decide),
        agent_with(files.write, model=scripted(ScriptedReply(calls=calls))),
        resumable=is_resumable,
    )
    events = await kit.say("go")
    assert files.ran == ["a"]
    said = approval(events, confirmed=True)
    assert said is not None
    assert answer_of(await kit.send(said)) == "the end"
    assert files.ran == ["a", "ask"]


async def test_a_question_can_be_answered_in_another_process() -> None:
    """A new plugin knows the session only: BeforeAgent is asked about it again."""
    files, service = Files(), InMemorySessionService()
    hooks = Hooks().on("BeforeAgent").on("BeforeTool", asking).on("AfterAgent")
    model = scripted(call("write", path="a"))
    first = Kit(hooks, agent_with(files.write, model=model), service=service)
    said = approval(await first.say("go"), confirmed=True)
    assert said is not None
    second = Kit(hooks, agent_with(files.write, model=model), service=service)
    assert answer_of(await second.send(said)) == "the end"
    assert files.ran == ["a"]
    assert [one["prompt"] for one in hooks.seen("BeforeAgent")] == ["go", "go"]
    assert hooks.seen("AfterAgent")[0]["prompt"] == "go"


@pytest.mark.parametrize("is_elsewhere", [False, True])
async def test_a_persons_no_holds_even_if_the_hooks_do_not_ask_again(
    is_elsewhere: bool,
) -> None:
    """Also in another process, which knows the session only."""
    files = Files()
    answers = iter([{"decision": "ask", "reason": "sure?"}, None])
    hooks = Hooks().on("BeforeTool", lambda _: next(answers))
    kit = Kit(hooks, agent_with(files.write))
    said = approval(await kit.say("go"), confirmed=False)
    assert said is not None
    if is_elsewhere:
        other = agent_with(files.write, model=scripted("done"))
        kit = Kit(hooks, other, service=kit.service)
    (result,) = function_responses(await kit.send(said))
    assert result == {"error": "Declined by the user"}
    assert files.ran == []


async def test_a_confirm_callback_takes_the_place_of_adks_question() -> None:
    files = Files()
    asked: list[str] = []

    async def confirm(question: Any) -> bool:
        asked.append(question.reason)
        return True

    kit = Kit(
        Hooks().on("BeforeTool", asking), agent_with(files.write), confirm=confirm
    )
    assert await kit.ask("go") == "the end"
    assert (asked, files.ran) == (["sure?"], ["a"])


async def test_adks_own_confirmation_is_no_result_for_hooks() -> None:
    """AfterTool fires once the tool has run, and not for ADK's question."""
    files = Files()
    hooks = Hooks().on("AfterTool")
    tool = FunctionTool(files.write, require_confirmation=True)
    kit = Kit(hooks, agent_with(tool))
    events = await kit.say("go")
    assert hooks.events == []
    said = approval(events, confirmed=True)
    assert said is not None
    await kit.send(said)
    assert files.ran == ["a"]
    assert len(hooks.seen("AfterTool")) == 1


async def test_the_late_result_of_a_long_running_tool_passes_its_hooks() -> None:
    """A withheld result does not reach the model when it comes later, either."""
    files = Files()
    model = scripted(call("start", path="x"))
    hooks = (
        Hooks()
        .on("AfterAgent")
        .on(
            "AfterTool",
            lambda _: {"reason": "secret", **(specific(withholdResult=True) or {})},
        )
    )
    kit = Kit(hooks, agent_with(LongRunningFunctionTool(files.start), model=model))
    events = await kit.say("go")
    assert hooks.events == []
    (started,) = [fc for event in events for fc in event.get_function_calls()]
    late = types.FunctionResponse(
        id=started.id, name="start", response={"result": "the plan"}
    )
    part = types.Part(function_response=late)
    await kit.send(types.Content(role="user", parts=[part]))
    assert "secret" in sent(model.seen[-1])
    assert "the plan" not in sent(model.seen[-1])
    assert "the plan" not in (await kit.kept()).model_dump_json()
    assert hooks.names == ["AfterTool", "AfterAgent"]


async def test_a_call_of_a_workflow_node_passes_its_hooks() -> None:
    from google.adk.workflow import START, Workflow

    files = Files()

    def given(node_input: Any) -> dict[str, Any]:
        """Make the input of the tool."""
        return {"path": ".env"}

    hooks = Hooks().on("BeforeTool", lambda _: deny("no secrets"))
    flow = Workflow(name="flow", edges=[(START, given, FunctionTool(files.write))])
    kit = Kit(hooks, flow)
    await kit.say("go")
    assert files.ran == []
    assert hooks.seen("BeforeTool")[0]["tool_input"] == {"path": ".env"}


async def test_another_plugin_that_answers_keeps_its_answer() -> None:
    """The tool has not run, and AfterTool sees what the model is given."""

    class Cache(BasePlugin):
        async def before_tool_callback(
            self,
            *,
            tool: BaseTool,
            tool_args: dict[str, Any],
            tool_context: ToolContext,
        ) -> dict[str, Any] | None:
            return {"result": "cached"}

    files, hooks = Files(), Hooks().on("BeforeTool").on("AfterTool")
    kit = Kit(hooks, agent_with(files.write), before=[Cache(name="cache")])
    (result,) = function_responses(await kit.say("go"))
    assert result == {"result": "cached"}
    assert files.ran == []
    assert hooks.seen("AfterTool")[0]["tool_response"]["llmContent"] == result
