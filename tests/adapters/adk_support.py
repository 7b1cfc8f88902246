"""One ADK app with hooks, for the tests of its adapter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from google.adk.apps import App, ResumabilityConfig
from google.adk.events.event import Event
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from google.genai import types

from hookline import Config, HookEventName, HookSystem, Settings
from hookline.adapters.google_adk import HooklinePlugin, HooklineRunner

from .drivers.google_adk import answer_of, inputs, user

Output = dict[str, Any] | None


class Hooks:
    """A config with functions as hooks, which records every event that they see."""

    def __init__(self, settings: dict[str, Any] | None = None) -> None:
        self.config = Config("own", ".", Settings.from_mapping(settings or {}))
        self.system = HookSystem(self.config)
        self.events: list[dict[str, Any]] = []

    def on(
        self, event: str, decide: Callable[[dict[str, Any]], Output] = lambda _: None
    ) -> Hooks:
        def hook(given: dict[str, Any]) -> Output:
            self.events.append(given)
            return decide(given)

        self.system.on(
            HookEventName.of(event), name=f"{event}-{len(self.events)}", recheck=False
        )(hook)
        return self

    def seen(self, event: str) -> list[dict[str, Any]]:
        return [one for one in self.events if one["hook_event_name"] == event]

    @property
    def names(self) -> list[str]:
        return [one["hook_event_name"] for one in self.events]


class Kit:
    """An app whose root agent is guarded, and the sessions of its runner."""

    def __init__(
        self,
        hooks: Hooks,
        root: Any,
        *,
        plain: bool = False,
        before: Sequence[BasePlugin] = (),
        resumable: bool = False,
        service: InMemorySessionService | None = None,
        **options: Any,
    ) -> None:
        self.plugin = HooklinePlugin(hooks.config, **options)
        app = App(name="app", root_agent=root, plugins=[*before, self.plugin])
        if resumable:
            app.resumability_config = ResumabilityConfig(is_resumable=True)
        self.service = service or InMemorySessionService()
        made: Callable[..., Runner] = Runner if plain else HooklineRunner
        self.runner = made(
            app=app, session_service=self.service, auto_create_session=True
        )

    async def send(
        self, message: types.Content, session: str = "s1", **options: Any
    ) -> list[Event]:
        run = self.runner.run_async(
            user_id="u", session_id=session, new_message=message, **options
        )
        return [event async for event in run]

    async def say(self, text: str, session: str = "s1", **options: Any) -> list[Event]:
        return await self.send(user(text), session, **options)

    async def ask(self, text: str, session: str = "s1", **options: Any) -> str:
        """The answer to a prompt."""
        return answer_of(await self.say(text, session, **options))

    async def kept(self, session: str = "s1") -> Session:
        found = await self.service.get_session(
            app_name="app", user_id="u", session_id=session
        )
        assert found is not None
        return found

    async def inputs(self, session: str = "s1") -> list[dict[str, Any]]:
        """The inputs of tool calls, as ADK recorded them."""
        return inputs((await self.kept(session)).events)


def deny(reason: str) -> Output:
    return {"decision": "deny", "reason": reason}


def stop(reason: str) -> Output:
    return {"continue": False, "stopReason": reason}


def specific(**fields: Any) -> Output:
    return {"hookSpecificOutput": fields}


def function_responses(events: Sequence[Event]) -> list[dict[str, Any]]:
    """The results that the model is given."""
    found = [one for event in events for one in event.get_function_responses()]
    return [one.response or {} for one in found]
