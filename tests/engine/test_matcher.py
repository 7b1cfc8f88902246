"""A matcher is searched in bounded time; undecided counts as a match.

Patterns that take years with ``re`` alone are in ``tests/pins/engine/matchers.json``.
"""

from __future__ import annotations

import logging
import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hookline.engine.planner import MAX_PATTERN, compile_matcher

USUAL = {
    "mcp__.*__.*write.*": ("mcp__files__overwrite_it", "mcp__files__read"),
    ".*mcp.*write.*file.*": ("mcp__a__write_file", "mcp__github__create_pull_request"),
    ".*write.*|.*edit.*|.*delete.*": ("undelete", "read"),
    "^(?!read_|list_)": ("write", "read_file"),
    r"^(?:read|write)_\w+(?:_v\d+)?$": ("read_x_v2", "read_"),
    r"(.*)_and_\1$": ("a_and_a", "a_and_b"),
    "|".join(f"name_{number}" for number in range(400)): ("name_399", "nam_399"),
}


@pytest.mark.parametrize("pattern", USUAL)
def test_usual_matcher_is_decided_in_names_of_usual_length(pattern: str) -> None:
    matched, other = USUAL[pattern]
    matcher = compile_matcher(pattern)
    assert (matcher.matches(matched), matcher.matches(other)) == (True, False)
    assert not matcher.matches(f"{other:@>64}") or pattern.startswith("^(?!")


HUGE = {
    "long": "a" * (MAX_PATTERN + 1),
    "many names": "|".join(f"name_{number}" for number in range(2000)),
    "nested deeply": "(" * 4000 + "a" + ")" * 4000,
    "nested repeats": "(a+)+$",
    "hidden by a comment": "(?x)a#[\n(a+)+#]",
}


@pytest.mark.parametrize("pattern", HUGE.values(), ids=HUGE.keys())
def test_pattern_that_is_too_complex_matches_every_name_with_a_warning(
    pattern: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "hookline"):
        assert compile_matcher(pattern).matches("read_file")
    assert "matches every name" in caplog.text
    assert len(caplog.text) < 1000


REPEATS = ["*", "+", "?", "*?", "+?", "++", "{2}", "{1,3}", "{2,}", "{,30}", "{,}"]
atoms = st.sampled_from(
    [
        *(
            "a",
            "b",
            "_",
            "1",
            ".",
            "[ab]",
            "[^a]",
            "[]a]",
            r"[\[(]",
            r"\w",
            r"\d",
            r"\(",
        ),
        *("^", "$", r"\b", r"\B", r"\Z", r"\A", "(?=a)", "(?!b)", "(?<=a)", "(?<!_)"),
        *("(?i:A)", "(?s:.)", "()", "(?:)", "(?!)", r"\1", "(?#[)", "{", "(?#\\))"),
    ]
)
groups = st.sampled_from(["(", "(?:", "(?>", "(?=", "(?!", "(?i:"])
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.tuples(groups, st.lists(inner, min_size=1, max_size=3)).map(
            lambda pair: f"{pair[0]}{'|'.join(pair[1])})"
        ),
        st.tuples(inner, st.sampled_from(REPEATS)).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
        st.tuples(st.sampled_from(["a", ".", r"\w"]), st.sampled_from(REPEATS)).map(
            "".join
        ),
    ),
    max_leaves=20,
)
names = st.text("abA_ 1!\n(", max_size=8)


def is_valid(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, RecursionError):
        return False
    return True


@given(patterns.filter(is_valid), names, st.sampled_from(["", "!", "$", "(?<!a)b"]))
@example("(?:a?){1000000000}", "a", "!")
@example("(?:){1000000000}", "", "!")
@example("a?" * 100 + "a" * 100, "a", "$")
@example(".*" * 20, "a", "!")
@example("(.*)(.*)(.*)", "a", r"\1\2\3!")
def test_search_takes_bounded_time_in_any_name(
    pattern: str, name: str, ending: str
) -> None:
    matcher = compile_matcher(pattern + ending)
    for target in (name * 256, name + "a" * 256, "ab" * 128):
        started = time.thread_time()
        matcher.matches(target[:256])
        matcher.matches(target[: max(matcher.longest, 0)])
        assert time.thread_time() - started < 0.5


@given(patterns.filter(is_valid), names)
def test_matcher_that_is_decided_finds_what_re_finds(pattern: str, name: str) -> None:
    matcher = compile_matcher(pattern)
    if len(name) <= matcher.longest:
        assert matcher.matches(name) is (re.search(pattern, name) is not None)
    else:
        assert matcher.matches(name)


def test_invalid_expression_is_compared_literally_and_warned_about_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "hookline"):
        assert compile_matcher("odd(warned").matches("odd(warned")
        assert not compile_matcher("odd(warned").matches("odd(warned_more")
    assert caplog.text.count("odd(warned") == 1
