"""The lifetime of the hook system: its parts are built and wired once.

``initialize()`` is idempotent and safe to call from several tasks and threads at once;
``dispose()`` lets calls in flight finish and accepts nothing new from the bus.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from hookline._internal.fork_safe import ForkSafeLock
from hookline._internal.log import AnyLogger, DebugLogger, Guard, logger
from hookline.config import Config
from hookline.errors import (
    HookRegistryNotInitializedError,
    HookSystemNotInitializedError,
    ReloadError,
)
from hookline.execute.executors import HookExecutors
from hookline.execute.watchdog import watcher
from hookline.plan import RegisteredHook
from hookline.protocol.events import HookEventName
from hookline.protocol.results import ProcessedHookResult
from hookline.settings.load import Settings
from hookline.settings.model import DEFAULT_TIMEOUT_MS

from .breaker import CircuitBreaker
from .handler import EventPipeline, HookEventHandler
from .observers import Observers
from .planner import HookPlanner
from .registry import HookRegistry
from .runner import HookRunner
from .sync import run_sync

if TYPE_CHECKING:
    from hookline.bus.contracts import HookBus
    from hookline.settings.watch import Reloaded, SettingsWatch
    from hookline.telemetry.choice import TelemetryChoice

    from .registration import Cause, EventName, HookCallable, Verdict

_reload_log = logging.getLogger("hookline.reload")


class HookSystemStatus(Struct, frozen=True):
    """Whether a hook system is initialised, and how many hooks it has."""

    initialized: bool
    total_hooks: int


class HookSystemHealth(Struct, frozen=True):
    """What can be wrong with a hook system while it runs."""

    skipped: tuple[RegisteredHook, ...]
    """Hooks that are skipped for now because they keep timing out."""
    processes: int
    """Processes of worker hooks that live."""
    lost: tuple[str, ...]
    """Worker hooks whose process is gone and was not replaced yet."""
    settings_loaded_at: float
    """When those in use were loaded, in seconds since the epoch."""
    reload_failed: bool
    """Whether changed settings could not be used."""


class HookSystem:
    """The hooks of one config, which has one such system; use it as ``async with``."""

    def __init__(
        self,
        config: Config,
        message_bus: HookBus | None = None,
        debug_logger: DebugLogger | AnyLogger | None = None,
        *,
        start_workers: bool = False,
        telemetry: TelemetryChoice = None,
        reload: bool = False,
    ) -> None:
        """Build the parts; ``initialize()``, or ``async with``, starts them.

        Requests on ``message_bus`` are answered; ``debug_logger`` gets what happens in
        detail. ``start_workers`` starts the workers before their first event.
        ``telemetry="otel"`` makes spans and metrics, ``False`` makes none; without
        either it is what the settings say. ``reload``: each event looks whether the
        settings have changed, and if so, is answered by the new ones.
        """
        if not hasattr(config, "refuse_second_system"):
            hint = "write HookSystem(config), with config = Config.load()"
            raise TypeError(f"expected a Config, got {type(config).__name__}: {hint}")
        config.refuse_second_system()
        self._config = config
        self._bus = _checked_bus(message_bus)
        self._observers = Observers(config, debug_logger, telemetry)
        self._registry, self._broken = _build_registry(config.settings)
        self._executors = HookExecutors(config)
        self._executors.provide_for(self._registry.all_hooks())
        self._breaker = CircuitBreaker(config.working_dir)
        self._runner = HookRunner(self._executors.by_type, self._breaker)
        self._changing = ForkSafeLock()
        """Held while it starts, or hooks are added, removed, switched or reloaded."""
        self._start_workers = start_workers
        self._settings_loaded_at = time.time()
        self._handler: HookEventHandler | None = None
        self._disposing: HookEventHandler | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._follows = reload
        self._watch: SettingsWatch | None = None
        if reload:
            self._watch_settings()
        self.require_hooks = False
        """Whether a reload that leaves no hook is refused."""
        config.adopt(self)

    @property
    def status(self) -> HookSystemStatus:
        """Whether it is initialised, and how many hooks there are."""
        total = len(self._registry.all_hooks())
        return HookSystemStatus(self._handler is not None, total)

    @property
    def active_hooks(self) -> int:
        """How many hooks can be asked: enabled ones, without those of strangers."""
        return _count_active(self._registry, self._config.settings)

    def health(self) -> HookSystemHealth:
        """What monitoring wants to know; call it on the event loop of the events."""
        hooks = self._registry.all_hooks()
        executor, last = self._executors.workers, self.last_reload
        workers = executor.all_workers() if executor is not None else []
        return HookSystemHealth(
            skipped=tuple(hook for hook in hooks if self._breaker.skipped(hook)),
            processes=sum(len(each.processes) for each in workers),
            lost=tuple(each.hook.name for each in workers if each.is_lost),
            settings_loaded_at=self._settings_loaded_at,
            reload_failed=last is not None and bool(last.problems),
        )

    @property
    def event_handler(self) -> HookEventHandler:
        """What events are fired on."""
        if self._handler is None:
            raise HookSystemNotInitializedError("event_handler")
        return self._handler

    @property
    def registry(self) -> HookRegistry:
        """All registered hooks."""
        if self._handler is None:
            raise HookRegistryNotInitializedError("registry")
        return self._registry

    async def initialize(self) -> None:
        """Build what is missing; concurrent calls share one run.

        A bus that refuses the subscription is a warning, and asked again later.
        """
        if self._handler is None:
            with self._changing.held:
                if self._handler is None:
                    self._start()
        # Another task may have disposed of the handler meanwhile.
        if self._bus is not None and self._handler is not None:
            await self._handler.subscribed()

    def _start(self) -> None:
        settings = self._config.settings
        for problem in (*settings.errors, *settings.warnings):
            logger.warning("%s", problem)
        pipeline = self._pipeline(settings, self._registry, self._broken)
        handler = HookEventHandler(pipeline)
        if self._follows and self._watch is not None:
            handler.refresh = self._watch.refresh
        self._handler, self._loop = handler, asyncio.get_running_loop()
        if self._bus is not None:
            handler.listen(self._bus)
        else:  # a bus may have to be asked again
            self._config.ready_handler = handler
        self._start_ahead()

    def _start_ahead(self) -> None:
        if self._handler is not None:
            hooks = self._registry.all_hooks()
            start = partial(self._executors.start_ahead, workers=self._start_workers)
            Guard("starting hooks ahead of events")(start, hooks)

    def _pipeline(
        self,
        settings: Settings,
        registry: HookRegistry,
        broken: Exception | None = None,
    ) -> EventPipeline:
        # Settings that switch hooks off after a reload: as no hook system at a start.
        is_off = self._watch is not None and not settings.hooks_enabled
        self._observers.follow(settings, recorded=not is_off)
        planned = HookRegistry(Settings()) if is_off else registry
        return EventPipeline(
            settings=settings,
            registry=planned,
            planner=HookPlanner(planned),
            runner=self._runner,
            observers=self._observers,
            tool_selection=settings.global_options.tool_selection,
            broken=broken,
        )

    @property
    def last_reload(self) -> Reloaded | None:
        """Outcome of the last reload; None if there was none."""
        return None if self._watch is None else self._watch.last

    def settings_changed(self) -> bool:
        """Whether there are settings to reload; costs a few calls of ``stat``."""
        return self._watch_settings().has_changed()

    async def reload(self) -> Reloaded:
        """Load the settings again, and use them from the next event on.

        If they have errors that the ones in use do not have, those stay; if only a
        project's have, that project's. Raises ``HooklineError`` for settings that were
        not read from files.
        """
        return await self._watch_settings().reload()

    def _watch_settings(self) -> SettingsWatch:
        with self._changing.held:
            if self._watch is None:
                # Most hosts load their settings once and need not load this module.
                from hookline.settings.watch import SettingsWatch

                config = self._config
                watch = config.watch or SettingsWatch(config.loaded, config.working_dir)
                watch.follow(self._use, self._tell)
                self._watch = watch
            return self._watch

    def _use(self, loaded: Settings) -> bool:
        """Put settings in place of those in use, in a thread of its own."""
        config = self._config
        settings = config.prepared(loaded)
        registry = HookRegistry(settings, self._registry)
        self._executors.provide_for(registry.all_hooks())
        files = {layer.file for layer in loaded.layers}
        lost = [
            f"{layer.file} is gone, and its hooks with it: {count}"
            for layer in config.loaded.layers
            # A project's need its approval to go.
            if layer.file not in files and not layer.is_project
            if (count := sum(1 for _ in layer.hooks()))
        ]
        with self._changing.held:
            previous = self._registry
            registry.take_over(previous, settings)
            is_emptied = self.active_hooks and not _count_active(registry, settings)
            if is_emptied and self.require_hooks:
                raise ReloadError(("no hook would be left, and hooks are required",))
            if self._handler is not None:
                for problem in lost:  # the new settings may have no journal
                    self._handler.note("", problem, {})
                self._handler.pipeline = self._pipeline(settings, registry)
            changed = loaded != config.loaded or _state(registry) != _state(previous)
            before, config.settings, config.loaded = config.settings, settings, loaded
            self._registry, self._broken = registry, None
            if changed:
                self._settings_loaded_at = time.time()
            self._executors.runtimes.resize(settings.global_options.max_processes)
            self._executors.retain(registry.all_hooks())
        if is_emptied:
            _reload_log.warning("no hooks are left, so every event is allowed")
        old_problems = {*map(str, before.errors), *before.warnings}
        for problem in (*lost, *map(str, settings.errors), *settings.warnings):
            if problem not in old_problems:
                logger.warning("%s", problem)
        if self._loop is not None:
            with suppress(RuntimeError):  # it is closed
                self._loop.call_soon_threadsafe(self._start_ahead)
        return changed

    def _tell(self, outcome: Reloaded) -> None:
        """Log the outcome of a reload."""
        if outcome.problems:
            message = f"changed settings are not used: {'; '.join(outcome.problems)}"
            about: dict[str, Any] = {"settings": {"reloaded": False}}
            _reload_log.error("%s", message, extra=about)
            if self._handler is not None:
                details = {"problems": list(outcome.problems)}
                self._handler.note("", message, details)
        if outcome.changed:
            count = self.status.total_hooks
            about = {"settings": {"reloaded": True, "hooks": count}}
            ending = "" if count == 1 else "s"
            _reload_log.info("settings reloaded: %d hook%s", count, ending, extra=about)

    async def dispose(self, *, background_s: float | None = None) -> None:
        """Release everything; the system may be initialised again.

        Hooks that nobody waits for have their timeouts to finish, or ``background_s``,
        and then a journal that cannot be written is soon given up too.
        If it is cancelled, calling it again finishes the work.
        """
        if self._handler is not None:
            self._disposing, self._handler = self._handler, None
            self._config.ready_handler = None
        if self._disposing is None:
            return
        await self._disposing.dispose()
        if self._watch is not None:
            await self._watch.finished()
        await self._runner.finish(background_s)
        await self._executors.close()
        watcher.stop()
        await self._observers.close(soon=background_s is not None)
        self._disposing = None

    def fire_sync(
        self, event_name: HookEventName | str, event_input: Mapping[str, Any]
    ) -> ProcessedHookResult:
        """Fire an event by its name, with a mapping as its input, from plain code.

        From any thread, with or without a running event loop.
        """
        handler = None if self._bus is not None else self._handler
        if handler is not None:
            idle = handler.answer_if_idle(event_name, event_input)
            if idle is not None:
                return idle

        async def fire() -> ProcessedHookResult:
            await self.initialize()
            return await self.event_handler.fire(event_name, event_input)

        return run_sync(self._config, fire())

    def record_to(self, path: str | os.PathLike[str] | None = None) -> None:
        """Record events from the next ``initialize()`` on, whatever settings say.

        Without a path it is the one in the settings, or the default one.
        """
        recording = os.fspath(path) if path else self._observers.recording or True
        self._observers.recording = recording

    def on(
        self,
        event: HookEventName | EventName,
        matcher: str | None = None,
        *,
        name: str | None = None,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
        on_error: Verdict | Mapping[Cause, Verdict] | None = None,
        mode: Literal["enforce", "observe"] = "enforce",
        sequential: bool = False,
        recheck: bool = True,
        condition: str | None = None,
        asynchronous: bool = False,
    ) -> Callable[[HookCallable], HookCallable]:
        """Register the decorated function as an in-process hook.

        The options are those of settings: ``timeout_ms`` is ``timeout``, ``on_error``
        is ``onError``, ``condition`` is ``if`` and ``asynchronous`` is ``async``;
        ``name``, ``mode``, ``recheck``, ``matcher`` and ``sequential`` have the same
        name there. A wrong one raises ``InvalidHookError``, an unknown ``event``
        ``UnknownEventError``.
        """
        from .registration import Registration

        registration = Registration(
            event,
            matcher,
            sequential,
            name=name,
            timeout_ms=timeout_ms,
            on_error=on_error,
            mode=mode,
            recheck=recheck,
            condition=condition,
            asynchronous=asynchronous,
        )

        def register(function: HookCallable) -> HookCallable:
            with self._changing.held:
                settings = self._config.settings
                self._registry.add_function(registration.hook_of(function, settings))
            return function

        return register

    def off(
        self, function: Callable[..., Any], event: HookEventName | str | None = None
    ) -> None:
        """Remove a function that was registered with ``on``, or only from one event.

        Events in flight finish with it. Raises ``UnknownHookError`` if it is not
        registered.
        """
        event_name = None if event is None else HookEventName.of(event)
        with self._changing.held:
            self._registry.remove_function(function, event_name)

    def set_hook_enabled(self, name: str, enabled: bool) -> None:
        """Switch all hooks of a name on or off."""
        with self._changing.held:
            self._registry.set_enabled(name, enabled)
            self._executors.retain(self._registry.all_hooks())

    def get_all_hooks(self) -> list[RegisteredHook]:
        """All hooks, including disabled ones."""
        return self._registry.all_hooks()

    async def __aenter__(self) -> HookSystem:
        await self.initialize()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.dispose()


def _state(registry: HookRegistry) -> list[object]:
    hooks = registry.all_hooks()
    return [(hook.serial, hook.enabled, hook.trust) for hook in hooks]


def _count_active(registry: HookRegistry, settings: Settings) -> int:
    if not settings.hooks_enabled:
        return 0
    return sum(hook.is_active for hook in registry.all_hooks())


def _checked_bus(bus: Any) -> HookBus | None:
    kinds = (("subscribe", "publish"), ("serve", "request", "settled"))
    is_bus = any(
        all(callable(getattr(bus, method, None)) for method in methods)
        for methods in kinds
    )
    if isinstance(bus, type) or not (bus is None or is_bus):
        expected = "expected an object with subscribe() and publish()"
        raise TypeError(f"message_bus: {expected}, got {bus!r:.80}")
    return bus  # type: ignore[no-any-return] # just checked


def _build_registry(settings: Settings) -> tuple[HookRegistry, Exception | None]:
    """Register all hooks; if that fails, none, and every event fails by policy."""
    try:
        return HookRegistry(settings), None
    # A host must neither crash nor go on as if there were no hooks.
    except Exception as error:  # noqa: BLE001
        logger.error("the hooks could not be registered: %r", error)
        return HookRegistry(Settings()), error
