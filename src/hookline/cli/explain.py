"""``hookline explain``: why each hook would or would not run, and what it contributed.

The plan is explained without running anything. With ``--run``, the contributions are
derived from the outputs and the merged result: a hook contributed to a field if its
value is the merged one, or part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct, structs

from hookline.config import Config
from hookline.engine import planner
from hookline.engine.admission import CircuitBreaker, refusal
from hookline.engine.matcher import MAX_TARGET_LENGTH
from hookline.engine.registry import HookRegistry
from hookline.errors import HooklineError
from hookline.executors.contract import HookCall, RegisteredHook, current_depth
from hookline.executors.rule import scope_of
from hookline.expressions.reasons import FALSE, Explained, explain
from hookline.hosts.catalog import host_of
from hookline.hosts.host import Host
from hookline.protocol.events import TRAITS, HookEventName, Matching
from hookline.protocol.inputs import EVENT_FIELDS, base_fields
from hookline.protocol.outputs import HookOutput
from hookline.protocol.results import ProcessedHookResult
from hookline.settings.model import (
    Dialect,
    HookConfig,
    HookGroup,
    HookMode,
    HookType,
    SettingsLayer,
    TrustStatus,
)

from . import explain_host, fire
from .common import Options, Parser, load_config, log_problems, log_to_stderr
from .terminal import one_line, paint, plural, print_json, short_json, shorten

SUMMARY = "show why each hook would or would not run"
DESCRIPTION = """\
Show every hook that is configured for an event, why it would or would not run, in which
order, and whether in parallel. No hook is run.

  hookline explain BeforeTool --tool write_file
  hookline explain BeforeTool                    for any tool
  hookline explain SessionStart --input start.json
  hookline explain BeforeTool --tool write_file --settings new.json --json

With --run the event is fired as by 'hookline fire'. Each field of the result is shown
with the values that the hooks gave for it, and whether they were used or overridden.

  hookline explain BeforeTool --tool write_file --tool-input '{"path": "a"}' --run

With --host it also says what a coding agent makes of it: its name of the event, and
what it cannot do. Without an event: for all events that have hooks.

  hookline explain --host codex
  hookline explain BeforeTool --tool write_file --host codex

exit status: 0, or with --run as for 'hookline fire'"""

_MAX_TEXT = 60
_REVIEW = "run 'hookline trust' to review and approve it"
_STYLES = {
    "runs": "green",
    **dict.fromkeys(("skipped", "untrusted", "changed", "condition false"), "yellow"),
}


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    fire.add_event_arguments(parser, optional=True)
    parser.add_option("--host HOST", "what a coding agent can express, such as codex")
    parser.add_flag("--run", "fire the event and show which hook set each field")
    parser.add_flag("--json", "print one JSON object")
    parser.add_settings()


def run(options: Options) -> int:
    """Explain the plan, and with ``--run`` the result."""
    log_to_stderr()
    host = None if options.host is None else host_of(options.host)
    config = load_config(options, options.session_id)
    if options.event is None:
        return _explain_host(options, config, host)
    event = HookEventName.of(options.event)
    event_input = fire.read_event_input(options, event, require_tool=options.run)
    if options.run and config.get_hook_system() is None:
        raise HooklineError("hooks are disabled (enableHooks is false): nothing to run")
    explainer = _Explainer(config, event, event_input)
    target, hooks = explainer.target, explainer.explain_hooks()
    if not options.run:
        log_problems(config)
        _show(options, host, event, target, hooks, None)
        return 0

    def show(result: ProcessedHookResult) -> None:
        _show(options, host, event, target, hooks, result)

    return fire.exit_status(fire.fire_once(config, event, event_input, show))


def _explain_host(options: Options, config: Config, host: Host | None) -> int:
    given = (options.tool, options.tool_input, options.input, options.run or None)
    if host is None or any(one is not None for one in given):
        raise HooklineError("which event? see 'hookline explain --help'")
    log_problems(config)
    explain_host.show_overview(host, config, as_json=options.json)
    return 0


def _show(
    options: Options,
    host: Host | None,
    event: HookEventName,
    target: Any,
    hooks: list[HookExplanation],
    result: ProcessedHookResult | None,
) -> None:
    there = None if host is None else explain_host.event_json(host, event, result)
    if options.json:
        found = _as_json(event, target, hooks)
        found |= {} if there is None else {"host": there}
        if result is not None:
            found["result"] = fire.to_json(event, result)
            found["origins"] = msgspec.to_builtins(trace_fields(result))
        print_json(found)
    else:
        shown = "" if target is None else f" {one_line(str(target))}"
        print(f"{event.value}{shorten(shown, _MAX_TEXT)}: {_summary(hooks)}")
        for hook in hooks:
            _print_hook(hook)
        if result is not None:
            print()
            fire.print_verdict(event, result)
            _print_fields(trace_fields(result))
        if host is not None and there is not None:
            explain_host.print_event(host, event, there)


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


class _Explainer:
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

    def explain_hooks(self) -> list[HookExplanation]:
        """Explain every hook of the event; those in the plan come first."""
        hooks = HookRegistry(self._config.settings).for_event(self._event)
        target = planner.target_of(self.target)
        judged = planner.judge(hooks, self._event, target, self._call.input)
        judged.sort(key=lambda one: one.judgement is not planner.Judgement.RUNS)
        explained = [self._explain(one, order) for order, one in enumerate(judged, 1)]
        return [*explained, *_switched_off(self._config, self._event)]

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
        found = explain(source, scope_of(hook, self._call))
        top = (found.missing or "").partition(".")[0]
        if top in EVENT_FIELDS[self._event] and top not in self._call.input:
            # Nobody said what the event looks like.
            hint = "--tool-input" if top == "tool_input" else "--input"
            outcome = f"depends on {found.missing}: use {hint} to decide it"
            return structs.replace(found, outcome=outcome)
        return found

    def _reason(self, judged: planner.JudgedHook) -> str:
        if judged.judgement is planner.Judgement.DISABLED:
            layers = self._config.settings.layers
            name = judged.hook.name
            projects = {None, judged.hook.project}
            applying = (one for one in layers if one.project in projects)
            files = _files(one for one in applying if name in one.options.disabled)
            return f"listed in hooksConfig.disabled in {files or 'the settings'}"
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
        found = planner.matches(matcher, self._event, target)
        verb = "matches" if found else "does not match"
        return f"matcher {matcher!r} {verb} {field} {target!r}"

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


def _switched_off(config: Config, event: HookEventName) -> Iterator[HookExplanation]:
    """The hooks that ``enableHooks: false`` keeps out of the registry."""
    settings = config.settings
    for layer in settings.layers:
        groups = settings.groups_of(layer).get(event, ())
        kept = {id(hook) for group in groups for hook in group.hooks}
        layers = settings.layers if layer.enable_hooks else [layer]
        files = _files(one for one in layers if not one.enable_hooks)
        why = f"enableHooks is false in {files}"
        for place, group, hook in layer.hooks():
            if place is event and id(hook) not in kept:
                facts = _facts(hook, group, layer)
                yield HookExplanation(**facts, judgement="switched off", why=why)


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


_PARTS = (
    *("tool_input", "llm_request", "llm_request.config", "llm_response", "toolConfig"),
)
_MERGED_BY_KEY = {"hookSpecificOutput", *(f"hookSpecificOutput.{x}" for x in _PARTS)}
_FIRST_WINS = {"decision", "hookSpecificOutput.permissionDecision"}
"""If several hooks agree, the first one set it; for other fields the last one did."""
_CONCATENATED = {
    *("reason", "stopReason", "systemMessage", "hookSpecificOutput.additionalContext"),
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


def trace_fields(result: ProcessedHookResult) -> list[FieldProvenance]:
    """Trace every field of the merged output back to the hooks."""
    merged = dict(_flatten(result.final_output))
    values: dict[str, list[tuple[str, Any]]] = {}
    for hook in result.aggregated.hook_results:
        for field, value in _flatten(None if hook.observed else hook.output):
            values.setdefault(field, []).append((hook.hook_name, value))
    return [
        FieldProvenance(field, merged.get(field), _trace(field, merged.get(field), by))
        for field, by in values.items()
    ]


def _flatten(output: HookOutput | None) -> Iterator[tuple[str, Any]]:
    if output is not None:
        yield from _flatten_items("", output.to_wire())


def _flatten_items(prefix: str, items: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in items.items():
        field = f"{prefix}{key}"
        if field in _MERGED_BY_KEY and isinstance(value, dict):
            yield from _flatten_items(f"{field}.", value)
        elif value is not None:
            yield field, value


def _trace(
    field: str, merged: Any, values: Sequence[tuple[str, Any]]
) -> list[Contribution]:
    kept = [n for n, (_, value) in enumerate(values) if _is_kept(field, value, merged)]
    shared = field in _CONCATENATED or isinstance(merged, list)
    setters = kept if shared else kept[:1] if field in _FIRST_WINS else kept[-1:]
    outcomes = dict.fromkeys(kept, Outcome.AGREED)
    outcomes |= dict.fromkeys(setters, Outcome.USED)
    return [
        Contribution(hook, value, outcomes.get(n, Outcome.OVERRIDDEN))
        for n, (hook, value) in enumerate(values)
    ]


def _is_kept(field: str, value: Any, merged: Any) -> bool:
    if field in _CONCATENATED and isinstance(merged, str):
        return f"\n{value}\n" in f"\n{merged}\n"
    if field in _FIRST_WINS and merged in _BLOCKS:
        return value in _BLOCKS
    if isinstance(merged, list) and isinstance(value, list):
        return merged == value or any(item in merged for item in value)
    return bool(value == merged)


def _as_json(
    event: HookEventName, target: Any, hooks: list[HookExplanation]
) -> dict[str, Any]:
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


def _summary(hooks: list[HookExplanation]) -> str:
    planned = sum(hook.judgement == "runs" for hook in hooks)
    if not hooks:
        return "no hooks are configured for this event"
    summary = f"{planned or 'none'} of {plural(len(hooks), 'hook')} would run"
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
    return one_line(f'"sequential": true in the group with {matcher} in {where}')


def _print_hook(hook: HookExplanation) -> None:
    number = "-" if hook.order is None else f"{hook.order}."
    judgement = paint(hook.judgement, _STYLES.get(hook.judgement, "dim"))
    print(f"\n{number:>3} {shorten(one_line(hook.name), _MAX_TEXT)}: {judgement}")
    print(f"    {one_line(hook.why)}")
    facts = f"{hook.source} {hook.type}"
    facts += ", observes only: its verdict has no effect" if hook.observes else ""
    facts += ", managed" if hook.managed else ""
    if hook.dialect != Dialect.HOOKLINE.value:
        facts += f", dialect {hook.dialect}"
    facts += ", sequential" if hook.sequential else ""
    facts += ", not waited for" if hook.is_async else ""
    print(f"    {facts}; {one_line(hook.file or 'registered in code')}")
    for label, explained in (("if", hook.condition), ("when", hook.rule)):
        if explained is not None:
            _print_expression(label, explained)


def _print_expression(label: str, explained: Explained) -> None:
    """Print an expression, what its parts give, and the values that decide it."""
    print(f"    {label}: {one_line(explained.source)}")
    print(f"      = {_painted(explained.outcome)}")
    for part in explained.parts:
        print(f"        {one_line(part.text)} = {_painted(part.outcome)}")
    for path, value in explained.values.items():
        print(f"      {one_line(path)} = {short_json(value, _MAX_TEXT)}")


def _painted(outcome: str) -> str:
    word, rest = outcome.partition(":")[::2]
    style = {"true": "green", "false": "yellow"}.get(word, "red")
    return f"{paint(word, style)}: {one_line(rest)}" if rest else paint(word, style)


def _print_fields(fields: list[FieldProvenance]) -> None:
    if fields:
        print("\nfields and the hooks behind them")
    for field in fields:
        value = "dropped" if field.value is None else short_json(field.value, _MAX_TEXT)
        print(f"  {one_line(field.field)} = {value}")
        for one in field.contributions:
            style = "dim" if one.outcome is Outcome.OVERRIDDEN else "green"
            outcome = paint(one.outcome.name.lower(), style)
            value = short_json(one.value, _MAX_TEXT)
            print(f"    {one_line(one.hook)}: {value} ({outcome})")
