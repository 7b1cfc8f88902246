"""Google ADK agents with hooks: the shared suite, and what rows cannot say.

Runners, other plugins, live, cancelled and aborted runs, agents at once, and responses
that a scripted model does not give. All else is in
``tests/pins/adapters/google_adk.json``. One test reads the private ``_invocations`` of
the plugin, as a leak is not to be seen from outside.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="google-adk has an environment of its own")

from google.adk.agents import LlmAgent, ParallelAgent
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.apps import App
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.google_search_tool import GoogleSearchTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.workflow import START, Workflow
from google.genai import types

from hookline import HookEventName
from hookline.adapters.google_adk import HooklinePlugin, HooklineRunner
from hookline.testing.adapters import AdapterSuite

from .drivers.google_adk import (
    SSE,
    AdkDriver,
    ScriptedLlm,
    answer_of,
    inputs,
    offered,
    scripted,
    sent,
    text_of,
    user,
)
from .recorded_hooks import RecordedHooks, changes, specific
from .scenarios import calls

pytestmark = [
    # ADK prefers graphs to its workflow agents, which are what people have.
    pytest.mark.filterwarnings("ignore:.*in favor of Workflow:DeprecationWarning"),
    # This is how AgentTool hands on the plugins of its caller.
    pytest.mark.filterwarnings("ignore:The `plugins` argument:DeprecationWarning"),
]


class TestGoogleAdk(AdapterSuite):
    driver = AdkDriver()


class HookedApp:
    """An app whose root agent is guarded, and the sessions of its runner."""

    def __init__(
        self,
        root: Any,
        answers: dict[str, Any] | None = None,
        *,
        plain: bool = False,
        before: Sequence[BasePlugin] = (),
        service: InMemorySessionService | None = None,
    ) -> None:
        self.hooks = RecordedHooks(answers)
        self.plugin = HooklinePlugin(self.hooks.config)
        app = App(name="app", root_agent=root, plugins=[*before, self.plugin])
        self.service = service or InMemorySessionService()
        kind: Any = Runner if plain else HooklineRunner
        self.runner = kind(
            app=app, session_service=self.service, auto_create_session=True
        )

    async def send(self, message: Any, session: str = "s1", **more: Any) -> list[Event]:
        """The events of a run: of a prompt, or of the answer to a question."""
        content = user(message) if isinstance(message, str) else message
        run = self.runner.run_async(
            user_id="u", session_id=session, new_message=content, **more
        )
        return [event async for event in run]

    async def ask(self, text: str, session: str = "s1") -> str:
        return answer_of(await self.send(text, session))

    async def stored(self) -> Any:
        """The session as ADK keeps it."""
        ids: Any = {"app_name": "app", "user_id": "u", "session_id": "s1"}
        return await self.service.get_session(**ids)


def agent(
    name: str = "root", *replies: Any, model: Any = None, **more: Any
) -> LlmAgent:
    llm = model or scripted(*(replies or [f"{name}!"]))
    return LlmAgent(name=name, model=llm, **more)


def requests(of: LlmAgent) -> list[str]:
    assert isinstance(of.model, ScriptedLlm)
    return [sent(request) for request in of.model.seen]


def texts(events: Sequence[Event]) -> list[str]:
    return [text for text in map(text_of, events) if text]


class Files:
    """Tools that note what they ran with."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def write(self, path: str) -> str:
        """Write a file."""
        self.ran.append(path)
        return f"wrote {path}"

    def start(self, path: str) -> None:
        """Start work whose result comes later."""
        self.ran.append(path)


WRITES = calls(("write", {"path": "a"}))


class AnsweringLlm(ScriptedLlm):
    """Gives responses of a function of the request's number."""

    answers: Any = None

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.seen.append(llm_request.model_copy(deep=True))
        for response in await self.answers(len(self.seen)):
            yield response


def answering(answers: Any) -> AnsweringLlm:
    return AnsweringLlm(reply=lambda _: WRITES, answers=answers)


def content(*parts: types.Part) -> types.Content:
    return types.Content(role="model", parts=list(parts))


async def test_changed_answer_takes_its_metadata_with_it() -> None:
    """HOOK-079: log probabilities would spell what is gone; every whole response."""

    async def telling(_: int) -> list[LlmResponse]:
        token = types.LogprobsResultCandidate(token="s3cret")
        probabilities = types.LogprobsResult(chosen_candidates=[token])
        responses = []
        for text in ("s3cret one", "s3cret two"):
            parts = content(types.Part(text=text))
            responses += [
                LlmResponse(content=parts, partial=True),
                LlmResponse(
                    content=parts,
                    custom_metadata={"raw": "s3cret"},
                    logprobs_result=probabilities,
                ),
            ]
        return responses

    app = HookedApp(agent(model=answering(telling)), {"AfterModel": "redact"})
    events = await app.send("go", run_config=SSE)
    assert texts(events) == ["*** one", "*** two"]
    stored = (await app.stored()).model_dump_json()
    assert "s3cret" not in stored + "".join(event.model_dump_json() for event in events)


async def test_restriction_removes_what_the_service_runs_itself() -> None:
    """No tool choice excludes built-in tools, so they are not offered."""
    only = specific(toolConfig={"mode": "AUTO", "allowedFunctionNames": ["other"]})
    search = GoogleSearchTool(bypass_multi_tools_limit=True)
    root = agent("root", "done", tools=[Files().write, search])
    model: Any = root.model
    model.model = "gemini-2.5-flash"
    await HookedApp(root, {"BeforeToolSelection": only}).send("go")
    request = model.seen[0]
    assert (offered(request), request.tools_dict) == ([], {})
    assert not request.config.tools
    assert request.config.tool_config is None


async def test_rejected_answer_is_not_shown() -> None:
    """Also for a caller that leaves at the first final response."""
    app = HookedApp(
        agent("root", "draft", "good"), {"AfterAgent": [['"draft"', "block"]]}
    )
    ids: Any = {"user_id": "u", "session_id": "s1"}
    run = app.runner.run_async(new_message=user("go"), **ids)
    async for event in run:
        if event.is_final_response():
            assert text_of(event) == "good"
            break
    await run.aclose()
    assert len(app.hooks.of("AfterAgent")) == 2


async def test_options_of_a_turn_are_used_once() -> None:
    """A rejected answer starts a new invocation, without the first one's options.

    Its draft is not shown before the state that a callback writes after it, either.
    """

    def note(callback_context: Any) -> None:
        callback_context.state["done"] = True

    root = agent("root", "draft", "good", after_agent_callback=note)
    app = HookedApp(root, {"AfterAgent": [['"draft"', "block"]]})
    events = await app.send("go", yield_user_message=True, state_delta={"n": 1})
    assert texts(events) == ["go", "good"]
    deltas = [event.actions.state_delta for event in (await app.stored()).events]
    assert [delta for delta in deltas if delta] == [{"n": 1}, *[{"done": True}] * 2]


async def test_turn_is_guarded_if_another_plugin_takes_the_message() -> None:
    class Upper(BasePlugin):
        async def on_user_message_callback(self, **fields: Any) -> types.Content:
            return user(fields["user_message"].parts[0].text.upper())

    root, upper = agent("root", "fine"), Upper(name="up")
    app = HookedApp(
        root,
        {"BeforeAgent": [["BAD", "block"], ["", "add"]]},
        plain=True,
        before=[upper],
    )
    assert await app.ask("bad") == "not today"
    assert await app.ask("good", "s2") == "fine"
    assert "mind it" in requests(root)[0]


class SlowSessions(InMemorySessionService):
    """Gives out the first two sessions at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.both = asyncio.Barrier(2)
        self.asked = 0

    async def get_session(self, **ids: Any) -> Any:
        self.asked += 1
        if self.asked <= 2:
            await self.both.wait()
        return await super().get_session(**ids)


async def test_conversations_of_one_runner_do_not_mix() -> None:
    """Two runs at once, with one message object for both."""
    root, message = agent("root", "no", "no", "a", "b"), user("go")
    app = HookedApp(root, {"AfterAgent": [['"no"', "block"]]}, service=SlowSessions())
    runs = [app.send(message, name) for name in ("one", "two")]
    answers = [answer_of(events) for events in await asyncio.gather(*runs)]
    assert sorted(answers) == ["a", "b"]
    model = ["BeforeToolSelection", "BeforeModel", "AfterModel", "AfterAgent"]
    for name in ("one", "two"):
        names = [event["hook_event_name"] for event in app.hooks.of_session(name)]
        assert names == ["BeforeAgent", *model, *model]


async def test_runner_wants_hooks_once_and_leaves_the_app_alone() -> None:
    hooks, service = RecordedHooks(), InMemorySessionService()
    bare = App(name="app", root_agent=agent())
    with pytest.raises(TypeError, match="needs a config"):
        HooklineRunner(app=bare, session_service=service)
    plugins = [HooklinePlugin(hooks.config)]
    app = App(name="app", root_agent=agent(), plugins=plugins)
    with pytest.raises(TypeError, match="has a HooklinePlugin"):
        HooklineRunner(hooks.config, app=app, session_service=service)
    HooklineRunner(hooks.config.session("mine"), app=bare, session_service=service)
    assert bare.plugins == []


@pytest.mark.parametrize("is_plain", [True, False], ids=["plugin", "runner"])
async def test_cancelled_run_leaves_nothing_behind(is_plain: bool) -> None:
    """Reads the private ``_invocations``: a leak is not to be seen from outside."""
    waiting = asyncio.Event()

    async def stuck(_: int) -> list[LlmResponse]:
        waiting.set()
        await asyncio.Event().wait()
        return []

    app = HookedApp(agent(model=answering(stuck)), plain=is_plain)
    run = asyncio.create_task(app.send("go"))
    await waiting.wait()
    assert len(app.plugin._invocations) == 1
    run.cancel()
    await asyncio.wait([run])
    del run
    while app.plugin._invocations:  # until the garbage collector has seen ADK's session
        await asyncio.sleep(0)
        gc.collect()


@pytest.mark.parametrize("is_plain", [True, False], ids=["plugin", "runner"])
async def test_aborted_run_has_no_answer(is_plain: bool) -> None:
    """ADK ends it itself: AfterAgent does not fire, and nothing goes on."""
    signal = asyncio.Event()

    async def wait() -> None:
        """Wait."""
        signal.set()
        await asyncio.Event().wait()

    root = agent("root", calls(("wait", {})), tools=[wait])
    app = HookedApp(root, {"AfterAgent": "block"}, plain=is_plain)
    events = await app.send("go", abort_signal=signal)
    assert app.hooks.names[-1] == "BeforeTool"
    assert events[-1].error_message == "Invocation was aborted by client."


async def test_run_live_is_refused_where_hooks_could_not_guard_it() -> None:
    """What cannot be guarded is refused with a message that says why."""
    for event in ("BeforeModel", "AfterAgent"):
        app = HookedApp(agent())
        others = [name.value for name in HookEventName if name.value != event]
        app.plugin = HooklinePlugin(RecordedHooks(unheard=others).config)
        app.runner.plugin_manager.plugins[:] = [app.plugin]
        queue = LiveRequestQueue()
        ids: Any = {"user_id": "u", "session_id": "s1"}
        run = app.runner.run_live(live_request_queue=queue, **ids)
        expected = f"{event} hooks cannot guard a live run"
        with pytest.raises(RuntimeError, match=expected):
            await anext(run)


async def test_stop_reaches_an_agent_that_works_for_a_tool_call() -> None:
    """A run that is nested in a stopped one makes no further calls."""
    begun = asyncio.Event()

    async def slow() -> str:
        """Work until the other call has stopped the run."""
        begun.set()
        runs = app.plugin._invocations
        while not any(  # noqa: ASYNC110 - a run has no event to wait for
            invocation.run.stop_reason for invocation in runs.values()
        ):
            await asyncio.sleep(0)
        return "slow"

    async def quick() -> str:
        """End while the other one works."""
        await begun.wait()
        return "quick"

    child = agent("child", calls(("slow", {})), tools=[slow])
    both = calls(("child", {"request": "work"}), ("quick", {}))
    root = agent("boss", both, tools=[AgentTool(child), quick])
    app = HookedApp(root, {"AfterTool": [['"quick"', "stop"]]})
    assert await app.ask("go") == "enough"
    assert len(requests(child)) == 1


async def test_agents_at_once_have_tools_of_their_own() -> None:
    """What hooks take from one of them is not taken from another."""
    files, first = Files(), [specific(toolConfig={"mode": "NONE"})]
    steps = [
        agent(name, calls(("write", {"path": name})), tools=[files.write])
        for name in "ab"
    ]
    flow = ParallelAgent(name="flow", sub_agents=steps)
    only_once = {"BeforeToolSelection": lambda _: first.pop() if first else None}
    await HookedApp(flow, only_once).send("go")
    models: list[Any] = [step.model for step in steps]
    named = zip("ab", models, strict=True)
    allowed = [name for name, model in named if offered(model.seen[0])]
    assert (len(allowed), files.ran) == (1, allowed)


async def test_calls_of_one_id_are_judged_apart() -> None:
    """What runs is what hooks have seen, whatever ids a model gives."""

    async def twins(at: int) -> list[LlmResponse]:
        twin_calls = [
            types.FunctionCall(id="1", name="write", args={"path": path})
            for path in ("bad", "good")
        ]
        parts = [types.Part(function_call=call) for call in twin_calls]
        return [
            LlmResponse(content=content(*parts if at == 1 else [types.Part(text="x")]))
        ]

    files = Files()
    root = agent(model=answering(twins), tools=[files.write])
    await HookedApp(root, {"BeforeTool": [['"bad"', "block"]]}).send("go")
    assert files.ran == ["good"]


async def test_changed_input_is_not_written_into_the_objects_of_the_model() -> None:
    """A cache of responses, say, would hand the change to other conversations."""
    call = types.FunctionCall(name="write", args={"path": "a"})
    cached = content(types.Part(function_call=call))

    async def answers(at: int) -> list[LlmResponse]:
        done = content(types.Part(text="x"))
        return [LlmResponse(content=cached if at == 1 else done)]

    files = Files()
    root = agent(model=answering(answers), tools=[files.write])
    app = HookedApp(root, {"BeforeTool": changes(path="b")})
    await app.send("go")
    assert (files.ran, inputs((await app.stored()).events)) == (["b"], [{"path": "b"}])
    assert call.args == {"path": "a"}


async def test_late_result_of_a_long_running_tool_passes_its_hooks() -> None:
    """A withheld result does not reach the model when it comes later, either."""
    tool = LongRunningFunctionTool(Files().start)
    root = agent("root", calls(("start", {"path": "x"})), tools=[tool])
    app = HookedApp(root, {"AfterTool": "withhold"})
    events = await app.send("go")
    assert app.hooks.of("AfterTool") == []
    (started,) = [fc for event in events for fc in event.get_function_calls()]
    late = types.FunctionResponse(
        id=started.id, name="start", response={"result": "the plan"}
    )
    part = types.Part(function_response=late)
    await app.send(types.Content(role="user", parts=[part]))
    assert "confidential" in requests(root)[-1]
    assert "the plan" not in requests(root)[-1]
    assert "the plan" not in (await app.stored()).model_dump_json()
    assert len(app.hooks.of("AfterTool")) == 1


async def test_call_of_a_workflow_node_passes_its_hooks() -> None:
    def tool_input(node_input: Any) -> dict[str, Any]:
        """Make the input of the tool."""
        return {"path": ".env"}

    files = Files()
    flow = Workflow(name="flow", edges=[(START, tool_input, FunctionTool(files.write))])
    app = HookedApp(flow, {"BeforeTool": "block"})
    await app.send("go")
    assert files.ran == []
    assert app.hooks.of("BeforeTool")[0]["tool_input"] == {"path": ".env"}


async def test_another_plugin_that_answers_keeps_its_answer() -> None:
    """The tool has not run, and AfterTool sees what the model is given."""

    class Cache(BasePlugin):
        async def before_tool_callback(self, **_: Any) -> dict[str, Any]:
            return {"result": "cached"}

    files = Files()
    root = agent("root", WRITES, tools=[files.write])
    app = HookedApp(root, before=[Cache(name="cache")])
    await app.send("go")
    assert "result: {'result': 'cached'}" in requests(root)[-1]
    assert files.ran == []
    (event,) = app.hooks.of("AfterTool")
    assert event["tool_response"]["llmContent"] == {"result": "cached"}
