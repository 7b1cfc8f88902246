"""List the commands that a shell line would run, through whatever hides them.

Variables, ``{a,b}``, wrappers, nested shells and substitutions are looked through, so
that a word reads as the program will see it; what cannot be told by reading is marked
``opaque``. No text makes it raise.
"""

from __future__ import annotations

import re
from itertools import dropwhile, takewhile

from . import programs as known
from .parse import SimpleCommand, Word, parse

TYPE_CHECKING = False  # importing typing costs more than reading a line
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .parse import Piece

SHELLS = known.SHELLS | {"$SHELL", "${SHELL}", "$BASH"}
_RUN_LINES = SHELLS | {"su", "runuser", "script", "sg", ".", "source", "flock", "npx"}
_INTERPRETER = r"(python|perl|ruby|node|php|lua|osascript)[\d.]*"
_WINDOWS_SHELL = r"(?i)(cmd|powershell|pwsh)(\.exe)?"
_RESERVED = known.KEYWORDS - {"coproc"} | {"}"}
_HEADS = (["for"], ["select"], ["case"])
_ASSIGNMENT = r"\w+\+?="
# Unquoted braces, commas and blanks, while a word is put together.
_OPEN, _COMMA, _CLOSE, _BREAK = "\ud800", "\ud801", "\ud802", "\ud803"
_MARKED = str.maketrans({"{": _OPEN, ",": _COMMA, "}": _CLOSE})
_UNMARKED = str.maketrans({_OPEN: "{", _COMMA: ",", _CLOSE: "}"})
_BRACES = f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}"
_UNKNOWN = "$()"
_PRINTS = r"(?s:(?:(?:echo|printf)(?: -\w+)*|which|command -v|type -P) (.*))"
MAX_LINE = 131_072
"""Characters: Linux starts no program with a longer argument."""
_MAX_DEPTH = 12
_MAX_WORDS = 10_000
_MAX_WRAPPERS = 100
_MAX_VALUE = 100_000


class Command:
    """One simple command: its words, where it writes, and what feeds it."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.wrappers: list[str] = []
        """The programs that start it: ``sudo``, ``xargs``."""
        self.wrapper_args: list[str] = []
        """Their own arguments."""
        self.assigned: list[str] = []
        self.writes: list[str] = []
        self.reads: list[str] = []
        self.piped = False
        self.source: Command | None = None
        """The command that is piped into it."""
        self.fed: str | None = None
        """A here-document or here-string."""
        self.piped_text = ""
        """What its source prints, if an echo or a here-document says so."""
        self.opaque = False
        """What it will run cannot be told by reading."""
        self.appended = False
        """It gets further arguments from elsewhere, as by xargs."""

    @property
    def name(self) -> str:
        """The program, without its folder."""
        return self.words[0].rsplit("/", 1)[-1] if self.words else ""

    @property
    def input_text(self) -> str:
        """What it reads from its standard input, as far as the line says so."""
        return self.piped_text if self.fed is None else self.fed

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
    budget = _Budget()
    # Halves of surrogate pairs are marks in here, and no text for a shell.
    text = line if line.isascii() else line.encode("utf-8", "replace").decode()
    found = _commands(text, {}, 0, budget)
    if budget.is_spent or budget.missed:
        found.append(Command())  # for what was not read
        found[-1].opaque = True
    return found


def programs(line: str) -> list[str]:
    """The programs that a line starts, each once; ``?`` where one cannot be told."""
    found: dict[str, None] = {}
    for command in commands(line):
        names = [*command.wrappers, command.name] if command.words else command.wrappers
        found |= dict.fromkeys("?" if _is_unknown(name) else name for name in names)
        found |= {"?": None} if command.opaque else {}
    return list(found)


def runs(line: str, pattern: str) -> bool:
    """Whether a line runs a command like this; ``*`` in the pattern is any text.

    ``git push *`` is also ``git push`` alone. What cannot be told by reading counts.
    """
    wanted = " ".join(pattern.split())
    whole = " ".join(line.split())
    return _is_like(whole, wanted) or any(_runs(one, wanted) for one in commands(line))


def _runs(command: Command, pattern: str) -> bool:
    wrapped = [*command.wrappers, *command.wrapper_args, *command.words]
    if command.opaque or (command.words and _is_unknown(command.name)):
        return True
    named = [command.name, *command.args] if command.words else []
    more = ["$"] if command.appended else []
    listed = (command.words, named, wrapped)
    return any(_may_be([*words, *more], pattern) for words in listed)


def _may_be(words: list[str], pattern: str) -> bool:
    """Whether words can be what a pattern means; a variable can be any text."""
    known = list(takewhile(lambda word: "$" not in word, words))
    if len(known) == len(words):
        return bool(words) and _is_like(" ".join(words), pattern)
    start, given = pattern.partition("*")[0], " ".join((*known, ""))
    return given.startswith(start) or start.startswith(given)


def _is_like(text: str, pattern: str) -> bool:
    """In steps: a regular expression with several ``*`` could take forever."""
    if pattern.endswith(" *") and text == pattern[:-2]:
        return True
    first, *rest = pattern.split("*")
    if not rest:
        return text == pattern
    if not text.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(text) - at >= len(rest[-1]) and text.endswith(rest[-1])


def _is_unknown(name: str) -> bool:
    """Whether the name is set elsewhere, or matched against the names of files."""
    return not name or any(char in name for char in "$*?[\0")


class _Budget:
    """How much may still be read: no line may fill the memory or take forever."""

    def __init__(self) -> None:
        self._words = _MAX_WORDS
        self._characters = 8 * MAX_LINE
        self.missed = False
        """A part was nested too deeply to be read."""

    @property
    def is_spent(self) -> bool:
        """Whether the rest of the line is not read."""
        return self._words < 0 or self._characters < 0

    def take_word(self) -> bool:
        """Whether one more word may be kept."""
        self._words -= 1
        return not self.is_spent

    def take_text(self, length: int, most: int) -> bool:
        """Whether so many characters more may be read, and so many at once."""
        self._characters -= length if length <= most else self._characters + 1
        return not self.is_spent


def _commands(
    line: str, variables: dict[str, str], depth: int, budget: _Budget
) -> list[Command]:
    may_read = budget.take_text(len(line), MAX_LINE)
    return _expanded(parse(line), variables, depth, budget) if may_read else []


def _expanded(
    simple_commands: Iterable[SimpleCommand],
    variables: dict[str, str],
    depth: int,
    budget: _Budget,
) -> list[Command]:
    found: list[Command] = []
    expander = _Expander(variables, budget)
    before = Command()
    for simple in simple_commands:
        budget.missed = budget.missed or depth > _MAX_DEPTH
        if budget.is_spent or depth > _MAX_DEPTH:
            break
        command = expander.command(simple)
        if command.piped:
            command.source, command.piped_text = before, _printed_text(before)
        before = command
        found += _unwrapped(command, variables, depth, budget)
        for piece in _pieces(simple.all_words):
            budget.missed = budget.missed or piece.unread
            found += _expanded(piece.commands, variables, depth + 1, budget)
    return found


def _printed_text(command: Command) -> str:
    """What a command prints, if it is plain to see."""
    if command.name in known.PRINTERS:
        words = [word for word in command.args if not re.fullmatch("-[neE]+|--", word)]
        return " ".join(words).replace("\\n", "\n")
    return command.input_text if command.name in ("cat", "tee") else ""


def _pieces(words: Iterable[Word]) -> Iterator[Piece]:
    for piece in (piece for word in words for piece in word):
        yield piece
        if piece.argument:
            yield from _pieces([piece.argument])


class _Expander:
    """Expands words with the variables that the line has set so far."""

    def __init__(self, variables: dict[str, str], budget: _Budget) -> None:
        self._variables = variables
        self._budget = budget

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
        for piece in _pieces(simple.all_words):
            printed = self._printed(piece.commands) if piece.source[:1] == "<" else ""
            if printed not in ("", _UNKNOWN):
                command.fed = printed
        return command

    def _keep(self, words: list[str], field: str) -> None:
        if not self._budget.take_word():
            return
        words.append(field)
        if words[-4:-3] == ["for"] and words[-2:-1] == ["in"]:
            self._variables[words[-3]] = field
        name, equals, value = field.partition("=")
        if name[-1:] == "+":
            name = name[:-1]
            value = self._variables.get(name, "") + value
        if equals and name.isidentifier():
            # A variable that doubles itself again and again must not fill the memory.
            self._budget.take_text(len(value), _MAX_VALUE)
            self._variables[name] = value[:_MAX_VALUE]

    def _fields(self, word: Word) -> list[str]:
        """The words that one word becomes: split at blanks, braces expanded."""
        marked = "".join(self._marked(piece) for piece in word)
        fields = [field for field in marked.split(_BREAK) if field]
        if not fields and any(piece.quoted or not piece.source for piece in word):
            return [""]
        if not self._budget.take_text(len(marked), _MAX_VALUE):
            return []
        return [one for field in fields for one in self._expand_braces(field)]

    def _expand_braces(self, word: str) -> list[str]:
        """Expand ``{a,b}``; a pair without a comma stays as it is."""
        pending: list[str] = [word]
        expanded: list[str] = []
        while pending and not self._budget.is_spent:
            word = pending.pop()
            pairs = re.finditer(_BRACES, word)
            if found := next((pair for pair in pairs if _COMMA in pair[1]), None):
                pending += self._chosen(word, found)[::-1]
            else:
                expanded.append(word.translate(_UNMARKED))
        return expanded

    def _chosen(self, word: str, braces: re.Match[str]) -> list[str]:
        start, end = word[: braces.start()], word[braces.end() :]
        choices = braces[1].split(_COMMA)
        length = len(choices) * len(start + end) + len(word)
        may_expand = self._budget.take_text(length, 8 * MAX_LINE)
        return [start + one + end for one in choices] if may_expand else []

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
        if words[:1] == ["mktemp"]:
            return "/tmp/mktemp"  # noqa: S108 - a name to read, not to open
        found = re.fullmatch(_PRINTS, " ".join(words))
        return found[1] if found else _UNKNOWN


def _unwrapped(
    command: Command, variables: dict[str, str], depth: int, budget: _Budget
) -> list[Command]:
    """A command without what stands before it, and the commands that it runs."""
    _drop_prefixes(command)
    while rest := _wrapped_words(command):
        if len(command.wrappers) == _MAX_WRAPPERS:
            budget.missed = True
            return [command]
        command.appended = command.appended or command.name == "xargs"
        command.wrappers.append(command.name)
        command.wrapper_args += command.args[: len(command.args) - len(rest)]
        command.words = rest
        _drop_prefixes(command)
    line = _inner_line(command)
    if line is None:
        return [command]
    return [command, *_commands(line, dict(variables), depth + 1, budget)]


def _drop_prefixes(command: Command) -> None:
    rest = list(dropwhile(_is_prefix, command.words))
    before = command.words[: len(command.words) - len(rest)]
    command.assigned += [word for word in before if word not in _RESERVED]
    # The head of a loop or a choice runs nothing by itself.
    command.words = [] if rest[:1] in _HEADS else rest


def _is_prefix(word: str) -> bool:
    return word in _RESERVED or bool(re.match(_ASSIGNMENT, word))


def _wrapped_words(command: Command) -> list[str]:
    """The command that a command runs with the rest of its words; none for others."""
    name, args = command.name, command.args
    if name in known.RUNNERS:
        return _after_subcommand(args, known.RUNNERS[name])
    if name in known.CONTAINERS:
        return _in_container(args)
    if name not in known.WRAPPERS or name == "watch":
        return []
    if name == "env" and _split_string(args) is not None:
        return []
    rest = _after_options(args, _letters(known.WRAPPERS[name]))
    rest = rest[name in known.FIRST_IS_NO_PROGRAM :]
    return [] if rest[:1] == ["-c"] else rest  # flock file -c line


def _split_string(args: list[str]) -> str | None:
    """The line that ``env -S`` makes of its words; None without this option."""
    before = ""
    for at, word in enumerate(args):
        if found := re.fullmatch(r"(?s)(?:-[iv0]*S|--s[a-z-]*=?)(.*)", word):
            return " ".join((found[1], *args[at + 1 :]))
        if word[:1] != "-" and before not in ("-u", "-C", "-a"):
            return None
        before = word
    return None


def _after_options(args: list[str], with_value: Callable[[str], bool]) -> list[str]:
    """What follows the options and their values."""
    at = 0
    while at < len(args) and args[at].startswith("-") and args[at] != "--":
        at += 2 if with_value(args[at]) else 1
    return args[at + (args[at : at + 1] == ["--"]) :]


def _letters(letters: str) -> Callable[[str], bool]:
    return lambda option: len(option) == 2 and option[1] in letters


def _runner_value(option: str) -> bool:
    return option in known.RUNNER_VALUES or option in ("-p", "-c", "-C", "-w")


def _container_value(option: str) -> bool:
    if option[:2] == "--":
        return "=" not in option and option not in known.CONTAINER_SWITCHES
    return _letters("acehlmnpuvw")(option)


def _after_subcommand(args: list[str], subcommands: frozenset[str]) -> list[str]:
    """The program of ``uv run``, ``npx`` or ``bundle exec``."""
    rest = _after_options(args, _runner_value)
    if not subcommands:
        return rest
    is_run = bool(rest) and rest[0] in subcommands
    return _after_options(rest[1:], _runner_value) if is_run else []


def _in_container(args: list[str]) -> list[str]:
    """The program of ``docker exec name`` and ``kubectl exec pod --``."""
    at = next((at for at, word in enumerate(args) if word in ("exec", "run")), None)
    if at is None:
        return []
    rest = args[at + 1 :]
    if "--" in rest:
        return rest[rest.index("--") + 1 :]
    return _after_options(rest, _container_value)[1:]


def _inner_line(command: Command) -> str | None:
    """The shell line that a command runs in turn, if it does."""
    name, args, operands = command.name, command.args, command.operands
    if name in _RUN_LINES:
        return _script_of(command)
    is_unknown = name == _UNKNOWN or (name == "eval" and _UNKNOWN in " ".join(args))
    if is_unknown or (re.fullmatch(_INTERPRETER, name) and _reads_program(command)):
        command.opaque = True
    if name in ("find", "fd", "fdfind"):
        return _find_commands(args)
    if name == "parallel" and ":::" in args:
        return " ".join(["xargs", *args[: args.index(":::")]])
    if name == "env":
        return _split_string(args)
    if re.fullmatch(_WINDOWS_SHELL, name):
        return _windows_line(command)
    lines = {
        "eval": args,
        "watch": operands,
        "ssh": operands[1:],
        "tmux": operands[1:],
        "ansible": args[args.index("-a") + 1 :][:1] if "-a" in args else [],
        "trap": args[:1],
    }
    return " ".join(lines[name]) if name in lines else None


def _windows_line(command: Command) -> str | None:
    for index, word in enumerate(command.args):
        if re.fullmatch(r"(?i)/[ck]|-c(ommand)?", word):
            return " ".join(command.args[index + 1 :])
        # A command in base64, under any abbreviation of its name.
        is_encoded = re.fullmatch(r"(?i)-e(nc\w*|c)?", word) is not None
        command.opaque = command.opaque or is_encoded
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

    rest = iter(args)
    lines = [
        join(takewhile(lambda one: one not in (";", "+"), rest))
        for word in rest
        if word in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec")
    ]
    return "\n".join(lines) or None
