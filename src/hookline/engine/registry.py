"""The registered hooks of all sources, and which of them are enabled.

Its ``version`` goes up with every change, so that cached plans can be invalidated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from types import BuiltinMethodType, MethodType

from msgspec import structs

from hookline.errors import UnknownFunctionError, UnknownHookError
from hookline.plan import HookFunction, RegisteredHook
from hookline.protocol.events import HookEventName
from hookline.settings.load import Settings
from hookline.settings.model import (
    Approval,
    HookConfig,
    HookSource,
    SettingsLayer,
    TrustStatus,
    Untrusted,
)


class HookRegistry:
    """All hooks, in priority order for each event."""

    def __init__(
        self, settings: Settings, previous: HookRegistry | None = None
    ) -> None:
        """Register the hooks of settings.

        One that is also in the ``previous`` registry of the same system keeps its
        serial, so that executors keep what they have of it.
        """
        self.version = 0
        self.serials: Iterator[int] = count(1) if previous is None else previous.serials
        self._known = _serials_of([] if previous is None else previous.all_hooks())
        self.switched: dict[str, bool] = {}
        """What the host switched on or off, where the settings say otherwise."""
        self._hooks: dict[HookEventName, tuple[RegisteredHook, ...]] = {}
        for layer in settings.layers:
            self._add_layer(settings, layer)
        self._known.clear()
        self._disabled = {one.name for one in self.all_hooks() if not one.enabled}

    def for_event(self, event: HookEventName) -> tuple[RegisteredHook, ...]:
        """All hooks on one event, highest priority first, disabled ones included."""
        return self._hooks.get(event, ())

    def all_hooks(self) -> list[RegisteredHook]:
        """All hooks, event by event."""
        return [hook for event in HookEventName for hook in self.for_event(event)]

    def state(self) -> list[tuple[int, bool, TrustStatus]]:
        """Which hooks there are, which are enabled, and which are trusted."""
        return [(hook.serial, hook.enabled, hook.trust) for hook in self.all_hooks()]

    def set_enabled(self, name: str, enabled: bool) -> None:
        """Switch all hooks of a name on or off; managed ones stay on."""
        if not any(hook.name == name for hook in self.all_hooks()):
            raise UnknownHookError(name, {hook.name for hook in self.all_hooks()})
        if enabled is (name not in self._disabled):
            self.switched.pop(name, None)  # as the settings say
        else:
            self.switched[name] = enabled
        self._switch(name, enabled)

    def take_over(self, previous: HookRegistry, settings: Settings) -> None:
        """Take the functions of the host's and what it has switched on and off."""
        for hook in previous.all_hooks():
            if hook.source is HookSource.RUNTIME:
                options = settings.hook_options(None, hook.config)
                self._add(structs.replace(hook, options=options))
        self.switched = dict(previous.switched)
        for name, enabled in self.switched.items():
            self._switch(name, enabled)

    def _switch(self, name: str, enabled: bool) -> None:
        self._hooks = {
            event: tuple(_switched(hook, name, enabled) for hook in hooks)
            for event, hooks in self._hooks.items()
        }
        self.version += 1

    def add_function(self, hook: RegisteredHook) -> None:
        """Register a function of the host's, after those already registered."""
        self._add(structs.replace(hook, serial=next(self.serials)))

    def _add(self, hook: RegisteredHook) -> None:
        hooks = (*self.for_event(hook.event), hook)
        self._replace(hook.event, sorted(hooks, key=_is_configured))

    def remove_function(
        self, function: HookFunction, event: HookEventName | None = None
    ) -> None:
        """Remove a function of the host's from one event, or from all."""
        events = list(self._hooks) if event is None else [event]
        kept = {
            one: tuple(h for h in self.for_event(one) if not _calls(h, function))
            for one in events
        }
        changed = [one for one in events if len(kept[one]) < len(self.for_event(one))]
        if not changed:
            known = (
                h.name for one in events for h in self.for_event(one) if h.function
            )
            raise UnknownFunctionError(getattr(function, "__name__", function), known)
        for one in changed:
            self._replace(one, kept[one])

    def _serial_of(self, hook: RegisteredHook) -> int:
        known = self._known.get(hook.identity) if self._known else None
        return known.pop(0) if known else next(self.serials)

    def _replace(self, event: HookEventName, hooks: Iterable[RegisteredHook]) -> None:
        self._hooks[event] = tuple(hooks)
        self.version += 1

    def _add_layer(self, settings: Settings, layer: SettingsLayer) -> None:
        for event, groups in settings.groups_of(layer).items():
            added = []
            for group, config in ((g, config) for g in groups for config in g.hooks):
                trust, approval = _trust_of(settings, layer, config)
                closes = trust is TrustStatus.UNTRUSTED and approval is not None
                hook = RegisteredHook(
                    config=_bare(config) if closes else config,
                    event=event,
                    source=layer.source,
                    trust=trust,
                    approval=approval,
                    options=settings.hook_options(layer, config),
                    matcher=group.matcher,
                    sequential=group.sequential and not closes,
                    file=layer.file,
                    project=layer.project,
                    folder=layer.project or settings.folder,
                    project_dir=layer.project or settings.project_dir,
                    enabled=not settings.disabled(layer, config),
                )
                added.append(structs.replace(hook, serial=self._serial_of(hook)))
            self._hooks[event] = (*self.for_event(event), *added)


def _calls(hook: RegisteredHook, function: HookFunction) -> bool:
    # Each look at a method makes another object of it: those are compared by value.
    if isinstance(function, MethodType | BuiltinMethodType):
        return hook.function == function
    return hook.function is function


def _serials_of(hooks: Iterable[RegisteredHook]) -> dict[str, list[int]]:
    """The serials of hooks by what they are; equal ones in their order."""
    found: dict[str, list[int]] = {}
    for hook in hooks:
        found.setdefault(hook.identity, []).append(hook.serial)
    return found


def _bare(config: HookConfig) -> HookConfig:
    """A hook that only closes its event: none of its other keys is approved."""
    return HookConfig(
        type=config.type,
        name=config.name,
        command=config.command,
        function=config.function,
        when=config.when,
        policies=config.policies,
        url=config.url,
        description=config.description,
        dialect=config.dialect,
    )


def _trust_of(
    settings: Settings, layer: SettingsLayer, config: HookConfig
) -> tuple[TrustStatus, Approval | None]:
    if not layer.is_project:
        return TrustStatus.TRUSTED, None
    if layer.trust is None:
        problem = f"its project {layer.project} is not trusted"
        closes = settings.untrusted is Untrusted.BLOCK
        return TrustStatus.UNTRUSTED, _failed(problem) if closes else None
    try:
        approval = layer.trust(config)
        changed = approval is not None and approval.check()[0] is not None
    # One hook's files must not keep the others from being registered.
    except Exception as error:  # noqa: BLE001
        problem = f"its approval could not be checked ({type(error).__name__}: {error})"
        return TrustStatus.CHANGED, _failed(problem)
    return (TrustStatus.CHANGED if changed else TrustStatus.TRUSTED), approval


def _failed(problem: str) -> Approval:
    # Hosts without a project need not load what checks its files.
    from hookline.trust.gate import FailedApproval

    return FailedApproval(problem)


def _switched(hook: RegisteredHook, name: str, enabled: bool) -> RegisteredHook:
    if hook.name != name or hook.config.managed:
        return hook
    return structs.replace(hook, enabled=enabled)


def _is_configured(hook: RegisteredHook) -> bool:
    return hook.source is not HookSource.RUNTIME
