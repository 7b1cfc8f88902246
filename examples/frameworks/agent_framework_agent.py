"""Microsoft Agent Framework with hooks, offline, through AGENT-HOOKS."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    create_agent_hooks_middleware,
)
from agent_hooks import InterceptionBlocked

from hookline import Config, HookSystem
from hookline.adapters.agent_hooks import HooklineInterceptor

config = Config()
hooks = HookSystem(config)  # hooks from settings files work the same


@hooks.on("BeforeAgent")
def no_payroll(event: dict[str, Any]) -> dict[str, Any] | None:
    if "salary" in event["prompt"]:
        return {"decision": "deny", "reason": "ask people operations"}
    return None


@hooks.on("BeforeTool", matcher="write_file")
def guard(event: dict[str, Any]) -> dict[str, Any] | None:
    path = event["tool_input"]["path"]
    if path.endswith(".env"):
        return {"decision": "deny", "reason": "keep secrets out of files"}
    if path.endswith(".sh"):
        return {"decision": "ask", "reason": f"May {path} be written?"}
    return None


@hooks.on("AfterModel")
def redact(event: dict[str, Any]) -> dict[str, Any] | None:
    text = event["llm_response"]["text"].replace("ops@example.com", "[e-mail]")
    return {"hookSpecificOutput": {"llm_response": {"text": text}}}


def write_file(path: str, text: str) -> str:
    """Write a file."""
    print(f"  (the tool writes {path})")
    return f"wrote {path}"


class FakeClient(
    FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]
):
    """A chat client that calls a tool, or talks, as it is told."""

    def __init__(self, *replies: Any) -> None:
        super().__init__()
        self.replies = list(replies)

    async def _inner_get_response(
        self, *, messages: Any, **_: Any
    ) -> ChatResponse[Any]:
        for content in messages[-1].contents:
            if content.type == "function_result":
                print("tool:", content.result)
        reply = self.replies.pop(0)
        if isinstance(reply, dict):
            path = reply["path"]
            reply = Content.from_function_call(path, "write_file", arguments=reply)
        return ChatResponse(messages=[Message("assistant", [reply])])


def ask_person(question: Any) -> bool:
    print("question:", question.reason)
    return True  # a person says


def middleware() -> Any:
    interceptor = HooklineInterceptor(config, confirm=ask_person)
    # Its time limit is 5 seconds; hooks, and people, have limits of their own.
    return create_agent_hooks_middleware([interceptor], timeout=None)


async def main() -> None:
    client = FakeClient(
        {"path": "prod.env", "text": "KEY=1"},
        {"path": "deploy.sh", "text": "..."},
        "Done. Ask ops@example.com about it.",
    )
    agent = Agent(client=client, tools=[write_file], middleware=[middleware()])
    async with config:
        print("result:", (await agent.run("Set it up.")).text)
        try:
            await agent.run("What is her salary?")
        except InterceptionBlocked as blocked:
            print("blocked:", blocked.result.verdict.reason)


if __name__ == "__main__":
    asyncio.run(main())
