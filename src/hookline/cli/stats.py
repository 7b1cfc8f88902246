"""``hookline stats``: counts and run times per hook, from the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

from msgspec import Struct

from hookline.journal.query import EventFilter, JournalReader, Runs

from . import journal
from .common import Options, Parser, log_to_stderr
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
    wanted = journal.event_filter(options)
    figures: list[Figures] = []
    span, scope = None, journal.Scope(wanted)
    with journal.open_journal(options) as reader:
        if reader is not None:
            here = journal.names_no_file(options)
            scope = journal.find_scope(reader, wanted, options, here=here)
            figures = _figures(reader, scope.wanted)
            span = reader.span(scope.wanted)
    if options.json:
        print_json(figures)
    elif figures:
        _print_figures(figures)
        _print_span(span, figures)
    elif reader is not None:
        journal.print_nothing("run of a hook", scope, options)
    journal.print_elsewhere(scope.elsewhere, options)


def _figures(reader: JournalReader, wanted: EventFilter) -> list[Figures]:
    """The runs of each hook in each project, the most frequent first."""
    hooks: dict[tuple[str, str, str], Runs] = {}
    for key, runs in reader.runs(wanted).items():
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


class _Column(Struct, frozen=True):
    """One column of the table."""

    heading: str
    text: Callable[[Figures], str]
    is_number: bool = True


def _count(heading: str, field: str) -> _Column:
    return _Column(heading, lambda hook: f"{hook[field]:,}")


def _time(heading: str, field: str) -> _Column:
    return _Column(heading, lambda hook: format_duration(hook[field]))


def _project(hook: Figures) -> str:
    return short_path(hook["project"])


def _columns(figures: list[Figures]) -> Iterator[_Column]:
    """The columns that say something about these hooks."""

    def any_of(*fields: str) -> bool:
        return any(hook[field] for hook in figures for field in fields)

    yield _Column("hook", lambda hook: one_line(hook["name"]), is_number=False)
    yield _Column("source", lambda hook: one_line(hook["source"]), is_number=False)
    if len({hook["project"] for hook in figures}) > 1:
        yield _Column("project", _project, is_number=False)
    observed = any_of("would_block") or any(
        hook["mode"] == "observe" for hook in figures
    )
    if observed:
        yield _Column("mode", lambda hook: hook["mode"], is_number=False)
    yield _count("runs", "runs")
    yield _count("blocks", "blocks")
    if observed:
        yield _count("would block", "would_block")
    yield _count("failures", "failures")
    if any_of("rechecks"):
        yield _count("rechecks", "rechecks")
    if any_of("standby_hits", "standby_misses"):
        yield _count("hits", "standby_hits")
        yield _count("misses", "standby_misses")
    for name in ("p50", "p95", "p99"):
        # Padded, so that the table keeps its width from one call to the next.
        yield _time(f"{name:>8}", f"{name}_ms")


def _print_figures(figures: list[Figures]) -> None:
    longest = max(hook["p99_ms"] for hook in figures)
    columns = list(_columns(figures))
    table = [[column.heading for column in columns]]
    table += [[column.text(hook) for column in columns] for hook in figures]
    if table_width(table) + _BAR <= terminal_columns():
        bars = ["", *(_bar(hook, longest) for hook in figures)]
        table = [[*row, bar] for row, bar in zip(table, bars, strict=True)]
    right = [place for place, column in enumerate(columns) if column.is_number]
    print_table(table[0], table[1:], right)


def _print_span(span: tuple[int, float, float] | None, figures: list[Figures]) -> None:
    if span is None:
        return
    events, first, last = span
    times = f"from {journal.format_time(first)} to {journal.format_time(last)}"
    projects = {hook["project"] for hook in figures}
    several = len(projects) > 1
    where = f"{len(projects)} projects" if several else _project(figures[0])
    print(f"{plural(events, 'event')} {times} in {where}")


def _bar(hook: Figures, longest: float) -> str:
    times = (hook["p50_ms"], hook["p95_ms"], hook["p99_ms"])
    ends = [round(time / longest * _BAR) if longest else 0 for time in times]
    _, solid, shaded, light = accumulate(ends, max, initial=1)
    bar = "█" * solid + "▓" * (shaded - solid) + "░" * (light - shaded)
    return paint(bar, "red" if hook["failures"] else "blue")
