"""Why each hook of an event would or would not run; nothing is run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct, structs

from hookline.config import Config
from hookline.execute.rule import scope_of
from hookline.plan import HookCall, RegisteredHook, current_depth
from hookline.protocol.events import TRAITS, HookEventName, Matching
from hookline.protocol.inputs import EVENT_FIELDS, base_fields
from hookline.rules.reasons import FALSE, Explained
from hookline.rules.reasons import explain as explain_expression
from hookline.settings.load import Settings
from hookline.settings.matcher_hints import why_not
from hookline.settings.model import (
    Dialect,
    HookConfig,
    HookGroup,
    HookMode,
    HookType,
    SettingsLayer,
    TrustStatus,
)

from . import planner
from .admission import CircuitBreaker, refusal
from .matcher import MAX_TARGET_LENGTH
from .registry import HookRegistry

_REVIEW = "run 'hookline trust' to review and approve it"


class HookExplanation(Struct, frozen=True, kw_only=True):
    """One configured hook, and whether it would run."""

    name: str
    source: str
    file: str | None
    project: str | None
    type: str
    matcher: str | None
    sequential: bool
    judgement: str
    why: str
    order: int | None = None
    """The position in the plan; None if it is not in the plan."""
    duplicate_of: str | None = None
    observes: bool = False
    managed: bool = False
    dialect: str = Dialect.HOOKLINE.value
    is_async: bool = msgspec.field(name="async", default=False)
    condition: Explained | None = msgspec.field(name="if", default=None)
    rule: Explained | None = None
    """The expression of a rule, with the values that decide it."""


class Explainer:
    """Explains which hooks run on one event, and why."""

    def __init__(
        self, config: Config, event: HookEventName, event_input: dict[str, Any]
    ) -> None:
        self._config = config
        self._event = event
        matched = TRAITS[event].matched_field
        self._target_known = matched in event_input
        self.target = event_input.get(matched) if matched else None
        fields = base_fields(event, config.session_id, config.working_dir, "")
        self._call = HookCall(event, {**event_input, **fields}, current_depth())
        self._call.encode()
        self._breaker = CircuitBreaker(config.working_dir)

    def explain(self) -> list[HookExplanation]:
        """Explain every hook of the event; those in the plan come first."""
        hooks = HookRegistry(self._config.settings).for_event(self._event)
        target = planner.target_of(self.target)
        judged = planner.judge(hooks, self._event, target, self._call.input)
        judged.sort(key=lambda one: one.judgement is not planner.Judgement.RUNS)
        explained = [self._explain(one, order) for order, one in enumerate(judged, 1)]
        left_out = switched_off(self._config.settings, self._event)
        return [*explained, *(_left_out(*one) for one in left_out)]

    def _explain(self, judged: planner.JudgedHook, order: int) -> HookExplanation:
        hook, original = judged.hook, judged.duplicate_of
        judgement, why = judged.judgement.value, self._reason(judged)
        planned = judged.judgement is planner.Judgement.RUNS
        refused = None
        if planned:
            refused = refusal(hook, self._call, self._breaker, to_run=False)
        if planned and hook.trust is TrustStatus.UNTRUSTED:
            judgement = "untrusted"
            why = "not approved, and hooksConfig.untrusted blocks the event: " + _REVIEW
        elif planned and hook.trust is TrustStatus.CHANGED:
            problem = hook.approval and hook.approval.check()[0]
            judgement = "changed"
            effect = f"so it fails and its onError decides: {_REVIEW}"
            why = f"{problem or 'it changed'}, {effect}"
        elif refused is not None:
            judgement = "skipped"
            why = f"planned, but would not run: {refused.error}"
        is_rule = hook.config.type is HookType.RULE
        condition = self._explained(hook, hook.config.condition) if planned else None
        if planned and condition is not None and condition.outcome.startswith(FALSE):
            judgement = "condition false"
            why = f"{why}, but its 'if' is {condition.outcome}"
        return HookExplanation(
            **_facts(hook.config, hook, hook),
            judgement=judgement,
            why=why,
            order=order if planned else None,
            duplicate_of=None if original is None else original.name,
            observes=hook.config.mode is HookMode.OBSERVE,
            is_async=hook.config.is_async,
            condition=condition,
            rule=self._explained(hook, hook.config.when)
            if planned and is_rule
            else None,
        )

    def _explained(self, hook: RegisteredHook, source: str | None) -> Explained | None:
        if source is None:
            return None
        found = explain_expression(source, scope_of(hook, self._call))
        top = (found.missing or "").partition(".")[0]
        if top in EVENT_FIELDS[self._event] and top not in self._call.input:
            # Nobody said what the event looks like.
            hint = "--tool-input" if top == "tool_input" else "--input"
            outcome = f"depends on {found.missing}: use {hint} to decide it"
            return structs.replace(found, outcome=outcome)
        return found

    def _reason(self, judged: planner.JudgedHook) -> str:
        if judged.judgement is planner.Judgement.DISABLED:
            return disabled_where(self._config.settings, judged.hook)
        if judged.judgement is planner.Judgement.UNTRUSTED:
            return f"not approved yet: {_REVIEW}"
        if judged.duplicate_of is not None:
            first = judged.duplicate_of
            return f"the same hook as {first.name!r} in {first.file or first.source}"
        return self._match(judged.hook)

    def _match(self, hook: RegisteredHook) -> str:
        traits, target = TRAITS[self._event], planner.target_of(self.target)
        field = traits.matched_field
        if traits.matching is Matching.NOTHING:
            return "this event has no matcher"
        matcher = (hook.matcher or "").strip()
        if matcher in {"", "*"}:
            return f"no matcher: runs for every {field}"
        if not self._target_known:
            return f"runs if matcher {matcher!r} matches the {field}"
        if target is None:
            too_long = f"has more than {MAX_TARGET_LENGTH} characters"
            return f"a {field} that is not a string or {too_long} matches every matcher"
        if hook.config.is_foreign:
            return self._foreign_match(hook.config.dialect, matcher, target)
        names = planner.tool_targets(self._event, target, self._call.input)
        if names is None:
            return "the coding agent's name of the tool matches every matcher"
        shown = " or ".join(map(repr, names))
        if planner.matches_any_name(matcher, self._event, names):
            return f"matcher {matcher!r} matches {field} {shown}"
        return f"matcher {matcher!r} does not match {field} {shown}" + (
            why_not(matcher, target, self._would_match)
            if traits.matching is Matching.REGEX
            else ""
        )

    def _would_match(self, matcher: str, target: str) -> bool:
        return planner.matches(matcher, self._event, target)

    def _foreign_match(self, dialect: Dialect, matcher: str, target: str) -> str:
        names = planner.names_of(dialect, self._event, self._call.input)
        if names is None:
            return f"a name that {dialect} hooks cannot be shown matches every matcher"
        found = planner.matched_name(dialect, matcher, self._event, names)
        field = f"{TRAITS[self._event].matched_field} {target!r}"
        if found is None:
            shown = " or ".join(map(repr, names))
            return f"matcher {matcher!r} does not match {shown}, for {dialect} {field}"
        return f"matcher {matcher!r} matches {found!r}, for {dialect} {field}"


def disabled_where(settings: Settings, hook: RegisteredHook) -> str:
    """Which settings disable a hook by its name."""
    applying = (one for one in settings.layers if one.project in {None, hook.project})
    files = _files(one for one in applying if hook.name in one.options.disabled)
    return f"listed in hooksConfig.disabled in {files or 'the settings'}"


SwitchedOff = tuple[HookConfig, HookGroup, SettingsLayer, str]
"""A hook that is not registered, where it is, and why."""


def switched_off(settings: Settings, event: HookEventName) -> Iterator[SwitchedOff]:
    """The hooks that ``enableHooks: false`` keeps out of the registry."""
    for layer in settings.layers:
        groups = settings.groups_of(layer).get(event, ())
        kept = {id(hook) for group in groups for hook in group.hooks}
        layers = settings.layers if layer.enable_hooks else [layer]
        files = _files(one for one in layers if not one.enable_hooks)
        why = f"enableHooks is false in {files}"
        for place, group, hook in layer.hooks():
            if place is event and id(hook) not in kept:
                yield hook, group, layer, why


def _left_out(
    hook: HookConfig, group: HookGroup, layer: SettingsLayer, why: str
) -> HookExplanation:
    facts = _facts(hook, group, layer)
    return HookExplanation(**facts, judgement="switched off", why=why)


def _facts(
    hook: HookConfig,
    group: HookGroup | RegisteredHook,
    layer: SettingsLayer | RegisteredHook,
) -> dict[str, Any]:
    return {
        "name": hook.name,
        "source": layer.source.value,
        "file": layer.file,
        "project": layer.project,
        "type": hook.type.value,
        "matcher": group.matcher,
        "sequential": group.sequential,
        "managed": hook.managed,
        "dialect": hook.dialect.value,
    }


def _files(layers: Iterator[SettingsLayer]) -> str:
    return " and ".join(layer.file or layer.source.value for layer in layers)


def to_json(
    event: HookEventName, target: Any, hooks: list[HookExplanation]
) -> dict[str, Any]:
    """The explanation in the documented shape of ``hookline explain --json``."""
    sequential = _sequential(hooks)
    return {
        "event": event.value,
        "target": target,
        "sequential": bool(sequential),
        "sequential_because_of": [hook.name for hook in sequential],
        "hooks": [
            msgspec.to_builtins(hook) | {"runs": hook.judgement == "runs"}
            for hook in hooks
        ],
    }


def summarize(hooks: list[HookExplanation]) -> str:
    """How many hooks would run, whether in parallel, and if not, why."""
    planned = sum(hook.judgement == "runs" for hook in hooks)
    if not hooks:
        return "no hooks are configured for this event"
    noun = "hook" if len(hooks) == 1 else "hooks"
    summary = f"{planned or 'none'} of {len(hooks):,} {noun} would run"
    if planned < 2:
        return summary
    groups = dict.fromkeys(map(_group, _sequential(hooks)))
    if not groups:
        return f"{summary}, in parallel"
    return f"{summary}, one after another, because of {' and '.join(groups)}"


def _sequential(hooks: list[HookExplanation]) -> list[HookExplanation]:
    """The hooks that make the plan sequential."""
    return [hook for hook in hooks if hook.order is not None and hook.sequential]


def _group(hook: HookExplanation) -> str:
    matcher = f"matcher {hook.matcher!r}" if hook.matcher else "no matcher"
    where = hook.file or hook.source
    return f'"sequential": true in the group with {matcher} in {where}'
