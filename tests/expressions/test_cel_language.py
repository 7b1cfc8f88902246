"""What rules rely on in CEL, whichever engine evaluates it (issue 13.1; 0105)."""

from __future__ import annotations

from typing import Any

import pytest

from hookline.expressions.program import (
    EvaluationError,
    ExpressionError,
    MissingFieldError,
    Scope,
    compile_expression,
)

EVENT: dict[str, Any] = {
    "tool_name": "write_file",
    "timestamp": "2026-03-06T16:30:15.250Z",
    "prompt": "Grüße €5",
    "tool_input": {
        "path": "src/.env",
        "lines": 3,
        "share": 2.5,
        "force": True,
        "none": None,
        "words": ["rm", "-rf", "/"],
        "mixed": [1, "two", None, 3.0, {"deep": "yes"}],
        "env": {"HOME": "/root", "content-type": "text"},
        "empty": "",
    },
}


def evaluate(expression: str) -> Any:
    return compile_expression(expression).evaluate(Scope(EVENT, "/work", "/work"))


TRUE = [
    # texts count characters, not bytes
    "prompt.size() == 8 && size('πέντε') == 5",
    "prompt.startsWith('Grü') && prompt.endsWith('€5') && prompt.contains('ße €')",
    "tool_input.path.matches('(^|/)[.]env$') && !tool_input.path.matches('^[.]env')",
    "'a.b.c'.split('.') == ['a', 'b', 'c'] && ['a', 'b'].join('-') == 'a-b'",
    "' X '.trim().lowerAscii() == 'x' && 'ab'.replace('b', 'c') == 'ac'",
    "'tacocat'.substring(4) == 'cat' && 'tacocat'.indexOf('c') == 2",
    "tool_name + '!' == 'write_file!' && 'a' < 'b' && 'Z' < 'a'",
    r"'\u00e9' == 'é' && r'\d' == '\\d'",
    # lists
    "'rm' in tool_input.words && !('ls' in tool_input.words)",
    "tool_input.words[0] == 'rm' && size(tool_input.words) == 3",
    "tool_input.words + ['x'] == ['rm', '-rf', '/', 'x']",
    "3.0 in tool_input.mixed && 1u in tool_input.mixed && !('1' in tool_input.mixed)",
    # maps
    "'HOME' in tool_input.env && tool_input.env['content-type'] == 'text'",
    "tool_input['path'] == tool_input.path && size(tool_input.env) == 2",
    "{'a': 1, 'b': [2]} == {'b': [2], 'a': 1}",
    # macros, over keys in the case of a map
    "tool_input.words.exists(word, word.startsWith('-'))",
    "!tool_input.words.all(word, word.startsWith('-')) && [].all(x, false)",
    "tool_input.words.exists_one(word, word == '/')",
    "tool_input.words.filter(word, word.size() == 2) == ['rm']",
    "tool_input.words.map(word, word.size()) == [2, 3, 1]",
    "tool_input.env.exists(name, name == 'HOME') && tool_input.env.all(n, n != 'X')",
    # an error on one side gives way to the other, on whichever side it is
    "tool_input.missing == 'x' || true",
    "true || tool_input.missing == 'x'",
    "!(tool_input.missing == 'x' && false)",
    "1 / 0 == 1 || tool_name == 'write_file'",
    "tool_input.words.exists(x, x > 1 || x == '-rf')",
    "!tool_input.mixed.all(x, x < 0)",
    # presence
    "has(tool_input.path) && !has(tool_input.missing) && has(tool_input.none)",
    "!has(tool_input.env.PATH) && has(tool_input.empty)",
    "has(tool_input.missing) ? tool_input.missing == 1 : true",
    # numbers of different types are compared by what they are
    "tool_input.lines == 3.0 && tool_input.lines == 3u && tool_input.share > 2",
    "7 / 2 == 3 && -7 / 2 == -3 && 7 % 2 == 1 && 7.0 / 2.0 == 3.5",
    "int('12') == 12 && double('1.5') == 1.5 && string(3) == '3'",
    # values of different types differ, and null is a value
    "tool_input.lines != 'x' && tool_input.none == null && tool_input.force != null",
    "tool_input.mixed[1] == 'two' && tool_input.mixed[4].deep == 'yes'",
    # time
    "timestamp(timestamp) == timestamp('2026-03-06T16:30:15.250Z')",
    "timestamp(timestamp).getDayOfWeek() == 5 && now.getHours('+01:00') == 17",
    "timestamp(timestamp) - timestamp('2026-03-06T16:00:00Z') > duration('30m')",
    "timestamp(timestamp) + duration('24h') > now && duration('90s').getMinutes() == 1",
    "type(tool_input.lines) == int && type(tool_input.none) == type(null)",
]


@pytest.mark.parametrize("expression", TRUE)
def test_an_expression_means_what_cel_says(expression: str) -> None:
    assert evaluate(expression) is True


@pytest.mark.parametrize(
    "expression",
    [
        "tool_input.missing == 'x'",
        "tool_input.env.PATH.startsWith('/')",
        "tool_input.words[9] == 'x'",
        "tool_input.missing == 'x' || false",
        "tool_input.missing == 'x' && true",
        "tool_input.words.exists(word, tool_input.missing == word)",
        "tool_input.missing ? true : true",
        "prompt_response == 'x'",
    ],
)
def test_a_field_that_the_event_does_not_have_is_missing(expression: str) -> None:
    with pytest.raises(MissingFieldError):
        evaluate(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "tool_input.path < 3",
        "tool_input.path + 3 == 4",
        "1 / 0 == 1",
        "9223372036854775807 + tool_input.lines > 0",
        "tool_input.path ? true : false",
        "tool_input.path && true",
        "!tool_input.path",
        "tool_input.lines.startsWith('3')",
        "tool_input.path.matches('(')",
        "tool_input.path.nested == 1",
        "int(tool_input.path) == 1",
        "timestamp(tool_input.path) < now",
        "tool_input.words.all(word, word > 1)",
    ],
)
def test_what_cannot_be_evaluated_is_an_error_and_nothing_missing(
    expression: str,
) -> None:
    with pytest.raises(EvaluationError) as raised:
        evaluate(expression)
    assert not isinstance(raised.value, MissingFieldError)


@pytest.mark.parametrize(
    "expression",
    [
        "tool_nam == 'x'",
        "tool_name ==",
        "tool_name = 'x'",
        "tool_name == 'x",
        "unknown(tool_name)",
        "tool_name.unknown()",
        "1 + 'x' == 2",
        "",
    ],
)
def test_what_cannot_be_evaluated_on_any_event_does_not_compile(
    expression: str,
) -> None:
    with pytest.raises(ExpressionError):
        compile_expression(expression)
