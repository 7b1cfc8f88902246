"""Compile and evaluate expressions: CEL over the fields of an event.

The engine is ``cel-expr-python``, Google's own (decision 0105). It is kept from what it
cannot take: text with a NUL, which it would cut, values that JSON does not have, and
evaluations that would take too long.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from copy import copy
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from hookline.errors import HooklineError, MissingExtraError, nearest
from hookline.protocol.dialects import with_agent_spellings
from hookline.protocol.inputs import EVENT_FIELDS
from hookline.protocol.values import clean_text

from . import functions
from .cost import LIMIT, CostModel, weight_of
from .tree import (
    LIFTED,
    Call,
    Constant,
    Lifted,
    Loop,
    Name,
    Node,
    Select,
    lift,
    read_tree,
    split,
    walk,
)

if TYPE_CHECKING:
    from cel_expr_python import cel

NOW, EVENT = "now", "event"
NAMES = frozenset().union(*EVENT_FIELDS.values()) | {NOW, EVENT}
"""What an expression can name."""
_MAX_LENGTH = 20_000
_OR, _AND, _NOT, _IF = "_||_", "_&&_", "!_", "_?_:_"
_MAKE_NO_VALUES = frozenset(
    {
        *(_OR, _AND, _NOT, "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_[_]", "@in"),
        *("contains", "startsWith", "endsWith", "matches", "size"),
    }
)
_LOST = "\ufffd"
_FINDING = r"ERROR: <input>:(-?\d+):(-?\d+): (.*)"
_MISSING = (
    r"NOT_FOUND: Key not found in map : (?P<key>.*)"
    r"|UNKNOWN: Index error: index=(?P<index>-?\d+) size=\d+"
    r"|UNKNOWN: No value with name \"(?P<name>[@\w]+)\" found in Activation"
)


class ExpressionError(HooklineError):
    """An expression that cannot be compiled."""

    def __init__(self, problem: str, line: int = 1, column: int = 1) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line
        self.column = column

    def __str__(self) -> str:
        where = f"line {self.line}, " if self.line > 1 else ""
        return f"{where}column {self.column}: {self.problem}"


class EngineMissingError(ExpressionError):
    """The library that evaluates expressions is not installed."""

    def __init__(self, *_: object) -> None:
        super().__init__(str(MissingExtraError("rules", "cel-expr-python")))

    def __str__(self) -> str:
        return self.problem


class EvaluationError(HooklineError):
    """An expression that cannot be evaluated for an event."""


class MissingFieldError(EvaluationError):
    """An expression uses a key or an index that the event does not have."""


class Activation:
    """The parts of an event that an expression uses, as the engine takes them."""

    __slots__ = ("handle", "values", "weight")

    def __init__(self, values: dict[str, Any], weight: int) -> None:
        self.values = values
        self.weight = weight
        self.handle: cel.Activation | None = None
        """The same, converted by the engine."""


class Scope:
    """What an expression is evaluated on: plain JSON values, and where paths start."""

    __slots__ = ("activations", "cwd", "event", "project")

    def __init__(
        self,
        event: Mapping[str, Any],
        cwd: str,
        project: str,
        activations: dict[str, Activation] | None = None,
    ) -> None:
        self.event = event
        self.cwd = cwd
        self.project = project
        self.activations = {} if activations is None else activations
        """Of this event, by what is used of it: hundreds of rules may use the same."""


class Uses(dict[str, "Uses | None"]):
    """Which parts of a value are used, by key; None for all of a part."""

    is_test = False
    """Only whether it is there is asked."""


class Program:
    """A compiled expression."""

    def __init__(self, source: str, expression: cel.Expression) -> None:
        self.source = source
        saved = expression.serialize()
        self.tree = read_tree(saved)
        # The engine leaks what it hands to a function of ours, so that we call those
        # outside of macros before it evaluates the rest.
        saved, lifted = lift(saved, functions.NAMES)
        self._calls = [_Call(source, call) for call in lifted]
        self._eval = _load(saved).eval if lifted else expression.eval
        self._saved = saved if _has_choice(self.tree) else None
        self.uses = find_uses(self.tree)
        self._activation_key = _key_of(self.uses)
        nodes = list(walk(self.tree))
        self._words = {node.field for node in nodes if isinstance(node, Select)} | {
            node.value for node in nodes if isinstance(node, Constant) and node.value
        }
        names = {node.function for node in nodes if isinstance(node, Call)}
        self._uses_folders = not names.isdisjoint(functions.NAMES)
        # What an evaluation makes, a text or a list, lives as long as the activation.
        has_loop = any(isinstance(node, Loop) for node in nodes)
        self._makes_values = has_loop or not names <= _MAKE_NO_VALUES
        self._cost = CostModel(self.tree)
        self._cheap_weight = -1
        """No input of this weight is expensive."""

    def evaluate(self, scope: Scope, answers: Called | None = None) -> Any:
        """The value for an event; raises ``EvaluationError``.

        ``called``: what the functions gave that were called for the whole of it.
        """
        event = self._seen(scope.event)
        activation = scope.activations.get(self._activation_key)
        is_shared = activation is not None and event is scope.event
        try:
            if activation is None or not is_shared:
                activation = self._activation(event)
                if event is scope.event:
                    scope.activations[self._activation_key] = activation
            if activation.weight > self._cheap_weight:
                if self._cost.is_cheap(activation.weight):
                    self._cheap_weight = activation.weight
                else:
                    self._refuse_expensive(activation.values)
        except RecursionError:
            raise EvaluationError("a value is nested too deeply") from None
        if self._calls and answers is None:
            answers = self._call(scope)
        if self._uses_folders:
            functions.folders.cwd, functions.folders.project = scope.cwd, scope.project
        try:
            if answers is not None and answers.values:
                engine_value = self._eval(data={**activation.values, **answers.values})
            elif self._makes_values or not is_shared:
                engine_value = self._eval(data=activation.values)
            else:
                if activation.handle is None:
                    activation.handle = _environment().Activation(activation.values)
                engine_value = self._eval(activation.handle)
            value = engine_value.plain_value()
        # The engine raises for what it cannot read, and for its own limits.
        except Exception as error:  # noqa: BLE001
            raise EvaluationError(_without_code(str(error))) from None
        if type(value) is str and engine_value.type().name() == "ERROR":
            # No variable has it: a cycle would keep the event, which may be large.
            raise self._failure(value, scope, answers or _NOT_CALLED)
        return value

    def _call(self, scope: Scope) -> Called:
        answers = Called({}, {})
        for call in self._calls:
            try:
                answers.values[call.name] = call.result(scope)
            except EvaluationError as error:
                answers.errors[call.name] = error.with_traceback(None)
        return answers

    def is_true(self, scope: Scope, answers: Called | None = None) -> bool:
        """Whether it is true; raises ``EvaluationError``, also for no boolean."""
        value = self.evaluate(scope, answers)
        if value is True or value is False:
            return value
        raise EvaluationError(f"gives {_kind(value)}, neither true nor false")

    def used_values(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that it uses and that are there, by their paths."""
        event = self._seen(event)
        fields = {**event, EVENT: event, NOW: event.get("timestamp")}
        paths = _paths(self.uses, fields)
        return {path: value for path, value in paths if value is not _ABSENT}

    def place_of(self, *path: str) -> tuple[int, int]:
        """The line and the column where a field is used."""
        nodes = [node for node in walk(self.tree) if _path(node)[0] == list(path)]
        at = min((n.at + isinstance(n, Select) for n in nodes), default=0)
        before = self.source[:at]
        return before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1

    def missing_from(self, event: Mapping[str, Any]) -> list[str]:
        """The paths that it uses and the event does not have."""
        event = self._seen(event)
        paths = _paths(self.uses, {**event, EVENT: event})
        absent = [path for path, value in paths if value is _ABSENT]
        return [path for path in absent if path != NOW and not path.startswith(LIFTED)]

    def _seen(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """The event, with the names that it uses and only a coding agent has."""
        return with_agent_spellings(event, self._words) if "host" in event else event

    def _activation(self, event: Mapping[str, Any]) -> Activation:
        values: dict[str, Any] = {}
        weight = 0
        for name, uses in self.uses.items():
            if name == NOW:
                values[name] = _time_of(event)
            elif name == EVENT:
                values[name] = _picked(event, uses)
            elif name in event:
                values[name] = _picked(event[name], uses)
            else:
                continue
            weight += weight_of(values[name])
        return Activation(values, weight)

    def _refuse_expensive(self, values: dict[str, Any]) -> None:
        cost = self._cost.bound(values)
        if cost > LIMIT:
            much = (
                f"{cost / LIMIT:.1f} times" if math.isfinite(cost) else "far more than"
            )
            raise EvaluationError(
                f"would cost {much} the limit for this event: use shorter lists, fewer "
                "nested macros or simpler patterns"
            )

    def _worst(
        self, missing: MissingFieldError, scope: Scope, answers: Called
    ) -> EvaluationError:
        """What failed beside a missing field: of ``a || b`` the engine names only a."""
        operands, is_or = self._operands, _is_call(self.tree, _OR)
        if is_or and not _has_choice(operands[0].tree):
            # It is what misses a field, or it is false.
            operands = operands[1:]
        for operand in operands:
            try:
                operand.is_true(scope, answers)
            except MissingFieldError:
                if not is_or:
                    break  # a && b is false, whatever b is
            except EvaluationError as error:
                return error
        return missing

    @cached_property
    def _operands(self) -> list[Program]:
        assert self._saved is not None  # asked only where there is a choice
        function, operands = split(self._saved)
        if function == _IF:
            operands = operands[:1]
        return [Program(self.source, _load(operand)) for operand in operands]

    def _failure(self, error: str, scope: Scope, answers: Called) -> EvaluationError:
        failure = self._named(error, scope.event, answers)
        if self._saved is not None and isinstance(failure, MissingFieldError):
            return self._worst(failure, scope, answers)
        return failure

    def _named(
        self, error: str, event: Mapping[str, Any], answers: Called
    ) -> EvaluationError:
        match = re.fullmatch(_MISSING, error, re.DOTALL)
        if match is None:
            return EvaluationError(_without_code(error))
        if match["name"]:
            failed = answers.errors.get(match["name"])
            return copy(failed) if failed else MissingFieldError(match["name"])
        if match["index"]:
            return MissingFieldError(f"index {match['index']}")
        key = match["key"].strip('"')
        paths = self.missing_from(event)
        return MissingFieldError(next((p for p in paths if _ends(p, key)), key))


class Called(NamedTuple):
    """What functions of ours gave for an event, by the names that stand for them."""

    values: dict[str, Any]
    errors: dict[str, EvaluationError]


_NOT_CALLED = Called({}, {})


class _Call:
    """A function of ours, called outside of the engine."""

    def __init__(self, source: str, lifted: Lifted) -> None:
        self.name = lifted.name
        self._function = lifted.function
        self._args = [Program(source, _load(arg)) for arg in lifted.args]

    def result(self, scope: Scope) -> Any:
        """What it gives for an event; raises ``EvaluationError``."""
        args = [arg.evaluate(scope) for arg in self._args]
        functions.folders.cwd, functions.folders.project = scope.cwd, scope.project
        function = functions.find(self._function, args)
        if function is None:
            kinds = ", ".join(map(_kind, args))
            raise EvaluationError(f"{self._function}() does not take {kinds}")
        try:
            return _clean(function(*args))
        except (ValueError, OSError) as error:
            raise EvaluationError(f"{self._function}(): {error}") from None


def _load(saved: bytes) -> cel.Expression:
    return _environment().deserialize(saved)


def compile_expression(source: str) -> Program:
    """Compile an expression; raises ``ExpressionError``."""
    program = _compile(source)
    if isinstance(program, ExpressionError):
        # One that is raised again would keep the frames of every time.
        raise copy(program)
    return program


@lru_cache(maxsize=16384)
def _compile(source: str) -> Program | ExpressionError:
    # Kept with its error: a rule that cannot be compiled fails on every event.
    if len(source) > _MAX_LENGTH:
        return ExpressionError(f"an expression has at most {_MAX_LENGTH} characters")
    try:
        source.encode()
        return Program(source, _environment().compile(source))
    except ExpressionError as error:
        return error
    except UnicodeEncodeError:
        return ExpressionError("it holds half of a surrogate pair, which is no text")
    except RuntimeError as error:
        return _explained(str(error), source)


@lru_cache(maxsize=1)
def _environment() -> cel.Env:
    try:
        from cel_expr_python import cel
        from cel_expr_python.ext.ext_strings import ExtStrings
    except ImportError:
        raise EngineMissingError from None
    kind = cel.Type
    variables = dict.fromkeys(NAMES, kind.DYN) | {NOW: kind.TIMESTAMP}
    texts = kind.List(kind.STRING)

    def method(
        name: str, result: cel.Type, *overloads: tuple[Callable[..., Any], list[Any]]
    ) -> cel.FunctionDecl:
        matching = [
            cel.Overload(
                f"{name}_{number}", result, parameters, True, _guarded(overload)
            )
            for number, (overload, parameters) in enumerate(overloads)
        ]
        return cel.FunctionDecl(name, matching)

    declarations = [
        method("within", kind.BOOL, (functions.within, [kind.STRING, kind.STRING])),
        method("glob", kind.BOOL, (functions.glob, [kind.STRING, kind.STRING])),
        method(
            "programs",
            texts,
            (functions.programs, [kind.STRING]),
            (functions.programs_of_words, [kind.List(kind.DYN)]),
        ),
        method(
            "runs",
            kind.BOOL,
            (functions.runs, [kind.STRING, kind.STRING]),
            (functions.runs_of_words, [kind.List(kind.DYN), kind.STRING]),
        ),
    ]
    return cel.NewEnv(
        variables=variables, extensions=[ExtStrings()], functions=declarations
    )


FUNCTIONS = frozenset(
    {
        *("within", "glob", "programs", "runs"),
        *("contains", "startsWith", "endsWith"),
        *("matches", "size", "exists", "all", "exists_one", "map", "filter", "has"),
        *("charAt", "indexOf", "lastIndexOf", "join", "lowerAscii", "upperAscii"),
        *("replace", "split", "substring", "trim", "reverse", "format"),
        *("int", "uint", "double", "string", "bytes", "bool", "type", "dyn"),
        *("timestamp", "duration", "getDate", "getDayOfMonth", "getDayOfWeek"),
        *("getDayOfYear", "getFullYear", "getHours", "getMilliseconds", "getMinutes"),
        *("getMonth", "getSeconds"),
    }
)
"""The functions that there are, to name the nearest one."""


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ours for the engine: text without NUL, one kind of error."""

    def call(*args: Any) -> Any:
        try:
            return _clean(function(*args))
        # A KeyError would look like a field that is missing.
        except Exception as error:  # noqa: BLE001
            raise ValueError(f"{function.__name__}(): {error}") from None

    return call


def _explained(error: str, source: str) -> ExpressionError:
    match = re.search(_FINDING, error)
    if match is None:
        return ExpressionError(_without_code(error))
    line, column, problem = int(match[1]), int(match[2]), match[3]
    undeclared = re.match(r"undeclared reference to '([^']*)'", problem)
    if undeclared:
        is_function = _character(source, line, column) == "("
        name, _, below = undeclared[1].partition(".")
        problem = _unknown(name, is_function)
        # The engine points at the last dot.
        column -= len(undeclared[1].rpartition(".")[0]) if below else 0
    elif problem.startswith("Syntax error: "):
        problem = _syntax_problem(problem.removeprefix("Syntax error: "))
    return ExpressionError(problem, max(line, 1), max(column, 1))


_SYNTAX = (
    (r"mismatched input '<EOF>'", "the expression ends too early"),
    (r"token recognition error at: '=.*", "'=' is not an operator: write =="),
    (r"token recognition error at: '([&|]).*", r"'\1' is not an operator: write \1\1"),
    (
        r"mismatched input '(and|or|not)'.*",
        r"'\1' is not an operator: write &&, || or !",
    ),
    (r" expecting \{.*", ""),
)
_OF_PYTHON = {"len": "size", "None": "null", "True": "true", "False": "false"}


def _syntax_problem(problem: str) -> str:
    for pattern, instead in _SYNTAX:
        problem = re.sub(pattern, instead, problem)
    return problem


def _unknown(name: str, is_function: bool) -> str:
    names, kind = (FUNCTIONS, "function") if is_function else (NAMES, "field")
    if is_function and name in names:
        return f"{name}() does not take these arguments"
    near = _OF_PYTHON.get(name) or nearest(name, names)
    hint = f": did you mean {near!r}?" if near else ""
    problem = "there is no" if is_function else "no event has a"
    return f"{problem} {kind} {name!r}{hint}"


def _character(source: str, line: int, column: int) -> str:
    lines = source.split("\n")
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return text[column - 1 : column]


def _without_code(error: str) -> str:
    """An error of the engine without its codes."""
    text = re.sub(r"^[A-Z_]+: |\s*\[[A-Z_]+\]$", "", error.strip())
    return text.replace(" : ", ": ").partition("\n")[0]


def _is_call(node: Node, *functions: str) -> bool:
    return isinstance(node, Call) and node.function in functions


def _has_choice(node: Node) -> bool:
    """Whether a missing field can hide that something else fails."""
    below = _is_call(node, _AND, _NOT, _IF) and any(map(_has_choice, node.parts()))
    return _is_call(node, _OR) or below


def find_uses(root: Node) -> Uses:
    """Which parts of which variables an expression uses."""
    uses = Uses()
    _add_uses(root, uses, frozenset())
    return uses


def _key_of(uses: Uses) -> str:
    parts = []
    for name, below in sorted(uses.items()):
        inside = "?" if below is _TEST else "" if below is None else _key_of(below)
        parts.append(f"{name!r}{inside}")
    return f"{{{','.join(parts)}}}"


def _add_uses(node: Node, uses: Uses, bound: frozenset[str]) -> None:
    path, is_test = _path(node)
    if path and path[0] not in bound:
        _add_path(uses, path, is_test)
        return
    if isinstance(node, Loop):
        _add_uses(node.over, uses, bound)
        _add_uses(node.start, uses, bound)
        inside = bound | {*node.variables, node.result_name}
        for part in (node.condition, node.step, node.result):
            _add_uses(part, uses, inside)
        return
    for part in node.parts():
        _add_uses(part, uses, bound)


def _path(node: Node) -> tuple[list[str], bool]:
    """The keys that lead to a part of a variable; empty for anything else."""
    is_test = isinstance(node, Select) and node.is_test
    steps: list[str] = []
    while True:
        if isinstance(node, Name):
            return [node.name, *reversed(steps)], is_test
        if isinstance(node, Select) and (is_test or not node.is_test):
            steps.append(node.field)
            node = node.operand
        elif (key := _key(node)) is not None and isinstance(node, Call):
            steps.append(key)
            node = node.args[0]
        else:
            return [], False


def _key(node: Node) -> str | None:
    if isinstance(node, Call) and node.function == "_[_]":
        index = node.args[1]
        return index.value if isinstance(index, Constant) else None
    return None


def _add_path(used: Uses, path: list[str], is_test: bool) -> None:
    *above, last = path
    uses = used
    for step in above:
        below = uses.get(step, _TEST)
        if below is None:
            return  # all of it is used already
        if below is _TEST:
            below = uses[step] = Uses()
        uses = below
    if not is_test:
        uses[last] = None
    elif last not in uses:
        uses[last] = _TEST


_TEST = Uses()
_TEST.is_test = True


def _picked(value: Any, uses: Uses | None) -> Any:
    if uses is None or type(value) is not dict:
        return _clean(value)
    return {
        key: True if below is _TEST else _picked(value[key], below)
        for key, below in uses.items()
        if key in value
    }


def _clean(value: Any) -> Any:
    """A plain JSON value as the engine can take it."""
    kind = type(value)
    if kind is str:
        return value if value.isascii() and "\0" not in value else _clean_text(value)
    if kind is dict:
        cleaned = {_clean(key): _clean(item) for key, item in value.items()}
        if len(cleaned) < len(value):
            raise EvaluationError("two keys differ only in characters that are no text")
        return cleaned
    if kind is list or kind is tuple:
        return [_clean(item) for item in value]
    if kind is int and not -(2**63) <= value < 2**64:
        return float(value) if abs(value) < _MAX_FLOAT else _infinite(value)
    if kind is float and not math.isfinite(value):
        return None  # as in JSON
    return value


_MAX_FLOAT = 2**1023


def _infinite(number: int) -> float:
    return math.inf if number > 0 else -math.inf


def _clean_text(text: str) -> str:
    return clean_text(text.replace("\0", _LOST))  # the engine would cut the text here


def _time_of(event: Mapping[str, Any]) -> Any:
    from datetime import UTC, datetime

    try:
        return datetime.fromisoformat(event["timestamp"])
    except (KeyError, TypeError, ValueError):
        return datetime.now(UTC)


_ABSENT = object()


def _paths(uses: Uses, value: Any, above: str = "") -> list[tuple[str, Any]]:
    """The used paths with their values; ``_ABSENT`` for what is not there."""
    paths: list[tuple[str, Any]] = []
    for key, below in uses.items():
        path = f"{above}.{key}" if above else key
        is_there = isinstance(value, Mapping) and key in value
        if not is_there or below is None or below is _TEST:
            paths.append((path, value[key] if is_there else _ABSENT))
        else:
            paths += _paths(below, value[key], path)
    return paths


def _ends(path: str, key: str) -> bool:
    return path == key or path.endswith(f".{key}")


def _kind(value: Any) -> str:
    names = {str: "text", int: "a number", float: "a number", list: "a list"}
    return "null" if value is None else names.get(type(value), "no boolean")
