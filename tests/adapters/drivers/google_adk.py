"""Google ADK under the suite for adapters, with a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App, ResumabilityConfig
from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import START, Workflow
from google.genai import types
from pydantic import Field

from hookline.adapters.google_adk import HooklinePlugin, HooklineRunner
from hookline.agent import ScriptedReply, Session
from hookline.testing.adapters import ModelRequest
from tests.adapters.scenarios import (
    City,
    Scenario,
    ScenarioDriver,
    answer_for,
    script,
)

CONFIRM = "adk_request_confirmation"
SSE = RunConfig.model_validate({"streaming_mode": "sse"})


class ScriptedLlm(BaseLlm):
    """Answers by a script: one reply for each request, counted from 0."""

    model: str = "scripted"
    reply: Callable[[int], ScriptedReply]
    seen: list[LlmRequest] = Field(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.seen.append(llm_request.model_copy(deep=True))
        reply = self.reply(len(self.seen) - 1)
        parts = [types.Part(text=reply.text)] if reply.text else []
        if stream:
            for part in [types.Part(text=letter) for letter in reply.text]:
                content = types.Content(role="model", parts=[part])
                yield LlmResponse(content=content, partial=True)
        parts += [
            types.Part.from_function_call(name=name, args=dict(args))
            for name, args in reply.calls
        ]
        content = types.Content(role="model", parts=parts)
        yield LlmResponse(content=content, finish_reason=types.FinishReason.STOP)


def scripted(*replies: ScriptedReply | str) -> ScriptedLlm:
    """A model with these replies, and "the end" after the last one."""
    return ScriptedLlm(reply=script(*replies))


def user(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def text_of(event: Event) -> str:
    parts = (event.content.parts if event.content else None) or []
    return "".join(part.text or "" for part in parts)


def answer_of(events: Sequence[Event]) -> str:
    """What an application shows as the result: the text of the last final response."""
    final = [text_of(event) for event in events if event.is_final_response()]
    return next((text for text in reversed(final) if text), "")


def questions_of(events: Sequence[Event]) -> list[types.FunctionCall]:
    """What a run asks a person."""
    calls = [fc for event in events for fc in event.get_function_calls()]
    return [fc for fc in calls if fc.name == CONFIRM]


def approval(events: Sequence[Event], answer: Any) -> types.Content:
    """A person's answer to every question of a run."""
    parts = [
        types.Part(
            function_response=types.FunctionResponse(
                id=fc.id,
                name=CONFIRM,
                response={"confirmed": answer_for(answer, _path(fc))},
            )
        )
        for fc in questions_of(events)
    ]
    return types.Content(role="user", parts=parts)


def _path(question: types.FunctionCall) -> Any:
    return (question.args or {})["originalFunctionCall"]["args"].get("path")


def sent(request: LlmRequest) -> str:
    """All text of a request, calls and results included."""
    parts = [part for content in request.contents for part in content.parts or []]
    lines = [*map(_line, parts)]
    system = str(request.config.system_instruction or "")
    lines.insert(0, system.replace(_IDENTITY, "").strip())
    return "\n".join(filter(None, lines))


_IDENTITY = 'You are an agent. Your internal name is "tester".'


def _line(part: types.Part) -> str:
    if part.function_call is not None:
        return f"call: {part.function_call.name} {part.function_call.args}"
    if part.function_response is not None:
        return f"result: {part.function_response.response}"
    return f"text: {part.text}"


def offered(request: LlmRequest) -> list[str]:
    tools = request.config.tools or []
    declared = [getattr(tool, "function_declarations", None) or [] for tool in tools]
    return [function.name or "" for functions in declared for function in functions]


class AdkDriver(ScenarioDriver):
    """Runs an LlmAgent by HooklineRunner."""

    entries: Sequence[str] = ("async", "sync", "stream")
    helper_input = "request"

    async def play(
        self, session: Session | None, scenario: Scenario, entry: str
    ) -> None:
        service = InMemorySessionService()
        name = scenario.conversation or "own"
        ids: dict[str, Any] = {"user_id": "u", "session_id": name}
        await service.create_session(app_name="app", **ids)
        llm = ScriptedLlm(reply=scenario.reply)
        helper = ScriptedLlm(reply=scenario.helper_reply)
        asks = bool(scenario.answers)
        steps = [_step(scenario, name) for name in scenario.agents]
        agent: Any = _agent(scenario, llm, helper)
        if steps:
            agent = _workflow(scenario.options["workflow"], steps)
        runner = _runner(session, scenario, agent, service)
        try:
            for turn in scenario.turns:
                events = await take(runner, entry, user(turn), **ids)
                while questions := questions_of(events):
                    scenario.questions += [call.args for call in questions]
                    answer = scenario.take_answer()
                    if answer is None:
                        break
                    if scenario.elsewhere:
                        agent = _agent(scenario, llm, helper)
                        runner = _runner(session, scenario, agent, service, asks=asks)
                    scenario.shown += map(text_of, events)
                    events = await take(runner, entry, approval(events, answer), **ids)
                waits = bool(questions_of(events))
                scenario.results.append("waiting" if waits else answer_of(events))
                scenario.shown += map(text_of, events)
                if steps:
                    texts = scenario.notes.setdefault("texts", [])
                    texts += filter(None, map(text_of, events))
        finally:
            scenario.requests += map(_request, llm.seen)
            scenario.helper_requests += map(_request, helper.seen)
            scenario.agent_requests = {
                step.name: [_request(request) for request in step.model.seen]
                for step in steps
            }
            stored = await service.get_session(app_name="app", **ids)
            assert stored is not None
            scenario.recorded = stored.model_dump_json()
            scenario.recorded_inputs = inputs(stored.events)
            if scenario.structured:
                scenario.notes["output"] = stored.state.get("place")


def _request(request: LlmRequest) -> ModelRequest:
    return ModelRequest(sent(request), offered(request))


def _step(scenario: Scenario, name: str) -> Any:
    """An agent of a workflow."""
    schema = City if scenario.structured else None
    tools = [] if scenario.structured else list(scenario.functions())
    llm = scripted(*scenario.agents[name])
    return LlmAgent(name=name, model=llm, tools=tools, output_schema=schema)


def _workflow(kind: str, steps: Sequence[Any]) -> Any:
    if kind == "graph":
        return Workflow(name="flow", edges=[(START, *steps)])
    kinds = {"sequence": SequentialAgent, "parallel": ParallelAgent, "loop": LoopAgent}
    return kinds[kind](name="flow", sub_agents=list(steps))


def _agent(scenario: Scenario, llm: ScriptedLlm, helper: ScriptedLlm) -> LlmAgent:
    options = scenario.options
    tools: list[Any] = list(scenario.functions())
    more: dict[str, Any] = {}
    if options.get("confirmed_by_adk"):
        tools[0] = FunctionTool(tools[0], require_confirmation=True)
    if scenario.helper:
        schema = City if options.get("structured_helper") else None
        agent = LlmAgent(
            name="helper",
            model=helper,
            tools=[] if schema else list(tools),
            output_schema=schema,
            mode=options.get("helper_mode"),
        )
        if "helper_mode" in options:
            more["sub_agents"] = [agent]
        else:
            tools.append(AgentTool(agent))
    if scenario.structured:
        more |= {"output_schema": City, "output_key": "place"}
    instruction = scenario.options.get("system_prompt", "")
    return LlmAgent(
        name="tester", model=llm, tools=tools, instruction=instruction, **more
    )


def _runner(
    session: Session | None,
    scenario: Scenario,
    agent: Any,
    service: Any,
    *,
    asks: bool = False,
) -> Runner:
    options = {"app_name": "app", "agent": agent, "session_service": service}
    if session is None:
        return Runner(**options)
    asks = asks or bool(scenario.answers)
    subject = scenario.subject(session)
    asking: dict[str, Any] = {"approval": asks, "confirm": scenario.callback}
    app = App(name="app", root_agent=agent)
    if scenario.options.get("resumable"):
        app.resumability_config = ResumabilityConfig(is_resumable=True)
    if scenario.options.get("plain"):
        app.plugins = [HooklinePlugin(subject, **asking)]
        return Runner(app=app, session_service=service)
    return HooklineRunner(subject, **asking, app=app, session_service=service)


def inputs(events: Sequence[Event]) -> list[dict[str, Any]]:
    """The inputs of the calls that ADK recorded."""
    calls = [fc for event in events for fc in event.get_function_calls()]
    return [fc.args or {} for fc in calls if fc.name != CONFIRM]


async def take(
    runner: Runner, entry: str, message: types.Content, **ids: Any
) -> list[Event]:
    """All events of a run."""
    if entry == "sync":
        run = runner.run(new_message=message, **ids)
        return await asyncio.to_thread(lambda: list(run))
    config = SSE if entry == "stream" else None
    run_async = runner.run_async(new_message=message, run_config=config, **ids)
    return [event async for event in run_async]
