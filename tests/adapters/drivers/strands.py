"""Strands agents for the shared suite: a model that follows a script."""

from __future__ import annotations

import asyncio
import copy
import json
import tempfile
from collections.abc import AsyncGenerator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from strands import Agent, tool
from strands.models import Model
from strands.multiagent import GraphBuilder, Swarm
from strands.session import FileSessionManager
from strands.tools.executors import SequentialToolExecutor

from hookline.adapters.strands import HooklineHooks
from hookline.agent import ScriptedReply, Session
from hookline.testing.adapters import ModelRequest
from tests.adapters.recorded_hooks import RecordedHooks
from tests.adapters.scenarios import City, Scenario, ScenarioDriver, answer_for


class StrandsModel(Model):
    """Gives replies one by one, in small chunks, and keeps what it was sent.

    A reply is a text, a text with calls of tools, chunks, or an exception to raise.
    """

    def __init__(self, *replies: Any, last: str = "the end") -> None:
        self.replies = list(replies)
        self.last = last
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
        request = {"messages": copy.deepcopy(messages), "system": system_prompt}
        self.requests.append({**request, "tools": offered, **kw})
        reply = self.replies.pop(0) if self.replies else self.last
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, list):
            for chunk in reply:
                yield chunk
            return
        text, calls = (
            (reply, ()) if isinstance(reply, str) else (reply.text, reply.calls)
        )
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


class StrandsDriver(ScenarioDriver):
    """Runs agents whose conversation is stored by a session manager."""

    entries: Sequence[str] = ("async", "sync", "stream")
    output_tool = "City"

    async def play(
        self, session: Session | None, scenario: Scenario, entry: str
    ) -> None:
        if scenario.agents:
            assert session is not None
            await _play_workflow(session, scenario, entry)
            return
        asks = bool(scenario.answers)
        model = StrandsModel(*scenario.replies)
        helper = StrandsModel(*scenario.helper, last="helped")
        options: dict[str, Any] = {}
        if scenario.structured:
            options["structured_output_model"] = City
        with tempfile.TemporaryDirectory() as folder:
            made = (session, scenario, (model, helper), folder, asks)
            agent = _agent(*made)
            try:
                for turn in scenario.turns:
                    shown = scenario.shown
                    result = await ask(agent, turn, entry, shown, **options)
                    while result.stop_reason == "interrupt":
                        scenario.questions += [
                            question.reason for question in result.interrupts
                        ]
                        answer = scenario.take_answer()
                        if answer is None:
                            break
                        if scenario.elsewhere:
                            agent = _agent(*made)
                        answers = approvals(result, answer)
                        result = await ask(agent, answers, entry, shown)
                    waits = result.stop_reason == "interrupt"
                    text = str(result).removesuffix("\n")
                    scenario.results.append("waiting" if waits else text)
                    if scenario.structured:
                        scenario.notes["output"] = repr(result.structured_output)
            finally:
                stored = [file.read_text() for file in Path(folder).rglob("*.json")]
                scenario.requests += map(_request, model.requests)
                scenario.helper_requests += map(_request, helper.requests)
                scenario.recorded = "\n".join([repr(agent.messages), *stored])
                scenario.recorded_inputs = _inputs(agent.messages)
                scenario.notes["state"] = agent.state.get()


async def _play_workflow(session: Session, scenario: Scenario, entry: str) -> None:
    tools = [tool(function) for function in scenario.functions()]
    agents = [
        Agent(StrandsModel(*replies), name=name, tools=tools, callback_handler=None)
        for name, replies in scenario.agents.items()
    ]
    hooks = [HooklineHooks(scenario.subject(session))]
    flow: Any = workflow(scenario.options["workflow"], agents, hooks)
    for turn in scenario.turns:
        result = await ask(flow, turn, entry, scenario.shown)
        while result.status.value == "interrupted" and scenario.answers:
            answers = approvals(result, scenario.take_answer())
            result = await ask(flow, answers, entry, scenario.shown)
        nodes = [f"{name}: {node.result}" for name, node in result.results.items()]
        scenario.results.append("\n".join([result.status.value, *sorted(nodes)]))
    for agent in agents:
        model: Any = agent.model
        scenario.agent_requests[agent.name] = [*map(_request, model.requests)]


def workflow(kind: str, agents: Sequence[Agent], hooks: list[Any]) -> Any:
    """Agents as a graph, one after the other or in parallel, or as a swarm."""
    if kind == "swarm":
        return Swarm(list(agents), hooks=hooks)
    nodes: list[Any] = list(agents)
    if kind == "nested":
        nodes[0] = workflow("graph", agents[:1], [])
    builder = GraphBuilder()
    made = [builder.add_node(node, getattr(node, "name", "inner")) for node in nodes]
    for first, second in [] if kind == "parallel" else pairwise(made):
        builder.add_edge(first, second)
    builder.set_max_node_executions(9)
    builder.set_hook_providers(hooks)
    return builder.build()


def _agent(
    session: Session | None,
    scenario: Scenario,
    models: tuple[StrandsModel, StrandsModel],
    folder: str,
    asks: bool,
) -> Agent:
    hooks: list[Any] = []
    if session is not None:
        subject = scenario.subject(session)
        confirm = scenario.callback
        hooks.append(HooklineHooks(subject, interrupts=asks, confirm=confirm))
    tools: list[Any] = [tool(function) for function in scenario.functions()]
    common: dict[str, Any] = {"callback_handler": None}
    if scenario.helper:
        helper = Agent(model=models[1], name="helper", tools=tools, **common)
        tools = [*tools, helper.as_tool()]
    if scenario.options.get("sequential"):
        common["tool_executor"] = SequentialToolExecutor()
    if scenario.conversation is not None:
        common["session_manager"] = FileSessionManager(scenario.conversation, folder)
    prompt = scenario.options.get("system_prompt")
    return Agent(
        model=models[0], tools=tools, hooks=hooks, system_prompt=prompt, **common
    )


async def ask(
    agent: Agent, prompt: Any, entry: str, shown: list[str], **options: Any
) -> Any:
    """Run an agent by one of its entry points."""
    if entry == "async":
        return await agent.invoke_async(prompt, **options)
    if entry == "sync":
        return await asyncio.to_thread(agent, prompt, **options)
    result: Any = None
    async for event in agent.stream_async(prompt, **options):
        result = event.get("result", result)
        # Events carry the state of the run, which holds the agent itself.
        shown.append(str({name: event.get(name) for name in SHOWN}))
    return result


SHOWN = ("data", "delta", "event", "message", "current_tool_use", "tool_stream_event")
"""What callers show of a stream."""


def approvals(result: Any, answer: Any) -> list[Any]:
    """A person's answer to all questions of a run."""
    answers = []
    for question in result.interrupts:
        path = question.reason["tool_input"].get("path")
        response = {"interruptId": question.id, "response": answer_for(answer, path)}
        answers.append({"interruptResponse": response})
    return answers


def _request(request: dict[str, Any]) -> ModelRequest:
    lines = [request["system"] or ""]
    for message in request["messages"]:
        lines += [_line(message["role"], block) for block in message["content"]]
    return ModelRequest("\n".join(filter(None, lines)), request["tools"])


def _line(role: str, block: Any) -> str:
    if "toolUse" in block:
        return f"call: {block['toolUse']['name']} {block['toolUse']['input']}"
    if "toolResult" in block:
        result = block["toolResult"]
        return f"result: {result['status']} {result['content']}"
    return f"{role}: {block.get('text', list(block))}"


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


def looks(*paths: str) -> ScriptedReply:
    return ScriptedReply("", tuple(("look", {"path": path}) for path in paths))


def agent_of(
    hooked: RecordedHooks, *replies: Any, tools: Any = (look,), **more: Any
) -> Agent:
    """A hooked agent whose model follows a script."""
    options: dict[str, Any] = {"callback_handler": None, **more}
    hooks = options.pop("hooks", [HooklineHooks(hooked.config)])
    return Agent(
        model=StrandsModel(*replies), tools=list(tools), hooks=hooks, **options
    )
