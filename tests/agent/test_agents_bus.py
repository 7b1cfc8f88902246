"""Agents with hooks on a bus: the same effects, and no needless translation."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

import pytest

from hookline import Config, Settings
from hookline.agent import (
    Agent,
    Ending,
    ScriptedModel,
    ScriptedReply,
    fire_after_model_hook,
    fire_before_model_hook,
    fire_before_tool_selection_hook,
)
from hookline.bus import HookBusClient, InMemoryMessageBus, RemoteHooks
from hookline.translators.openai import OpenAITranslator
from tests.support.recorded_events import RecordedHooks, specific


async def test_an_agent_obeys_hooks_on_a_bus() -> None:
    """DESIGN: triggers, scheduler and chat work the same on RemoteHooks."""
    hooks = {
        "BeforeTool": specific(tool_input={"path": "src/a"}),
        "AfterTool": specific(additionalContext="noted"),
        "BeforeModel": specific(llm_request={"config": {"temperature": 0.1}}),
        "AfterModel": None,
        "AfterAgent": None,
    }
    bus = InMemoryMessageBus()
    recorded = RecordedHooks(hooks, bus=bus)
    written: list[str] = []

    def write(path: str) -> str:
        written.append(path)
        return f"wrote {path}"

    here = Config("s-2", ".", Settings.from_mapping({"enableHooks": False}))
    model = ScriptedModel([ScriptedReply("", (("write", {"path": "a"}),)), "done"])
    async with recorded.system:
        here.use_hooks(RemoteHooks(HookBusClient(bus), session_id="s-2"))
        result = await Agent(here, model, [write]).run("go")
    assert (result.ending, result.text) == (Ending.ANSWERED, "done")
    assert written == ["src/a"]
    assert model.requests[0]["config"] == {"temperature": 0.1}
    answers: Any = model.requests[1]["turns"][2].answers
    notice = "[System] A hook changed the tool's input: path"
    assert answers[0].result.llm_content == f"wrote src/a\n\nnoted\n\n{notice}"
    assert recorded.names[0] == "BeforeModel"


@contextmanager
def counted_translations() -> Iterator[Counter[str]]:
    """Counts the calls of all translators, by class."""
    counts: Counter[str] = Counter()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name.startswith("to_hook_llm_"):
            counts[type(frame.f_locals["self"]).__name__] += 1

    sys.setprofile(profile)
    try:
        yield counts
    finally:
        sys.setprofile(None)


REQUEST = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
RESPONSE = {"choices": [{"message": {"role": "assistant", "content": "hello"}}]}
MODEL_EVENTS: dict[str, Callable[..., Awaitable[Any]]] = {
    "BeforeModel": partial(fire_before_model_hook, llm_request=REQUEST),
    "BeforeToolSelection": partial(
        fire_before_tool_selection_hook, llm_request=REQUEST
    ),
    "AfterModel": partial(
        fire_after_model_hook, llm_request=REQUEST, llm_response=RESPONSE
    ),
}


@pytest.mark.parametrize("event", list(MODEL_EVENTS))
@pytest.mark.parametrize("is_remote", [False, True], ids=["here", "over a bus"])
async def test_a_model_event_is_translated_once_and_checked_where_it_arrives(
    event: str, is_remote: bool
) -> None:
    """DELTA-HPAY-003: over a bus it may come from any program, so it is checked."""
    bus = InMemoryMessageBus()
    hooks = RecordedHooks({event: None}, bus=bus)
    config, translators = hooks.config, ["OpenAITranslator"]
    if is_remote:
        config = Config("s-2", ".", Settings.from_mapping({"enableHooks": False}))
        config.use_hooks(RemoteHooks(HookBusClient(bus)))
        translators.append("StableTranslator")
    async with hooks.system:
        with counted_translations() as counts:
            await MODEL_EVENTS[event](config, translator=OpenAITranslator())
    assert counts == dict.fromkeys(translators, 2 if event == "AfterModel" else 1)
    assert hooks.events[0]["llm_request"]["messages"] == REQUEST["messages"]
