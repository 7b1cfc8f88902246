"""What several commands share: options, settings, the log on stderr, JSON out."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from typing import Any

from hookline.config import Config
from hookline.errors import HooklineError, SettingsError
from hookline.jsontext import decode, encode
from hookline.settings.load import Settings


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
