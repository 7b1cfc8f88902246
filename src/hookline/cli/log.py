"""``hookline log``: show recorded events."""

from __future__ import annotations

import sys
import time
from textwrap import indent
from typing import Any

from msgspec import structs

from hookline.errors import HooklineError
from hookline.journal import query
from hookline.journal.store import identity
from hookline.protocol.events import HookEventName, known_event
from hookline.protocol.verdict import Word, recorded_verdict

from . import journal
from .messages import log_to_stderr, note
from .options import Options, Parser, at_least
from .render import paint_hook, paint_verdict
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
_HOOK_WORDS = {
    Word.WOULD_BLOCK: "would block",
    Word.STOPPED: "stopped",
    Word.BLOCKED: "blocked",
    Word.FAILED: "failed",
}
"""What one hook did, where it is not just ``ok``."""


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
    if options.id is not None:
        _print_event(options)
    elif options.follow:
        try:
            _follow(options)
        except KeyboardInterrupt:
            pass
    else:
        _print_list(options)


def _print_event(options: Options) -> None:
    journal.event_filter(options)  # raises for an unknown event
    with journal.open_journal(options) as reader:
        event = None if reader is None else reader.find(options.id)
        if reader is None or event is None:
            problem = f"no event {options.id} is recorded"
            raise HooklineError(f"{problem}: see 'hookline log'")
        project = reader.project_of(event.entry.cwd)
    if options.json:
        print_json(_as_json(event, project))
    else:
        _print_details(event, project)


def _print_list(options: Options) -> None:
    this_project = journal.is_shared(options)
    events: list[Any] = []
    total = 0
    with journal.open_selection(options, this_project=this_project) as selection:
        if selection.reader is not None:
            newest = selection.reader.newest(
                selection.event_filter, options.limit or None
            )
            events = _rendered(selection.reader, newest, options)
            total = selection.reader.count(selection.event_filter)
    if options.json:
        print_json(events)
    elif total:
        for line in events:
            print(line)
        sys.stdout.flush()
        if len(events) < total:
            note(f"the newest {len(events)} of {total:,}: -n 0 shows all")
    else:
        selection.note_nothing("event", options)
    selection.note_elsewhere()


def _rendered(
    reader: query.JournalReader, entries: list[query.Entry], options: Options
) -> list[Any]:
    """The events as objects or lines."""
    if not options.json:
        return [_line(entry, reader.project_of(entry.cwd)) for entry in entries]
    events = (reader.find(entry.id) for entry in entries)
    # None: deleted from the journal since it was listed.
    return [
        _as_json(event, reader.project_of(event.entry.cwd))
        for event in events
        if event is not None
    ]


def _follow(options: Options) -> None:
    """Print old and new events until Ctrl-C, also of a file that takes its place."""
    events = journal.event_filter(options)
    path = journal.journal_file(options)
    _wait_for(path)
    events = journal.in_projects(
        events, options, this_project=journal.is_shared(options)
    )
    if events.project is not None:
        only = f"only events in {one_line(events.project)} are shown"
        note(f"hookline: {only}: --everywhere shows all")
    while True:
        with query.read_journal(path) as reader:
            opened = identity(reader.path)
            entries = reader.newest(events, options.limit or None)
            last_id = reader.last_id()
            while True:
                for event in _rendered(reader, entries, options):
                    if options.json:
                        print_json(event)
                    else:
                        print(event, flush=True)
                if identity(reader.path) != opened:
                    break
                time.sleep(_POLL_S)
                newest_id = reader.last_id()
                entries = reader.newest(structs.replace(events, after_id=last_id), None)
                # Events of other projects are not looked at again.
                last_id = max([newest_id, *(entry.id for entry in entries)])
        _wait_for(path)


def _wait_for(path: str) -> None:
    if identity(path) is None:
        note(f"hookline: waiting for {path}")
    while identity(path) is None:
        time.sleep(_POLL_S)


def _line(entry: query.Entry, project: str) -> str:
    verdict = paint_verdict(entry.verdict, f"{one_line(entry.verdict):7}")
    name = pad(shorten(_name(entry), 60), 30)
    hooks = plural(entry.hook_count, "hook")
    took = format_duration(entry.duration_ms)
    at = journal.format_time(entry.at)
    line = f"{entry.id:>6}  {at}  {verdict}  {name} {hooks:>8} {took:>8}"
    return f"{line}  {pad(short_path(project), 12)}  {_remarks(entry)}".rstrip()


def _name(entry: query.Entry) -> str:
    return one_line(f"{entry.event} {entry.target or ''}")


def _remarks(entry: query.Entry) -> str:
    blockers = f"by {entry.blockers}" if entry.blockers else ""
    reason = ": ".join(text for text in (blockers, entry.reason) if text)
    remarks = [shorten(one_line(reason), 160)]
    if entry.failed:
        failed = f"failed: {one_line(entry.failing)}" if entry.failing else "failed"
        remarks.append(paint(shorten(failed, 80), "yellow"))
    if entry.observers:
        would_block = f"would block: {one_line(entry.observers)}"
        remarks.append(paint(shorten(would_block, 80), "yellow"))
    if entry.rechecked:
        remarks.append(shorten(f"asked again: {one_line(entry.rechecked)}", 80))
    return "; ".join(remark for remark in remarks if remark)


def _as_json(full: query.FullEntry, project: str) -> dict[str, Any]:
    entry, verdict = full.entry, full.decided

    def names(flag: str) -> list[str]:
        """The hooks that have a flag, each once."""
        return list(dict.fromkeys(hook["name"] for hook in full.hooks if hook[flag]))

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
        "would_block": names("would_block"),
        "recheck": names("recheck"),
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


def _print_details(event: query.FullEntry, project: str) -> None:
    entry = event.entry
    verdict = paint_verdict(entry.verdict, one_line(entry.verdict))
    print(f"event {entry.id}: {_name(entry)}, {verdict}")
    at = f"{journal.format_time(entry.at)} ({journal.format_utc(entry.at)})"
    facts = {"when": at, "session": entry.session, "project": project}
    if entry.cwd != project:
        facts["folder"] = entry.cwd
    facts["took"] = format_duration(entry.duration_ms)
    facts["plan"] = _plan(event.plan)
    for label, text in facts.items():
        print(f"  {label:9}{one_line(text)}")
    if entry.reason:
        reason = printable_text(entry.reason).replace("\n", "\n" + " " * 11)
        print(f"  {'reason':9}{reason}")
    print(f"\ninput{_marks(entry.input_masked, entry.input_cut, entry.input_bytes)}")
    _print_indented(pretty_json(event.input), 2)
    for number, hook in enumerate(event.hooks, 1):
        _print_hook(number, hook, known_event(entry.event))
    if event.final_output is not None:
        print(f"\nmerged output{_marks(entry.output_masked, entry.output_cut)}")
        _print_indented(pretty_json(event.final_output), 2)
    for error in event.errors:
        message = printable_text(error["message"])
        print(f"\n{paint('error', 'red')} ({one_line(error['stage'])}): {message}")


def _plan(plan: dict[str, Any] | None) -> str:
    if plan is None:
        return "no hook matched"
    names = ", ".join(f"{hook['name']} ({hook['source']})" for hook in plan["hooks"])
    if len(plan["hooks"]) == 1:
        return names
    return f"{'one after another' if plan['sequential'] else 'in parallel'}: {names}"


def _print_hook(number: int, hook: dict[str, Any], event: HookEventName | None) -> None:
    facts = [hook["source"], hook["type"]]
    if hook["mode"] == "observe":
        facts.append("observe mode")
    if hook["exit_code"] is not None:
        facts.append(f"exit status {hook['exit_code']}")
    facts.append(format_duration(hook["duration_ms"]))
    if hook["recheck"]:
        facts.append("asked again about the final input")
    if hook["async"]:
        facts.append("not waited for" if hook["ended"] else "not waited for, no result")
    name = one_line(hook["name"])
    outcome = paint_hook(recorded_verdict(event, hook).word, _HOOK_WORDS)
    print(f"\nhook {number}: {name} ({one_line(', '.join(facts))}) {outcome}")
    if hook["error"]:
        print(f"  error: {printable_text(hook['error'])}")
    for warning in hook["warnings"]:
        print(f"  {paint('warning', 'yellow')}: {one_line(warning)}")
    output = hook["output"]
    if output is not None:
        print("  output")
        _print_indented(pretty_json(output), 4)
    for stream in ("stdout", "stderr"):
        # Standard output that was parsed is the output printed above.
        if hook[stream] and not (stream == "stdout" and output is not None):
            print(f"  {stream}")
            _print_indented(hook[stream], 4)


def _marks(masked: bool, truncated: bool, size: int | None = None) -> str:
    marks = ["credentials masked"] if masked else []
    if truncated:
        marks.append("truncated" if size is None else f"truncated from {size:,} bytes")
    return f" ({'; '.join(marks)})" if marks else ""


def _print_indented(text: str, by: int) -> None:
    print(indent(printable_text(text), " " * by))
