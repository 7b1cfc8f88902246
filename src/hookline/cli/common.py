"""What several commands share: options, settings, the log on stderr, JSON out."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from typing import Any

from hookline.config import Config
from hookline.errors import SettingsError
from hookline.jsontext import encode
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
