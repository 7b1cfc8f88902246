"""Show what happens in the demo: who says what, what each hook does, what to do next.

In full, or in brief: each effect of each hook once. ``Timeline`` writes one line per
fact for logs; on a terminal, columns that do not fit become wrapped words.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from .reports import HookRun

Paint = Callable[[str, str], str]
"""Colours a text: ``paint("no", "red")``."""
Cells = Sequence[tuple[str, int]]
"""Texts and the widths of their columns; a negative one aligns to the right."""
Steps = Sequence[tuple[str, str]]
"""Commands, and what each does."""

_MIN_WIDTH = 40
_COMMAND_WIDTH = 25


class Timeline:
    """One line per fact, in ASCII: for logs."""

    def __init__(self, *, brief: bool) -> None:
        self._brief = brief
        self._shown: set[tuple[str, str, str]] = set()

    def begin(self) -> None:
        """Say what is shown."""
        if self._brief:
            self._print("An agent at work, and what hooks did:")

    def title(self, text: str) -> None:
        """Begin a new scene."""
        self._print(f"== {text}" if self._brief else f"\n== {text}")

    def message(self, sender: str, text: str) -> None:
        """Show what somebody says."""
        if not self._brief:
            self._show_message(sender, text)

    def hook_run(self, run: HookRun) -> None:
        """Show what a hook did."""
        effect = (run.event.value, run.hook, run.action)
        if self._brief and (run.action == "allowed" or effect in self._shown):
            return
        self._shown.add(effect)
        self._show_run(run)

    def summary(self, runs: Sequence[HookRun], facts: Iterable[str]) -> None:
        """Show all hooks, and the state of the project."""
        if self._brief:
            self._print("")
        else:
            self.title("Summary")
            self._show_totals(runs)
        for fact in facts:
            self._show_fact(fact)

    def next_steps(self, title: str, steps: Steps) -> None:
        """Show what to type next."""
        self._print(f"\n{title}")
        for command, effect in steps:
            self._print(f"  {command:<{_COMMAND_WIDTH}}  # {effect}")

    def _cells(self, run: HookRun) -> Cells:
        event, hook = (run.event.value, 19), (run.hook, 11)
        if self._brief:
            return event, hook, (run.action, 10)
        time_taken = (_ms(run.milliseconds), -6)
        return event, (run.tool, 10), hook, (run.action, 10), time_taken

    def _show_message(self, sender: str, text: str) -> None:
        self._print(f"{sender}: {text}")

    def _show_run(self, run: HookRun) -> None:
        self._print(f"  {_in_columns(self._cells(run))}  {run.detail}".rstrip())

    def _show_totals(self, runs: Iterable[HookRun]) -> None:
        for cells in _totals(runs):
            self._print(f"  {_in_columns(cells)}")

    def _show_fact(self, fact: str) -> None:
        self._print(f"  - {fact}")

    def _print(self, text: str) -> None:
        _write(text.replace("→", "->").encode("ascii", "replace").decode())


_STYLES = {
    "allowed": ("dim",),
    "changed": ("yellow",),
    "added": ("blue",),
    "noted": ("blue",),
    "restricted": ("yellow",),
    "asked": ("yellow", "bold"),
    "blocked": ("red", "bold"),
    "stopped": ("red", "bold"),
    "failed": ("red",),
    "you": ("green", "bold"),
    "model": ("blue", "bold"),
    "agent": ("red", "bold"),
}


class _TerminalTimeline(Timeline):
    """Lines that fit the terminal, with colours where ``paint`` adds them."""

    def __init__(self, paint: Paint, *, brief: bool) -> None:
        super().__init__(brief=brief)
        self._paint = paint
        self._width = max(shutil.get_terminal_size().columns, _MIN_WIDTH)
        self._pause_s = 0.03 if sys.stdout.isatty() else 0

    def title(self, text: str) -> None:
        if self._brief:
            self._show(*(self._paint(line, "bold") for line in self._wrapped(text, 0)))
            return
        rule = "─" * (self._width - len(text) - 1)
        _write(f"\n{self._paint(text, 'bold')} {self._paint(rule, 'blue')}")

    def next_steps(self, title: str, steps: Steps) -> None:
        _write("")
        self._show(*(self._paint(line, "bold") for line in self._wrapped(title, 0)))
        for command, effect in steps:
            line, comment = f"  {command:<{_COMMAND_WIDTH}}", f"# {effect}"
            if self._fits(f"{line}  {comment}"):
                self._show(f"{line}  {self._paint(comment, 'dim')}")
            else:
                # Not wrapped: what is copied must stay one line.
                self._show(f"  {command}", *self._wrapped(comment, 4))

    def _show_message(self, sender: str, text: str) -> None:
        label = self._styled(f"{sender:>5}", sender)
        first, *rest = self._wrapped(text, 7) or [""]
        self._show(f"{label}  {first.lstrip()}", *rest)

    def _show_run(self, run: HookRun) -> None:
        indent = 2 if self._brief else 7
        lines = self._fitted(self._cells(run), indent)
        end = f"  {run.detail}"
        if self._brief and len(lines) == 1 and self._fits(lines[0] + end):
            self._show(self._styled(lines[0], run.action) + end)
            return
        heads = (self._styled(line.rstrip(), run.action) for line in lines)
        self._show(*heads, *self._wrapped(run.detail, indent + 2))

    def _show_totals(self, runs: Iterable[HookRun]) -> None:
        names = ("event", "hook", "type", "runs", "each", "outcome")
        rows = [*_totals(runs)]
        widths = (width for _, width in rows[0])
        heading = _in_columns([*zip(names, widths, strict=True)])
        if all(self._fits(_in_columns(row)) for row in rows):
            self._show(self._paint(heading, "bold"), "─" * self._width)
        for row in rows:
            self._show(*self._fitted(row, 0))

    def _show_fact(self, fact: str) -> None:
        lines = self._wrapped(fact, 2)
        lines[0] = f"✓ {lines[0].lstrip()}"
        self._show(*(self._paint(line, "green") for line in lines))

    def _print(self, text: str) -> None:
        _write(text)

    def _fits(self, line: str) -> bool:
        return len(line) <= self._width

    def _fitted(self, cells: Cells, indent: int) -> list[str]:
        """In columns, or as wrapped words if there is too little space."""
        line = " " * indent + _in_columns(cells)
        if self._fits(line.rstrip()):
            return [line]
        words = " ".join(text for text, _ in cells if text)
        first, *rest = self._wrapped(words, indent)
        return [first, *(f"  {line}" for line in rest)]

    def _styled(self, text: str, name: str) -> str:
        for style in _STYLES.get(name, ("bold",)):
            text = self._paint(text, style)
        return text

    def _wrapped(self, text: str, indent: int) -> list[str]:
        room = self._width - indent - 2  # what follows a first line is indented more
        lines = textwrap.wrap(text, room, break_on_hyphens=False)
        return [" " * indent + line for line in lines]

    def _show(self, *lines: str) -> None:
        for line in lines:
            _write(line)
        time.sleep(self._pause_s)


def make_timeline(paint: Paint, *, plain: bool, brief: bool) -> Timeline:
    """The timeline that suits standard output."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if plain or not encoding.startswith("utf"):
        return Timeline(brief=brief)
    return _TerminalTimeline(paint, brief=brief)


def _totals(runs: Iterable[HookRun]) -> Iterator[Cells]:
    """Per hook: event, name, type, number of runs, mean time, outcome."""
    by_hook: dict[tuple[str, str], list[HookRun]] = {}
    for run in runs:
        by_hook.setdefault((run.event.value, run.hook), []).append(run)
    for (event, hook), own in by_hook.items():
        mean = _ms(sum(run.milliseconds for run in own) / len(own))
        counts = Counter(run.action for run in own if run.action != "allowed")
        outcome = ", ".join(f"{n} {action}" for action, n in sorted(counts.items()))
        yield (
            *((event, 19), (hook, 11), (own[0].kind, 7), (_count(len(own)), -7)),
            *((mean, -6), (outcome or "all allowed", 0)),
        )


def _in_columns(cells: Cells) -> str:
    return "  ".join(
        f"{text:<{width}}" if width >= 0 else f"{text:>{-width}}"
        for text, width in cells
    )


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


def _count(runs: int) -> str:
    return "1 run " if runs == 1 else f"{runs} runs"
