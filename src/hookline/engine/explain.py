"""Why each hook of an event would run or not, and which hook gave which field.

Nothing is run: the planner and the gates of a hook are asked as for a real event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct, structs

from hookline.config import Config
from hookline.execute.rule import scope_of
from hookline.plan import HookCall, RegisteredHook, current_depth
from hookline.protocol.events import TRAITS, HookEventName, Matching
from hookline.protocol.inputs import BASE_FIELDS, EVENT_FIELDS
from hookline.protocol.results import ProcessedHookResult
from hookline.protocol.values import same_json
from hookline.rules.reasons import FALSE, Explained
from hookline.rules.reasons import explain as explain_expression
from hookline.settings.load import Settings
from hookline.settings.matcher_check import why_not
from hookline.settings.model import HookMode, HookType, SettingsLayer, TrustStatus

from .breaker import CircuitBreaker
from .planner import MAX_NAME, JudgedHook, Judgement, compile_matcher, judge, name_of
from .registry import HookRegistry, registered_hook
from .run_hook import refusal

_FACTS = (
    *("name", "source", "file", "project", "type", "matcher"),
    *("sequential", "managed", "dialect", "async"),
)
_REVIEW = "run 'hookline trust' to review and approve it"


class HookExplanation(Struct, kw_only=True):
    """One configured hook, and whether it would run."""

    hook: RegisteredHook
    judgement: str
    why: str
    order: int | None = None
    """The position in the plan; None if it is not in the plan."""
    duplicate_of: RegisteredHook | None = None
    condition: Explained | None = None
    rule: Explained | None = None
    """The expression of a rule, with the values that decide it."""

    def to_json(self) -> dict[str, Any]:
        """It in the documented shape of ``hookline explain --json``."""
        facts, original = self.hook.facts(), self.duplicate_of
        return {
            **{name: facts[name] for name in _FACTS},
            "judgement": self.judgement,
            "why": self.why,
            "order": self.order,
            "duplicate_of": None if original is None else original.name,
            "observes": self.hook.config.mode is HookMode.OBSERVE,
            "if": msgspec.to_builtins(self.condition),
            "rule": msgspec.to_builtins(self.rule),
            "runs": self.judgement == Judgement.RUNS,
        }


class Explainer:
    """Explains which hooks run on one event, and why."""

    def __init__(
        self, config: Config, event: HookEventName, event_input: dict[str, Any]
    ) -> None:
        self._settings = config.settings
        self._traits = TRAITS[event]
        self._is_named = self._traits.matched_field in event_input
        self.target = event_input.get(self._traits.matched_field)
        fields = {k: v for k, v in event_input.items() if k not in BASE_FIELDS}
        cwd, session_id = config.working_dir, config.session_id
        self._call = HookCall.of(event, fields, cwd, session_id, "", current_depth())
        self._call.encode()
        self._breaker = CircuitBreaker(config.working_dir)

    def explain(self) -> list[HookExplanation]:
        """Explain every hook of the event; those in the plan come first."""
        event = self._call.event
        hooks = HookRegistry(self._settings).for_event(event)
        judged = judge(hooks, self._call.input)
        judged.sort(key=lambda item: item.judgement is not Judgement.RUNS)
        return [
            *(self._explain(item, order) for order, item in enumerate(judged, 1)),
            *(
                HookExplanation(hook=hook, judgement="switched off", why=why)
                for hook, why in switched_off(self._settings, event)
            ),
        ]

    def _explain(self, judged: JudgedHook, order: int) -> HookExplanation:
        hook, config = judged.hook, judged.hook.config
        explained = HookExplanation(
            hook=hook,
            judgement=judged.judgement.value,
            why=self._why(judged),
            duplicate_of=judged.duplicate_of,
        )
        if judged.judgement is not Judgement.RUNS:
            return explained
        # It is planned; something may still keep it from running.
        explained.order = order
        if hook.trust is TrustStatus.UNTRUSTED:
            explained.judgement = "untrusted"
            policy = "hooksConfig.untrusted blocks the event"
            explained.why = f"not approved, and {policy}: {_REVIEW}"
        elif hook.trust is TrustStatus.CHANGED:
            explained.judgement = "changed"
            problem = (hook.approval and hook.approval.check()[0]) or "it changed"
            policy = "it fails and its onError decides"
            explained.why = f"{problem}, so {policy}: {_REVIEW}"
        elif refused := refusal(hook, self._call, self._breaker, to_run=False):
            explained.judgement = "skipped"
            explained.why = f"planned, but would not run: {refused.error}"
        explained.condition = condition = self._evaluated(hook, config.condition)
        if condition is not None and condition.outcome.startswith(FALSE):
            explained.judgement = "condition false"
            explained.why += f", but its 'if' is {condition.outcome}"
        if config.type is HookType.RULE:
            explained.rule = self._evaluated(hook, config.when)
        return explained

    def _evaluated(self, hook: RegisteredHook, source: str | None) -> Explained | None:
        if source is None:
            return None
        explained = explain_expression(source, scope_of(hook, self._call))
        field = (explained.missing or "").partition(".")[0]
        if field not in EVENT_FIELDS[self._call.event] or field in self._call.input:
            return explained
        # Nobody said what the event looks like.
        option = "--tool-input" if field == "tool_input" else "--input"
        outcome = f"depends on {explained.missing}: use {option} to decide it"
        return structs.replace(explained, outcome=outcome)

    def _why(self, judged: JudgedHook) -> str:
        hook, original, names = judged.hook, judged.duplicate_of, judged.names
        if judged.judgement is Judgement.DISABLED:
            return disabled_where(self._settings, hook)
        if judged.judgement is Judgement.UNTRUSTED:
            return f"not approved yet: {_REVIEW}"
        if original is not None:
            place = original.file or original.source
            return f"the same hook as {original.name!r} in {place}"
        field, matching = self._traits.matched_field, self._traits.matching
        if matching is Matching.NOTHING:
            return "this event has no matcher"
        matcher = (hook.matcher or "").strip()
        if matcher in {"", "*"}:
            return f"no matcher: runs for every {field}"
        if not self._is_named:
            return f"runs if matcher {matcher!r} matches the {field}"
        target = name_of(self.target)
        if target is None:
            too_long = f"has more than {MAX_NAME} characters"
            return f"a {field} that is not a string or {too_long} matches every matcher"
        is_foreign, dialect = hook.config.is_foreign, hook.config.dialect
        if names is None:
            name = "the coding agent's name of the tool"
            if is_foreign:
                name = f"a name that {dialect} hooks cannot be shown"
            return f"{name} matches every matcher"
        matched, listed = judged.matched_name, " or ".join(map(repr, names))
        verb = "does not match" if matched is None else "matches"
        if is_foreign:
            name = listed if matched is None else repr(matched)
            return (
                f"matcher {matcher!r} {verb} {name}, for {dialect} {field} {target!r}"
            )
        hint = ""
        if matched is None and matching is Matching.REGEX:
            hint = why_not(
                matcher, names[0], lambda m, n: compile_matcher(m).matches(n)
            )
        return f"matcher {matcher!r} {verb} {field} {listed}{hint}"


def disabled_where(settings: Settings, hook: RegisteredHook) -> str:
    """Which settings disable a hook by its name."""
    files = _files(
        layer
        for layer in settings.layers
        if layer.project in {None, hook.project} and hook.name in layer.options.disabled
    )
    return f"listed in hooksConfig.disabled in {files or 'the settings'}"


def switched_off(
    settings: Settings, event: HookEventName
) -> Iterator[tuple[RegisteredHook, str]]:
    """The hooks that ``enableHooks: false`` keeps out of the registry, and why."""
    for layer in settings.layers:
        groups = settings.groups_of(layer).get(event, ())
        registered = {id(config) for group in groups for config in group.hooks}
        layers = settings.layers if layer.enable_hooks else [layer]
        files = _files(layer for layer in layers if not layer.enable_hooks)
        for place, group, config in layer.hooks():
            if place is event and id(config) not in registered:
                hook = registered_hook(settings, layer, event, group, config)
                hook = structs.replace(hook, enabled=False)
                yield hook, f"enableHooks is false in {files}"


def _files(layers: Iterable[SettingsLayer]) -> str:
    return " and ".join(layer.file or layer.source.value for layer in layers)


def to_json(
    event: HookEventName, target: object, hooks: list[HookExplanation]
) -> dict[str, Any]:
    """All of them in the documented shape of ``hookline explain --json``."""
    sequential = [
        item.hook.name for item in hooks if item.order and item.hook.sequential
    ]
    return {
        "event": event.value,
        "target": target,
        "sequential": bool(sequential),
        "sequential_because_of": sequential,
        "hooks": [hook.to_json() for hook in hooks],
    }


def summarize(hooks: list[HookExplanation]) -> str:
    """How many hooks would run, whether in parallel, and if not, why."""
    if not hooks:
        return "no hooks are configured for this event"
    running = sum(item.judgement == Judgement.RUNS for item in hooks)
    noun = "hook" if len(hooks) == 1 else "hooks"
    summary = f"{running or 'none'} of {len(hooks):,} {noun} would run"
    if running < 2:
        return summary
    groups = []
    for hook in (item.hook for item in hooks if item.order and item.hook.sequential):
        matcher = f"matcher {hook.matcher!r}" if hook.matcher else "no matcher"
        group = f'"sequential": true in the group with {matcher}'
        groups.append(f"{group} in {hook.file or hook.source.value}")
    if not groups:
        return f"{summary}, in parallel"
    because = " and ".join(dict.fromkeys(groups))
    return f"{summary}, one after another, because of {because}"


Wire = Mapping[str, Any]
"""An output as JSON has it."""

_PARTS = (
    "tool_input",
    "llm_request",
    "llm_request.config",
    "llm_response",
    "toolConfig",
)
_MERGED_BY_KEY = {"hookSpecificOutput", *(f"hookSpecificOutput.{p}" for p in _PARTS)}
_FIRST_WINS = {"decision", "hookSpecificOutput.permissionDecision"}
"""If several hooks agree, the first one set it; for other fields the last one did."""
_CONCATENATED = {
    *("reason", "stopReason", "systemMessage"),
    "hookSpecificOutput.additionalContext",
}
_BLOCKS = ("block", "deny")


class Outcome(StrEnum):
    """Outcome of one value in the merge; the values are those of ``--json``."""

    USED = "gave"
    AGREED = "agreed"
    OVERRIDDEN = "lost"


class Contribution(Struct, frozen=True, rename={"outcome": "part"}):
    """The value of one hook for a field."""

    hook: str
    value: Any
    outcome: Outcome


class FieldProvenance(Struct, frozen=True, rename={"contributions": "said"}):
    """The hooks behind one field; ``value`` is None if the merge dropped it."""

    field: str
    value: Any
    contributions: list[Contribution]


def trace_result(result: ProcessedHookResult) -> list[FieldProvenance]:
    """Trace every field of a result back to the hooks."""
    final = result.final_output
    outputs = (
        (hook.hook_name, hook.output.to_wire())
        for hook in result.aggregated.hook_results
        if hook.output is not None and not hook.observed
    )
    return trace_fields({} if final is None else final.to_wire(), outputs)


def trace_fields(
    final: Wire, outputs: Iterable[tuple[str, Wire]]
) -> list[FieldProvenance]:
    """Trace every field of a merged output back to hooks, given by their names.

    A hook contributed to a field if its value is the merged one, or part of it.
    """
    merged = dict(_flatten("", final))
    by_field: dict[str, list[Contribution]] = {}
    for hook, output in outputs:
        for field, value in _flatten("", output):
            is_used = _is_in(field, value, merged.get(field))
            outcome = Outcome.AGREED if is_used else Outcome.OVERRIDDEN
            by_field.setdefault(field, []).append(Contribution(hook, value, outcome))
    provenances = []
    for field, contributions in by_field.items():
        value = merged.get(field)
        setters = [
            n for n, c in enumerate(contributions) if c.outcome is Outcome.AGREED
        ]
        if not (field in _CONCATENATED or isinstance(value, list)):
            setters = setters[:1] if field in _FIRST_WINS else setters[-1:]
        for n in setters:
            contributions[n] = structs.replace(contributions[n], outcome=Outcome.USED)
        provenances.append(FieldProvenance(field, value, contributions))
    return provenances


def _flatten(prefix: str, items: Wire) -> Iterator[tuple[str, Any]]:
    for key, value in items.items():
        field = f"{prefix}{key}"
        if field in _MERGED_BY_KEY and isinstance(value, dict):
            yield from _flatten(f"{field}.", value)
        elif value is not None:
            yield field, value


def _is_in(field: str, value: Any, merged: Any) -> bool:
    if field in _CONCATENATED and isinstance(merged, str):
        return f"\n{value}\n" in f"\n{merged}\n"
    if field in _FIRST_WINS and merged in _BLOCKS:
        return value in _BLOCKS
    if isinstance(merged, list) and isinstance(value, list):
        return merged == value or any(item in merged for item in value)
    return same_json(value, merged)
