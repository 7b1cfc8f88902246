"""The settings of a project that was trusted, as they were when it was."""

from __future__ import annotations

import os
from collections.abc import Iterable

from msgspec.structs import replace

from hookline.settings.parse import parse_layer
from hookline.settings.schema import HookGroup, HookSource, SettingsLayer

from .gate import untrusted
from .seals import ProjectSeal
from .store import TrustRecord, settings_text

_HELPERS = ("", "-wal", "-shm", "-journal")
"""What SQLite keeps beside a database."""


def trusted_layers(
    path: str, record: TrustRecord, current: Iterable[SettingsLayer], cwd: str
) -> list[SettingsLayer]:
    """The trusted layer, and after it what is in the project now and is not trusted."""
    found = list(current)
    same = next(
        (one for one in found if settings_text(one.raw) == record.settings), None
    )
    trusted = same or parse_layer(record.mapping(), HookSource.PROJECT, record.file)
    seal = ProjectSeal(path, record, os.path.realpath(cwd), journal_files(trusted, cwd))
    moved, _ = seal.tree.examine()
    warnings = same.warnings if same is not None else ()
    if moved is not None:
        warnings = (*warnings, _notice(record, moved))
    layer = replace(trusted, trust=seal, warnings=warnings)
    others = [_what_is_new(one, layer) for one in found if one is not same]
    return [layer, *others]


def journal_files(layer: SettingsLayer, cwd: str) -> frozenset[str]:
    """The project's own journal: it grows with every event and runs nothing."""
    journal = layer.options.journal
    if not isinstance(journal, str) or not journal.strip():
        return frozenset()
    path = os.path.normpath(os.path.join(os.path.realpath(cwd), journal))  # noqa: PTH118
    return frozenset(f"{path}{ending}" for ending in _HELPERS)


def _what_is_new(layer: SettingsLayer, trusted: SettingsLayer) -> SettingsLayer:
    groups = {}
    for event, defined in layer.groups.items():
        known = trusted.groups.get(event, ())
        if new := tuple(group for one in defined if (group := _without(one, known))):
            groups[event] = new
    return untrusted(replace(layer, groups=groups))


def _without(group: HookGroup, known: Iterable[HookGroup]) -> HookGroup | None:
    trusted = [
        hook for one in known if one.matcher == group.matcher for hook in one.hooks
    ]
    new = tuple(hook for hook in group.hooks if hook not in trusted)
    return replace(group, hooks=new) if new else None


def _notice(record: TrustRecord, moved: str) -> str:
    shown = os.path.relpath(moved, record.project)
    return (
        f"{record.project}: {shown} is not what was trusted, so the project's hooks do "
        "not run and, unless they say otherwise, what they guard is blocked: look at "
        f"the change and run 'hookline trust' in {record.project}"
    )
