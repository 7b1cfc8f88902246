"""A config with functions as hooks, and what they were given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hookline import Config, HookEventName, HookSystem, Settings

Event = dict[str, Any]
Hook = Callable[[Event], Any]


class Hooked:
    """A config whose hooks are functions; ``seen`` has every event."""

    def __init__(
        self,
        hooks: dict[str, Hook] | None = None,
        *,
        settings: dict[str, Any] | None = None,
        unseen: str = "",
    ) -> None:
        self.config = Config("own", ".", Settings.from_mapping(settings or {}))
        self.seen: list[Event] = []
        system = HookSystem(self.config)
        for event in HookEventName:
            if event.value != unseen:
                system.on(event, name="recorder", recheck=False)(self._record)
        for name, hook in (hooks or {}).items():
            system.on(HookEventName.of(name))(hook)

    def _record(self, event: Event) -> None:
        self.seen.append(event)

    @property
    def names(self) -> list[str]:
        """The names of all events, in order."""
        return [event["hook_event_name"] for event in self.seen]

    def events(self, name: str) -> list[Event]:
        """The inputs of one event."""
        return [event for event in self.seen if event["hook_event_name"] == name]


def adds(text: str) -> dict[str, Any]:
    """The output of a hook that adds context."""
    return {"hookSpecificOutput": {"additionalContext": text}}


def denies(reason: str) -> dict[str, Any]:
    """The output of a hook that blocks."""
    return {"decision": "deny", "reason": reason}


def stops(reason: str) -> dict[str, Any]:
    """The output of a hook that stops the agent."""
    return {"continue": False, "stopReason": reason}
