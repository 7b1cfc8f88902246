"""Input of the commands: options, settings and files."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn, cast

from hookline.config import Config
from hookline.errors import HooklineError, SettingsError
from hookline.protocol.values import decode
from hookline.settings.load import Settings
from hookline.settings.places import find_workspace, is_within

Options = argparse.Namespace


class Parser(argparse.ArgumentParser):
    """An argument parser with the options that commands share."""

    def __init__(self, **more: Any) -> None:
        # To find the width of the terminal, argparse would import shutil.
        formatter = partial(argparse.HelpFormatter, width=80)
        super().__init__(formatter_class=cast("Any", formatter), **more)

    def format_help(self) -> str:
        """Describe the command."""
        from .help_text import HelpText  # not needed to run a command

        self.formatter_class = HelpText
        return super().format_help()

    def print_help(self, file: Any = None) -> None:
        """Print the description; argparse would not say that nobody gets it."""
        print(self.format_help(), end="", file=file)

    def error(self, message: str) -> NoReturn:
        """Report a usage error like every other one."""
        text = message.removeprefix("argument ")
        raise HooklineError(f"{text}; see '{self.prog} --help'")

    def add_flag(self, names: str, text: str) -> None:
        """Add a switch; ``names`` as in ``-v --verbose``."""
        self.add_argument(*names.split(), action="store_true", help=text)

    def add_exclusive_flags(self, **flags: str) -> None:
        """Add switches of which only one can be used."""
        group = self.add_mutually_exclusive_group()
        for name, text in flags.items():
            group.add_argument(f"--{name}", action="store_true", help=text)

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

    def add_journal(self, text: str) -> None:
        """Add ``--journal``."""
        self.add_option("--journal FILE", text, type=_journal)

    def add_settings(self) -> None:
        """Add the options that say which settings to use."""
        text = "use only this settings file, not those of project, user and system"
        self.add_option("--settings FILE", text)
        self.add_cwd()


def _journal(path: str) -> str:
    if not path.strip():
        raise HooklineError("--journal needs a file name")
    return os.path.abspath(path)  # noqa: PTH100 - no pathlib at start-up


def _directory(path: str) -> str:
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


def load_config(
    options: Options, session_id: str | None = None, *, one_shot: bool = True
) -> Config:
    """Make the config from ``--settings`` and ``--cwd``."""
    if options.settings is None:
        config = Config.load(options.cwd, session_id)
    else:
        settings = Settings.from_file(options.settings)
        config = Config(session_id, options.cwd, settings)
    config.one_shot = one_shot
    return config


@contextmanager
def file_errors(where: object) -> Iterator[None]:
    """Report a failed file operation with the option or file it belongs to."""
    try:
        yield
    except OSError as error:
        raise HooklineError(f"{where}: {error.strerror}") from error


def refuse_outside(path: str, project: str = ".") -> None:
    """Refuse to write through a link that leaves the project.

    A path that is not named as one inside of it is the user's own choice.
    """
    if not is_within(os.path.abspath(path), os.path.abspath(project)):  # noqa: PTH100
        return
    target = os.path.realpath(path)
    if not is_within(target, find_workspace(project).root):
        problem = f"links to {target}, which is outside of the project"
        raise SettingsError(f"{problem}: replace the link by a folder or file", path)


def read_input(options: Options) -> dict[str, Any]:
    """Read the JSON object of ``--input``; empty without the option."""
    if options.input is None:
        return {}
    if options.input == "-":
        return parse_json(sys.stdin.buffer.read(), "standard input")
    if options.input.lstrip().startswith("{"):
        hint = "echo '{...}' | hookline ... --input -"
        raise HooklineError(f"--input takes the name of a file, or - for stdin: {hint}")
    return parse_json(read_file("--input", options.input), options.input)


def read_file(option: str, path: str) -> bytes:
    """Read the file of an option."""
    # No pathlib at start-up.
    with file_errors(f"{option} {path}"), open(path, "rb") as file:  # noqa: PTH123
        return file.read()


def parse_json(text: str | bytes, where: str) -> dict[str, Any]:
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
