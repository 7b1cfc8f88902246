"""All commands in one parser, for completions and the manual.

It is built from the modules that run the commands, so it cannot differ from them.
"""

from __future__ import annotations

from argparse import Action
from importlib import import_module

from msgspec import Struct

from .common import Parser
from .main import COMMANDS


class Tree(Struct, frozen=True):
    """The parser of ``hookline``, and those of its commands."""

    root: Parser
    commands: dict[str, Parser]


def command_tree() -> Tree:
    """Build the parsers of all commands, in the order of the overview."""
    root, commands = Parser(prog="hookline"), {}
    root.add_flag("-V --version", "print the version")
    below = root.add_subparsers(metavar="COMMAND")
    for name in COMMANDS:
        module = import_module(f"hookline.cli.{name}")
        about, text = module.SUMMARY, module.DESCRIPTION
        commands[name] = below.add_parser(name, help=about, description=text)
        module.add_arguments(commands[name])
    about = "describe a command"
    text = "Describe a command, with its options and examples."
    commands["help"] = below.add_parser("help", help=about, description=text)
    text = "the command (default: all of them, one line each)"
    commands["help"].add_argument(
        "command", metavar="COMMAND", nargs="?", choices=COMMANDS, help=text
    )
    return Tree(root, commands)


def arguments_of(parser: Parser) -> list[Action]:
    """The arguments and options of a command."""
    return parser._actions  # noqa: SLF001 - argparse has no other list
