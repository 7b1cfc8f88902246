"""The variables that a command uses and does not set itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .parse import SimpleCommand, Word, all_words, parse
from .words import NAME, Words, assignment, plain_text, without_keywords

_USE = re.compile(rf"\$(?:\{{[#!]?)?({NAME})(:?[-=+?])?")
_RUNS_MORE = frozenset({"source", ".", "eval"})
"""What these run may set anything."""
_TESTS = frozenset({"test", "[", "[["})
_SHELL_SETS = """
BASH BASHOPTS BASHPID BASH_ALIASES BASH_ARGC BASH_ARGV BASH_COMMAND
BASH_EXECUTION_STRING BASH_LINENO BASH_REMATCH BASH_SOURCE BASH_SUBSHELL BASH_VERSINFO
BASH_VERSION DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GROUPS HOSTNAME HOSTTYPE
IFS LINENO MACHTYPE OLDPWD OPTARG OPTERR OPTIND OSTYPE PATH PIPESTATUS PPID PS4 PWD
RANDOM REPLY SECONDS SHELL SHELLOPTS SHLVL SRANDOM TERM UID _
"""
SHELL_VARIABLES = frozenset(_SHELL_SETS.split())
"""What bash sets by itself."""


def used_variables(command: str) -> list[str]:
    """The variables that a command relies on, in order; none where that is not known.

    One with a default, as in ``${name:-value}``, or one that the command tests is not
    relied on.
    """
    commands = list(_all_commands(parse(command)))
    if any(_program(one) in _RUNS_MORE for one in commands):
        return []
    words = Words({}, "/")
    words.note_assignments(commands)
    tested = [one for one in commands if _program(one) in _TESTS]
    optional = {name for one in tested for name, _ in _uses(one.all_words)}
    uses = _uses(all_words(parse(command)))
    found = dict.fromkeys(name for name, default in uses if not default)
    return [name for name in found if name not in optional and not words.knows(name)]


def _uses(words: Iterable[Word]) -> Iterator[tuple[str, str]]:
    """The name of each variable, and what gives it a default."""
    for piece in (piece for word in words for piece in word):
        if use := _USE.match(piece.source):
            yield use[1], use[2] or ""


def _all_commands(commands: Iterable[SimpleCommand]) -> Iterator[SimpleCommand]:
    for command in commands:
        yield command
        for word in all_words([command]):
            for piece in word:
                yield from piece.commands


def _program(command: SimpleCommand) -> str:
    for word in without_keywords(command.words):
        if assignment(word) is None:
            return plain_text(word)
    return ""
