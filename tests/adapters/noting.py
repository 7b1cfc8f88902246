"""Hooks of this process for adapter tests: they note every event, and answer it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hookline import Config, HookEventName, HookSystem, Settings

Event = dict[str, Any]
Answer = dict[str, Any] | Callable[[Event], dict[str, Any] | None]


class NotingHooks:
    """A Config whose hooks note events, and give these answers per event."""

    def __init__(
        self,
        folder: Path,
        hooks_config: dict[str, Any] | None = None,
        **answers: Answer,
    ) -> None:
        settings = Settings.from_mapping({"hooksConfig": hooks_config or {}})
        self.config = Config("s-1", folder, settings)
        self.events: list[Event] = []
        system = HookSystem(self.config)
        for event in answers:
            system.on(HookEventName.of(event), recheck=False)(
                self._hook(answers[event])
            )

    def names(self) -> list[str]:
        """The events in order."""
        return [event["hook_event_name"] for event in self.events]

    def of(self, event: HookEventName | str) -> list[Event]:
        """The events of one name."""
        return [one for one in self.events if one["hook_event_name"] == event]

    def _hook(self, answer: Answer) -> Callable[[Event], dict[str, Any] | None]:
        def note(event: Event) -> dict[str, Any] | None:
            self.events.append(event)
            return answer(event) if callable(answer) else answer

        return note


def specific(**fields: Any) -> dict[str, Any]:
    """An output with ``hookSpecificOutput``."""
    return {"hookSpecificOutput": fields}


BLOCKS = {"decision": "block", "reason": "not today"}
STOPS = {"continue": False, "stopReason": "enough"}
ASKS = {"decision": "ask", "reason": "really?"}
WITHHOLDS = {"reason": "secret", **specific(withholdResult=True)}
