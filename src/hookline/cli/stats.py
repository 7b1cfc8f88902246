"""``hookline stats``: counts and run times per hook, from the journal."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from hookline.journal.query import EventFilter, JournalReader, Runs

from . import journal
from .messages import log_to_stderr
from .options import Options, Parser
from .terminal import (
    format_duration,
    one_line,
    paint,
    plural,
    print_json,
    print_table,
    short_path,
    table_width,
    terminal_columns,
)

SUMMARY = "show runs, blocks, failures and times per hook"
DESCRIPTION = """\
Show how often each hook ran, blocked and failed, and how long it took: p50, p95
and p99 are percentiles. The bar shows them on one scale for all hooks: solid up
to p50, shaded up to p95, light up to p99; on a narrow terminal there is none.

More columns appear where they say something:
  project            the runs are of several projects, each counted separately
  mode, would block  a hook is in observe mode, or was
  rechecks           runs in which a hook was asked again about the final input
  hits, misses       events that a process of "standby" answered, or did not

  hookline stats                          the hooks of this project
  hookline stats --everywhere             of all projects
  hookline stats --since 7d --event BeforeTool
  hookline stats --hook secrets --json

Without --journal and --settings the events of this project count. --here and
--everywhere override that; stderr says how many are left out.
The numbers come from the journal: see 'hookline log --help'."""

_BAR = 24
_HEADINGS = {
    "name": "hook",
    "would_block": "would block",
    "standby_hits": "hits",
    "standby_misses": "misses",
}

Figures = dict[str, Any]
"""The runs of one hook in one project, as ``--json`` has them."""


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    journal.add_filter_arguments(parser)
    journal.add_scope_arguments(parser)
    parser.add_flag("--json", "print a JSON list")
    journal.add_journal_arguments(parser)


def run(options: Options) -> None:
    """Print the numbers."""
    log_to_stderr()
    this_project = journal.is_shared(options)
    figures: list[Figures] = []
    span = None
    with journal.open_selection(options, this_project=this_project) as selection:
        if selection.reader is not None:
            figures = _figures(selection.reader, selection.event_filter)
            span = selection.reader.span(selection.event_filter)
    if options.json:
        print_json(figures)
    elif figures:
        _print_figures(figures)
        if span is not None:
            events, first, last = span
            times = f"from {journal.format_time(first)} to {journal.format_time(last)}"
            projects = {hook["project"] for hook in figures}
            is_one = len(projects) == 1
            where = short_path(*projects) if is_one else f"{len(projects)} projects"
            print(f"{plural(events, 'event')} {times} in {where}")
    else:
        selection.note_nothing("run of a hook", options)
    selection.note_elsewhere()


def _figures(reader: JournalReader, events: EventFilter) -> list[Figures]:
    """The runs of each hook in each project, the most frequent first."""
    hooks: dict[tuple[str, str, str], Runs] = {}
    for key, runs in reader.runs(events).items():
        hook = key.name, key.source, reader.project_of(key.cwd)
        if hook in hooks:
            hooks[hook].add(runs)
        else:
            hooks[hook] = runs
    figures: list[Figures] = []
    for (name, source, project), runs in hooks.items():
        numbers = runs.figures()
        del numbers["histogram"]
        figures.append(
            {
                "name": name,
                "source": source,
                **{key: round(number, 3) for key, number in numbers.items()},
                "mode": runs.mode,
                "project": project,
            }
        )
    figures.sort(key=lambda f: (-f["runs"], f["name"], f["source"], f["project"]))
    return figures


def _print_figures(figures: list[Figures]) -> None:
    """Print a table with the columns that say something about these hooks."""

    def any_of(*fields: str) -> bool:
        return any(hook[field] for hook in figures for field in fields)

    names, counts = ["name", "source"], ["runs", "blocks"]
    if len({hook["project"] for hook in figures}) > 1:
        names.append("project")
    if any_of("would_block") or any(hook["mode"] == "observe" for hook in figures):
        names.append("mode")
        counts.append("would_block")
    counts.append("failures")
    if any_of("rechecks"):
        counts.append("rechecks")
    if any_of("standby_hits", "standby_misses"):
        counts += ["standby_hits", "standby_misses"]
    # Padded, so that the table keeps its width from one call to the next.
    headings = [_HEADINGS.get(field, field) for field in (*names, *counts)]
    headings += [f"{name:>8}" for name in ("p50", "p95", "p99")]
    longest = max(hook["p99_ms"] for hook in figures)
    rows, bars = [], []
    for hook in figures:
        times = [hook[field] for field in ("p50_ms", "p95_ms", "p99_ms")]
        texts = {**hook, "project": short_path(hook["project"])}
        rows.append(
            [
                *(one_line(texts[field]) for field in names),
                *(f"{hook[field]:,}" for field in counts),
                *(format_duration(duration_ms) for duration_ms in times),
            ]
        )
        ends = [round(time / longest * _BAR) if longest else 0 for time in times]
        _, solid, shaded, light = accumulate(ends, max, initial=1)
        bar = "█" * solid + "▓" * (shaded - solid) + "░" * (light - shaded)
        bars.append(paint(bar, "red" if hook["failures"] else "blue"))
    if table_width([headings, *rows]) + _BAR <= terminal_columns():
        headings.append("")
        for row, bar in zip(rows, bars, strict=True):
            row.append(bar)
    print_table(headings, rows, right=range(len(names), len(names) + len(counts) + 3))
