"""Settings that installed packages contribute.

A package names a mapping, or a callable that returns one, in the entry point group
``hookline.extensions``. One that cannot be used is a warning, and the others work.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from hookline import jsontext

from .parse import parse_layer
from .schema import HookSource, SettingsLayer

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from pathlib import Path

GROUP = "hookline.extensions"


def load_extensions(
    project_dir: str | PathLike[str] | None = None,
    search: Sequence[str] | None = None,
) -> tuple[SettingsLayer, ...]:
    """Load the layers of all extensions, by name."""
    folders = _trustworthy(sys.path if search is None else search, project_dir)
    found = sorted(_entry_points(folders), key=lambda point: point.name)
    return tuple(_load(point) for point in found)


def _trustworthy(
    folders: Iterable[str], project_dir: str | PathLike[str] | None
) -> list[str]:
    """Leave out the project itself, where anybody may put a package's metadata.

    A virtual environment inside the project was made by its user, and counts.
    """
    kept: dict[str, None] = {}
    environment = os.path.realpath(sys.prefix)
    project = None if project_dir is None else os.path.realpath(project_dir)
    for folder in folders:
        path = os.path.realpath(folder)
        own = project is not None and _is_within(path, project)
        if folder and (not own or _is_within(path, environment)):
            kept[path] = None
    return list(kept)


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _entry_points(folders: Iterable[str]) -> Iterator[EntryPoint]:
    seen: set[str] = set()
    for folder in folders:
        for metadata in _metadata_with_group(folder):
            from importlib.metadata import Distribution

            distribution = Distribution.at(metadata)
            for point in distribution.entry_points.select(group=GROUP):
                if point.name not in seen:  # the first on the path is the one in use
                    seen.add(point.name)
                    yield point


def _metadata_with_group(folder: str) -> list[Path]:
    # importlib.metadata would parse the metadata of every package that is installed;
    # looking for our group first costs a tenth of that, and most often ends here.
    try:
        with os.scandir(folder) as entries:
            names = [
                entry.path
                for entry in entries
                if entry.name.endswith((".dist-info", ".egg-info"))
            ]
    except OSError:
        return []
    found = [name for name in sorted(names) if _mentions_group(name)]
    if not found:
        return []
    from pathlib import Path

    return [Path(name) for name in found]


def _mentions_group(metadata: str) -> bool:
    try:
        with open(f"{metadata}/entry_points.txt", "rb") as file:  # noqa: PTH123
            return GROUP.encode() in file.read()
    except OSError:
        return False


def _load(point: EntryPoint) -> SettingsLayer:
    label = f"extension {point.name!r}"
    try:
        mapping = _plain(point.load())
    # A package's own code runs here and may raise anything at all.
    except Exception as error:  # noqa: BLE001
        problem = f"{type(error).__name__}: {error}"
        return _broken(label, f"could not be loaded ({problem}); it adds no hooks")
    if mapping is None:
        return _broken(label, "gives no mapping; it adds no hooks")
    return parse_layer(mapping, HookSource.EXTENSIONS, label)


def _plain(given: Any) -> dict[str, Any] | None:
    """Copy what an extension gives into plain JSON values."""
    found = given if isinstance(given, Mapping) or not callable(given) else given()
    if not isinstance(found, Mapping):
        return None
    copy: dict[str, Any] = jsontext.decode(jsontext.encode(dict(found)))
    return copy


def _broken(label: str, problem: str) -> SettingsLayer:
    warning = f"{label}: {problem}"
    return SettingsLayer(source=HookSource.EXTENSIONS, file=label, warnings=(warning,))
