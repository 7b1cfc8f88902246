"""The parts of a compiled expression, read from the form that the engine saves it in.

The engine (``cel-expr-python``) has no other way to look into an expression; the form
is the protobuf message ``cel.expr.CheckedExpr``, which is stable across versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}
_TEXT, _RAW = 6, 7
_CHECKED, _EXPRESSION, _CALL, _ARGS = 2, 4, 6, 3
_REFERENCES, _IDENT = 2, 4
_PARTS = {_CALL: (1, 3), 5: (1,), 7: (1,), 9: (2, 4)}
"""Where calls, fields, lists and macros hold what is evaluated once."""
LIFTED = "@call"
"""How the names of such variables start; no expression can name one."""


class Node(Struct, kw_only=True):
    """One part of an expression; ``at`` is where it stands, in characters."""

    id: int
    at: int = -1

    def parts(self) -> tuple[Node, ...]:
        """The nodes that it is made of."""
        return ()


class Constant(Node):
    """A literal; ``value`` only where it is text."""

    value: str | None = None
    size: int = 1


class Name(Node):
    """A variable."""

    name: str


class Select(Node):
    """``operand.field``, or ``has(operand.field)``."""

    operand: Node
    field: str
    is_test: bool

    def parts(self) -> tuple[Node, ...]:
        """What the field is taken from."""
        return (self.operand,)


class Call(Node):
    """A function or an operator; a method's object is its first argument."""

    function: str
    args: tuple[Node, ...]

    def parts(self) -> tuple[Node, ...]:
        """The arguments."""
        return self.args


class Literal(Node):
    """A list or a map; its elements, keys among them."""

    elements: tuple[Node, ...]

    def parts(self) -> tuple[Node, ...]:
        """The elements."""
        return self.elements


class Loop(Node):
    """What a macro such as ``exists`` becomes."""

    variables: tuple[str, ...]
    over: Node
    result_name: str
    start: Node
    condition: Node
    step: Node
    result: Node

    def parts(self) -> tuple[Node, ...]:
        """All of its parts."""
        return (self.over, self.start, self.condition, self.step, self.result)


def read_tree(saved: bytes) -> Node:
    """Read what ``Expression.serialize()`` gives."""
    checked = _fields(_last(_fields(saved), _CHECKED))
    info = _fields(_last(checked, 5))
    positions = dict(map(_position, info.get(4, ())))
    root = _read(_last(checked, _EXPRESSION))
    for node in walk(root):
        node.at = positions.get(node.id, -1)
    return root


def split(saved: bytes) -> tuple[str, list[bytes]]:
    """The outermost function of an expression, and its operands as expressions."""
    whole = _fields(saved)
    checked = _fields(_last(whole, _CHECKED))
    call = _fields(_last(_fields(checked.pop(_EXPRESSION)[-1]), _CALL))
    remainder = _saved(checked)
    operands = (remainder + _saved({_EXPRESSION: [arg]}) for arg in call.get(_ARGS, ()))
    return _text(call, 2), [
        _saved({**whole, _CHECKED: [operand]}) for operand in operands
    ]


class Lifted(Struct, frozen=True):
    """A call that was taken out of an expression; a variable stands in its place."""

    name: str
    function: str
    args: tuple[bytes, ...]
    """As expressions."""


def lift(saved: bytes, functions: frozenset[str]) -> tuple[bytes, list[Lifted]]:
    """Replace the calls of these functions by variables, but for those in macros."""
    whole = _fields(saved)
    checked = _fields(_last(whole, _CHECKED))
    calls: list[tuple[str, bytes, str, list[bytes]]] = []
    root = _lifted(checked.pop(_EXPRESSION)[-1], functions, calls)
    remainder = _saved(checked)

    def as_saved(expression: bytes, more: bytes = b"") -> bytes:
        inner = remainder + more + _saved({_EXPRESSION: [expression]})
        return _saved({**whole, _CHECKED: [inner]})

    lifted = [
        Lifted(name, function, tuple(map(as_saved, args)))
        for name, _, function, args in calls
    ]
    if not lifted:
        return saved, []
    # Later entries of a map replace earlier ones: the call's id names a variable now.
    names = [_saved({1: [_id(node)], 2: [_named(name)]}) for name, node, *_ in calls]
    return as_saved(root, _saved({_REFERENCES: names})), lifted


def _lifted(
    message: bytes,
    functions: frozenset[str],
    calls: list[tuple[str, bytes, str, list[bytes]]],
) -> bytes:
    """An expression with its calls replaced; what holds none stays as it is."""
    fields = _fields(message)
    kind = next((part for part in _PARTS if part in fields), None)
    if kind is None:
        return message
    node = _fields(fields[kind][-1])
    if kind == _CALL and (function := _text(node, 2)) in functions:
        name = f"{LIFTED}{len(calls)}"
        calls.append((name, message, function, [*node.get(1, ()), *node.get(3, ())]))
        return _saved({2: [_id(message)], _IDENT: [_named(name)]})
    for number in _PARTS[kind]:
        parts = node.get(number, ())
        node[number] = [_lifted(part, functions, calls) for part in parts]
    return _saved({**fields, kind: [_saved(node)]})


def _id(message: bytes) -> int:
    number: int = _last(_fields(message), 2, 0)
    return number


def _named(name: str) -> bytes:
    return _saved({1: [name.encode()]})


def walk(node: Node) -> Iterator[Node]:
    """A node and all nodes below it."""
    yield node
    for part in node.parts():
        yield from walk(part)


Fields = dict[int, list[Any]]


def _fields(message: bytes) -> Fields:
    """The fields of a message by their numbers, in the order they were written."""
    fields: Fields = {}
    at, end = 0, len(message)
    while at < end:
        tag, at = _varint(message, at)
        kind = tag & 7
        value: Any
        if kind == _VARINT:
            value, at = _varint(message, at)
        else:
            size = _SIZES.get(kind)
            if size is None:
                size, at = _varint(message, at)
            value, at = message[at : at + size], at + size
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _saved(fields: Fields) -> bytes:
    """A message of fields that are bytes or whole numbers."""
    return b"".join(
        _field(number, value) for number, values in fields.items() for value in values
    )


def _field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return bytes((number << 3 | _VARINT,)) + _as_varint(value)
    return bytes((number << 3 | _BYTES,)) + _as_varint(len(value)) + value


def _as_varint(number: int) -> bytes:
    data = bytearray()
    while number >= 0x80:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*data, number))


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _last(fields: Fields, number: int, default: Any = b"") -> Any:
    return fields.get(number, (default,))[-1]


def _text(fields: Fields, number: int) -> str:
    data: bytes = _last(fields, number)
    return data.decode("utf-8", "replace")


def _position(entry: bytes) -> tuple[int, int]:
    fields = _fields(entry)
    return _last(fields, 1, 0), _last(fields, 2, 0)


def _read(message: bytes) -> Node:
    fields = _fields(message)
    node_id = _last(fields, 2, 0)
    for number, read in _READERS.items():
        if number in fields:
            return read(node_id, _fields(fields[number][-1]))
    return Constant(id=node_id)


def _read_constant(node_id: int, fields: Fields) -> Node:
    if _TEXT in fields:
        text = _text(fields, _TEXT)
        return Constant(id=node_id, value=text, size=1 + len(text))
    return Constant(id=node_id, size=1 + len(_last(fields, _RAW)))


def _read_name(node_id: int, fields: Fields) -> Node:
    return Name(id=node_id, name=_text(fields, 1))


def _read_select(node_id: int, fields: Fields) -> Node:
    return Select(
        id=node_id,
        operand=_read(_last(fields, 1)),
        field=_text(fields, 2),
        is_test=bool(_last(fields, 3, 0)),
    )


def _read_call(node_id: int, fields: Fields) -> Node:
    args = (*fields.get(1, ()), *fields.get(3, ()))
    return Call(id=node_id, function=_text(fields, 2), args=tuple(map(_read, args)))


def _read_list(node_id: int, fields: Fields) -> Node:
    return Literal(id=node_id, elements=tuple(map(_read, fields.get(1, ()))))


def _read_map(node_id: int, fields: Fields) -> Node:
    entries = map(_fields, fields.get(2, ()))
    elements = [
        part for entry in entries for key in (3, 4) for part in entry.get(key, ())
    ]
    return Literal(id=node_id, elements=tuple(map(_read, elements)))


def _read_loop(node_id: int, fields: Fields) -> Node:
    names = [_text(fields, number) for number in (1, 8) if number in fields]
    over, start, condition, step, result = (
        _read(_last(fields, number)) for number in (2, 4, 5, 6, 7)
    )
    return Loop(
        id=node_id,
        variables=tuple(names),
        over=over,
        result_name=_text(fields, 3),
        start=start,
        condition=condition,
        step=step,
        result=result,
    )


_READERS = {
    3: _read_constant,
    4: _read_name,
    5: _read_select,
    _CALL: _read_call,
    7: _read_list,
    8: _read_map,
    9: _read_loop,
}
