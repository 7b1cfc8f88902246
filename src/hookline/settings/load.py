"""All settings of a run: every layer in priority order, and what was wrong with them.

A file that cannot be used is in ``errors`` and takes no other layer with it. Which
layer reaches which hook is decided in ``effective``.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any, Self

from msgspec import Struct

from hookline.errors import SettingsError
from hookline.events import HookEventName

from . import effective
from .effective import GlobalOptions, HookOptions
from .extensions import load_extensions
from .locate import SYSTEM_DIR, SettingsPlaces, find_settings_file
from .parse import parse_layer
from .read import read_settings
from .schema import HookConfig, HookGroup, HookSource, SettingsLayer


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of a run."""

    layers: tuple[SettingsLayer, ...] = ()
    """Project, user, system, extensions: those that there are, in this order."""
    errors: tuple[SettingsError, ...] = ()
    """The files that could not be used."""
    project_dir: str | None = None
    """Whose settings these are, where a project was looked for at all."""

    @classmethod
    def load(
        cls,
        project_dir: str | PathLike[str] | None = None,
        *,
        places: SettingsPlaces | None = None,
    ) -> Self:
        """Read all places and extensions; never raises."""
        if places is None:
            places = SettingsPlaces(project_dir=project_dir)
        layers: list[SettingsLayer] = []
        errors: list[SettingsError] = []
        for source, folder in places.folders().items():
            _load_place(source, folder, layers, errors)
        layers += load_extensions(places.project_dir)
        project_dir = None if places.project_dir is None else str(places.project_dir)
        return cls(layers=tuple(layers), errors=tuple(errors), project_dir=project_dir)

    @classmethod
    def from_file(
        cls, path: str | PathLike[str], *, system_dir: str | PathLike[str] = SYSTEM_DIR
    ) -> Self:
        """Read one file in place of all others, beside managed system hooks.

        Raises ``SettingsError`` when the file cannot be used.
        """
        raw = read_settings(path)
        layer = parse_layer(raw, HookSource.PROJECT, fspath(path), explicit=True)
        system: list[SettingsLayer] = []
        errors: list[SettingsError] = []
        _load_place(HookSource.SYSTEM, system_dir, system, errors)
        managed = [effective.only_managed(one) for one in system]
        kept = [one for one in managed if one.groups]
        return cls(layers=(layer, *kept), errors=tuple(errors))

    @classmethod
    def from_mapping(
        cls, mapping: Mapping[str, Any], source: HookSource = HookSource.PROJECT
    ) -> Self:
        """Take settings from a mapping, for tests and for hosts that keep their own."""
        return cls(layers=(parse_layer(mapping, source, explicit=True),))

    def without(self, source: HookSource) -> Settings:
        """The same settings as if one source, such as a project, were empty.

        A file that was named explicitly is no project's, and stays.
        """
        kept = [one for one in self.layers if one.explicit or one.source is not source]
        return Settings(layers=tuple(kept), errors=self.errors)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong within the files that are used."""
        return tuple(text for layer in self.layers for text in layer.warnings)

    @property
    def hooks_enabled(self) -> bool:
        """Whether there is any use for a hook system."""
        return effective.hooks_enabled(self.layers)

    @property
    def has_managed(self) -> bool:
        """Whether there are hooks that nothing may turn off."""
        return effective.has_managed(self.layers)

    @property
    def global_options(self) -> GlobalOptions:
        """What holds for the whole system."""
        return effective.global_options(self.layers)

    def groups_of(
        self, layer: SettingsLayer
    ) -> dict[HookEventName, tuple[HookGroup, ...]]:
        """The groups of one layer, without what ``enableHooks`` switches off."""
        return effective.groups_of(self.layers, layer)

    def hook_options(
        self, layer: SettingsLayer | None, hook: HookConfig
    ) -> HookOptions:
        """What holds for one hook; ``layer`` is None for one registered in code."""
        return effective.hook_options(self.layers, layer, hook)

    def disabled(self, layer: SettingsLayer | None, hook: HookConfig) -> bool:
        """Whether a hook is on a list of disabled ones that may reach it."""
        return effective.is_disabled(self.layers, layer, hook)


def _load_place(
    source: HookSource,
    folder: str | PathLike[str],
    layers: list[SettingsLayer],
    errors: list[SettingsError],
) -> None:
    try:
        file = find_settings_file(folder)
        if file is not None:
            layers.append(parse_layer(read_settings(file), source, file))
    except SettingsError as error:
        errors.append(error)
