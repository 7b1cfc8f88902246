"""Whether each configured hook would run on an event, and why; nothing is run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from hookline.breaker import TimeoutMemory
from hookline.config import Config
from hookline.events import TRAITS, HookEventName, Matching
from hookline.executors.contract import HookCall
from hookline.guard import HookGuard
from hookline.inputs import base_fields
from hookline.limits import current_depth
from hookline.planner import (
    MAX_TARGET_LENGTH,
    JudgedHook,
    Judgement,
    judge,
    matches,
    target_of,
)
from hookline.registry import HookRegistry, RegisteredHook
from hookline.settings.schema import (
    HookConfig,
    HookGroup,
    HookMode,
    SettingsLayer,
)


class Explained(Struct, frozen=True, kw_only=True):
    """One configured hook, and what would become of it."""

    name: str
    source: str
    file: str | None
    type: str
    matcher: str | None
    sequential: bool
    judgement: str
    why: str
    order: int | None = None
    """Its place in the plan; None where it does not run."""
    duplicate_of: str | None = None
    observes: bool = False
    managed: bool = False


def explain_hooks(
    config: Config, event: HookEventName, target: Any, *, target_known: bool
) -> list[Explained]:
    """Say of every hook on an event whether it would run; those that do come first."""
    registry = HookRegistry(config.settings)
    question = _Question(config, event, target, target_known)
    judged = judge(registry.for_event(event), event, target_of(target))
    running = [one for one in judged if one.judgement is Judgement.RUNS]
    resting = [one for one in judged if one.judgement is not Judgement.RUNS]
    order = {id(one.hook): place for place, one in enumerate(running, 1)}
    found = [
        _explained(one, question, order.get(id(one.hook)))
        for one in (*running, *resting)
    ]
    return [*found, *_switched_off(config, event)]


class _Question:
    """What is asked, and what is needed to answer it."""

    def __init__(
        self, config: Config, event: HookEventName, target: Any, target_known: bool
    ) -> None:
        self.config = config
        self.event = event
        self.target = target
        self.target_known = target_known
        fields = base_fields(event, config.session_id, config.working_dir, "")
        self._call = HookCall(event, fields, current_depth())
        self._guard = HookGuard(TimeoutMemory(config.working_dir))

    def refusal(self, hook: RegisteredHook) -> str | None:
        """Why a hook of the plan would be held back all the same."""
        refused = self._guard.refusal(hook, self._call)
        return None if refused is None else refused.error


def _explained(one: JudgedHook, question: _Question, order: int | None) -> Explained:
    hook, judgement = one.hook, one.judgement.value
    why = _why(one, question)
    if order is not None and (refusal := question.refusal(hook)):
        judgement, why = "skipped", f"in the plan, but held back: {refusal}"
    original = one.duplicate_of
    return Explained(
        name=hook.name,
        source=hook.source.value,
        file=hook.file,
        type=hook.config.type.value,
        matcher=hook.matcher,
        sequential=hook.sequential,
        judgement=judgement,
        why=why,
        order=order,
        duplicate_of=None if original is None else original.name,
        observes=hook.config.mode is HookMode.OBSERVE,
        managed=hook.config.managed,
    )


def _why(one: JudgedHook, question: _Question) -> str:
    hook = one.hook
    if one.judgement is Judgement.DISABLED:
        return _who_disabled(question.config, hook)
    if one.judgement is Judgement.UNTRUSTED:
        return "nobody has agreed to it yet: 'hookline trust' shows it and asks"
    if one.judgement is Judgement.DUPLICATE:
        assert one.duplicate_of is not None  # what makes it a duplicate
        return f"the same as {one.duplicate_of.name!r} of {_home(one.duplicate_of)}"
    return _matching(hook, question)


def _matching(hook: RegisteredHook, question: _Question) -> str:
    traits = TRAITS[question.event]
    if traits.matching is Matching.NOTHING:
        return "this event takes no matcher"
    matcher = (hook.matcher or "").strip()
    if matcher in {"", "*"}:
        return f"no matcher: every {traits.matched_field}"
    if not question.target_known:
        return f"only where the matcher {matcher!r} fits the {traits.matched_field}"
    if target_of(question.target) is None:
        return (
            f"a {traits.matched_field} that is no text, or has more than "
            f"{MAX_TARGET_LENGTH} characters, fits every matcher"
        )
    shown = f"{question.target!r}"
    if traits.matching is Matching.EXACT:
        same = hook.matcher == question.target
        return f"matcher {matcher!r} is {'' if same else 'not '}{shown}"
    found = matches(hook.matcher, question.event, target_of(question.target))
    return f"matcher {matcher!r} is {'' if found else 'not '}found in {shown}"


def _who_disabled(config: Config, hook: RegisteredHook) -> str:
    files = [
        layer.file or layer.source.value
        for layer in config.settings.layers
        if hook.name in layer.options.disabled
    ]
    return f"hooksConfig.disabled names it in {' and '.join(files) or 'the settings'}"


def _switched_off(config: Config, event: HookEventName) -> Iterator[Explained]:
    """The hooks that ``enableHooks: false`` keeps out of the registry."""
    for layer in config.settings.layers:
        kept = {
            id(hook)
            for group in config.settings.groups_of(layer).get(event, ())
            for hook in group.hooks
        }
        for group in layer.groups.get(event, ()):
            for hook in group.hooks:
                if id(hook) not in kept:
                    yield _off(config, layer, group, hook)


def _off(
    config: Config, layer: SettingsLayer, group: HookGroup, hook: HookConfig
) -> Explained:
    speakers = [layer] if not layer.enable_hooks else config.settings.layers
    files = [one.file or one.source.value for one in speakers if not one.enable_hooks]
    return Explained(
        name=hook.name,
        source=layer.source.value,
        file=layer.file,
        type=hook.type.value,
        matcher=group.matcher,
        sequential=group.sequential,
        judgement="switched off",
        why=f"enableHooks is false in {' and '.join(files)}",
        managed=hook.managed,
    )


def _home(hook: RegisteredHook) -> str:
    return hook.file or hook.source.value
