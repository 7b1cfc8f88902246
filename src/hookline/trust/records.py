"""Trust records: what a person approved, kept outside every project.

One file for each project, with its settings and pinned files at that time, and a folder
with copies of small files, so that a later change can be shown as a diff. Readable by
its owner only, written atomically, and safe for two processes at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec
from msgspec import Struct

from hookline._internal.state_files import (
    file_name,
    locked,
    make_folder,
    read_private,
    remove,
    write_private,
)
from hookline.errors import StateFileError
from hookline.protocol.events import HookEventName
from hookline.protocol.values import decode, encode
from hookline.settings.model import HookConfig, HookSource, SettingsLayer
from hookline.settings.parse import parse_layer
from hookline.settings.places import record_path, record_problem, trust_folder

from .pins import Pin, Pins, differences, pin_named_files, pin_project

VERSION = 4
"""Of the records; since 4 the approved states are one list."""
MAX_STATES = 25


class Manifest(Struct, frozen=True, kw_only=True):
    """What one approval covers, as a whole: settings, and files by path and digest."""

    project: str
    settings: dict[str, str] = {}
    """The content of each settings file as JSON, by its path."""
    tree: dict[str, Pin] = {}
    """Everything under ``.hookline``."""
    files: dict[str, dict[str, Pin]] = {}
    """The other files that each hook names, by ``hook_id``."""
    trusted_at: str = ""

    def covers_the_same(self, other: Manifest) -> bool:
        """Whether both cover the same settings and files."""
        theirs = (other.settings, other.tree, other.files)
        return (self.settings, self.tree, self.files) == theirs

    def pins(self) -> dict[str, Pin]:
        """All pinned files."""
        named = (item for pins in self.files.values() for item in pins.items())
        return dict(named) | self.tree

    def digests(self) -> set[str]:
        """The digests of all pinned files."""
        return {pin.digest for pin in self.pins().values() if pin.digest}

    def named_by(self, hook: HookConfig) -> Pins:
        """The approved files that one hook names."""
        return self.files.get(hook_id(hook), {})

    def holds(self) -> bool:
        """Whether the project is in this state, to the byte."""
        layers = self.layers()
        if differences(self.tree, pin_project(layers, self.project, None, self.tree)):
            return False
        hooks = (hook for layer in layers for _, _, hook in layer.hooks())
        return not any(
            differences(pins, pin_named_files(hook, self.project, None, pins))
            for hook, pins in ((hook, self.named_by(hook)) for hook in hooks)
        )

    def layers(self) -> list[SettingsLayer]:
        """The approved settings."""
        return [
            parse_layer(decode(text), HookSource.PROJECT, file, project=self.project)
            for file, text in self.settings.items()
        ]

    def placed_hooks(self) -> list[tuple[HookEventName, str | None, HookConfig]]:
        """All approved hooks, each with its event and matcher."""
        return [
            (event, group.matcher, hook)
            for layer in self.layers()
            for event, group, hook in layer.hooks()
        ]


class TrustRecord(Struct, frozen=True):
    """What a person approved in one project: each state counts as a whole."""

    version: int = 1
    states: tuple[Manifest, ...] = ()
    """The one that the project was last seen in comes first; others are of another
    branch, say. Empty in records of other versions."""

    def with_first(self, manifest: Manifest) -> TrustRecord:
        """The record with one state before all others."""
        states = self.states if self.version == VERSION else ()
        others = (s for s in states if not s.covers_the_same(manifest))
        return TrustRecord(VERSION, (manifest, *others)[:MAX_STATES])


def hook_id(hook: HookConfig) -> str:
    """The name of a hook in a record: everything that decides which files it names."""
    named = (hook.shell, hook.env, hook.trust_files)
    more = (encode(named).decode(),) if any(named) else ()
    return "\n".join((*hook.key, *more))


def settings_texts(layers: Iterable[SettingsLayer]) -> dict[str, str]:
    """The content of settings files, so that equal ones are equal as text."""
    return {layer.file or "": encode(dict(layer.raw)).decode() for layer in layers}


def load_record(path: str) -> TrustRecord | None:
    """Read a record, None where it is missing; raises ``StateFileError``."""
    content = read_private(path)
    if content is None:
        return None
    try:
        record = msgspec.json.decode(content, type=TrustRecord)
    except (msgspec.MsgspecError, ValueError) as error:
        raise StateFileError(f"{path}: is not a valid trust record: {error}") from error
    names = {f"{file_name(manifest.project)}.json" for manifest in record.states}
    is_empty = record.version == VERSION and not names
    if is_empty or names - {os.path.basename(path)}:  # noqa: PTH119
        raise StateFileError(f"{path}: is the trust record of another project")
    return record


def save_record(manifest: Manifest, copies: Mapping[str, bytes]) -> None:
    """Record what was approved, with copies of its small files."""
    path = record_path(manifest.project)
    if problem := record_problem(manifest.project):
        raise StateFileError(f"{manifest.project}: {problem}")
    if path is None:
        raise StateFileError(
            f"the state folder is unknown or inside {manifest.project}: "
            "set HOME or XDG_STATE_HOME to a folder outside of it"
        )
    folder = os.path.dirname(path)  # noqa: PTH120
    with locked(folder):
        before = None
        with suppress(StateFileError):  # an unreadable one is forgotten
            before = load_record(path)
        record = (before or TrustRecord()).with_first(manifest)
        make_folder(f"{folder}/copies")
        for digest in manifest.digests() & copies.keys():
            if not os.path.exists(f"{folder}/copies/{digest}"):  # noqa: PTH110
                write_private(f"{folder}/copies/{digest}", copies[digest])
        write_private(path, msgspec.json.encode(record))
        _drop_unused_copies(folder)


def find_holding(
    path: str, record: TrustRecord, settings: dict[str, str] | None = None
) -> Manifest | None:
    """The first approved state, with these settings, that a project is in.

    It is put first from now on; where that cannot be written, the order stays.
    """
    for manifest in record.states:
        if settings not in (None, manifest.settings) or not manifest.holds():
            continue
        if manifest is not record.states[0]:
            folder = os.path.dirname(path)  # noqa: PTH120
            with (
                suppress(StateFileError, OSError),
                locked(folder, wait=False) as is_locked,
            ):
                # Meanwhile its approval may have been revoked.
                current = load_record(path) if is_locked else None
                if current and any(map(manifest.covers_the_same, current.states)):
                    content = msgspec.json.encode(current.with_first(manifest))
                    write_private(path, content)
        return manifest
    return None


def remove_record(project: str) -> bool:
    """Remove the record of a project; whether there was one."""
    path = record_path(project)
    if path is None or not os.path.exists(path):  # noqa: PTH110
        return False
    with locked(folder := os.path.dirname(path)):  # noqa: PTH120
        remove(path)
        _drop_unused_copies(folder)
    return True


def all_approvals() -> list[Manifest]:
    """The state that each trusted project was last seen in."""
    newest = [record.states[0] for record in _all_records()]
    return sorted(newest, key=lambda manifest: manifest.project)


def _all_records() -> list[TrustRecord]:
    """Those that can be read."""
    folder, records = trust_folder(), []
    with suppress(OSError):
        for name in os.listdir(folder) if folder else ():  # noqa: PTH208
            if name.endswith(".json") and not name.startswith("."):
                with suppress(StateFileError):
                    records.append(load_record(f"{folder}/{name}"))
    return [record for record in records if record is not None and record.states]


def copy_of(digest: str) -> bytes | None:
    """The bytes of an approved file, if they were kept."""
    folder = trust_folder()
    # Only files have a digest.
    if folder is None or not digest:
        return None
    return read_private(f"{folder}/copies/{digest}")


def _drop_unused_copies(folder: str) -> None:
    states = (state for record in _all_records() for state in record.states)
    used = set[str]().union(*(state.digests() for state in states))
    with suppress(FileNotFoundError):
        for name in set(os.listdir(f"{folder}/copies")) - used:  # noqa: PTH208
            remove(f"{folder}/copies/{name}")
