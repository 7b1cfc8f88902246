"""Runs agents of the OpenAI Agents SDK with its scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool
from agents.testing import ModelCall, ScriptedModel, assistant_message, function_call

from hookline.adapters.openai_agents import HooklineRunner, hooked_agent
from hookline.agent import ScriptedReply, Session
from hookline.testing.adapters import ModelRequest, Ran, Task

QUIET = RunConfig(tracing_disabled=True)


class OpenAIAgentsDriver:
    """Runs a hooked agent by each method of ``HooklineRunner``."""

    entries: Sequence[str] = ("async", "sync", "stream")
    cannot: Mapping[str, str] = {
        "tool-ask-nobody": "the run waits: the call is in ``result.interruptions``",
    }

    async def run(self, session: Session | None, task: Task, entry: str) -> Ran:
        model, memory = ScriptedModel(steps_of(task)), SQLiteSession(task.conversation)
        shown: list[str] = []
        result = await self.result(session, task, entry, model, memory, shown)
        items = [*result.to_input_list(), *await memory.get_items()]
        return Ran(
            answer=result.final_output,
            requests=[request_of(call) for call in model.calls],
            shown="\n".join(shown),
            recorded=repr((items, result.new_items, result.raw_responses)),
            recorded_inputs=[
                json.loads(item["arguments"])
                for item in result.to_input_list()
                if item.get("type") == "function_call"
            ],
        )

    async def result(
        self,
        session: Session | None,
        task: Task,
        entry: str,
        model: ScriptedModel,
        memory: SQLiteSession,
        shown: list[str],
    ) -> Any:
        """Run an agent to its end, with a person's answers."""
        box = task.tools
        tools = [function_tool(one) for one in (box.read, box.write, box.fail)]
        agent, runner = Agent(name="Worker", model=model, tools=[*tools]), Runner
        if session is not None:
            # The id comes from the SDK's own session.
            agent = hooked_agent(agent, session.view("other"))
            runner = cast("Any", HooklineRunner)
        given: Any = task.prompt
        options = {"session": memory, "run_config": QUIET}
        while True:
            result = await _ran(
                runner, entry, agent, given, options=options, shown=shown
            )
            if not result.interruptions:
                return result
            given = result.to_state()
            answer = given.approve if task.confirm else given.reject
            for item in result.interruptions:
                answer(item)


class MeasuredDriver(OpenAIAgentsDriver):
    """Runs an agent without a look at what it did."""

    async def run(self, session: Session | None, task: Task, entry: str) -> Ran:
        model, memory = ScriptedModel(steps_of(task)), SQLiteSession(task.conversation)
        result = await self.result(session, task, entry, model, memory, [])
        return Ran(answer=result.final_output)


async def _ran(
    runner: Any, entry: str, *given: Any, options: dict[str, Any], shown: list[str]
) -> Any:
    if entry == "async":
        return await runner.run(*given, **options)
    if entry == "sync":
        return await asyncio.to_thread(_run_sync, runner, given, options)
    result = runner.run_streamed(*given, **options)
    shown.extend([repr(event) async for event in result.stream_events()])
    return result


def _run_sync(runner: Any, given: Any, options: dict[str, Any]) -> Any:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return runner.run_sync(*given, **options)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def steps_of(task: Task) -> list[Any]:
    return [output_of(task.reply(at), at) for at in range(len(task.replies) + 10)]


def output_of(reply: ScriptedReply, at: int) -> list[Any]:
    text = [assistant_message(reply.text)] if reply.text else []
    return text + [
        function_call(name, dict(given), call_id=f"call-{at}-{index}")
        for index, (name, given) in enumerate(reply.calls)
    ]


def request_of(call: ModelCall) -> ModelRequest:
    """What the model was sent, as text."""
    names = [tool.name for tool in call.tools]
    names += [handoff.tool_name for handoff in call.handoffs]
    return ModelRequest(json.dumps(call.input, default=repr), names)
