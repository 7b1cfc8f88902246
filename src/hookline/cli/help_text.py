"""What ``--help`` prints, as wide as the terminal.

Descriptions are plain text: lines that start at the margin are prose and are filled;
indented lines are examples and stay as they are.
"""

from __future__ import annotations

import os
import re
from argparse import HelpFormatter
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import groupby
from textwrap import TextWrapper

_DEFAULT_COLUMNS = 80
_MOST_COLUMNS, _FEWEST_COLUMNS = 90, 20
GAP = re.compile(r"(?<=\S) {2,}(?=\S)")
"""Between an example and its explanation."""
_USAGE = "usage: hookline COMMAND [OPTIONS]"
_PURPOSE = (
    "Hooks for AI agents: your own checks at every step, which can block, change, add "
    "or stop."
)
_MORE = "Run 'hookline help COMMAND' for options and examples."


class HelpText(HelpFormatter):
    """Describes one command."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=columns() - 1)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        del indent  # only of argument groups, which have no description
        return "\n".join(
            _fill(" ".join(lines), width) if is_prose else _examples(lines, width)
            for is_prose, lines in blocks(text)
        )


def columns() -> int:
    """The width of the terminal."""
    given = os.environ.get("COLUMNS", "")
    found = int(given) if given.isdecimal() else 0
    try:
        found = found or os.get_terminal_size(1).columns
    except OSError:
        found = 0
    return max(_FEWEST_COLUMNS, min(found or _DEFAULT_COLUMNS, _MOST_COLUMNS))


def blocks(text: str) -> Iterator[tuple[bool, list[str]]]:
    """Divide a description into prose (True) and examples or empty lines (False)."""
    lines = text.strip("\n").split("\n")
    for is_prose, found in groupby(lines, lambda line: line[:1].strip() != ""):
        yield is_prose, [*found]


def _fill(text: str, width: int, indent: str = "") -> str:
    """Fill a paragraph; an option stays in one piece."""
    wrapper = TextWrapper(width, subsequent_indent=indent)
    wrapper.break_on_hyphens = wrapper.break_long_words = False
    return wrapper.fill(text)


def _examples(lines: list[str], width: int) -> str:
    """Keep examples; if they are too wide, explanations go to lines of their own."""
    is_wide = any(len(line) > width for line in lines)
    return "\n".join(GAP.sub("\n      ", one) if is_wide else one for one in lines)


def overview(groups: Mapping[str, tuple[str, ...]]) -> str:
    """Every command with one line."""
    width = columns()
    tables = [
        f"{title}:\n" + "\n".join(_row(name, width) for name in names)
        for title, names in groups.items()
    ]
    parts = [_USAGE, _fill(_PURPOSE, width), *tables, _fill(_MORE, width)]
    return "\n\n".join(parts)


def _row(name: str, width: int) -> str:
    summary = import_module(f"hookline.cli.{name}").SUMMARY
    return _fill(f"  {name:10}  {summary}", width, " " * 14)
