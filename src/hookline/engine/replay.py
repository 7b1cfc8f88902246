"""Decide recorded events again, and say how the verdicts differ.

``hookline replay`` fires them with all their hooks. A ``Decider`` starts nothing: it
answers with the rules and policies alone, and names the hooks that would have to run.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from hookline.config import Config
from hookline.execute.rule import RuleExecutor
from hookline.journal.query import Entry, EventKind, FullEntry
from hookline.journal.rows import masked_verdict
from hookline.plan import SILENT, Executor, HookCall, RegisteredHook, RunEnd, timestamp
from hookline.protocol.events import HookEventName
from hookline.protocol.inputs import EventFirer
from hookline.protocol.results import ProcessedHookResult, make_empty_success_result
from hookline.protocol.values import decode, same_json
from hookline.protocol.verdict import EFFECT_LABELS, Verdict, hook_verdict
from hookline.settings.model import HookMode, HookType

from .breaker import CircuitBreaker
from .handler import EventPipeline, HookEventHandler
from .observers import Observers
from .planner import HookPlanner
from .registry import HookRegistry
from .runner import HookRunner

INEXACT = {
    "cut": "input truncated",
    "masked": "input masked",
    "hook in code": "a hook in code took part",
}
"""Why an event cannot be replayed exactly, by the values of ``--json``."""
_NO_LOG = logging.Logger("hookline.replay", logging.CRITICAL + 1)


class Change(Struct, frozen=True):
    """One difference between two verdicts."""

    what: str
    before: Any
    after: Any


class Replayed(Struct, frozen=True, kw_only=True):
    """One event that was decided again."""

    entry: Entry
    before: Verdict
    after: Verdict
    changes: list[Change]
    reason: str | None
    """Why it is blocked, stopped or asked about now."""
    hooks: list[str]
    """The hooks that decide now."""
    failures: list[str]
    """The errors of hooks in this run."""

    @property
    def inexact(self) -> str | None:
        """A key of ``INEXACT``; None if the replay is exact."""
        return inexact(self.entry)

    def to_json(self) -> dict[str, Any]:
        """It in the documented shape of ``hookline replay --json``."""
        return {
            "id": self.entry.id,
            "at": timestamp(round(self.entry.at * 1_000_000) // 1000),
            "event": self.entry.event,
            "target": self.entry.target,
            "before": self.before.word,
            "after": self.after.word,
            "changes": msgspec.to_builtins(self.changes),
            "reason": self.reason,
            "hooks": self.hooks,
            "blockers": self.entry.blockers,
            "apart": self.inexact,
        }


def inexact(event: Entry | EventKind) -> str | None:
    """Why an event cannot be replayed exactly, a key of ``INEXACT``."""
    if event.input_cut:
        return "cut"
    if event.input_masked:
        return "masked"
    return "hook in code" if event.in_code else None


async def replay(recorded: FullEntry, handler: EventFirer | None) -> Replayed:
    """Fire a recorded event again; without a handler it has no hooks now."""
    result = ProcessedHookResult(aggregated=make_empty_success_result())
    if handler is not None:
        result = await handler.fire(recorded.entry.event, recorded.input)
    return compare(recorded, result)


def compare(recorded: FullEntry, result: ProcessedHookResult) -> Replayed:
    """The verdict of a recorded event beside the one that it has now."""
    before = recorded.decided
    after = masked_verdict(HookEventName.of(recorded.entry.event), result)
    # The most important differences first.
    flags = ("blocked", "ask", "stop")
    values = [(flag, getattr(before, flag), getattr(after, flag)) for flag in flags]
    values += [
        (label, _decoded(before.effects.get(name)), _decoded(after.effects.get(name)))
        for name, label in EFFECT_LABELS.items()
    ]
    deciding = (
        hook.hook_name
        for hook in result.aggregated.hook_results
        if hook_verdict(hook).decides
    )
    return Replayed(
        entry=recorded.entry,
        before=before,
        after=after,
        changes=[Change(*value) for value in values if not same_json(*value[1:])],
        reason=result.stop_reason or result.reason,
        hooks=list(dict.fromkeys(deciding)),
        failures=[error.message for error in result.aggregated.errors],
    )


def _decoded(effect: Any) -> Any:
    """The value of an effect that is JSON text; a truncated one stays text."""
    try:
        return decode(effect) if isinstance(effect, str) else effect
    except ValueError:
        return effect


class Decided(Struct, frozen=True, kw_only=True):
    """What rules and policies say about an event."""

    result: ProcessedHookResult
    programs: list[str]
    """The hooks that were left out and can still change the verdict."""


class Decider:
    """Answers events without starting, calling or recording anything."""

    def __init__(self, config: Config) -> None:
        settings = config.settings
        self._registry = HookRegistry(settings)
        self._left_out = _LeftOut()
        executors: dict[HookType, Executor] = dict.fromkeys(HookType, self._left_out)
        executors[HookType.RULE] = RuleExecutor()
        if any(
            hook.config.type is HookType.CEDAR for hook in self._registry.all_hooks()
        ):
            from hookline.execute.cedar import CedarExecutor  # an extra of its own

            executors[HookType.CEDAR] = CedarExecutor()
        breaker = CircuitBreaker(config.working_dir)
        self._handler = HookEventHandler(
            EventPipeline(
                settings=settings,
                registry=self._registry,
                planner=HookPlanner(self._registry),
                runner=HookRunner(executors, breaker),
                observers=Observers(config, _NO_LOG, False),
                tool_selection=settings.global_options.tool_selection,
            )
        )

    async def decide(self, event: str, event_input: Mapping[str, Any]) -> Decided:
        """Decide one event; raises ``UnknownEventError``."""
        self._left_out.hooks.clear()
        result = await self._handler.fire(event, event_input)
        programs = list(dict.fromkeys(hook.name for hook in self._left_out.hooks))
        hooks = self._registry.for_event(HookEventName.of(event))
        if result.blocked and not any(hook.sequential for hook in hooks):
            programs = []  # in parallel, no other hook takes a block back
        return Decided(result=result, programs=programs)


class _LeftOut(Executor):
    """Takes the place of every executor that runs something."""

    def __init__(self) -> None:
        self.hooks: list[RegisteredHook] = []

    async def run(self, hook: RegisteredHook, call: HookCall) -> RunEnd:
        """Only note a hook whose answer would count."""
        if hook.config.mode is HookMode.ENFORCE and not hook.config.is_async:
            self.hooks.append(hook)
        return SILENT
