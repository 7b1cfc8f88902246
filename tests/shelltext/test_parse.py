"""Reading shell text: words, expansions, redirections, and what a command names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.shelltext.parse import (
    PROJECT_DIR_NAMES,
    all_words,
    executed_files,
    parse,
    plain_words,
    project_variables,
    quote_folders,
)

KNOWN = {"CLAUDE_PROJECT_DIR": "/my project", "HOME": "/home/me"}


def texts(line: str) -> list[list[str | None]]:
    return [[word.known(KNOWN) for word in one.words] for one in parse(line)]


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
    ],
)
def test_words_are_joined_and_expanded_as_a_shell_does(
    line: str, expected: list[list[str | None]]
) -> None:
    assert texts(line) == expected


@pytest.mark.parametrize(
    "word",
    [
        "$OTHER/x",
        "${HOME#/}",
        "${HOME:+x}",
        "${OTHER:-x}",
        "$(pwd)/x",
        "`pwd`/x",
        "<(ls)",
        "~other/x",
        "$CLAUDE_PROJECT_DIRECTORY",
        "$1",
        '"$@"',
    ],
)
def test_expansion_that_cannot_be_known_is_marked(word: str) -> None:
    assert texts(f"run {word}") == [["run", None]]


@pytest.mark.parametrize(
    ("word", "is_pattern"),
    [
        *(("*.py", True), ("a?", True), ("[ab]", True), ("{a,b}", True)),
        *(("'*.py'", False), ("\\*", False), ("[", False), ("[[", False), ("a", False)),
    ],
)
def test_patterns_are_told_from_quoted_text(word: str, is_pattern: bool) -> None:
    assert parse(word)[0].words[0].is_pattern is is_pattern


def test_redirections_are_not_words() -> None:
    (command,) = parse("a <in >out 2>>err b>c &>d 2>&1 <<<text")
    assert [word.known({}) for word in command.words] == ["a", "b"]
    found = [(operator, word.known({})) for operator, word in command.redirections]
    assert found == [
        *(("<", "in"), (">", "out"), (">>", "err"), (">", "c")),
        *(("&>", "d"), (">&", "1"), ("<<<", "text")),
    ]


def test_each_command_has_the_operator_before_it() -> None:
    found = [(one.operator, one.words[0].known({})) for one in parse("a|b&&c;d\ne")]
    assert found == [("", "a"), ("|", "b"), ("&&", "c"), (";", "d"), ("\n", "e")]


def test_here_document_is_text_and_its_substitutions_are_read() -> None:
    first, second = parse("cat <<A 3<<'B'\n$(one) x\nA\n$(two)\nB\nnext")
    assert second.words[0].known({}) == "next"
    assert first.redirections[1][1].known({}) == "$(two)\n"
    names = [word.known({}) for word in all_words((first,)) if len(word) == 1]
    assert "one" in names
    assert "two" not in names


def test_here_document_indented_by_tabs_ends_at_its_delimiter() -> None:
    assert texts("cat <<-END\n\tx\n\tEND\nnext") == [["cat"], ["next"]]


@pytest.mark.parametrize("line", ["((x = 1 << 2))\nrun", "echo $(( (1<<2) ))\nrun"])
def test_shift_in_arithmetic_starts_no_here_document(line: str) -> None:
    assert texts(line)[-1] == ["run"]


def test_here_document_without_its_end_hides_no_commands() -> None:
    assert ["run"] in texts("x[1<<2]=3\nrun")


def test_substitutions_are_read_at_any_depth() -> None:
    line = 'a "$(b `c` ${x:-$(d)})" <(e)'
    found = [word.known({}) for word in all_words(parse(line))]
    assert {*"abcde"} == {name for name in found if name}


def test_nesting_without_end_is_read_without_an_error() -> None:
    for opening in ("$(", "`", "${x:-", '"$(', "<(", "$((", "("):
        assert parse(opening * 5000) is not None


@given(st.text(alphabet="ab '\"\\$`(){}<>|&;#\n=,/-~*[]", max_size=60))
def test_any_mix_of_shell_characters_is_read_without_an_error(line: str) -> None:
    list(all_words(parse(line)))
    quote_folders(f"{line}$CLAUDE_PROJECT_DIR")
    plain_words(line)
    executed_files(line, "/my project/$x")


@pytest.mark.parametrize("name", [*PROJECT_DIR_NAMES, "HOOKLINE_CWD", "GEMINI_CWD"])
def test_folder_is_quoted_where_it_is_not(name: str) -> None:
    assert quote_folders(f"sh ${name}/x") == f'sh "${name}"/x'
    assert quote_folders(f"sh ${{{name}}}/x") == f'sh "${{{name}}}"/x'


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x `y $D` $(z $D)", 'x `y "$D"` $(z "$D")'),
        ('x "$D" "$(z $D)"', 'x "$D" "$(z "$D")"'),
        ("x ${y:-$D/a} '$D' \\$D", "x ${y:-\"$D\"/a} '$D' \\$D"),
        ("x <<E\n$D\nE\ny $D", 'x <<E\n$D\nE\ny "$D"'),
        ("x <<< $D # $D", 'x <<< "$D" # $D'),
        ("x $DX ${D:-y}", "x $DX ${D:-y}"),
    ],
)
def test_project_dir_is_quoted_only_where_the_shell_would_split_it(
    line: str, expected: str
) -> None:
    command = line.replace("$D", "$CLAUDE_PROJECT_DIR").replace(
        "{D", "{CLAUDE_PROJECT_DIR"
    )
    assert quote_folders(command) == expected.replace(
        "$D", "$CLAUDE_PROJECT_DIR"
    ).replace("{D", "{CLAUDE_PROJECT_DIR")


@pytest.mark.parametrize(
    "line", ["a | b", "a $HOME", "a 'b'", "A=1 b", "a ${CLAUDE_PROJECT_DIR:-x}", '"']
)
def test_command_that_needs_a_shell_has_no_plain_words(line: str) -> None:
    assert plain_words(line) is None


def test_known_variables_depend_on_the_project() -> None:
    assert project_variables("/p")["GEMINI_PROJECT_DIR"] == "/p"
    assert set(project_variables(None)) == {"HOME"}


@pytest.mark.parametrize("command", ['$""', 'echo $"hello"', 'x "$HOME$"'])
def test_translated_text_is_left_to_the_shell(command: str) -> None:
    assert plain_words(command) is None
