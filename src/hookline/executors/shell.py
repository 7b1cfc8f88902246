"""From a command string to the words that start it.

``$X_PROJECT_DIR`` works unquoted for a directory of any name: the shell expands it from
the environment, and where it stands unquoted it is put into double quotes first. The
name itself never becomes part of the command text, so nothing in it is ever executed.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache

_PROJECT_DIR = (
    r"\$(?:\{(?:HOOKLINE|LLXPRT|GEMINI|CLAUDE)_PROJECT_DIR\}"
    r"|(?:HOOKLINE|LLXPRT|GEMINI|CLAUDE)_PROJECT_DIR(?![A-Za-z0-9_]))"
)
_HEREDOC = r"<<-?\s*(?:\"(\w+)\"|'(\w+)'|\\?(\w+))"
_POSIX_SHELLS = ("bash", "sh", "dash", "ksh", "zsh", "ash")


@lru_cache(maxsize=4096)
def shell_argv(command: str, shell: str | None = None) -> tuple[str, ...]:
    """The words that run a command under its shell."""
    program = shell or default_shell()
    if os.path.basename(program) in _POSIX_SHELLS:  # noqa: PTH119 - plain text
        command = quote_project_dirs(command)
    return (program, "-c", command)


@lru_cache(maxsize=1)
def default_shell() -> str:
    """``bash`` where there is one, else ``sh``."""
    for folder in os.get_exec_path():
        candidate = f"{folder}/bash"
        if os.access(candidate, os.X_OK):
            return candidate
    return "/bin/sh"


@lru_cache(maxsize=1)
def default_shell_is_bash() -> bool:
    """Whether commands run under bash, unless they name another shell."""
    return default_shell().endswith("/bash")


def quote_project_dirs(command: str) -> str:
    """Put double quotes around each project directory that stands unquoted."""
    if "_PROJECT_DIR" not in command:
        return command
    return _Quoter(command).result()


class _Quoter:
    """Walks over shell text and knows which quotes it is in."""

    def __init__(self, command: str) -> None:
        self._text = command
        self._at = 0
        self._out: list[str] = []
        self._nesting: list[str] = []
        self._heredocs: list[str] = []

    def result(self) -> str:
        while self._at < len(self._text):
            self._step()
        return "".join(self._out)

    @property
    def _inside(self) -> str:
        return self._nesting[-1] if self._nesting else ""

    def _step(self) -> None:
        char = self._text[self._at]
        if char == "\\":
            self._copy(2)
        elif char == "$":
            self._dollar()
        elif char == '"':
            self._toggle('"')
        elif char == "`":
            self._toggle("`")
        elif self._inside == '"':
            self._copy(1)
        else:
            self._unquoted(char)

    def _unquoted(self, char: str) -> None:
        if char == "'":
            self._copy_through("'", self._at + 1)
        elif char == "#" and self._starts_word():
            self._copy_comment()
        elif char == "\n":
            self._copy(1)
            self._copy_heredocs()
        elif char == "<" and (found := self._match(_HEREDOC)):
            self._heredocs.append(next(word for word in found.groups() if word))
            self._copy(len(found.group()))
        elif char == "<" and self._text.startswith("<<<", self._at):
            self._copy(3)
        else:
            self._parenthesis(char)

    def _parenthesis(self, char: str) -> None:
        if char == "(":
            self._nesting.append("(")
        elif char == ")" and self._inside == "(":
            self._nesting.pop()
        self._copy(1)

    def _dollar(self) -> None:
        found = self._match(_PROJECT_DIR)
        if found:
            quoted = found.group() if self._inside == '"' else f'"{found.group()}"'
            self._out.append(quoted)
            self._at = found.end()
        elif self._text.startswith("$(", self._at):
            self._nesting.append("(")
            self._copy(2)
        elif self._text.startswith("$'", self._at) and self._inside != '"':
            self._copy_ansi_quoted()
        else:
            self._copy(1)

    def _match(self, expression: str) -> re.Match[str] | None:
        # Compiled on first use, and kept by re: most commands need none of it.
        return re.compile(expression).match(self._text, self._at)

    def _toggle(self, mark: str) -> None:
        if self._inside == mark:
            self._nesting.pop()
        else:
            self._nesting.append(mark)
        self._copy(1)

    def _starts_word(self) -> bool:
        return self._at == 0 or self._text[self._at - 1] in " \t\n;&|("

    def _copy(self, count: int) -> None:
        self._out.append(self._text[self._at : self._at + count])
        self._at += count

    def _copy_through(self, mark: str, start: int) -> None:
        end = self._text.find(mark, start)
        self._copy((len(self._text) if end < 0 else end + 1) - self._at)

    def _copy_comment(self) -> None:
        end = self._text.find("\n", self._at)
        self._copy((len(self._text) if end < 0 else end) - self._at)

    def _copy_ansi_quoted(self) -> None:
        end = self._at + 2
        while end < len(self._text) and self._text[end] != "'":
            end += 2 if self._text[end] == "\\" else 1
        self._copy(end + 1 - self._at)

    def _copy_heredocs(self) -> None:
        for word in self._heredocs:
            closing = re.compile(rf"^\t*{re.escape(word)}$", re.MULTILINE)
            found = closing.search(self._text, self._at)
            end = len(self._text) if found is None else found.end()
            self._copy(end - self._at)
        self._heredocs = []
