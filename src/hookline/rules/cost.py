"""An upper bound of what evaluating an expression can cost, before it is evaluated.

The engine cannot be interrupted, so an event that would take too long must not reach
it. A unit is about a nanosecond. Sizes are pairs of a mean and a maximum over the
rounds of the loops around: a sum of products is at most the sum of one factor times the
maximum of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from .functions import MAX_EXPANDED
from .patterns import Pattern, measure
from .tree import Call, Constant, Literal, Loop, Name, Node, Select, walk

LIMIT = 100_000_000
"""About a tenth of a second."""
_MAX_SIZE = 64_000_000
_STEP, _ROUND, _COMPARE, _COPY = 50, 150, 20, 40
_NEEDLE = 32  # bytes that a search compares at a time
_OURS = {"programs": 1500, "runs": 1500, "within": 1000, "glob": 1000}
"""The functions of ours, and what a character costs them."""
_CALL_OF_OURS, _PER_GLOB = 40_000, 25
_COMPILING_GLOB = 20_000


class Mean(Struct, frozen=True):
    """A quantity over the rounds of the loops around it: its mean and its maximum."""

    mean: float
    most: float

    def __add__(self, other: Mean) -> Mean:
        return Mean(self.mean + other.mean, self.most + other.most)

    def __mul__(self, other: Mean) -> Mean:
        least = min(self.mean * other.most, self.most * other.mean)
        return Mean(least, self.most * other.most)


def _exactly(number: float) -> Mean:
    return Mean(number, number)


_NOTHING, _ONE = _exactly(0), _exactly(1)
_TOO_MUCH = _exactly(float("inf"))


class Size(Struct, frozen=True):
    """How large a value is: characters and elements in all, and direct elements."""

    weight: Mean
    count: Mean
    values: list[Any] | None = None
    """What it can be in the rounds of the loops around, where that is known."""


_SCALAR = Size(_ONE, _NOTHING)


def size_of(values: list[Any]) -> Size:
    """The size of a value that can be any of these."""
    if not values:
        return _SCALAR
    weights = [weight_of(value) for value in values]
    counts = [len(v) if isinstance(v, list | dict) else 0 for v in values]
    return Size(_mean(weights), _mean(counts), values)


def _mean(numbers: Sequence[float]) -> Mean:
    return Mean(sum(numbers) / len(numbers), max(numbers))


def weight_of(value: Any) -> int:
    """The number of characters and elements in a plain value."""
    if isinstance(value, str):
        return 1 + len(value)
    if isinstance(value, list):
        return 1 + sum(map(weight_of, value))
    if isinstance(value, dict):
        return 1 + sum(len(key) + weight_of(item) for key, item in value.items())
    return 1


class CostModel:
    """What is known about one expression: a quick bound, and a close one."""

    def __init__(self, root: Node) -> None:
        self._root = root
        nodes = list(walk(root))
        self._nodes = len(nodes)
        self._own = 1 + sum(map(_constant_factor, nodes))
        self._degree = 1 + _degree(root)
        calls = [n for n in nodes if isinstance(n, Call) and n.function in _OURS]
        self._ours = len(calls)
        self._per_character = sum(map(_per_character, calls))
        self._patterns = sum(map(_compile_cost, nodes))
        self._has_loop = any(isinstance(node, Loop) for node in nodes)

    def is_cheap(self, weight: int) -> bool:
        """Whether no input of this weight can be expensive."""
        scanned = self._own * float(weight + self._own) ** self._degree
        calls = self._ours * _CALL_OF_OURS + self._per_character * weight
        calls += self._patterns
        rounds = weight + self._own if self._has_loop else 1
        return self._nodes * (_ROUND + scanned) + calls * rounds <= LIMIT

    def bound(self, values: Mapping[str, Any]) -> float:
        """What evaluating it with these variables costs at most."""
        sizes = {name: size_of([value]) for name, value in values.items()}
        return _Estimate(sizes).cost_of(self._root)


def _per_character(node: Call) -> float:
    long = node.args[-1].size if isinstance(node.args[-1], Constant) else 0
    return _OURS[node.function] + _PER_GLOB * long


def _constant_factor(node: Node) -> float:
    if isinstance(node, Constant):
        return node.size / 16
    if not isinstance(node, Call) or node.function != "matches":
        return 0
    text = node.args[-1]
    if not isinstance(text, Constant) or text.value is None:
        return 0
    return measure(text.value).per_character


def _compile_cost(node: Node) -> float:
    if not isinstance(node, Call) or node.function != "matches":
        return 0
    text = node.args[-1]
    if not isinstance(text, Constant) or text.value is None:
        return _UNKNOWN_PATTERN
    return measure(text.value).compiling


def _degree(node: Node) -> int:
    """How many sizes can be multiplied with each other."""
    below = max(map(_degree, node.parts()), default=0)
    if isinstance(node, Loop):
        return below + 2
    if not isinstance(node, Call):
        return below
    operands = [operand for operand in node.args if not isinstance(operand, Constant)]
    return below + (len(operands) > 1 or node.function in _GROWING)


class _Estimate:
    """One walk through an expression, with the sizes of the variables in sight."""

    def __init__(self, names: Mapping[str, Size]) -> None:
        self._names = dict(names)
        self._cost = _NOTHING
        self._once = 0.0
        """What is not spent again in every round of a loop."""

    def cost_of(self, root: Node) -> float:
        self._size(root)
        return self._cost.mean + self._once

    def _spend(self, cost: Mean) -> None:
        self._cost += cost

    def _size(self, node: Node) -> Size:
        self._spend(_exactly(_STEP))
        if isinstance(node, Constant):
            return Size(_exactly(node.size), _NOTHING, [node.value])
        if isinstance(node, Name):
            return self._names.get(node.name, _SCALAR)
        if isinstance(node, Select):
            return _field(self._size(node.operand), node.field)
        if isinstance(node, Literal):
            return _together([self._size(element) for element in node.elements])
        if isinstance(node, Loop):
            return self._loop(node)
        return self._call(node) if isinstance(node, Call) else _SCALAR

    def _call(self, node: Call) -> Size:
        args = [self._size(arg) for arg in node.args]
        for arg in args:
            self._spend(arg.weight + arg.count * _exactly(_COMPARE))
        if node.function in _OURS:
            per_character = args[0].weight * _exactly(_OURS[node.function])
            self._spend(_exactly(_CALL_OF_OURS) + per_character)
        if node.function == "glob":
            self._spend(args[0].weight * args[1].weight * _exactly(_PER_GLOB))
            if not isinstance(node.args[1], Constant):
                self._once += _compiling_globs(args[1])
        result = _RESULTS.get(node.function, _sum)(args)
        if node.function in _SEARCHES and len(args) > 1:
            needle = Mean(args[1].weight.mean / _NEEDLE, args[1].weight.most / _NEEDLE)
            self._spend(args[0].weight * needle)
        elif node.function == "matches" and len(args) > 1:
            self._spend(args[0].weight * _pattern_weight(args[1]))
            self._spend(_compiling(args[1]))
        self._spend(result.weight)
        if result.weight.most > _MAX_SIZE:
            self._spend(_TOO_MUCH)
        return result

    def _loop(self, node: Loop) -> Size:
        over = self._size(node.over)
        inner = _Estimate(self._names)
        inner._names |= dict.fromkeys(node.variables, _element(over))
        inner._names[node.result_name] = start = self._size(node.start)
        inner._size(node.condition)
        step = inner._size(node.step)
        self._spend(over.count * (inner._cost + _exactly(_ROUND)))
        if isinstance(node.start, Literal):
            # The engine copies the list that it makes in every round.
            self._spend(over.count * over.count * _exactly(_COPY))
        grown = Size(start.weight + over.count * step.weight, over.count)
        after = _Estimate(self._names | {node.result_name: grown})
        result = after._size(node.result)
        self._spend(after._cost)
        self._once += inner._once + after._once
        return result


def _field(operand: Size, key: str) -> Size:
    """The size of ``operand.key``."""
    if operand.values is None:
        return _part(operand)
    maps = [
        value for value in operand.values if isinstance(value, dict) and key in value
    ]
    return size_of([value[key] for value in maps])


def _part(whole: Size) -> Size:
    """Something inside a value: at most all of it, in as many elements."""
    return Size(whole.weight, whole.weight)


def _element(over: Size) -> Size:
    """What a loop sees one after another: the items of a list, the keys of a map."""
    if over.values is None:
        # All of them together weigh as much as the whole.
        mean = over.weight.mean / max(1, over.count.mean)
        weight = Mean(max(1, mean), over.weight.most)
        return Size(weight, weight)
    collections = (value for value in over.values if isinstance(value, list | dict))
    return size_of([element for value in collections for element in value])


def _sum(args: list[Size]) -> Size:
    weight = _ONE
    for arg in args:
        weight += arg.weight
    return Size(weight, _NOTHING)


def _together(args: list[Size]) -> Size:
    return Size(_sum(args).weight, _exactly(len(args)))


def _joined(args: list[Size]) -> Size:
    weight, count = args[0].weight, args[0].count
    for arg in args[1:]:
        weight, count = weight + arg.weight, count + arg.count
    return Size(weight, count)


def _replaced(args: list[Size]) -> Size:
    return Size(args[0].weight * (args[-1].weight + _ONE), _NOTHING)


def _with_separators(args: list[Size]) -> Size:
    between = args[1].weight if len(args) > 1 else _ONE
    return Size(args[0].weight + args[0].count * between, _NOTHING)


def _pieces(args: list[Size]) -> Size:
    return Size(args[0].weight, args[0].weight)


def _item(args: list[Size]) -> Size:
    keys = args[1].values
    if keys is not None and len(keys) == 1 and isinstance(keys[0], str):
        return _field(args[0], keys[0])
    return _part(args[0])


def _truth(_: list[Size]) -> Size:
    return _SCALAR


def _pattern_weight(pattern: Size) -> Mean:
    """What a regular expression costs for each character."""
    patterns = _measured(pattern)
    if not patterns:
        return pattern.weight * _exactly(_UNKNOWN_WEIGHT) + _exactly(4)
    return _mean([one.per_character for one in patterns])


def _compiling(pattern: Size) -> Mean:
    patterns = _measured(pattern)
    return _mean([one.compiling for one in patterns] or [_UNKNOWN_PATTERN])


def _compiling_globs(pattern: Size) -> float:
    """What all the patterns cost that this can be: each is compiled once."""
    if pattern.values is None:
        return _COMPILING_GLOB * pattern.weight.most
    texts = [text for text in pattern.values if isinstance(text, str)]
    sizes = (len(text) * (1 + text.count(",")) ** 2 for text in texts)
    return _COMPILING_GLOB * sum(min(size, MAX_EXPANDED) for size in sizes)


def _measured(pattern: Size) -> list[Pattern]:
    """What is known about a regular expression; nothing about very long ones."""
    texts = [text for text in pattern.values or () if isinstance(text, str)]
    return [measure(text) for text in texts] if sum(map(len, texts)) < 20_000 else []


_UNKNOWN_PATTERN, _UNKNOWN_WEIGHT = 50_000_000, 500
"""A pattern that is put together may be costly, ``x{1000}`` as well as ``\\pL{90}``."""

_GROWING = frozenset({"replace", "join", "format"})
_SEARCHES = frozenset({"contains", "indexOf", "lastIndexOf", "replace", "split"})
_RESULTS: dict[str, Callable[[list[Size]], Size]] = {
    "_+_": _joined,
    "_?_:_": _joined,
    "_[_]": _item,
    "replace": _replaced,
    "join": _with_separators,
    "split": _pieces,
    "programs": _pieces,
    **dict.fromkeys(
        (
            *("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_&&_", "_||_", "!_"),
            *("@in", "@not_strictly_false", "contains", "startsWith", "endsWith"),
            *("matches", "size", "indexOf", "lastIndexOf", "within", "glob", "type"),
            "runs",
        ),
        _truth,
    ),
}
