"""Split a shell line into words and operators the way a shell would.

It never fails: a quote that is not closed ends with the line. Quotes, backslashes,
``$'..'``, ``$IFS``, known variables and ``{a,b}`` are resolved, so that a word reads
as the program will see it; command substitutions are collected for their own scan.
Standard library only, and little of it: hooks pay for imports at every event.
"""

from __future__ import annotations

import re

_OPERATORS = (
    *("<<<", "&>>", "<<-", "&&", "||", ";;", "|&", "&>", ">>", "<<", ">|", ">&", "<&"),
    *("<>", "<", ">", ";", "&", "|", "(", ")", "\n"),
)
_OPEN, _COMMA, _CLOSE = "\ue000", "\ue001", "\ue002"
_BRACES = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?[-=+]([^{}]*))?\}|(\w+))")
_WHICH = re.compile(r"\s*(?:which|command\s+-v|type\s+-P)\s+([\w.-]+)\s*")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|[0-7]{1,3}|.)", re.DOTALL)
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "e": "\x1b", "b": "\b"}
_MAX_WORDS = 10_000
_MAX_VALUE = 100_000


class Operator(str):
    """A token that is no word."""

    __slots__ = ()


class Scanner:
    """One pass over a line; ``nested`` holds the substitutions found on the way."""

    def __init__(self, text: str, variables: dict[str, str]) -> None:
        self._text = text
        self._at = 0
        self._variables = variables
        self._word: list[str] | None = None
        self.tokens: list[str] = []
        self.nested: list[str] = []
        self.overflowed = False
        """The line is longer than anybody would write: not all of it was read."""
        self._heredocs: list[tuple[str, int]] = []

    def scan(self) -> list[str]:
        """All tokens of the line, operators as ``Operator``."""
        while self._at < len(self._text):
            self._step(self._text[self._at])
        self._end_word()
        return self.tokens

    def _step(self, char: str) -> None:
        if char in " \t\r":
            self._end_word()
            self._at += 1
        elif char == "#" and self._word is None:
            self._until("\n", keep_end=True)
        elif char in "\\'\"`$":
            {"\\": self._backslash, "'": self._single, '"': self._double}.get(
                char, self._substitution
            )()
        elif char in "<>" and self._text.startswith("(", self._at + 1):
            self._at += 1
            self.nested.append(self._parenthesised())
            self._add("/dev/fd/63")
        else:
            self._operator_or_letter(char)

    def _operator_or_letter(self, char: str) -> None:
        for operator in _OPERATORS:
            if self._text.startswith(operator, self._at):
                self._operator(operator)
                return
        self._add({"{": _OPEN, ",": _COMMA, "}": _CLOSE}.get(char, char))
        self._at += 1

    def _operator(self, operator: str) -> None:
        before = "".join(self._word or ())
        if operator[0] in "<>" and before.isdigit():
            self._word = None  # the 2 of 2>file is a descriptor, not an argument
        self._end_word()
        self.tokens.append(Operator(operator))
        self._at += len(operator)
        if operator == "\n" and self._heredocs:
            self._read_heredocs()

    def _read_heredocs(self) -> None:
        for mark, place in self._heredocs:
            lines = []
            while self._at < len(self._text):
                line = self._until("\n")
                if line.strip() == mark:
                    break
                lines.append(line)
            self.tokens[place] = "\n".join(lines)
        self._heredocs.clear()

    def _backslash(self) -> None:
        escaped = self._text[self._at + 1 : self._at + 2]
        if escaped != "\n":
            self._add(escaped)
        self._at += 2

    def _single(self) -> None:
        self._at += 1
        self._add(self._until("'"))

    def _double(self) -> None:
        self._at += 1
        self._add("")
        while self._at < len(self._text) and self._text[self._at] != '"':
            char = self._text[self._at]
            after = self._text[self._at + 1 : self._at + 2]
            if char == "\\" and after in tuple('"$`\\\n'):
                self._backslash()
            elif char in "$`":
                self._substitution(quoted=True)
            else:
                self._add(char)
                self._at += 1
        self._at += 1

    def _substitution(self, quoted: bool = False) -> None:
        rest = self._text[self._at : self._at + 2]
        if rest[0] == "`":
            self._at += 1
            self._keep_nested(self._until("`").replace("\\`", "`"))
        elif rest == "$(":
            self._at += 1
            self._keep_nested(self._parenthesised())
        elif rest == "$'" and not quoted:
            self._ansi_c()
        elif rest == '$"' and not quoted:
            self._at += 1
        else:
            self._variable(quoted)

    def _keep_nested(self, inner: str) -> None:
        self.nested.append(inner)
        # A plain echo is how a word is hidden: $(echo rm) reads as rm.
        plain = re.fullmatch(r"\s*(?:echo|printf)\s+(?:-\w+\s+)*([^|;&<>]*)", inner)
        plain = plain or _WHICH.fullmatch(inner)
        self._add(plain[1].strip("'\" ") if plain else "$()")

    def _parenthesised(self) -> str:
        start, depth, quote = self._at + 1, 0, ""
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == "\\":
                self._at += 1
            elif quote:
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
            elif char in "()":
                depth += 1 if char == "(" else -1
            self._at += 1
            if depth == 0:
                return self._text[start : self._at - 1]
        return self._text[start:]

    def _ansi_c(self) -> None:
        self._at += 2
        start = self._at
        while self._at < len(self._text) and self._text[self._at] != "'":
            self._at += 2 if self._text[self._at] == "\\" else 1
        self._add(_ESCAPE.sub(_unescaped, self._text[start : self._at]))
        self._at += 1

    def _variable(self, quoted: bool) -> None:
        found = _VARIABLE.match(self._text, self._at)
        if not found:
            self._unknown_expansion()
            return
        self._at = found.end()
        name = found[1] or found[3]
        if name == "IFS" and not quoted:
            self._end_word()
            return
        default: str | None = found[2]
        value = self._variables.get(name, default)
        self._add_value(found[0] if value is None else value, quoted)

    def _unknown_expansion(self) -> None:
        """A lone ``$``, or one of the many things that braces can do to a variable."""
        if self._text.startswith("${", self._at):
            self._until("}")
            self._add("$()")
        else:
            self._add("$")
            self._at += 1

    def _add_value(self, value: str, quoted: bool) -> None:
        pieces = [value] if quoted else value.split()
        for index, piece in enumerate(pieces):
            if index:
                self._end_word()
            self._add(piece)

    def _until(self, end: str, keep_end: bool = False) -> str:
        found = self._text.find(end, self._at)
        found = len(self._text) if found < 0 else found
        taken, self._at = self._text[self._at : found], found + (not keep_end)
        return taken

    def _add(self, text: str) -> None:
        if self._word is None:
            self._word = []
        self._word.append(text)

    def _end_word(self) -> None:
        if self._word is None:
            return
        word, self._word = "".join(self._word), None
        last = self.tokens[-1] if self.tokens else ""
        if isinstance(last, Operator) and last in ("<<", "<<-"):
            # What follows the line is read as if it stood here: <<< text.
            self.tokens[-1:] = [Operator("<<<"), ""]
            self._heredocs.append((_plain(word), len(self.tokens) - 1))
        elif isinstance(last, Operator) or _OPEN not in word:
            self._keep(_plain(word))
        else:
            self.overflowed = self.overflowed or len(word) > _MAX_WORDS
            for expanded in _expanded(word)[: _MAX_WORDS + 1]:
                self._keep(expanded)

    def _keep(self, word: str) -> None:
        self.overflowed = self.overflowed or len(self.tokens) >= _MAX_WORDS
        if not self.overflowed:
            self.tokens.append(word)
        if self.tokens[-4:-3] == ["for"] and self.tokens[-2:-1] == ["in"]:
            self._variables[self.tokens[-3]] = word
        name, equals, value = word.partition("=")
        if equals and name.isidentifier():
            # A variable that doubles itself again and again must not fill the memory.
            self.overflowed = self.overflowed or len(value) > _MAX_VALUE
            self._variables[name] = value[:_MAX_VALUE]


def _expanded(word: str) -> list[str]:
    """Expand ``{a,b}``; a pair without a comma stays as it is."""
    found = next((m for m in _BRACES.finditer(word) if _COMMA in m[1]), None)
    if not found or len(word) > _MAX_WORDS:
        return [_plain(word)]
    expanded: list[str] = []
    for choice in found[1].split(_COMMA):
        expanded += _expanded(word[: found.start()] + choice + word[found.end() :])
        if len(expanded) > _MAX_WORDS:
            break
    return expanded


def _plain(word: str) -> str:
    return word.replace(_OPEN, "{").replace(_COMMA, ",").replace(_CLOSE, "}")


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    if code[0] in "xu" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8) & 0xFF)
    return _CONTROL.get(code, code)


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
