"""A matcher is searched in bounded time; undecided counts as a match.

Patterns that take years with ``re`` alone are in ``tests/pins/engine/matchers.json``.
"""

from __future__ import annotations

import logging
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.engine.matcher import (
    MAX_PATTERN_LENGTH,
    _Automaton,
    _parser,
    _UndecidedError,
    searcher,
)


def test_pattern_is_exact_where_the_names_are_many() -> None:
    search = searcher("|".join(f"name_{number}" for number in range(400)))
    assert (search("x" * 240 + "name_399"), search("x" * 256)) == (True, False)


HUGE = {
    "long": "a" * (MAX_PATTERN_LENGTH + 1),
    "many names": "|".join(f"name_{number}" for number in range(2000)),
    "nested deeply": "(" * 4000 + "a" + ")" * 4000,
    "wide classes": "(?i)" + "[\x00-\uffff]" * 500,
}


@pytest.mark.parametrize("pattern", HUGE.values(), ids=HUGE.keys())
def test_pattern_that_is_too_complex_matches_every_name_with_a_warning(
    pattern: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "hookline"):
        assert searcher(pattern)("read_file")
    assert "matches every name" in caplog.text
    assert len(caplog.text) < 1000


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
def test_automaton_finds_what_re_finds(pattern: str, name: str, flags: str) -> None:
    try:
        automaton = _Automaton(_parser.parse(flags + pattern))
    except _UndecidedError:
        return
    expected = re.search(flags + pattern, name) is not None
    assert automaton.finds(name) is expected


@given(patterns, st.text(ALPHABET, max_size=6))
def test_matcher_finds_what_re_finds(pattern: str, name: str) -> None:
    """In a name that is short enough to ask ``re`` itself."""
    assert searcher(pattern)(name) is (re.search(pattern, name) is not None)
