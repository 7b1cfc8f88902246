"""Output of the commands: text, JSON, colours, tables, progress."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from math import inf
from typing import Any, TextIO

import msgspec

from hookline.protocol.values import encode
from hookline.protocol.values import printable as printable  # noqa: PLC0414

_COLOURS = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "dim": 2, "bold": 1}
_MAX_CELL = 48
_INTERVAL_S = 0.1


@contextmanager
def verdict_output() -> Iterator[None]:
    """Print a verdict; if nobody can read it, the exit status still says it."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        discard(sys.stdout)
        with suppress(OSError):
            print(f"hookline: standard output: {error.strerror}", file=sys.stderr)


def discard(stream: TextIO) -> None:
    """Drop what a stream could not write: it would fail again when Python exits."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
    stream.flush()


def print_json(value: Any, *, pretty: bool = False) -> None:
    """Print a value as JSON, on one line unless ``pretty``."""
    text = pretty_json(value).encode() if pretty else encode(value)
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.buffer.flush()


def short_json(value: Any, limit: int) -> str:
    """Format a value as JSON on one line that can be truncated."""
    return shorten(one_line(encode(value).decode()), limit)


def pretty_json(value: Any) -> str:
    """Format a value as indented JSON."""
    return msgspec.json.format(encode(value), indent=2).decode()


def printable_text(text: str) -> str:
    """Make foreign text printable, with its lines."""
    return printable(text, keep="\n\t")


def one_line(text: str | None) -> str:
    """Make foreign text printable on one line."""
    return printable(" ".join((text or "").split()))


def shorten(text: str, limit: int) -> str:
    """Truncate a text that is longer than ``limit``."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def display_width(text: str) -> int:
    """How many columns a text takes up on a terminal."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    wide = sum(east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(combining(c) > 0 for c in text)


def pad(text: str, width: int, side: str = "<") -> str:
    """Fill a text up to a number of columns; the side is that of the text."""
    blanks = " " * (width - display_width(text))
    return blanks + text if side == ">" else text + blanks


def short_path(path: str, limit: int = 24) -> str:
    """A path for reading: ``~`` is the home folder, and its end is kept."""
    home = os.path.expanduser("~").rstrip("/")  # noqa: PTH111 - no pathlib at start-up
    if home and (path == home or path.startswith(f"{home}/")):
        path = f"~{path[len(home) :]}"
    text = one_line(path)
    if len(text) <= limit:
        return text
    end = text[-(limit - 1) :]
    # At a boundary between folders, where there is one.
    return f"…{end[end.find('/') :] if '/' in end[:-1] else end}"


def plural(number: int, noun: str) -> str:
    """A count with its noun: ``1 hook``, ``2 hooks``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_duration(duration_ms: float) -> str:
    """A duration with about three digits."""
    if duration_ms >= 10_000:
        return f"{duration_ms / 1000:.1f} s"
    return f"{duration_ms:.0f} ms" if duration_ms >= 100 else f"{duration_ms:.1f} ms"


def paint(text: str, style: str) -> str:
    """Colour a text for standard output if that is a terminal."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if plain or not sys.stdout.isatty():
        return text
    return f"\x1b[{_COLOURS[style]}m{text}\x1b[0m"


def paint_diff(line: str) -> str:
    """Colour one line of a unified diff."""
    style = {"+": "green", "-": "red", "@": "blue"}.get(line[:1])
    text = printable(line, keep="\t")
    return text if style is None else paint(text, style)


def show_pages(lines: Iterable[str], cwd: str) -> None:
    """Show a long text with ``$PAGER``, or with less where there is one."""
    import subprocess

    from hookline.execute.command import program_outside

    text = "".join(f"{line}\n" for line in lines)
    words = (os.environ.get("PAGER") or "less").split() or ["less"]
    # What is shown may come from a project that puts its own programs on the PATH.
    program = program_outside(words[0], cwd)
    if program is None:
        sys.stdout.write(text)
        return
    env = {"LESS": "FRX", **os.environ}
    sys.stdout.flush()
    pager = subprocess.run(
        [program, *words[1:]], input=text.encode(), env=env, cwd="/", check=False
    )
    if pager.returncode != 0:
        sys.stdout.write(text)


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()
) -> None:
    """Print a table; the columns in ``right`` hold numbers."""
    table = [[shorten(cell, _MAX_CELL) for cell in row] for row in (headings, *rows)]
    widths = [max(map(display_width, column)) for column in zip(*table, strict=True)]
    sides = [">" if place in right else "<" for place in range(len(widths))]
    for number, row in enumerate(table):
        cells = map(pad, row, widths, sides)
        line = "  ".join(cells).rstrip()
        print(line if number else paint(line, "bold"))


def table_width(rows: Iterable[Sequence[str]]) -> int:
    """How many columns ``print_table`` needs, with room for one more cell."""
    cells = zip(*rows, strict=True)
    return sum(min(max(map(display_width, column)), _MAX_CELL) + 2 for column in cells)


def terminal_columns() -> float:
    """The width of the terminal; without limit if the output is none."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or inf
    except OSError:
        return inf


class Progress(AbstractContextManager["Progress"]):
    """A line on the terminal that counts steps, shown after a second."""

    def __init__(self, label: str, total: int | None = None) -> None:
        self._label = label
        self._total = total
        self._steps = 0
        self._started = time.monotonic()
        # Shown on a terminal alone.
        self._due = self._started + 1.0 if sys.stderr.isatty() else inf
        self._is_shown = False

    def step(self) -> None:
        """Count one step."""
        self._steps += 1
        self.show()

    def show(self) -> None:
        """Update the line if it is due."""
        time_s = time.monotonic()
        if time_s < self._due:
            return
        self._due = time_s + _INTERVAL_S
        self._is_shown = True
        count = ""
        if self._total:
            bar = "█" * round(self._steps / self._total * 20)
            count = f" {bar:░<20} {self._steps:,}/{self._total:,}"
        line = f"{self._label}{count} {time_s - self._started:.0f} s"
        print(f"\r\x1b[2K{line}", end="", file=sys.stderr, flush=True)

    def __exit__(self, *error: object) -> None:
        if self._is_shown:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


@asynccontextmanager
async def show_waiting(label: str) -> AsyncIterator[None]:
    """Show on the terminal how long something without steps takes."""

    async def tick() -> None:
        while True:
            await asyncio.sleep(_INTERVAL_S)
            progress.show()

    with Progress(label) as progress:
        ticker = asyncio.create_task(tick())
        try:
            yield
        finally:
            ticker.cancel()
