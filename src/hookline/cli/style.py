"""Colour where a person looks on, plain text everywhere else."""

from __future__ import annotations

import os
import sys
from typing import TextIO

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
