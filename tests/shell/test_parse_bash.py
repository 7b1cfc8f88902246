"""The words of generated commands are those that bash makes of them."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hookline.shell.parse import parse, quote_folders

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")

VARIABLES = {"CLAUDE_PROJECT_DIR": "/a-b", "HOME": "/home/me", "EMPTY": ""}

plain = st.text(alphabet="abc019_./:@%+,=-#^]", min_size=1, max_size=6)
inside = st.text(alphabet="ab 1;|&<>()#*?~{},=!\n\t/-", max_size=6)
expansion = st.sampled_from(
    ["$CLAUDE_PROJECT_DIR", "${CLAUDE_PROJECT_DIR}", "${HOME}", "$EMPTY", "${EMPTY}"]
)
escape = st.sampled_from(list("ab $`\"'\\;|&<>()*?[{#~")).map(lambda char: f"\\{char}")
double = st.lists(
    inside | expansion | st.sampled_from(['\\"', "\\$", "\\\\", "\\`", "\\a", "'"]),
    max_size=4,
).map(lambda parts: '"' + "".join(parts).replace("!", ".") + '"')
single = (inside | st.just('"\\$')).map(lambda text: f"'{text}'")
ansi = st.lists(
    st.sampled_from(
        ["a", "\\n", "\\t", "\\x41", "\\101", "\\u0041", "\\'", "\\\\", '"']
    )
    | plain,
    max_size=4,
).map(lambda parts: "$'" + "".join(parts) + "'")
pieces = plain | escape | double | single | ansi | expansion
joined = st.lists(pieces, min_size=1, max_size=4).map("".join)
word = joined.filter(lambda text: text[0] != "#")  # a comment
commands = st.lists(word, min_size=1, max_size=4).map(" ".join)


def words_by_bash(text: str) -> list[str]:
    line = f"printf '%s\\0' x {text}"
    printed = subprocess.run(
        ["bash", "-c", line], env=VARIABLES, capture_output=True, check=True
    ).stdout
    return printed.decode().split("\0")[1:-1]


@given(commands)
@settings(max_examples=150, deadline=None)
def test_words_are_those_of_bash(command: str) -> None:
    simple = parse(f"x {command}")
    assert len(simple) == 1
    texts = [word.known(VARIABLES) for word in simple[0].words[1:]]
    assume(None not in texts)  # a letter after $NAME makes another name of it
    # bash drops a word that is nothing but an unquoted empty variable.
    is_dropped = [
        all(piece.source and not piece.quoted for piece in word)
        for word in simple[0].words[1:]
    ]
    words = [
        text
        for text, dropped in zip(texts, is_dropped, strict=True)
        if text or not dropped
    ]
    assert words == words_by_bash(command)


@given(commands)
@settings(max_examples=50, deadline=None)
def test_quoting_project_dirs_changes_no_word(command: str) -> None:
    """The directory of this test has no blanks, so that quotes make no difference."""
    assert words_by_bash(quote_folders(command)) == words_by_bash(command)
