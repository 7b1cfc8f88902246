"""Shared by the commands: options, settings, JSON, colours, tables, progress."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NoReturn

import msgspec

from hookline.config import Config
from hookline.errors import HooklineError
from hookline.log import logger
from hookline.protocol.jsontext import decode, encode
from hookline.settings.load import Settings

_COLOURS = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "dim": 2, "bold": 1}
_MAX_CELL = 48


Options = argparse.Namespace


class Parser(argparse.ArgumentParser):
    """An argument parser with the options that commands share."""

    def error(self, message: str) -> NoReturn:
        """Report a usage error like every other one."""
        text = message.removeprefix("argument ")
        raise HooklineError(f"{text}; see '{self.prog} --help'")

    def add_flag(self, names: str, text: str) -> None:
        """Add a switch; ``names`` as in ``-v --verbose``."""
        self.add_argument(*names.split(), action="store_true", help=text)

    def add_exclusive_flags(self, flags: dict[str, str]) -> None:
        """Add switches of which only one can be used."""
        group = self.add_mutually_exclusive_group()
        for name, text in flags.items():
            group.add_argument(name, action="store_true", help=text)

    def add_option(self, names: str, text: str, **more: Any) -> None:
        """Add an option with a value; ``names`` as in ``-n --limit N``."""
        *flags, metavar = names.split()
        self.add_argument(*flags, metavar=metavar, help=text, **more)

    def add_input(self) -> None:
        """Add ``--input``."""
        text = "JSON object with the event's fields; '-' reads standard input"
        self.add_option("--input FILE", text)

    def add_cwd(
        self,
        text: str = "project directory (default: the current directory)",
        default: str | None = ".",
    ) -> None:
        """Add ``--cwd``."""
        self.add_option("--cwd DIR", text, default=default, type=_directory)

    def add_settings(self) -> None:
        """Add the options that say which settings to use."""
        text = "use only this settings file, not those of project, user and system"
        self.add_option("--settings FILE", text)
        self.add_cwd()


def _directory(path: str) -> str:
    """Check the directory of an option."""
    if not os.path.isdir(path):  # noqa: PTH112 - no pathlib at start-up
        raise argparse.ArgumentTypeError(f"{path!r} is not a directory")
    return path


def at_least(minimum: int) -> Callable[[str], int]:
    """Parse and check the number of an option."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < minimum:
            raise argparse.ArgumentTypeError(f"must be at least {minimum}")
        return int(text)

    return parse


def load_config(options: Options, session_id: str | None = None) -> Config:
    """Make the config from ``--settings`` and ``--cwd``."""
    if options.settings is not None:
        settings = Settings.from_file(options.settings)
        return Config(session_id, options.cwd, settings)
    return Config.load(options.cwd, session_id)


def log_problems(config: Config) -> None:
    """Log what is wrong with the settings."""
    for problem in (*config.settings.errors, *config.settings.warnings):
        logger.warning("%s", problem)


def log_to_stderr(level: int = logging.WARNING) -> None:
    """Show log messages to the user."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("hookline: %(message)s"))
    target = logging.getLogger("hookline")
    target.addHandler(handler)
    target.setLevel(level)
    target.propagate = False


@contextmanager
def file_errors(where: object) -> Iterator[None]:
    """Report a failed file operation with the option or file it belongs to."""
    try:
        yield
    except OSError as error:
        raise HooklineError(f"{where}: {error.strerror}") from error


def read_input(options: Options) -> dict[str, Any]:
    """Read the JSON object of ``--input``; empty without the option."""
    if options.input is None:
        return {}
    if options.input == "-":
        return parse_object(sys.stdin.buffer.read(), "standard input")
    with (
        file_errors(f"--input {options.input}"),
        open(options.input, "rb") as file,  # noqa: PTH123 - no pathlib at start-up
    ):
        return parse_object(file.read(), options.input)


def parse_object(text: str | bytes, where: str) -> dict[str, Any]:
    """Parse a JSON object from the user."""
    try:
        # Hosts in Python write NaN into what they think is JSON; their events must
        # still reach the hooks.
        value = decode(text, nan_as_null=True)
    except ValueError as error:
        raise HooklineError(f"{where} is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise HooklineError(f"{where}: expected a JSON object, got {value!r:.60}")
    return value


def print_json(value: Any, *, pretty: bool = False) -> None:
    """Print a value as JSON, on one line unless ``pretty``."""
    text = pretty_json(value).encode() if pretty else encode(value)
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.buffer.flush()


def pretty_json(value: Any) -> str:
    """Format a value as indented JSON."""
    return msgspec.json.format(encode(value), indent=2).decode()


def printable(text: str) -> str:
    """Replace control characters, so that foreign text cannot control the terminal."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for c in text
    )


def one_line(text: str | None) -> str:
    """Make foreign text printable on one line."""
    return printable(" ".join((text or "").split()))


def shorten(text: str, limit: int) -> str:
    """Truncate a text that is longer than ``limit``."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


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
    if (
        not sys.stdout.isatty()
        or os.environ.get("NO_COLOR")
        or os.environ.get("TERM") == "dumb"
    ):
        return text
    return f"\x1b[{_COLOURS[style]}m{text}\x1b[0m"


def paint_diff(line: str) -> str:
    """Colour one line of a unified diff."""
    style = {"+": "green", "-": "red", "@": "blue"}.get(line[:1])
    return printable(line) if style is None else paint(printable(line), style)


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()
) -> None:
    """Print a table; the columns in ``right`` hold numbers."""
    table = [[shorten(cell, _MAX_CELL) for cell in row] for row in (headings, *rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    aligned = [">" if place in right else "<" for place in range(len(widths))]
    for place, row in enumerate(table):
        cells = zip(row, aligned, widths, strict=True)
        line = "  ".join(f"{cell:{side}{width}}" for cell, side, width in cells)
        print(line.rstrip() if place else paint(line.rstrip(), "bold"))


class Progress:
    """A line on the terminal that counts steps, shown after a second."""

    DELAY_S = 1.0
    INTERVAL_S = 0.1

    def __init__(self, what: str, total: int | None = None) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._visible = sys.stderr.isatty()
        self._started = time.monotonic()
        self._due = self._started + self.DELAY_S
        self._shown = False

    def step(self) -> None:
        """Count one step."""
        self._done += 1
        if self._visible and time.monotonic() >= self._due:
            self.show()

    def show(self) -> None:
        """Update the line."""
        now = time.monotonic()
        self._due = now + self.INTERVAL_S
        if self._visible and now - self._started >= self.DELAY_S:
            self._shown = True
            line = f"{self._what} {self._count()} {now - self._started:.0f} s"
            print(f"\r\x1b[2K{line}", end="", file=sys.stderr, flush=True)

    def _count(self) -> str:
        if self._total is None:
            return f"{self._done:,}" if self._done else ""
        share = self._done / self._total if self._total else 1.0
        bar = "█" * round(share * 20)
        return f"{bar:░<20} {self._done:,}/{self._total:,}"

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


@asynccontextmanager
async def show_waiting(what: str) -> AsyncIterator[None]:
    """Show on the terminal how long something without steps takes."""
    if not sys.stderr.isatty():
        yield
        return
    with Progress(what) as progress:
        ticker = asyncio.create_task(_tick(progress))
        try:
            yield
        finally:
            ticker.cancel()


async def _tick(progress: Progress) -> None:
    while True:
        await asyncio.sleep(Progress.INTERVAL_S)
        progress.show()
