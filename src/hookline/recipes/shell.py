"""Every command that a shell line would run, however it is wrapped.

``commands`` looks through quoting, wrappers (``sudo``, ``env``, ``xargs``), shells
(``bash -c``), ``eval``, substitutions, here-documents and ``find -exec``. What no
reading can tell, such as text decoded and piped into a shell, is marked ``opaque``.
It reads a line as a guard must: rather one command too many than one too few.
"""

from __future__ import annotations

import re

from .scanner import Operator, Scanner

SHELLS = frozenset(
    {"sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "$SHELL", "${SHELL}", "$BASH"}
)
_RUN_LINES = SHELLS | {"su", "runuser", "script", "sg", ".", "source"}
_INTERPRETER = re.compile(r"(python|perl|ruby|node|php|lua|osascript)[\d.]*")
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
    "coproc": "",
    "flock": "wE",
    "npx": "pc",
    "busybox": "",
    "toybox": "",
    "caffeinate": "t",
}
_HEADS = (["for"], ["select"], ["case"])
_ASSIGNMENT = re.compile(r"\w+\+?=")
_MAX_DEPTH = 12


class Command:
    """One simple command: its words, where it writes, and what feeds it."""

    __slots__ = (
        *("appended", "assigned", "fed", "opaque", "piped"),
        *("reads", "words", "writes"),
    )

    def __init__(self) -> None:
        self.words: list[str] = []
        self.assigned: list[str] = []
        self.writes: list[str] = []
        self.reads: list[str] = []
        self.piped = False
        self.fed: str | None = None
        self.opaque = False
        """What it will run cannot be told by reading."""
        self.appended = False
        """Further words come from elsewhere, as by xargs."""

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
        if words[0] not in _RESERVED:
            command.assigned.append(words[0])
        words = words[1:]
    # The head of a loop or a choice runs nothing by itself.
    command.words = words = [] if words[:1] in _HEADS else words
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
    rest = rest[1:] if name in ("timeout", "flock") else rest
    inner = Command()
    inner.words, inner.writes, inner.reads = rest, command.writes, command.reads
    inner.piped, inner.fed = command.piped, command.fed
    inner.assigned = command.assigned
    inner.appended = name == "xargs"
    if not rest or depth > _MAX_DEPTH:
        return [command]
    return _unwrapped(inner, variables, depth + 1)


def _inner_line(command: Command) -> str | None:
    """The shell line that a command would run in its turn, if it does."""
    name, args = command.name, command.args
    if name in _RUN_LINES:
        return _script_of(command)
    if _INTERPRETER.fullmatch(name):
        command.opaque = command.opaque or _reads_program(command)
    if name == "$()":
        command.opaque = True
    if name == "eval":
        command.opaque = command.opaque or "$()" in " ".join(args)
    if name == "find":
        return _find_commands(args)
    return _line_in_words(name, args, command.operands)


def _line_in_words(name: str, args: list[str], operands: list[str]) -> str | None:
    if name == "eval":
        return " ".join(args)
    if name == "watch":
        return " ".join(operands)
    if name == "ssh":
        return " ".join(operands[1:])
    if name == "trap" and args:
        return args[0]
    if name == "parallel":
        return (
            " ".join(["xargs", *args[: args.index(":::")]]) if ":::" in args else None
        )
    return None


def _reads_program(command: Command) -> bool:
    """Whether an interpreter gets its program from a pipe or a substitution."""
    given = {"-c", "-m", "-e", "-E", "-p", "-n", "-f", "-r"} & set(command.args)
    file = command.operands[0] if command.operands else ""
    piped = command.piped and not given and (not file or "-" in command.args)
    return piped or file.startswith("/dev/")


def _script_of(command: Command) -> str | None:
    for index, word in enumerate(command.args):
        if re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", word):
            script = " ".join(command.args[index + 1 : index + 2])
            filled = command.appended and not script.isidentifier()
            command.opaque = command.opaque or filled or "$()" in script
            return script
    if command.fed is not None:
        return command.fed
    if command.name not in SHELLS and command.name not in (".", "source"):
        return None
    file = command.operands[0] if command.operands else ""
    from_pipe = command.piped and (not file or "s" in command.flags)
    hidden = from_pipe or file.startswith("/dev/") or command.appended
    command.opaque = command.opaque or hidden
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
