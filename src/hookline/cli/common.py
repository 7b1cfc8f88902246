"""What the commands share: options, settings, colours and progress."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, TextIO

from hookline.config import Config
from hookline.errors import HooklineError, SettingsError
from hookline.protocol.jsontext import decode, encode
from hookline.settings.load import Settings

_CODES = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "dim": 2, "bold": 1}


def colours(stream: TextIO | None = None) -> bool:
    """Whether colour is wanted: a terminal, and no ``NO_COLOR``."""
    target = sys.stdout if stream is None else stream
    return (
        target.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def paint(text: str, style: str) -> str:
    """Colour a text for standard output, where colour is wanted."""
    if not colours():
        return text
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m"


def plain(text: str) -> str:
    """Take control characters out of foreign text: it must not drive a terminal."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for c in text
    )


PATIENCE_S = 1.0
_EVERY_S = 0.1


class Progress:
    """Counts steps, with or without knowing how many there will be."""

    def __init__(self, what: str, total: int | None = None) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._visible = sys.stderr.isatty()
        self._started = time.monotonic()
        self._due = self._started + PATIENCE_S
        self._shown = False

    def step(self) -> None:
        """One more is done."""
        self._done += 1
        if self._visible and time.monotonic() >= self._due:
            self.show()

    def show(self) -> None:
        """Write the line anew."""
        now = time.monotonic()
        self._due = now + _EVERY_S
        if self._visible and now - self._started >= PATIENCE_S:
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


@asynccontextmanager
async def waiting(what: str) -> AsyncIterator[None]:
    """Show how long something takes that has no steps."""
    with Progress(what) as progress:
        ticker = asyncio.create_task(_tick(progress))
        try:
            yield
        finally:
            ticker.cancel()


async def _tick(progress: Progress) -> None:
    while True:
        await asyncio.sleep(_EVERY_S)
        progress.show()


def add_settings_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where settings come from."""
    parser.add_argument(
        "--settings",
        metavar="FILE",
        help="use this file instead of the project's, the user's and the system's",
    )
    parser.add_argument(
        "--cwd",
        metavar="DIR",
        default=".",
        help="the project: where settings are looked for and hooks run (default: here)",
    )


def load_config(options: argparse.Namespace, session_id: str | None = None) -> Config:
    """Make the config that the options name."""
    if not os.path.isdir(options.cwd):  # noqa: PTH112 - no pathlib at start-up
        raise SettingsError(f"--cwd {options.cwd!r} is no directory")
    if options.settings is not None:
        settings = Settings.from_file(options.settings)
        return Config(session_id, options.cwd, settings)
    return Config.load(options.cwd, session_id)


def read_object(source: str) -> dict[str, Any]:
    """Read the JSON object of ``--input``: a file, or ``-`` for standard input."""
    if source == "-":
        return parse_object(sys.stdin.buffer.read(), "standard input")
    try:
        with open(source, "rb") as file:  # noqa: PTH123 - no pathlib at start-up
            return parse_object(file.read(), source)
    except OSError as error:
        raise HooklineError(f"--input {source}: {error.strerror}") from error


def parse_object(text: str | bytes, where: str) -> dict[str, Any]:
    """Read a JSON object that the user gave."""
    try:
        # Hosts in Python write NaN into what they think is JSON; an event must not
        # miss its guards over that.
        value = decode(text, nan_as_null=True)
    except ValueError as error:
        raise HooklineError(f"{where} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise HooklineError(f"{where}: expected a JSON object, got {value!r:.60}")
    return value


def log_to_stderr(level: int = logging.WARNING) -> None:
    """Show warnings to the person at the terminal."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("hookline: %(message)s"))
    target = logging.getLogger("hookline")
    target.addHandler(handler)
    target.setLevel(level)
    target.propagate = False


def print_json(value: Any) -> None:
    """Print one JSON value and nothing else."""
    sys.stdout.buffer.write(encode(value) + b"\n")
    sys.stdout.buffer.flush()
