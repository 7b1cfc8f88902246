"""Block access to secrets, and changes to git's and Hookline's own files.

Paths are resolved first (links, dots, ``~``, wildcards), those in patches too. ``.env``
files and keys may be neither read nor changed; ``.git``, ``.hookline`` and lock files
may be read. ``PROTECTED_FILES`` adds patterns of the second kind, with commas.
"""

import os
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from hookline.recipes.toolinput import (
    env_list,
    expanded,
    fields_in,
    file_words,
    is_patcher,
    is_shell,
    only_reads,
    patched_by,
    patched_in,
    paths_in,
    placed_commands,
    resolved,
    visible_text,
)
from hookline.script import Output, block, run
from hookline.shell.commands import Command

SECRET = (
    *(".env", ".env.*", ".env~", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.kdbx"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.keystore"),
    *(".ssh", ".gnupg", ".aws", ".kube", ".npmrc", ".pypirc", ".netrc", ".pgpass"),
    *(".git-credentials", "credentials.json", "application_default_credentials.json"),
)
HARMLESS = (
    *(".env.example*", ".env.sample*", ".env.template*", ".env.dist", ".env.schema"),
    *("*.pub", ".env.*.example"),
)
# A name that only begins like a key's is that of a text or a program about keys.
NO_KEY = re.compile(
    r"id_(rsa|dsa|ecdsa|ed25519)([a-z0-9].*|.*\.(md|rst|py|[jt]sx?|go|rs|rb|java|c|h|cpp"
    r"|html|ya?ml|toml|sh)|[-_].*\.txt)"
)
READABLE = (".git", ".hookline", "package-lock.json", "poetry.lock", "uv.lock")
WRITERS = {"rm", "mv", "cp", "tee", "dd", "truncate", "chmod", "chown", "ln", "touch"}
WRITERS |= {"install", "rsync", "shred", "unlink", "rmdir", "sponge", "patch", "ed"}
WRITERS |= {"vi", "vim", "nvim", "nano", "emacs"}
INTERPRETER = re.compile(r"(python|perl|ruby|node|php|awk|gawk|deno|bun)[\d.]*")
WORDS = re.compile(r"[\w./~*-]*[\w~][\w./~*-]*")


def check(event: dict[str, Any]) -> Output | None:
    """Block the call if it would touch or change a protected file."""
    tool, tool_input, cwd = event["tool_name"], event["tool_input"], event["cwd"]
    placed = list(placed_commands(event))
    applies = any(map(is_patcher, (command for command, _ in placed)))
    for command, place in placed:
        if found := _check_command(command, cwd, os.path.relpath(place, cwd), applies):
            return found
    if is_shell(tool):
        return None
    paths = [*paths_in(tool_input), *_named_otherwise(tool_input, cwd)]
    writes = not only_reads(tool, tool_input)
    changed = _check_paths(patched_in(tool_input), cwd, writes=True)
    return changed or _check_paths(paths, cwd, writes)


def _named_otherwise(tool_input: Any, cwd: str) -> Iterator[str]:
    for key, text in fields_in(tool_input):
        if key in ("from", "to", "glob", "include", "name"):
            yield from expanded(text, cwd)
        elif key == "code":
            yield from WORDS.findall(text)


def _check_command(
    command: Command, cwd: str, place: str, applies: bool
) -> Output | None:
    words = list(file_words(command))
    is_program = bool(INTERPRETER.fullmatch(command.name))
    if is_program:
        # A program in the command may name files anywhere in its text.
        words += WORDS.findall(" ".join((*command.args, command.input_text)))
    in_place = command.name == "sed" and command.flags & {"i", "in-place"}
    writes = bool(command.name in WRITERS or in_place or is_program)
    names = [name for word in words for name in expanded(word, resolved(place, cwd))]
    touched = [*names, *command.reads]
    written = [*command.writes, *patched_by(command, applies)]
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
    if patterns is SECRET and {Path(place).suffix, Path(path).suffix} == {".pub"}:
        return False  # the public half of a key, in the folder of the private one
    return any(_matches(name, patterns) for part in parts for name in _names(part))


def _names(part: str) -> set[str]:
    """A name as it is written, and as a file system or a reader may take it."""
    plain = visible_text(part).partition("::")[0].strip("\"' \t\r\n").rstrip(". ")
    names = (part, plain, unquote(plain), *plain.split("\\"))
    return {name.casefold() for name in names}


def _matches(name: str, patterns: Iterable[str]) -> bool:
    harmless = any(fnmatchcase(name, pattern) for pattern in HARMLESS)
    if harmless or NO_KEY.fullmatch(name):
        return False
    return any(fnmatchcase(name, pattern.casefold()) for pattern in patterns)


if __name__ == "__main__":
    run(check)
