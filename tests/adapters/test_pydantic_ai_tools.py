"""Tools of pydantic-ai agents under hooks.

issue 14 adapters; protocol.md#events and #callers
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ExternalToolset,
    ModelRetry,
    RunContext,
    ToolApproved,
    ToolDefinition,
    ToolDenied,
    ToolReturn,
    ToolReturnPart,
)
from pydantic_ai.capabilities import AbstractCapability, HandleDeferredToolCalls
from pydantic_ai.exceptions import RunCancelled

from hookline.adapters.pydantic_ai import HooklineCapability

from .pydantic_agents import block, calls, specific, stop, workbench

ADDED = specific(additionalContext="mind this")


class Order(BaseModel):
    item: str
    count: int = 1


def reader(ran: list[str]) -> Callable[[str], str]:
    def read(path: str) -> str:
        ran.append(path)
        return f"content of {path}"

    return read


def giving(value: Any) -> Callable[[], Any]:
    def read() -> Any:
        return value

    return read


def parts_of(result: Any, kind: str) -> list[Any]:
    found = [part for message in result.all_messages() for part in message.parts]
    return [part for part in found if part.part_kind == kind]


async def test_a_hook_sees_an_only_object_parameter_as_the_model_gives_it() -> None:
    ran: list[Order] = []

    def change(event: Any) -> Any:
        return specific(tool_input={"count": event["tool_input"]["count"] + 1})

    async with workbench(BeforeTool=change) as bench:
        agent = bench.agent(calls(("buy", {"item": "tea"})))

        @agent.tool_plain
        def buy(order: Order) -> str:
            ran.append(order)
            return "bought"

        result = await agent.run("go")
    assert bench.seen("BeforeTool")[0]["tool_input"] == {"item": "tea", "count": 1}
    assert ran == [Order(item="tea", count=2)]
    (call,) = parts_of(result, "tool-call")
    assert call.args_as_dict() == {"item": "tea", "count": 2}


async def test_a_changed_value_is_validated_as_the_tool_declares_it() -> None:
    ran: list[Any] = []
    change = specific(tool_input={"day": "2026-02-03"})
    async with workbench(BeforeTool=lambda _: change) as bench:
        agent = bench.agent(
            calls(("book", {"day": "2026-01-01", "order": {"item": "a"}}))
        )

        @agent.tool_plain
        def book(day: date, order: Order) -> str:
            ran.append((day, order))
            return "booked"

        result = await agent.run("go")
    assert ran == [(date(2026, 2, 3), Order(item="a"))]
    (call,) = parts_of(result, "tool-call")
    assert call.args_as_dict() == {"day": "2026-02-03", "order": {"item": "a"}}


async def test_a_change_that_the_tool_cannot_take_does_not_run_it() -> None:
    ran: list[Any] = []
    change = specific(tool_input={"count": "many"})
    async with workbench(BeforeTool=lambda _: change) as bench:
        agent = bench.agent(calls(("buy", {"count": 1})))

        @agent.tool_plain
        def buy(count: int) -> str:
            ran.append(count)
            return "bought"

        assert (await agent.run("go")).output == "the end"
    assert ran == []
    assert "valid integer" in bench.sent[1]


async def test_hooks_see_what_another_capability_made_of_the_input() -> None:
    class Meddler(AbstractCapability[Any]):
        async def before_tool_execute(
            self, ctx: RunContext[Any], *, call: Any, tool_def: Any, args: Any
        ) -> Any:
            return {"path": ".env"}

    ran: list[str] = []

    def guard(event: Any) -> Any:
        return block() if event["tool_input"]["path"] == ".env" else None

    async with workbench(BeforeTool=guard) as bench:
        agent = bench.agent(calls(("read", {"path": "a.md"})), capabilities=[Meddler()])
        agent.tool_plain(reader(ran))
        await agent.run("go")
    assert ran == []


async def test_a_person_sees_the_changed_input_and_the_question() -> None:
    ran: list[str] = []
    output = {"decision": "ask", "reason": "really?"}
    output |= specific(tool_input={"path": "b.md"})
    async with workbench(BeforeTool=lambda _: output) as bench:
        agent = bench.agent(
            calls(("read", {"path": "a.md"})), output_type=[str, DeferredToolRequests]
        )
        agent.tool_plain(reader(ran))
        first = await agent.run("go")
        asked = first.output
        assert isinstance(asked, DeferredToolRequests)
        (call,) = asked.approvals
        assert call.args_as_dict() == {"path": "b.md"}
        assert asked.metadata[call.tool_call_id] == {"reason": "really?"}
        assert ran == []
        approved = ToolApproved(override_args={"path": "c.md"})
        second = await agent.run(
            message_history=first.all_messages(),
            deferred_tool_results=DeferredToolResults(
                approvals={call.tool_call_id: approved}
            ),
        )
    assert second.output == "the end"
    assert ran == ["b.md"], "the hook changes what the person wrote, too"
    sessions = {event["session_id"] for event in bench.events}
    assert len(sessions) == 1, "a resumed run is the same conversation"


async def test_a_hook_may_block_what_a_person_approved() -> None:
    ran: list[str] = []
    answers = [{"decision": "ask", "reason": "?"}, block("changed my mind")]
    async with workbench(BeforeTool=lambda _: answers.pop(0)) as bench:
        agent = bench.agent(
            calls(("read", {"path": "a.md"})), output_type=[str, DeferredToolRequests]
        )
        agent.tool_plain(reader(ran))
        first = await agent.run("go")
        (call,) = first.output.approvals
        await agent.run(
            message_history=first.all_messages(),
            deferred_tool_results=DeferredToolResults(
                approvals={call.tool_call_id: True}
            ),
        )
    assert ran == []
    assert "changed my mind" in bench.sent[-1]


async def test_a_handler_of_deferred_calls_answers_for_a_hook_that_asks() -> None:
    ran: list[str] = []

    def decide(_ctx: Any, asked: DeferredToolRequests) -> DeferredToolResults:
        first, second = (call.tool_call_id for call in asked.approvals)
        return DeferredToolResults(approvals={first: True, second: ToolDenied("not b")})

    ask = {"decision": "ask", "reason": "?"}
    async with workbench(BeforeTool=lambda _: ask) as bench:
        agent = bench.agent(
            calls(("read", {"path": "a.md"}), ("read", {"path": "b.md"})),
            capabilities=[HandleDeferredToolCalls(decide)],
        )
        agent.tool_plain(reader(ran))
        assert (await agent.run("go")).output == "the end"
    assert ran == ["a.md"]
    assert "not b" in bench.sent[1]


@pytest.mark.parametrize("approval", [None, True], ids=["unknown", "told"])
async def test_approval_of_a_single_run_has_to_be_told(approval: bool | None) -> None:
    ask = {"decision": "ask", "reason": "?"}
    async with workbench(BeforeTool=lambda _: ask) as bench:
        agent = bench.agent(calls(("read", {"path": "a.md"})), approval=approval)
        agent.tool_plain(reader([]))
        wanted: Any = [str, DeferredToolRequests]
        result: Any = await agent.run("go", output_type=wanted)
    assert isinstance(result.output, DeferredToolRequests) is (approval is True)


@pytest.mark.parametrize("answer", [True, False])
async def test_a_confirm_callback_goes_before_approval(answer: bool) -> None:
    ran: list[str] = []
    ask = {"decision": "ask", "reason": "really?"}
    async with workbench(BeforeTool=lambda _: ask) as bench:
        agent = bench.agent(
            calls(("read", {"path": "a.md"})),
            output_type=[str, DeferredToolRequests],
            confirm=lambda question: question.reason == "really?" and answer,
        )
        agent.tool_plain(reader(ran))
        assert (await agent.run("go")).output == "the end"
    assert bool(ran) is answer


async def test_a_stop_refuses_the_calls_that_come_after_it() -> None:
    ran: list[str] = []
    async with workbench(AfterTool=lambda _: stop()) as bench:
        agent = bench.agent(
            calls(*(("read", {"path": path}) for path in ("a.md", "b.md")))
        )
        agent.tool_plain(sequential=True)(reader(ran))
        result = await agent.run("go")
    assert ran == ["a.md"]
    assert result.output == "enough"
    assert len(bench.sent) == 1
    answered = {part.tool_call_id for part in parts_of(result, "tool-return")}
    assert answered == {part.tool_call_id for part in parts_of(result, "tool-call")}


async def test_a_stop_goes_before_a_question_of_the_same_response() -> None:
    def decide(event: Any) -> Any:
        asks = {"decision": "ask", "reason": "may it?"}
        return asks if event["tool_input"]["path"] == "a" else stop()

    async with workbench(BeforeTool=decide) as bench:
        reply = calls(("read", {"path": "a"}), ("read", {"path": "b"}))
        kinds = [str, DeferredToolRequests]
        agent = bench.agent(reply, output_type=kinds, tools=[reader([])])
        result = await agent.run("go")
        assert result.output == "enough"
        later = await agent.run("and now?", message_history=result.all_messages())
    assert later.output == "the end"


async def test_a_tool_that_crashes_is_seen_and_ends_the_run_as_without_hooks() -> None:
    async with workbench(AfterTool=lambda _: ADDED) as bench:
        agent = bench.agent(calls(("read", {})))

        @agent.tool_plain
        def read() -> str:
            raise OSError("disk is gone")

        with pytest.raises(OSError, match="disk is gone"):
            await agent.run("go")
    (event,) = bench.seen("AfterTool")
    assert event["tool_response"]["error"]["message"] == "OSError: disk is gone"


async def test_a_stop_at_a_tool_that_crashes_ends_the_run_cleanly() -> None:
    async with workbench(AfterTool=lambda _: stop("the disk")) as bench:
        agent = bench.agent(calls(("read", {})))

        @agent.tool_plain
        def read() -> str:
            raise OSError("disk is gone")

        assert (await agent.run("go")).output == "the disk"


async def test_a_retry_stays_a_retry_and_carries_what_hooks_added() -> None:
    async with workbench(AfterTool=lambda _: ADDED) as bench:
        agent = bench.agent(calls(("read", {})), calls(("read", {})))
        tries: list[int] = []

        @agent.tool_plain(retries=2)
        def read() -> str:
            tries.append(1)
            if len(tries) == 1:
                raise ModelRetry("another name, please")
            return "text"

        result = await agent.run("go")
    assert "another name, please\n\nmind this" in bench.sent[1]
    outcomes = [part.outcome for part in parts_of(result, "tool-return")]
    assert outcomes == ["retried", "success"]
    error = bench.seen("AfterTool")[0]["tool_response"]["error"]
    assert error["message"] == "ModelRetry: another name, please"


async def test_a_tool_that_times_out_is_seen_with_its_error() -> None:
    async with workbench(AfterTool=lambda _: None) as bench:
        agent = bench.agent(calls(("wait", {})))

        @agent.tool_plain(timeout=0.01)
        async def wait() -> str:
            await asyncio.Event().wait()
            return "never"

        assert (await agent.run("go")).output == "the end"
    (event,) = bench.seen("AfterTool")
    assert "Timed out" in event["tool_response"]["error"]["message"]


async def test_a_cancelled_tool_has_no_after_tool() -> None:
    started = asyncio.Event()
    async with workbench() as bench:
        agent = bench.agent(calls(("wait", {})))

        @agent.tool_plain
        async def wait() -> str:
            started.set()
            await asyncio.Event().wait()
            return "never"

        task = asyncio.create_task(agent.run("go"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(bench.seen("BeforeTool")) == 1
    assert bench.seen("AfterTool") == []


async def test_a_structured_result_stays_as_it_is_beside_what_hooks_add() -> None:
    async with workbench(AfterTool=lambda _: ADDED) as bench:
        agent = bench.agent(calls(("read", {})))
        agent.tool_plain(giving({"size": 3}))
        result = await agent.run("go")
    (part,) = parts_of(result, "tool-return")
    assert isinstance(part, ToolReturnPart)
    assert part.content == {"size": 3}
    assert "mind this" in bench.sent[1]


async def test_hooks_see_all_that_a_tool_return_sends_and_withhold_all_of_it() -> None:
    withheld = {"reason": "confidential"} | specific(withholdResult=True)
    async with workbench(AfterTool=lambda _: withheld) as bench:
        agent = bench.agent(calls(("read", {})))
        agent.tool_plain(
            giving(ToolReturn("s3cret", content="also s3cret", metadata="s3cret"))
        )
        result = await agent.run("go")
    shown = bench.seen("AfterTool")[0]["tool_response"]["llmContent"]
    assert shown == {"return_value": "s3cret", "content": "also s3cret"}
    assert "confidential" in bench.sent[1]
    assert "s3cret" not in str(result.all_messages())


async def test_a_tool_return_keeps_content_and_metadata() -> None:
    async with workbench(AfterTool=lambda _: ADDED) as bench:
        agent = bench.agent(calls(("read", {})))
        agent.tool_plain(giving(ToolReturn("text", content="see also", metadata=7)))
        result = await agent.run("go")
    (part,) = parts_of(result, "tool-return")
    assert (part.content, part.metadata) == ("text", 7)
    for text in ("see also", "mind this"):
        assert text in bench.sent[1]


async def test_a_run_that_its_tool_cancels_has_no_after_tool() -> None:
    async with workbench() as bench:
        agent = bench.agent(calls(("give_up", {})))

        @agent.tool
        async def give_up(ctx: RunContext[None]) -> str:
            ctx.cancel()
            await asyncio.Event().wait()
            return "never"

        with pytest.raises(RunCancelled):
            await agent.run("go")
    assert bench.seen("AfterTool") == []


async def test_the_capability_works_for_a_single_run() -> None:
    async with workbench(BeforeTool=lambda _: block("not in this run")) as bench:
        bench.agent(calls(("read", {"path": "a.md"})))
        ran: list[str] = []
        agent: Agent[None, str] = Agent(bench.model.model, tools=[reader(ran)])
        await agent.run("go", capabilities=[HooklineCapability(bench.config)])
    assert ran == []
    assert "not in this run" in bench.sent[1]


EXTERNAL = ToolDefinition(
    name="deploy",
    parameters_json_schema={
        "type": "object",
        "properties": {"to": {"type": "string"}},
        "required": ["to"],
    },
)


async def deploy(bench: Any) -> Any:
    agent: Agent[None, Any] = bench.agent(
        calls(("deploy", {"to": "production"})),
        output_type=[str, DeferredToolRequests],
        toolsets=[ExternalToolset([EXTERNAL])],
    )
    return (await agent.run("go")).output


async def test_a_tool_that_runs_elsewhere_is_blocked_before_it_is_handed_out() -> None:
    async with workbench(BeforeTool=lambda _: block("not there")) as bench:
        assert await deploy(bench) == "the end"
    assert "not there" in bench.sent[1]


async def test_a_tool_that_runs_elsewhere_gets_the_changed_input() -> None:
    change = specific(tool_input={"to": "staging"})
    async with workbench(BeforeTool=lambda _: change) as bench:
        asked = await deploy(bench)
    assert [call.args_as_dict() for call in asked.calls] == [{"to": "staging"}]
    assert len(bench.seen("BeforeTool")) == 1
