"""LangChain agents under the suite for adapters."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NotRequired

from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ModelFallbackMiddleware,
    ToolErrorMiddleware,
    ToolRetryMiddleware,
)
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain.tools import InjectedState, ToolRuntime
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    ToolMessage,
)
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt
from pydantic import Field

from hookline.adapters.langchain import HooklineMiddleware
from hookline.agent import ScriptedReply, Session
from hookline.testing.adapters import ModelRequest
from tests.adapters.scenarios import (
    City,
    Scenario,
    ScenarioDriver,
    answer_for,
    script,
)

MODES = ["values", "updates", "messages", "custom", "debug", "tasks", "checkpoints"]


class ScriptedChat(BaseChatModel):
    """Answers by a script, word by word where it is asked to stream."""

    reply: Callable[[int], ScriptedReply]
    requests: Any = Field(default_factory=list)  # of a scenario: not to be copied
    settings: list[dict[str, Any]] = Field(default_factory=list)
    blocks: list[Any] = Field(default_factory=list)
    """The content of a message with calls, as some services repeat them there."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **more: Any) -> Any:
        names = [
            tool["name"] if isinstance(tool, dict) else tool.name for tool in tools
        ]
        return self.bind(tool_names=names, **more)

    def _message(
        self, messages: list[BaseMessage], options: dict[str, Any]
    ) -> AIMessage:
        at = len(self.requests)
        names = options.pop("tool_names", [])
        self.settings.append(options)
        self.requests.append(ModelRequest("\n".join(map(_line, messages)), names))
        reply = self.reply(at)
        calls = [
            {"name": name, "args": dict(args), "id": f"call-{at}-{index}"}
            for index, (name, args) in enumerate(reply.calls)
        ]
        return AIMessage((calls and self.blocks) or reply.text, tool_calls=calls)

    def _generate(
        self, messages: list[BaseMessage], *_: Any, **options: Any
    ) -> ChatResult:
        message = self._message(messages, options)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self, messages: list[BaseMessage], *_: Any, **options: Any
    ) -> Iterator[ChatGenerationChunk]:
        message = self._message(messages, options)
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


def _line(message: BaseMessage) -> str:
    is_text = isinstance(message.content, str)
    return f"{message.type}: {message.text if is_text else message.content}"


class Rewriting(AgentMiddleware[Any, Any, Any]):
    """Changes requests and calls around whatever is inside of it."""

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        only = [tool for tool in request.tools if tool.name == "read"]
        return await handler(request.override(tools=only, tool_choice="read"))

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        call = {**request.tool_call, "args": {"path": "b"}}
        return await handler(request.override(tool_call=call))


class Adding(AgentMiddleware[Any, Any, Any]):
    """Adds a tool that the agent does not have."""

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(tools=[*request.tools, give]))

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(tool=give))


MIDDLEWARE: dict[str, Any] = {
    "rewriting": Rewriting,
    "adding": Adding,
    "falling back": lambda: ModelFallbackMiddleware(
        ScriptedChat(reply=script("the s3cret is out"))
    ),
    "retrying": lambda: ToolRetryMiddleware(
        max_retries=1, initial_delay=0, jitter=False
    ),
}
"""Other middleware of a row, before the hooks or after them."""


class Counted(AgentState[Any]):
    """A state that a tool may change."""

    count: NotRequired[int]


MORE_MESSAGES: dict[str, list[Any]] = {
    "human": [HumanMessage("the token")],
    "dict": [{"role": "user", "content": "the token"}],
    "pair": [("user", "the token")],
    "blocks": [HumanMessage([{"type": "text", "text": "the token"}])],
    "none": [],
}


@tool
def deploy(shape: str, more: str, runtime: ToolRuntime) -> Any:
    """Count in the state of the agent, and say more than one thing."""
    done = ToolMessage("done", tool_call_id=runtime.tool_call_id)
    messages = MORE_MESSAGES[more]
    if shape == "command":
        return Command(update={"count": 1, "messages": [done, *messages]})
    update = {"count": 1, "messages": messages} if messages else {"count": 1}
    return [Command(update=update), done]


@tool(response_format="content_and_artifact")
def picture(path: str) -> tuple[list[Any], bytes]:
    """Load a picture."""
    image = {"type": "image", "url": "https://example.com/a.png"}
    return [{"type": "text", "text": f"this is {path}"}, image], b"raw"


@tool
def careful(path: str) -> str:
    """Fail in a way that the model may know."""
    raise ToolException(f"no {path}")


careful.handle_tool_error = True


@tool(return_direct=True)
def give(path: str) -> str:
    """Give the answer itself."""
    return f"given {path}"


@tool
def injected(path: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
    """Use the state."""
    return f"{path} after {len(state['messages'])}"


@tool
def pick(path: str) -> str:
    """Ask a person on one's own."""
    return f"picked {interrupt({'description': 'which?'})!r}"


TOOLS = {tool.name: tool for tool in (deploy, picture, careful, give, injected, pick)}
"""Tools that only LangChain has."""


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
            if not isinstance(turn, str):  # messages, or None to go on after a pause
                given = turn and {"messages": turn}
            result = await _run(agent, given, config, entry, scenario.shown)
            while waiting := result.get("__interrupt__"):
                scenario.questions += [question.value for question in waiting]
                answer = scenario.take_answer()
                if answer is None:
                    break
                if scenario.elsewhere:
                    agent = _agent(session, scenario, options)
                resume: Any = answer
                if len(waiting) > 1 or scenario.options.get("by_id"):
                    resume = {
                        question.id: answer_for(
                            answer, question.value.get("args", {}).get("path")
                        )
                        for question in waiting
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
    if scenario.options.get("tool_node"):
        return _tool_node(scenario, hooks[0])
    others = scenario.options.get("middleware", {})
    hooks = [MIDDLEWARE[name]() for name in others.get("before", ())] + hooks
    hooks += [MIDDLEWARE[name]() for name in others.get("after", ())]
    if scenario.softens_errors:
        hooks.append(ToolErrorMiddleware(lambda error, _: str(error)))
    more = dict(options)
    if scenario.structured:
        native = scenario.options.get("native")
        strategy: Any = ProviderStrategy if native else ToolStrategy
        more["response_format"] = strategy(City)
    model = ScriptedChat(
        reply=scenario.reply,
        requests=scenario.requests,
        blocks=scenario.options.get("blocks", []),
    )
    if scenario.options.get("shows_settings"):
        scenario.notes["settings"] = model.settings
    more |= scenario.options.get("agent", {})
    tools: list[Any] = [*scenario.functions(), *_helpers(hooks, scenario)]
    if names := scenario.options.get("tools"):
        tools = [TOOLS[name] for name in names]
        more["state_schema"] = Counted
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


def _tool_node(scenario: Scenario, middleware: Any) -> Any:
    """A graph of one's own, with the tools alone."""
    node = ToolNode(
        scenario.functions(),
        handle_tool_errors=True,
        wrap_tool_call=middleware.wrap_tool_call,
        awrap_tool_call=middleware.awrap_tool_call,
    )
    graph: Any = StateGraph(MessagesState)
    graph.add_node("tools", node)
    graph.add_edge(START, "tools")
    return graph.compile()


def _helpers(hooks: Any, scenario: Scenario) -> list[Any]:
    """A tool that runs another agent, if the scenario has one."""
    if not scenario.helper:
        return []
    model = ScriptedChat(reply=scenario.helper_reply, requests=scenario.helper_requests)
    agent: Any = create_agent(
        model, scenario.functions(), middleware=hooks, name="assistant"
    )

    def prompt(text: str) -> Any:
        return {"messages": [{"role": "user", "content": text}]}

    async def run_async(input: str) -> str:  # noqa: A002  # as other frameworks name it
        return str((await agent.ainvoke(prompt(input)))["messages"][-1].text)

    def run(input: str) -> str:  # noqa: A002
        return str(agent.invoke(prompt(input))["messages"][-1].text)

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
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    ]
    statuses = [
        message.status for message in messages if isinstance(message, ToolMessage)
    ]
    scenario.notes["statuses"] = statuses
    if scenario.options.get("shows_history"):
        scenario.notes["count"] = result.get("count")
        scenario.notes["history"] = [
            {name: value for name in KEPT if (value := getattr(message, name, None))}
            for message in messages
        ]


KEPT = ("content", "tool_calls", "artifact", "status", "response_metadata")
"""What the history shows of a message."""


async def _run(
    agent: Any, given: Any, config: RunnableConfig, entry: str, shown: list[str]
) -> dict[str, Any]:
    if entry == "async":
        return dict(await agent.ainvoke(given, config))
    if entry == "sync":
        return dict(await asyncio.to_thread(agent.invoke, given, config))
    if entry == "sync in a loop":
        return dict(agent.invoke(given, config))
    if entry == "abatch":
        return dict(*await agent.abatch([given], [config]))
    if entry == "batch":
        return dict(*await asyncio.to_thread(agent.batch, [given], [config]))
    if entry == "events":
        return await _events(agent, given, config, shown)
    chunks: list[Any] = []
    modes: Any = {"stream_mode": MODES, "subgraphs": True}
    if entry == "stream":
        chunks = await asyncio.to_thread(
            lambda: list(agent.stream(given, config, **modes))
        )
    else:
        chunks = [chunk async for chunk in agent.astream(given, config, **modes)]
    shown += [_text((mode, chunk)) for _, mode, chunk in chunks]
    values = [chunk for graph, mode, chunk in chunks if (graph, mode) == ((), "values")]
    interrupts = [chunk for _, _, chunk in chunks if "__interrupt__" in chunk]
    return {**values[-1], **(interrupts[-1] if interrupts else {})}


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
