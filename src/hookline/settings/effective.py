"""Which settings count for which hook: who may switch off, loosen or tighten what.

Pure. A project only adds: what it says reaches its own hooks and nobody else's. User
and system settings reach all hooks. An explicitly named file stands in for both, but
reaches no managed hook: those listen to the system's settings alone (PROTOCOL 2).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hookline.events import HookEventName
from hookline.results import FailureCause

from .schema import (
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
