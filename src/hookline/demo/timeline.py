"""Show what happens in the demo: who says what, what each hook does, a summary."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from hookline.engine.handler import HookEventHandler
from hookline.protocol.events import HookEventName
from hookline.protocol.inputs import EventFirer, Fields
from hookline.protocol.outputs import HookOutput
from hookline.protocol.results import HookExecutionResult, ProcessedHookResult
from hookline.translators.stable import LLMRequest, LLMResponse

Paint = Callable[[str, str], str]
"""Colours a text: ``paint("no", "red")``."""


class HookRun(Struct, frozen=True, kw_only=True):
    """What one hook did at one event."""

    event: HookEventName
    tool: str
    hook: str
    kind: str
    action: str
    detail: str
    milliseconds: float

    @property
    def columns(self) -> str:
        """One line without the detail."""
        return (
            f"{self.event.value:<19}  {self.tool:<10}  {self.hook:<11}  "
            f"{self.action:<10}  {_ms(self.milliseconds):>6}"
        )


def _totals(runs: Iterable[HookRun]) -> Iterator[tuple[object, ...]]:
    """Per hook: event, name, type, number of runs, mean time, outcome."""
    by_hook: dict[str, list[HookRun]] = {}
    for run in runs:
        by_hook.setdefault(run.hook, []).append(run)
    for hook, own in by_hook.items():
        mean = _ms(sum(run.milliseconds for run in own) / len(own))
        counts = Counter(run.action for run in own if run.action != "allowed")
        outcome = ", ".join(f"{n} {action}" for action, n in sorted(counts.items()))
        first = own[0]
        yield first.event, hook, first.kind, len(own), mean, outcome or "all allowed"


class ReportingHooks(EventFirer):
    """Fires on a handler and reports each hook that ran."""

    def __init__(
        self, handler: HookEventHandler, report: Callable[[HookRun], None]
    ) -> None:
        self._handler = handler
        self._report = report

    async def fire(
        self, event_name: HookEventName | str, event_input: Mapping[str, Any]
    ) -> ProcessedHookResult:
        """Fire by name."""
        return await self.fire_fields(HookEventName.of(event_name), dict(event_input))

    async def fire_fields(
        self,
        event: HookEventName,
        fields: Fields,
        session_id: str | None = None,
        transcript_path: str | None = None,
    ) -> ProcessedHookResult:
        """Fire and report."""
        result = await self._handler.fire_fields(
            event, fields, session_id, transcript_path
        )
        for hook in result.aggregated.hook_results:
            action, detail = _action(hook, fields)
            self._report(
                HookRun(
                    event=event,
                    tool=str(fields.get("tool_name", "")),
                    hook=hook.hook_name,
                    kind=hook.hook_type,
                    action=action,
                    detail=detail,
                    milliseconds=hook.duration,
                )
            )
        return result


def _action(hook: HookExecutionResult, fields: Fields) -> tuple[str, str]:
    """What a hook did in one word, and in detail."""
    output = hook.output
    if hook.failed:
        return "failed", hook.error or ""
    if output is None:
        return "allowed", "asked again: another hook changed it" if hook.recheck else ""
    if output.stops:
        return "stopped", output.effective_stop_reason
    if output.is_blocking:
        return "blocked", output.effective_reason
    return _change(output, fields)


def _change(output: HookOutput, fields: Fields) -> tuple[str, str]:
    if output.tool_config is not None:
        names = ", ".join(output.tool_config["allowedFunctionNames"])
        return "restricted", f"only {names}"
    if output.tool_input:
        return "changed", _difference(fields["tool_input"], output.tool_input)
    if output.llm_request:
        request: LLMRequest = fields["llm_request"]
        after = output.llm_request.get("config", {})
        return "changed", _difference(request.config or {}, after)
    if output.llm_response:
        response: LLMResponse = fields["llm_response"]
        return "changed", f"{response.text} → {output.llm_response.get('text')}"
    if output.additional_context is None:
        return "allowed", ""
    return "added", output.additional_context


def _difference(before: dict[str, Any], after: dict[str, Any]) -> str:
    return ", ".join(
        f"{key} {before.get(key)} → {new}"
        for key, new in after.items()
        if before.get(key) != new
    )


class Timeline:
    """One line per fact, in ASCII: for logs."""

    def title(self, text: str) -> None:
        """Begin a new scene."""
        self._print(f"\n== {text}")

    def message(self, sender: str, text: str) -> None:
        """Show what somebody says."""
        self._print(f"{sender}: {text}")

    def hook_run(self, run: HookRun) -> None:
        """Show what a hook did."""
        self._print(f"  {run.columns}" + (f"  {run.detail}" if run.detail else ""))

    def summary(self, runs: Iterable[HookRun], facts: Iterable[str]) -> None:
        """Show all hooks, and the state of the project."""
        self.title("Summary")
        row = "  {:<19}  {:<11}  {:<7}  {:>2} runs  {:>6}  {}"
        for total in _totals(runs):
            self._print(row.format(*total))
        for fact in facts:
            self._print(f"  - {fact}")

    def _print(self, text: str) -> None:
        _write(text.replace("→", "->").encode("ascii", "replace").decode())


_STYLES = {
    "allowed": ("dim",),
    "changed": ("yellow",),
    "added": ("blue",),
    "restricted": ("yellow",),
    "blocked": ("red", "bold"),
    "stopped": ("red", "bold"),
    "failed": ("red",),
    "you": ("green", "bold"),
    "model": ("blue", "bold"),
    "agent": ("red", "bold"),
}


class _TerminalTimeline(Timeline):
    """Wrapped lines and a table, with colours where ``paint`` adds them."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._width = max(shutil.get_terminal_size().columns, 40)
        self._pause_s = 0.03 if sys.stdout.isatty() else 0

    def title(self, text: str) -> None:
        rule = "─" * (self._width - len(text) - 1)
        _write(f"\n{self._paint(text, 'bold')} {self._paint(rule, 'blue')}")

    def message(self, sender: str, text: str) -> None:
        label = self._styled(f"{sender:>5}", _STYLES.get(sender, ("bold",)))
        first, *rest = self._wrapped(text, 7) or [""]
        self._show(f"{label}  {first.lstrip()}", *rest)

    def hook_run(self, run: HookRun) -> None:
        columns = self._styled(run.columns.rstrip(), _STYLES[run.action])
        self._show(f"       {columns}", *self._wrapped(run.detail, 9))

    def summary(self, runs: Iterable[HookRun], facts: Iterable[str]) -> None:
        row = "{:<19}  {:<11}  {:<7}  {:>4}  {:>6}  {}"
        heading = row.format("event", "hook", "type", "runs", "each", "outcome")
        self.title("Summary")
        self._show(self._paint(heading, "bold"), "─" * self._width)
        for total in _totals(runs):
            self._show(row.format(*total))
        for fact in facts:
            self._show(self._paint(f"✓ {fact}", "green"))

    def _styled(self, text: str, styles: Iterable[str]) -> str:
        for style in styles:
            text = self._paint(text, style)
        return text

    def _wrapped(self, text: str, indent: int) -> list[str]:
        lines = textwrap.wrap(text, self._width - indent, break_on_hyphens=False)
        return [" " * indent + line for line in lines]

    def _show(self, *lines: str) -> None:
        for line in lines:
            _write(line)
        time.sleep(self._pause_s)


def make_timeline(paint: Paint, *, plain: bool) -> Timeline:
    """The timeline that suits standard output."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if plain or not encoding.startswith("utf"):
        return Timeline()
    return _TerminalTimeline(paint)


def _write(text: str) -> None:
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Raising would look like a failed hook: discard the rest.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:.{0 if milliseconds >= 9.95 else 1}f} ms"
