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

from .pins import Pin, PinKind

VERSION = 2
"""Of the records; since 2 they pin what a command runs, and not the data it reads."""
MAX_EARLIER = 24


class ApprovedSet(Struct, frozen=True, kw_only=True):
    """What one approval covers, as a whole."""

    settings: dict[str, str] = {}
    """The content of each settings file as JSON, by its path."""
    tree: dict[str, Pin] = {}
    """Everything under ``.hookline``."""
    files: dict[str, dict[str, Pin]] = {}
    """The other files that each hook names, by ``hook_id``."""
    trusted_at: str = ""

    def covers_the_same(self, other: ApprovedSet) -> bool:
        """Whether both cover the same settings and files."""
        mine, others = ((one.settings, one.tree, one.files) for one in (self, other))
        return mine == others


class TrustRecord(ApprovedSet, frozen=True, kw_only=True):
    """The state of one project when a person approved it, and earlier ones."""

    project: str
    earlier: tuple[ApprovedSet, ...] = ()
    """Approved before: on another branch, say. The one last seen comes first."""
    version: int = 1

    def sets(self) -> list[TrustRecord]:
        """Every approved state as a record of its own, the last one first."""
        fields = ApprovedSet.__struct_fields__
        return [
            msgspec.structs.replace(
                self, **{name: getattr(one, name) for name in fields}
            )
            for one in (self, *self.earlier)
        ]

    def with_settings(self, settings: dict[str, str]) -> TrustRecord | None:
        """The last approved state with these settings."""
        return next((one for one in self.sets() if one.settings == settings), None)

    def pins(self) -> dict[str, Pin]:
        """All pinned files."""
        named = (item for pins in self.files.values() for item in pins.items())
        return dict(named) | self.tree

    def digests(self) -> set[str]:
        """The digests of all pinned files."""
        return {pin.digest for pin in self.pins().values() if pin.kind is PinKind.FILE}

    def layers(self) -> list[SettingsLayer]:
        """The approved settings."""
        return [
            parse_layer(decode(text), HookSource.PROJECT, file, project=self.project)
            for file, text in self.settings.items()
        ]

    def placed_hooks(self) -> list[PlacedHook]:
        """All approved hooks, each with its event and matcher."""
        return [placed for layer in self.layers() for placed in placed_hooks(layer)]


PlacedHook = tuple[HookEventName, str | None, HookConfig]


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
        return msgspec.json.decode(content, type=TrustRecord)
    except (msgspec.MsgspecError, ValueError) as error:
        raise StateFileError(f"{path}: is not a valid trust record: {error}") from error


def save_record(record: TrustRecord, copies: Mapping[str, bytes]) -> None:
    """Write the record of a project, with copies of its small files."""
    path = record_path(record.project)
    if problem := record_problem(record.project):
        raise StateFileError(f"{record.project}: {problem}")
    if path is None:
        raise StateFileError(
            f"the state folder is unknown or inside {record.project}: "
            "set HOME or XDG_STATE_HOME to a folder outside of it"
        )
    folder = os.path.dirname(path)  # noqa: PTH120
    with locked(folder):
        record = _with_earlier(record, path)
        make_folder(f"{folder}/copies")
        for digest in record.digests() & copies.keys():
            if not os.path.exists(f"{folder}/copies/{digest}"):  # noqa: PTH110
                write_private(f"{folder}/copies/{digest}", copies[digest])
        write_private(path, msgspec.json.encode(record))
        _drop_unused_copies(folder)


def put_first(path: str, state: TrustRecord) -> None:
    """Remember that a project is in one of its approved states again.

    Where that cannot be written, the last approved one stays first.
    """
    folder = os.path.dirname(path)  # noqa: PTH120
    with suppress(StateFileError, OSError), locked(folder, wait=False) as is_locked:
        record = load_record(path) if is_locked else None
        if record and any(map(state.covers_the_same, record.sets())):
            write_private(path, msgspec.json.encode(_with_earlier(state, path)))


def _with_earlier(record: TrustRecord, path: str) -> TrustRecord:
    """The record, with what was approved before it; an unreadable one is forgotten."""
    before = None
    with suppress(StateFileError):
        before = load_record(path)
    sets = before.sets() if before is not None and before.version == VERSION else []
    fields = ApprovedSet.__struct_fields__
    earlier = [
        ApprovedSet(**{name: getattr(one, name) for name in fields})
        for one in sets
        if not one.covers_the_same(record)
    ]
    return msgspec.structs.replace(
        record, earlier=tuple(earlier[:MAX_EARLIER]), version=VERSION
    )


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
