"""The registered hooks of all sources, and which of them are switched on.

The registry is read through ``for_event``; its ``version`` goes up with every change,
so that whoever keeps plans can see that they are out of date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from msgspec import Struct, structs

from .errors import UnknownHookError
from .events import HookEventName
from .results import FailureCause
from .settings.effective import HookOptions
from .settings.load import Settings
from .settings.schema import (
    HookConfig,
    HookGroup,
    HookSource,
    HookType,
    OnFailure,
    Seal,
    SettingsLayer,
    TrustStatus,
)

HookFunction = Callable[[dict[str, Any]], Any]


class RegisteredHook(Struct, frozen=True, kw_only=True, eq=False):
    """One hook on one event, with all that settings say about it."""

    config: HookConfig
    event: HookEventName
    source: HookSource
    options: HookOptions
    matcher: str | None = None
    sequential: bool = False
    file: str | None = None
    enabled: bool = True
    trust: TrustStatus = TrustStatus.TRUSTED
    """As it was when the hook was registered."""
    seal: Seal | None = None
    """Of a trusted project's hook: whether it may run is asked each time."""
    function: HookFunction | None = None
    serial: int = 0
    """Tells hooks apart for as long as the system lives."""

    @property
    def name(self) -> str:
        """What people call it."""
        return self.config.name

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Equal keys are one hook; hooks registered in code are never equal."""
        # A hook that will not run must not push an equal one out.
        alone = self.source is HookSource.RUNTIME or self.trust is TrustStatus.CHANGED
        own = self.serial if alone else 0
        return (*self.config.key, own)

    def on(self, cause: FailureCause) -> OnFailure:
        """What a failure of this hook means for the event."""
        return self.options.on_error.get(cause) or OnFailure.ALLOW


class HookRegistry:
    """All hooks, in priority order for each event."""

    def __init__(self, settings: Settings) -> None:
        self.version = 0
        self._serials = count(1)
        self._hooks: dict[HookEventName, tuple[RegisteredHook, ...]] = {}
        for layer in settings.layers:
            self._add_layer(settings, layer)

    def for_event(self, event: HookEventName) -> tuple[RegisteredHook, ...]:
        """All hooks on one event, highest priority first, switched off ones too."""
        return self._hooks.get(event, ())

    def all_hooks(self) -> list[RegisteredHook]:
        """All hooks, event by event."""
        return [hook for event in HookEventName for hook in self.for_event(event)]

    def set_enabled(self, name: str, enabled: bool) -> None:
        """Switch all hooks of a name on or off; managed ones stay on."""
        if not any(hook.name == name for hook in self.all_hooks()):
            raise UnknownHookError(name, {hook.name for hook in self.all_hooks()})
        self._hooks = {
            event: tuple(_switched(hook, name, enabled) for hook in hooks)
            for event, hooks in self._hooks.items()
        }
        self.version += 1

    def add_function(
        self,
        event: HookEventName,
        function: HookFunction,
        config: HookConfig,
        group: HookGroup,
        options: HookOptions,
    ) -> Callable[[], None]:
        """Register a function of the host's; the value returned takes it away again."""
        hook = RegisteredHook(
            config=config,
            event=event,
            source=HookSource.RUNTIME,
            options=options,
            matcher=group.matcher,
            sequential=group.sequential,
            function=function,
            serial=next(self._serials),
        )
        runtime, others = _split_runtime(self.for_event(event))
        self._replace(event, (*runtime, hook, *others))
        return lambda: self._remove(hook)

    def _remove(self, hook: RegisteredHook) -> None:
        kept = (h for h in self.for_event(hook.event) if h.serial != hook.serial)
        self._replace(hook.event, kept)

    def _replace(self, event: HookEventName, hooks: Iterable[RegisteredHook]) -> None:
        self._hooks[event] = tuple(hooks)
        self.version += 1

    def _add_layer(self, settings: Settings, layer: SettingsLayer) -> None:
        for event, groups in settings.groups_of(layer).items():
            added = [
                self._registered(settings, layer, event, group, config)
                for group in groups
                for config in group.hooks
            ]
            self._hooks[event] = (*self.for_event(event), *added)

    def _registered(
        self,
        settings: Settings,
        layer: SettingsLayer,
        event: HookEventName,
        group: HookGroup,
        config: HookConfig,
    ) -> RegisteredHook:
        trust, seal = _trust_of(layer, config)
        return RegisteredHook(
            config=config,
            event=event,
            source=layer.source,
            trust=trust,
            seal=seal,
            options=settings.hook_options(layer, config),
            matcher=group.matcher,
            sequential=group.sequential,
            file=layer.file,
            enabled=not settings.disabled(layer, config),
            serial=next(self._serials),
        )


def _trust_of(
    layer: SettingsLayer, config: HookConfig
) -> tuple[TrustStatus, Seal | None]:
    if layer.source is not HookSource.PROJECT or layer.explicit:
        return TrustStatus.TRUSTED, None
    if layer.trust is None:
        return TrustStatus.UNTRUSTED, None
    seal = layer.trust(config)
    broken = seal is not None and seal.examine()[0] is not None
    return (TrustStatus.CHANGED if broken else TrustStatus.TRUSTED), seal


def function_config(
    function: HookFunction, name: str | None, timeout_ms: float, **more: Any
) -> HookConfig:
    """Describe a function of the host's as a hook."""
    found = name or getattr(function, "__name__", None) or repr(function)
    return HookConfig(type=HookType.PYTHON, name=found, timeout_ms=timeout_ms, **more)


def _switched(hook: RegisteredHook, name: str, enabled: bool) -> RegisteredHook:
    if hook.name != name or hook.config.managed:
        return hook
    return structs.replace(hook, enabled=enabled)


def _split_runtime(
    hooks: tuple[RegisteredHook, ...],
) -> tuple[list[RegisteredHook], list[RegisteredHook]]:
    runtime = [hook for hook in hooks if hook.source is HookSource.RUNTIME]
    others = [hook for hook in hooks if hook.source is not HookSource.RUNTIME]
    return runtime, others
