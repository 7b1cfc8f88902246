"""Shell lines that hide something by their length, and the parts of a command.

What rules see of lines is in ``tests/pins/shell/programs.json``; recipes see parts.
"""

from __future__ import annotations

import shlex

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hookline.shell.commands import MAX_LINE, commands, programs


def test_arguments_added_by_another_program_are_marked() -> None:
    assert commands("echo / | xargs -n 1 rm -rf")[-1].appended
    assert commands("parallel rm -rf ::: /")[-1].appended


def test_redirections_are_not_words() -> None:
    (command,) = commands("sort <in >out 2>>err a>b &>c 2>&1")
    assert command.words == ["sort", "a"]
    assert command.writes == ["out", "err", "b", "c"]
    assert command.reads == ["in"]


def test_flags_and_operands_are_separated() -> None:
    (command,) = commands("rm -rf --force=x a -- -b")
    assert command.flags == {"r", "f", "force"}
    assert command.operands == ["a", "-b"]
    assert commands("/usr/bin/rm x")[0].name == "rm"


def test_a_long_chain_of_wrappers_is_opaque() -> None:
    """Each is taken off one after the other, which takes time."""
    assert "rm" in programs("sudo " * 90 + "rm x")
    assert commands("sudo " * 200 + "rm x")[-1].opaque


@pytest.mark.parametrize(
    "line",
    [
        "echo " + "x " * 20_000 + "; rm -rf /",
        "echo {" + "x," * 20_000 + "x}; rm -rf /",
        "echo " + "{a,b}" * 40 + "; rm -rf /",
        "a=xxxxxxxxxx; " + "a=$a$a; " * 20_000 + "rm -rf /",
    ],
    ids=["words", "braces", "doubled-braces", "doubled-variable"],
)
def test_padding_hides_nothing(line: str) -> None:
    read_commands = commands(line)
    assert any(command.opaque for command in read_commands)


@given(st.text(max_size=200))
@settings(max_examples=200)
def test_any_text_is_read_without_an_error(line: str) -> None:
    commands(line)


@given(st.text(alphabet="ab '\"\\$`(){}<>|&;#\n=,/-", max_size=60))
@settings(max_examples=300)
def test_any_mix_of_shell_characters_is_read_without_an_error(line: str) -> None:
    commands(line)


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=5))
@example(["\ue000a\ue001b\ue002"])
@settings(max_examples=200)
def test_quoted_words_come_back_as_they_were(words: list[str]) -> None:
    line = shlex.join(["program", *words])
    assert commands(line)[0].words == ["program", *words]


HOSTILE = {
    "words": "x ",
    "commands": "a;",
    "substitutions": "$(",
    "substitutions-in-quotes": '"$(',
    "backticks": "`\\`",
    "defaults": "${x:-",
    "parentheses": "(",
    "quotes": "'",
    "heredocs": "cat <<A\n",
    "heredocs-in-substitutions": "$(cat <<A\n",
    "braces": "{a,b}",
    "nested-braces": "{{a,b},",
    "doubling": "a=$a$a;",
    "find": "find -exec find ",
    "eval": "eval 'a;b' ",
    "wrappers": "sudo ",
}


def test_a_long_hostile_line_is_read_in_bounded_time(
    subtests: pytest.Subtests,
) -> None:
    """It took minutes where each part was searched for in the rest of the line."""
    for name, unit in HOSTILE.items():
        for length in (MAX_LINE, 1_000_000):
            with subtests.test(name, length=length):
                line = (unit * (length // len(unit)))[:-7] + "\nrm -rf /"
                # What is not read must show: nothing may hide behind it.
                names = programs(line)
                assert not names or "?" in names or "rm" in names


def test_a_line_of_a_few_variables_that_multiply_is_bounded() -> None:
    calls = "".join(f"x{i}='{f'eval $x{i + 1};' * 9}';" for i in range(20))
    assert "?" in programs(calls + "eval $x0")


def test_a_line_longer_than_any_that_can_run_is_not_read() -> None:
    assert programs("rm x " * MAX_LINE) == ["?"]
    assert commands("rm x " * MAX_LINE)[-1].opaque


def test_nesting_that_is_not_read_is_opaque() -> None:
    assert commands("echo " + "${x:-" * 60 + "$(rm -rf /)" + "}" * 60)[-1].opaque
