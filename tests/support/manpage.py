"""Writes ``docs/man/hookline.1``: ``make manpage`` (decision 0147).

Commands, options and examples come from the parsers of the commands.
"""

from __future__ import annotations

import re
from argparse import Action
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from hookline.cli.common import Parser
from hookline.cli.help_text import GAP, blocks
from hookline.cli.tree import arguments_of, command_tree

FILE = Path(__file__).parents[2] / "docs/man/hookline.1"

PAGE = Path(__file__).with_suffix(".roff")
"""What stands around the commands."""
_SPECIAL = {
    "\\": r"\e",
    "-": r"\-",
    "'": r"\(aq",
    "`": r"\(ga",
    "~": r"\(ti",
    "^": r"\(ha",
}


def man_page() -> str:
    """The whole page."""
    lines = (
        line
        for name, parser in command_tree().commands.items()
        for line in _command(name, parser)
    )
    return PAGE.read_text().replace("<commands>", "\n".join(lines))


def _command(name: str, parser: Parser) -> Iterator[str]:
    words = parser.format_usage().removeprefix("usage: ").split()
    usage = " ".join(word for word in words if word != "[-h]")
    yield from (f".SS hookline {name}", f".B {_plain(usage)}")
    for is_prose, lines in blocks(parser.description or ""):
        yield from _prose(lines) if is_prose else _examples(lines)
    arguments = [one for one in arguments_of(parser) if one.dest != "help"]
    if arguments:
        yield from _prose(["Arguments and options:"])
    for argument in arguments:
        about = (argument.help or "").replace("%%", "%")
        yield from _term(_invocation(argument), about)


def _prose(lines: list[str]) -> Iterator[str]:
    yield ".PP"
    yield from map(_plain, lines)


def _examples(lines: list[str]) -> Iterator[str]:
    """Examples with an explanation are terms, others stay as they are."""
    found = [line[2:] for line in lines if line.strip()]
    for is_term, some in groupby(found, lambda line: bool(GAP.search(line.strip()))):
        if is_term:
            for line in some:
                yield from _term(*GAP.split(line.strip(), maxsplit=1))
        else:
            yield from (".PP", ".EX", *map(_plain, some), ".EE")


def _term(term: str, about: str) -> Iterator[str]:
    yield from (".TP", f".B {_plain(term)}", _plain(about))


def _invocation(argument: Action) -> str:
    if argument.nargs == 0:
        return ", ".join(argument.option_strings)
    given = argument.metavar or "|".join(map(str, argument.choices or ()))
    value = given if isinstance(given, str) else " ".join(given)
    return ", ".join(f"{flag} {value}" for flag in argument.option_strings) or value


def _plain(text: str) -> str:
    """Text without a meaning for the formatter."""
    escaped = "".join(_SPECIAL.get(letter, letter) for letter in text)
    return re.sub(r"^(?=\.)", r"\\&", escaped)


if __name__ == "__main__":
    FILE.write_text(man_page())
