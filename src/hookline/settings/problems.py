"""What is wrong in settings, and where: collected while they are read.

A problem never stops the reading. Its path says which key it is about; whoever shows
it adds the file, and the line where that is known.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeAlias

from msgspec import Struct

Path: TypeAlias = tuple[str | int, ...]
"""The keys and indices that lead to a value."""

_LONGEST_QUOTE = 60


class Severity(StrEnum):
    """Whether a problem is surely one."""

    ERROR = "error"
    WARNING = "warning"


class Problem(Struct, frozen=True):
    """One thing that is wrong."""

    path: Path
    message: str
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        return f"{where(self.path)}: {self.message}" if self.path else self.message


class Report:
    """Collects problems at one place of the settings and below it."""

    def __init__(self, problems: list[Problem] | None = None, path: Path = ()) -> None:
        self.problems: list[Problem] = [] if problems is None else problems
        self.path = path

    def at(self, *steps: str | int) -> Report:
        """A report into the same list, further down."""
        return Report(self.problems, (*self.path, *steps))

    def say(self, message: str, severity: Severity = Severity.ERROR) -> None:
        """Note a problem here."""
        self.problems.append(Problem(self.path, message, severity))


def where(path: Path) -> str:
    """Spell a path as people write it: ``hooks.BeforeTool[0].hooks[1]``."""
    steps = [
        f"[{step}]" if isinstance(step, int) else f".{_key(step)}" for step in path
    ]
    return "".join(steps).removeprefix(".")


def quote(value: Any) -> str:
    """Show a wrong value, or only its kind where it would not fit a line."""
    if isinstance(value, str):
        text = repr(str.__str__(value))
        return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}...'"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        # Python refuses to print whole numbers of more than 4300 digits.
        return str(int(value)) if abs(value) < 10**20 else "a huge number"
    if isinstance(value, float):
        return repr(float(value))
    return _kind(value)


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    return f"a {type(value).__name__}"


def _key(step: Any) -> str:
    # A key of a mapping that never was JSON may be anything hashable.
    plain = isinstance(step, str) and step.isprintable() and len(step) <= _LONGEST_QUOTE
    return str.__str__(step) if plain else quote(step)
