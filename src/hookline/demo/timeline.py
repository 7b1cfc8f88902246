"""A hook's verdict, and what it changed, in a few words."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TextIO

from msgspec import Struct

from hookline.engine.handler import HookEventHandler
from hookline.protocol.events import HookEventName
from hookline.protocol.inputs import EventFirer, Fields
from hookline.protocol.outputs import HookOutput
from hookline.protocol.results import HookExecutionResult, ProcessedHookResult
from hookline.translators.stable import LLMRequest, LLMResponse

ALLOWED, CHANGED, ADDED = "allowed", "changed", "added"
BLOCKED, STOPPED, RESTRICTED, FAILED = "blocked", "stopped", "restricted", "failed"


def verdict_of(hook: HookExecutionResult) -> str:
    """One word."""
    said = hook.output
    if hook.failed:
        return FAILED
    if said is None:
        return ALLOWED
    checks = {
        STOPPED: said.stops,
        BLOCKED: said.is_blocking,
        RESTRICTED: said.tool_config is not None,
        CHANGED: bool(said.tool_input or said.llm_request or said.llm_response),
        ADDED: said.additional_context is not None,
    }
    return next((word for word, holds in checks.items() if holds), ALLOWED)


def change_of(hook: HookExecutionResult, fields: dict[str, Any]) -> str:
    """What is different for it."""
    said = hook.output
    if hook.failed:
        return hook.error or ""
    if said is None:
        return ""
    if said.stops:
        return said.effective_stop_reason
    return said.effective_reason if said.is_blocking else _change(said, fields)


def _change(said: HookOutput, fields: dict[str, Any]) -> str:
    if said.tool_config is not None:
        return "only " + ", ".join(said.tool_config["allowedFunctionNames"])
    if said.tool_input:
        return _changes(fields["tool_input"], said.tool_input)
    if said.llm_request:
        request: LLMRequest = fields["llm_request"]
        return _changes(request.config or {}, said.llm_request.get("config", {}))
    if said.llm_response:
        response: LLMResponse = fields["llm_response"]
        return f"{response.text} → {said.llm_response.get('text')}"
    return said.additional_context or ""


def _changes(before: dict[str, Any], after: dict[str, Any]) -> str:
    return ", ".join(
        f"{key} {before.get(key)} → {new}"
        for key, new in after.items()
        if before.get(key) != new
    )


class Sighting(Struct, frozen=True, kw_only=True):
    """What one hook did at one event."""

    event: HookEventName
    tool: str
    hook: str
    kind: str
    verdict: str
    change: str
    milliseconds: float


class WatchedHooks(EventFirer):
    """Fires on a handler and tells of each hook that ran."""

    def __init__(
        self, handler: HookEventHandler, tell: Callable[[Sighting], None]
    ) -> None:
        self._handler = handler
        self._tell = tell

    async def fire(
        self, event_name: HookEventName | str, event_input: Mapping[str, Any]
    ) -> ProcessedHookResult:
        """Fire by name."""
        return await self._fire(HookEventName.of(event_name), dict(event_input))

    async def _fire(self, event: HookEventName, fields: Fields) -> ProcessedHookResult:
        result = await self._handler.fire(event, fields)
        for hook in result.aggregated.hook_results:
            self._tell(_sighting(event, fields, hook))
        return result


def _sighting(
    event: HookEventName, fields: Fields, hook: HookExecutionResult
) -> Sighting:
    return Sighting(
        event=event,
        tool=str(fields.get("tool_name", "")),
        hook=hook.hook_name,
        kind=hook.hook_type,
        verdict=verdict_of(hook),
        change=change_of(hook, fields),
        milliseconds=hook.duration,
    )


_STYLES = {
    ALLOWED: "dim",
    CHANGED: "yellow",
    ADDED: "cyan",
    RESTRICTED: "yellow",
    BLOCKED: "bold red",
    STOPPED: "bold red",
    FAILED: "magenta",
}
_COLUMNS = "{event:<19}  {tool:<10}  {hook:<11}  {verdict:<10}  {ms:>6}"
_PAUSE_S = 0.03


class Tally(Struct):
    """What one hook did in all."""

    event: str
    hook: str
    kind: str
    runs: int = 0
    verdicts: dict[str, int] = {}
    milliseconds: float = 0.0

    def add(self, seen: Sighting) -> None:
        """Count one more run."""
        self.runs += 1
        self.verdicts[seen.verdict] = self.verdicts.get(seen.verdict, 0) + 1
        self.milliseconds += seen.milliseconds

    @property
    def outcome(self) -> str:
        """The verdicts that were more than a nod, else that all were."""
        counts = [
            f"{count} {verdict}"
            for verdict, count in sorted(self.verdicts.items())
            if verdict != ALLOWED
        ]
        return ", ".join(counts) or "all allowed"


class Timeline(Protocol):
    """Shows what happens."""

    def title(self, text: str) -> None:
        """A new scene."""
        ...

    def said(self, who: str, text: str) -> None:
        """Somebody says something."""
        ...

    def sighted(self, seen: Sighting) -> None:
        """A hook has spoken."""
        ...

    def summary(self, tallies: Iterable[Tally], facts: Iterable[str]) -> None:
        """All hooks, and how the project looks now."""
        ...


class PlainTimeline:
    """One line per fact, in ASCII: for logs, and where rich is missing."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout

    def title(self, text: str) -> None:
        """A new scene."""
        self._line(f"\n== {text}")

    def said(self, who: str, text: str) -> None:
        """Somebody says something."""
        self._line(f"{who}: {text}")

    def sighted(self, seen: Sighting) -> None:
        """A hook has spoken."""
        tail = f"  {seen.change}" if seen.change else ""
        self._line(f"  {_columns(seen)}{tail}")

    def summary(self, tallies: Iterable[Tally], facts: Iterable[str]) -> None:
        """All hooks, and how the project looks now."""
        self.title("Summary")
        for tally in tallies:
            took = _ms(tally.milliseconds / tally.runs)
            self._line(
                f"  {tally.event:<19}  {tally.hook:<11}  {tally.kind:<7}  "
                f"{tally.runs:>2} runs  {took:>6}  {tally.outcome}"
            )
        for fact in facts:
            self._line(f"  - {fact}")

    def _line(self, text: str) -> None:
        ascii_text = text.replace("→", "->").encode("ascii", "replace").decode()
        try:
            print(ascii_text, file=self._out, flush=True)
        except BrokenPipeError:
            _go_quiet()


class RichTimeline:
    """Colour and a table where the terminal has them."""

    def __init__(self, console: Any) -> None:
        from rich.text import Text

        self._console = console
        self._text = Text
        self._is_live = bool(console.is_terminal)

    def title(self, text: str) -> None:
        """A new scene."""
        self._console.print()
        self._console.rule(f"[bold]{text}", align="left", style="blue")

    def said(self, who: str, text: str) -> None:
        """Somebody says something."""
        styles = {"you": "bold green", "model": "bold blue", "agent": "bold red"}
        line = self._text(f"{who:>5}  ", style=styles.get(who, "bold"))
        self._print(line.append(text, style="default not bold"))

    def sighted(self, seen: Sighting) -> None:
        """A hook has spoken."""
        style = _STYLES[seen.verdict]
        self._print(self._text(f"       {_columns(seen)}", style=style))
        if seen.change:
            self._print(self._text(f"         {seen.change}", style="italic"))

    def summary(self, tallies: Iterable[Tally], facts: Iterable[str]) -> None:
        """All hooks, and how the project looks now."""
        from rich import box
        from rich.table import Table

        self.title("Summary")
        heads = ("event", "hook", "type", "runs", "each", "outcome")
        table = Table(
            *heads, box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0)
        )
        table.columns[3].justify = table.columns[4].justify = "right"
        for tally in tallies:
            took = _ms(tally.milliseconds / tally.runs)
            cells = (tally.event, tally.hook, tally.kind, str(tally.runs), took)
            table.add_row(*cells, tally.outcome)
        self._console.print(table)
        for fact in facts:
            self._print(self._text(f"✓ {fact}", style="green"))

    def _print(self, text: Any) -> None:
        indent = len(text.plain) - len(text.plain.lstrip())
        room = max(20, self._console.width - indent)
        for line in text[indent:].wrap(self._console, room):
            line.rstrip()
            self._console.print(self._text(" " * indent).append_text(line))
        if self._is_live:
            time.sleep(_PAUSE_S)


def make_timeline(*, plain: bool) -> Timeline:
    """The timeline that suits the output."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if plain or not encoding.startswith("utf"):
        return PlainTimeline()
    try:
        from rich.console import Console
    except ImportError:
        return PlainTimeline()

    class QuietConsole(Console):
        def on_broken_pipe(self) -> None:
            self.quiet = True
            _go_quiet()

    return RichTimeline(QuietConsole(highlight=False))


def _go_quiet() -> None:
    """Play on for nobody: raising here would look like a hook that failed."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _columns(seen: Sighting) -> str:
    return _COLUMNS.format(
        event=seen.event.value,
        tool=seen.tool,
        hook=seen.hook,
        verdict=seen.verdict,
        ms=_ms(seen.milliseconds),
    )


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:.{0 if milliseconds >= 9.95 else 1}f} ms"
