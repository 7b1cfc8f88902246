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

from hookline.recipes.toolinput import (
    env_list,
    expanded,
    is_shell,
    only_reads,
    paths_in,
    placed_commands,
    resolved,
)
from hookline.script import Output, block, run
from hookline.shelltext.commands import SHELLS, Command

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
    tool, cwd = event["tool_name"], event["cwd"]
    if not is_shell(tool):
        paths = paths_in(event["tool_input"])
        return _check_paths(paths, cwd, writes=not only_reads(tool))
    for command, place in placed_commands(event):
        if found := _check_command(command, cwd, os.path.relpath(place, cwd)):
            return found
    return None


def _check_command(command: Command, cwd: str, place: str) -> Output | None:
    # Also the value of ``--file=x``, ``of=x`` or ``-d@x``.
    pieces = ((word, *re.split(r"[=@:]", word)[1:]) for word in command.words)
    words = [one for several in pieces for one in several if one]
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


def _check_paths(paths: Iterable[str], cwd: str, writes: bool) -> Output | None:
    for path in paths:
        if _any_part(path, cwd, SECRET):
            return block(f"{path} contains secrets: it may not be read or changed")
        if writes and _any_part(path, cwd, (*READABLE, *env_list("PROTECTED_FILES"))):
            return block(f"{path} is protected: it may be read, not changed")
    return None


def _any_part(path: str, cwd: str, patterns: Iterable[str]) -> bool:
    # The names of the folders above the project do not count.
    place = resolved(path, cwd).removeprefix(os.path.realpath(cwd))
    parts = {*Path(place).parts, *Path(os.path.normpath(path)).parts}
    return any(_matches(one, patterns) and not _matches(one, HARMLESS) for one in parts)


def _matches(name: str, patterns: Iterable[str]) -> bool:
    lower = name.casefold()
    return any(fnmatchcase(lower, pattern.casefold()) for pattern in patterns)


if __name__ == "__main__":
    run(check)
