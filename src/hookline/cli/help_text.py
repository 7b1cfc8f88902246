"""What ``--help`` prints, as wide as the terminal.

Descriptions are plain text: lines that start at the margin are prose and are filled;
indented lines are examples and stay as they are.
"""

from __future__ import annotations

import os
import re
from argparse import HelpFormatter
from collections.abc import Mapping
from importlib import import_module
from itertools import groupby
from textwrap import TextWrapper

_DEFAULT_COLUMNS = 80
_MOST_COLUMNS, _FEWEST_COLUMNS = 90, 20
_GAP = re.compile(r"(?<=\S) {2,}(?=\S)")
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
        blocks = []
        lines = text.strip("\n").split("\n")
        for is_prose, group in groupby(lines, lambda line: line[:1].strip() != ""):
            block = [*group]
            if is_prose:
                blocks.append(_fill(" ".join(block), width))
                continue
            if any(len(line) > width for line in block):
                # Explanations of examples go to lines of their own.
                block = [_GAP.sub("\n      ", line) for line in block]
            blocks += block
        return "\n".join(blocks)


def columns() -> int:
    """The width of the terminal."""
    variable = os.environ.get("COLUMNS", "")
    width = int(variable) if variable.isdecimal() else 0
    if not width:
        try:
            width = os.get_terminal_size(1).columns
        except OSError:
            width = 0
    return max(_FEWEST_COLUMNS, min(width or _DEFAULT_COLUMNS, _MOST_COLUMNS))


def _fill(text: str, width: int, indent: str = "") -> str:
    """Fill a paragraph; an option stays in one piece."""
    wrapper = TextWrapper(width, subsequent_indent=indent)
    wrapper.break_on_hyphens = wrapper.break_long_words = False
    return wrapper.fill(text)


def overview(groups: Mapping[str, tuple[str, ...]]) -> str:
    """Every command with one line."""
    width = columns()
    parts = [_USAGE, _fill(_PURPOSE, width)]
    for title, names in groups.items():
        rows = [f"{title}:"]
        for name in names:
            summary = import_module(f"hookline.cli.{name}").SUMMARY
            rows.append(_fill(f"  {name:10}  {summary}", width, " " * 14))
        parts.append("\n".join(rows))
    return "\n\n".join([*parts, _fill(_MORE, width)])
