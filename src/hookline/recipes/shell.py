"""Every command that a shell line would run, however it is wrapped.

``commands`` looks through quoting, wrappers (``sudo``, ``env``, ``xargs``), shells
(``bash -c``), ``eval``, substitutions, here-documents and ``find -exec``. What no
reading can tell, such as text decoded and piped into a shell, is marked ``opaque``.
It reads a line as a guard must: rather one command too many than one too few.
"""

from __future__ import annotations

import re

from .scanner import Operator, Scanner

SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash", "fish"})
_RESERVED = frozenset(
    {"if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "time"}
)
# A wrapper runs the rest of its words; its options that take a value of their own.
_WRAPPERS = {
    "sudo": "ugpCDhrtUT",
    "doas": "uC",
    "env": "uC",
    "xargs": "aEILnPsd",
    "timeout": "ks",
    "nice": "n",
    "ionice": "cnp",
    "stdbuf": "ioe",
    "command": "",
    "builtin": "",
    "exec": "a",
    "nohup": "",
    "setsid": "",
    "busybox": "",
    "toybox": "",
    "watch": "n",
    "caffeinate": "t",
}
_ASSIGNMENT = re.compile(r"\w+\+?=")
_MAX_DEPTH = 12


class Command:
    """One simple command: its words, where it writes, and what feeds it."""

    __slots__ = ("fed", "opaque", "piped", "reads", "words", "writes")

    def __init__(self) -> None:
        self.words: list[str] = []
        self.writes: list[str] = []
        self.reads: list[str] = []
        self.piped = False
        self.fed: str | None = None
        self.opaque = False

    @property
    def name(self) -> str:
        """The program, without its folder."""
        return self.words[0].rsplit("/", 1)[-1] if self.words else ""

    @property
    def args(self) -> list[str]:
        """Its words after the name."""
        return self.words[1:]

    @property
    def flags(self) -> set[str]:
        """Its options, short ones taken apart: ``-rf`` is ``r`` and ``f``."""
        found: set[str] = set()
        for word in self.args:
            if word == "--":
                break
            if word.startswith("--"):
                found.add(word[2:].partition("=")[0])
            elif word.startswith("-"):
                found.update(word[1:])
        return found

    @property
    def operands(self) -> list[str]:
        """Its words that are no options."""
        if "--" in self.args:
            cut = self.args.index("--")
            before = [word for word in self.args[:cut] if not word.startswith("-")]
            return before + self.args[cut + 1 :]
        return [word for word in self.args if not word.startswith("-")]


def commands(line: str) -> list[Command]:
    """All commands in a line, outermost first."""
    return _commands(line, {}, 0)


def _commands(line: str, variables: dict[str, str], depth: int) -> list[Command]:
    if depth > _MAX_DEPTH:
        return [_hidden()]
    scanner = Scanner(line, variables)
    found: list[Command] = []
    for command in _simple_commands(scanner.scan()):
        found += _unwrapped(command, variables, depth)
    for inner in scanner.nested:
        found += _commands(inner, variables, depth + 1)
    return [*found, _hidden()] if scanner.overflowed else found


def _hidden() -> Command:
    """What stands for commands that were not read."""
    command = Command()
    command.opaque = True
    return command


def _simple_commands(tokens: list[str]) -> list[Command]:
    found = [Command()]
    redirect = ""
    for token in tokens:
        if isinstance(token, Operator):
            redirect = _operator(token, found)
        elif redirect:
            _redirected(found[-1], redirect, token)
            redirect = ""
        else:
            found[-1].words.append(token)
    return [command for command in found if command.words or command.writes]


def _operator(operator: str, found: list[Command]) -> str:
    """Begin the next command, or say that a redirection follows."""
    if operator[0] in "<>" or operator in ("&>", "&>>"):
        return operator
    command = Command()
    command.piped = operator in ("|", "|&")
    found.append(command)
    return ""


def _redirected(command: Command, redirect: str, target: str) -> None:
    if redirect == "<<<":
        command.fed = target
    elif ">" in redirect and not (redirect == ">&" and target.rstrip("-").isdigit()):
        command.writes.append(target)
    elif redirect == "<":
        command.reads.append(target)


def _unwrapped(
    command: Command, variables: dict[str, str], depth: int
) -> list[Command]:
    words = command.words
    while words and (_ASSIGNMENT.match(words[0]) or words[0] in _RESERVED):
        words = words[1:]
    command.words = words
    if command.name in _WRAPPERS:
        return _wrapped(command, variables, depth)
    inner = _inner_line(command)
    if inner is None:
        return [command]
    return [command, *_commands(inner, dict(variables), depth + 1)]


def _wrapped(command: Command, variables: dict[str, str], depth: int) -> list[Command]:
    name, rest = command.name, list(command.args)
    if name == "env" and rest and rest[0] in ("-S", "--split-string"):
        return [command, *_commands(" ".join(rest[1:]), dict(variables), depth + 1)]
    while rest and rest[0].startswith("-") and rest[0] != "--":
        option = rest.pop(0)
        if len(option) == 2 and option[1] in _WRAPPERS[name] and rest:
            rest.pop(0)
    rest = rest[1:] if rest[:1] == ["--"] else rest
    rest = rest[1:] if name == "timeout" else rest
    inner = Command()
    inner.words, inner.writes, inner.reads = rest, command.writes, command.reads
    inner.piped, inner.fed = command.piped, command.fed
    inner.opaque = name == "xargs"  # what it appends comes from elsewhere
    if not rest or depth > _MAX_DEPTH:
        return [command]
    return _unwrapped(inner, variables, depth + 1)


def _inner_line(command: Command) -> str | None:
    """The shell line that a command would run in its turn, if it does."""
    name, args = command.name, command.args
    if name in SHELLS or name in (".", "source"):
        return _script_of(command)
    if name == "eval":
        return " ".join(args)
    if name == "trap" and args:
        return args[0]
    if name == "find":
        return _find_commands(args)
    return None


def _script_of(command: Command) -> str | None:
    for index, word in enumerate(command.args):
        if re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", word):
            script = " ".join(command.args[index + 1 : index + 2])
            command.opaque = command.opaque or "$()" in script
            return script
    if command.fed is not None:
        return command.fed
    file = command.operands[0] if command.operands else ""
    from_pipe = command.piped and (not file or "s" in command.flags)
    command.opaque = command.opaque or from_pipe or file.startswith("/dev/")
    return None


def _find_commands(args: list[str]) -> str | None:
    lines: list[str] = []
    for index, word in enumerate(args):
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            rest = args[index + 1 :]
            ends = [at for at, one in enumerate(rest) if one in (";", "+")]
            lines.append(_quoted(rest[: ends[0]] if ends else rest))
    return "\n".join(lines) or None


def _quoted(words: list[str]) -> str:
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
