"""Block access to secrets, and changes to git's and Hookline's own files.

Paths are resolved first (links, dots, ``~``, wildcards). ``.env`` files and keys may
be neither read nor changed; ``.git``, ``.hookline`` and lock files may be read.
``PROTECTED_FILES`` adds patterns of the second kind, separated by commas.
"""

import os
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from hookline.recipes.shell import SHELLS, Command
from hookline.recipes.toolinput import (
    expanded,
    is_shell,
    only_reads,
    paths_in,
    placed_commands,
    resolved,
    shell_line,
)
from hookline.script import Output, block, run

SECRET = (
    *(".env", ".env.*", "*.pem", "*.key", "id_rsa*", "id_ed25519*", ".ssh", ".npmrc"),
    *(".netrc", ".pgpass", ".aws", ".kube", "credentials.json"),
)
HARMLESS = (".env.example", ".env.sample", ".env.template", "*.pub")
READABLE = (".git", ".hookline", "package-lock.json", "poetry.lock", "uv.lock")
WRITERS = {"rm", "mv", "cp", "tee", "dd", "truncate", "chmod", "chown", "ln", "touch"}
WRITERS |= {"install", "rsync", "shred", "unlink", "rmdir", "sponge", "patch", "ed"}
INTERPRETER = re.compile(r"(python|perl|ruby|node|php|awk|gawk)[\d.]*")


def check(event: dict[str, Any]) -> Output | None:
    """Block the call if it would touch or change a protected file."""
    tool, tool_input, cwd = event["tool_name"], event["tool_input"], event["cwd"]
    if is_shell(tool):
        return _check_line(shell_line(tool_input), cwd)
    return _check_paths(paths_in(tool_input), cwd, writes=not only_reads(tool))


def _check_line(line: str, cwd: str) -> Output | None:
    for command, place in placed_commands(line, cwd):
        found = _check_command(command, cwd, os.path.relpath(place, cwd))
        if found:
            return found
    return None


def _check_command(command: Command, cwd: str, place: str) -> Output | None:
    words = [piece for word in command.words for piece in (word, *_values(word))]
    if INTERPRETER.fullmatch(command.name) or command.name in SHELLS:
        # A program in the command may name files anywhere in its text.
        words += re.findall(r"[\w./~*-]+", " ".join((*command.args, command.fed or "")))
    writes = command.name in WRITERS or (command.name == "sed" and "i" in command.flags)
    writes = writes or bool(INTERPRETER.fullmatch(command.name))
    names = [name for word in words for name in expanded(word, resolved(place, cwd))]
    touched, written = [*names, *command.reads], command.writes
    if place != ".":  # after a cd
        touched, written = _moved(touched, place), _moved(written, place)
    return _check_paths(touched, cwd, writes) or _check_paths(written, cwd, writes=True)


def _moved(names: Iterable[str], place: str) -> list[str]:
    return [name if name.startswith("~") else str(Path(place, name)) for name in names]


def _values(word: str) -> list[str]:
    """The value of ``--file=x``, ``of=x`` or ``-d@x``."""
    return [part for part in re.split(r"[=@:]", word)[1:] if part]


def _check_paths(paths: Iterable[str], cwd: str, writes: bool) -> Output | None:
    for path in paths:
        if _any_part(path, cwd, SECRET):
            return block(f"{path} contains secrets: it may not be read or changed")
        if writes and _any_part(path, cwd, (*READABLE, *_more())):
            return block(f"{path} is protected: it may be read, not changed")
    return None


def _any_part(path: str, cwd: str, patterns: Iterable[str]) -> bool:
    # The names of the folders above the project do not count.
    place = resolved(path, cwd).removeprefix(os.path.realpath(cwd))
    for part in {*Path(place).parts, *Path(os.path.normpath(path)).parts}:
        name = part.casefold()
        if not any(fnmatchcase(name, harmless) for harmless in HARMLESS) and any(
            fnmatchcase(name, pattern.casefold()) for pattern in patterns
        ):
            return True
    return False


def _more() -> list[str]:
    named = os.environ.get("PROTECTED_FILES", "").split(",")
    return [pattern.strip() for pattern in named if pattern.strip()]


if __name__ == "__main__":
    run(check)
