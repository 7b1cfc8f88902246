"""Choose which hooks run for one event, and in what order.

No I/O, no clock, no awaiting. Plans are cached for each event and name until the
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

from .matcher import MAX_NAME, compile_matcher
from .registry import HookRegistry

_MAX_CACHED = 4096
_PLAIN_NAMES = (str, type(None))
_TOOL_NAMES = ("tool_name", "our_tool_name")
"""In ``host``: what a coding agent calls the tool, and we, where hooks see its name."""


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
        self._plans: dict[HookEventName, dict[str | None, HookPlan | None]] = {}

    def plan_for(
        self, event: HookEventName, fields: Mapping[str, Any]
    ) -> HookPlan | None:
        """The plan for an event with these fields; None if no hook runs.

        Without fields it is the one in which every matcher matches.
        """
        field = TRAITS[event].matched_field
        name = fields.get(field) if field else None
        if self._version != self._registry.version:
            self._plans, self._version = {}, self._registry.version
        # A subclass of str may lie about its hash and get another name's plan.
        is_cacheable = type(name) in _PLAIN_NAMES and "host" not in fields
        if is_cacheable:
            try:
                return self._plans[event][name]
            except KeyError:  # not planned yet
                pass
        plans = self._plans.setdefault(event, {})
        hooks = self._registry.for_event(event)
        plan = make_plan(event, hooks, fields)
        # Hooks of a dialect are matched by other fields too, such as the MCP server.
        is_cacheable &= not any(hook.config.is_foreign for hook in hooks)
        if is_cacheable and len(name or "") <= MAX_NAME:
            if len(plans) >= _MAX_CACHED:  # names come from a model
                plans.clear()
            plans[name] = plan
        return plan


def make_plan(
    event: HookEventName, hooks: Iterable[RegisteredHook], fields: Mapping[str, Any]
) -> HookPlan | None:
    """Plan without a cache."""
    judged = judge(hooks, fields)
    chosen = tuple(item.hook for item in judged if item.judgement is Judgement.RUNS)
    if not chosen:
        return None
    # If other settings repeat a hook of a sequential group, its order stays.
    is_sequential = any(hook.sequential for hook in chosen) or any(
        item.hook.sequential and item.duplicate_of.file != item.hook.file
        for item in judged
        if item.duplicate_of is not None
    )
    configs = [hook.config for hook in chosen]
    return HookPlan(
        event,
        chosen,
        is_sequential,
        special=any(config.condition or config.is_async for config in configs),
    )


def judge(
    hooks: Iterable[RegisteredHook], fields: Mapping[str, Any]
) -> list[JudgedHook]:
    """Decide for every hook whether it runs, and if not, why."""
    judgements = {hook: _judge_alone(hook, fields) for hook in hooks}
    keys = {
        hook: hook.key
        for hook, judgement in judgements.items()
        if judgement is Judgement.RUNS
    }
    # Two settings files may name one command; running it twice would double its side
    # effects, so a repeat is dropped rather than merged. Of equal ones a managed hook
    # stays, and else the first.
    first_by_key: dict[object, RegisteredHook] = {}
    for hook in sorted(keys, key=lambda hook: not hook.config.managed):
        first_by_key.setdefault(keys[hook], hook)
    judged = []
    for hook, judgement in judgements.items():
        first = first_by_key[keys[hook]] if hook in keys else hook
        if first is hook:
            judged.append(JudgedHook(hook, judgement))
        else:
            judged.append(JudgedHook(hook, Judgement.DUPLICATE, first))
    return judged


def _judge_alone(hook: RegisteredHook, fields: Mapping[str, Any]) -> Judgement:
    if not hook.enabled:
        return Judgement.DISABLED
    if hook.is_skipped:
        return Judgement.UNTRUSTED
    names = names_of(hook, fields)
    if names is not None and matched_name(hook, names) is None:
        return Judgement.NOT_MATCHING
    return Judgement.RUNS


def names_of(hook: RegisteredHook, fields: Mapping[str, Any]) -> tuple[str, ...] | None:
    """What a hook's matcher is compared with; None if every matcher matches.

    For a tool that a coding agent calls by another name: our name and theirs.
    """
    traits, host = TRAITS[hook.event], fields.get("host")
    names = [name_of(fields.get(traits.matched_field))]
    if names[0] is not None and hook.config.is_foreign:
        # Most hosts have no such hook and need not load the tables.
        from hookline.protocol.dialects import DIALECTS, shown_names

        dialect = DIALECTS[hook.config.dialect.value]
        names = [*map(name_of, shown_names(dialect, hook.event, fields) or [None])]
    elif traits.matching is Matching.REGEX and isinstance(host, Mapping):
        names += [name_of(host[k]) for k in _TOOL_NAMES if host.get(k) is not None]
    texts = tuple(dict.fromkeys(name for name in names if name is not None))
    return None if None in names else texts


def name_of(value: object) -> str | None:
    """A text by which hooks are chosen; None for what matches every matcher."""
    if not issubclass(type(value), str):
        return None
    name = str.__str__(value)
    return name if len(name) <= MAX_NAME else None


def matched_name(hook: RegisteredHook, names: tuple[str, ...]) -> str | None:
    """The first of the names that a hook's matcher matches (protocol.md#planning)."""
    # Gemini CLI ignores surrounding spaces too.
    matcher = "" if hook.matcher is None else hook.matcher.strip()
    matching, is_foreign = TRAITS[hook.event].matching, hook.config.is_foreign
    if matching is Matching.NOTHING or matcher in {"", "*"}:
        return names[0]
    listed: tuple[str, ...] | None = (matcher,) if matching is Matching.EXACT else None
    if is_foreign:
        from hookline.protocol.dialects import DIALECTS, listed_names, python_expression

        dialect = DIALECTS[hook.config.dialect.value]
        if listed is None or dialect.searches_all:
            listed = listed_names(dialect, matcher)
        matcher = python_expression(matcher)
    if listed is not None:
        return next((name for name in names if name in listed), None)
    expression = compile_matcher(matcher)
    matched = [name for name in names if expression.matches(name)]
    # "Every tool but this one" must hold for each of its names.
    if expression.excludes and not is_foreign and len(matched) < len(names):
        return None
    return matched[0] if matched else None
