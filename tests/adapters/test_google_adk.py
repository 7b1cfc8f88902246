"""Google ADK: the suite, turns, model calls and streams (issue 14 adapters)."""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="google-adk has an environment of its own")

from google.adk.agents import LlmAgent
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.apps import App
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.google_search_tool import GoogleSearchTool
from google.genai import types

from hookline.adapters.google_adk import HooklinePlugin, HooklineRunner
from hookline.testing.adapters import AdapterSuite

from .adk_support import Hooks, Kit, deny, specific, stop
from .drivers.google_adk import (
    SSE,
    AdkDriver,
    ScriptedLlm,
    answer_of,
    call,
    offered,
    scripted,
    sent,
    text_of,
    user,
)

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "frameworks" / "google_adk.py"
PAGE = ROOT / "docs" / "how-to" / "frameworks" / "google-adk.md"


class TestGoogleAdk(AdapterSuite):
    driver = AdkDriver()


def root(*replies: Any, **options: Any) -> LlmAgent:
    return LlmAgent(name="root", model=scripted(*replies), **options)


def rejects(text: str) -> Any:
    return lambda event: deny("again") if event["prompt_response"] == text else None


def redact(event: dict[str, Any]) -> Any:
    text = event["llm_response"].get("text") or ""
    if "s3cret" not in text:
        return None
    return specific(llm_response={"text": text.replace("s3cret", "***")})


async def test_partial_responses_pass_at_once_if_no_hook_listens() -> None:
    kit = Kit(Hooks().on("BeforeModel"), root("one two"))
    events = await kit.say("go", run_config=SSE)
    assert [text_of(one) for one in events if one.partial] == list("one two")


async def test_nothing_that_a_hook_removes_is_in_any_event_of_a_stream() -> None:
    """Issue 14: what AfterModel takes out of a streamed answer is never shown."""
    kit = Kit(Hooks().on("AfterModel", redact), root("it is s3cret"))
    events = await kit.say("go", run_config=SSE)
    assert [text_of(one) for one in events] == ["it is ***"]
    assert "s3cret" not in (await kit.kept()).model_dump_json()


async def test_a_changed_answer_takes_its_metadata_and_calls_with_it() -> None:
    """HOOK-079: rebuilt from text only; log probabilities would spell what is gone."""

    class Telling(ScriptedLlm):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            async for one in super().generate_content_async(llm_request, stream):
                one.custom_metadata = {"raw": "s3cret"}
                one.logprobs_result = types.LogprobsResult(
                    chosen_candidates=[types.LogprobsResultCandidate(token="s3cret")]
                )
                yield one

    reply = call("look", path="s3cret")
    reply = type(reply)("s3cret", reply.calls)
    model = Telling(reply=lambda _: reply)
    kit = Kit(Hooks().on("AfterModel", redact), LlmAgent(name="root", model=model))
    (event,) = await kit.say("go", run_config=SSE)
    assert "s3cret" not in event.model_dump_json()
    assert "s3cret" not in (await kit.kept()).model_dump_json()


async def test_every_whole_response_of_a_stream_passes_its_hooks() -> None:
    """Some models end a stream with several: a text, then the calls."""

    class Twice(ScriptedLlm):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            for text in ("s3cret one", "s3cret two"):
                part = types.Part(text=text)
                content = types.Content(role="model", parts=[part])
                yield LlmResponse(content=content, partial=True)
                yield LlmResponse(content=content)

    model = Twice(reply=lambda _: call("none"))
    kit = Kit(Hooks().on("AfterModel", redact), LlmAgent(name="root", model=model))
    events = await kit.say("go", run_config=SSE)
    assert [text_of(one) for one in events] == ["*** one", "*** two"]


async def test_a_model_that_fails_has_no_answer_for_hooks() -> None:
    class Broken(ScriptedLlm):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            async for _ in super().generate_content_async(llm_request, stream):
                raise ConnectionError("no network")
            yield LlmResponse()

    hooks = Hooks().on("BeforeModel").on("AfterModel").on("AfterAgent")
    model = Broken(reply=lambda _: call("none"))
    kit = Kit(hooks, LlmAgent(name="root", model=model))
    with pytest.raises(ConnectionError, match="no network"):
        await kit.say("go")
    assert hooks.names == ["BeforeModel"]


async def test_a_restriction_removes_what_the_service_runs_itself() -> None:
    """No tool choice excludes built-in tools, so they are not offered.

    protocol.md#callers
    """

    def read() -> str:
        """Read."""
        return ""

    only = specific(toolConfig={"mode": "AUTO", "allowedFunctionNames": ["other"]})
    hooks = Hooks().on("BeforeToolSelection", lambda _: only)
    agent = root("done", tools=[read, GoogleSearchTool(bypass_multi_tools_limit=True)])
    model = agent.model
    assert isinstance(model, ScriptedLlm)
    model.model = "gemini-2.5-flash"
    await Kit(hooks, agent).say("go")
    assert offered(model.seen[0]) == []
    assert model.seen[0].tools_dict == {}
    assert not model.seen[0].config.tools
    assert model.seen[0].config.tool_config is None


async def test_a_blocked_request_has_no_answer_for_after_agent() -> None:
    """protocol.md#callers: the result of such a turn is the reason."""
    hooks = Hooks().on("BeforeModel", lambda _: deny("no model")).on("AfterAgent")
    assert await Kit(hooks, root("never")).ask("go") == "no model"
    assert hooks.seen("AfterAgent") == []


async def test_a_blocked_prompt_is_in_no_later_request() -> None:
    """ADK records every message; a refused one is recorded without its text."""
    agent = root("fine")
    hooks = Hooks().on(
        "BeforeAgent", lambda e: deny("no") if "x" in e["prompt"] else None
    )
    kit = Kit(hooks, agent)
    assert await kit.ask("the x plan") == "no"
    assert await kit.ask("hello") == "fine"
    assert isinstance(agent.model, ScriptedLlm)
    (request,) = agent.model.seen
    assert "the x plan" not in sent(request)


async def test_context_of_a_turn_is_recorded_with_its_message() -> None:
    hooks = Hooks().on("BeforeAgent", lambda _: specific(additionalContext="Monday"))
    kit = Kit(hooks, root("a", "b"))
    await kit.say("hello")
    assert text_of((await kit.kept()).events[0]) == "hello\n\nMonday"


async def test_a_rejected_answer_is_not_shown() -> None:
    """Also for a caller that leaves at the first final response."""
    hooks = Hooks().on("AfterAgent", rejects("draft"))
    kit = Kit(hooks, root("draft", "good"))
    run = kit.runner.run_async(user_id="u", session_id="s1", new_message=user("go"))
    async for event in run:
        if event.is_final_response():
            assert text_of(event) == "good"
            break
    await run.aclose()
    assert len(hooks.seen("AfterAgent")) == 2


async def test_what_a_caller_gives_for_a_turn_is_used_once() -> None:
    """A rejected answer starts a new invocation, without the first one's options."""
    kit = Kit(Hooks().on("AfterAgent", rejects("draft")), root("draft", "good"))
    events = await kit.say("go", yield_user_message=True, state_delta={"n": 1})
    assert [text_of(one) for one in events] == ["go", "good"]
    deltas = [one.actions.state_delta for one in (await kit.kept()).events]
    assert [one for one in deltas if one] == [{"n": 1}]


async def test_a_stop_after_the_turn_is_the_answer_and_recorded() -> None:
    kit = Kit(Hooks().on("AfterAgent", lambda _: stop("over")), root("draft"))
    assert await kit.ask("go") == "over"
    assert text_of((await kit.kept()).events[-1]) == "over"


async def test_a_plugin_alone_cannot_go_on_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Issue 14: said once by a warning where a configured hook is ineffective."""
    hooks = Hooks().on("AfterAgent", rejects("draft")).on("SessionStart")
    kit = Kit(hooks, root("draft", "draft"), plain=True)
    with caplog.at_level(logging.WARNING, logger="hookline"):
        assert await kit.ask("go") == "draft"
        assert await kit.ask("go") == "draft"
    warnings = [one.message for one in caplog.records if one.name == "hookline"]
    assert len(warnings) == 2
    assert "use HooklineRunner" in " ".join(warnings)
    assert len(hooks.seen("AfterAgent")) == 2


async def test_a_turn_is_guarded_if_another_plugin_takes_the_message() -> None:
    class Upper(BasePlugin):
        async def on_user_message_callback(self, **given: Any) -> types.Content:
            return user(text_of_content(given["user_message"]).upper())

    def decide(event: dict[str, Any]) -> Any:
        if "BAD" in event["prompt"]:
            return deny("no")
        return specific(additionalContext="Monday")

    agent = root("fine")
    kit = Kit(
        Hooks().on("BeforeAgent", decide), agent, plain=True, before=[Upper(name="up")]
    )
    assert await kit.ask("bad") == "no"
    assert await kit.ask("good", "s2") == "fine"
    assert isinstance(agent.model, ScriptedLlm)
    assert "Monday" in sent(agent.model.seen[0])


def text_of_content(content: types.Content) -> str:
    return "".join(part.text or "" for part in content.parts or [])


class SlowSessions(InMemorySessionService):
    """Gives out the first two sessions at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.both = asyncio.Barrier(2)
        self.asked = 0

    async def get_session(self, **given: Any) -> Any:
        self.asked += 1
        if self.asked <= 2:
            await self.both.wait()
        return await super().get_session(**given)


async def test_conversations_of_one_runner_do_not_mix() -> None:
    """Two runs at once, with one message object for both."""
    hooks = Hooks().on("BeforeAgent").on("BeforeModel").on("AfterAgent", rejects("no"))
    message = user("go")
    kit = Kit(hooks, root("no", "no", "a", "b"), service=SlowSessions())
    runs = [
        kit.runner.run_async(user_id="u", session_id=name, new_message=message)
        for name in ("one", "two")
    ]
    events = await asyncio.gather(*(anext(run) for run in runs))
    assert sorted(text_of(one) for one in events) == ["a", "b"]
    for run in runs:
        await run.aclose()
    for name in ("one", "two"):
        mine = [one for one in hooks.events if one["session_id"] == name]
        assert [one["hook_event_name"] for one in mine] == [
            *("BeforeAgent", "BeforeModel", "AfterAgent"),
            *("BeforeModel", "AfterAgent"),
        ]


async def test_a_given_session_keeps_its_id() -> None:
    hooks = Hooks().on("BeforeAgent")
    app = App(name="app", root_agent=root("a"))
    runner = HooklineRunner(
        hooks.config.session("mine"),
        app=app,
        session_service=InMemorySessionService(),
        auto_create_session=True,
    )
    run = runner.run_async(user_id="u", session_id="s1", new_message=user("go"))
    assert answer_of([event async for event in run]) == "a"
    assert [one["session_id"] for one in hooks.events] == ["mine"]
    assert app.plugins == []


@pytest.mark.parametrize("is_plain", [True, False], ids=["plugin", "runner"])
async def test_a_cancelled_run_leaves_nothing_behind(is_plain: bool) -> None:
    class Stuck(ScriptedLlm):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            waiting.set()
            await asyncio.Event().wait()
            yield LlmResponse()

    waiting = asyncio.Event()
    model = Stuck(reply=lambda _: call("none"))
    agent = LlmAgent(name="root", model=model)
    kit = Kit(Hooks().on("BeforeModel"), agent, plain=is_plain)
    run = asyncio.create_task(kit.say("go"))
    await waiting.wait()
    assert len(kit.plugin._invocations) == 1
    run.cancel()
    await asyncio.wait([run])
    del run
    while kit.plugin._invocations:  # until the garbage collector has seen ADK's session
        await asyncio.sleep(0)
        gc.collect()


@pytest.mark.parametrize("event", ["BeforeModel", "AfterAgent"])
async def test_run_live_is_refused_where_hooks_could_not_guard_it(event: str) -> None:
    """Issue 14: what cannot be guarded is refused with a message that says why."""
    kit = Kit(Hooks().on(event), root("a"))
    run = kit.runner.run_live(
        user_id="u", session_id="s1", live_request_queue=LiveRequestQueue()
    )
    with pytest.raises(RuntimeError, match=f"{event} hooks cannot guard a live run"):
        await anext(run)


def test_a_runner_wants_hooks_once() -> None:
    hooks = Hooks()
    service = InMemorySessionService()
    bare = App(name="app", root_agent=root())
    with pytest.raises(TypeError, match="needs a config"):
        HooklineRunner(app=bare, session_service=service)
    app = App(name="app", root_agent=root(), plugins=[HooklinePlugin(hooks.config)])
    with pytest.raises(TypeError, match="has a HooklinePlugin"):
        HooklineRunner(hooks.config, app=app, session_service=service)


def test_without_google_adk_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['google.adk.agents.base_agent'] = None\n"
        "import hookline.adapters.google_adk"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "install 'google-adk>=2.13'" in ran.stderr


def test_the_example_prints_what_the_page_shows() -> None:
    ran = subprocess.run(
        [sys.executable, EXAMPLE], capture_output=True, text=True, check=False
    )
    assert ran.stdout, ran.stderr
    page = PAGE.read_text()
    assert f"```text\n{ran.stdout}```" in page
    blocks = [one.split("```")[0] for one in page.split("```python\n")[2:]]
    example = EXAMPLE.read_text()
    assert [one for one in blocks if indent(one, " " * 4) not in example] == []
