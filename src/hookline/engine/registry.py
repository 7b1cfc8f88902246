"""The registered hooks of all sources, and which of them are switched on.

The registry is read through ``for_event``; its ``version`` goes up with every change,
so that whoever keeps plans can see that they are out of date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from msgspec import structs

from hookline.errors import UnknownHookError
from hookline.executors.contract import HookFunction, RegisteredHook
from hookline.protocol.events import HookEventName
from hookline.settings.load import HookOptions, Settings
from hookline.settings.model import (
    Approval,
    HookConfig,
    HookGroup,
    HookSource,
    HookType,
    SettingsLayer,
    TrustStatus,
)


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
        trust, approval = _trust_of(layer, config)
        return RegisteredHook(
            config=config,
            event=event,
            source=layer.source,
            trust=trust,
            approval=approval,
            options=settings.hook_options(layer, config),
            matcher=group.matcher,
            sequential=group.sequential,
            file=layer.file,
            enabled=not settings.disabled(layer, config),
            serial=next(self._serials),
        )


def _trust_of(
    layer: SettingsLayer, config: HookConfig
) -> tuple[TrustStatus, Approval | None]:
    if layer.source is not HookSource.PROJECT or layer.explicit:
        return TrustStatus.TRUSTED, None
    if layer.trust is None:
        return TrustStatus.UNTRUSTED, None
    approval = layer.trust(config)
    broken = approval is not None and approval.check()[0] is not None
    return (TrustStatus.CHANGED if broken else TrustStatus.TRUSTED), approval


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
