"""What the words of a command may stand for: variables, ``~``, braces, folders.

The texts that come out of here are encoded: special characters that were quoted are
protected, and what cannot be known is ``UNKNOWN``. ``reveal`` gives the text itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from .parse import Piece, SimpleCommand, Word
from .programs import KEYWORDS

UNKNOWN = "\0"
SPLIT = "\ud804"
"""A blank in the value of an unquoted variable."""
NAME = r"[A-Za-z_][A-Za-z0-9_]*"
MAX_VALUES = 64
_MAX_LENGTH = 100_000
_MAX_LOOKUPS = 20_000

_SPECIAL = "*?[]{},~"
_PROTECT = str.maketrans({char: chr(0xD900 + ord(char)) for char in _SPECIAL})
_REVEAL = str.maketrans({chr(0xD900 + ord(char)): char for char in _SPECIAL})
_AS_GLOB = str.maketrans({chr(0xD900 + ord(char)): f"[{char}]" for char in "*?["})
_BRACES = r"\{([^{}]*,[^{}]*)\}|\{([^{},]+?)\.\.([^{},]+?)(?:\.\.([+-]?\d{1,6}))?\}"


def reveal(text: str) -> str:
    """The text itself, without protection."""
    return text.translate(_REVEAL)


def as_glob(text: str) -> str:
    """A pattern in the spelling of ``glob``."""
    return text.translate(_AS_GLOB).translate(_REVEAL)


def is_pattern(text: str) -> bool:
    """Whether the shell turns it into names of files."""
    return any(char in text for char in "*?") or bool(re.search(r"\[[^\[]+\]", text))


class Arg:
    """One word: every text that it may stand for, and how it is written."""

    def __init__(self, texts: list[str], shown: str) -> None:
        self.texts = texts
        self.shown = shown[:80]

    @classmethod
    def of(cls, text: str) -> Arg:
        """A word that stands for itself."""
        return cls([text.translate(_PROTECT)], text)

    @property
    def text(self) -> str:
        """Its first text; "" where it is not known."""
        return "" if UNKNOWN in self.texts[0] else reveal(self.texts[0])

    def after(self, start: int) -> Arg:
        """The rest of the word, as in ``--file=rest``."""
        return Arg([text[start:] for text in self.texts], self.shown)


def plain_text(word: Word) -> str:
    """The text of an unquoted word; "" for any other, which is no keyword."""
    is_plain = len(word) == 1 and not word[0].quoted and not word[0].source
    return word[0].text if is_plain else ""


def assignment(word: Word) -> tuple[str, Word] | None:
    """The name and the value of ``name=value``."""
    first = word[0]
    is_text = not first.quoted and not first.source
    found = re.match(rf"({NAME}\+?)=", first.text) if is_text else None
    if found is None:
        return None
    return found[1], Word((Piece(first.text[found.end() :]), *word[1:]))


class Words:
    """Expands words; knows variables, and the folders that a command may be in."""

    def __init__(self, variables: Mapping[str, str], folder: str) -> None:
        self._given = variables
        self._assigned: dict[str, list[Word | None]] = {}
        self._resolving: set[str] = set()
        self._lookups = 0
        self.folders = [folder]
        self.lost = ""
        """Why the folder is not known any more."""

    def knows(self, name: str) -> bool:
        """Whether anything is known about a variable."""
        return name in self._given or name in self._assigned

    def arg(self, word: Word) -> Arg:
        """Everything that a word may stand for."""
        shown = "".join(piece.source or piece.text for piece in word)
        return Arg(self._values(word), shown)

    def args(self, word: Word) -> list[Arg]:
        """The same for each word that it becomes where a variable holds several."""
        arg = self.arg(word)
        alternatives = self._alternatives(word)
        is_split = len(alternatives) == 1 and SPLIT in alternatives[0]
        return [Arg([text], arg.shown) for text in arg.texts] if is_split else [arg]

    def enter(self, arg: Arg) -> None:
        """Commands may run in this folder from now on."""
        before = self.folders
        for text in arg.texts:
            if UNKNOWN in text or is_pattern(text):
                self.lost = f"it depends on the folder {arg.shown}"
                continue
            entered = [join(folder, reveal(text)) for folder in before]
            self.folders = list(dict.fromkeys((*self.folders, *entered)))
            if len(self.folders) > MAX_VALUES:
                self.lost, self.folders = "it enters too many folders", before[:1]
                return

    def note_assignments(self, commands: Iterable[SimpleCommand]) -> None:
        """Remember what variables may hold, whatever the order."""
        for command in commands:
            words = without_keywords(command.words)
            self._note_names(words)
            for word in words:
                if (found := assignment(word)) is not None:
                    self.assign(found[0], found[1])
            pieces = (piece for word in command.all_words for piece in word)
            for piece in pieces:
                self.note_assignments(piece.operators)

    def assign(self, name: str, value: Word | None) -> None:
        """A variable may hold this value; None is one that is not known."""
        appends = name.endswith("+")
        known = self._assigned.setdefault(name.rstrip("+"), [])
        known.append(None if appends else value)

    def _note_names(self, words: list[Word]) -> None:
        texts = [plain_text(word) for word in words]
        if texts[:1] in (["for"], ["select"]):
            for value in (*words[3:], *([] if words[3:] else [None])):
                self.assign("".join(texts[1:2]), value)
        elif texts[:1] in (["read"], ["mapfile"], ["readarray"], ["getopts"]):
            for name in texts[1:]:
                self.assign(name, None)
        elif texts[:2] == ["printf", "-v"]:
            self.assign("".join(texts[2:3]), None)

    def _alternatives(self, word: Word) -> list[str]:
        found = [""]
        for piece in word:
            values = dict.fromkeys(self._piece_values(piece))
            found = [before + value for before in found for value in values]
            if len(found) > MAX_VALUES or max(map(len, found)) > _MAX_LENGTH:
                return [UNKNOWN]
        return found

    def _values(self, word: Word) -> list[str]:
        found = self._alternatives(word)
        words = [one for text in found for one in _expand_braces(text)]
        words = [one for text in words for one in text.split(SPLIT) if one or not text]
        return [self.expand_home(text) for text in words] or [""]

    def expand_home(self, text: str) -> str:
        """``~``, ``~+`` or ``~user`` at the start of a word."""
        user, slash, rest = text.partition("/")
        if text[:1] != "~" or UNKNOWN in user:
            return text
        # A name with a quoted letter in it is nobody's.
        is_quoted = reveal(user) != user
        home = user if is_quoted else os.path.expanduser(user)  # noqa: PTH111
        if user == "~":
            home = self._given.get("HOME", user)
        elif user == "~+":
            home = self.folders[0]
        return UNKNOWN if home == user else home + slash + rest

    def _piece_values(self, piece: Piece) -> list[str]:
        if not piece.source:
            return [piece.text.translate(_PROTECT) if piece.quoted else piece.text]
        if piece.operators:
            return self._substituted(piece)
        argument = [] if piece.argument is None else self._values(piece.argument)
        if not piece.variable:
            return [UNKNOWN, *(text.lstrip(":+?=-") for text in argument)]
        found = self.variable(piece.variable)
        if not piece.quoted:
            found = [re.sub(r"\s+", SPLIT, text) for text in found]
        return found + argument

    def variable(self, name: str) -> list[str]:
        """What a variable may hold."""
        self._lookups += 1
        # Variables that double each other would take forever.
        too_many = len(self._resolving) > MAX_VALUES or self._lookups > _MAX_LOOKUPS
        if name in self._resolving or too_many:
            return [UNKNOWN]
        if name == "PWD" and "PWD" in self._given:
            return [*self.folders, *([UNKNOWN] if self.lost else [])]
        self._resolving.add(name)
        found = []
        if name in self._given:
            found.append(self._given[name].translate(_PROTECT))
        for word in self._assigned.get(name, ()):
            found += [UNKNOWN] if word is None else self._values(word)
        self._resolving.discard(name)
        return found or [UNKNOWN]

    def expand_variable(self, found: re.Match[str]) -> str:
        """The value of ``$name`` in a text that no shell reads; itself if unknown."""
        return self._given.get(found[1] or found[2], found[0])

    def _substituted(self, piece: Piece) -> list[str]:
        if len(piece.commands) != 1:
            return [UNKNOWN]
        args = [self.arg(word) for word in piece.commands[0].words]
        texts = [arg.text for arg in args]
        if texts == ["pwd"]:
            return self.variable("PWD")
        if texts[:1] == ["dirname"] and len(args) == 2:
            return [_dirname(text) for text in args[1].texts]
        if texts == ["git", "rev-parse", "--show-toplevel"]:
            return [self.folders[0], UNKNOWN]  # most likely, but not for sure
        prints = ["realpath"], ["readlink"], ["echo"], ["which"]
        if len(args) > 1 and (texts[:1] in prints or texts[:2] == ["command", "-v"]):
            return args[-1].texts
        return [UNKNOWN]


def without_keywords(words: list[Word]) -> list[Word]:
    """The words of a command after ``if``, ``do``, ``!`` and their like."""
    at = 0
    while at < len(words) and plain_text(words[at]) in KEYWORDS:
        at += 1
    return words[at:]


def join(folder: str, path: str) -> str:
    """A path from a folder on, normalised."""
    return os.path.normpath(os.path.join(folder, path))  # noqa: PTH118


def _expand_braces(text: str) -> list[str]:
    """``{a,b}`` and ``{1..3}`` as bash expands them."""
    waiting, found = [text], list[str]()
    while waiting and len(found) + len(waiting) <= MAX_VALUES:
        text = waiting.pop()
        one = re.search(_BRACES, text)
        if one is None:
            found.append(text)
            continue
        choices = _range(*one.groups()[1:]) if one[1] is None else one[1].split(",")
        waiting += [text[: one.start()] + each + text[one.end() :] for each in choices]
    return [*found, UNKNOWN] if waiting else found


def _range(first: str, last: str, step: str | None) -> list[str]:
    """What ``first..last`` stands for between braces."""
    ends, width = (first, last), 0
    if all(re.fullmatch("[A-Za-z]", end) for end in ends):
        start, end = map(ord, ends)
    elif all(re.fullmatch(r"[+-]?[0-9]{1,6}", end) for end in ends):
        start, end = map(int, ends)
        if any(re.match("[+-]?0[0-9]", one) for one in ends):
            width = max(map(len, ends))
    else:
        return [UNKNOWN]  # most likely no range
    by = (abs(int(step or 1)) or 1) * (1 if start <= end else -1)
    values = range(start, end + (1 if by > 0 else -1), by)[: MAX_VALUES + 1]
    if first.isalpha():
        return [chr(value).translate(_PROTECT) for value in values]
    return [str(value).zfill(width) for value in values]


def _dirname(text: str) -> str:
    return UNKNOWN if UNKNOWN in text else os.path.dirname(text) or "."  # noqa: PTH120
