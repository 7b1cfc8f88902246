"""Read shell text: its simple commands, their words, and the files they name.

The only reader of command lines in Hookline. Nothing is run, and nothing raises: an
unclosed quote ends with the text. Words are joined from quoted and unquoted pieces as
bash joins them; an expansion that cannot be known is marked, never guessed.
Importing it is cheap: hooks and ``hookline fire`` pay for it at every event.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache

PROJECT_DIR_NAMES = tuple(
    f"{brand}_PROJECT_DIR" for brand in ("HOOKLINE", "LLXPRT", "GEMINI", "CLAUDE")
)
POSIX_SHELLS = ("bash", "sh", "dash", "ksh", "zsh", "ash")

# ``re`` compiles and keeps a pattern on first use: most commands need only a few.
_OPERATOR = r"<<<|&>>|<<-|&&|\|\||;;&?|;&|\|&|&>|>>|<<|>\||>&|<&|<>|[<>;&|()\n]"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_ESCAPE = r"\\(?:[xuU]([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))"
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b"}
_MAX_DEPTH = 50


class Piece:
    """A part of a word: text without its quotes, or an expansion.

    ``source`` is an expansion as it is written, empty for text; ``start`` is its
    place, or -1 where escapes moved it. ``variable`` is the name in ``$name``,
    ``${name}`` or ``${name:-argument}``; ``commands`` are those of ``$(...)``,
    backticks, ``<(...)`` or ``>(...)``. Without either it cannot be known; ``unread``
    are those that are nested too deeply to be read, or not closed. ``operators`` are
    the commands with an empty one for each operator that has none, as in
    ``parse_operators``.
    """

    def __init__(
        self,
        text: str = "",
        quoted: bool = False,
        variable: str = "",
        argument: Word | None = None,
        commands: tuple[SimpleCommand, ...] = (),
    ) -> None:
        self.text = text
        self.quoted = quoted
        self.variable = variable
        self.argument = argument
        self.commands = commands
        self.source = ""
        self.start = -1
        self.operators: tuple[SimpleCommand, ...] = ()
        self.unread = False

    @property
    def is_project_dir(self) -> bool:
        """Whether it is ``$X_PROJECT_DIR`` or ``${X_PROJECT_DIR}``."""
        return self.variable in PROJECT_DIR_NAMES and self.argument is None

    def value(self, variables: Mapping[str, str]) -> str | None:
        """Its text when these variables are set, or None where it is not known."""
        return variables.get(self.variable) if self.source else self.text


class Word(tuple[Piece, ...]):
    """One word of a command."""

    def known(self, variables: Mapping[str, str]) -> str | None:
        """Its text when these variables are set, or None where it is not known."""
        values = [piece.value(variables) for piece in self]
        if self and self[0].text[:1] == "~" and not self[0].quoted:
            rest, home = self[0].text[1:], variables.get("HOME")
            is_own = rest[:1] == "/" or (not rest and len(self) == 1)
            values[0] = home + rest if is_own and home is not None else None
        return None if None in values else "".join(filter(None, values))

    @property
    def is_pattern(self) -> bool:
        """Whether the shell may turn it into several words or names of files."""
        unquoted = (piece.text for piece in self if not piece.quoted)
        return any(re.search(r"[*?{]|\[[^\[]", text) for text in unquoted)


class SimpleCommand:
    """Words and redirections up to the next operator; assignments are words too.

    ``operator`` stands before it: ``|``, ``&&``, ``(``, a newline; "" for the first.
    One without words is there for its operator.
    The target of ``<<`` and ``<<<`` is the text itself.
    """

    def __init__(self, operator: str) -> None:
        self.operator = operator
        self.words: list[Word] = []
        self.redirections: list[tuple[str, Word]] = []

    @property
    def all_words(self) -> list[Word]:
        """Its words and the targets of its redirections."""
        return [*self.words, *(target for _, target in self.redirections)]


def parse(text: str) -> tuple[SimpleCommand, ...]:
    """Read shell text into simple commands; those of substitutions are in the words."""
    return _without_empty(parse_operators(text))


def parse_operators(text: str) -> tuple[SimpleCommand, ...]:
    """The same, with an empty command for each operator that has none."""
    return _Lexer(text, 0, len(text)).read()


def all_words(commands: Iterable[SimpleCommand]) -> Iterator[Word]:
    """Every word and every target of a redirection, in expansions too."""
    words = [word for command in commands for word in command.all_words]
    for word in words:  # it grows while it is read
        yield word
        for piece in word:
            words += [] if piece.argument is None else [piece.argument]
            words += [one for command in piece.commands for one in command.all_words]


class _Lexer:
    """One pass over a text, or over an expansion in it."""

    def __init__(
        self, text: str, at: int, end: int, depth: int = 0, is_copy: bool = False
    ) -> None:
        self._text = text
        # Nesting that no person writes is not read, so that it cannot raise.
        self.unread = depth > _MAX_DEPTH
        self.at = end if self.unread else at
        self._end = end
        self._depth = depth
        self._is_copy = is_copy
        self.pieces: list[Piece] = []
        self._commands = [SimpleCommand("")]
        self._redirect = ""
        self._parentheses: list[tuple[int, bool]] = []
        self._heredocs: list[tuple[SimpleCommand, int]] = []
        self._lines: dict[str, list[int]] = {}
        """Where each line starts, after ``<<`` or ``<<-``; for the whole text."""

    def read(self, opened_at: int | None = None) -> tuple[SimpleCommand, ...]:
        """Read to the end, or to the parenthesis that closes the given one."""
        self._parentheses = [] if opened_at is None else [(opened_at, False)]
        while self.at < self._end:
            self._step(self._text[self.at])
            if opened_at is not None and not self._parentheses:
                break
        self._end_word()
        self.unread |= opened_at is not None and bool(self._parentheses)
        return tuple(self._commands)

    def _step(self, char: str) -> None:
        if char in " \t\r":
            self._end_word()
            self.at += 1
        elif char == "#" and not self.pieces:
            self._take(r"[^\n]*")
        elif char in "<>" and self._text.startswith("(", self.at + 1):
            self._substitution(quoted=False)
        elif char in "<>;&|()\n":
            self._read_operator()
        elif char in "'\"\\$`":
            self._read_quoted(char)
        else:
            self._add(self._take(r"[^ \t\r\n\\'\"`$<>|&;()]+")[0])

    def _read_quoted(self, char: str) -> None:
        if char == "'":
            self._add(self._take(r"'([^']*)")[1], quoted=True)
            self._close("'")
        elif char == '"':
            self.at += 1
            self.read_until('"', quoted=True)
        elif char == "\\":
            self._escape()
        else:
            self._expansion(quoted=False)

    def _take(self, pattern: str) -> re.Match[str]:
        found = re.compile(pattern, re.DOTALL).match(self._text, self.at, self._end)
        assert found is not None  # the caller has seen its first character
        self.at = found.end()
        return found

    def _add(self, text: str, *, quoted: bool = False) -> None:
        self.pieces.append(Piece(text, quoted))

    def _read_operator(self) -> None:
        operator, before = self._take(_OPERATOR)[0], self.pieces
        if operator[0] in "<>" and len(before) == 1 and not before[0].quoted:
            # The 2 of 2>file is a descriptor, not an argument.
            self.pieces = [] if before[0].text.isdigit() else before
        self._end_word()
        opened_at, in_arithmetic = (self._parentheses or [(-1, False)])[-1]
        if operator in ("<<", "<<-") and in_arithmetic:
            operator = ";"  # it shifts bits: no here-document begins
        if operator[0] in "<>" or operator in ("&>", "&>>"):
            self._redirect = operator
            return
        self._redirect = ""
        self._commands.append(SimpleCommand(operator))
        if operator == "(":
            in_arithmetic = in_arithmetic or opened_at + 1 == self.at
            self._parentheses.append((self.at, in_arithmetic))
        elif operator == ")" and self._parentheses:
            self._parentheses.pop()
        elif operator == "\n":
            self._read_heredocs()

    def _end_word(self) -> None:
        if not self.pieces:
            return
        word, self.pieces, command = Word(self.pieces), [], self._commands[-1]
        if not self._redirect:
            command.words.append(word)
            return
        if self._redirect in ("<<", "<<-"):
            self._heredocs.append((command, len(command.redirections)))
        command.redirections.append((self._redirect, word))
        self._redirect = ""

    def _read_heredocs(self) -> None:
        heredocs, self._heredocs = self._heredocs, []
        for command, index in heredocs:
            operator, delimiter = command.redirections[index]
            command.redirections[index] = (operator, self._heredoc(operator, delimiter))

    def _heredoc(self, operator: str, delimiter: Word) -> Word:
        mark = "".join(piece.source or piece.text for piece in delimiter)
        start, end = self.at, self._closing_line(operator, mark)
        if end < 0:
            # What follows is read as commands: it may not be a document.
            end = start
        else:
            self.at = min(self._text.find("\n", end) + 1 or self._end, self._end)
        if any(piece.quoted for piece in delimiter):
            return Word([Piece(self._text[start:end], quoted=True)])
        body = self._nested(start, end)
        body.read_until("", quoted=True)
        return Word(body.pieces)

    def _closing_line(self, operator: str, mark: str) -> int:
        """Where the line starts that closes a here-document; -1 without one."""
        from bisect import bisect_left

        if not self._lines:
            self._index_lines()
        starts = self._lines.get(operator + mark, [])
        first = bisect_left(starts, self.at)
        if first < len(starts) and starts[first] + len(mark) <= self._end:
            return starts[first]
        last = max(self._text.rfind("\n", 0, self._end) + 1, self.at)
        line = self._text[last : self._end].removesuffix("\r")
        return last if mark == (line.lstrip("\t") if operator[2:] else line) else -1

    def _index_lines(self) -> None:
        start = 0
        for line in self._text.split("\n"):
            plain = line.removesuffix("\r")
            for key in (f"<<{plain}", f"<<-{plain.lstrip(chr(9))}"):
                self._lines.setdefault(key, []).append(start)
            start += len(line) + 1

    def _nested(self, at: int, end: int) -> _Lexer:
        nested = _Lexer(self._text, at, end, self._depth + 1, self._is_copy)
        nested._lines = self._lines
        return nested

    def _escape(self) -> None:
        escaped = self._text[self.at + 1 : self.at + 2]
        self.at += 2
        if escaped != "\n":
            self._add(escaped or "\\", quoted=True)

    def read_until(self, closing: str, *, quoted: bool) -> None:
        """Read to a closing mark: a double quote, a brace, or the end for none."""
        self._add("", quoted=quoted)
        while self.at < self._end:
            char = self._text[self.at]
            following = self._text[self.at + 1 : self.at + 2]
            if char == closing:
                break
            is_escape = following in {*"$`\\\n", closing, *'"'[: closing == "}"]}
            if char == "\\" and is_escape:
                self._escape()
            elif char in "$`":
                self._expansion(quoted=quoted)
            elif char == '"' and closing == "}":
                self._read_quoted(char)  # a text of its own, also within double quotes
            elif char in "'\"\\" and not quoted:
                self._read_quoted(char)
            else:
                self._add(self._take(r".[^'\"}\\$`]*")[0], quoted=quoted)
        if closing:
            self._close(closing)

    def _close(self, mark: str) -> None:
        """Go on after a closing mark; without one, nobody knows what was read."""
        if self._text[self.at : min(self.at + 1, self._end)] == mark:
            self.at += 1
        else:
            self.pieces.append(Piece())
            self.pieces[-1].unread = True

    def _expansion(self, *, quoted: bool) -> None:
        opening = self._text[self.at : self.at + 2]
        if opening == "$(":
            self._substitution(quoted=quoted)
        elif opening[0] == "`":
            self._backticks(quoted=quoted)
        elif opening == "${":
            self._braces(quoted=quoted)
        elif opening == "$'" and not quoted:
            text = self._take(r"\$'((?:[^\\']|\\.)*)")[1]
            text = re.sub(_ESCAPE, _unescape, text, flags=re.DOTALL)
            self._add(text.partition("\0")[0], quoted=True)
            self._close("'")
        elif opening == '$"' and not quoted:
            self.at += 2
            self.read_until('"', quoted=True)
        elif name := self._take(rf"\$({_NAME}|[0-9@*#?$!-])?")[1]:
            start = self.at - len(name) - 1
            self._add_expansion(start, Piece(quoted=quoted, variable=name))
        else:
            self._add("$", quoted=quoted)

    def _braces(self, *, quoted: bool) -> None:
        start = self.at
        name, default = self._take(rf"\$\{{({_NAME}|[0-9]+)?(:?[-=])?").groups("")
        # Double quotes around it reach into a default, and into no pattern.
        is_default = re.compile(rf"[!#@*?$-]?(?:{_NAME})?(?:\[[^]]*\])?:?[-=+?]")
        in_quotes = quoted and bool(default or is_default.match(self._text, self.at))
        inner = self._nested(self.at, self._end)
        inner.read_until("}", quoted=in_quotes)
        self.at, argument = inner.at, Word(inner.pieces)
        piece = Piece(quoted=quoted, variable=name)
        if self._text[start : self.at] != f"${{{name}}}":
            piece = Piece(quoted=quoted, variable=default and name, argument=argument)
        piece.unread = inner.unread
        self._add_expansion(start, piece)

    def _substitution(self, *, quoted: bool) -> None:
        start, at = self.at, self.at + 2
        inner = self._nested(at, self._end)
        read = inner.read(opened_at=at)
        self.at = inner.at
        self._add_expansion(start, _substituted(read, inner.unread, quoted))

    def _backticks(self, *, quoted: bool) -> None:
        start, found = self.at, self._take(r"`((?:[^\\`]|\\.)*)`?")
        inner = self._nested(*found.span(1))
        unescaped = re.sub(r"\\([\\`$])", r"\1", found[1])
        if unescaped != found[1]:
            inner = _Lexer(unescaped, 0, len(unescaped), self._depth + 1, is_copy=True)
        read = inner.read()
        self._add_expansion(start, _substituted(read, inner.unread, quoted))

    def _add_expansion(self, start: int, piece: Piece) -> None:
        piece.source = self._text[start : self.at]
        piece.start = -1 if self._is_copy else start
        self.pieces.append(piece)


def _substituted(read: tuple[SimpleCommand, ...], unread: bool, quoted: bool) -> Piece:
    piece = Piece(quoted=quoted, commands=_without_empty(read))
    piece.operators, piece.unread = read, unread
    return piece


def _without_empty(commands: tuple[SimpleCommand, ...]) -> tuple[SimpleCommand, ...]:
    return tuple(one for one in commands if one.words or one.redirections)


def _unescape(escape: re.Match[str]) -> str:
    hexadecimal, octal, control, other = escape.groups()
    if hexadecimal:
        digits = {"x": 2, "u": 4, "U": 8}[escape[0][1]]
        code = min(int(hexadecimal[:digits], 16), 0x10FFFF)
        return chr(code) + hexadecimal[digits:]
    if octal:
        return chr(int(octal, 8) & 0xFF)
    return chr(ord(control) & 0x1F) if control else _CONTROL.get(other, other)


_FOLDER_NAMES = (*PROJECT_DIR_NAMES, "HOOKLINE_CWD", "GEMINI_CWD")


def quote_folders(command: str) -> str:
    """Put double quotes around project and working directory where they have none."""
    if "_PROJECT_DIR" not in command and "_CWD" not in command:
        return command
    return quote_variables(command, _FOLDER_NAMES)


def quote_variables(command: str, names: Collection[str]) -> str:
    """Put double quotes around these variables where they stand unquoted."""
    pieces = (piece for word in all_words(parse(command)) for piece in word)
    named = (one for one in pieces if one.variable in names and one.argument is None)
    unquoted = [one for one in named if not one.quoted]
    for piece in sorted(unquoted, key=lambda one: -one.start):
        if piece.start >= 0:
            end = piece.start + len(piece.source)
            command = f'{command[: piece.start]}"{piece.source}"{command[end:]}'
    return command


_PLAIN = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:@%+,=- "
)


@lru_cache(maxsize=4096)
def plain_words(command: str) -> tuple[str | Word, ...] | None:
    """The words of one command that needs no shell; None where there is more to do.

    They are plain text, or plain text with project directories in it.
    """
    if _PLAIN.issuperset(command):
        plain = tuple(command.split())
        return plain if plain and "=" not in plain[0] else None
    if not _PLAIN.union('"${}').issuperset(command) or command.count('"') % 2:
        return None
    if '$"' in command:
        return None  # translated text
    words = [word for one in parse(command) for word in one.words]
    pieces = [piece for word in words for piece in word if not piece.is_project_dir]
    if any(piece.source or not _PLAIN.issuperset(piece.text) for piece in pieces):
        return None
    if any("=" in piece.text for piece in words[0]):
        return None  # an assignment
    texts = (word.known({}) for word in words)
    return tuple(b if a is None else a for a, b in zip(texts, words, strict=True))


def project_variables(project: str | None) -> dict[str, str]:
    """What is known of a hook's environment, with or without its project."""
    names = (*PROJECT_DIR_NAMES, "PWD") if project else ()
    home = os.path.expanduser("~")  # noqa: PTH111 - pathlib costs start-up time
    return {**dict.fromkeys(names, project or ""), "HOME": home}


_INTERPRETER = (
    r"(?:python|pypy)[\d.]*|bash|sh|dash|zsh|ksh|node|deno|bun|ruby|perl|php|source|\."
)
_PREFIX = rf"exec|nohup|command|env|time|then|do|{_NAME}=.*"
_UNCERTAIN = r"if|case|while|until|for|test|\[\[?|cd|pushd|eval"
_OPTION_WITH_VALUE = r"-[WXro]|--require|--import"


class ExecutedFile:
    """A file that a command starts as a program, or gives to an interpreter."""

    def __init__(self, path: str, *, is_program: bool) -> None:
        self.path = path
        self.is_program = is_program


def executed_files(command: str, project: str | None) -> list[ExecutedFile]:
    """The scripts and programs that a command surely runs and names by a path.

    Reading ends at a condition or a change of directory: what follows is not sure.
    """
    variables = {**project_variables(project), "HOOKLINE_PYTHON": "python"}
    found = []
    for simple in parse(command):
        texts = [_argument_text(word, variables) for word in simple.words]
        if texts and re.fullmatch(_UNCERTAIN, texts[0] or ""):
            break
        while texts and re.fullmatch(_PREFIX, texts[0] or "", re.DOTALL):
            del texts[0]
        found.append(_executed_file(*texts) if texts else None)
    return [file for file in found if file is not None]


def _argument_text(word: Word, variables: Mapping[str, str]) -> str | None:
    if re.match(rf"{_NAME}=", word[0].text):
        return word[0].text  # an assignment, whatever it assigns
    return None if word.is_pattern else word.known(variables)


def _executed_file(program: str | None, *arguments: str | None) -> ExecutedFile | None:
    name = (program or "").rpartition("/")[2]
    if re.fullmatch(_INTERPRETER, name):
        script = _script(arguments, name)
        return ExecutedFile(script, is_program=False) if script else None
    if program and "/" in program:
        return ExecutedFile(program, is_program=True)
    return None


def _script(arguments: Iterable[str | None], interpreter: str) -> str | None:
    """The file that an interpreter reads; None after an option that gives code."""
    is_python, is_shell = interpreter[:2] == "py", interpreter[-2:] == "sh"
    code_options = set("cm" if is_python else "cs" if is_shell else "ep")
    rest = iter(arguments)
    for argument in rest:
        if not argument or argument[0] != "-":
            is_path = argument and ("/" in argument or "." in argument[1:])
            return argument if is_path else None
        if re.fullmatch(_OPTION_WITH_VALUE, argument):
            next(rest, None)
        elif argument[:2] != "--" and code_options & set(argument):
            return None
    return None
