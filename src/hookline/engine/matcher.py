"""Search a matcher's regular expression in a name, in bounded time.

Names come from a model, and ``re`` backtracks: ``^(a+)+$`` takes seconds on a name of
30 characters. So the steps of the worst case are estimated from the text of the
expression. Where they may be too many, a name counts as a match, so that the hook runs
(decision 0093).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import lru_cache
from math import inf

from msgspec import Struct

from hookline._internal.log import logger

MAX_NAME = 256
"""A longer name matches every matcher, so that it cannot evade a guard."""

MAX_PATTERN = 8192
"""The time that ``re`` takes to compile one is not bounded by its length alone."""

_MAX_STEPS = 1_000_000
"""Of ``re``, in the worst case: a few milliseconds."""

_LENGTHS = (MAX_NAME, 192, 128, 96, 64, 48, 32, 16, 8)
_USUAL_NAME = 64
"""Few APIs of models take longer names of tools."""

_TOKEN = re.compile(
    r"""
      \(\?\# (?: \\. | [^)\\] )* \)                            # a comment
    | (?P<reference> \\[1-9] | \(\?P=\w+\) )
    | (?P<open> \( (?P<verbose> (?=\?[a-zA-Z-]*x) )? (?: \? (?P<look> <?[=!] )? )? )
    | (?P<close> \) )
    | (?P<alternative> \| )
    | (?P<repeat> [*+?] | \{(?!\}) (?P<least>[0-9]*) (?P<to>,)? (?P<most>[0-9]*) \} )
      [?+]?
    | (?P<item> \\. | \[ \^? \]? (?: \\. | [^\]\\] )* \] | . )
    """,
    re.VERBOSE | re.DOTALL,
)


class Matcher(Struct, frozen=True):
    """A compiled matcher."""

    search: Callable[[str], object]
    longest: int = MAX_NAME
    """Longer names match: to search them may take too long."""
    excludes: bool = False
    """Whether it says what it does not match, by a negative lookaround."""

    def matches(self, name: str) -> bool:
        """Whether it is found in a name, or nobody can tell in the time there is."""
        return len(name) > self.longest or bool(self.search(name))


@lru_cache(maxsize=16384)
def compile_matcher(pattern: str) -> Matcher:
    """Compile a matcher; one that is no regular expression is compared literally."""
    longest, search = -1, None
    if len(pattern) <= MAX_PATTERN:
        try:
            with warnings.catch_warnings():
                # A mere warning about the pattern must not raise in a strict host.
                warnings.simplefilter("ignore")
                search = re.compile(pattern).search
        except (re.error, OverflowError) as error:
            logger.warning(
                "matcher %r is not a valid regular expression (%s): compared literally",
                pattern,
                error,
            )
            return Matcher(pattern.__eq__)
        except (RecursionError, MemoryError):
            pass
    if search is not None:
        fitting = (n for n in _LENGTHS if worst_steps(pattern, n) <= _MAX_STEPS)
        longest = next(fitting, -1)
    if longest < _USUAL_NAME:
        logger.warning(
            "matcher %s is too complex: matches every name%s",
            repr(pattern) if len(pattern) <= 80 else f"{pattern[:77]!r}...",
            f" of more than {longest} characters" if longest > 0 else "",
        )
    looks = [token["look"] for token in _TOKEN.finditer(pattern)]
    return Matcher(search or bool, longest, "!" in looks or "<!" in looks)


class _Point(Struct, frozen=True):
    """What ``re`` may have done until it gets to a point in an expression."""

    ways: float
    """In how many ways it gets there, each of which it may try."""
    repeats: int
    """How many unbounded repeats, at least, are on each of them."""
    steps: float


class _Group(Struct, frozen=True):
    before: _Point
    is_look: bool = False
    alternatives: list[tuple[float, int]] = []
    """The ways and repeats of those that have ended."""


def worst_steps(pattern: str, length: int) -> float:
    """How many steps a search takes at most, in any name of a length.

    Each repeat, option and alternative multiplies the ways in which what follows is
    tried. Ends of unbounded repeats follow one another in the name, as does the start
    of the search: ``k`` of them have ``comb(length + k, k)`` ways. A choice inside a
    repeat has no useful bound.
    """
    ways, repeats, steps = length + 1.0, 1, 0.0
    before, rounds = _Point(ways, repeats, steps), 1
    groups = [_Group(before)]
    for token in _TOKEN.finditer(pattern):
        kind, group = token.lastgroup, groups[-1]
        if kind in ("item", "reference", "open"):
            before, rounds = _Point(ways, repeats, steps), 1
            steps += ways * (length if kind == "reference" else 1)
            if token["verbose"] is not None:
                return inf  # comments in it may look like anything
            if kind == "open":
                groups.append(_Group(before, token["look"] is not None))
        elif kind == "alternative":
            group.alternatives.append((ways, repeats))
            ways, repeats = group.before.ways, group.before.repeats
        elif kind == "close":
            ended = [*groups.pop().alternatives, (ways, repeats)]
            before, rounds = group.before, length + 1
            if group.is_look:  # ``re`` takes its first match and never comes back
                ended = [(before.ways, before.repeats)]
            ways = sum(some for some, _ in ended)
            repeats = min(some for _, some in ended)
        elif kind == "repeat":
            least, most = _bounds(token)
            inside = steps - before.steps
            if most <= 1:
                ways, repeats = before.ways + ways, before.repeats
            elif ways > before.ways:
                return inf
            elif most < inf:
                ways *= most - least + 1
                steps = before.steps + inside * most
            else:
                # ``re`` skips single characters at once, and then tries what follows,
                # which is counted there.
                repeats += 1
                ways *= (length + repeats) / repeats
                steps = before.steps + inside * (least + rounds)
    return steps


def _bounds(repeat: re.Match[str]) -> tuple[int, float]:
    if repeat["least"] is None:
        sign = repeat["repeat"]
        return int(sign == "+"), 1 if sign == "?" else inf
    least = int(repeat["least"] or 0)
    if repeat["to"] is None:
        return least, least
    return least, int(repeat["most"]) if repeat["most"] else inf
