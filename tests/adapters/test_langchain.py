"""LangChain: the shared suite, and what is peculiar to middleware, graphs and streams.

Issue 14 adapters; what all frameworks have in common is in ``tests/pins/adapters``.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from typing import Annotated, Any, NotRequired

import pytest
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import AgentMiddleware, ModelFallbackMiddleware
from langchain.tools import InjectedState, ToolRuntime
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from hookline.adapters.langchain import HooklineMiddleware
from hookline.agent import ScriptedReply
from hookline.testing.adapters import AdapterSuite

from .drivers.langchain import LangChainDriver, ScriptedChat
from .recorded_hooks import ADDS, RecordedHooks, changes, specific

LEAK = "the s3cret is out"
TO_B = {"BeforeTool": changes(path="b")}
NOTES = {"AfterTool": {"systemMessage": "be brief", **ADDS}}
NOTED = "mind it\n\n[System] be brief"
BOTH = pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])


class TestLangChain(AdapterSuite):
    driver = LangChainDriver()


def recorded(answers: dict[str, Any] | None = None) -> RecordedHooks:
    """Hooks that hold back no stream, unless they answer AfterModel."""
    return RecordedHooks(
        answers, unheard=() if "AfterModel" in (answers or {}) else ["AfterModel"]
    )


def agent_of(
    hooks: RecordedHooks,
    *replies: ScriptedReply | str,
    tools: Sequence[Any] = (),
    before: Sequence[Any] = (),
    after: Sequence[Any] = (),
    model: Any = None,
    **more: Any,
) -> tuple[Any, Any]:
    """An agent with other middleware before and after the hooks, and its model."""
    script = [ScriptedReply(one) if isinstance(one, str) else one for one in replies]
    ended = ScriptedReply("the end")
    used = model or ScriptedChat(
        reply=lambda at: script[at] if at < len(script) else ended
    )
    middleware = [*before, HooklineMiddleware[Any](hooks.config), *after]
    return create_agent(used, tools, middleware=middleware, **more), used


def calls(*made: tuple[str, dict[str, Any]], text: str = "") -> ScriptedReply:
    return ScriptedReply(text, made)


READS = calls(("read", {"path": "a"}))


def ask(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def thread(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name}}


def answer(result: Any) -> str:
    return str(result["messages"][-1].text)


async def invoked(agent: Any, is_sync: bool, *given: Any) -> Any:
    if is_sync:
        return await asyncio.to_thread(agent.invoke, *given)
    return await agent.ainvoke(*given)


@tool
def read(path: str) -> str:
    """Read a file."""
    return f"content of {path}"


@tool
def note(text: str) -> str:
    """Write a note, and say so."""
    get_stream_writer()(f"noting {text}")
    return f"noted {text}"


@pytest.mark.parametrize("name", ["batch", "abatch"])
async def test_batch_is_many_runs(name: str) -> None:
    async with (hooks := recorded({"BeforeAgent": "block"})).config:
        agent, model = agent_of(hooks)
        given: Any = [ask("a"), ask("b")], [thread("1"), thread("2")]
        if name == "batch":
            results = await asyncio.to_thread(agent.batch, *given)
        else:
            results = await agent.abatch(*given)
    assert [answer(one) for one in results] == ["not today", "not today"]
    assert model.requests == []


async def test_state_of_the_middleware_is_plain_data() -> None:
    """Servers serialize the streams, where private keys of the state appear."""
    async with (hooks := recorded()).config:
        agent, _ = agent_of(hooks, "done")
        stream = agent.astream(ask("hi"), stream_mode="values")
        states = [one["hookline"] async for one in stream if "hookline" in one]
        result = await agent.ainvoke(ask("hi"))
    assert states
    assert [json.loads(json.dumps(one)) for one in states] == states
    assert "hookline" not in result


@pytest.mark.parametrize("by_id", [False, True], ids=["plain", "by id"])
@pytest.mark.parametrize("reply", [True, "approve", {"type": "approve"}], ids=repr)
async def test_answer_counts_for_the_question_that_was_asked(
    reply: Any, by_id: bool, subtests: pytest.Subtests
) -> None:
    """Not the answer to a tool's own interrupt for a hook's question, or vice versa."""
    cases = {
        "later": (
            ["", "really?", "really?", "really?"],
            ["which?", "really?", "which?"],
        ),
        "first only": (["one?", "", ""], ["one?", "which?"]),
        "another": (["one?", "two?", "two?", "two?"], ["one?", "two?", "which?"]),
        "same": (["one?", "one?", "one?"], ["one?", "which?"]),
    }
    for name, (attempts, questions) in cases.items():
        with subtests.test(name):
            asked = await _asked(list(attempts), reply, by_id=by_id)
            assert asked == (questions, [reply], "the end")


async def _asked(
    attempts: list[str], reply: Any, *, by_id: bool
) -> tuple[list[str], list[Any], str]:
    """The questions of a run whose hook asks at some attempts, and its end."""
    answers: list[Any] = []
    questions: list[str] = []

    @tool
    def pick(path: str) -> str:
        """Pick a file."""
        answers.append(interrupt({"description": "which?"}))
        return "picked"

    def asks(_: Any) -> Any:
        question = attempts.pop(0) if attempts else ""
        return {"decision": "ask", "reason": question} if question else None

    async with (hooks := recorded({"BeforeTool": asks})).config:
        agent, _ = agent_of(
            hooks,
            calls(("pick", {"path": "a"})),
            tools=[pick],
            checkpointer=InMemorySaver(),
        )
        result = await agent.ainvoke(ask("go"), thread("1"))
        while "__interrupt__" in result and len(questions) < 9:
            (waiting,) = result["__interrupt__"]
            questions.append(waiting.value["description"])
            assert answers == []
            resume: Any = {waiting.id: reply} if by_id else reply
            result = await agent.ainvoke(Command(resume=resume), thread("1"))
    return questions, answers, answer(result)


async def test_other_middleware_gets_the_answer_alone() -> None:
    """Also after a call was recorded with another input."""
    answers: list[list[str]] = []

    class Reading(AgentMiddleware[Any, Any, Any]):
        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            response = await handler(request)
            answers.append([str(one.text) for one in response.result])
            return response

    reply = calls(("read", {"path": "a"}), text="reading")
    async with (hooks := recorded(TO_B)).config:
        agent, _ = agent_of(hooks, reply, "done", tools=[read], before=[Reading()])
        result = await agent.ainvoke(ask("go"))
    assert answers == [["reading"], ["done"]]
    assert result["messages"][1].tool_calls[0]["args"] == {"path": "b"}


@BOTH
async def test_tool_node_of_a_graph_can_be_hooked(is_sync: bool) -> None:
    """Graphs of one's own: the tools, by the same middleware; failures too."""

    @tool
    def fail() -> str:
        """Fail."""
        raise OSError("no disk")

    async with (
        hooks := recorded({"BeforeTool": [['"read"', "block"]], "AfterTool": "add"})
    ).config:
        middleware = HooklineMiddleware[None](hooks.config)
        node = ToolNode(
            [read, fail],
            handle_tool_errors=True,
            wrap_tool_call=middleware.wrap_tool_call,
            awrap_tool_call=middleware.awrap_tool_call,
        )
        graph: Any = StateGraph(MessagesState)
        graph.add_node("tools", node)
        graph.add_edge(START, "tools")
        texts = []
        for call in (
            {"name": "read", "args": {"path": "a"}, "id": "1"},
            {"name": "fail", "args": {}, "id": "2"},
        ):
            given = {"messages": [AIMessage("", tool_calls=[call])]}
            compiled = graph.compile()
            texts.append(answer(await invoked(compiled, is_sync, given, thread("1"))))
    assert texts[0] == "not today"
    assert texts[1].endswith("\n\nmind it")
    (event,) = hooks.of("AfterTool")
    assert "no disk" in event["tool_response"]["error"]["message"]
    assert hooks.sessions == {"1"}


async def test_plain_run_within_an_event_loop_does_not_block_its_hooks() -> None:
    """As in a notebook, where a loop is already running in this thread."""
    async with (hooks := recorded()).config:
        agent, _ = agent_of(hooks, READS, tools=[read])
        assert answer(agent.invoke(ask("go"))) == "the end"
    assert len(hooks.of("AfterTool")) == 1


async def test_run_that_was_paused_before_its_tools_stays_restricted() -> None:
    only = specific(toolConfig={"mode": "AUTO", "allowedFunctionNames": []})
    async with (hooks := recorded({"BeforeToolSelection": only})).config:
        options: Any = {"checkpointer": InMemorySaver(), "interrupt_before": ["tools"]}
        agent, _ = agent_of(hooks, READS, tools=[read], **options)
        await agent.ainvoke(ask("go"), thread("1"))
        result = await agent.ainvoke(None, thread("1"))
    assert hooks.of("BeforeTool") == []
    assert "not allowed" in repr(result)


MODES = ["values", "updates", "messages", "custom", "debug", "tasks", "checkpoints"]


def shown(chunks: list[Any]) -> str:
    """All that a caller sees, also of a text in pieces."""
    messages = [
        one for one in chunks if isinstance(one, tuple) and one[0] == "messages"
    ]
    return "".join(str(one[1][0].text) for one in messages) + repr(chunks)


@BOTH
async def test_no_stream_mode_shows_what_was_removed(
    is_sync: bool, subtests: pytest.Subtests
) -> None:
    for modes in (*([mode] for mode in MODES), MODES):
        async with (hooks := recorded({"AfterModel": "redact"})).config:
            reply = calls(("note", {"text": "a"}))
            agent, _ = agent_of(hooks, reply, LEAK, tools=[note])
            given = (ask("hi"), thread("1"))

            def plain(
                agent: Any = agent, given: Any = given, modes: Any = modes
            ) -> Any:
                return list(agent.stream(*given, stream_mode=modes))

            if is_sync:
                chunks = await asyncio.to_thread(plain)
            else:
                stream = agent.astream(*given, stream_mode=modes)
                chunks = [chunk async for chunk in stream]
        with subtests.test("+".join(modes)):
            assert "s3cret" not in shown(chunks)
            assert (("custom", "noting a") in chunks) is ("custom" in modes)
            told = modes not in (["custom"], ["checkpoints"])
            assert ("***" in shown(chunks)) is told


@pytest.mark.filterwarnings("ignore:astream_events version='v1' is deprecated")
@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
async def test_no_event_stream_shows_what_was_removed() -> None:
    for version in ("v1", "v2"):
        async with (hooks := recorded({"AfterModel": "redact"})).config:
            agent, _ = agent_of(hooks, LEAK)
            stream = agent.astream_events(ask("hi"), version=version)
            events = [event async for event in stream]
        assert "s3cret" not in repr(events)
        assert "***" in repr(events)
    async with (hooks := recorded({"AfterModel": "redact"})).config:
        agent, _ = agent_of(hooks, LEAK)
        run = await agent.astream_events(ask("hi"), version="v3")
        texts = [text async for one in run.messages async for text in one.text]
    assert "".join(texts) == "the *** is out"


async def test_model_that_another_middleware_chose_is_held_back_too() -> None:
    class Broken(ScriptedChat):
        def _message(self, *_: Any) -> AIMessage:
            raise OSError("no service")

    spare = ModelFallbackMiddleware(ScriptedChat(reply=lambda _: calls(text=LEAK)))
    async with (hooks := recorded({"AfterModel": "redact"})).config:
        broken = Broken(reply=lambda _: calls())
        agent, _ = agent_of(hooks, model=broken, after=[spare])
        stream = agent.astream(ask("hi"), stream_mode=["messages", "values"])
        chunks = [chunk async for chunk in stream]
    assert "s3cret" not in shown(chunks)
    assert "***" in shown(chunks)


async def test_subagent_shows_nothing_that_was_removed() -> None:
    async with (hooks := recorded({"AfterModel": "redact"})).config:
        scout, _ = agent_of(hooks, LEAK, name="scout")

        @tool
        async def research(text: str) -> str:
            """Ask the scout."""
            return answer(await scout.ainvoke(ask(text)))

        reply = calls(("research", {"text": "x"}))
        agent, _ = agent_of(hooks, reply, tools=[research])
        stream = agent.astream(ask("hi"), stream_mode=MODES, subgraphs=True)
        chunks = [(mode, chunk) async for _, mode, chunk in stream]
    assert "s3cret" not in shown(chunks)
    assert "***" in shown(chunks)


async def test_model_keeps_its_own_state() -> None:
    """A copy of the model would start the script again with each call."""

    class Counting(FakeMessagesListChatModel):
        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

    call = {"name": "note", "args": {"text": "a"}, "id": "1"}
    script = [AIMessage("", tool_calls=[call]), AIMessage(LEAK)]
    async with (hooks := recorded({"AfterModel": "redact"})).config:
        model = Counting(responses=list(script))
        agent, _ = agent_of(hooks, model=model, tools=[note])
        result = await agent.ainvoke(ask("hi"))
    texts = [str(one.text) for one in result["messages"]]
    assert texts == ["hi", "", "noted a", "the *** is out"]


class Counted(AgentState[Any]):
    """A state that a tool may change."""

    count: NotRequired[int]


@tool
def counts(runtime: ToolRuntime) -> Command[Any]:
    """Count, in the state of the agent."""
    message = ToolMessage("counted", tool_call_id=runtime.tool_call_id)
    return Command(update={"count": 1, "messages": [message]})


@tool
def several(runtime: ToolRuntime) -> list[Any]:
    """Count and answer apart."""
    message = ToolMessage("counted", tool_call_id=runtime.tool_call_id)
    return [Command(update={"count": 1}), message]


@tool(response_format="content_and_artifact")
def picture(path: str) -> tuple[list[Any], bytes]:
    """Load a picture."""
    image = {"type": "image", "url": "https://example.com/a.png"}
    return [{"type": "text", "text": f"this is {path}"}, image], b"raw"


async def called(
    answers: dict[str, Any], used: Any, args: Any = None, **more: Any
) -> tuple[Any, Any, RecordedHooks]:
    """Call a tool once with these hooks."""
    async with (hooks := recorded(answers)).config:
        reply = calls((used.name, args or {}))
        agent, model = agent_of(hooks, reply, tools=[used], **more)
        result = await agent.ainvoke(ask("go"))
    return result, model, hooks


def results(result: Any) -> list[ToolMessage]:
    return [one for one in result["messages"] if isinstance(one, ToolMessage)]


@pytest.mark.parametrize("used", [counts, several], ids=["command", "list"])
async def test_command_updates_the_state_unless_it_is_withheld(used: Any) -> None:
    result, _, hooks = await called(NOTES, used, state_schema=Counted)
    assert result["count"] == 1
    assert results(result)[0].text == f"counted\n\n{NOTED}"
    assert hooks.of("AfterTool")[0]["tool_response"]["llmContent"] == "counted"
    result, model, _ = await called(
        {"AfterTool": "withhold"}, used, state_schema=Counted
    )
    assert "count" not in result
    assert "counted" not in model.requests[1].text
    assert "confidential" in model.requests[1].text


MORE_MESSAGES: dict[str, Any] = {
    "human": HumanMessage("the token"),
    "dict": {"role": "user", "content": "the token"},
    "pair": ("user", "the token"),
    "blocks": HumanMessage([{"type": "text", "text": "the token"}]),
}


@pytest.mark.parametrize("shape", ["command", "list"])
async def test_hooks_see_and_withhold_every_message_of_a_command(
    shape: str, subtests: pytest.Subtests
) -> None:
    """protocol.md#callers: what reaches the model is what AfterTool has seen."""
    for kind, message in MORE_MESSAGES.items():

        @tool
        def deploy(runtime: ToolRuntime, more: Any = message) -> Any:
            """Say more than one thing."""
            first = ToolMessage("done", tool_call_id=runtime.tool_call_id)
            if shape == "list":
                return [first, Command(update={"messages": [more]})]
            return Command(update={"messages": [first, more]})

        with subtests.test(kind):
            _, model, hooks = await called(NOTES, deploy)
            seen = str(hooks.of("AfterTool")[0]["tool_response"]["llmContent"])
            assert "the token" in seen
            assert "done" in seen
            assert "the token" in model.requests[1].text
            _, model, _ = await called({"AfterTool": "withhold"}, deploy)
            assert "the token" not in model.requests[1].text
            assert "confidential" in model.requests[1].text


async def test_blocks_and_artifacts_stay_or_go_with_the_result() -> None:
    args = {"path": "a.png"}
    result, _, hooks = await called(NOTES, picture, args)
    (message,) = results(result)
    kinds = [block["type"] for block in message.content]  # type: ignore[index]  # blocks
    assert kinds == ["text", "image", "text", "text"]
    assert (message.artifact, message.status) == (b"raw", "success")
    (event,) = hooks.of("AfterTool")
    assert event["tool_response"]["llmContent"][0]["text"] == "this is a.png"
    result, _, _ = await called({"AfterTool": "withhold"}, picture, args)
    (message,) = results(result)
    assert (message.text, message.artifact, message.status) == (
        *("confidential", None),
        "error",
    )
    result, _, _ = await called({}, picture, args)
    assert results(result)[0].response_metadata == {}
    result, _, _ = await called({"AfterTool": {"suppressOutput": True}}, picture, args)
    marks = results(result)[0].response_metadata
    assert marks == {"hookline": {"suppress_display": True}}


async def test_failure_that_the_tool_handles_is_an_error_for_hooks() -> None:
    @tool
    def careful(path: str) -> str:
        """Fail in a way that the model may know."""
        raise ToolException(f"no {path}")

    careful.handle_tool_error = True
    result, _, hooks = await called(NOTES, careful, {"path": "x"})
    error = hooks.of("AfterTool")[0]["tool_response"]["error"]
    assert error["message"] == "no x"
    (message,) = results(result)
    assert (message.text, message.status) == (f"no x\n\n{NOTED}", "error")


@pytest.mark.parametrize(
    ("block", "changed"),
    [
        (
            # As of the Responses API, which gets this block and not the call.
            {"type": "function_call", "call_id": "1", "id": "f", "arguments": "{}"},
            {"arguments": '{"path":"b"}'},
        ),
        ({"type": "tool_use", "id": "1", "input": {}}, {"input": {"path": "b"}}),
        ({"type": "tool_call", "id": "1", "args": {}}, {"args": {"path": "b"}}),
        ({"type": "text", "text": "reading"}, {}),
        ({"type": "tool_use", "id": "2", "input": {}}, {}),
    ],
    ids=["function_call", "tool_use", "tool_call", "text", "other"],
)
async def test_changed_input_is_in_the_blocks_that_repeat_the_call(
    block: dict[str, Any], changed: dict[str, Any]
) -> None:
    class Blocks(ScriptedChat):
        def _message(self, messages: Any, given: Any) -> AIMessage:
            message = super()._message(messages, given)
            if not message.tool_calls:
                return message
            only = {"name": "read", "args": {"path": "a"}, "id": "1"}
            return AIMessage([block], tool_calls=[only])

    replies = [READS, ScriptedReply("done")]
    async with (hooks := recorded(TO_B)).config:
        model = Blocks(reply=lambda at: replies[at])
        agent, _ = agent_of(hooks, model=model, tools=[read])
        result = await agent.ainvoke(ask("go"))
    assert result["messages"][1].content == [{**block, **changed}]
    assert result["messages"][1].tool_calls[0]["args"] == {"path": "b"}


async def test_direct_answer_of_a_tool_is_recorded_or_stopped() -> None:
    """Where no model call follows that could do it."""

    @tool(return_direct=True)
    def give(path: str) -> str:
        """Give the answer itself."""
        return f"given {path}"

    result, _, _ = await called(TO_B, give, {"path": "a"})
    assert result["messages"][1].tool_calls[0]["args"] == {"path": "b"}
    assert "given b" in answer(result)
    result, _, hooks = await called({"AfterTool": "stop"}, give, {"path": "a"})
    assert answer(result) == "enough"
    assert hooks.of("AfterAgent") == []


async def test_plain_agent_runs_its_tools_in_its_own_threads() -> None:
    threads: list[str] = []

    @tool
    def where() -> str:
        """Say where it runs."""
        threads.append(threading.current_thread().name)
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        return "here"

    def hook(_: Any) -> None:
        threads.append(threading.current_thread().name)

    async with (hooks := recorded({"BeforeTool": hook})).config:
        agent, _ = agent_of(hooks, calls(("where", {})), tools=[where])
        await asyncio.to_thread(agent.invoke, ask("go"))
    assert len(threads) == 2
    assert "hookline-hooks" not in threads[1]


async def test_injected_arguments_are_the_frameworks_own() -> None:
    @tool
    def injected(path: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
        """Use the state."""
        return f"{path} after {len(state['messages'])}"

    _, model, hooks = await called(TO_B, injected, {"path": "a"})
    assert hooks.of("BeforeTool")[0]["tool_input"] == {"path": "a"}
    assert "b after 2" in model.requests[1].text


async def test_tools_that_another_middleware_adds_are_hooked() -> None:
    class Dynamic(AgentMiddleware[Any, Any, Any]):
        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(request.override(tools=[*request.tools, read]))

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            return await handler(request.override(tool=read))

    async with (hooks := recorded({"BeforeTool": "block"})).config:
        agent, model = agent_of(hooks, READS, after=[Dynamic()])
        await agent.ainvoke(ask("go"))
    assert model.requests[0].tools == ["read"]
    assert "not today" in model.requests[1].text


async def test_changed_request_keeps_what_hooks_do_not_see() -> None:
    def change(event: dict[str, Any]) -> dict[str, Any]:
        messages = [
            {**one, "content": "edited"} for one in event["llm_request"]["messages"]
        ]
        request = {"messages": messages, "config": {"temperature": 0.5}, "model": "m-2"}
        return specific(llm_request=request, additionalContext="mind it")

    sent: list[Any] = []

    class Listening(ScriptedChat):
        def _message(self, messages: Any, given: Any) -> AIMessage:
            sent.extend(messages)
            return super()._message(messages, given)

    blocks: Any = [{"type": "text", "text": "a"}, {"type": "image", "url": "https://x"}]
    async with (hooks := recorded({"BeforeModel": change})).config:
        model = Listening(reply=lambda _: ScriptedReply("done"))
        agent, _ = agent_of(hooks, model=model)
        result = await agent.ainvoke({"messages": [HumanMessage(blocks)]})
    assert sent[0].content == [{"type": "text", "text": "edited"}, blocks[1]]
    assert sent[-1].text == "mind it"
    assert model.settings == [{"temperature": 0.5, "model": "m-2"}]
    assert result["messages"][0].content == blocks  # the history is the person's own
