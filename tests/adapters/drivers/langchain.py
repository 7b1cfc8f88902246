"""LangChain agents under the suite for adapters."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ToolErrorMiddleware,
    ToolRetryMiddleware,
)
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain.tools import ToolRuntime
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from pydantic import Field

from hookline.adapters.langchain import HooklineMiddleware
from hookline.agent import ScriptedReply, Session
from hookline.testing.adapters import ModelRequest
from tests.adapters.scenarios import City, Scenario, ScenarioDriver, answer_for

MODES = ["values", "updates", "messages", "custom"]


class ScriptedChat(BaseChatModel):
    """Answers by a script, word by word where it is asked to stream."""

    reply: Callable[[int], ScriptedReply]
    requests: Any = Field(default_factory=list)  # of a scenario: not to be copied
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
        text = "\n".join(f"{one.type}: {one.text}" for one in messages)
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


class Rewriting(AgentMiddleware[Any, Any, Any]):
    """Changes requests and calls around whatever is inside of it."""

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        only = [one for one in request.tools if one.name == "read"]
        return await handler(request.override(tools=only, tool_choice="read"))

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        call = {**request.tool_call, "args": {"path": "b"}}
        return await handler(request.override(tool_call=call))


MIDDLEWARE: dict[str, Any] = {
    "rewriting": Rewriting,
    "retrying": lambda: ToolRetryMiddleware(
        max_retries=1, initial_delay=0, jitter=False
    ),
}
"""Other middleware of a row, before the hooks or after them."""


class LangChainDriver(ScenarioDriver):
    """Runs ``create_agent`` with every kind of entry point."""

    entries: Sequence[str] = ("async", "sync", "stream", "astream", "events")
    usual_entries: Sequence[str] = ("async", "sync")
    output_tool = "City"

    async def play(
        self, session: Session | None, scenario: Scenario, entry: str
    ) -> None:
        keeps = scenario.answers or len(scenario.turns) > 1
        options: dict[str, Any] = {"checkpointer": InMemorySaver() if keeps else None}
        agent = _agent(session, scenario, options)
        config: RunnableConfig = {}
        if scenario.conversation is not None:
            config = {"configurable": {"thread_id": scenario.conversation}}
        for turn in scenario.turns:
            given: Any = {"messages": [{"role": "user", "content": turn}]}
            if isinstance(turn, list):
                given = {"messages": turn}
            result = await _run(agent, given, config, entry, scenario.shown)
            while waiting := result.get("__interrupt__"):
                scenario.questions += [one.value for one in waiting]
                answer = scenario.take_answer()
                if answer is None:
                    break
                if scenario.elsewhere:
                    agent = _agent(session, scenario, options)
                resume: Any = answer
                if len(waiting) > 1:
                    resume = {
                        one.id: answer_for(answer, one.value["args"].get("path"))
                        for one in waiting
                    }
                command: Command[Any] = Command(resume=resume)
                result = await _run(agent, command, config, entry, scenario.shown)
            _note(scenario, result)


def _agent(
    session: Session | None, scenario: Scenario, options: Mapping[str, Any]
) -> Any:
    hooks: list[Any] = []
    if session is not None:
        subject = scenario.subject(session)
        hooks.append(HooklineMiddleware[None](subject, confirm=scenario.callback))
    if scenario.agents:
        return _workflow(scenario, hooks)
    others = scenario.options.get("middleware", {})
    hooks = [MIDDLEWARE[one]() for one in others.get("before", ())] + hooks
    hooks += [MIDDLEWARE[one]() for one in others.get("after", ())]
    if scenario.softens_errors:
        hooks.append(ToolErrorMiddleware(lambda error, _: str(error)))
    more = dict(options)
    if scenario.structured:
        native = scenario.options.get("native")
        strategy: Any = ProviderStrategy if native else ToolStrategy
        more["response_format"] = strategy(City)
    model = ScriptedChat(reply=scenario.reply, requests=scenario.requests)
    if scenario.options.get("shows_settings"):
        scenario.notes["settings"] = model.settings
    more |= scenario.options.get("agent", {})
    tools: list[Any] = [*scenario.functions(), *_helpers(hooks, scenario)]
    if scenario.options.get("service_tool"):
        tools.append({"type": "web_search", "name": "web_search"})
    prompt = scenario.options.get("system_prompt")
    return create_agent(model, tools, middleware=hooks, system_prompt=prompt, **more)


def _workflow(scenario: Scenario, hooks: list[Any]) -> Any:
    """A graph of agents, of which the first may hand over to the last."""
    last = list(scenario.agents)[-1]

    @tool
    def hand_over(runtime: ToolRuntime, says: str = "") -> Command[Any]:
        """Hand the conversation over."""
        done = ToolMessage(says, tool_call_id=runtime.tool_call_id)
        update = {"messages": [*runtime.state["messages"], done]} if says else None
        return Command(goto=last, graph=Command.PARENT, update=update)

    graph: Any = StateGraph(MessagesState)
    for name, replies in scenario.agents.items():
        requests = scenario.agent_requests.setdefault(name, [])
        model = ScriptedChat(reply=Scenario(replies=replies).reply, requests=requests)
        agent = create_agent(model, [hand_over], middleware=hooks, name=name)
        graph.add_node(name, agent, destinations=(last,))
    graph.add_edge(START, next(iter(scenario.agents)))
    return graph.compile()


def _helpers(hooks: Any, scenario: Scenario) -> list[Any]:
    """A tool that runs another agent, if the scenario has one."""
    if not scenario.helper:
        return []
    model = ScriptedChat(reply=scenario.helper_reply, requests=scenario.helper_requests)
    agent: Any = create_agent(
        model, scenario.functions(), middleware=hooks, name="assistant"
    )

    def given(text: str) -> Any:
        return {"messages": [{"role": "user", "content": text}]}

    async def run_async(input: str) -> str:  # noqa: A002  # as other frameworks name it
        return str((await agent.ainvoke(given(input)))["messages"][-1].text)

    def run(input: str) -> str:  # noqa: A002
        return str(agent.invoke(given(input))["messages"][-1].text)

    return [StructuredTool.from_function(run, run_async, "helper", "Help.")]


def _note(scenario: Scenario, result: Mapping[str, Any]) -> None:
    messages = result["messages"]
    last = messages[-1]
    scenario.results.append("waiting" if "__interrupt__" in result else str(last.text))
    if scenario.structured:
        scenario.notes["output"] = repr(result.get("structured_response"))
    scenario.recorded = repr(messages)
    scenario.recorded_inputs = [
        call["args"]
        for one in messages
        if isinstance(one, AIMessage)
        for call in one.tool_calls
    ]
    statuses = [one.status for one in messages if isinstance(one, ToolMessage)]
    scenario.notes["statuses"] = statuses


async def _run(
    agent: Any, given: Any, config: RunnableConfig, entry: str, shown: list[str]
) -> dict[str, Any]:
    if entry == "async":
        return dict(await agent.ainvoke(given, config))
    if entry == "sync":
        return dict(await asyncio.to_thread(agent.invoke, given, config))
    if entry == "events":
        return await _events(agent, given, config, shown)
    chunks: list[Any] = []
    if entry == "stream":
        chunks = await asyncio.to_thread(
            lambda: list(agent.stream(given, config, stream_mode=MODES))
        )
    else:
        async for chunk in agent.astream(given, config, stream_mode=MODES):
            chunks.append(chunk)
    shown += map(_text, chunks)
    found = [chunk for mode, chunk in chunks if mode == "values"]
    interrupts = [chunk for _, chunk in chunks if "__interrupt__" in chunk]
    return {**found[-1], **(interrupts[-1] if interrupts else {})}


async def _events(
    agent: Any, given: Any, config: RunnableConfig, shown: list[str]
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    async for event in agent.astream_events(given, config, version="v2"):
        # A tool reports its own end before AfterTool (see the page).
        if event["event"] != "on_tool_end":
            shown.append(_text(event))
        chunk = event["data"].get("chunk")
        if isinstance(chunk, dict) and "__interrupt__" in chunk:
            result |= chunk
    return {**event["data"]["output"], **result}


def _text(chunk: Any) -> str:
    """The words of a message as they are, so that a text in pieces is found too."""
    if isinstance(chunk, tuple) and chunk[0] == "messages":
        return str(chunk[1][0].text)
    return repr(chunk)
