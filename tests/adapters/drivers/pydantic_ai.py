"""pydantic-ai under the suite for adapters, by each of its entry points."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolFailed,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from hookline.adapters.pydantic_ai import HooklineCapability
from hookline.agent import ScriptedReply, Session
from hookline.testing.adapters import ModelRequest, Ran, Task

Reply = Callable[[int], ScriptedReply]


class FakeModel:
    """A FunctionModel that answers by a script and keeps what it was sent."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.requests: list[ModelRequest] = []
        self.model = FunctionModel(self._request, stream_function=self._stream)

    def _take(self, messages: list[ModelMessage], info: AgentInfo) -> ScriptedReply:
        parts = [part for message in messages for part in message.parts]
        text = "\n".join(str(getattr(part, "content", "")) for part in parts)
        names = [tool.name for tool in info.function_tools]
        self.requests.append(ModelRequest(text, names))
        return self._reply(len(self.requests) - 1)

    def _request(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        reply = self._take(messages, info)
        text = [TextPart(reply.text)] if reply.text else []
        return ModelResponse([*text, *(ToolCallPart(*call) for call in reply.calls)])

    async def _stream(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        reply = self._take(messages, info)
        for at in range(0, len(reply.text), 5):
            yield reply.text[at : at + 5]
        for index, (name, given) in enumerate(reply.calls):
            call_id = f"call-{len(self.requests)}-{index}"
            yield {
                index + 1: DeltaToolCall(name, json.dumps(given), tool_call_id=call_id)
            }


class Shown:
    """What a run showed its caller, and how it ended."""

    def __init__(self) -> None:
        self.output: Any = None
        self.messages: list[ModelMessage] = []
        self.events: list[str] = []

    def end(self, run: Any, output: Any) -> None:
        self.output, self.messages = output, run.all_messages()


async def in_thread(start: Callable[[], object]) -> None:
    """Run plain code, with an event loop that pydantic-ai would leave open."""

    def work() -> None:
        with asyncio.Runner() as runner:
            asyncio.set_event_loop(runner.get_loop())
            start()

    await asyncio.to_thread(work)


async def run(agent: Agent[None, Any], shown: Shown, **given: Any) -> None:
    result = await agent.run(**given)
    shown.end(result, result.output)


async def run_sync(agent: Agent[None, Any], shown: Shown, **given: Any) -> None:
    def start() -> None:
        result = agent.run_sync(**given)
        shown.end(result, result.output)

    await in_thread(start)


async def run_stream(agent: Agent[None, Any], shown: Shown, **given: Any) -> None:
    async with agent.run_stream(**given) as result:
        async for output in result.stream_output(debounce_by=None):
            shown.events.append(str(output))
        shown.end(result, await result.get_output())


async def run_stream_sync(agent: Agent[None, Any], shown: Shown, **given: Any) -> None:
    def stream() -> None:
        with agent.run_stream_sync(**given) as result:
            shown.events.extend(map(str, result.stream_output(debounce_by=None)))
            shown.end(result, result.get_output())

    await in_thread(stream)


async def run_stream_events(
    agent: Agent[None, Any], shown: Shown, **given: Any
) -> None:
    async with agent.run_stream_events(**given) as events:
        async for event in events:
            shown.events.append(str(event))
            if event.event_kind == "agent_run_result":
                shown.end(event.result, event.result.output)


async def iterate(agent: Agent[None, Any], shown: Shown, **given: Any) -> None:
    async with agent.iter(**given) as agent_run:
        async for node in agent_run:
            if Agent.is_model_request_node(node) or Agent.is_call_tools_node(node):
                async with node.stream(agent_run.ctx) as stream:
                    shown.events.extend([str(event) async for event in stream])
    assert agent_run.result is not None
    shown.end(agent_run.result, agent_run.result.output)


ENTRIES: dict[str, Any] = {
    "run": run,
    "run_sync": run_sync,
    "run_stream": run_stream,
    "run_stream_sync": run_stream_sync,
    "run_stream_events": run_stream_events,
    "iter": iterate,
}


class PydanticAIDriver:
    """Runs an ``Agent`` with a FunctionModel."""

    entries: Sequence[str] = tuple(ENTRIES)
    cannot: Mapping[str, str] = {}

    async def run(self, session: Session | None, task: Task, entry: str) -> Ran:
        fake, shown = FakeModel(task.reply), Shown()
        agent = _agent(session, task, fake)
        given: dict[str, Any] = {"conversation_id": task.conversation}
        await ENTRIES[entry](agent, shown, user_prompt=task.prompt, **given)
        if isinstance(shown.output, DeferredToolRequests):
            approvals: dict[str, Any] = {
                call.tool_call_id: task.confirm is True
                for call in shown.output.approvals
            }
            given["deferred_tool_results"] = DeferredToolResults(approvals=approvals)
            given["message_history"] = shown.messages
            await ENTRIES[entry](agent, shown, **given)
        return Ran(
            answer=shown.output,
            requests=fake.requests,
            shown="\n".join(shown.events),
            recorded=str(shown.messages),
            recorded_inputs=_inputs(shown.messages),
        )


def _agent(session: Session | None, task: Task, fake: FakeModel) -> Agent[None, Any]:
    tools = task.tools

    def fail(path: str) -> str:
        """Read a file; this is how a tool of pydantic-ai tells a failure."""
        try:
            return tools.fail(path)
        except OSError as error:
            raise ToolFailed(str(error)) from error

    return Agent(
        fake.model,
        output_type=str if task.confirm is None else [str, DeferredToolRequests],
        tools=[tools.read, tools.write, fail],
        capabilities=[HooklineCapability(session.config)] if session else [],
    )


def _inputs(messages: list[ModelMessage]) -> list[dict[str, Any]]:
    parts = [part for message in messages for part in message.parts]
    return [part.args_as_dict() for part in parts if isinstance(part, ToolCallPart)]
