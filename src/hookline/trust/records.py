"""Trust records: what a person approved, kept outside every project.

One file for each project, with its settings and pinned files at that time, and a folder
with copies of small files, so that a later change can be shown as a diff. Readable by
its owner only, written atomically, and safe for two processes at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

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

from .pins import Pin, PinKind, Pins, differences, pin_named_files, pin_project

VERSION = 3
"""Of the records; since 3 nothing in ``.hookline`` is left out for being a journal."""
MAX_EARLIER = 24

PlacedHook = tuple[HookEventName, str | None, HookConfig]


class Manifest(Struct, frozen=True, kw_only=True):
    """What one approval covers, as a whole: settings, and files by path and digest."""

    project: str = ""
    """Empty in earlier states of versions before 3, which do not count."""
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
        return {pin.digest for pin in self.pins().values() if pin.kind is PinKind.FILE}

    def named_pins(self, hook: HookConfig) -> tuple[Pins, Pins]:
        """The files that one hook names or named: as approved, and now."""
        approved = self.files.get(hook_id(hook), {})
        return approved, pin_named_files(hook, self.project, approved=approved)

    def holds(self) -> bool:
        """Whether the project is in this state, to the byte."""
        layers = self.layers()
        tree = pin_project(layers, self.project, approved=self.tree)
        hooks = (hook for layer in layers for _, _, hook in layer.hooks())
        return not differences(self.tree, tree) and not any(
            differences(*self.named_pins(hook)) for hook in hooks
        )

    def layers(self) -> list[SettingsLayer]:
        """The approved settings."""
        return [
            parse_layer(decode(text), HookSource.PROJECT, file, project=self.project)
            for file, text in self.settings.items()
        ]

    def placed_hooks(self) -> list[PlacedHook]:
        """All approved hooks, each with its event and matcher."""
        return [placed for layer in self.layers() for placed in placed_hooks(layer)]


class TrustRecord(Manifest, frozen=True, kw_only=True):
    """What a person approved in one project: the state last seen, and earlier ones."""

    earlier: tuple[Manifest, ...] = ()
    """Approved before: on another branch, say. The one last seen comes first."""
    version: int = 1

    def manifests(self) -> tuple[Manifest, ...]:
        """Every approved state; each counts as a whole, a mix was never approved."""
        return (self, *self.earlier)


def placed_hooks(layer: SettingsLayer) -> list[PlacedHook]:
    """The hooks of a layer, each with its event and matcher."""
    return [(event, group.matcher, hook) for event, group, hook in layer.hooks()]


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
    projects = {manifest.project for manifest in record.manifests()}
    is_mixed = record.version == VERSION and len(projects) > 1
    if is_mixed or not path.endswith(f"/{file_name(record.project)}.json"):
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
        record = _with_earlier(manifest, before)
        make_folder(f"{folder}/copies")
        for digest in record.digests() & copies.keys():
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
    for manifest in record.manifests():
        if settings not in (None, manifest.settings) or not manifest.holds():
            continue
        if manifest is not record:
            folder = os.path.dirname(path)  # noqa: PTH120
            with (
                suppress(StateFileError, OSError),
                locked(folder, wait=False) as is_locked,
            ):
                current = load_record(path) if is_locked else None
                if current and any(map(manifest.covers_the_same, current.manifests())):
                    content = msgspec.json.encode(_with_earlier(manifest, current))
                    write_private(path, content)
        return manifest
    return None


def _with_earlier(manifest: Manifest, before: TrustRecord | None) -> TrustRecord:
    """A record of one state, with those that were approved before."""

    def values(state: Manifest) -> dict[str, Any]:
        return {name: getattr(state, name) for name in Manifest.__struct_fields__}

    states = before.manifests() if before and before.version == VERSION else ()
    earlier = [
        Manifest(**values(state))
        for state in states
        if not state.covers_the_same(manifest)
    ]
    newest = tuple(earlier[:MAX_EARLIER])
    return TrustRecord(**values(manifest), earlier=newest, version=VERSION)


def remove_record(project: str) -> bool:
    """Remove the record of a project; whether there was one."""
    path = record_path(project)
    if path is None or not os.path.exists(path):  # noqa: PTH110
        return False
    with locked(folder := os.path.dirname(path)):  # noqa: PTH120
        remove(path)
        _drop_unused_copies(folder)
    return True


def all_records() -> list[TrustRecord]:
    """All records, by project; those that cannot be read are left out."""
    folder, found = trust_folder(), []
    with suppress(OSError):
        for name in os.listdir(folder) if folder else ():  # noqa: PTH208
            if name.endswith(".json") and not name.startswith("."):
                with suppress(StateFileError):
                    found.append(load_record(f"{folder}/{name}"))
    return sorted(filter(None, found), key=lambda record: record.project)


def copy_of(digest: str) -> bytes | None:
    """The bytes of an approved file, if they were kept."""
    folder = trust_folder()
    # Only files have a digest.
    if folder is None or not digest:
        return None
    return read_private(f"{folder}/copies/{digest}")


def _drop_unused_copies(folder: str) -> None:
    used = set[str]().union(*(one.digests() for one in all_records()))
    with suppress(FileNotFoundError):
        for name in set(os.listdir(f"{folder}/copies")) - used:  # noqa: PTH208
            remove(f"{folder}/copies/{name}")
