"""Words of shell text that bash itself cannot be asked for, and text of any kind.

What rules and reviews see of a line is in ``tests/pins/shell``, and how a folder is
quoted in ``tests/conformance/cases/project_dir_*``.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.shell.parse import (
    all_words,
    executed_files,
    parse,
    plain_words,
    quote_folders,
)

KNOWN = {"CLAUDE_PROJECT_DIR": "/my project", "HOME": "/home/me"}


def texts(line: str) -> list[list[str | None]]:
    return [[word.known(KNOWN) for word in command.words] for command in parse(line)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a b", [["a", "b"]]),
        ("a'b c'\"d e\"f", [["ab cd ef"]]),
        ('"$CLAUDE_PROJECT_DIR"/x.sh', [["/my project/x.sh"]]),
        ("${CLAUDE_PROJECT_DIR}/'x y'", [["/my project/x y"]]),
        ("'$CLAUDE_PROJECT_DIR'", [["$CLAUDE_PROJECT_DIR"]]),
        ("\\$HOME $HOME ~ ~/x", [["$HOME", "/home/me", "/home/me", "/home/me/x"]]),
        ("a~ '~' \\~/x --x=~/y", [["a~", "~", "~/x", "--x=~/y"]]),
        ("$'a\\tb\\x41\\u00e9\\101\\'' $\"c d\"", [["a\tbAéA'", "c d"]]),
        ("$'cut\\0off'", [["cut"]]),
        ("a \\\n b\\\nc", [["a", "bc"]]),
        ("a #b\nc#d", [["a"], ["c#d"]]),
        ("a; b && c | d & (e)", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("\"\" ''", [["", ""]]),
        ("open 'quote", [["open", "quote"]]),
        ('"a\\nb\\"c\\\\"', [['a\\nb"c\\']]),
        ("end\\", [["end\\"]]),
        ("$OTHER/x ${HOME#/} ${HOME:+x} ${OTHER:-x} $(pwd)/x", [[None] * 5]),
        ('`pwd`/x <(ls) ~other/x $CLAUDE_PROJECT_DIRECTORY $1 "$@"', [[None] * 6]),
    ],
)
def test_words_are_joined_and_expanded_as_a_shell_does(
    line: str, expected: list[list[str | None]]
) -> None:
    assert texts(line) == expected


def test_nesting_without_end_is_read_without_an_error() -> None:
    for opening in ("$(", "`", "${x:-", '"$(', "<(", "$((", "("):
        assert parse(opening * 5000) is not None


@given(st.text(alphabet="ab '\"\\$`(){}<>|&;#\n=,/-~*[]", max_size=60))
def test_any_mix_of_shell_characters_is_read_without_an_error(line: str) -> None:
    list(all_words(parse(line)))
    quote_folders(f"{line}$CLAUDE_PROJECT_DIR")
    plain_words(line)
    executed_files(line, "/my project/$x")


@pytest.mark.parametrize(
    "line",
    [
        *("a | b", "a $HOME", "a 'b'", "A=1 b", "a ${CLAUDE_PROJECT_DIR:-x}", '"'),
        *('$""', 'echo $"hello"', 'x "$HOME$"'),
    ],
)
def test_command_that_needs_a_shell_has_no_plain_words(line: str) -> None:
    assert plain_words(line) is None
