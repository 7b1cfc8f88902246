"""Where each field of a merged output comes from, and who lost.

Pure. It is read off the outputs and the merge, not worked out a second time: a hook
gave a field if what it said is what came out, or is part of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from hookline.config import Config
from hookline.engine.admission import CircuitBreaker, refusal
from hookline.engine.planner import (
    MAX_TARGET_LENGTH,
    JudgedHook,
    Judgement,
    judge,
    matches,
    target_of,
)
from hookline.engine.registry import HookRegistry
from hookline.errors import HooklineError
from hookline.executors.contract import HookCall, RegisteredHook, current_depth
from hookline.log import logger
from hookline.protocol.events import TRAITS, HookEventName, Matching
from hookline.protocol.inputs import base_fields
from hookline.protocol.jsontext import encode
from hookline.protocol.outputs import HookOutput
from hookline.protocol.results import HookExecutionResult, ProcessedHookResult
from hookline.settings.model import HookConfig, HookGroup, HookMode, SettingsLayer

from .common import (
    add_settings_arguments,
    load_config,
    log_to_stderr,
    paint,
    print_json,
)
from .fire import (
    add_input_arguments,
    fire_once,
    print_verdict,
    read_event_input,
    to_json,
)
from .journal import one_line, shortened

_MAPPINGS = frozenset(
    {
        "hookSpecificOutput",
        "hookSpecificOutput.tool_input",
        "hookSpecificOutput.llm_request",
        "hookSpecificOutput.llm_request.config",
        "hookSpecificOutput.llm_response",
        "hookSpecificOutput.toolConfig",
    }
)
"""Merged key by key."""
_FIRST = frozenset({"decision", "hookSpecificOutput.permissionDecision"})
"""Where several hooks agree, the first one gave it; elsewhere the last one did."""
_JOINED = frozenset(
    {"reason", "stopReason", "systemMessage", "hookSpecificOutput.additionalContext"}
)
_BLOCKS = ("block", "deny")


class Part(StrEnum):
    """What became of what a hook said."""

    GAVE = "gave"
    AGREED = "agreed"
    LOST = "lost"


class Said(Struct, frozen=True):
    """What one hook said of a field."""

    hook: str
    value: Any
    part: Part


class Origin(Struct, frozen=True):
    """A field of the merged output; ``value`` is None where nothing came out."""

    field: str
    value: Any
    said: list[Said]


def origins_of(result: ProcessedHookResult) -> list[Origin]:
    """Every field that a hook said something of, in the order of their saying."""
    merged = dict(_flat(result.final_output))
    said: dict[str, list[tuple[str, Any]]] = {}
    for hook in result.aggregated.hook_results:
        for field, value in _flat(_counted_output(hook)):
            said.setdefault(field, []).append((hook.hook_name, value))
    return [
        Origin(field, merged.get(field), _parts(field, merged.get(field), values))
        for field, values in said.items()
    ]


def _counted_output(hook: HookExecutionResult) -> HookOutput | None:
    return None if hook.observed else hook.output


def _flat(output: HookOutput | None) -> Iterator[tuple[str, Any]]:
    if output is not None:
        yield from _flat_items("", output.to_wire())


def _flat_items(prefix: str, items: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in items.items():
        field = f"{prefix}{key}"
        if field in _MAPPINGS and isinstance(value, dict):
            yield from _flat_items(f"{field}.", value)
        elif value is not None:
            yield field, value


def _parts(field: str, merged: Any, values: Sequence[tuple[str, Any]]) -> list[Said]:
    kept = [
        place
        for place, (_, value) in enumerate(values)
        if _survives(field, value, merged)
    ]
    shared = field in _JOINED or isinstance(merged, list)
    givers = kept if shared else kept[:1] if field in _FIRST else kept[-1:]
    return [
        Said(hook, value, _part(place, givers, kept))
        for place, (hook, value) in enumerate(values)
    ]


def _part(place: int, givers: list[int], kept: list[int]) -> Part:
    if place in givers:
        return Part.GAVE
    return Part.AGREED if place in kept else Part.LOST


def _survives(field: str, value: Any, merged: Any) -> bool:
    if field in _JOINED and isinstance(merged, str):
        return f"\n{value}\n" in f"\n{merged}\n"
    if field in _FIRST and merged in _BLOCKS:
        return value in _BLOCKS
    if isinstance(merged, list) and isinstance(value, list):
        return merged == value or any(item in merged for item in value)
    return bool(value == merged)


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
        self._call = HookCall(event, {**fields}, current_depth())
        self._breaker = CircuitBreaker(config.working_dir)

    def refusal(self, hook: RegisteredHook) -> str | None:
        """Why a hook of the plan would be held back all the same."""
        refused = refusal(hook, self._call, self._breaker)
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


SUMMARY = "show why each hook would or would not run"
DESCRIPTION = """\
Show every hook that is configured for an event, with the reason why it would or would
not run, in which order, and whether one after the other. Nothing is run.

  hookline explain BeforeTool --tool write_file
  hookline explain BeforeTool                    for any tool
  hookline explain SessionStart --input start.json
  hookline explain BeforeTool --tool write_file --settings new.json --json

With --run the event is fired as by 'hookline fire', and each field of the answer is
shown with the hook that gave it and those that lost.

  hookline explain BeforeTool --tool write_file --tool-input '{"path": "a"}' --run

exit status: 0, or with --run as for 'hookline fire'"""

_LONGEST = 60
_STYLES = {"runs": "green", "skipped": "yellow", "untrusted": "yellow"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("event", metavar="EVENT", help=", ".join(HookEventName))
    add_input_arguments(parser)
    parser.add_argument(
        "--run", action="store_true", help="fire the event and show who said what"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_settings_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Explain, and fire where asked to."""
    log_to_stderr()
    event = HookEventName.of(options.event)
    config = load_config(options, options.session_id)
    field = TRAITS[event].matched_field
    event_input = read_event_input(options, event, need_tool=options.run)
    if options.run and config.get_hook_system() is None:
        raise HooklineError("hooks are switched off: there is nothing to run")
    target = event_input.get(field) if field else None
    hooks = explain_hooks(config, event, target, target_known=field in event_input)
    result = fire_once(config, event, event_input) if options.run else None
    if not options.run:
        for problem in (*config.settings.errors, *config.settings.warnings):
            logger.warning("%s", problem)
    if options.json:
        print_json(_as_json(event, target, hooks, result))
    else:
        _print(event, target, hooks, result)
    if result is None:
        return 0
    return 2 if result.blocked or result.should_stop else 0


def _as_json(
    event: HookEventName,
    target: Any,
    hooks: list[Explained],
    result: ProcessedHookResult | None,
) -> dict[str, Any]:
    causes = _causes(hooks)
    found = {
        "event": event.value,
        "target": target,
        "sequential": bool(causes),
        "sequential_because_of": [hook.name for hook in causes],
        "hooks": [
            msgspec.to_builtins(hook) | {"runs": hook.judgement == "runs"}
            for hook in hooks
        ],
    }
    if result is None:
        return found
    origins = [msgspec.to_builtins(origin) for origin in origins_of(result)]
    return found | {"result": to_json(event, result), "origins": origins}


def _print(
    event: HookEventName,
    target: Any,
    hooks: list[Explained],
    result: ProcessedHookResult | None,
) -> None:
    whom = f" {one_line(str(target))}" if target is not None else ""
    print(f"{event.value}{shortened(whom, _LONGEST)}: {_sum(hooks)}")
    for hook in hooks:
        _print_hook(hook)
    if result is not None:
        print()
        print_verdict(event, result)
        _print_origins(origins_of(result))


def _sum(hooks: list[Explained]) -> str:
    planned = [hook for hook in hooks if hook.order is not None]
    if not hooks:
        return "no hook is configured for it"
    if not planned:
        return f"none of {_counted(len(hooks))} would run"
    causes = _causes(hooks)
    if len(planned) == 1:
        return f"1 of {_counted(len(hooks))} would run"
    how = "all at once"
    if causes:
        groups = " and ".join(dict.fromkeys(_group(hook) for hook in causes))
        how = f"one after the other, because of {groups}"
    return f"{len(planned)} of {_counted(len(hooks))} would run, {how}"


def _causes(hooks: list[Explained]) -> list[Explained]:
    """The hooks of the plan whose groups make it sequential."""
    return [hook for hook in hooks if hook.order is not None and hook.sequential]


def _group(hook: Explained) -> str:
    matcher = f"matcher {hook.matcher!r}" if hook.matcher else "no matcher"
    return one_line(
        f'"sequential": true in the group with {matcher} in {hook.file or hook.source}'
    )


def _counted(number: int) -> str:
    return f"{number} hook{'' if number == 1 else 's'}"


def _print_hook(hook: Explained) -> None:
    place = f"{hook.order}." if hook.order is not None else "-"
    word = paint(hook.judgement, _STYLES.get(hook.judgement, "dim"))
    name = shortened(one_line(hook.name), _LONGEST)
    print(f"\n{place:>3} {name}: {word}")
    print(f"    {one_line(hook.why)}")
    origin = one_line(hook.file) if hook.file else "registered in code"
    marks = [
        mark
        for mark, is_set in (
            ("observes only: its verdict does not count", hook.observes),
            ("managed", hook.managed),
            ("sequential", hook.sequential),
        )
        if is_set
    ]
    print(f"    {', '.join([f'{hook.source} {hook.type}', *marks])}; {origin}")


def _print_origins(origins: list[Origin]) -> None:
    if origins:
        print("\nwhere it comes from")
    for origin in origins:
        value = "nothing" if origin.value is None else _shown(origin.value)
        print(f"  {one_line(origin.field)} = {value}")
        for said in origin.said:
            style = "dim" if said.part is Part.LOST else "green"
            what = (
                ""
                if said.part is Part.GAVE and said.value == origin.value
                else (f": {_shown(said.value)}")
            )
            print(f"    {paint(said.part.value, style)} {one_line(said.hook)}{what}")


def _shown(value: Any) -> str:
    return shortened(one_line(encode(value).decode()), _LONGEST)
