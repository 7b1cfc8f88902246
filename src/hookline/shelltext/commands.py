"""List the commands that a shell line would run, through whatever hides them.

Variables, ``{a,b}``, wrappers, nested shells and substitutions are looked through, so
that a word reads as the program will see it; what cannot be told by reading is marked
``opaque``. No text makes it raise.
"""

from __future__ import annotations

import re
from itertools import dropwhile, takewhile

from .parse import SimpleCommand, Word, parse

TYPE_CHECKING = False  # importing typing costs more than reading a line
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .parse import Piece

SHELLS = frozenset(
    {"sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "$SHELL", "${SHELL}", "$BASH"}
)
_RUN_LINES = SHELLS | {"su", "runuser", "script", "sg", ".", "source"}
_INTERPRETER = r"(python|perl|ruby|node|php|lua|osascript)[\d.]*"
_RESERVED = frozenset(
    {"if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "time"}
)
# A wrapper runs the rest of its arguments; these are its options that take a value.
_WRAPPERS = {
    **dict.fromkeys(("command", "builtin", "nohup", "setsid", "coproc"), ""),
    **dict.fromkeys(("busybox", "toybox"), ""),
    **dict.fromkeys(("doas", "env"), "uC"),
    "sudo": "ugpCDhrtUT",
    "xargs": "aEILnPsd",
    "timeout": "ks",
    "nice": "n",
    "ionice": "cnp",
    "stdbuf": "ioe",
    "exec": "a",
    "flock": "wE",
    "npx": "pc",
    "caffeinate": "t",
}
_HEADS = (["for"], ["select"], ["case"])
_ASSIGNMENT = r"\w+\+?="
# Unquoted braces, commas and blanks, while a word is put together.
_OPEN, _COMMA, _CLOSE, _BREAK = "\ue000", "\ue001", "\ue002", "\ue003"
_MARKED = str.maketrans({"{": _OPEN, ",": _COMMA, "}": _CLOSE})
_UNMARKED = str.maketrans({_OPEN: "{", _COMMA: ",", _CLOSE: "}"})
_BRACES = f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}"
_UNKNOWN = "$()"
_PRINTS = r"(?s:(?:(?:echo|printf)(?: -\w+)*|which|command -v|type -P) (.*))"
_MAX_DEPTH = 12
_MAX_WORDS = 10_000
_MAX_VALUE = 100_000


class Command:
    """One simple command: its words, where it writes, and what feeds it."""

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
        """It gets further arguments from elsewhere, as by xargs."""

    @property
    def name(self) -> str:
        """The program, without its folder."""
        return self.words[0].rsplit("/", 1)[-1] if self.words else ""

    @property
    def args(self) -> list[str]:
        """Its arguments."""
        return self.words[1:]

    @property
    def flags(self) -> set[str]:
        """Its options; short ones one by one: ``-rf`` is ``r`` and ``f``."""
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
        """Its arguments that are not options."""
        cut = self.args.index("--") if "--" in self.args else len(self.args)
        before = [word for word in self.args[:cut] if not word.startswith("-")]
        return before + self.args[cut + 1 :]


def commands(line: str) -> list[Command]:
    """All commands that a line runs; those in substitutions follow their command."""
    return _commands(parse(line), {}, 0)


def _commands(
    simple_commands: Iterable[SimpleCommand], variables: dict[str, str], depth: int
) -> list[Command]:
    found: list[Command] = []
    expander = _Expander(variables)
    for simple in simple_commands if depth <= _MAX_DEPTH else ():
        found += _unwrapped(expander.command(simple), variables, depth)
        for inner in _substitutions(simple.all_words):
            found += _commands(inner, variables, depth + 1)
        if expander.overflowed:
            break
    if expander.overflowed or depth > _MAX_DEPTH:
        found.append(Command())  # for what was not read
        found[-1].opaque = True
    return found


def _substitutions(words: Iterable[Word]) -> Iterator[tuple[SimpleCommand, ...]]:
    for piece in (piece for word in words for piece in word):
        if piece.commands:
            yield piece.commands
        if piece.argument:
            yield from _substitutions([piece.argument])


class _Expander:
    """Expands words with the variables that the line has set so far."""

    def __init__(self, variables: dict[str, str]) -> None:
        self._variables = variables
        self._count = 0
        self.overflowed = False
        """The line is longer than any person writes: not all of it was read."""

    def command(self, simple: SimpleCommand) -> Command:
        """One command with its words expanded; its assignments are remembered."""
        command = Command()
        command.piped = simple.operator in ("|", "|&")
        for word in simple.words:
            for field in self._fields(word):
                self._keep(command.words, field)
        for operator, target in simple.redirections:
            text = self._text(target)
            if operator[:2] == "<<":
                command.fed = text
            elif operator == ">&" and re.fullmatch(r"\d+-?|-", text):
                continue  # another descriptor, not a file
            elif ">" in operator:
                command.writes.append(text)
            elif operator == "<":
                command.reads.append(text)
        return command

    def _keep(self, words: list[str], field: str) -> None:
        self._count += 1
        self.overflowed = self.overflowed or self._count > _MAX_WORDS
        if self.overflowed:
            return
        words.append(field)
        if words[-4:-3] == ["for"] and words[-2:-1] == ["in"]:
            self._variables[words[-3]] = field
        name, equals, value = field.partition("=")
        if equals and name.isidentifier():
            # A variable that doubles itself again and again must not fill the memory.
            self.overflowed = len(value) > _MAX_VALUE
            self._variables[name] = value[:_MAX_VALUE]

    def _fields(self, word: Word) -> list[str]:
        """The words that one word becomes: split at blanks, braces expanded."""
        marked = "".join(self._marked(piece) for piece in word)
        fields = [field for field in marked.split(_BREAK) if field]
        if not fields and any(piece.quoted or not piece.source for piece in word):
            return [""]
        self.overflowed = self.overflowed or len(marked) > _MAX_VALUE
        return [one for field in fields for one in _expand_braces(field)]

    def _marked(self, piece: Piece) -> str:
        value = self._value(piece)
        if piece.quoted:
            return value
        if piece.source:
            return re.sub(r"\s+", _BREAK, value)
        return value.translate(_MARKED)

    def _text(self, word: Word) -> str:
        return "".join(self._value(piece) for piece in word)

    def _value(self, piece: Piece) -> str:
        if not piece.source:
            return piece.text
        if piece.source[0] in "<>":
            return "/dev/fd/63"
        if piece.variable == "IFS":
            return " "
        if not piece.variable:
            return self._printed(piece.commands)
        unset = piece.source if piece.argument is None else self._text(piece.argument)
        return self._variables.get(piece.variable, unset)

    def _printed(self, simple_commands: tuple[SimpleCommand, ...]) -> str:
        """What a substitution prints: with a plain echo, ``$(echo rm)`` is rm."""
        if len(simple_commands) != 1 or simple_commands[0].redirections:
            return _UNKNOWN
        words = [
            field for one in simple_commands[0].words for field in self._fields(one)
        ]
        found = re.fullmatch(_PRINTS, " ".join(words))
        return found[1] if found else _UNKNOWN


def _expand_braces(word: str) -> list[str]:
    """Expand ``{a,b}``; a pair without a comma stays as it is."""
    found = next((m for m in re.finditer(_BRACES, word) if _COMMA in m[1]), None)
    if not found or len(word) > _MAX_VALUE:
        return [word.translate(_UNMARKED)]
    expanded: list[str] = []
    for choice in found[1].split(_COMMA):
        start, end = word[: found.start()], word[found.end() :]
        expanded += _expand_braces(start + choice + end)
        if len(expanded) > _MAX_WORDS:
            break
    return expanded


def _unwrapped(
    command: Command, variables: dict[str, str], depth: int
) -> list[Command]:
    """A command without what stands before it, and the commands that it runs."""
    _drop_prefixes(command)
    while command.name in _WRAPPERS and (rest := _wrapped_words(command)):
        command.appended = command.appended or command.name == "xargs"
        command.words = rest
        _drop_prefixes(command)
    line = _inner_line(command)
    if line is None:
        return [command]
    return [command, *_commands(parse(line), dict(variables), depth + 1)]


def _drop_prefixes(command: Command) -> None:
    rest = list(dropwhile(_is_prefix, command.words))
    before = command.words[: len(command.words) - len(rest)]
    command.assigned += [word for word in before if word not in _RESERVED]
    # The head of a loop or a choice runs nothing by itself.
    command.words = [] if rest[:1] in _HEADS else rest


def _is_prefix(word: str) -> bool:
    return word in _RESERVED or bool(re.match(_ASSIGNMENT, word))


def _wrapped_words(command: Command) -> list[str]:
    name, rest = command.name, command.args
    if name == "env" and rest[:1] in (["-S"], ["--split-string"]):
        return []
    at = 0
    while at < len(rest) and rest[at].startswith("-") and rest[at] != "--":
        takes_value = len(rest[at]) == 2 and rest[at][1] in _WRAPPERS[name]
        at += 2 if takes_value else 1
    at += rest[at : at + 1] == ["--"]
    return rest[at + 1 :] if name in ("timeout", "flock") else rest[at:]


def _inner_line(command: Command) -> str | None:
    """The shell line that a command runs in turn, if it does."""
    name, args, operands = command.name, command.args, command.operands
    if name in _RUN_LINES:
        return _script_of(command)
    is_unknown = name == _UNKNOWN or (name == "eval" and _UNKNOWN in " ".join(args))
    if is_unknown or (re.fullmatch(_INTERPRETER, name) and _reads_program(command)):
        command.opaque = True
    if name == "find":
        return _find_commands(args)
    if name == "parallel" and ":::" in args:
        return " ".join(["xargs", *args[: args.index(":::")]])
    lines = {
        "eval": args,
        "env": args[1:],
        "watch": operands,
        "ssh": operands[1:],
        "trap": args[:1],
    }
    return " ".join(lines[name]) if name in lines else None


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
            command.opaque = command.opaque or filled or _UNKNOWN in script
            return script
    if command.fed is not None:
        return command.fed
    if command.name not in SHELLS and command.name not in (".", "source"):
        return None
    file = command.operands[0] if command.operands else ""
    from_pipe = command.piped and (not file or "s" in command.flags)
    if from_pipe or file.startswith("/dev/") or command.appended:
        command.opaque = True
    return None


def _find_commands(args: list[str]) -> str | None:
    from shlex import join

    lines: list[str] = []
    for index, word in enumerate(args):
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            rest = takewhile(lambda one: one not in (";", "+"), args[index + 1 :])
            lines.append(join(rest))
    return "\n".join(lines) or None
