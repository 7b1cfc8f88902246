"""Microsoft Agent Framework for the shared suite: a chat client with a script."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
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
from hookline.testing.adapters import ModelRequest, Ran, Task


class ScriptedClient(
    FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]
):
    """Gives replies one by one, and keeps what it was sent."""

    def __init__(self, *replies: ScriptedReply | str) -> None:
        super().__init__()
        self.replies = list(replies)
        self.requests: list[ModelRequest] = []

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
        text = "\n".join(
            str(content.to_dict()) for m in messages for content in m.contents
        )
        self.requests.append(ModelRequest(text, names))
        given = self.replies.pop(0) if self.replies else "the end"
        reply = ScriptedReply(given) if isinstance(given, str) else given
        text_part = [Content.from_text(reply.text)] if reply.text else []
        return [*text_part, *_calls(reply, len(self.requests))]


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
    with warnings.catch_warnings(action="ignore"):  # they call it experimental
        bundle = create_agent_hooks_middleware([interceptor], timeout=None, **options)
    return Agent(client=client, tools=tools, middleware=[bundle])


class AgentHooksDriver:
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

    async def run(self, session: Session | None, task: Task, entry: str) -> Ran:
        client = ScriptedClient(*task.replies)
        tools = task.tools
        resolver = None if task.confirm is None else Person(task.confirm)
        agent = agent_with(
            client,
            self.bare if session is None else HooklineInterceptor(session),
            [tools.read, tools.write, tools.fail],
            resolver=resolver,
        )
        thread = agent.create_session()
        shown: list[str] = []
        answer = await ask(agent, task.prompt, entry, shown, session=thread)
        return Ran(
            answer=answer,
            requests=client.requests,
            shown="".join(shown),
            recorded=repr(thread.to_dict()),
        )


class ContractDriver(AgentHooksDriver):
    """The same; agents without hooks have the middleware of the contract too."""

    bare = AllowAll()


async def ask(
    agent: Agent[Any], prompt: str, entry: str, shown: list[str], **options: Any
) -> str:
    """Run an agent; the reason, where it was denied."""

    def show(update: Any) -> None:
        shown.append(str(update.to_dict()))

    try:
        if entry == "async":
            return str((await agent.run(prompt, **options)).text)
        stream = agent.run(prompt, stream=True, **options)
        async for update in stream:
            show(update)
        return str((await stream.get_final_response()).text)
    except InterceptionBlocked as blocked:
        return blocked.result.verdict.reason or ""
