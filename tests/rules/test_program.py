"""What expressions may cost, and values that no file can hold (protocol.md#rules).

What they come to is in ``tests/pins/expressions``.
"""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from hookline.rules.cost import LIMIT
from hookline.rules.program import (
    EvaluationError,
    ExpressionError,
    Scope,
    compile_expression,
)

EVENT: dict[str, Any] = {
    "session_id": "s",
    "cwd": "/work",
    "hook_event_name": "BeforeTool",
    "timestamp": "2026-11-13T12:00:00.000Z",
    "transcript_path": "",
    "tool_name": "write_file",
    "tool_input": {"path": "a/.env", "content": "x", "list": [1, 2], "nil": None},
}


def evaluate(source: str, **tool_input: Any) -> Any:
    event = EVENT | {"tool_input": EVENT["tool_input"] | tool_input}
    return compile_expression(source).evaluate(Scope(event, "/work", "/work"))


@pytest.mark.parametrize(
    ("value", "source"),
    [
        (10**400, "tool_input.x > 5"),
        (float("nan"), "tool_input.x == null"),
        (float("inf"), "tool_input.x == null"),
        (("a", "b"), "tool_input.x[1] == 'b'"),
    ],
)
def test_no_value_hides_from_an_expression(value: Any, source: str) -> None:
    """Nor does what JSON cannot hold; the rest is in ``expressions/values.json``."""
    assert evaluate(source, x=value) is True


def test_only_what_is_used_is_converted() -> None:
    """An unreadable value elsewhere is not looked at."""
    assert evaluate("tool_input.path == 'a/.env'", content=object()) is True
    assert evaluate("has(tool_input.content)", content=object()) is True


@pytest.mark.parametrize(
    "source",
    [
        "tool_input.n.exists(i, tool_input.n.exists(j, i == j + 1000000))",
        "tool_input.n.exists(i, i + 1000000 in tool_input.n)",
        "tool_input.n.exists(i, tool_input.text.contains('zy'))",
        "tool_input.n.map(i, tool_input.text).join(',').contains('y')",
        "tool_input.text.replace('z', tool_input.text).size() == 1",
        "tool_input.text.replace('z', 'zzzzzzzzzzzzzzzzz').replace('z', 'zzzzz') == ''",
        "tool_input.n.map(i, string(i)).exists(t, t.programs().size() > 1)",
        "tool_input.text.programs().size() > 0",
        "tool_input.text.runs('z *')",
        "tool_input.text.matches('(a{1,900}b{1,900}){1,3}$')",
        "tool_input.n.exists(i, string(i).matches('x{0,300}y'))",
        "tool_input.n.map(i, i).size() == 1",
        "tool_input.n.filter(i, i > 0).size() == 1",
        "tool_input.parts.exists(p, tool_input.parts.exists(q, q.contains(p + 'y')))",
        "tool_input.n.all(i, tool_input.parts.all(p, p.matches('(z+)+y')))",
        # What a macro or a list literal gives is as large as what it is made of.
        "tool_input.lines.map(x, x).exists(x, x.programs().size() > 9999)",
        "[tool_input.text].exists(x, tool_input.n.exists(i, x.contains('b')))",
        # Repeats are copies, which random text makes the engine try one by one.
        "tool_input.bits.matches('[ab]*a[ab]{500}c')",
        "tool_input.bits.matches('[ab]*a([ab]{25}){20}c')",
        "tool_input.bits.matches(tool_input.repeats + 'c')",
        # Classes of Unicode take a millisecond each to compile, every time.
        r"tool_input.parts.exists(p, p.matches(r'\pL\p{Greek}'))",
        "tool_input.classes.exists(c, 'a'.matches(c))",
        "tool_input.globs.exists(g, tool_input.deep.glob(g))",
        "tool_input.deep.glob(tool_input.stars)",
    ],
)
def test_what_would_take_too_long_is_refused(source: str) -> None:
    """An expression has a cost limit, by the size of what it is given."""
    big = {
        "n": list(range(9000)),
        "text": "z" * 1_000_000,
        "parts": ["z" * 1000] * 1000,
        "lines": [f"{'ls;' * 300}{number}" for number in range(400)],
        "bits": "".join(random.Random(1).choices("ab", k=300_000)),
        "repeats": "[ab]*a[ab]{1000}",
        "classes": [rf"(?i)(\pL{{30}}){{30}}{number}" for number in range(30)],
        "deep": "a/" * 2000,
        "globs": [f"{'*a' * 400}{{b,c,d,e}}{number}" for number in range(20)],
        "stars": "**/a/" * 180 + "b",
    }
    started = time.perf_counter()
    with pytest.raises(EvaluationError, match="would cost"):
        evaluate(source, **big)
    # Generous: the evaluations themselves take from 3 s to hours.
    assert time.perf_counter() - started < 2


@pytest.mark.parametrize(
    "source",
    [
        "tool_input.messages.exists(m, m.content.contains('secret'))",
        "tool_input.messages.filter(m, m.role == 'user').size() > 2000",
        "tool_input.messages.map(m, m.content).join(' ').matches('(?i)pass *[a-z]+9')",
        "tool_input.text.contains('secret') || tool_input.text.matches('[A-Z]{20}')",
        "tool_input.paths.exists(p, ['**/.env', '**/*.pem'].exists(g, p.glob(g)))",
        "tool_input.paths.exists(p, p.matches('AKIA[0-9A-Z]{16}') || p.within('/no'))",
    ],
)
def test_large_events_of_every_day_are_no_problem(source: str) -> None:
    messages = [{"role": "user", "content": "word " * 200}] * 1000
    text = "line of text\n" * 100_000
    paths = [f"src/package/module{number}.py" for number in range(300)]
    assert evaluate(source, messages=messages, text=text, paths=paths) is False


def test_no_key_takes_the_place_of_another() -> None:
    """Both are seen as ``b`` with U+FFFD: one of the values would not be seen.

    An event with such keys is refused before its rules are asked.
    """
    odd = {f"b{chr(0xD800)}": "secret", f"b{chr(0xD801)}": "harmless"}
    with pytest.raises(EvaluationError, match="two keys differ only"):
        evaluate("tool_input.odd.exists(k, tool_input.odd[k] == 'secret')", odd=odd)


def nested(levels: int) -> Any:
    value: Any = "end"
    for _ in range(levels):
        value = {"a": [value]}
    return value


def test_a_deep_value_is_read_or_refused() -> None:
    """It must never reach the engine so deep that the stack ends."""
    source = "tool_input.x == tool_input.y"
    assert evaluate(source, x=nested(50), y=nested(50)) is True
    with pytest.raises(EvaluationError, match="nested too deeply"):
        evaluate(source, x=nested(5000), y=nested(5000))


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("(" * 500 + "true" + ")" * 500, "recursion limit"),
        ("tool_name == '" + "x" * 30_000 + "'", "at most 20000 characters"),
        ("tool_name == '\ud800'", "surrogate"),
    ],
    ids=["deep", "long", "surrogate"],
)
def test_an_expression_that_cannot_be_compiled_is_refused_as_a_whole(
    source: str, problem: str
) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(source)
    assert problem in caught.value.problem
    assert (caught.value.line, caught.value.column) == (1, 1)


def test_an_expression_is_compiled_once() -> None:
    source = "tool_name == 'only once'"
    assert compile_expression(source) is compile_expression(source)


@pytest.mark.parametrize(
    ("source", "calls"),
    [
        ("tool_input.path.glob('**/.env') || tool_name.within('.')", 2),
        ("'git' in tool_input.path.programs()", 1),
        ("tool_input.path.programs().exists(p, p == 'git')", 1),
        ("tool_input.path.runs('git *')", 1),
        ("[tool_name].exists(p, p.within('.'))", 0),
        ("[tool_name].exists(p, tool_input.path.within(p))", 0),
    ],
)
def test_functions_outside_of_macros_are_called_without_the_engine(
    source: str, calls: int
) -> None:
    """It leaks what it hands to a function: megabytes with long commands."""
    program = compile_expression(source)
    assert len(program._calls) == calls
    assert program.evaluate(Scope(EVENT, "/work", "/work")) in {True, False}


def test_a_mistake_is_raised_anew_each_time() -> None:
    """One exception for all events would keep their frames, and so the events."""
    errors = []
    for _ in range(2):
        with pytest.raises(ExpressionError) as caught:
            compile_expression("tool_name ==")
        errors.append(caught.value)
    assert errors[0] is not errors[1]
    assert (
        str(errors[0]) == str(errors[1]) == "column 13: the expression ends too early"
    )


def test_the_limit_is_about_a_tenth_of_a_second() -> None:
    """What is just allowed must end soon: the loop cannot be interrupted."""
    source = "tool_input.parts.exists(p, p.contains('zzzzzzzzzy'))"
    program = compile_expression(source)
    event = {**EVENT, "tool_input": {"parts": ["z" * 60_000] * 600}}
    scope = Scope(event, "/", "/")
    cost = program._cost.bound({"tool_input": event["tool_input"]})
    assert LIMIT / 10 < cost < LIMIT
    started = time.perf_counter()
    assert program.evaluate(scope) is False
    assert time.perf_counter() - started < 5  # a guard against hanging


@pytest.mark.parametrize("call", ["within('.')", "glob('**/a/**/b/**/c/**')"])
def test_no_path_makes_a_function_hang(call: str) -> None:
    expression = f"tool_input.path.{call}"
    assert evaluate(expression, path="a/" * 2000) in {True, False}
    assert evaluate(expression, path="a" * 4096) in {True, False}
    with pytest.raises(EvaluationError, match="at most 4096 characters"):
        evaluate(expression, path="a" * 4097)
    with pytest.raises(EvaluationError, match="at most 4096 characters"):
        evaluate(expression, path="a/" * 3000)
