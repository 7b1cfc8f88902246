"""``hookline stats``: what the recorded runs of each hook come to."""

from __future__ import annotations

import argparse
import sys

import msgspec

from hookline.journal.query import HookFigures, figures_of

from .common import log_to_stderr, paint, print_json
from .journal import (
    add_filter_arguments,
    add_journal_arguments,
    clock,
    filter_of,
    one_line,
    reading,
    shortened,
    took,
)

SUMMARY = "show runs, blocks, failures and times per hook"
DESCRIPTION = """\
Show for every hook how often it ran, blocked and failed, how long it took (half, 95 and
99 of 100 runs were not slower than p50, p95 and p99), and a bar of its times: solid
up to p50, shaded up to p95, light up to p99, all hooks on one scale.

  hookline stats
  hookline stats --since 7d --event BeforeTool
  hookline stats --hook secrets --json

The figures come from the journal: see 'hookline log --help'."""

_HEADINGS = ("hook", "source", "runs", "blocks", "failures", "p50", "p95", "p99")
_BAR = 24
_TIME = 8
_LONGEST_NAME = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_filter_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    add_journal_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Print the figures."""
    log_to_stderr()
    wanted = filter_of(options)
    figures: list[HookFigures] = []
    span = None
    with reading(options) as reader:
        if reader is not None:
            figures = figures_of(reader.runs(wanted))
            span = reader.span(wanted)
    if options.json:
        print_json([_as_json(hook) for hook in figures])
    elif figures:
        _print_table(figures)
        if span is not None:
            events, first, last = span
            print(f"{events:,} events from {clock(first)} to {clock(last)}")
    elif reader is not None:
        print("hookline: no run of a hook is recorded", file=sys.stderr)
    return 0


def _as_json(hook: HookFigures) -> dict[str, object]:
    found: dict[str, object] = msgspec.to_builtins(hook)
    return {k: round(v, 3) if isinstance(v, float) else v for k, v in found.items()}


def _print_table(figures: list[HookFigures]) -> None:
    rows = [_row(hook) for hook in figures]
    columns = zip(_HEADINGS, *rows, strict=True)
    widths = [max(map(len, column)) for column in columns]
    widths[-3:] = [max(width, _TIME) for width in widths[-3:]]
    print(paint(_line(_HEADINGS, widths), "bold"))
    longest = max(hook.p99_ms for hook in figures)
    for hook, row in zip(figures, rows, strict=True):
        print(f"{_line(row, widths)}  {_bar(hook, longest)}".rstrip())


def _row(hook: HookFigures) -> tuple[str, ...]:
    return (
        shortened(one_line(hook.name), _LONGEST_NAME),
        hook.source,
        f"{hook.runs:,}",
        f"{hook.blocks:,}",
        f"{hook.failures:,}",
        *map(took, (hook.p50_ms, hook.p95_ms, hook.p99_ms)),
    )


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    padded = [
        f"{cell:{'<' if place < 2 else '>'}{width}}"
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded)


def _bar(hook: HookFigures, longest: float) -> str:
    ends = [_cells(value, longest) for value in (hook.p50_ms, hook.p95_ms, hook.p99_ms)]
    solid = max(ends[0], 1)
    shaded = max(ends[1], solid)
    light = max(ends[2], shaded)
    bar = "█" * solid + "▓" * (shaded - solid) + "░" * (light - shaded)
    return paint(bar, "red" if hook.failures else "blue")


def _cells(value: float, longest: float) -> int:
    return round(value / longest * _BAR) if longest else 0
