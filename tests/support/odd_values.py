"""Values that JSON does not have, for the inputs of rows in tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any

__all__ = ["Decimal", "Path", "PurePosixPath"]

NAN = float("nan")
INFINITY = float("inf")


class Unprintable:
    """Its text cannot be made."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


class Named:
    """An object with a text."""

    def __repr__(self) -> str:
        return "<named>"


class Unreadable(Mapping[str, Any]):
    """A mapping that cannot be walked through."""

    def __getitem__(self, key: str) -> Any:
        return ".env"

    def __iter__(self) -> Any:
        raise RuntimeError("trap")

    def __len__(self) -> int:
        return 1


class LyingDict(dict[str, Any]):
    """A dict whose methods show nothing."""

    def items(self) -> Any:
        raise RuntimeError("trap")


class LyingText(str):
    """A text that says that it ends with nothing."""

    __slots__ = ()

    def endswith(self, *_: object) -> bool:
        return False


@dataclass
class Target:
    """As tools may have them in their input."""

    path: str


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


def nested(levels: int, value: Any = "x", *, objects: bool = False) -> Any:
    """A value in so many lists, or in so many objects."""
    for _ in range(levels):
        value = {"a": value} if objects else [value]
    return value


def tool(value: Any = None, name: Any = "write_file", **given: Any) -> dict[str, Any]:
    """The input of a tool call, with a value as ``x``."""
    return {"tool_name": name, "tool_input": {"x": value, **given}}
