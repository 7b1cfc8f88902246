"""Expressions on events: protocol.md#rules, issue 13.1."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from hookline.expressions.cost import LIMIT
from hookline.expressions.program import (
    EvaluationError,
    ExpressionError,
    MissingFieldError,
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
    ("source", "value"),
    [
        ("tool_input.path.endsWith('.env')", True),
        ("tool_input['path'] == 'a/.env'", True),
        ("event.tool_input.path", "a/.env"),
        ("tool_name in ['write_file', 'replace']", True),
        ("tool_input.list.exists(n, n == 2)", True),
        ("tool_input.exists(key, key == 'path')", True),
        ("has(tool_input.content) && !has(tool_input.nothing)", True),
        ("now.getDayOfWeek() == 5", True),  # a Friday
        ("now < timestamp('2026-11-14T00:00:00Z')", True),
        ("tool_input.path.lowerAscii().split('/')[1]", ".env"),
        ("tool_input.nil == null", True),
        ("tool_input.nothing == 1 || tool_name == 'write_file'", True),
        ("tool_input.nothing == 1 && tool_name == 'other'", False),
    ],
)
def test_an_expression_sees_the_fields_of_the_event(source: str, value: Any) -> None:
    assert evaluate(source) == value


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("tool_input.nothing == 1", "tool_input.nothing"),
        ("tool_input.nothing.more == 1", "tool_input.nothing"),
        ("event.tool_input.nothing == 1", "event.tool_input.nothing"),
        ("!(tool_input.nothing == 1)", "tool_input.nothing"),
        ("tool_input.nothing == 1 || false", "tool_input.nothing"),
        ("tool_input.list[5] == 1", "index 5"),
        ("tool_input.list[-1] == 1", "index -1"),
        ("prompt.contains('x')", "prompt"),
        ("tool_input[tool_name] == 1", "write_file"),
    ],
)
def test_what_the_event_does_not_have_is_named(source: str, missing: str) -> None:
    """A missing key is no failure: the rule is false (protocol.md#rules)."""
    with pytest.raises(MissingFieldError) as caught:
        evaluate(source)
    assert str(caught.value) == missing


@pytest.mark.parametrize(
    "source",
    [
        "tool_input.path > 3",
        "tool_input.path.size.x",
        "tool_input.nil.more",
        "tool_name.matches('(')",
        "1 / 0 == 1",
        "tool_input.path.within(tool_input.list)",
    ],
)
def test_any_other_failure_is_no_missing_field(source: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        evaluate(source)
    assert not isinstance(caught.value, MissingFieldError)


@pytest.mark.parametrize("source", ["tool_name", "tool_input.list", "1", "null"])
def test_only_true_and_false_are_verdicts(source: str) -> None:
    program = compile_expression(source)
    with pytest.raises(EvaluationError, match="neither true nor false"):
        program.is_true(Scope(EVENT, "/", "/"))


@pytest.mark.parametrize(
    ("source", "line", "column", "problem"),
    [
        (
            "tool_inptu.path == ''",
            1,
            1,
            "no event has a field 'tool_inptu': did you mean 'tool_input'?",
        ),
        ("tool_name ==", 1, 13, "the expression ends too early"),
        ("true &&\n  nam == 'x'", 2, 3, "no event has a field 'nam'"),
        (
            "tool_name.endswith('x')",
            1,
            19,
            "there is no function 'endswith': did you mean 'endsWith'?",
        ),
        ("tool_name = 'x'", 1, 11, "'=' is not an operator: write =="),
        ("true & false", 1, 6, "'&' is not an operator: write &&"),
        ("true and false", 1, 6, "'and' is not an operator: write &&, || or !"),
        ("'x' not in tool_name", 1, 5, "'not' is not an operator: write &&, || or !"),
        ("len(tool_name) > 3", 1, 4, "no function 'len': did you mean 'size'?"),
        ("tool_name.glob()", 1, 15, "glob() does not take these arguments"),
        ("'a' == 1", 1, 5, "found no matching overload"),
        ("(" * 500 + "true" + ")" * 500, 1, 1, "recursion limit"),
        ("tool_name == '" + "x" * 30_000 + "'", 1, 1, "at most 20000 characters"),
        ("tool_name == '\ud800'", 1, 1, "surrogate"),
    ],
)
def test_a_mistake_is_shown_where_it_is(
    source: str, line: int, column: int, problem: str
) -> None:
    """Line and column within the expression, and the nearest name.

    Issue 17: what is written as in Python is told in CEL.
    """
    with pytest.raises(ExpressionError) as caught:
        compile_expression(source)
    error = caught.value
    assert problem in error.problem
    assert (error.line, error.column) == (line, column)


@pytest.mark.parametrize(
    ("value", "source"),
    [
        ("a\0.env", "tool_input.x.endsWith('.env')"),
        ("a\ud800.env", "tool_input.x.endsWith('.env')"),
        ("\udcff\ud83d", "tool_input.x.size() == 2"),
        ("é€🙂", "tool_input.x.size() == 3"),
        (2**70, "tool_input.x > 5"),
        (-(2**70), "tool_input.x < 5"),
        (10**400, "tool_input.x > 5"),
        (2**63, "tool_input.x > 5"),
        (float("nan"), "tool_input.x == null"),
        (float("inf"), "tool_input.x == null"),
        (("a", "b"), "tool_input.x[1] == 'b'"),
        ({"a\0": 1}, "tool_input.x.exists(k, k.startsWith('a'))"),
    ],
)
def test_no_value_hides_from_an_expression(value: Any, source: str) -> None:
    """Neither a NUL, which the engine would cut at, nor what JSON cannot hold."""
    assert evaluate(source, x=value) is True


def test_only_what_is_used_is_converted() -> None:
    """An unreadable value elsewhere is not looked at (issue 13.1)."""
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


@pytest.mark.parametrize(
    "source",
    [
        "tool_input.file == 'x' || tool_input.n.endsWith('x')",
        "tool_input.n.endsWith('x') || tool_input.file == 'x'",
        "tool_input.file == 'x' || tool_input.path == 'x' || tool_input.n > 'x'",
        "tool_input.file == 'x' || tool_input.n",
        "(tool_input.file == 'x' || tool_input.n > 'x') && tool_name != ''",
        "tool_name != '' && (tool_input.file == 'x' || tool_input.n > 'x')",
        "!(tool_input.file == 'x' || tool_input.n > 'x')",
        "(tool_input.file == 'x' || tool_input.n > 'x') ? true : false",
    ],
)
def test_a_missing_field_does_not_hide_what_fails_beside_it(source: str) -> None:
    """Nobody passes by making one side of ``||`` fail (protocol.md#rules)."""
    with pytest.raises(EvaluationError) as caught:
        evaluate(source, n=5)
    assert not isinstance(caught.value, MissingFieldError)


@pytest.mark.parametrize(
    "source",
    [
        "tool_input.file == 'x' || tool_input.n == 6",
        "tool_input.file == 'x' && tool_input.n.endsWith('x')",
        "(tool_input.file == 'x' || tool_input.path == 'y') && tool_input.n > 'x'",
        "tool_input.n == 5 ? tool_input.file == 'x' || tool_input.n == 6 : true",
    ],
)
def test_a_missing_field_alone_is_no_failure(source: str) -> None:
    with pytest.raises(MissingFieldError, match=r"tool_input\.file"):
        evaluate(source, n=5)


def test_no_key_takes_the_place_of_another() -> None:
    """Both are seen as ``b`` with U+FFFD: one of the values would not be seen."""
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


@pytest.mark.parametrize(
    ("tool_input", "outcome"),
    [
        ({"a": "x/.env"}, True),
        ({"b": "x/.env"}, True),
        ({"a": "x", "b": "y"}, False),
        ({"a": "x"}, MissingFieldError),
        ({}, MissingFieldError),
        ({"a": 5, "b": "x/.env"}, True),
        ({"a": 5, "b": "x"}, EvaluationError),
        ({"b": "x", "a": "a" * 5000}, EvaluationError),
    ],
)
def test_what_such_a_function_cannot_judge_counts_as_in_the_engine(
    tool_input: dict[str, Any], outcome: Any
) -> None:
    program = compile_expression(
        "tool_input.a.glob('**/.env') || tool_input.b.glob('**/.env')"
    )
    scope = Scope({**EVENT, "tool_input": tool_input}, "/work", "/work")
    if isinstance(outcome, bool):
        assert program.is_true(scope) is outcome
    else:
        with pytest.raises(outcome) as caught:
            program.is_true(scope)
        assert type(caught.value) is outcome


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
    values, _ = program._values(scope)
    assert LIMIT / 10 < program._cost.bound(values) < LIMIT
    started = time.perf_counter()
    assert program.evaluate(scope) is False
    assert time.perf_counter() - started < 5  # a guard against hanging


class TestPaths:
    """``within`` and ``glob``: whatever a path is spelled like."""

    @pytest.fixture
    def project(self, tmp_path: Path) -> Path:
        project = tmp_path / "project"
        for folder in ("src/deep", "secrets", "build"):
            (project / folder).mkdir(parents=True)
        (tmp_path / "outside").mkdir()
        (project / "link").symlink_to(project / "secrets")
        (project / "out").symlink_to(tmp_path / "outside")
        (project / "src" / "alias.txt").symlink_to(project / "secrets" / "key")
        return project

    def check(self, project: Path, path: str, call: str, cwd: str = ".") -> Any:
        event = EVENT | {"tool_input": {"path": path}}
        scope = Scope(event, str(project / cwd), str(project))
        return compile_expression(f"tool_input.path.{call}").evaluate(scope)

    @pytest.mark.parametrize(
        ("path", "inside"),
        [
            ("file:///etc/passwd", False),
            ("FILE://localhost/etc/passwd", False),
            ("file://{project}/src/%2e%2e/secrets/key", True),
            ("file://{project}/%2e%2e/outside", False),
        ],
    )
    def test_a_file_url_is_the_path_in_it(
        self, project: Path, path: str, inside: bool
    ) -> None:
        """Tools that take paths often take these too (issue 13.1)."""
        path = path.format(project=project)
        assert self.check(project, path, "within('.')") is inside

    @pytest.mark.parametrize("path", [" /etc/passwd", "secrets/key ", ".env\n"])
    @pytest.mark.parametrize("call", ["within('.')", "glob('**/.env')"])
    def test_blanks_around_a_path_fail(
        self, project: Path, path: str, call: str
    ) -> None:
        """A tool that removes them opens another file than one that does not."""
        with pytest.raises(EvaluationError, match="blanks around a path"):
            self.check(project, path, call)

    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            ("secrets/key", True),
            ("secrets", True),
            ("secrets/", True),
            ("./src/../secrets/key", True),
            ("src/deep/../../secrets/new/file", True),
            ("link/key", True),
            ("link/../secrets/key", True),
            ("src/alias.txt", True),
            ("{project}/secrets/key", True),
            ("{project}//secrets///key", True),
            ("secrets2/key", False),
            ("src/secrets/key", False),
            ("secrets/../src/a", False),
            ("", False),
        ],
    )
    def test_within_a_folder(self, project: Path, path: str, expected: bool) -> None:
        path = path.replace("{project}", str(project))
        assert self.check(project, path, "within('secrets')") is expected

    def test_paths_are_relative_to_the_working_directory(self, project: Path) -> None:
        """protocol.md#process: paths in an input are relative to its ``cwd``."""
        assert self.check(project, "../secrets/k", "within('secrets')", cwd="src")
        assert not self.check(project, "secrets/k", "within('secrets')", cwd="src")

    @pytest.mark.parametrize("path", ["out/x", "/etc/passwd", "../outside/x", "~/x"])
    def test_a_way_out_of_the_project_is_seen(self, project: Path, path: str) -> None:
        assert self.check(project, path, "within('.')") is False

    def test_home_is_the_home(self, project: Path) -> None:
        home = str(Path.home())
        assert self.check(project, "~/x", f"within('{home}')") is True
        assert self.check(project, f"{home}/.ssh/id", "within('~/.ssh')") is True

    @pytest.mark.parametrize(
        ("path", "pattern", "expected"),
        [
            (".env", "**/.env", True),
            ("a/b/.env", "**/.env", True),
            ("/other/.env", "**/.env", True),
            ("src/../.env", "**/.env", True),
            ("x.env", "**/.env", False),
            (".env/x", "**/.env", False),
            (".env/x", "**/.env/**", True),
            ("src/a.py", "src/*.py", True),
            ("src/deep/a.py", "src/*.py", False),
            ("src/deep/a.py", "src/**/*.py", True),
            ("src/a.py", "src/**/*.py", True),
            ("src/a.ts", "src/*.{js,ts}", True),
            ("src/a.py", "*.py", False),
            ("a.py", "*.py", True),
            ("a[1].py", "a[[]1].py", True),
            ("src/alias.txt", "secrets/*", True),
            ("link/key", "secrets/key", True),
            ("a.PY", "*.py", False),
        ],
    )
    def test_globs(
        self, project: Path, path: str, pattern: str, expected: bool
    ) -> None:
        assert self.check(project, path, f"glob('{pattern}')") is expected

    @pytest.mark.parametrize("call", ["within('.')", "glob('**/a/**/b/**/c/**')"])
    def test_no_path_makes_them_hang(self, project: Path, call: str) -> None:
        assert self.check(project, "a/" * 2000, call) in {True, False}
        with pytest.raises(EvaluationError, match="at most 4096 characters"):
            self.check(project, "a/" * 3000, call)

    def test_programs_of_a_command_line(self) -> None:
        line = "cd x && sudo rm -rf y | tee z; bash -c 'curl u | sh'"
        found = evaluate("tool_input.command.programs()", command=line)
        assert {"rm", "tee", "curl", "sh"} <= set(found)
        words = ["bash", "-lc", "git push --force"]
        assert "git" in evaluate("tool_input.command.programs()", command=words)

    def test_commands_of_a_line_by_a_pattern(self) -> None:
        push = "tool_input.command.runs('git push *')"
        assert evaluate(push, command="cd x && git push origin")
        assert evaluate(push, command=["bash", "-lc", "git push --force"])
        assert not evaluate(push, command="git log --grep push")
