"""Google ADK under the suite for adapters, with a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types
from pydantic import Field

from hookline.adapters.google_adk import HooklineRunner
from hookline.agent import ScriptedReply, Session
from hookline.testing.adapters import ModelRequest, Ran, Task

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
            for part in [types.Part(text=one) for one in reply.text]:
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
    known = [ScriptedReply(one) if isinstance(one, str) else one for one in replies]
    task = Task(replies=known)
    return ScriptedLlm(reply=task.reply)


def call(name: str, **args: Any) -> ScriptedReply:
    """A reply that calls one tool."""
    return ScriptedReply(calls=((name, args),))


def user(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def text_of(event: Event) -> str:
    parts = (event.content.parts if event.content else None) or []
    return "".join(part.text or "" for part in parts)


def answer_of(events: Sequence[Event]) -> str:
    """What an application shows as the result: the text of the last final response."""
    final = [text_of(one) for one in events if one.is_final_response()]
    return next((text for text in reversed(final) if text), "")


def approval(events: Sequence[Event], confirmed: bool) -> types.Content | None:
    """A person's answer to every question of a run; None if there is none."""
    asked = [fc for one in events for fc in one.get_function_calls()]
    answers = [
        types.FunctionResponse(
            id=fc.id, name=CONFIRM, response={"confirmed": confirmed}
        )
        for fc in asked
        if fc.name == CONFIRM
    ]
    parts = [types.Part(function_response=one) for one in answers]
    return types.Content(role="user", parts=parts) if parts else None


def sent(request: LlmRequest) -> str:
    """All text of a request, calls and results included."""
    system = request.config.system_instruction
    dumped = [one.model_dump(exclude_none=True) for one in request.contents]
    return json.dumps([str(system), dumped], default=str, ensure_ascii=False)


def offered(request: LlmRequest) -> list[str]:
    tools = request.config.tools or []
    declared = [getattr(tool, "function_declarations", None) or [] for tool in tools]
    return [one.name or "" for some in declared for one in some]


class AdkDriver:
    """Runs an LlmAgent by HooklineRunner."""

    entries: Sequence[str] = ("async", "sync", "stream")
    cannot: Mapping[str, str] = {}

    async def run(self, session: Session | None, task: Task, entry: str) -> Ran:
        tools = task.tools
        llm = ScriptedLlm(reply=task.reply)
        agent = LlmAgent(
            name="tester", model=llm, tools=[tools.read, tools.write, tools.fail]
        )
        service = InMemorySessionService()
        ids: dict[str, Any] = {"user_id": "u", "session_id": task.conversation}
        await service.create_session(app_name="app", **ids)
        runner = _runner(session, task, agent, service)
        events = await take(runner, entry, user(task.prompt), **ids)
        said = approval(events, task.confirm is True)
        if said is not None:
            events += await take(runner, entry, said, **ids)
        kept = await service.get_session(app_name="app", **ids)
        assert kept is not None
        return Ran(
            answer=answer_of(events),
            requests=[ModelRequest(sent(one), offered(one)) for one in llm.seen],
            shown="".join(map(text_of, events)),
            recorded=kept.model_dump_json(),
            recorded_inputs=inputs(kept.events),
        )


def _runner(
    session: Session | None, task: Task, agent: LlmAgent, service: Any
) -> Runner:
    given = {"app_name": "app", "agent": agent, "session_service": service}
    if session is None:
        return Runner(**given)
    return HooklineRunner(session.config, approval=task.confirm is not None, **given)


def inputs(events: Sequence[Event]) -> list[dict[str, Any]]:
    """The inputs of the calls that ADK recorded."""
    calls = [fc for one in events for fc in one.get_function_calls()]
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
