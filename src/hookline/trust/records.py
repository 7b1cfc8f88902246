"""Trust records: what a person approved, kept outside every project.

One file for each project, with its settings and pinned files at that time, and a folder
with copies of small files so that a later change can be shown. Readable by its owner
alone, written whole or not at all, and safe for two processes at once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from hookline.errors import StateFileError
from hookline.protocol.jsontext import decode, encode
from hookline.settings.locations import (
    file_name,
    is_within,
    locked,
    make_folder,
    read_private,
    remove,
    state_dir,
    write_private,
)
from hookline.settings.model import HookConfig

from .pins import Pin, PinKind

SUFFIX = ".json"


def record_path(project: str) -> str | None:
    """The file that is about a project; None where nothing can be remembered."""
    folder = trust_folder()
    if folder is None or _could_be_shipped(folder, project):
        return None
    return f"{folder}/{file_name(project)}{SUFFIX}"


def trust_folder() -> str | None:
    """Where records of trust are, if they can be anywhere."""
    base = state_dir()
    return None if base is None else f"{base}/trust"


def _could_be_shipped(folder: str, project: str) -> bool:
    """Whether the project holds the folder: it could bring its own trust along.

    A project that holds the user's home is not one that somebody else made.
    """
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111
    place = os.path.realpath(folder)
    return is_within(place, project) and not is_within(home, project)


class TrustRecord(Struct, frozen=True, kw_only=True):
    """What one project was like when a person trusted it."""

    project: str
    file: str | None = None
    """The settings file."""
    settings: str = "{}"
    """What it held, as JSON."""
    tree: dict[str, Pin] = {}
    """Everything under ``.hookline``."""
    files: dict[str, dict[str, Pin]] = {}
    """What else each hook names, by ``hook_id``."""
    trusted_at: str = ""
    version: int = 1

    def mapping(self) -> dict[str, Any]:
        """The settings as they were."""
        found = decode(self.settings)
        return found if isinstance(found, dict) else {}


def hook_id(hook: HookConfig) -> str:
    """What a record calls a hook."""
    return "\n".join(hook.key)


def settings_text(raw: Mapping[str, Any]) -> str:
    """Spell settings so that equal ones are equal as text."""
    return encode(dict(raw)).decode()


def now_text() -> str:
    """The moment, for the record."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def load_record(path: str) -> TrustRecord | None:
    """Read a record; None where there is none, ``StateFileError`` where it is bad."""
    content = read_private(path)
    if content is None:
        return None
    try:
        return msgspec.json.decode(content, type=TrustRecord)
    except (msgspec.MsgspecError, ValueError) as error:
        raise StateFileError(f"{path}: is no record of trust: {error}") from error


def save_record(record: TrustRecord, copies: Mapping[str, bytes]) -> None:
    """Remember a project as it is in the record, with copies of its small files."""
    path = record_path(record.project)
    folder = trust_folder()
    if path is None or folder is None:
        raise StateFileError(
            f"there is no folder outside {record.project} to remember trust in: "
            "set HOME or XDG_STATE_HOME to one"
        )
    with locked(folder):
        make_folder(f"{folder}/copies")
        wanted = _digests(record)
        for digest in wanted & copies.keys():
            if not os.path.exists(f"{folder}/copies/{digest}"):  # noqa: PTH110
                write_private(f"{folder}/copies/{digest}", copies[digest])
        write_private(path, msgspec.json.encode(record))
        _drop_unused_copies(folder)


def remove_record(project: str) -> bool:
    """Forget a project; whether it was known."""
    path, folder = record_path(project), trust_folder()
    if path is None or folder is None or not os.path.exists(path):  # noqa: PTH110
        return False
    with locked(folder):
        remove(path)
        _drop_unused_copies(folder)
    return True


def all_records() -> list[TrustRecord]:
    """Everything that is trusted, by project; what cannot be read is left out."""
    folder = trust_folder()
    found = [] if folder is None else _readable(folder)
    return sorted(found, key=lambda record: record.project)


def copy_of(digest: str) -> bytes | None:
    """The bytes that a digest stands for, if they were kept."""
    folder = trust_folder()
    # What was no file has no digest.
    if folder is None or not digest:
        return None
    return read_private(f"{folder}/copies/{digest}")


def _readable(folder: str) -> list[TrustRecord]:
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []
    found = []
    for name in names:
        if name.endswith(SUFFIX) and not name.startswith("."):
            try:
                record = load_record(f"{folder}/{name}")
            except StateFileError:
                continue
            if record is not None:
                found.append(record)
    return found


def _digests(record: TrustRecord) -> set[str]:
    named = (pin for pins in record.files.values() for pin in pins.values())
    pins = (*record.tree.values(), *named)
    return {pin.digest for pin in pins if pin.kind is PinKind.FILE}


def _drop_unused_copies(folder: str) -> None:
    used = {digest for record in _readable(folder) for digest in _digests(record)}
    try:
        names = os.listdir(f"{folder}/copies")  # noqa: PTH208
    except FileNotFoundError:
        return
    for name in names:
        if name not in used:
            remove(f"{folder}/copies/{name}")
