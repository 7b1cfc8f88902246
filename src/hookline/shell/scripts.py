"""What keeps a script from starting: found by looking at it, nothing is run."""

from __future__ import annotations

import os
import re
import stat
from shutil import which

from hookline.protocol.values import describe

from .parse import ExecutedFile

_HEAD = 4096
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def script_problem(file: ExecutedFile, folder: str) -> str | None:
    """What is wrong with a file that a command runs, and what to do about it."""
    path, shown = os.path.join(folder, file.path), file.path  # noqa: PTH118
    if not os.path.exists(path):  # noqa: PTH110 - false, not an error, for odd names
        return f"{describe(shown)} does not exist"
    if os.path.isdir(path):  # noqa: PTH112
        return f"{describe(shown)} is a directory"
    if file.is_program and not os.access(path, os.X_OK):
        return f"{describe(shown)} is not executable: run chmod +x on it"
    return _content_problem(_head(path), shown, is_program=file.is_program)


def _content_problem(head: bytes, shown: str, *, is_program: bool) -> str | None:
    first = head.partition(b"\n")[0]
    is_shell = shown.endswith((".sh", ".bash")) or re.match(rb"#!.*sh\b", first)
    has_crlf = first.endswith(b"\r")
    if has_crlf and (is_shell or (is_program and first.startswith(b"#!"))):
        todo = "convert it with dos2unix, or sed -i 's/\\r$//'"
        return f"{describe(shown)} has Windows line ends (CRLF): {todo}"
    if shown.endswith(".py") and _never_runs(head):
        never = "imports hookline.script and never calls run()"
        return f"{describe(shown)} {never}: it answers no event"
    if not is_program or not first:
        return None
    if first.startswith(b"#!"):
        return _interpreter_problem(first[2:].decode("utf-8", "replace"), shown)
    if shown.endswith(".py"):
        start = "start it with #!/usr/bin/env python3"
        return f"{describe(shown)} has no #! line, so a shell would read it: {start}"
    return None


def _never_runs(head: bytes) -> bool:
    is_whole = len(head) < _HEAD
    imports = is_whole and re.search(rb"(?m)^\s*(?:from|import) hookline.*script", head)
    return bool(imports) and not re.search(rb"\brun\s*\(|\brun as\b", head)


def _interpreter_problem(line: str, shown: str) -> str | None:
    words = line.split()
    if not words:
        return None
    program = words[0]
    if os.path.basename(program) == "env":  # noqa: PTH119
        given = [word for word in words[1:] if not word.startswith("-")]
        program = given[0] if given else program
    if "=" in program or which(program) is not None:
        return None
    return (
        f"{describe(program)}, the interpreter of {describe(shown)}, is not installed"
    )


def _head(path: str) -> bytes:
    try:
        with open(os.open(path, _FLAGS), "rb") as file:  # noqa: PTH123
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            return file.read(_HEAD) if regular else b""
    except (OSError, ValueError):
        return b""
