"""A config whose hooks are functions of this process, and the events that they saw."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from hookline import Config, HookEventName, HookSystem, Settings

Event = dict[str, Any]
Output = dict[str, Any]
Answer = str | list[Any] | Output | Callable[[Event], Any] | None
"""What a hook says: always the same, or by the event.

An output or its name, a function of the event, or pairs of a text and an answer, of
which the first counts whose text is in the event; ``#1`` is the first event.
"""


class RecordedHooks:
    """Hooks that answer events; ``events`` has all that they were given, in order.

    Every event is recorded but those in ``unheard``: a hook on AfterModel holds back
    streams, so a test of live ones must not have any.
    """

    def __init__(
        self,
        answers: Mapping[str, Answer] | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        hooks_config: Mapping[str, Any] | None = None,
        unheard: Collection[str] = (),
    ) -> None:
        mapping = settings or {"hooksConfig": hooks_config or {}}
        self.config = Config("own", ".", Settings.from_mapping(dict(mapping)))
        self.system = HookSystem(self.config)
        self.events: list[Event] = []
        answers = answers or {}
        for event in HookEventName:
            if event.value not in unheard:
                hook = self._hook(answers.get(event.value))
                self.system.on(event, name=f"on {event.value}", recheck=False)(hook)

    def _hook(self, answer: Answer) -> Callable[[Event], Any]:
        seen: list[Event] = []

        def hook(event: Event) -> Any:
            self.events.append(event)
            seen.append(event)
            return _output(answer, event, len(seen))

        return hook

    @property
    def names(self) -> list[str]:
        """The names of all events, in order."""
        return [event["hook_event_name"] for event in self.events]

    @property
    def sessions(self) -> set[str]:
        """The sessions that events were of."""
        return {event["session_id"] for event in self.events}

    def of(self, name: str) -> list[Event]:
        """The events of one name."""
        return [event for event in self.events if event["hook_event_name"] == name]

    def of_session(self, session_id: str) -> list[Event]:
        """The events of one session."""
        return [event for event in self.events if event["session_id"] == session_id]


def specific(**fields: Any) -> Output:
    """An output with fields that only some events have."""
    return {"hookSpecificOutput": fields}


def changes(**tool_input: Any) -> Output:
    """An output that changes the input of a tool."""
    return specific(tool_input=tool_input)


BLOCKS: Output = {"decision": "deny", "reason": "not today"}
STOPS: Output = {"continue": False, "stopReason": "enough"}
ADDS = specific(additionalContext="mind it")
ASKS: Output = {"decision": "ask", "reason": "really?"}
WITHHOLDS: Output = {"reason": "confidential", **specific(withholdResult=True)}


def crashes(event: Event) -> None:
    """A hook that fails."""
    raise RuntimeError("broken")


def redacts(event: Event) -> Output | None:
    """An AfterModel hook that takes ``s3cret`` out of an answer."""
    text = event["llm_response"].get("text") or ""
    if "s3cret" not in text:
        return None
    return specific(llm_response={"text": text.replace("s3cret", "***")})


def uppercases(event: Event) -> Output:
    """A BeforeModel hook that changes every message, and adds to the request."""
    messages = [
        {**message, "content": message["content"].upper()}
        for message in event["llm_request"]["messages"]
    ]
    changed = specific(llm_request={"messages": messages}, additionalContext="mind it")
    return {"systemMessage": "be brief", **changed}


def forgets(event: Event) -> Output:
    """A BeforeModel hook that takes the first message out of the request."""
    return specific(llm_request={"messages": event["llm_request"]["messages"][1:]})


def marks_path(event: Event) -> Output:
    """A BeforeTool hook that changes the path of a call."""
    return changes(path=event["tool_input"]["path"] + "!")


OUTPUTS: dict[str, Any] = {
    "block": BLOCKS,
    "stop": STOPS,
    "add": ADDS,
    "ask": ASKS,
    "ask about b": {**ASKS, **changes(path="b")},
    "withhold": WITHHOLDS,
    "change to b": changes(path="b"),
    "mark path": marks_path,
    "redact": redacts,
    "crash": crashes,
    "uppercase": uppercases,
    "forget": forgets,
    "answer": {**BLOCKS, **specific(llm_response={"text": "by a hook"})},
    "clear": specific(clearContext=True),
    "block and clear": {**BLOCKS, **specific(clearContext=True)},
}
"""What hooks say, by name."""


def _output(answer: Any, event: Event, number: int) -> Any:
    if isinstance(answer, str):
        return _output(OUTPUTS[answer], event, number)
    if callable(answer):
        output = answer(event)
        return OUTPUTS[output] if isinstance(output, str) else output
    if not isinstance(answer, list):
        return answer
    shown = json.dumps({**event, "cwd": ""}, default=str) + f" #{number}#"
    for text, output in answer:
        if (f"{text}#" if text.startswith("#") else text) in shown:
            return _output(output, event, number)
    return None
