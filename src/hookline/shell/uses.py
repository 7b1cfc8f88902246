"""What a command does with a file, and what Python code imports."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

_IMPORT = (
    r"(?m)(?:^|;|:)[ \t]*"
    r"(?:from[ \t]+([\w.]+)[ \t]+import(?:[ \t]*\([\s(]*([\w,\s]*)|[ \t]+([\w, \t]*))"
    r"|import[ \t]+([\w., \t]+))"
)


class Role(StrEnum):
    """What a command does with a file, the strongest first."""

    CODE = "code"
    """It runs or loads it: a program, a script, a module, what ``-f`` gives."""
    WRITTEN = "written"
    ARGUMENT = "argument"
    """It gives the file to a program that is not known here."""
    READ = "read"


class Form(StrEnum):
    """What the path of a use is."""

    FILE = "file"
    BARE = "bare word"
    """A word without a dot or a slash: a file only where there is one."""
    PATTERN = "pattern"
    """With ``*``, ``?`` or ``[``, in the spelling of ``glob``."""
    PYTHON = "Python script"
    NODE = "Node script"
    """Node adds an ending that is missing."""
    MODULE = "module"
    """A Python module or package, without its ending."""
    IMPORTS = "folder of imports"
    """A folder that Python searches first."""


class FileUse(Struct, frozen=True):
    """One file that a command names."""

    path: str
    """A full path; the word as it is written where the file cannot be known."""
    role: Role
    form: Form = Form.FILE
    why: str = ""
    """Why the file cannot be known; empty where it is."""


def imported_names(code: str) -> list[str]:
    """The modules that Python code imports by name."""
    found: dict[str, None] = {}
    for package, listed, inline, several in re.findall(_IMPORT, code):
        parts = listed or inline
        names = [part.split()[0] for part in several.split(",") if part.strip()]
        inside = (part.split()[0] for part in parts.split(",") if part.strip())
        names += [package, *(f"{package}.{part}" for part in inside)]
        found |= dict.fromkeys(name.strip(".") for name in names)
    return [name for name in found if name]


def modules_beside(script: str) -> Iterator[str]:
    """The Python modules in the folder of a script, which can import them."""
    folder, own = os.path.split(script)
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return
    for name in names:
        is_package = os.path.exists(f"{folder}/{name}/__init__.py")  # noqa: PTH110
        if name != own and (name.endswith((".py", ".pyc", ".so")) or is_package):
            yield f"{folder}/{name}"
