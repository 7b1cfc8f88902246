"""Search a matcher's pattern in a name, in bounded time.

Names come from a model, and ``re`` backtracks: ``^(a+)+$`` takes seconds on a name of
30 characters. So the worst case of a search is estimated from the parsed pattern.
Within the budget ``re`` searches; beyond it an automaton does, which looks at every
character once for each of its states. What neither can decide counts as a match, so
that the hook runs (decision 0093).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any

from hookline._internal.log import logger

MAX_TARGET_LENGTH = 256
"""A longer name matches every matcher, so that it cannot evade a guard."""

MAX_PATTERN_LENGTH = 8192
MAX_STEPS = 500_000
"""Of ``re``, in the worst case: a few milliseconds."""

_MAX_STATES = 500
_MAX_VISITS = 10_000
_MAX_RANGES = 1 << 17  # ``re`` writes every character of a class into a table
_ENDLESS = 1 << 40
_PLAIN = r"[\w\s|.^$:/-]*"

# What ``re.compile`` itself is made of; there is no public way to the parsed pattern.
_parser: Any = import_module("re._parser")
_compiler: Any = import_module("re._compiler")
_Item = tuple[Any, Any]


@lru_cache(maxsize=16384)
def searcher(pattern: str) -> Callable[[str], bool]:
    """A function that says whether a pattern is found in a name."""
    if len(pattern) > MAX_PATTERN_LENGTH:
        return _matches_all(pattern, f"longer than {MAX_PATTERN_LENGTH} characters")
    try:
        with warnings.catch_warnings():
            # A mere warning about the pattern must not raise in a strict host.
            warnings.simplefilter("ignore")
            return _compiled(pattern)
    except (re.error, OverflowError) as error:
        logger.warning(
            "matcher %r is not a valid regular expression (%s): compared literally",
            pattern,
            error,
        )
        return lambda target: target == pattern
    except (_UndecidedError, RecursionError, MemoryError) as error:
        return _matches_all(pattern, str(error) or type(error).__name__)


@lru_cache(maxsize=16384)
def has_negative_lookaround(pattern: str) -> bool:
    """Whether a pattern says which names it does not match; one that is broken, no."""
    if "(?!" not in pattern and "(?<!" not in pattern:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _has(_parser.parse(pattern).data, "ASSERT_NOT")
    except (re.error, OverflowError, RecursionError, MemoryError):
        return False  # compared literally, or matches every name


def _matches_all(pattern: str, why: str) -> Callable[[str], bool]:
    shown = pattern if len(pattern) <= 80 else f"{pattern[:77]}..."
    logger.warning("matcher %r is too complex (%s): matches every name", shown, why)
    return lambda _: True


def _compiled(pattern: str) -> Callable[[str], bool]:
    short = len(pattern) * (MAX_TARGET_LENGTH + 1) <= MAX_STEPS
    if short and re.fullmatch(_PLAIN, pattern):
        search = re.compile(pattern).search
        return lambda target: search(target) is not None
    tree = _parser.parse(pattern)
    if _range_size(tree.data) > _MAX_RANGES:
        raise _UndecidedError("its character classes are too large")
    return _BoundedSearch(tree)


class _UndecidedError(Exception):
    """Nobody can say in the time there is whether it matches."""


class _BoundedSearch:
    """Searches one pattern by ``re``, or by an automaton where that may take long."""

    def __init__(self, tree: Any) -> None:
        self._tree = tree
        self._search = _compiler.compile(tree).search
        self._safe = MAX_TARGET_LENGTH if self._fits(MAX_TARGET_LENGTH) else -1
        self._automaton: _Automaton | None = None

    def __call__(self, target: str) -> bool:
        if len(target) > self._safe and self._fits(len(target)):
            self._safe = len(target)
        try:
            if len(target) <= self._safe:
                return self._search(target) is not None
            if self._automaton is None:
                self._automaton = _Automaton(self._tree)
            return self._automaton.finds(target)
        except (_UndecidedError, RecursionError, MemoryError, SystemError):
            # ``re`` itself has a bug: ``((b).|)++`` raises SystemError on "ba".
            return True

    def _fits(self, length: int) -> bool:
        return _worst_steps(self._tree.data, length) <= MAX_STEPS


def _range_size(items: Iterable[_Item]) -> int:
    """How many characters the classes of a pattern list, all in all."""
    size = 0
    for name, found in ((str(op), found) for op, found in items):
        if name == "IN":
            size += sum(last - first for first, last in _ranges(found))
        size += sum(_range_size(part.data) for part in _parts(found))
    return size


def _has(items: Iterable[_Item], name: str) -> bool:
    """Whether a pattern has an item whose name begins so, at any depth."""
    return any(
        str(op).startswith(name) or any(_has(part.data, name) for part in _parts(found))
        for op, found in items
    )


def _ranges(items: Iterable[_Item]) -> list[tuple[int, int]]:
    return [found for op, found in items if str(op) == "RANGE"]


def _parts(found: Any) -> list[Any]:
    """The patterns inside an item."""
    if isinstance(found, _parser.SubPattern):
        return [found]
    if isinstance(found, tuple | list):
        return [part for one in found for part in _parts(one)]
    return []


def _worst_steps(items: Iterable[_Item], length: int) -> int:
    """How many steps ``re`` takes for a search at most."""
    return _cost(items, length)[1] * (length + 1)


def _cost(items: Iterable[_Item], length: int) -> tuple[int, int]:
    """In how many ways ``re`` may match a sequence at one place, in how many steps."""
    ways, steps = 1, 0
    for op, found in items:
        more_ways, more_steps = _item_cost(str(op), found, length)
        steps = min(steps + ways * more_steps, _ENDLESS)
        ways = min(ways * more_ways, _ENDLESS)
    return ways, steps


def _item_cost(name: str, found: Any, length: int) -> tuple[int, int]:
    if name in {"LITERAL", "NOT_LITERAL", "ANY", "AT", "FAILURE"}:
        return 1, 1
    if name == "IN":
        return 1, 1 + len(found)
    if name == "GROUPREF":
        return 1, 1 + length
    if name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
        ways, steps = _repeat_cost(found, length)
    else:
        unknown = [(_ENDLESS, _ENDLESS)]
        costs = [_cost(part.data, length) for part in _parts(found)] or unknown
        ways, steps = (sum(cost) for cost in zip(*costs, strict=True))
    once = name in {"POSSESSIVE_REPEAT", "ATOMIC_GROUP", "ASSERT", "ASSERT_NOT"}
    return (1 if once else ways), steps + 1


def _repeat_cost(found: tuple[Any, Any, Any], length: int) -> tuple[int, int]:
    low, high, part = found
    ways, steps = _cost(part.data, length)
    least = part.getwidth()[0]
    # What matches nothing is repeated up to its lower bound all the same.
    rounds = min(int(high), length // least if least else int(low) + length)
    paths = rounds + 1 if ways == 1 else ways ** min(rounds + 1, 64)
    return min(paths, _ENDLESS), min(steps * paths, _ENDLESS)


_TESTS = frozenset({"AT", "ASSERT", "ASSERT_NOT", "FAILURE"})
"""Items that look at a place in the name and take no character."""
_TAKES = frozenset({"LITERAL", "NOT_LITERAL", "ANY", "IN"})
"""Items that take one character."""


class _State:
    """A place in the pattern: what is looked at there, and where it leads."""

    __slots__ = ("accepts", "then", "width")

    def __init__(self, *then: _State) -> None:
        self.then = list(then)
        self.accepts: Callable[[str, int], object] | None = None
        self.width = 0


class _Automaton:
    """All ways through a pattern at once; raises ``_UndecidedError`` if it has none.

    Each item is tested by ``re`` itself. References to groups need backtracking.
    """

    def __init__(self, tree: Any) -> None:
        self._syntax = tree.state
        self._states = self._steps = 0
        self._known: dict[str, Callable[[str, int], object]] = {}
        self._end = _State()
        self._start = self._sequence(tree.data, tree.state.flags, self._end)

    def finds(self, target: str) -> bool:
        """Whether the pattern is found; True also where that takes too long."""
        visits, reached = 0, set[_State]()
        for at in range(len(target) + 1):
            left, reached, seen = [*reached, self._start], set(), set[_State]()
            while left:
                state = left.pop()
                if state in seen:
                    continue
                seen.add(state)
                visits += 1
                if state is self._end or visits > _MAX_VISITS:
                    return True
                if state.accepts is None or state.accepts(target, at):
                    if state.width:
                        reached.update(state.then)
                    else:
                        left += state.then
        return False

    def _sequence(self, items: list[_Item], flags: int, then: _State) -> _State:
        for op, found in reversed(items):
            then = self._item(str(op), op, found, flags, then)
        return then

    def _item(self, name: str, op: Any, found: Any, flags: int, then: _State) -> _State:
        self._states += 1
        if name in _TESTS:
            if _has([(op, found)], "GROUPREF"):
                raise _UndecidedError("it refers to a group")
            self._steps += _worst_steps([(op, found)], MAX_TARGET_LENGTH)
        if self._states > _MAX_STATES or self._steps > MAX_STEPS:
            raise _UndecidedError("it has too many states")
        if name in _TAKES or name in _TESTS:
            state = _State(then)
            state.accepts = self._test(op, found, flags)
            state.width = int(name in _TAKES)
            return state
        if name == "SUBPATTERN":
            _, added, removed, part = found
            return self._sequence(part.data, _combined(flags, added, removed), then)
        if name == "BRANCH":
            parts = [self._sequence(part.data, flags, then) for part in found[1]]
            return _State(*parts)
        if name in {"MAX_REPEAT", "MIN_REPEAT"}:
            return self._repeat(found, flags, then)
        raise _UndecidedError(f"it contains {name}")

    def _repeat(self, found: tuple[Any, Any, Any], flags: int, then: _State) -> _State:
        low, high, part = found
        if int(high) > MAX_TARGET_LENGTH:
            loop = _State(then)
            loop.then.append(self._sequence(part.data, flags, loop))
            start, low = (loop.then[1], low - 1) if low else (loop, 0)
        else:
            start = then
            for _ in range(high - low):
                start = _State(then, self._sequence(part.data, flags, start))
        # More rounds than a name has characters can only take nothing.
        for _ in range(min(low, MAX_TARGET_LENGTH + 1)):
            start = self._sequence(part.data, flags, start)
        return start

    def _test(self, op: Any, found: Any, flags: int) -> Callable[[str, int], object]:
        key = f"{op} {found} {flags}"
        if key not in self._known:
            from copy import copy  # such patterns are rare

            syntax = copy(self._syntax)
            syntax.flags = flags
            alone = _parser.SubPattern(syntax, [(op, found)])
            self._known[key] = _compiler.compile(alone).match
        return self._known[key]


def _combined(flags: int, added: int, removed: int) -> int:
    kinds = _parser.TYPE_FLAGS
    if added & kinds:
        flags &= ~kinds
    return (flags | added) & ~removed
