"""What the commands that read the journal share: options, times, text of entries."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from hookline.errors import HooklineError
from hookline.journal.query import (
    Entry,
    EventFilter,
    FullEntry,
    JournalReader,
    read_journal,
)
from hookline.journal.store import journal_path
from hookline.protocol.events import HookEventName
from hookline.protocol.jsontext import encode

from .common import Progress, add_settings_arguments, load_config, paint, plain

_SPAN = re.compile(r"([0-9]{1,9})\s*(s|m|h|d|w)", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def parse_since(text: str) -> float:
    """Read a point in time: a span before now, a date, or a date with a time."""
    given = text.strip()
    span = _SPAN.fullmatch(given)
    if span:
        return time.time() - int(span[1]) * _SECONDS[span[2].lower()]
    try:
        if given.lower() in {"today", "yesterday"}:
            return _midnight(days_ago=0 if given.lower() == "today" else 1)
        # Without an offset it is the time of day of whoever typed it.
        return datetime.fromisoformat(given).astimezone().timestamp()
    except (ValueError, OverflowError):
        raise HooklineError(
            f"--since {text!r} is no time: give a span such as 90s, 30m, 2h, 3d or 1w, "
            "'today', or a date such as 2026-11-01 or 2026-11-01T09:30"
        ) from None


def clock(at: float) -> str:
    """Local date and time, to the second."""
    return _local(at).strftime("%Y-%m-%d %H:%M:%S")


def iso(at: float) -> str:
    """The time as hooks get it: ISO 8601, UTC, milliseconds."""
    stamp = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return stamp.replace("+00:00", "Z")


def took(duration_ms: float) -> str:
    """A duration with three digits or so."""
    if duration_ms >= 10_000:
        return f"{duration_ms / 1000:.1f} s"
    return f"{duration_ms:.0f} ms" if duration_ms >= 100 else f"{duration_ms:.1f} ms"


def _midnight(days_ago: int) -> float:
    day = datetime.now().astimezone() - timedelta(days=days_ago)
    return day.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def _local(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC).astimezone()


def add_journal_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where the journal is."""
    parser.add_argument(
        "--journal",
        metavar="FILE",
        help="read this journal (default: the one that the settings name, "
        "or the one in the state directory)",
    )
    add_settings_arguments(parser)


def add_filter_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which events are wanted."""
    parser.add_argument("--event", metavar="EVENT", help=", ".join(HookEventName))
    parser.add_argument(
        "--tool", metavar="NAME", help="events of this tool; '*' and '?' stand for more"
    )
    parser.add_argument(
        "--hook", metavar="NAME", help="events that this hook ran on; '*' as above"
    )
    parser.add_argument("--session", metavar="ID", help="events of this session")
    parser.add_argument(
        "--since",
        metavar="WHEN",
        help="events since then: 90s, 30m, 2h, 3d, 1w ago, today, or 2026-11-01",
    )


def filter_of(options: argparse.Namespace) -> EventFilter:
    """The events that the options name."""
    return EventFilter(
        event=None if options.event is None else HookEventName.of(options.event).value,
        tool=options.tool,
        hook=options.hook,
        session=options.session,
        since=None if options.since is None else parse_since(options.since),
        blocked=getattr(options, "blocked", False),
        failed=getattr(options, "failed", False),
    )


def journal_file(options: argparse.Namespace) -> str:
    """The journal that the options or the settings name."""
    if options.journal is not None:
        if not options.journal.strip():
            raise HooklineError("--journal needs the name of a file")
        return os.path.abspath(str(options.journal))  # noqa: PTH100
    config = load_config(options)
    option = config.settings.global_options.journal
    return journal_path(option, config.working_dir)


@contextmanager
def reading(options: argparse.Namespace) -> Iterator[JournalReader | None]:
    """Open the journal; None, with a word on stderr, where none was begun yet.

    Print after it is closed: a line of progress may be on the terminal until then.
    """
    path = journal_file(options)
    if options.journal is None and not os.path.lexists(path):
        print(
            f"hookline: nothing has been recorded yet ({path}): set "
            "hooksConfig.journal to true, or use 'hookline fire --record'",
            file=sys.stderr,
        )
        yield None
        return
    with (
        Progress("reading the journal") as progress,
        read_journal(path, progress.show) as reader,
    ):
        yield reader


_STYLES = {"blocked": "red", "stopped": "red", "ask": "yellow", "changed": "blue"}


def entry_line(entry: Entry) -> str:
    """One event in one line."""
    word = paint(f"{entry.verdict:7}", _STYLES.get(entry.verdict, "green"))
    hooks = f"{entry.hook_count} hook{'' if entry.hook_count == 1 else 's'}"
    what = f"{entry.event} {one_line(entry.target)}" if entry.target else entry.event
    figures = f"{hooks:>8} {took(entry.duration_ms):>8}"
    line = f"{entry.id:>6}  {clock(entry.at)}  {word}  {what:30.60} {figures}"
    return f"{line}  {_remark(entry)}".rstrip()


def entry_json(full: FullEntry) -> dict[str, Any]:
    """Everything about one event, in the words of ``hookline fire --json``."""
    entry, verdict = full.entry, full.decided
    return {
        "id": entry.id,
        "at": iso(entry.at),
        "event": entry.event,
        "target": entry.target,
        "tool": full.input.get("tool_name"),
        "session_id": entry.session,
        "cwd": entry.cwd,
        "verdict": entry.verdict,
        "blocked": verdict.blocked,
        "ask": verdict.ask,
        "should_stop": verdict.stop,
        "reason": entry.reason,
        "failed": entry.failed,
        "total_duration_ms": round(entry.duration_ms, 3),
        "input": full.input,
        "input_bytes": entry.input_bytes,
        "input_masked": entry.input_masked,
        "input_cut": entry.input_cut,
        "output_masked": entry.output_masked,
        "output_cut": entry.output_cut,
        "plan": full.plan,
        "final_output": full.final_output,
        "errors": full.errors,
        "hooks": full.hooks,
    }


def print_entry(full: FullEntry) -> None:
    """Print everything about one event."""
    entry = full.entry
    word = paint(entry.verdict, _STYLES.get(entry.verdict, "green"))
    target = f" {one_line(entry.target)}" if entry.target else ""
    print(f"event {entry.id}: {entry.event}{target}, {word}")
    for label, text in _facts(full):
        print(f"  {label:9}{text}")
    print(f"\ninput{_marks(entry.input_masked, entry.input_cut, entry.input_bytes)}")
    print(_indented(_pretty(full.input)))
    for place, hook in enumerate(full.hooks, 1):
        _print_hook(place, hook)
    if full.final_output is not None:
        print(f"\nmerged output{_marks(entry.output_masked, entry.output_cut)}")
        print(_indented(_pretty(full.final_output)))
    for error in full.errors:
        print(
            f"\n{paint('error', 'red')} ({error['stage']}): {plain(error['message'])}"
        )


def one_line(text: str | None) -> str:
    """Foreign text for the middle of a line."""
    return plain(" ".join((text or "").split()))


def shortened(text: str, longest: int) -> str:
    """The same text, or its head with a mark."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _remark(entry: Entry) -> str:
    whose = f"by {one_line(entry.blockers)}: " if entry.blockers else ""
    parts = [shortened(f"{whose}{one_line(entry.reason)}", 160)]
    if entry.failed:
        failing = f"failed: {one_line(entry.failing)}" if entry.failing else "failed"
        parts.append(paint(shortened(failing, 80), "yellow"))
    return "; ".join(part for part in parts if part)


def _facts(full: FullEntry) -> Iterator[tuple[str, str]]:
    entry = full.entry
    yield "when", f"{clock(entry.at)} ({iso(entry.at)})"
    yield "session", one_line(entry.session)
    yield "project", one_line(entry.cwd)
    yield "took", took(entry.duration_ms)
    yield "plan", _plan(full.plan)
    if entry.reason:
        yield "reason", plain(entry.reason).replace("\n", "\n" + " " * 11)


def _plan(plan: dict[str, Any] | None) -> str:
    if plan is None:
        return "no hook matched"
    names = ", ".join(f"{one_line(h['name'])} ({h['source']})" for h in plan["hooks"])
    if len(plan["hooks"]) == 1:
        return names
    return f"{'one after the other' if plan['sequential'] else 'all at once'}: {names}"


def _print_hook(place: int, hook: dict[str, Any]) -> None:
    how = [hook["source"], hook["type"], took(hook["duration_ms"])]
    if hook["exit_code"] is not None:
        how.insert(2, f"exit status {hook['exit_code']}")
    print(f"\nhook {place}: {one_line(hook['name'])} ({', '.join(how)}) {_mark(hook)}")
    if hook["error"]:
        print(f"  error: {plain(hook['error'])}")
    output = hook["output"]
    if output is not None:
        print("  said")
        print(_indented(_pretty(output), 4))
    for stream in ("stdout", "stderr"):
        # Standard output that was read as the output would be the same again.
        if hook[stream] and not (stream == "stdout" and output is not None):
            print(f"  {stream}")
            print(_indented(plain(hook[stream]), 4))


def _mark(hook: dict[str, Any]) -> str:
    for name, word, style in (
        ("would_block", "would block", "yellow"),
        ("blocked", "blocked", "red"),
        ("failed", "failed", "yellow"),
    ):
        if hook[name]:
            return paint(word, style)
    return paint("ok", "green")


def _marks(masked: bool, cut: bool, size: int | None = None) -> str:
    marks = []
    if masked:
        marks.append("credentials masked")
    if cut:
        marks.append("cut" if size is None else f"cut, {size:,} bytes in all")
    return f" ({'; '.join(marks)})" if marks else ""


def _pretty(value: Any) -> str:
    return plain(json.dumps(json.loads(encode(value)), indent=2, ensure_ascii=False))


def _indented(text: str, by: int = 2) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())
