"""LangChain agents under the suite for adapters."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ToolErrorMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import Field

from hookline.adapters.langchain import HooklineMiddleware
from hookline.agent import ScriptedReply, Session
from hookline.testing.adapters import ModelRequest, Ran, Task

MODES = ["values", "updates", "messages", "custom"]


class ScriptedChat(BaseChatModel):
    """Answers by a script, word by word where it is asked to stream."""

    reply: Callable[[int], ScriptedReply]
    requests: list[ModelRequest] = Field(default_factory=list)
    settings: list[dict[str, Any]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **more: Any) -> Any:
        names = [
            tool["name"] if isinstance(tool, dict) else tool.name for tool in tools
        ]
        return self.bind(tool_names=names, **more)

    def _message(self, messages: list[BaseMessage], given: dict[str, Any]) -> AIMessage:
        at = len(self.requests)
        names = given.pop("tool_names", [])
        self.settings.append(given)
        text = "\n".join(str(one.text) for one in messages)
        self.requests.append(ModelRequest(text, names))
        reply = self.reply(at)
        calls = [
            {"name": name, "args": dict(args), "id": f"call-{at}-{index}"}
            for index, (name, args) in enumerate(reply.calls)
        ]
        return AIMessage(reply.text, tool_calls=calls)

    def _generate(
        self, messages: list[BaseMessage], *_: Any, **given: Any
    ) -> ChatResult:
        message = self._message(messages, given)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self, messages: list[BaseMessage], *_: Any, **given: Any
    ) -> Iterator[ChatGenerationChunk]:
        message = self._message(messages, given)
        for word in re.split(r"(\s)", str(message.text)):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))
        chunks = [
            tool_call_chunk(
                name=call["name"],
                args=json.dumps(call["args"]),
                id=call["id"],
                index=at,
            )
            for at, call in enumerate(message.tool_calls)
        ]
        yield ChatGenerationChunk(
            message=AIMessageChunk(content="", tool_call_chunks=chunks)
        )


class LangChainDriver:
    """Runs ``create_agent`` with every kind of entry point."""

    entries: Sequence[str] = ("async", "sync", "stream", "astream", "events")
    cannot: Mapping[str, str] = {}

    async def run(self, session: Session | None, task: Task, entry: str) -> Ran:
        tools, model = task.tools, ScriptedChat(reply=task.reply)
        hooks = [] if session is None else [HooklineMiddleware[None](session.config)]
        agent = create_agent(
            model,
            [tools.read, tools.write, tools.fail],
            middleware=[*hooks, ToolErrorMiddleware(lambda error, _: str(error))],
            checkpointer=None if task.confirm is None else InMemorySaver(),
        )
        config: RunnableConfig = {"configurable": {"thread_id": task.conversation}}
        shown: list[Any] = []
        given: Any = {"messages": [{"role": "user", "content": task.prompt}]}
        result = await _run(agent, given, config, entry, shown)
        while "__interrupt__" in result:
            answer: Command[Any] = Command(resume=task.confirm)
            result = await _run(agent, answer, config, entry, shown)
        messages = result["messages"]
        return Ran(
            answer=str(messages[-1].text),
            requests=model.requests,
            shown="".join(map(_text, shown)),
            recorded=repr(messages),
            recorded_inputs=[
                call["args"]
                for one in messages
                if isinstance(one, AIMessage)
                for call in one.tool_calls
            ],
        )


async def _run(
    agent: Any, given: Any, config: RunnableConfig, entry: str, shown: list[Any]
) -> dict[str, Any]:
    if entry == "async":
        return dict(await agent.ainvoke(given, config))
    if entry == "sync":
        return dict(await asyncio.to_thread(agent.invoke, given, config))
    if entry == "events":
        return await _events(agent, given, config, shown)
    chunks = []
    if entry == "stream":
        chunks = await asyncio.to_thread(
            lambda: list(agent.stream(given, config, stream_mode=MODES))
        )
    else:
        async for chunk in agent.astream(given, config, stream_mode=MODES):
            chunks.append(chunk)
    shown += chunks
    found = [chunk for mode, chunk in chunks if mode == "values"]
    interrupts = [chunk for _, chunk in chunks if "__interrupt__" in chunk]
    return {**found[-1], **(interrupts[-1] if interrupts else {})}


async def _events(
    agent: Any, given: Any, config: RunnableConfig, shown: list[Any]
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    async for event in agent.astream_events(given, config, version="v2"):
        # A tool reports its own end before AfterTool (see the page).
        if event["event"] != "on_tool_end":
            shown.append(event)
        chunk = event["data"].get("chunk")
        if isinstance(chunk, dict) and "__interrupt__" in chunk:
            result |= chunk
    return {**event["data"]["output"], **result}


def _text(chunk: Any) -> str:
    """The words of a message as they are, so that a text in pieces is found too."""
    if isinstance(chunk, tuple) and chunk[0] == "messages":
        return str(chunk[1][0].text)
    return repr(chunk)
