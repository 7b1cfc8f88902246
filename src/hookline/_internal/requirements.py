"""Say what to type in this installation: to add what an extra needs, to find Hookline.

The package is on no index, so "hookline[nats]" means nothing to an installer, and a
stranger could register the name. The requirements themselves work everywhere, and are
read from the metadata of the installed package.
"""

from __future__ import annotations

import os
import shutil
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from shlex import quote


def install_command(extra: str, package: str, at_least: str = "") -> str:
    """The command that adds what an extra needs, or a later version of one package."""
    missing = [f"{package}>={at_least}"] if at_least else requirements(extra)
    # Quoted also where a shell would not need it: it looks the same everywhere.
    words = (f"'{requirement}'" for requirement in missing or [package])
    return " ".join([_installer(), *words])


def requirements(extra: str) -> list[str]:
    """What the installed package requires for an extra; [] if that is not known."""
    try:
        declared = metadata.requires("hookline") or []
    except metadata.PackageNotFoundError:
        return []  # run from its sources, without an installation
    parts = (line.partition(";") for line in declared)
    mark = f'extra=="{extra}"'
    return [
        requirement.strip()
        for requirement, _, condition in parts
        if mark in condition.replace(" ", "").replace("'", '"')
    ]


def folder_missing_on_path() -> str | None:
    """Where our ``hookline`` is, if typing its name does not start it."""
    started_as = Path(sys.argv[0])
    if started_as.stem != "hookline":  # python -m hookline
        started_as = Path(sys.executable).with_name("hookline")
    found = shutil.which("hookline")
    if found and Path(found).resolve() == started_as.resolve():
        return None
    return str(started_as.parent.absolute())


def _installer() -> str:
    prefix = Path(sys.prefix)
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx inject {prefix.name}"
    if find_spec("pip") is None:
        return f"uv pip install --python {_short(sys.prefix)}"
    found = shutil.which("pip")
    if found and Path(found).parent == Path(sys.executable).parent:
        return "pip install"
    return f"{_short(sys.executable)} -m pip install"


def _short(path: str) -> str:
    """A path as a word for a shell, relative below the current directory."""
    absolute = os.path.abspath(path)  # noqa: PTH100  # a venv's python is a link
    try:
        relative = os.path.relpath(absolute)
    except (OSError, ValueError):  # the directory is gone, or on another drive
        return quote(absolute)
    if relative.startswith(os.pardir):
        return quote(absolute)
    return quote(relative if os.sep in relative else f".{os.sep}{relative}")
