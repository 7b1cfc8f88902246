"""What a regular expression costs at most: to compile it, and for each character.

The engine (RE2) compiles a pattern every time, and repeats such as ``{9}`` are copies
to it. Most patterns are matched by an automaton, a step for each character; hostile
text makes it try the copies one by one.
"""

from __future__ import annotations

import re

from msgspec import Struct

_TOKEN = re.compile(
    r"(?P<open>\()|(?P<close>\))|\{(?P<least>\d+)(?:,(?P<most>\d*))?\}"
    r"|\\[pP](?:\{\^?\w*\}|.)|\\x\{\w*\}|\\."
    r"|\[\^?\]?(?:\\.|\[:\w*:\]|[^\]\\])*\]|.",
    re.DOTALL,
)
_MAX_REPEATS = 1000  # more is an error for the engine
_BASE, _SIMPLE, _WIDE, _TABLE = 20_000.0, 1000.0, 5000.0, 1_500_000.0
_PER_COPY = 3


class Pattern(Struct, frozen=True):
    """The costs of a regular expression, in nanoseconds."""

    compiling: float
    per_character: float


class _Part(Struct):
    """What is known about a part: what compiling it costs, and its characters."""

    compiling: float = 0
    atoms: int = 0

    def add(self, other: _Part, times: int = 1) -> None:
        self.compiling += other.compiling * times
        self.atoms += other.atoms * times


def measure(pattern: str) -> Pattern:
    """Estimate what a regular expression costs; one that is invalid as well."""
    groups, last, copies = [_Part()], _Part(), 0
    for token in _TOKEN.finditer(pattern):
        if token["open"]:
            groups.append(_Part())
        elif token["close"] and len(groups) > 1:
            last = groups.pop()
            groups[-1].add(last)
        elif token["least"]:
            times = _times(token["most"] or token["least"])
            groups[-1].add(last, times - 1)
            last = _Part(last.compiling * times, last.atoms * times)
            copies += last.atoms
        else:
            last = _Part(_compiling(token), 1)
            groups[-1].add(last)
    compiling = _BASE + sum(group.compiling for group in groups)
    return Pattern(compiling, 4 + len(pattern) / 16 + _PER_COPY * copies)


def _times(digits: str) -> int:
    return max(1, min(int(digits[:5]), _MAX_REPEATS))


def _compiling(token: re.Match[str]) -> float:
    """Characters beyond ASCII are several bytes, in many ranges for a table."""
    text = token[0]
    tables = len(re.findall(r"\\[pP]", text))
    is_wide = text.startswith(("[^", ".", "\\")) or not text.isascii()
    return (_WIDE if is_wide else _SIMPLE) + _TABLE * tables
