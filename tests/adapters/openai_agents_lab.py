"""What the tests of the OpenAI Agents adapter share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from agents import Agent, RunConfig, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from hookline import Config, HookSystem, Settings
from hookline.adapters.openai_agents import HooklineRunner, hooked_agent
from hookline.protocol.events import HookEventName

QUIET = RunConfig(tracing_disabled=True)
say = assistant_message


def call(name: str, call_id: str = "call-1", **given: Any) -> Any:
    return function_call(name, given, call_id=call_id)


class Lab:
    """A config whose events are recorded, and hooks that are functions."""

    def __init__(self, *, record: bool = True, **settings: Any) -> None:
        self.config = Config("lab", ".", Settings.from_mapping(settings))
        self.system = HookSystem(self.config)
        self.events: list[dict[str, Any]] = []
        self.ran: list[str] = []

        def seen(event: dict[str, Any]) -> None:
            self.events.append(event)

        for name in HookEventName if record else ():
            self.system.on(name, name="recorder", recheck=False)(seen)

    def on(self, event: str, answer: Any, matcher: str = "") -> None:
        """Let hooks answer an event: a function of it, or always the same."""

        def hook(given: dict[str, Any]) -> Any:
            return answer(given) if callable(answer) else answer

        self.system.on(HookEventName.of(event), matcher=matcher)(hook)

    def names(self) -> list[str]:
        return [event["hook_event_name"] for event in self.events]

    def of(self, name: str) -> list[dict[str, Any]]:
        return [one for one in self.events if one["hook_event_name"] == name]

    def tool(self, work: Callable[[str], Any] | None = None, **options: Any) -> Any:
        """A tool that writes down its argument."""
        decorate: Any = function_tool(
            name_override=options.pop("name", "note"), **options
        )

        @decorate  # type: ignore[untyped-decorator]  # the options are of any kind
        def note(text: str) -> Any:
            """Note a text."""
            self.ran.append(text)
            return f"noted {text}" if work is None else work(text)

        return note

    def agent(self, steps: list[Any], **options: Any) -> tuple[Agent[Any], Any]:
        model = ScriptedModel(steps)
        name = options.pop("name", "Worker")
        return Agent(name=name, model=model, **options), model


def run(lab: Lab, agent: Agent[Any], given: Any = "go", **options: Any) -> Any:
    """Run an agent to its end, with hooks."""
    hooked = hooked_agent(agent, lab.config)
    return asyncio.run(_run(lab, hooked, given, {"run_config": QUIET, **options}))


async def _run(lab: Lab, agent: Agent[Any], given: Any, options: Any) -> Any:
    async with lab.config:
        return await HooklineRunner.run(agent, given, **options)


def stream(lab: Lab, agent: Agent[Any], given: Any = "go", **options: Any) -> Any:
    """Run an agent to its end; its result, and the events that it showed."""
    hooked = hooked_agent(agent, lab.config)
    return asyncio.run(_stream(lab, hooked, given, {"run_config": QUIET, **options}))


async def _stream(lab: Lab, agent: Agent[Any], given: Any, options: Any) -> Any:
    async with lab.config:
        result = HooklineRunner.run_streamed(agent, given, **options)
        return result, [event async for event in result.stream_events()]


def specific(**fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": fields}


def sent(model: ScriptedModel, at: int = -1) -> str:
    """All that the model was sent in one call."""
    return json.dumps(model.calls[at].input, default=repr)


def outputs(result: Any) -> list[Any]:
    return [
        item["output"]
        for item in result.to_input_list()
        if item.get("type") == "function_call_output"
    ]
