"""Choose which hooks run for one event, and in what order.

No I/O, no clock, no awaiting. Plans are cached for each event and target until the
registry changes. A hook with a ``dialect`` is matched by the names that it is shown
(protocol.md#dialects).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from hookline.plan import HookPlan, RegisteredHook
from hookline.protocol.events import TRAITS, HookEventName, Matching
from hookline.settings.model import Dialect

from .matcher import MAX_TARGET_LENGTH, has_negative_lookaround, searcher
from .registry import HookRegistry

_MAX_CACHED = 4096
_PLAIN_NAMES = (str, type(None))
_NO_FIELDS: Mapping[str, Any] = {}
_TOOL_NAMES = ("tool_name", "our_tool_name")
"""In ``host``: what a coding agent calls the tool, and we, where hooks see its name."""
Names = tuple[str, ...]
_Key = str | tuple[str | Names | None, ...] | None


class Judgement(StrEnum):
    """Why a hook runs or not, in the order of the checks."""

    DISABLED = "disabled"
    UNTRUSTED = "untrusted"
    NOT_MATCHING = "not matching"
    DUPLICATE = "duplicate"
    RUNS = "runs"


class JudgedHook(Struct, frozen=True):
    """A hook and the planner's decision."""

    hook: RegisteredHook
    judgement: Judgement
    duplicate_of: RegisteredHook | None = None


class HookPlanner:
    """Plans for one registry."""

    def __init__(self, registry: HookRegistry) -> None:
        self._registry = registry
        self._version = registry.version
        self._plans: dict[HookEventName, dict[_Key, HookPlan | None]] = {}
        self._dialects: dict[HookEventName, tuple[Dialect, ...]] = {}

    def plan_for(
        self, event: HookEventName, fields: Mapping[str, Any]
    ) -> HookPlan | None:
        """The plan for an event with these fields; None if no hook runs."""
        field = TRAITS[event].matched_field
        value = fields.get(field) if field else None
        try:
            # A subclass of str may lie about its hash and get another name's plan.
            if (
                self._version == self._registry.version
                and type(value) in _PLAIN_NAMES
                and "host" not in fields
            ):
                return self._plans[event][value]
        except KeyError:  # not planned yet
            pass
        return self.plan(event, target_of(value), fields)

    def plan(
        self,
        event: HookEventName,
        target: str | None,
        fields: Mapping[str, Any] = _NO_FIELDS,
    ) -> HookPlan | None:
        """The plan for an event; None if no hook runs.

        ``target`` is what matchers are compared with; None matches all of them.
        """
        if self._version != self._registry.version:
            self._plans, self._dialects = {}, {}
            self._version = self._registry.version
        key = self._key(event, target, fields)
        try:
            return self._plans[event][key]
        except KeyError:
            pass
        plans = self._plans.setdefault(event, {})
        if len(plans) >= _MAX_CACHED:
            plans.clear()
        hooks = self._registry.for_event(event)
        plans[key] = plan = make_plan(event, hooks, target, fields)
        return plan

    def _key(
        self, event: HookEventName, target: str | None, fields: Mapping[str, Any]
    ) -> _Key:
        """All that a plan depends on: the names of an agent or of other hosts too."""
        dialects = self._dialects.get(event)
        if dialects is None:
            configs = [hook.config for hook in self._registry.for_event(event)]
            found = dict.fromkeys(one.dialect for one in configs if one.is_foreign)
            self._dialects[event] = dialects = tuple(found)
        if target is None or not (dialects or "host" in fields):
            return target
        shown = (names_of(one, event, fields) for one in dialects)
        return (target, tool_targets(event, target, fields), *shown)


def make_plan(
    event: HookEventName,
    hooks: Iterable[RegisteredHook],
    target: str | None,
    fields: Mapping[str, Any] = _NO_FIELDS,
) -> HookPlan | None:
    """Plan without a cache."""
    judged = judge(hooks, event, target, fields)
    chosen = tuple(one.hook for one in judged if one.judgement is Judgement.RUNS)
    if not chosen:
        return None
    sequential = any(hook.sequential for hook in chosen)
    configs = [hook.config for hook in chosen]
    return HookPlan(
        event,
        chosen,
        sequential or any(map(_is_repeated, judged)),
        special=any(one.condition or one.is_async for one in configs),
    )


def _is_repeated(judged: JudgedHook) -> bool:
    """Whether other settings repeat a hook of a sequential group: its order stays."""
    first = judged.duplicate_of
    return (
        first is not None and judged.hook.sequential and first.file != judged.hook.file
    )


def judge(
    hooks: Iterable[RegisteredHook],
    event: HookEventName,
    target: str | None,
    fields: Mapping[str, Any] = _NO_FIELDS,
) -> list[JudgedHook]:
    """Decide for every hook whether it runs, and if not, why."""
    listed = list(hooks)
    alone = [_judge_alone(hook, event, target, fields) for hook in listed]
    kept = _claims(listed, alone)
    judged = []
    for hook, judgement in zip(listed, alone, strict=True):
        first = kept.setdefault(hook.key, hook) if judgement is Judgement.RUNS else hook
        # Two settings files may name one command; running it twice would double
        # its side effects, so a repeat is dropped rather than merged.
        if first is hook:
            judged.append(JudgedHook(hook, judgement))
        else:
            judged.append(JudgedHook(hook, Judgement.DUPLICATE, first))
    return judged


def target_of(value: object) -> str | None:
    """What matchers are compared with; None if every matcher matches."""
    if not issubclass(type(value), str):
        return None
    name = str.__str__(value)
    return name if len(name) <= MAX_TARGET_LENGTH else None


def matches(matcher: str | None, event: HookEventName, target: str | None) -> bool:
    """Whether a group's matcher matches one name (protocol.md#planning)."""
    matching = TRAITS[event].matching
    if matching is Matching.NOTHING or target is None:
        return True
    # Gemini CLI ignores surrounding spaces too.
    matcher = "" if matcher is None else matcher.strip()
    if matcher in {"", "*"}:
        return True
    if matching is Matching.EXACT:
        return matcher == target
    return searcher(matcher)(target)


def tool_targets(
    event: HookEventName, target: str, fields: Mapping[str, Any]
) -> Names | None:
    """Our name of the tool and that of the coding agent; None if all matchers match."""
    host = fields.get("host")
    if TRAITS[event].matching is not Matching.REGEX or not isinstance(host, Mapping):
        return (target,)
    others = [host[key] for key in _TOOL_NAMES if host.get(key) is not None]
    names = dict.fromkeys((target, *map(target_of, others)))
    return None if None in names else tuple(filter(None, names))


def matches_any_name(matcher: str | None, event: HookEventName, names: Names) -> bool:
    """Whether a matcher without a dialect matches one of the names of a tool.

    "Every tool but this one" must hold for each of them.
    """
    found = [matches(matcher, event, name) for name in names]
    excludes = len(found) > 1 and has_negative_lookaround(matcher or "")
    return all(found) if excludes else any(found)


def names_of(
    dialect: Dialect, event: HookEventName, fields: Mapping[str, Any]
) -> Names | None:
    """What matchers of hooks in a dialect are compared with; None if all match."""
    # Most hosts have no such hook and need not load the tables.
    from hookline.protocol.dialects import DIALECTS, shown_names

    names = shown_names(DIALECTS[dialect.value], event, fields)
    if names is None or any(len(name) > MAX_TARGET_LENGTH for name in names):
        return None
    return names


def matched_name(
    dialect: Dialect, matcher: str | None, event: HookEventName, names: Names
) -> str | None:
    """The first of a hook's names that its matcher matches, as its host would."""
    from hookline.protocol.dialects import DIALECTS, listed_names, python_expression

    theirs, matching = DIALECTS[dialect.value], TRAITS[event].matching
    matcher = "" if matcher is None else matcher.strip()
    if matching is Matching.NOTHING or matcher in {"", "*"}:
        return names[0]
    listed = listed_names(theirs, matcher)
    if listed is None and matching is Matching.EXACT and not theirs.searches_all:
        listed = (matcher,)
    if listed is not None:
        return next((name for name in names if name in listed), None)
    is_found = searcher(python_expression(matcher))
    return next((name for name in names if is_found(name)), None)


def _is_matched(
    hook: RegisteredHook,
    event: HookEventName,
    target: str | None,
    fields: Mapping[str, Any],
) -> bool:
    if target is None:
        return True
    if not hook.config.is_foreign:
        targets = tool_targets(event, target, fields)
        return targets is None or matches_any_name(hook.matcher, event, targets)
    names = names_of(hook.config.dialect, event, fields)
    if names is None:
        return True
    return matched_name(hook.config.dialect, hook.matcher, event, names) is not None


def _claims(
    hooks: list[RegisteredHook], judgements: list[Judgement]
) -> dict[object, RegisteredHook]:
    """Keep a managed hook over an equal one of a higher source."""
    kept: dict[object, RegisteredHook] = {}
    for hook, judgement in zip(hooks, judgements, strict=True):
        if judgement is Judgement.RUNS and hook.config.managed:
            kept.setdefault(hook.key, hook)
    return kept


def _judge_alone(
    hook: RegisteredHook,
    event: HookEventName,
    target: str | None,
    fields: Mapping[str, Any],
) -> Judgement:
    if not hook.enabled:
        return Judgement.DISABLED
    if hook.is_skipped:
        return Judgement.UNTRUSTED
    if not _is_matched(hook, event, target, fields):
        return Judgement.NOT_MATCHING
    return Judgement.RUNS
