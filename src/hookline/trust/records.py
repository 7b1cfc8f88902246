"""Trust records: what a person approved, kept outside every project.

One file for each project, with its settings and pinned files at that time, and one with
copies of its small files, so that a later change can be shown as a diff. Readable by
their owner only, written atomically, and safe for two processes at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hookline._internal.state_files import (
    file_name,
    locked,
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
        return replace(other, trusted_at=self.trusted_at) == self

    def pins(self) -> dict[str, Pin]:
        """All pinned files."""
        pins: dict[str, Pin] = {}
        for hook_pins in self.files.values():
            pins |= hook_pins
        return pins | self.tree

    def named_by(self, hook: HookConfig) -> Pins:
        """The approved files that one hook names."""
        return self.files.get(hook_id(hook), {})

    def holds(self) -> bool:
        """Whether the project is in this state, to the byte."""
        layers, project = self.layers(), self.project
        if differences(self.tree, pin_project(layers, project)):
            return False
        for _, _, hook in self.placed_hooks():
            pins = self.named_by(hook)
            if differences(pins, pin_named_files(hook, project, None, pins)):
                return False
        return True

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
        older = (state for state in states if not state.covers_the_same(manifest))
        return TrustRecord(VERSION, (manifest, *older)[:MAX_STATES])


def hook_id(hook: HookConfig) -> str:
    """The name of a hook in a record: everything that decides which files it names."""
    options = (hook.shell, hook.env, hook.trust_files)
    more = (encode(options).decode(),) if any(options) else ()
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


def load_copies(project: str) -> dict[str, bytes]:
    """The copies of a project's small files by their digests, as far as there are."""
    path = record_path(project)
    with suppress(StateFileError, msgspec.MsgspecError):
        if path is not None and (content := read_private(_copies_path(path))):
            return msgspec.msgpack.decode(content, type=dict[str, bytes])
    return {}


def _copies_path(path: str) -> str:
    folder, name = os.path.split(path)
    return f"{folder}/copies/{name.removesuffix('.json')}"


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
    with locked(os.path.dirname(path)):  # noqa: PTH120
        before = None
        with suppress(StateFileError):  # an unreadable one is forgotten
            before = load_record(path)
        record = (before or TrustRecord()).with_first(manifest)
        pins = (pin for state in record.states for pin in state.pins().values())
        digests = {pin.digest for pin in pins}
        copies = {**load_copies(manifest.project), **copies}
        copies = {digest: copies[digest] for digest in digests & copies.keys()}
        write_private(_copies_path(path), msgspec.msgpack.encode(copies))
        write_private(path, msgspec.json.encode(record))


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
    with locked(os.path.dirname(path)):  # noqa: PTH120
        remove(path)
        remove(_copies_path(path))
    return True


def all_approvals() -> list[Manifest]:
    """The state that each trusted project was last seen in, where it can be read."""
    folder, manifests = trust_folder(), list[Manifest]()
    with suppress(OSError):
        for name in os.listdir(folder) if folder else ():  # noqa: PTH208
            if name.endswith(".json") and not name.startswith("."):
                with suppress(StateFileError):
                    record = load_record(f"{folder}/{name}")
                    manifests += record.states[:1] if record else ()
    return sorted(manifests, key=lambda manifest: manifest.project)
