"""Issue 12.7: a matcher is searched in bounded time; undecided counts as a match."""

from __future__ import annotations

import logging
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.engine.matcher import (
    MAX_PATTERN_LENGTH,
    MAX_TARGET_LENGTH,
    _Automaton,
    _parser,
    _UndecidedError,
    searcher,
)
from tests.support.workshop import Workshop

CATASTROPHIC = {
    "nested": "^(a+)+$",
    "nested lazily": "^(a+?)+?$",
    "nested stars": "(a*)*$(?<!a)b",
    "deeply nested": "^((((a+)+)+)+)+$",
    "alternatives": "^(a|a)*$",
    "alternatives of two lengths": "^(a|aa)+$",
    "no quantifier": "(?:a|aa)" * 40 + "$",
    "optional many times": "a?" * 100 + "a" * 100 + "$",
    "counted": "^(?:a{1,20}){1,20}$",
    "counted more": "(?:(?:a?){100}){100}!",
    "many stars": "a*" * 12 + "!",
    "stars apart": ".*a.*a.*a.*a.*a.*!",
    "words": r"(\w+\s?)+!",
    "ignoring case": "(?i)^(A+)+$",
    "inside a flag group": "^(?i:A+)+$",
    "verbose": "(?x) ^ ( a + ) + $ # names",
    "a lookahead": "^(?=(a+)+$)",
    "behind a lookahead": "(?!.*z)^(a+)+$",
    "a reference": r"^(a+)+\1$",
    "a condition": r"^(a)?(?:(?(1)a|b)+)+$",
    "atomic": "^(?>(a+)+)$",
    "possessive": "^(?:(a+)++)++$",
    "empty and repeated": "(?:a?){1000000000}!",
    "nothing repeated": "(?:){1000000000}!",
}


@pytest.mark.parametrize("pattern", CATASTROPHIC.values(), ids=CATASTROPHIC.keys())
@pytest.mark.parametrize("length", [28, 64, MAX_TARGET_LENGTH - 1])
def test_no_pattern_holds_up_the_event_loop(pattern: str, length: int) -> None:
    """Each of them takes minutes or years with ``re`` alone; the guard is generous."""
    started = time.perf_counter()
    searcher(pattern)("a" * length + "!")
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("^(a+)+$", False),
        ("^(a+)+!$", True),
        ("^(a|aa)+$", False),
        ("^((((a+)+)+)+)+$", False),
        ("(?i)^(A+)+!$", True),
        ("^(?i:A+)+$", False),
        ("(?!.*z)^(a+)+$", False),
        ("(?!.*z)^(a+)+!$", True),
        (r"(\w+\s?)+\B!", False),
    ],
)
def test_a_risky_pattern_is_still_decided(pattern: str, found: bool) -> None:
    assert searcher(pattern)("a" * 200 + "!") is found


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"^(a+)+\1$", "^(?:(a+)++)++$", "^(?=(a+)+$)"),
        *(r"^(a+)+(?=\1)", r"^(a)(a+)+(?<=\1)", r"^(a+)+(?!(?:b|(?!\1)))"),
        r"^(a+)+(?=(?(1)a|b))",
    ],
)
def test_what_cannot_be_decided_counts_as_a_match(pattern: str) -> None:
    assert searcher(pattern)("a" * 200 + "!")


async def test_a_pattern_on_which_re_fails_counts_as_a_match(
    workshop: Workshop,
) -> None:
    """It is a bug in ``re``: one matcher must not stop the hooks of all others."""
    event = {"tool_name": "ba", "tool_input": {}}
    hook = workshop.runs("exit 2")
    result = await workshop.fire("BeforeTool", hook, given=event, matcher="((b).|)++")
    assert result.blocked


def test_the_same_patterns_are_exact_where_the_name_is_short() -> None:
    search = searcher(r"^(a+)\1$")
    assert (search("aaaa"), search("aaa")) == (True, False)


HUGE = {
    "long": "a" * (MAX_PATTERN_LENGTH + 1),
    "many names": "|".join(f"name_{number}" for number in range(2000)),
    "nested deeply": "(" * 4000 + "a" + ")" * 4000,
    "wide classes": "(?i)" + "[\x00-\uffff]" * 500,
}


@pytest.mark.parametrize("pattern", HUGE.values(), ids=HUGE.keys())
def test_a_pattern_that_is_too_complex_matches_every_name_with_a_warning(
    pattern: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "hookline"):
        assert searcher(pattern)("read_file")
    assert "matches every name" in caplog.text
    assert len(caplog.text) < 1000


def test_an_invalid_repetition_is_compared_literally() -> None:
    search = searcher("a{100000}{100000}")
    assert (search("a{100000}{100000}"), search("a")) == (True, False)


def test_a_list_of_many_names_is_exact_for_a_long_name() -> None:
    search = searcher("|".join(f"name_{number}" for number in range(400)))
    assert (search("x" * 240 + "name_399"), search("x" * 256)) == (True, False)


async def test_a_guard_with_such_a_matcher_runs_in_time(workshop: Workshop) -> None:
    hook = workshop.runs("exit 2")
    event = {"tool_name": "a" * 28 + "!", "tool_input": {}}
    result = await workshop.fire("BeforeTool", hook, given=event, matcher=r"^(a+)+\1$")
    assert result.blocked


ALPHABET = "abA_ 1!\n"
atoms = st.sampled_from(
    [
        *("a", "b", "_", "1", ".", "[ab]", "[^a]", "[a-z_]", r"\w", r"\d", r"\s"),
        *("^", "$", r"\b", r"\B", r"\Z", r"\A", "(?=a)", "(?!b)", "(?<=a)", "(?<!_)"),
        *("(?i:A)", "(?s:.)", "()", "(?:)", "(?!)"),
    ]
)
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda all_: f"({'|'.join(all_)})"),
        st.tuples(
            inner, st.sampled_from(["*", "+", "?", "*?", "+?", "{2}", "{1,3}", "{2,}"])
        ).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
    ),
    max_leaves=8,
)


@given(patterns, st.text(ALPHABET, max_size=8), st.sampled_from(["", "(?i)", "(?m)"]))
def test_the_automaton_finds_what_re_finds(pattern: str, name: str, flags: str) -> None:
    try:
        automaton = _Automaton(_parser.parse(flags + pattern))
    except _UndecidedError:
        return
    found = re.search(flags + pattern, name) is not None
    assert automaton.finds(name) is found


@given(patterns, st.text(ALPHABET, max_size=6))
def test_a_matcher_finds_what_re_finds(pattern: str, name: str) -> None:
    """In a name that is short enough to ask ``re`` itself."""
    assert searcher(pattern)(name) is (re.search(pattern, name) is not None)
