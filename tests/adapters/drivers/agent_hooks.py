"""Microsoft Agent Framework for the shared suite: a chat client with a script."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    create_agent_hooks_middleware,
)
from agent_hooks import (
    ApprovalOutcome,
    ApprovalRequest,
    ApprovalResolution,
    InterceptionBlocked,
    Verdict,
)

from hookline.adapters.agent_hooks import HooklineInterceptor
from hookline.agent import ScriptedReply, Session
from hookline.testing.adapters import ModelRequest
from tests.adapters.scenarios import Scenario, ScenarioDriver


class ScriptedClient(
    FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]
):
    """Answers by a script, and keeps what it was sent."""

    def __init__(
        self,
        reply: Callable[[int], ScriptedReply],
        requests: list[ModelRequest] | None = None,
    ) -> None:
        super().__init__()
        self._script = reply
        self.requests = [] if requests is None else requests

    def _inner_get_response(
        self, *, messages: Any, stream: bool, options: Any, **kwargs: Any
    ) -> Any:
        if stream:
            return ResponseStream(
                self._updates(messages, options), finalizer=ChatResponse.from_updates
            )
        return self._response(messages, options)

    async def _response(self, messages: Any, options: Any) -> ChatResponse[Any]:
        contents = self._reply(messages, options)
        return ChatResponse(
            messages=[Message("assistant", contents)], finish_reason="stop"
        )

    async def _updates(
        self, messages: Any, options: Any
    ) -> AsyncIterator[ChatResponseUpdate]:
        for content in self._reply(messages, options):
            for part in _halves(content):
                yield ChatResponseUpdate(role="assistant", contents=[part])

    def _reply(self, messages: Any, options: Any) -> list[Content]:
        names = [tool.name for tool in options.get("tools") or []]
        text = "\n".join(_line(m.role, one) for m in messages for one in m.contents)
        self.requests.append(ModelRequest(text, names))
        reply = self._script(len(self.requests) - 1)
        text_part = [Content.from_text(reply.text)] if reply.text else []
        return [*text_part, *_calls(reply, len(self.requests))]


def _line(role: str, content: Content) -> str:
    if content.type == "function_call":
        return f"call: {content.name} {content.arguments}"
    if content.type == "function_result":
        return f"result: {content.result}"
    return f"{role}: {content.text or content.to_dict()}"


def _calls(reply: ScriptedReply, request: int) -> list[Content]:
    return [
        Content.from_function_call(f"call-{request}-{n}", name, arguments=dict(given))
        for n, (name, given) in enumerate(reply.calls)
    ]


def _halves(content: Content) -> list[Content]:
    if content.type != "text" or not content.text:
        return [content]
    at = len(content.text) // 2
    return [Content.from_text(part) for part in (content.text[:at], content.text[at:])]


class Person:
    """An approval resolver that always says the same."""

    def __init__(self, agrees: bool) -> None:
        self.agrees = agrees
        self.asked: list[ApprovalRequest] = []

    def resolve(self, request: ApprovalRequest) -> ApprovalResolution:
        self.asked.append(request)
        outcome = ApprovalOutcome.APPROVE if self.agrees else ApprovalOutcome.REJECT
        verdict = Verdict.allow() if self.agrees else Verdict.deny(reason="not this")
        return ApprovalResolution(outcome, request.context_identity, verdict)


class AllowAll:
    """An interceptor without hooks: what is left is the cost of the contract."""

    def intercept(self, _: dict[str, Any], /) -> Verdict:
        return Verdict.allow()


def agent_with(
    client: ScriptedClient,
    interceptor: HooklineInterceptor | AllowAll | None,
    tools: Any,
    **options: Any,
) -> Agent[Any]:
    """An agent whose hooks may take as long as they need."""
    if interceptor is None:
        return Agent(client=client, tools=tools)
    bundle = bundle_of(interceptor, **options)
    return Agent(client=client, tools=tools, middleware=[bundle])


def bundle_of(
    interceptor: HooklineInterceptor | AllowAll,
    timeout: float | None = None,
    **options: Any,
) -> Any:
    with warnings.catch_warnings(action="ignore"):  # they call it experimental
        return create_agent_hooks_middleware([interceptor], timeout=timeout, **options)


class AgentHooksDriver(ScenarioDriver):
    """Runs agents whose interceptor has the session of a conversation."""

    bare: AllowAll | None = None
    """The interceptor of agents without hooks."""
    entries: Sequence[str] = ("async", "stream")
    cannot: Mapping[str, str] = {
        "tool-recorded": "the message keeps the arguments that the model gave",
        "result-failure": "the contract gives the type of an error, not its text",
        "selection": "the contract cannot take a tool out of a request",
        "model-answer": "the contract cannot answer in the model's place",
        "turn-reject": "the contract cannot go on after an answer: it is denied",
        "turn-reject-limit": "the contract cannot go on after an answer",
    }
    offers = frozenset({"model", "turns"})

    async def play(
        self, session: Session | None, scenario: Scenario, entry: str
    ) -> None:
        client = ScriptedClient(scenario.reply, scenario.requests)
        resolver = Person(scenario.answers[0]) if scenario.answers else None
        interceptor: Any = self.bare
        if session is not None:
            interceptor = HooklineInterceptor(session, confirm=scenario.callback)
        agent = agent_with(client, interceptor, scenario.functions(), resolver=resolver)
        thread = agent.create_session()
        try:
            for turn in scenario.turns:
                try:
                    answer = await ask(agent, turn, entry, scenario.shown, thread)
                except InterceptionBlocked as blocked:
                    answer = blocked.result.verdict.reason or ""
                    denied = scenario.notes.setdefault("denied at", [])
                    denied.append(blocked.interception_point.value)
                scenario.results.append(answer)
        finally:
            asked = resolver.asked if resolver else []
            scenario.questions += [one.verdict.reason for one in asked]
            scenario.recorded = repr(thread.to_dict())


class ContractDriver(AgentHooksDriver):
    """The same; agents without hooks have the middleware of the contract too."""

    bare = AllowAll()


async def ask(
    agent: Agent[Any], prompt: str, entry: str, shown: list[str], thread: Any
) -> str:
    """Run an agent, and show all that it streams."""
    if entry == "async":
        return str((await agent.run(prompt, session=thread)).text)
    stream = agent.run(prompt, stream=True, session=thread)
    shown.extend([str(update.to_dict()) async for update in stream])
    return str((await stream.get_final_response()).text)
