"""``hookline stats``: counts and run times per hook, from the journal."""

from __future__ import annotations

import sys
from itertools import accumulate

import msgspec

from hookline.journal.query import HookFigures, figures_of

from . import journal
from .common import Options, Parser, log_to_stderr
from .terminal import format_duration, one_line, paint, plural, print_json, print_table

SUMMARY = "show runs, blocks, failures and times per hook"
DESCRIPTION = """\
Show how often each hook ran, blocked and failed, and how long it took: p50, p95 and
p99 are percentiles. The bar shows them on one scale for all hooks: solid up to p50,
shaded up to p95, light up to p99. For hooks with "standby", hits and misses count the
events that found a process started ahead, and those that did not.

  hookline stats
  hookline stats --since 7d --event BeforeTool
  hookline stats --hook secrets --json

The numbers come from the journal: see 'hookline log --help'."""

_COUNTS = ("runs", "blocks", "failures")
_STANDBY = ("hits", "misses")
# The times are padded so that the table keeps its width from one call to the next.
_TIMES = tuple(f"{name:>8}" for name in ("p50", "p95", "p99"))
_BAR = 24


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    journal.add_filter_arguments(parser)
    parser.add_flag("--json", "print a JSON list")
    journal.add_journal_arguments(parser)


def run(options: Options) -> None:
    """Print the numbers."""
    log_to_stderr()
    wanted = journal.event_filter(options)
    figures: list[HookFigures] = []
    span = None
    with journal.open_journal(options) as reader:
        if reader is not None:
            figures = figures_of(reader.runs(wanted))
            span = reader.span(wanted)
    if options.json:
        print_json([_as_json(hook) for hook in figures])
    elif figures:
        _print_figures(figures)
        if span is not None:
            events, first, last = span
            times = f"from {journal.format_time(first)} to {journal.format_time(last)}"
            print(f"{plural(events, 'event')} {times}")
    elif reader is not None:
        print("hookline: no runs of hooks are recorded", file=sys.stderr)


def _print_figures(figures: list[HookFigures]) -> None:
    longest = max(hook.p99_ms for hook in figures)
    ahead = any(hook.standby_hits or hook.standby_misses for hook in figures)
    counts = (*_COUNTS, *(_STANDBY if ahead else ()))
    headings = ("hook", "source", *counts, *_TIMES, "")
    rows = [_row(hook, longest, ahead=ahead) for hook in figures]
    print_table(headings, rows, right=range(2, len(headings) - 1))


def _as_json(hook: HookFigures) -> dict[str, object]:
    found: dict[str, object] = msgspec.to_builtins(hook)
    return {k: round(v, 3) if isinstance(v, float) else v for k, v in found.items()}


def _row(hook: HookFigures, longest: float, *, ahead: bool) -> tuple[str, ...]:
    counts = [hook.runs, hook.blocks, hook.failures]
    if ahead:
        counts += [hook.standby_hits, hook.standby_misses]
    return (
        one_line(hook.name),
        hook.source,
        *(f"{count:,}" for count in counts),
        *map(format_duration, (hook.p50_ms, hook.p95_ms, hook.p99_ms)),
        _bar(hook, longest),
    )


def _bar(hook: HookFigures, longest: float) -> str:
    times = (hook.p50_ms, hook.p95_ms, hook.p99_ms)
    ends = [round(time / longest * _BAR) if longest else 0 for time in times]
    _, solid, shaded, light = accumulate(ends, max, initial=1)
    bar = "█" * solid + "▓" * (shaded - solid) + "░" * (light - shaded)
    return paint(bar, "red" if hook.failures else "blue")
