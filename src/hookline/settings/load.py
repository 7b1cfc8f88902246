"""Load the settings of all sources and decide which of them count for a hook."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct
from msgspec.structs import replace

from hookline.errors import SettingsError
from hookline.protocol.events import HookEventName
from hookline.protocol.jsontext import decode, encode
from hookline.protocol.results import FailureCause

from .locations import SYSTEM_DIR, SettingsPlaces, find_settings_file
from .model import (
    DEFAULT_MAX_DEPTH,
    DEFAULT_MAX_OUTPUT_BYTES,
    DEFAULT_WORKER_IDLE_MS,
    Breaker,
    EnvPolicy,
    FailurePolicy,
    HookConfig,
    HookGroup,
    HooksOptions,
    HookSource,
    OnFailure,
    SettingsLayer,
    ToolSelection,
)
from .parse import parse_layer
from .read import read_settings

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from pathlib import Path

GROUP = "hookline.extensions"


def load_extensions(
    project_dir: str | PathLike[str] | None = None,
    search: Sequence[str] | None = None,
) -> tuple[SettingsLayer, ...]:
    """Load the layers of all extensions, by name."""
    folders = _trustworthy(sys.path if search is None else search, project_dir)
    found = sorted(_entry_points(folders), key=lambda point: point.name)
    return tuple(_load(point) for point in found)


def _trustworthy(
    folders: Iterable[str], project_dir: str | PathLike[str] | None
) -> list[str]:
    """Leave out the project itself, where anybody may put a package's metadata.

    A virtual environment inside the project was made by its user, and counts.
    """
    kept: dict[str, None] = {}
    environment = os.path.realpath(sys.prefix)
    project = None if project_dir is None else os.path.realpath(project_dir)
    for folder in folders:
        path = os.path.realpath(folder)
        own = project is not None and _is_within(path, project)
        if folder and (not own or _is_within(path, environment)):
            kept[path] = None
    return list(kept)


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _entry_points(folders: Iterable[str]) -> Iterator[EntryPoint]:
    seen: set[str] = set()
    for folder in folders:
        for metadata in _metadata_with_group(folder):
            from importlib.metadata import Distribution

            distribution = Distribution.at(metadata)
            for point in distribution.entry_points.select(group=GROUP):
                if point.name not in seen:  # the first on the path is the one in use
                    seen.add(point.name)
                    yield point


def _metadata_with_group(folder: str) -> list[Path]:
    # importlib.metadata would parse the metadata of every package that is installed;
    # looking for our group first costs a tenth of that, and most often ends here.
    try:
        with os.scandir(folder) as entries:
            names = [
                entry.path
                for entry in entries
                if entry.name.endswith((".dist-info", ".egg-info"))
            ]
    except OSError:
        return []
    found = [name for name in sorted(names) if _mentions_group(name)]
    if not found:
        return []
    from pathlib import Path

    return [Path(name) for name in found]


def _mentions_group(metadata: str) -> bool:
    try:
        with open(f"{metadata}/entry_points.txt", "rb") as file:  # noqa: PTH123
            return GROUP.encode() in file.read()
    except OSError:
        return False


def _load(point: EntryPoint) -> SettingsLayer:
    label = f"extension {point.name!r}"
    try:
        mapping = _plain(point.load())
    # A package's own code runs here and may raise anything at all.
    except Exception as error:  # noqa: BLE001
        problem = f"{type(error).__name__}: {error}"
        return _broken(label, f"could not be loaded ({problem}); it adds no hooks")
    if mapping is None:
        return _broken(label, "gives no mapping; it adds no hooks")
    return parse_layer(mapping, HookSource.EXTENSIONS, label)


def _plain(given: Any) -> dict[str, Any] | None:
    """Copy what an extension gives into plain JSON values."""
    found = given if isinstance(given, Mapping) or not callable(given) else given()
    if not isinstance(found, Mapping):
        return None
    copy: dict[str, Any] = decode(encode(dict(found)))
    return copy


def _broken(label: str, problem: str) -> SettingsLayer:
    warning = f"{label}: {problem}"
    return SettingsLayer(source=HookSource.EXTENSIONS, file=label, warnings=(warning,))


Layers = Sequence[SettingsLayer]

PROCESSES_PER_CORE = 4
DEFAULT_POLICY = FailurePolicy(
    OnFailure.ALLOW,
    OnFailure.ALLOW,
    OnFailure.ALLOW,
    OnFailure.ALLOW,
    changed=OnFailure.BLOCK,
)


class HookOptions(Struct, frozen=True, kw_only=True):
    """What holds for one hook, all told."""

    on_error: FailurePolicy = DEFAULT_POLICY
    """Says something of every cause."""
    env_policy: EnvPolicy = EnvPolicy.INHERIT
    max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES
    breaker: Breaker | None = Breaker()
    """None where it is switched off."""
    max_depth: int = DEFAULT_MAX_DEPTH
    worker_idle_ms: float = DEFAULT_WORKER_IDLE_MS


class GlobalOptions(Struct, frozen=True, kw_only=True):
    """What holds for the whole system."""

    max_processes: int
    tool_selection: ToolSelection = ToolSelection.UNION
    journal: bool | str = False
    on_ask: OnFailure = OnFailure.BLOCK


def is_managed(layer: SettingsLayer | None, hook: HookConfig) -> bool:
    """Whether nothing may turn this hook off."""
    return layer is not None and layer.source is HookSource.SYSTEM and hook.managed


def has_managed(layers: Layers) -> bool:
    """Whether any hook is managed."""
    return any(
        is_managed(layer, hook)
        for layer in layers
        for groups in layer.groups.values()
        for group in groups
        for hook in group.hooks
    )


def hooks_enabled(layers: Layers) -> bool:
    """Whether there is any use for a hook system."""
    if not all(layer.enable_hooks for layer in _reaching_all(layers)):
        return has_managed(layers)
    if all(layer.enable_hooks for layer in layers if _is_project(layer)):
        return True
    return any(layer.groups for layer in layers if layer.enable_hooks)


def groups_of(
    layers: Layers, layer: SettingsLayer
) -> dict[HookEventName, tuple[HookGroup, ...]]:
    """The groups of one layer, without what ``enableHooks`` switches off."""
    switches = (layer, *_reaching_all(layers))
    if all(switch.enable_hooks for switch in switches):
        return layer.groups
    return only_managed(layer).groups


def only_managed(layer: SettingsLayer) -> SettingsLayer:
    """The same layer with its managed hooks alone."""
    kept: dict[HookEventName, tuple[HookGroup, ...]] = {}
    for event, groups in layer.groups.items():
        reduced = [
            replace(group, hooks=hooks)
            for group in groups
            if (hooks := tuple(h for h in group.hooks if is_managed(layer, h)))
        ]
        if reduced:
            kept[event] = tuple(reduced)
    return replace(layer, groups=kept)


def is_disabled(layers: Layers, layer: SettingsLayer | None, hook: HookConfig) -> bool:
    """Whether a list of disabled hooks names this one and may reach it.

    ``layer`` is where the hook comes from, None for one registered in code.
    """
    if is_managed(layer, hook):
        return False
    return any(
        hook.name in speaker.options.disabled
        for speaker in _speakers(layers, layer, hook)
    )


def hook_options(
    layers: Layers, layer: SettingsLayer | None, hook: HookConfig
) -> HookOptions:
    """Resolve a hook's options: its own, its layer's, the user's, the system's."""
    said = [s.options for s in _speakers(layers, layer, hook)]
    breaker = _first(said, "breaker", Breaker())
    return HookOptions(
        on_error=_policy([hook.on_error, *(options.on_error for options in said)]),
        env_policy=_env_policy(layers, layer, hook, said),
        max_output_bytes=_first(said, "max_output_bytes", DEFAULT_MAX_OUTPUT_BYTES),
        breaker=breaker if isinstance(breaker, Breaker) else None,
        max_depth=_first(said, "max_depth", DEFAULT_MAX_DEPTH),
        worker_idle_ms=_first(said, "worker_idle_ms", DEFAULT_WORKER_IDLE_MS),
    )


def _env_policy(
    layers: Layers,
    layer: SettingsLayer | None,
    hook: HookConfig,
    said: Sequence[HooksOptions],
) -> EnvPolicy:
    """What a hook sees of the host; a project or a package only narrows it."""
    guest = layer is not None and (
        _is_project(layer) or layer.source is HookSource.EXTENSIONS
    )
    above = [one.options.env_policy for one in _reaching_all(layers)]
    if guest and EnvPolicy.CLEAN in above:
        return EnvPolicy.CLEAN
    policy: EnvPolicy = _first(said, "env_policy", EnvPolicy.INHERIT)
    return hook.env_policy or policy


def global_options(layers: Layers) -> GlobalOptions:
    """Resolve what is not one hook's matter; a project may only tighten it."""
    system = _of_source(layers, HookSource.SYSTEM)
    explicit = [layer for layer in layers if layer.explicit]
    user = explicit or _of_source(layers, HookSource.USER)
    above = [layer.options for layer in (*system, *user)]
    project = [layer.options for layer in layers if _is_project(layer)]
    asked = _first(above, "on_ask", OnFailure.BLOCK)
    if OnFailure.BLOCK in [options.on_ask for options in project]:
        asked = OnFailure.BLOCK
    limits = [o.max_processes for o in project if o.max_processes is not None]
    everyone = [*above, *project]
    return GlobalOptions(
        max_processes=min([_first(above, "max_processes", _processes()), *limits]),
        tool_selection=_first(everyone, "tool_selection", ToolSelection.UNION),
        journal=_first(everyone, "journal", False),
        on_ask=asked,
    )


def _speakers(
    layers: Layers, layer: SettingsLayer | None, hook: HookConfig
) -> list[SettingsLayer]:
    """The layers whose options reach a hook, the one that counts most first."""
    if layer is None:
        return _reaching_all(layers)
    if is_managed(layer, hook):
        return [layer]
    return [layer, *(other for other in _reaching_all(layers) if other is not layer)]


def _reaching_all(layers: Layers) -> list[SettingsLayer]:
    explicit = [layer for layer in layers if layer.explicit]
    if explicit:
        return explicit
    user = _of_source(layers, HookSource.USER)
    return [*user, *_of_source(layers, HookSource.SYSTEM)]


def _of_source(layers: Layers, source: HookSource) -> list[SettingsLayer]:
    return [layer for layer in layers if layer.source is source]


def _is_project(layer: SettingsLayer) -> bool:
    return layer.source is HookSource.PROJECT and not layer.explicit


def _first(said: Iterable[HooksOptions], name: str, default: Any) -> Any:
    values = (getattr(options, name) for options in said)
    return next((value for value in values if value is not None), default)


def _policy(said: Iterable[FailurePolicy]) -> FailurePolicy:
    policies = [*said, DEFAULT_POLICY]
    verdicts = (
        next(verdict for policy in policies if (verdict := policy.get(cause)))
        for cause in FailureCause
    )
    return FailurePolicy(*verdicts)


def _processes() -> int:
    return PROCESSES_PER_CORE * (os.cpu_count() or 1)


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
        managed = [only_managed(one) for one in system]
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
        return hooks_enabled(self.layers)

    @property
    def has_managed(self) -> bool:
        """Whether there are hooks that nothing may turn off."""
        return has_managed(self.layers)

    @property
    def global_options(self) -> GlobalOptions:
        """What holds for the whole system."""
        return global_options(self.layers)

    def groups_of(
        self, layer: SettingsLayer
    ) -> dict[HookEventName, tuple[HookGroup, ...]]:
        """The groups of one layer, without what ``enableHooks`` switches off."""
        return groups_of(self.layers, layer)

    def hook_options(
        self, layer: SettingsLayer | None, hook: HookConfig
    ) -> HookOptions:
        """What holds for one hook; ``layer`` is None for one registered in code."""
        return hook_options(self.layers, layer, hook)

    def disabled(self, layer: SettingsLayer | None, hook: HookConfig) -> bool:
        """Whether a hook is on a list of disabled ones that may reach it."""
        return is_disabled(self.layers, layer, hook)


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
