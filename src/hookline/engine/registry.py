"""The registered hooks of all sources, and which of them are enabled."""

from __future__ import annotations

from collections import defaultdict
from itertools import count

from msgspec import structs

from hookline.errors import UnknownFunctionError, UnknownHookError
from hookline.plan import HookFunction, HookPlan, RegisteredHook
from hookline.protocol.events import HookEventName
from hookline.settings.load import Settings
from hookline.settings.model import (
    Approval,
    HookConfig,
    HookGroup,
    HookSource,
    SettingsLayer,
    TrustStatus,
    Untrusted,
)

PlansByName = dict[str | None, HookPlan | None]

_UNAPPROVED_KEYS = (
    *("type", "name", "command", "function", "when", "policies", "url"),
    *("description", "dialect"),
)
"""What a hook keeps that only closes its event: its name and what people see."""


class HookRegistry:
    """All hooks, in priority order for each event."""

    def __init__(
        self, settings: Settings, previous: HookRegistry | None = None
    ) -> None:
        """Register the hooks of settings.

        One that is also in the ``previous`` registry of the same system keeps its
        serial, so that executors keep what they have of it.
        """
        self.plans: dict[HookEventName, PlansByName] = defaultdict(dict)
        """Made of these hooks by a planner; new with every change."""
        self.serials: count[int] = count(1) if previous is None else previous.serials
        self._switched: dict[str, bool] = {}
        """What the host switched on or off, where the settings say otherwise."""
        self._hooks: dict[HookEventName, tuple[RegisteredHook, ...]] = {}
        serials: dict[str, list[int]] = {}
        for hook in () if previous is None else previous.all_hooks():
            serials.setdefault(hook.identity, []).append(hook.serial)
        for layer in settings.layers:
            for event, groups in settings.groups_of(layer).items():
                hooks = list(self.for_event(event))
                for group in groups:
                    for config in group.hooks:
                        hook = registered_hook(settings, layer, event, group, config)
                        earlier = serials.get(hook.identity) if serials else None
                        serial = earlier.pop(0) if earlier else next(self.serials)
                        hooks.append(structs.replace(hook, serial=serial))
                self._hooks[event] = tuple(hooks)
        self._disabled = {hook.name for hook in self.all_hooks() if not hook.enabled}
        """By the settings."""

    def for_event(self, event: HookEventName) -> tuple[RegisteredHook, ...]:
        """All hooks on one event, highest priority first, disabled ones included."""
        return self._hooks.get(event, ())

    def all_hooks(self) -> list[RegisteredHook]:
        """All hooks, event by event."""
        return [hook for event in HookEventName for hook in self.for_event(event)]

    def set_enabled(self, name: str, enabled: bool) -> None:
        """Switch all hooks of a name on or off; managed ones stay on."""
        names = {hook.name for hook in self.all_hooks()}
        if name not in names:
            raise UnknownHookError(name, names)
        self._switched[name] = enabled
        self._apply_switches()
        if enabled is (name not in self._disabled):
            del self._switched[name]  # settings that change later are obeyed again

    def _apply_switches(self) -> None:
        for event, hooks in self._hooks.items():
            self._hooks[event] = tuple(
                structs.replace(hook, enabled=self._switched[hook.name])
                if hook.name in self._switched and not hook.config.managed
                else hook
                for hook in hooks
            )
        self.plans = defaultdict(dict)

    def add_function(self, hook: RegisteredHook) -> None:
        """Register a function of the host's, after those already registered."""
        hook = structs.replace(hook, serial=hook.serial or next(self.serials))
        hooks = (*self.for_event(hook.event), hook)
        in_order = sorted(hooks, key=lambda hook: hook.source is not HookSource.RUNTIME)
        self._hooks[hook.event] = tuple(in_order)
        self.plans = defaultdict(dict)

    def remove_function(
        self, function: HookFunction, event: HookEventName | None = None
    ) -> None:
        """Remove a function of the host's from one event, or from all."""
        hooks = self.all_hooks() if event is None else self.for_event(event)
        functions = [hook for hook in hooks if hook.function is not None]
        # By value: each look at a method makes another object of it.
        removed = [hook for hook in functions if hook.function == function]
        if not removed:
            name = getattr(function, "__name__", function)
            raise UnknownFunctionError(name, (hook.name for hook in functions))
        for changed in {hook.event for hook in removed}:
            stay = (hook for hook in self.for_event(changed) if hook not in removed)
            self._hooks[changed] = tuple(stay)
        self.plans = defaultdict(dict)

    def take_over(self, previous: HookRegistry, settings: Settings) -> None:
        """Take the functions of the host's and what it has switched on and off."""
        for hook in previous.all_hooks():
            if hook.source is HookSource.RUNTIME:
                options = settings.hook_options(None, hook.config)
                self.add_function(structs.replace(hook, options=options))
        self._switched = dict(previous._switched)
        self._apply_switches()


def registered_hook(
    settings: Settings,
    layer: SettingsLayer,
    event: HookEventName,
    group: HookGroup,
    config: HookConfig,
) -> RegisteredHook:
    """A hook of settings with its effective options, and whether it may run."""
    trust, approval = _trust_of(settings, layer, config)
    options = settings.hook_options(layer, config)
    enabled = not settings.disabled(layer, config)
    closes = trust is TrustStatus.UNTRUSTED and approval is not None
    if closes:  # its event, and does nothing else: no other key is approved
        config = HookConfig(**{key: getattr(config, key) for key in _UNAPPROVED_KEYS})
    return RegisteredHook(
        config=config,
        event=event,
        source=layer.source,
        trust=trust,
        approval=approval,
        options=options,
        matcher=group.matcher,
        sequential=group.sequential and not closes,
        file=layer.file,
        project=layer.project,
        folder=layer.project or settings.folder,
        project_dir=layer.project or settings.project_dir,
        enabled=enabled,
    )


def _trust_of(
    settings: Settings, layer: SettingsLayer, config: HookConfig
) -> tuple[TrustStatus, Approval | None]:
    if not layer.is_project:
        return TrustStatus.TRUSTED, None
    if layer.trust is None:
        problem = f"its project {layer.project} is not trusted"
        closes = settings.untrusted is Untrusted.BLOCK
        return TrustStatus.UNTRUSTED, Approval(problem) if closes else None
    try:
        approval = layer.trust(config)
        is_changed = approval is not None and approval.check()[0] is not None
    # One hook's files must not keep the others from being registered.
    except Exception as error:  # noqa: BLE001
        problem = f"its approval could not be checked ({type(error).__name__}: {error})"
        return TrustStatus.CHANGED, Approval(problem)
    return (TrustStatus.CHANGED if is_changed else TrustStatus.TRUSTED), approval
