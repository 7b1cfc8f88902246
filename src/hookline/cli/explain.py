"""``hookline explain``: why each hook would or would not run on an event."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from hookline.errors import HooklineError
from hookline.events import TRAITS, HookEventName
from hookline.jsontext import encode
from hookline.log import logger
from hookline.results import ProcessedHookResult

from .common import add_settings_arguments, load_config, log_to_stderr, print_json
from .entrytext import one_line, shortened
from .fire import add_input_arguments, fire_once, read_event_input, to_json
from .origins import Origin, Part, origins_of
from .style import paint
from .verdict import print_verdict
from .whether import Explained, explain_hooks

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
