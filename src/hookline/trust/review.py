"""What a person reviews: a project now, compared with what was approved.

The files are read once: what is shown is what is recorded, even if somebody edits them
during the review.
"""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from hookline.errors import SettingsError
from hookline.settings.model import HookSource, SettingsLayer
from hookline.settings.parse import parse_layer
from hookline.settings.places import (
    PROJECT_FOLDER,
    Place,
    record_path,
    record_problem,
)
from hookline.settings.read import read_settings

from .pins import (
    MAX_PATHS,
    MAX_PINNED_BYTES,
    PinKind,
    differences,
    pin_named_files,
    pin_project,
)
from .records import (
    VERSION,
    Manifest,
    hook_id,
    load_copies,
    load_record,
    settings_texts,
)


class Review(Struct, frozen=True, kw_only=True):
    """A project as it was read once, and what of it is approved."""

    manifest: Manifest
    """What an approval would record."""
    layers: list[SettingsLayer]
    """Empty where the project has no settings."""
    copies: dict[str, bytes]
    before: Manifest | None = None
    copies_before: dict[str, bytes] = {}
    is_unchanged: bool = False
    """Whether there is nothing to approve."""

    @property
    def has_hooks(self) -> bool:
        """Whether there is anything that could run."""
        return any(layer.groups for layer in self.layers)


def review_project(project: str) -> Review:
    """Compare a project with its approval; raises ``HooklineError``."""
    path, record = record_path(project), None
    if path is not None and record_problem(project) is None:
        record = load_record(path)
    review = _read_project(project)
    if record is None:
        return replace(review, is_unchanged=not review.has_hooks)
    pins, settings = review.manifest.pins(), review.manifest.settings
    alike = [state for state in record.states if state.settings == settings]
    is_unchanged = (
        bool(review.layers)
        and record.version == VERSION
        and any(not differences(state.pins(), pins) for state in alike)
    )
    before = alike[0] if alike and not is_unchanged else next(iter(record.states), None)
    return replace(
        review,
        before=before,
        copies_before={} if is_unchanged else load_copies(project),
        is_unchanged=is_unchanged,
    )


def _read_project(project: str) -> Review:
    """Read a project; raises ``SettingsError`` where it cannot be approved."""
    place = Place(HookSource.PROJECT, f"{project}/{PROJECT_FOLDER}", project)
    copies: dict[str, bytes] = {}
    layers = [
        parse_layer(read_settings(file), HookSource.PROJECT, file, project=project)
        for file in map(place.find, place.stems)
        if file is not None
    ]
    if not layers:
        return Review(manifest=Manifest(project=project), layers=[], copies={})
    tree = pin_project(layers, project, copies)
    if len(tree) > MAX_PATHS:
        problem = f"holds more than {MAX_PATHS} files, too many to approve"
        raise SettingsError(problem, place.folder)
    files = {}
    for hook in (hook for layer in layers for _, _, hook in layer.hooks()):
        files[hook_id(hook)] = pin_named_files(hook, project, copies)
        if len(files[hook_id(hook)]) > MAX_PATHS:
            problem = f"names more than {MAX_PATHS} files, too many to approve"
            raise SettingsError(f"hook {hook.name!r} {problem}")
    manifest = Manifest(
        project=project,
        settings=settings_texts(layers),
        tree=tree,
        files=files,
        trusted_at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
    )
    for path, pin in manifest.pins().items():
        if pin.kind is PinKind.TOO_LARGE:
            limit = f"more than {MAX_PINNED_BYTES >> 20} MiB"
            hint = "move it out of .hookline, or write '!path' into trustFiles"
            raise SettingsError(f"is too large to approve ({limit}): {hint}", path)
    return Review(manifest=manifest, layers=layers, copies=copies)
