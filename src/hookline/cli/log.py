"""``hookline log``: show recorded events."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from textwrap import indent
from typing import Any

from msgspec import structs

from hookline.errors import HooklineError
from hookline.journal import query
from hookline.journal.store import identity
from hookline.protocol.events import HookEventName, known_event
from hookline.protocol.verdict import Word, recorded_verdict

from . import journal
from .common import Options, Parser, at_least, log_to_stderr, note
from .terminal import (
    format_duration,
    one_line,
    pad,
    paint,
    plural,
    pretty_json,
    print_json,
    printable_text,
    short_path,
    shorten,
)

SUMMARY = "show recorded events"
DESCRIPTION = """\
Show recorded events, one per line, newest last; or all details of one event.

  hookline log                            the last 50 events of this project
  hookline log --everywhere               of all projects
  hookline log --blocked --since 2h       blocked in the last two hours
  hookline log --would-block              what hooks in observe mode would block
  hookline log --tool 'write_*' --hook secrets
  hookline log 17                         all details of event 17
  hookline log --follow                   show new events until Ctrl-C
  hookline log --json -n 0                all events as one JSON list

Without --journal and --settings the events of this project are shown: of the
folder with .hookline, or of the repository, around --cwd, and below it. --here
and --everywhere override that; stderr says how many events are left out. An ID
is found in every project.

Events are recorded if the settings have "hooksConfig": {"journal": true}, and
by 'hookline fire --record'. Values under keys that look like credentials are
masked. With --follow, --json prints one object per line."""

_POLL_S = 0.25
_STYLES = {"blocked": "red", "stopped": "red", "ask": "yellow", "changed": "blue"}


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    text = "show all details of this event"
    parser.add_argument("id", metavar="ID", nargs="?", type=int, help=text)
    journal.add_filter_arguments(parser)
    parser.add_flag("--blocked", "only events that were blocked or stopped")
    parser.add_flag("--failed", "only events on which a hook failed")
    text = "only events that a hook in observe mode would have blocked"
    parser.add_flag("--would-block", text)
    journal.add_scope_arguments(parser)
    text = "show the N newest events (default: 50; 0: all)"
    parser.add_option("-n --limit N", text, type=at_least(0), default=50)
    parser.add_flag("-f --follow", "keep showing events as they are recorded")
    parser.add_flag("--json", "print JSON")
    journal.add_journal_arguments(parser)


def run(options: Options) -> None:
    """Print the events."""
    log_to_stderr()
    wanted = journal.event_filter(options)
    if options.id is not None:
        _print_one(options)
    elif options.follow:
        _follow(options, wanted)
    else:
        _print_list(options, wanted)


def _print_one(options: Options) -> None:
    with journal.open_journal(options) as reader:
        full = None if reader is None else reader.find(options.id)
        if reader is None or full is None:
            problem = f"no event {options.id} is recorded"
            raise HooklineError(f"{problem}: see 'hookline log'")
        project = reader.project_of(full.entry.cwd)
    if options.json:
        print_json(_as_json(full, project))
    else:
        _print_details(full, project)


def _print_list(options: Options, wanted: query.EventFilter) -> None:
    shown: list[Any] = []
    total, scope = 0, journal.Scope(wanted)
    with journal.open_journal(options) as reader:
        if reader is not None:
            here = journal.names_no_file(options)
            scope = journal.find_scope(reader, wanted, options, here=here)
            entries = reader.newest(scope.wanted, options.limit or None)
            shown = _shown(reader, entries, options)
            total = reader.count(scope.wanted)
    if options.json:
        print_json(shown)
    elif total:
        _print_lines(shown, total, options)
    elif reader is not None:
        journal.print_nothing("event", scope, options)
    journal.print_elsewhere(scope.elsewhere, options)


def _shown(
    reader: query.JournalReader, entries: list[query.Entry], options: Options
) -> list[Any]:
    """The events as objects or lines."""
    if not options.json:
        return [_line(entry, reader.project_of(entry.cwd)) for entry in entries]
    found = (reader.find(entry.id) for entry in entries)
    # None: deleted from the journal since it was listed.
    return [
        _as_json(full, reader.project_of(full.entry.cwd))
        for full in found
        if full is not None
    ]


def _print_lines(lines: list[str], total: int, options: Options) -> None:
    for line in lines:
        print(line)
    sys.stdout.flush()
    if len(lines) < total:
        newest = f"the newest {len(lines)} of {total:,}"
        note(f"{newest}: -n 0 shows all", options)


def _follow(options: Options, wanted: query.EventFilter) -> None:
    """Print old and new events until Ctrl-C."""
    path = journal.journal_file(options)
    try:
        _wait_for(path, options)
        here = journal.names_no_file(options)
        wanted = journal.only_wanted_projects(wanted, options, here=here)
        if wanted.project is not None:
            only = f"only events in {one_line(wanted.project)} are shown"
            note(f"hookline: {only}: --everywhere shows all", options)
        while True:
            with query.read_journal(path) as reader:
                _follow_file(reader, wanted, options)
            _wait_for(path, options)
    except KeyboardInterrupt:
        pass


def _wait_for(path: str, options: Options) -> None:
    if identity(path) is None:
        note(f"hookline: waiting for {path}", options)
    while identity(path) is None:
        time.sleep(_POLL_S)


def _follow_file(
    reader: query.JournalReader, wanted: query.EventFilter, options: Options
) -> None:
    """Print events until the file is moved."""
    opened = identity(reader.path)
    entries = reader.newest(wanted, options.limit or None)
    last = reader.last_id()
    while True:
        for shown in _shown(reader, entries, options):
            if options.json:
                print_json(shown)
            else:
                print(shown, flush=True)
        if identity(reader.path) != opened:
            return
        time.sleep(_POLL_S)
        seen = reader.last_id()
        entries = reader.newest(structs.replace(wanted, after_id=last), None)
        # Events of other projects are not looked at again.
        last = max([seen, *(entry.id for entry in entries)])


def _line(entry: query.Entry, project: str) -> str:
    verdict = paint(f"{one_line(entry.verdict):7}", _STYLES.get(entry.verdict, "green"))
    hooks = plural(entry.hook_count, "hook")
    name = pad(shorten(_name(entry), 60), 30)
    what = f"{name} {hooks:>8} {format_duration(entry.duration_ms):>8}"
    line = f"{entry.id:>6}  {journal.format_time(entry.at)}  {verdict}  {what}"
    return f"{line}  {pad(short_path(project), 12)}  {_remark(entry)}".rstrip()


def _name(entry: query.Entry) -> str:
    return one_line(f"{entry.event} {entry.target or ''}")


def _remark(entry: query.Entry) -> str:
    said = [f"by {entry.blockers}"] if entry.blockers else []
    said += [entry.reason] if entry.reason else []
    parts = [shorten(one_line(": ".join(said)), 160)]
    if entry.failed:
        failing = f"failed: {one_line(entry.failing)}" if entry.failing else "failed"
        parts.append(paint(shorten(failing, 80), "yellow"))
    if entry.observers:
        names = one_line(entry.observers)
        parts.append(paint(shorten(f"would block: {names}", 80), "yellow"))
    if entry.rechecked:
        parts.append(shorten(f"asked again: {one_line(entry.rechecked)}", 80))
    return "; ".join(part for part in parts if part)


def _as_json(full: query.FullEntry, project: str) -> dict[str, Any]:
    entry, verdict = full.entry, full.decided
    return {
        "id": entry.id,
        "at": journal.format_utc(entry.at),
        "event": entry.event,
        "target": entry.target,
        "tool": full.input.get("tool_name"),
        "session_id": entry.session,
        "cwd": entry.cwd,
        "project": project,
        "verdict": entry.verdict,
        "blocked": verdict.blocked,
        "ask": verdict.ask,
        "should_stop": verdict.stop,
        "reason": entry.reason,
        "failed": entry.failed,
        "would_block": _names(full, "would_block"),
        "recheck": _names(full, "recheck"),
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


def _names(full: query.FullEntry, flag: str) -> list[str]:
    """The hooks that have a flag, each once."""
    return list(dict.fromkeys(hook["name"] for hook in full.hooks if hook[flag]))


def _print_details(full: query.FullEntry, project: str) -> None:
    entry = full.entry
    verdict = paint(one_line(entry.verdict), _STYLES.get(entry.verdict, "green"))
    print(f"event {entry.id}: {_name(entry)}, {verdict}")
    for label, text in _facts(full, project):
        print(f"  {label:9}{text}")
    print(f"\ninput{_marks(entry.input_masked, entry.input_cut, entry.input_bytes)}")
    _print_indented(pretty_json(full.input), 2)
    for place, hook in enumerate(full.hooks, 1):
        _print_hook(place, hook, known_event(full.entry.event))
    if full.final_output is not None:
        print(f"\nmerged output{_marks(entry.output_masked, entry.output_cut)}")
        _print_indented(pretty_json(full.final_output), 2)
    for error in full.errors:
        message = printable_text(error["message"])
        print(f"\n{paint('error', 'red')} ({one_line(error['stage'])}): {message}")


def _facts(full: query.FullEntry, project: str) -> Iterator[tuple[str, str]]:
    entry = full.entry
    yield "when", f"{journal.format_time(entry.at)} ({journal.format_utc(entry.at)})"
    yield "session", one_line(entry.session)
    yield "project", one_line(project)
    if entry.cwd != project:
        yield "folder", one_line(entry.cwd)
    yield "took", format_duration(entry.duration_ms)
    yield "plan", _plan(full.plan)
    if entry.reason:
        yield "reason", printable_text(entry.reason).replace("\n", "\n" + " " * 11)


def _plan(plan: dict[str, Any] | None) -> str:
    if plan is None:
        return "no hook matched"
    hooks = (f"{hook['name']} ({hook['source']})" for hook in plan["hooks"])
    names = one_line(", ".join(hooks))
    if len(plan["hooks"]) == 1:
        return names
    return f"{'one after another' if plan['sequential'] else 'in parallel'}: {names}"


def _print_hook(place: int, hook: dict[str, Any], event: HookEventName | None) -> None:
    facts = [hook["source"], hook["type"], format_duration(hook["duration_ms"])]
    if hook["exit_code"] is not None:
        facts.insert(2, f"exit status {hook['exit_code']}")
    if hook["mode"] == "observe":
        facts.insert(2, "observe mode")
    if hook["recheck"]:
        facts.append("asked again about the final input")
    if hook["async"]:
        facts.append("not waited for" if hook["ended"] else "not waited for, no result")
    name, outcome = one_line(hook["name"]), _outcome(event, hook)
    print(f"\nhook {place}: {name} ({one_line(', '.join(facts))}) {outcome}")
    if hook["error"]:
        print(f"  error: {printable_text(hook['error'])}")
    for warning in hook["warnings"]:
        print(f"  {paint('warning', 'yellow')}: {one_line(warning)}")
    output = hook["output"]
    if output is not None:
        print("  output")
        _print_indented(pretty_json(output), 4)
    for stream in ("stdout", "stderr"):
        # Standard output that was parsed is the output shown above.
        if hook[stream] and not (stream == "stdout" and output is not None):
            print(f"  {stream}")
            _print_indented(hook[stream], 4)


_OUTCOMES = {
    Word.WOULD_BLOCK: ("would block", "yellow"),
    Word.STOPPED: ("stopped", "red"),
    Word.BLOCKED: ("blocked", "red"),
    Word.FAILED: ("failed", "yellow"),
}


def _outcome(event: HookEventName | None, hook: dict[str, Any]) -> str:
    word = recorded_verdict(event, hook).word
    return paint(*_OUTCOMES.get(word, ("ok", "green")))


def _marks(masked: bool, truncated: bool, size: int | None = None) -> str:
    marks = ["credentials masked"] if masked else []
    if truncated:
        marks.append("truncated" if size is None else f"truncated from {size:,} bytes")
    return f" ({'; '.join(marks)})" if marks else ""


def _print_indented(text: str, by: int) -> None:
    print(indent(printable_text(text), " " * by))
