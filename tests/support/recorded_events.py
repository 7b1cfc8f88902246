"""Hooks that answer as a row of a table says, and the events that they were given."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hookline import Config, HookEventName, HookSystem, Settings

Event = dict[str, Any]

DENY = {"decision": "deny", "reason": "no"}
STOP = {"continue": False, "stopReason": "enough"}
MODEL_EVENTS = ("BeforeToolSelection", "BeforeModel", "AfterModel")
TOOL_EVENTS = ("BeforeTool", "AfterTool")

_EVERY_EVENT = ("session_id", "transcript_path", "cwd", "hook_event_name", "timestamp")


def specific(**fields: Any) -> dict[str, Any]:
    """What a hook says about its event alone."""
    return {"hookSpecificOutput": fields}


class RecordedHooks:
    """A Config whose hooks answer in this process, and the events that they saw.

    By event: what its hook answers, a list of them for several hooks, or a function of
    the event. ``{"$each": [...]}`` answers differently each time, ``{"$redact": word}``
    takes a word out of every answer of a model, ``{"$raise": text}`` fails, with
    ``onError``; ``{"$process": hook}`` is a hook of the settings that records nothing.
    """

    def __init__(
        self,
        outputs: Mapping[str, Any] | None = None,
        folder: Path | str = ".",
        *,
        session_id: str = "s-1",
        settings: Mapping[str, Any] | None = None,
        bus: Any = None,
        **more: Any,
    ) -> None:
        self.events: list[Event] = []
        functions: list[tuple[str, Any]] = []
        groups: dict[str, Any] = {}
        for event, answers in (outputs or {}).items():
            for answer in answers if isinstance(answers, list) else [answers]:
                if isinstance(answer, Mapping) and "$process" in answer:
                    group = groups.setdefault(event, [{"hooks": []}])[0]
                    group["hooks"].append({"type": "command", **answer["$process"]})
                else:
                    functions.append((event, answer))
        chosen = Settings.from_mapping({"hooks": groups, **(settings or {})})
        self.config = Config(session_id, folder, chosen, **more)
        if functions:
            self.system = HookSystem(self.config, message_bus=bus)
        for event, answer in functions:
            policy = answer.get("onError") if _is_special(answer, "$raise") else None
            self.system.on(
                HookEventName.of(event), name=event, recheck=False, on_error=policy
            )(self._hook(answer))

    def _hook(self, answer: Any) -> Any:
        turns = iter(answer["$each"]) if _is_special(answer, "$each") else None

        def hook(event: Event) -> Any:
            self.events.append(event)
            if turns is not None:
                return next(turns, None)
            if _is_special(answer, "$redact"):
                text = event["llm_response"]["text"].replace(answer["$redact"], "***")
                return specific(llm_response={"text": text})
            if _is_special(answer, "$raise"):
                raise RuntimeError(answer["$raise"])
            return answer(event) if callable(answer) else answer

        return hook

    @property
    def names(self) -> list[str]:
        """The names of the events, in order."""
        return [event["hook_event_name"] for event in self.events]

    def of(self, name: str) -> list[Event]:
        """The events of one name."""
        return [event for event in self.events if event["hook_event_name"] == name]

    @property
    def data(self) -> list[list[Any]]:
        """Name and own fields of each event."""
        return [event_data(event) for event in self.events]


def _is_special(answer: Any, key: str) -> bool:
    return isinstance(answer, Mapping) and key in answer


def event_data(event: Event) -> list[Any]:
    """Name and own fields of an event; the session only where it is another."""
    fields = {key: value for key, value in event.items() if key not in _EVERY_EVENT}
    if event["session_id"] != "s-1":
        fields["session_id"] = event["session_id"]
    if event["transcript_path"]:
        fields["transcript_path"] = event["transcript_path"]
    return [event["hook_event_name"], fields]


def grouped(label: str, outcomes: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Outcomes by name, those that are the same together: readable as data."""
    groups: list[tuple[dict[str, Any], list[str]]] = []
    for name, outcome in outcomes.items():
        for same, names in groups:
            if same == outcome:
                names.append(name)
                break
        else:
            groups.append((outcome, [name]))
    return [
        {label: "all" if len(groups) == 1 else ", ".join(names), **outcome}
        for outcome, names in groups
    ]


def filled(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that say something."""
    empty: Sequence[Any] = (None, False, "", [], (), {}, frozenset())
    return {
        name: value
        for name, value in fields.items()
        if value not in empty or (value == 0 and value is not False)
    }


@contextmanager
def warnings_of(logger: str = "hookline") -> Iterator[list[str]]:
    """The warnings that are logged meanwhile."""
    messages: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    listener = Listener(logging.WARNING)
    logging.getLogger(logger).addHandler(listener)
    try:
        yield messages
    finally:
        logging.getLogger(logger).removeHandler(listener)
