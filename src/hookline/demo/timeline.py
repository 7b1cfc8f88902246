"""The timeline as it goes along, and the summary: with rich, or in plain text."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from typing import Any, Protocol, TextIO

from msgspec import Struct

from . import wording
from .watching import Sighting

_STYLES = {
    wording.ALLOWED: "dim",
    wording.CHANGED: "yellow",
    wording.ADDED: "cyan",
    wording.RESTRICTED: "yellow",
    wording.BLOCKED: "bold red",
    wording.STOPPED: "bold red",
    wording.FAILED: "magenta",
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
            if verdict != wording.ALLOWED
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
