"""Strands agents for the shared suite: a model that follows a script."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from strands import Agent, tool
from strands.models import Model
from strands.session import FileSessionManager

from hookline.adapters.strands import HooklineHooks
from hookline.agent import ScriptedReply, Session
from hookline.testing.adapters import ModelRequest, Ran, Task
from tests.adapters.hooks import Hooked


class StrandsModel(Model):
    """Gives replies one by one, in small chunks, and keeps what it was sent.

    A reply is a text, a text with calls of tools, chunks, or an exception to raise.
    """

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.requests: list[dict[str, Any]] = []
        self.config: dict[str, Any] = {"model_id": "scripted", "temperature": 1}

    def update_config(self, **model_config: Any) -> None:
        self.config.update(model_config)

    def get_config(self) -> dict[str, Any]:
        return self.config

    async def structured_output(
        self, output_model: Any, prompt: Any, system_prompt: Any = None, **kwargs: Any
    ) -> AsyncGenerator[dict[str, Any], None]:
        yield {"output": output_model()}

    async def stream(
        self,
        messages: Any,
        tool_specs: Any = None,
        system_prompt: Any = None,
        **kw: Any,
    ) -> AsyncGenerator[Any, None]:
        offered = [spec["name"] for spec in tool_specs or []]
        self.requests.append({"messages": messages, "tools": offered, **kw})
        reply = self.replies.pop(0) if self.replies else "the end"
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, list):
            for chunk in reply:
                yield chunk
            return
        text, calls = (reply, ()) if isinstance(reply, str) else _parts(reply)
        yield {"messageStart": {"role": "assistant"}}
        for chunk in _text_chunks(text):
            await asyncio.sleep(0)
            yield chunk
        for number, (name, tool_input) in enumerate(calls):
            for chunk in _call_chunks(
                name, f"{len(self.requests)}-{number}", tool_input
            ):
                yield chunk
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}


def _parts(reply: ScriptedReply) -> tuple[str, Sequence[tuple[str, Any]]]:
    return reply.text, reply.calls


def _text_chunks(text: str) -> Sequence[dict[str, Any]]:
    if not text:
        return []
    halves = (text[: len(text) // 2], text[len(text) // 2 :])
    deltas = [{"contentBlockDelta": {"delta": {"text": half}}} for half in halves]
    return [{"contentBlockStart": {"start": {}}}, *deltas, {"contentBlockStop": {}}]


def _call_chunks(name: str, call_id: str, tool_input: Any) -> list[dict[str, Any]]:
    start = {"toolUse": {"name": name, "toolUseId": f"{name}-{call_id}"}}
    delta = {"toolUse": {"input": json.dumps(tool_input)}}
    return [
        {"contentBlockStart": {"start": start}},
        {"contentBlockDelta": {"delta": delta}},
        {"contentBlockStop": {}},
    ]


class StrandsDriver:
    """Runs agents whose conversation is stored by a session manager."""

    entries: Sequence[str] = ("async", "sync", "stream")
    cannot: Mapping[str, str] = {}

    async def run(self, session: Session | None, task: Task, entry: str) -> Ran:
        model = StrandsModel(*task.replies)
        asks = task.confirm is not None
        hooks: list[Any] = (
            [] if session is None else [HooklineHooks(session.config, interrupts=asks)]
        )
        with tempfile.TemporaryDirectory() as folder:
            agent = Agent(
                model=model,
                tools=[
                    tool(task.tools.read),
                    tool(task.tools.write),
                    tool(task.tools.fail),
                ],
                hooks=hooks,
                session_manager=FileSessionManager(task.conversation, folder),
                callback_handler=None,
            )
            shown: list[str] = []
            result = await ask(agent, task.prompt, entry, shown)
            while result.stop_reason == "interrupt":
                answers = approvals(result, task.confirm is True)
                result = await ask(agent, answers, entry, shown)
            stored = [file.read_text() for file in Path(folder).rglob("*.json")]
        return Ran(
            answer=str(result).removesuffix("\n"),
            requests=[_request(request) for request in model.requests],
            shown="".join(shown),
            recorded="\n".join([repr(agent.messages), *stored]),
            recorded_inputs=_inputs(agent.messages),
        )


async def ask(agent: Agent, prompt: Any, entry: str, shown: list[str]) -> Any:
    """Run an agent by one of its entry points."""
    if entry == "async":
        return await agent.invoke_async(prompt)
    if entry == "sync":
        return await asyncio.to_thread(agent, prompt)
    result: Any = None
    async for event in agent.stream_async(prompt):
        result = event.get("result", result)
        # Events carry the state of the run, which holds the agent itself.
        shown.append(str({name: event.get(name) for name in SHOWN}))
    return result


SHOWN = ("data", "delta", "event", "message", "current_tool_use", "tool_stream_event")
"""What callers show of a stream."""


def approvals(result: Any, response: Any) -> list[Any]:
    """The same answer to all questions of a run."""
    return [
        {"interruptResponse": {"interruptId": one.id, "response": response}}
        for one in result.interrupts
    ]


def _request(request: dict[str, Any]) -> ModelRequest:
    return ModelRequest(text_of(request["messages"]), request["tools"])


def text_of(value: Any) -> str:
    """All text in messages, tool results included."""
    if isinstance(value, list):
        return "\n".join(map(text_of, value))
    if not isinstance(value, dict):
        return ""
    parts = (value.get(name) for name in ("content", "toolResult"))
    return "\n".join([value.get("text", ""), *map(text_of, parts)])


def _inputs(messages: Any) -> list[dict[str, Any]]:
    blocks = [block for message in messages for block in message["content"]]
    return [block["toolUse"]["input"] for block in blocks if "toolUse" in block]


@tool
def look(path: str) -> str:
    """Look at a file."""
    return f"content of {path}"


def calls(*paths: str, text: str = "") -> ScriptedReply:
    return ScriptedReply(text, tuple(("look", {"path": path}) for path in paths))


def agent_of(hooked: Hooked, *replies: Any, tools: Any = (look,), **more: Any) -> Agent:
    """A hooked agent whose model follows a script."""
    options: dict[str, Any] = {"callback_handler": None, **more}
    hooks = options.pop("hooks", [HooklineHooks(hooked.config)])
    return Agent(
        model=StrandsModel(*replies), tools=list(tools), hooks=hooks, **options
    )


def sent(agent: Any) -> list[dict[str, Any]]:
    """What the model was sent."""
    return list(agent.model.requests)
