"""``hookline completion``: print the script that completes commands in a shell.

The script is made by shtab from the parsers of the commands (decision 0146). As they
are those that run the commands, the script cannot differ from them.
"""

from __future__ import annotations

import re
from argparse import Action
from importlib import import_module
from typing import Any

from hookline.errors import HooklineError, MissingExtraError, nearest
from hookline.hosts.registry import HOSTS
from hookline.protocol.events import HookEventName

from .main import COMMANDS
from .options import Options, Parser

SUMMARY = "print the script that completes commands in your shell"
DESCRIPTION = """\
Print a script that completes commands, options, events, recipes, coding agents and
files when you press Tab. Save it where your shell looks for completions, and start
a new shell:

  hookline completion bash > ~/.local/share/bash-completion/completions/hookline
  hookline completion zsh > ~/.zfunc/_hookline
  hookline completion fish > ~/.config/fish/completions/hookline.fish

If the folder is missing, create it with mkdir -p. bash needs the package
bash-completion; without it, and to try the script in this shell only:

  eval "$(hookline completion bash)"

zsh needs these lines in ~/.zshrc:

  fpath=(~/.zfunc $fpath)
  autoload -Uz compinit && compinit

Save it again after an upgrade of Hookline."""

_SHELLS = ("bash", "zsh", "fish")
_SAVE = "# 'hookline help completion' says where to save this."
_EXAMPLE = f"run 'hookline completion {'|'.join(_SHELLS)}'"


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    text = f"your shell: {', '.join(_SHELLS)}"
    parser.add_argument("shell", metavar="SHELL", nargs="?", help=text)


def run(options: Options) -> None:
    """Print the script."""
    shell = options.shell
    if shell is None:
        raise HooklineError(f"which shell? {_EXAMPLE}")
    if shell not in _SHELLS:
        near = nearest(shell, _SHELLS)
        hint = f"did you mean {near!r}?" if near else f"known: {', '.join(_SHELLS)}"
        raise HooklineError(f"unknown shell {shell!r}: {hint}")
    try:
        import shtab
    except ImportError as error:
        raise MissingExtraError("cli", "shtab") from error
    if shell not in shtab.SUPPORTED_SHELLS:
        raise MissingExtraError("cli", "shtab", "1.10")
    root, parsers = command_tree()
    for name, parser in parsers.items():
        parser.description = None  # lists show the summary
        for argument in arguments_of(parser):
            values = _values(argument, name)
            if argument.metavar == "EVENT":
                argument.help = "event"  # not the list of them beside each
            if isinstance(values, dict):
                argument.complete = values  # type: ignore[attr-defined]  # for shtab
            elif values:
                argument.choices = values
            if not isinstance(argument.metavar, str):
                argument.metavar = None
    script = str(shtab.complete(root, shell))
    print(re.sub(r"# Usage:\n(?:#.*\n)+", f"{_SAVE}\n", script, count=1))


def command_tree() -> tuple[Parser, dict[str, Parser]]:
    """The parser of ``hookline``, and those of its commands in their order."""
    root = Parser(prog="hookline")
    root.add_flag("-V --version", "print the version")
    subparsers = root.add_subparsers(metavar="COMMAND")
    parsers = {}
    for name in COMMANDS:
        module = import_module(f"hookline.cli.{name}")
        parsers[name] = subparsers.add_parser(
            name, help=module.SUMMARY, description=module.DESCRIPTION
        )
        module.add_arguments(parsers[name])
    text = "Describe a command, with its options and examples."
    parsers["help"] = subparsers.add_parser(
        "help", help="describe a command", description=text
    )
    text = "the command (default: all of them, one line each)"
    parsers["help"].add_argument(
        "command", metavar="COMMAND", nargs="?", choices=COMMANDS, help=text
    )
    return root, parsers


def arguments_of(parser: Parser) -> list[Action]:
    """The arguments and options of a command."""
    return parser._actions  # noqa: SLF001 - argparse has no other list


def _values(argument: Action, command: str) -> Any:
    """The values of an argument: a list, or what shtab completes for files."""
    import shtab

    from hookline.recipes.catalog import RECIPES

    kind = argument.metavar
    if argument.dest == "recipe" or (command, kind) == ("recipes", "NAME"):
        return [*RECIPES]
    if kind == "EVENT" and command != "bridge":  # that one is the agent's own name
        return [*HookEventName]
    if kind == "HOST":
        return [*HOSTS]
    if kind == "SHELL":
        return _SHELLS
    files = {"FILE": shtab.FILE, "PATH": shtab.FILE}
    return {**files, "DIR": shtab.DIR, "PROJECT": shtab.DIR}.get(str(kind))
