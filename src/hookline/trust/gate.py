"""Let through of a project's settings what a person has agreed to.

An untrusted project contributes nothing but candidates for trust. A trusted one counts
as it was trusted: whoever edits or deletes its settings does not get rid of its hooks,
they fail as ``changed`` from then on, and their policy of that time decides.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from hookline.errors import StateFileError
from hookline.log import logger
from hookline.settings.load import Settings
from hookline.settings.model import (
    FailurePolicy,
    HookConfig,
    HookGroup,
    HooksOptions,
    HookSource,
    SettingsLayer,
    Stamp,
)
from hookline.settings.parse import parse_layer

from .records import TrustRecord, record_path, settings_text
from .snapshot import ProjectApproval

VARIABLE = "HOOKLINE_TRUST"
"""``all`` trusts every project: for sealed environments such as CI containers."""


def gated(settings: Settings, cwd: str) -> Settings:
    """The settings as far as they are trusted, for hooks that run in ``cwd``."""
    own = [layer for layer in settings.layers if is_candidate(layer)]
    if not own and settings.project_dir is None:
        return settings
    if trusts_all():
        return _with_project(
            settings, [replace(one, trust=_always_approved) for one in own]
        )
    project = os.path.realpath(settings.project_dir or cwd)
    path = record_path(project)
    if path is None or not os.path.lexists(path):
        return _with_project(settings, [_candidates(one, project) for one in own])
    from .records import load_record

    try:
        record = load_record(path)
    except StateFileError as error:
        logger.warning("%s", error)
        return _with_project(settings, [_unreadable(one, str(error)) for one in own])
    if record is None:  # revoked in this very moment
        return _with_project(settings, [_candidates(one, project) for one in own])

    return _with_project(settings, trusted_layers(path, record, own, cwd))


def is_candidate(layer: SettingsLayer) -> bool:
    """Whether a layer needs a person's trust."""
    return layer.source is HookSource.PROJECT and not layer.explicit


def trusts_all() -> bool:
    """Whether the environment says that every project is trusted."""
    said = os.environ.get(VARIABLE, "")
    if said not in {"", "all"}:
        logger.warning("%s=%r means nothing: only 'all' does", VARIABLE, said)
    return said == "all"


def untrusted(layer: SettingsLayer) -> SettingsLayer:
    """A layer that is only there to be looked at: it switches and loosens nothing."""
    groups = layer.groups if layer.enable_hooks else {}
    return replace(
        layer, groups=groups, options=HooksOptions(), enable_hooks=True, trust=None
    )


def hooks_of(layer: SettingsLayer) -> Iterator[tuple[HookGroup, HookConfig]]:
    """All hooks of a layer."""
    for groups in layer.groups.values():
        for group in groups:
            for hook in group.hooks:
                yield group, hook


def _candidates(layer: SettingsLayer, project: str) -> SettingsLayer:
    kept = untrusted(layer)
    count = sum(1 for _ in hooks_of(kept))
    if not count:
        return kept
    what = "1 hook is" if count == 1 else f"{count} hooks are"
    notice = (
        f"{layer.file or project}: {what} not trusted and will not run: "
        f"run 'hookline trust' in {project} to look and to agree"
    )
    return replace(kept, warnings=(*kept.warnings, notice))


def _unreadable(layer: SettingsLayer, problem: str) -> SettingsLayer:
    """Somebody has trusted something here, but nobody can tell what: nothing runs."""
    groups = {
        event: tuple(_with_default_policy(group) for group in defined)
        for event, defined in layer.groups.items()
    }
    approval = FailedApproval(problem)
    return replace(untrusted(replace(layer, groups=groups)), trust=lambda _: approval)


def _with_default_policy(group: HookGroup) -> HookGroup:
    hooks = (replace(hook, on_error=FailurePolicy()) for hook in group.hooks)
    return replace(group, hooks=tuple(hooks))


class FailedApproval:
    """The approval of a hook whose files or record cannot be checked."""

    def __init__(self, problem: str) -> None:
        self._problem = problem

    def check(self) -> tuple[str, Stamp]:
        """The problem, and no stamp."""
        return self._problem, ()

    def unchanged_since(self, _: Stamp) -> bool:
        """Never."""
        return False

    def digest_of(self, path: str) -> None:
        """No file is approved."""


def _always_approved(_: HookConfig) -> None:
    """Trusted whatever it holds."""


def _with_project(settings: Settings, layers: list[SettingsLayer]) -> Settings:
    others = [layer for layer in settings.layers if not is_candidate(layer)]
    return replace(settings, layers=(*layers, *others))


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
    approval = ProjectApproval(
        path, record, os.path.realpath(cwd), journal_files(trusted, cwd)
    )
    moved, _ = approval.tree.check()
    warnings = same.warnings if same is not None else ()
    if moved is not None:
        warnings = (*warnings, _notice(record, moved))
    layer = replace(trusted, trust=approval, warnings=warnings)
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
