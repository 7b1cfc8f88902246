"""Load the settings of all sources and decide which of them apply to a hook."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hookline.errors import EncodingError, SettingsError
from hookline.protocol.results import FailureCause
from hookline.protocol.values import as_plain, describe, printable

from .extensions import load_extensions, missing_guards
from .model import (
    Breaker,
    EnvPolicy,
    FailurePolicy,
    Groups,
    HookConfig,
    HooksOptions,
    HookSource,
    HookType,
    OnFailure,
    SettingsLayer,
    TelemetryOptions,
    ToolSelection,
    Untrusted,
)
from .parse import parse_layer
from .places import SYSTEM_DIR, Place, SettingsPlaces, absolute
from .read import read_settings

PROCESSES_PER_CORE = 4
DEFAULT_POLICY = FailurePolicy(*(OnFailure.ALLOW,) * 4, OnFailure.BLOCK)
_STRICT_POLICY = FailurePolicy(*(OnFailure.BLOCK,) * 5)
_DECIDED_BY_DATA = (HookType.RULE, HookType.CEDAR)
"""They cannot crash by accident, so their failures block by default."""


class HookOptions(Struct, frozen=True, kw_only=True):
    """The options in effect for one hook."""

    on_error: FailurePolicy = DEFAULT_POLICY
    """Has a value for every cause."""
    env_policy: EnvPolicy = EnvPolicy.INHERIT
    max_output_bytes: int = 8 * 1024 * 1024
    breaker: Breaker | None = Breaker()
    """None where it is switched off."""
    max_depth: int = 4
    worker_idle_ms: float = 300_000


class GlobalOptions(Struct, frozen=True, kw_only=True):
    """The options in effect for the whole system."""

    max_processes: int
    tool_selection: ToolSelection = ToolSelection.UNION
    journal: bool | str = False
    on_ask: OnFailure = OnFailure.BLOCK
    telemetry: TelemetryOptions | None = None


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of a run."""

    layers: tuple[SettingsLayer, ...] = ()
    """Projects, user, system, extensions: those that exist, in this order."""
    errors: tuple[SettingsError, ...] = ()
    """The files that could not be used."""
    projects: tuple[str, ...] = ()
    """The projects whose settings apply, outermost first."""
    project_dir: str | None = None
    """What ``$HOOKLINE_PROJECT_DIR`` is for hooks of no project, where it is known."""
    folder: str | None = None
    """The working directory, where projects were searched from it upwards."""
    places: SettingsPlaces | None = None
    """What they were loaded from; None if that was no file."""

    @staticmethod
    def load(
        project_dir: str | PathLike[str] | None = None,
        *,
        places: SettingsPlaces | None = None,
    ) -> Settings:
        """Read all places and extensions.

        The projects are those that apply in ``project_dir``. Raises ``SettingsError``
        where a file of the user or the system is there and cannot be read.
        """
        return load_settings(places or SettingsPlaces.around(project_dir))

    @staticmethod
    def from_file(
        path: str | PathLike[str], *, system_dir: str | PathLike[str] = SYSTEM_DIR
    ) -> Settings:
        """Read one file in place of all others, beside managed system hooks.

        Those are in ``system_dir``, which tests may choose.
        Raises ``SettingsError`` when the file cannot be used.
        """
        label, file = fspath(path), absolute(path)
        places = SettingsPlaces(file=file, label=label, system_dir=system_dir)
        return load_settings(places)

    @staticmethod
    def from_mapping(
        mapping: Mapping[str, Any], source: HookSource = HookSource.PROJECT
    ) -> Settings:
        """Take settings from a mapping, for tests and for hosts with their own.

        Its hooks have the priority of ``source`` and need no approval. Raises
        ``SettingsError`` for anything else than a mapping.
        """
        if not isinstance(mapping, Mapping):
            raise SettingsError(f"expected a mapping, got {describe(mapping)}")
        try:
            raw = as_plain(mapping)
        except EncodingError as error:
            raise SettingsError(str(error)) from error
        return Settings(layers=(parse_layer(raw, HookSource(source), explicit=True),))

    def with_managed(self) -> Settings:
        """The same with the managed hooks of this machine, which hold for all settings.

        Raises ``SettingsError`` if the system's file exists and cannot be used.
        """
        places = self.places or SettingsPlaces()
        errors, layers = list(self.errors), self.layers
        if self.places is None:  # else they were read with the others
            layers += tuple(_managed_layers(places, errors, strict=True))
        for error in errors:
            if os.path.dirname(error.file or "") == fspath(places.system_dir):  # noqa: PTH120
                raise error
        return replace(self, layers=layers)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The problems in the files that are used."""
        return tuple(printable(it) for layer in self.layers for it in layer.warnings)

    @property
    def has_managed(self) -> bool:
        """Whether any hook is managed."""
        return any(_managed_groups(layer) for layer in self.layers)

    @property
    def hooks_enabled(self) -> bool:
        """Whether a hook system is needed."""
        if not all(layer.enable_hooks for layer in self._overriding()):
            return self.has_managed
        if all(layer.enable_hooks for layer in self.layers if layer.is_project):
            return True
        return any(map(self.groups_of, self.layers))

    def groups_of(self, layer: SettingsLayer) -> Groups:
        """The groups of one layer, without those that ``enableHooks`` switches off."""
        applying = (*self._with_siblings(layer), *self._overriding())
        is_on = all(layer.enable_hooks for layer in applying)
        return layer.groups if is_on else _managed_groups(layer)

    def disabled(self, layer: SettingsLayer | None, hook: HookConfig) -> bool:
        """Whether a list of disabled hooks that applies to this one names it.

        ``layer`` is where the hook comes from, None for one registered in code.
        """
        if _is_managed(layer, hook):
            return False
        applying = self._options_for(layer, hook)
        return any(hook.name in options.disabled for options in applying)

    def hook_options(
        self, layer: SettingsLayer | None, hook: HookConfig
    ) -> HookOptions:
        """Resolve a hook's options: its own, its project's, user's, system's."""
        closes = self.untrusted is Untrusted.BLOCK
        if closes and layer is not None and layer.is_unapproved:
            # What nobody approved decides nothing, not even how it fails.
            return HookOptions(on_error=_STRICT_POLICY)
        applying = self._options_for(layer, hook)
        default = _STRICT_POLICY if hook.type in _DECIDED_BY_DATA else DEFAULT_POLICY
        policies = [hook.on_error, *(options.on_error for options in applying), default]
        verdicts = (
            next(filter(None, (policy.get(cause) for policy in policies)))
            for cause in FailureCause
        )
        env_policy = hook.env_policy or _first(applying, "env_policy")
        above = [layer.options.env_policy for layer in self._overriding()]
        if layer is not None and layer.is_guest and EnvPolicy.CLEAN in above:
            env_policy = EnvPolicy.CLEAN
        names = ("max_output_bytes", "breaker", "max_depth", "worker_idle_ms")
        values = {name: _first(applying, name) for name in names}
        values = {name: value for name, value in values.items() if value is not None}
        if values.get("breaker") is False:
            values["breaker"] = None
        return HookOptions(
            on_error=FailurePolicy(*verdicts),
            env_policy=env_policy or EnvPolicy.INHERIT,
            **values,
        )

    @property
    def untrusted(self) -> Untrusted:
        """What hooks of unapproved projects mean; nobody can loosen ``block``."""
        choices = [layer.options.untrusted for layer in self.layers]
        return Untrusted.BLOCK if Untrusted.BLOCK in choices else Untrusted.SKIP

    @property
    def global_options(self) -> GlobalOptions:
        """Resolve the options of the whole system; a project can only tighten them."""
        user = self._explicit() or self._of_source(HookSource.USER)
        above = [
            layer.options for layer in (*self._of_source(HookSource.SYSTEM), *user)
        ]
        # The innermost project first: the one that a person works on.
        projects = [_own_options(it) for it in self.layers[::-1] if it.is_project]
        limits = [it.max_processes for it in projects if it.max_processes is not None]
        stricter = [
            it for it in projects if it.tool_selection is ToolSelection.INTERSECT
        ]
        blocks = OnFailure.BLOCK in [options.on_ask for options in projects]
        default = PROCESSES_PER_CORE * (os.cpu_count() or 1)
        return GlobalOptions(
            max_processes=min([_first(above, "max_processes") or default, *limits]),
            tool_selection=_first([*above, *stricter], "tool_selection")
            or ToolSelection.UNION,
            journal=_first([*above, *projects], "journal") or False,
            on_ask=OnFailure.BLOCK
            if blocks
            else _first(above, "on_ask") or OnFailure.BLOCK,
            telemetry=_first([*above, *projects], "telemetry") or None,
        )

    def _options_for(
        self, layer: SettingsLayer | None, hook: HookConfig
    ) -> list[HooksOptions]:
        """The options that apply to a hook, highest precedence first."""
        applying = [] if layer is None else self._with_siblings(layer)
        if not _is_managed(layer, hook):
            applying += [above for above in self._overriding() if above is not layer]
        return [layer.options for layer in applying]

    def _with_siblings(self, layer: SettingsLayer) -> list[SettingsLayer]:
        """A layer and the other settings file of its project, in priority order."""
        if not layer.is_project or layer.project is None:
            return [layer]
        projects = self._of_source(layer.source)
        return [it for it in projects if it.is_project and it.project == layer.project]

    def _overriding(self) -> list[SettingsLayer]:
        """The layers that apply to the hooks of every other layer."""
        return self._explicit() or self._of_source(HookSource.USER, HookSource.SYSTEM)

    def _explicit(self) -> list[SettingsLayer]:
        return [layer for layer in self.layers if layer.explicit]

    def _of_source(self, *sources: HookSource) -> list[SettingsLayer]:
        return [layer for layer in self.layers if layer.source in sources]


def load_settings(places: SettingsPlaces, *, strict: bool = True) -> Settings:
    """Load settings; raises ``SettingsError`` for a file that must be readable.

    Not ``strict``: then it is one of the errors, and the other files count.
    """
    workspace = places.workspace()
    layers: list[SettingsLayer] = []
    errors: list[SettingsError] = []
    if places.file is not None:
        label = places.label or places.file
        try:
            raw = read_settings(places.file)
            layers.append(parse_layer(raw, HookSource.EXPLICIT, label, explicit=True))
        except SettingsError as error:
            labelled = SettingsError(error.problem, label, error.line, error.column)
            if strict:
                raise labelled from error.__cause__
            errors.append(labelled)
        layers += _managed_layers(places, errors, strict=strict)
    else:
        for place in places.folders(workspace):
            layers += _load_place(place, errors, strict=strict)
        layers += load_extensions(workspace.zones if workspace else ())
    return Settings(
        layers=tuple(layers),
        errors=tuple(errors),
        projects=workspace.projects if workspace else (),
        project_dir=workspace.project_dir if workspace else None,
        folder=workspace.folder if workspace else None,
        places=places,
    )


def _managed_layers(
    places: SettingsPlaces, errors: list[SettingsError], *, strict: bool
) -> list[SettingsLayer]:
    place = Place(HookSource.SYSTEM, fspath(places.system_dir))
    layers = _load_place(place, errors, strict=strict)
    managed = (replace(layer, groups=_managed_groups(layer)) for layer in layers)
    return [layer for layer in managed if layer.groups]


def _load_place(
    place: Place, errors: list[SettingsError], *, strict: bool
) -> list[SettingsLayer]:
    layers = []
    for stem in place.stems:
        try:
            if file := place.find(stem):
                raw = read_settings(file)
                layer = parse_layer(raw, place.source, file, project=place.project)
                layers.append(layer)
        except SettingsError as error:
            # Whether a project's file can be read is for its approval to decide.
            cause = error.__cause__
            if strict and place.project is None and isinstance(cause, OSError):
                raise missing_guards(cause, error.file) from cause
            errors.append(error)
    return layers


def _own_options(layer: SettingsLayer) -> HooksOptions:
    """The options of a project, with the journal's path inside that project."""
    journal = layer.options.journal
    if layer.project is None or not isinstance(journal, str) or not journal.strip():
        return layer.options
    return replace(layer.options, journal=f"{layer.project}/{journal}")


def _is_managed(layer: SettingsLayer | None, hook: HookConfig) -> bool:
    return layer is not None and layer.source is HookSource.SYSTEM and hook.managed


def _managed_groups(layer: SettingsLayer) -> Groups:
    return layer.map_hooks(lambda _, __, h: h if _is_managed(layer, h) else None)


def _first(layers: Iterable[HooksOptions], name: str) -> Any:
    """The value of the first options that have one."""
    values = (getattr(options, name) for options in layers)
    return next((value for value in values if value is not None), None)
