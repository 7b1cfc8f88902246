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

HEAD = r""".\" Written by 'make manpage': changes are lost
.TH HOOKLINE 1 "" Hookline
.SH NAME
hookline \- hooks for AI agents
.SH SYNOPSIS
.B hookline
.I COMMAND
.RI [ OPTIONS ]
.SH DESCRIPTION
Hookline runs your own checks at every step of an AI agent: before and after
tools, models, turns and sessions.
They can block, change, add or stop.
.PP
New here?
.B hookline demo
shows it,
.B hookline init
sets up a first hook, and
.BI "hookline help " COMMAND
describes one command.
.SH COMMANDS
"""
TAIL = r""".SH EXIT STATUS
Commands that give a verdict exit with 0 for allowed and 2 for blocked or
stopped.
1 is a usage error, with a message on standard error.
.SH ENVIRONMENT
.TP
.B XDG_CONFIG_HOME\fR, \fBXDG_STATE_HOME\fR, \fBXDG_RUNTIME_DIR
Where your settings, what is kept, and the files of the resident helper are.
.TP
.B HOOKLINE_NO_RESIDENT
If it is 1, the bridge works without the resident helper.
.TP
.B NO_COLOR
If it is set, output has no colours.
.TP
.B PAGER
Shows long reviews.
.SH FILES
.TP
.I .hookline/settings.json
Settings of a project;
.I settings.local.json
is for one machine.
.TP
.I \(ti/.config/hookline/settings.json
Your own settings, for all projects.
.TP
.I /etc/hookline/settings.json
Settings of the machine.
.TP
.I \(ti/.local/state/hookline
Approvals, the journal and caches.
.PP
.B hookline paths
shows all of them.
"""
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
    return "\n".join((HEAD.rstrip(), *lines, TAIL))


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
