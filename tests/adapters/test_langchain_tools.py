"""LangChain: what tools give back, and how they fail (issue 14 adapters)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Annotated, Any, NotRequired

import pytest
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.tools import InjectedState, ToolRuntime
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import ToolException, tool
from langgraph.types import Command

from hookline.adapters.langchain import HooklineMiddleware
from hookline.agent import ScriptedReply

from .drivers.langchain import ScriptedChat
from .langchain_scenes import (
    Hook,
    agent_of,
    answer,
    ask,
    calls,
    hooked,
    named,
    specific,
)


class Counted(AgentState[Any]):
    """A state that a tool may change."""

    count: NotRequired[int]


@tool
def read(path: str) -> str:
    """Read a file."""
    return f"content of {path}"


@tool
def fail(path: str) -> str:
    """Read a file that is not there."""
    raise ValueError(f"no {path}")


@tool
def counts(runtime: ToolRuntime) -> Command[Any]:
    """Count, in the state of the agent."""
    message = ToolMessage("counted", tool_call_id=runtime.tool_call_id)
    return Command(update={"count": 1, "messages": [message]})


@tool
def several(runtime: ToolRuntime) -> list[Any]:
    """Count and answer apart."""
    message = ToolMessage("counted", tool_call_id=runtime.tool_call_id)
    return [Command(update={"count": 1}), message]


@tool(response_format="content_and_artifact")
def picture(path: str) -> tuple[list[Any], bytes]:
    """Load a picture."""
    blocks = [
        {"type": "text", "text": f"this is {path}"},
        {"type": "image", "url": "https://example.com/a.png"},
    ]
    return blocks, b"raw"


def adds(_: Any) -> dict[str, Any]:
    """An AfterTool hook that adds context and a system message."""
    return {"systemMessage": "be brief", **specific(additionalContext="mind it")}


def withholds(_: Any) -> dict[str, Any]:
    """An AfterTool hook that withholds the result."""
    return {"reason": "confidential", **specific(withholdResult=True)}


def stops(_: Any) -> dict[str, Any]:
    return {"continue": False, "stopReason": "enough"}


def results(result: Mapping[str, Any]) -> list[ToolMessage]:
    return [one for one in result["messages"] if isinstance(one, ToolMessage)]


async def run(hook: Hook | None, *tools: Any, args: Any = None, **more: Any) -> Any:
    """Call the first tool once, with this AfterTool hook."""
    hooks: dict[str, Any] = {} if hook is None else {"AfterTool": hook}
    async with hooked(**hooks) as (config, events):
        reply = calls((tools[0].name, args or {}))
        agent, model = agent_of(config, reply, tools=tools, **more)
        result = await agent.ainvoke(ask("go"))
    return result, model, named(events, "AfterTool")


async def test_a_command_keeps_its_update_and_gets_the_additions() -> None:
    (_, model, events) = await run(adds, counts, state_schema=Counted)
    assert "counted\n\nmind it\n\n[System] be brief" in model.requests[1].text
    assert events[0]["tool_response"]["llmContent"] == "counted"


@pytest.mark.parametrize("given", [counts, several], ids=["command", "list"])
async def test_the_state_is_updated_by_a_command(given: Any) -> None:
    result, _, _ = await run(adds, given, state_schema=Counted)
    assert result["count"] == 1
    assert results(result)[0].text == "counted\n\nmind it\n\n[System] be brief"


@pytest.mark.parametrize("given", [counts, several], ids=["command", "list"])
async def test_a_withheld_command_updates_nothing(given: Any) -> None:
    result, model, _ = await run(withholds, given, state_schema=Counted)
    assert "count" not in result
    assert "counted" not in model.requests[1].text
    assert "confidential" in model.requests[1].text


MORE_MESSAGES: dict[str, Any] = {
    "human": HumanMessage("the token"),
    "dict": {"role": "user", "content": "the token"},
    "pair": ("user", "the token"),
    "blocks": HumanMessage([{"type": "text", "text": "the token"}]),
}


@pytest.mark.parametrize("shape", ["command", "list"])
@pytest.mark.parametrize("kind", MORE_MESSAGES)
async def test_hooks_see_and_withhold_every_message_of_a_command(
    kind: str, shape: str
) -> None:
    """protocol.md#callers: what reaches the model is what AfterTool has seen."""

    @tool
    def deploy(runtime: ToolRuntime) -> Any:
        """Say more than one thing."""
        first = ToolMessage("done", tool_call_id=runtime.tool_call_id)
        if shape == "list":
            return [first, Command(update={"messages": [MORE_MESSAGES[kind]]})]
        return Command(update={"messages": [first, MORE_MESSAGES[kind]]})

    _, model, events = await run(adds, deploy)
    assert "the token" in str(events[0]["tool_response"]["llmContent"])
    assert "done" in str(events[0]["tool_response"]["llmContent"])
    assert "the token" in model.requests[1].text
    _, model, _ = await run(withholds, deploy)
    assert "the token" not in model.requests[1].text
    assert "confidential" in model.requests[1].text


async def test_blocks_and_artifacts_stay_beside_what_hooks_add() -> None:
    result, _, events = await run(adds, picture, args={"path": "a.png"})
    (message,) = results(result)
    assert [block["type"] for block in message.content] == [  # type: ignore[index]  # blocks
        *("text", "image", "text", "text")
    ]
    assert message.artifact == b"raw"
    assert message.status == "success"
    assert events[0]["tool_response"]["llmContent"][0]["text"] == "this is a.png"


async def test_a_withheld_result_has_no_blocks_and_no_artifact() -> None:
    result, _, _ = await run(withholds, picture, args={"path": "a.png"})
    (message,) = results(result)
    assert message.text == "confidential"
    assert message.artifact is None
    assert message.status == "error"


async def test_a_result_that_hooks_leave_alone_is_the_same_message() -> None:
    plain, _, _ = await run(None, picture, args={"path": "a.png"})
    assert results(plain)[0].response_metadata == {}


async def test_a_suppressed_display_is_marked_on_the_message() -> None:
    result, _, _ = await run(
        lambda _: {"suppressOutput": True}, read, args={"path": "a"}
    )
    (message,) = results(result)
    assert message.response_metadata["hookline"] == {"suppress_display": True}
    assert message.text == "content of a"


async def test_a_tool_that_raises_fails_the_run_and_is_seen() -> None:
    """As without hooks: LangChain hands only invalid arguments to the model."""
    async with hooked() as (config, events):
        agent, _ = agent_of(config, calls(("fail", {"path": "x"})), tools=[fail])
        with pytest.raises(ValueError, match="no x"):
            await agent.ainvoke(ask("go"))
        agent, _ = agent_of(config, calls(("fail", {"path": "x"})), tools=[fail])
        with pytest.raises(ValueError, match="no x"):
            await asyncio.to_thread(agent.invoke, ask("go"))
    (seen, again) = named(events, "AfterTool")
    assert "no x" in seen["tool_response"]["error"]["message"]
    assert again["tool_response"] == seen["tool_response"]


@pytest.mark.parametrize(
    ("hook", "text"), [(withholds, "confidential"), (stops, "enough")]
)
async def test_a_withheld_failure_does_not_reach_anybody(hook: Hook, text: str) -> None:
    result, _, _ = await run(hook, fail, args={"path": "x"})
    assert "no x" not in repr(result)
    assert text in results(result)[0].text


async def test_a_failure_that_the_tool_handles_is_an_error_for_hooks() -> None:
    @tool
    def careful(path: str) -> str:
        """Fail in a way that the model may know."""
        raise ToolException(f"no {path}")

    careful.handle_tool_error = True
    result, _, events = await run(adds, careful, args={"path": "x"})
    assert events[0]["tool_response"]["error"]["message"] == "no x"
    assert results(result)[0].text == "no x\n\nmind it\n\n[System] be brief"
    assert results(result)[0].status == "error"


@pytest.mark.parametrize(
    "reply",
    [calls(("read", {"file": "x"})), calls(("unknown", {}))],
    ids=["arguments", "name"],
)
async def test_an_invalid_call_is_an_error_for_hooks(reply: Any) -> None:
    async with hooked(AfterTool=adds) as (config, events):
        agent, model = agent_of(config, reply, tools=[read])
        await agent.ainvoke(ask("go"))
    assert named(events, "AfterTool")[0]["tool_response"]["error"]
    assert "mind it" in model.requests[1].text


async def test_a_cancelled_tool_has_no_result_for_hooks() -> None:
    started = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait for ever."""
        started.set()
        return str(await asyncio.Event().wait())

    async with hooked() as (config, events):
        agent, _ = agent_of(config, calls(("wait", {})), tools=[wait])
        running = asyncio.create_task(agent.ainvoke(ask("go")))
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert len(named(events, "BeforeTool")) == 1
    assert named(events, "AfterTool") == []


async def test_a_tool_that_times_out_is_seen_with_its_error() -> None:
    @tool
    async def late() -> str:
        """Take too long."""
        async with asyncio.timeout(0):
            return str(await asyncio.Event().wait())

    async with hooked() as (config, events):
        agent, _ = agent_of(config, calls(("late", {})), tools=[late])
        with pytest.raises(TimeoutError):
            await agent.ainvoke(ask("go"))
    error = named(events, "AfterTool")[0]["tool_response"]["error"]
    assert "TimeoutError" in error["message"]


async def test_parallel_calls_are_recorded_with_the_inputs_that_ran() -> None:
    def change(event: dict[str, Any]) -> dict[str, Any]:
        return specific(tool_input={"path": event["tool_input"]["path"].upper()})

    both = calls(("read", {"path": "a"}), ("read", {"path": "b"}))
    async with hooked(BeforeTool=change) as (config, _):
        agent, model = agent_of(config, both, tools=[read])
        result = await agent.ainvoke(ask("go"))
    recorded = next(one for one in result["messages"] if isinstance(one, AIMessage))
    assert [one["args"] for one in recorded.tool_calls] == [
        {"path": "A"},
        {"path": "B"},
    ]
    assert [one.type for one in result["messages"]] == [
        *("human", "ai", "tool", "tool", "ai")
    ]
    assert "content of A" in model.requests[1].text


@pytest.mark.parametrize(
    ("block", "changed"),
    [
        (
            # As of the Responses API, which gets this block and not the call.
            {"type": "function_call", "call_id": "1", "id": "f", "arguments": "{}"},
            {"arguments": '{"path":"b"}'},
        ),
        ({"type": "tool_use", "id": "1", "input": {}}, {"input": {"path": "b"}}),
        ({"type": "tool_call", "id": "1", "args": {}}, {"args": {"path": "b"}}),
        ({"type": "text", "text": "reading"}, {}),
        ({"type": "tool_use", "id": "2", "input": {}}, {}),
    ],
    ids=["function_call", "tool_use", "tool_call", "text", "other"],
)
async def test_a_changed_input_is_in_the_blocks_that_repeat_the_call(
    block: dict[str, Any], changed: dict[str, Any]
) -> None:
    class Blocks(ScriptedChat):
        def _message(self, messages: Any, given: Any) -> AIMessage:
            message = super()._message(messages, given)
            if not message.tool_calls:
                return message
            only = {"name": "read", "args": {"path": "a"}, "id": "1"}
            return AIMessage([block], tool_calls=[only])

    replies = [calls(("read", {"path": "a"})), ScriptedReply("done")]
    async with hooked(BeforeTool=lambda _: specific(tool_input={"path": "b"})) as (
        config,
        _,
    ):
        model = Blocks(reply=lambda at: replies[at])
        agent: Any = create_agent(
            model, [read], middleware=[HooklineMiddleware(config)]
        )
        result = await agent.ainvoke(ask("go"))
    assert result["messages"][1].content == [{**block, **changed}]
    assert result["messages"][1].tool_calls[0]["args"] == {"path": "b"}


async def test_a_changed_input_is_recorded_where_no_model_call_follows() -> None:
    @tool(return_direct=True)
    def give(path: str) -> str:
        """Give the answer itself."""
        return f"given {path}"

    async with hooked(BeforeTool=lambda _: specific(tool_input={"path": "b"})) as (
        config,
        _,
    ):
        agent, _ = agent_of(config, calls(("give", {"path": "a"})), tools=[give])
        result = await agent.ainvoke(ask("go"))
    assert result["messages"][1].tool_calls[0]["args"] == {"path": "b"}
    assert "given b" in answer(result)


async def test_a_stop_after_a_direct_answer_ends_with_the_reason() -> None:
    @tool(return_direct=True)
    def give(path: str) -> str:
        """Give the answer itself."""
        return f"given {path}"

    async with hooked(AfterTool=stops) as (config, events):
        agent, _ = agent_of(config, calls(("give", {"path": "a"})), tools=[give])
        result = await agent.ainvoke(ask("go"))
    assert answer(result) == "enough"
    assert named(events, "AfterAgent") == []


async def test_a_plain_agent_runs_its_tools_in_its_own_threads() -> None:
    threads: list[str] = []

    @tool
    def where() -> str:
        """Say where it runs."""
        threads.append(threading.current_thread().name)
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        return "here"

    def hook(_: Any) -> None:
        threads.append(threading.current_thread().name)

    async with hooked(BeforeTool=hook) as (config, _):
        agent, _ = agent_of(config, calls(("where", {})), tools=[where])
        await asyncio.to_thread(agent.invoke, ask("go"))
    assert len(threads) == 2
    assert "hookline-hooks" not in threads[1]


async def test_injected_arguments_are_the_frameworks_own() -> None:
    @tool
    def injected(path: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
        """Use the state."""
        return f"{path} after {len(state['messages'])}"

    async with hooked(BeforeTool=lambda _: specific(tool_input={"path": "b"})) as (
        config,
        events,
    ):
        agent, model = agent_of(
            config, calls(("injected", {"path": "a"})), tools=[injected]
        )
        await agent.ainvoke(ask("go"))
    assert named(events, "BeforeTool")[0]["tool_input"] == {"path": "a"}
    assert "b after 2" in model.requests[1].text


async def test_tools_that_another_middleware_adds_are_hooked() -> None:
    class Dynamic(AgentMiddleware[Any, Any, Any]):
        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(request.override(tools=[*request.tools, read]))

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            return await handler(request.override(tool=read))

    block = {"decision": "deny", "reason": "not that file"}
    async with hooked(BeforeTool=lambda _: block) as (config, _):
        reply = calls(("read", {"path": "a"}))
        agent, model = agent_of(config, reply, middleware=[Dynamic()])
        await agent.ainvoke(ask("go"))
    assert model.requests[0].tools == ["read"]
    assert "not that file" in model.requests[1].text


async def test_tools_of_the_service_are_restricted_too() -> None:
    only = specific(toolConfig={"mode": "AUTO", "allowedFunctionNames": ["read"]})
    search = {"type": "web_search", "name": "web_search"}
    async with hooked(BeforeToolSelection=lambda _: only) as (config, events):
        agent, model = agent_of(config, "done", tools=[read, search])
        await agent.ainvoke(ask("go"))
    (event,) = named(events, "BeforeToolSelection")
    assert event["available_tools"] == ["read", "web_search"]
    assert model.requests[0].tools == ["read"]
