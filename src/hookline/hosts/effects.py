"""What hooks can ask of a host, and what is said where a host cannot do it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from hookline.protocol.events import HookEventName

_E = HookEventName


class Effect(StrEnum):
    """What the hooks of an event can ask of a host."""

    BLOCK = "block"
    ASK = "ask"
    CHANGE = "change"
    CONTEXT = "context"
    MESSAGE = "message"
    WITHHOLD = "withhold"
    STOP = "stop"
    CLEAR = "clear context"
    SUPPRESS = "suppress output"


EFFECTS: dict[HookEventName, tuple[Effect, ...]] = {
    event: tuple(Effect[name] for name in names.split())
    for event, names in {
        _E.BeforeTool: "BLOCK ASK CHANGE CONTEXT MESSAGE STOP",
        _E.AfterTool: "BLOCK CONTEXT MESSAGE WITHHOLD SUPPRESS STOP",
        _E.BeforeAgent: "BLOCK CONTEXT MESSAGE STOP",
        _E.AfterAgent: "BLOCK MESSAGE CLEAR STOP",
        _E.BeforeModel: "BLOCK CHANGE CONTEXT MESSAGE STOP",
        _E.AfterModel: "CHANGE MESSAGE SUPPRESS STOP",
        _E.BeforeToolSelection: "CHANGE MESSAGE STOP",
        _E.SessionStart: "CONTEXT MESSAGE",
        _E.SessionEnd: "MESSAGE",
        _E.Notification: "MESSAGE",
        _E.PreCompress: "MESSAGE",
        _E.SubagentStart: "BLOCK CONTEXT MESSAGE STOP",
        _E.SubagentStop: "BLOCK MESSAGE CLEAR STOP",
    }.items()
}
"""What callers apply of each event (protocol.md#events)."""

Limits = Mapping[HookEventName, Mapping[Effect, str]]
"""What a host cannot express, and what happens instead."""
NOT_READ = "the answer of a hook is not read here"
TO_PERSON = "shown to the person, not to the model"
NOT_BEFORE = "lost, unless it comes with a block: say it after the tool"
REFUSED_ONLY = "the call is refused, and the agent goes on"
NOT_STARTED: Mapping[Effect, str] = dict.fromkeys(
    (Effect.BLOCK, Effect.STOP), "the subagent starts, and is told not to work"
)
ONLY_REFUSED: Mapping[Effect, str] = dict.fromkeys(
    (Effect.CONTEXT, Effect.MESSAGE), "the model sees it only with a refusal"
)
REFUSALS_ALONE: Mapping[Effect, str] = {
    Effect.ASK: "hooks cannot ask here, hooksConfig.onAsk decides",
    Effect.CHANGE: "the call is refused, with the input that hooks want",
    **ONLY_REFUSED,
    Effect.STOP: REFUSED_ONLY,
}
"""Before a tool, in hosts that know a block and nothing else."""
_NO_CLEAR = {Effect.CLEAR: "the context stays as it is"}
COMMON_LIMITS: Limits = {
    _E.AfterTool: {Effect.SUPPRESS: "the result is shown to the person"},
    _E.AfterAgent: _NO_CLEAR,
    _E.SubagentStop: _NO_CLEAR,
    _E.SessionEnd: {Effect.MESSAGE: TO_PERSON},
    _E.Notification: {Effect.MESSAGE: TO_PERSON},
    _E.PreCompress: {Effect.MESSAGE: TO_PERSON},
}
"""Of all hosts that say nothing else."""


def unheard(text: str, *events: HookEventName, keep: tuple[Effect, ...] = ()) -> Limits:
    """Limits of events whose answers are not read at all, or only what is kept."""
    return {
        event: {effect: text for effect in EFFECTS[event] if effect not in keep}
        for event in events
    }
