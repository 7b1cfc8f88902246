"""The settings that installed packages add (entry points ``hookline.extensions``)."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from hookline.errors import SettingsError
from hookline.protocol.values import decode, encode

from .model import HookSource, SettingsLayer
from .parse import parse_layer
from .places import is_within, shipped_by
from .read import refuse_too_many

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "hookline.extensions"
_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE)


def load_extensions(zones: Iterable[str] = ()) -> list[SettingsLayer]:
    """Load the layers of all extensions, by name.

    Only the metadata that mentions our group is parsed: importlib.metadata takes ten
    times as long for all of it, and most machines have no extension.
    """
    layers: list[SettingsLayer] = []
    points: dict[str, EntryPoint] = {}
    for folder in import_path(zones):
        try:
            names = sorted(os.listdir(folder))  # noqa: PTH208 - a string
        except OSError as error:
            _refuse_shortage(error, folder)
            continue
        for name in names:
            if not name.endswith((".dist-info", ".egg-info")):
                continue
            file = f"{folder}/{name}/entry_points.txt"
            try:
                with open(file, "rb") as opened:  # noqa: PTH123 - a string
                    text = opened.read()
            except OSError as error:
                _refuse_shortage(error, file)
                continue
            if GROUP.encode() not in text:
                continue
            try:
                for point in _entry_points(f"{folder}/{name}"):
                    points.setdefault(point.name, point)  # the first on the path
            except (AttributeError, OSError, TypeError, ValueError) as error:
                _refuse_shortage(error, file)
                layers.append(_failed(file, f"ignored: it is malformed ({error})"))
    return layers + [_load(points[name]) for name in sorted(points)]


def import_path(zones: Iterable[str]) -> list[str]:
    """The folders of installed packages, without those of projects.

    Anybody can put a package's metadata into a project. A virtual environment inside
    the project was made by its user, and counts.
    """
    environment = os.path.realpath(sys.prefix)
    folders = dict.fromkeys(os.path.realpath(path) for path in sys.path if path)
    return [
        folder
        for folder in folders
        if not shipped_by(folder, zones) or is_within(folder, environment)
    ]


def _entry_points(metadata: str) -> Iterable[EntryPoint]:
    from importlib.metadata import Distribution
    from pathlib import Path

    return Distribution.at(Path(metadata)).entry_points.select(group=GROUP)


def _load(point: EntryPoint) -> SettingsLayer:
    label = f"extension {point.name!r}"
    try:
        settings = point.load()
        if callable(settings) and not isinstance(settings, Mapping):
            settings = settings()
        if not isinstance(settings, Mapping):
            problem = f"expected a mapping, got a {type(settings).__name__}"
            return _failed(label, f"{problem}; it adds no hooks")
        # Copied as JSON: no foreign object gets past this point.
        raw = decode(encode(dict(settings)))
        refuse_too_many(raw, label)
    # The package's own code runs here and can raise anything.
    except Exception as error:  # noqa: BLE001
        _refuse_shortage(error, label)
        problem = f"{type(error).__name__}: {error}"
        return _failed(label, f"cannot be loaded ({problem}); it adds no hooks")
    return parse_layer(raw, HookSource.EXTENSIONS, label)


def _failed(label: str, problem: str) -> SettingsLayer:
    warnings = (f"{label}: {problem}",)
    return SettingsLayer(
        source=HookSource.EXTENSIONS, file=label, warnings=warnings, dropped=warnings
    )


def _refuse_shortage(error: Exception, file: str) -> None:
    """Raise where hooks are missing only because the process is out of files."""
    if isinstance(error, OSError) and error.errno in _OUT_OF_FILES:
        raise missing_guards(error, file) from error


def missing_guards(error: OSError, file: str | None) -> SettingsError:
    """The error for settings that are there and cannot be read."""
    problem = f"cannot be read: {error.strerror or error}: its hooks may be guards"
    is_out = error.errno in _OUT_OF_FILES
    hint = "raise the limit of open files" if is_out else "make it readable"
    return SettingsError(f"{problem}, so nothing runs without them: {hint}", file)
