"""Which files the words of a hook's command name, as far as that can be told.

Nothing is run. Where the shell would have the last word (variables, substitutions,
conditions, a ``cd``) nothing is claimed, so that what is reported is surely so.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

_PROJECT_VARIABLE = re.compile(
    r"\$(?:\{(?:HOOKLINE|LLXPRT|GEMINI|CLAUDE)_PROJECT_DIR\}"
    r"|(?:HOOKLINE|LLXPRT|GEMINI|CLAUDE)_PROJECT_DIR\b)"
)
_PYTHON_VARIABLE = re.compile(r"\$(?:HOOKLINE_PYTHON|\{HOOKLINE_PYTHON\})$")
_INTERPRETER = re.compile(
    r"(?:python|pypy)[\d.]*|bash|sh|dash|zsh|ksh|node|deno|bun|ruby|perl|php"
)
_READERS = frozenset({".", "source"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_DECIDED_BY_THE_SHELL = re.compile(r"[$`*?\[\]{}!\n]")
_OPERATORS = "();<>|&\n"
_PREFIXES = frozenset({"exec", "nohup", "command", "env", "time", "then", "do"})
_CONDITIONS = frozenset(
    {"if", "case", "while", "until", "for", "test", "[", "[[", "cd", "pushd", "eval"}
)
_OPTIONS_WITH_A_WORD = frozenset({"-W", "-X", "-r", "--require", "--import", "-o"})


class NamedFile(Struct, frozen=True):
    """A file that a command runs."""

    word: str
    """As the command spells it, the project's directory filled in."""
    is_program: bool
    """Run by itself, so that it must be executable; else an interpreter reads it."""

    def under(self, project_dir: Path | None) -> Path | None:
        """Its path, or None where that depends on a project that is not known."""
        path = Path(self.word)
        if path.is_absolute():
            return path
        return None if project_dir is None else project_dir / path


def named_files(command: str, project_dir: Path | None = None) -> list[NamedFile]:
    """Find the scripts and programs that a command names by a path."""
    files: list[NamedFile] = []
    if "$(" in command or "`" in command:
        return files
    for words in _simple_commands(command):
        if words[0] in _CONDITIONS:
            break
        file = _file_of(words)
        if file and (word := _expanded(file.word, project_dir)):
            files.append(NamedFile(word, file.is_program))
    return files


def _simple_commands(command: str) -> Iterator[list[str]]:
    words: list[str] = []
    skip = False
    for word in _shell_words(command):
        if not word or set(word) - set(_OPERATORS):
            if not skip:
                words.append(word)
            skip = False
        elif "<<" in word:
            break  # what follows is a text, not a command
        elif set(word) & set("<>"):
            skip = True
        else:
            if words:
                yield words
            words, skip = [], False
    if words:
        yield words


def _shell_words(command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        return list(lexer)
    except ValueError:
        return []  # an open quote: the shell will say so better than we could


def _file_of(words: list[str]) -> NamedFile | None:
    words = list(words)
    while words and (words[0] in _PREFIXES or _ASSIGNMENT.match(words[0])):
        words.pop(0)
    if not words:
        return None
    program, *rest = words
    name = "python" if _PYTHON_VARIABLE.match(program) else Path(program).name
    if program in _READERS or _INTERPRETER.fullmatch(name):
        script = _script_of(rest, _code_letters(name))
        return NamedFile(script, is_program=False) if script else None
    return NamedFile(program, is_program=True) if "/" in program else None


def _code_letters(interpreter: str) -> str:
    """Name the short options after which no script is read."""
    if interpreter.startswith(("python", "pypy")):
        return "cm"
    return "cs" if interpreter.endswith("sh") else "ep"


def _script_of(words: list[str], code_letters: str) -> str | None:
    words = list(words)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option in _OPTIONS_WITH_A_WORD:
            del words[:1]
        elif not option.startswith("--") and set(option) & set(code_letters):
            return None
    if not words or not ("/" in words[0] or Path(words[0]).suffix):
        return None
    return words[0]


def _expanded(word: str, project_dir: Path | None) -> str | None:
    if project_dir is not None:
        word = _PROJECT_VARIABLE.sub(lambda _: str(project_dir), word)
        if word.startswith(str(project_dir)):
            rest = word.removeprefix(str(project_dir))
            return None if _DECIDED_BY_THE_SHELL.search(rest) else word
    if _DECIDED_BY_THE_SHELL.search(word):
        return None
    if word.startswith("~/"):
        return str(Path(word).expanduser())
    return None if word.startswith("~") else word
