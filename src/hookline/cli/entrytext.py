"""A recorded event for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hookline.journal.entries import Entry, FullEntry
from hookline.jsontext import encode

from .style import paint, plain
from .times import clock, iso, took

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
