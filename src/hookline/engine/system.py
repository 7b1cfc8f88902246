"""The lifetime of the hook system: its parts are built and wired once.

``initialize()`` is idempotent and safe to call from several tasks and threads at once;
``dispose()`` lets calls in flight finish and accepts nothing new from the bus.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from hookline.config import Config
from hookline.errors import HookSystemNotInitializedError, JournalError
from hookline.executors.command import CommandExecutor
from hookline.executors.contract import (
    Executor,
    HookCall,
    HookFunction,
    RegisteredHook,
    current_depth,
)
from hookline.executors.python import PythonExecutor
from hookline.log import DebugLogger, LoggingDebugLogger, flush_log, logger
from hookline.processes.process import ProcessSlots
from hookline.processes.watcher import watcher
from hookline.protocol.events import HookEventName
from hookline.protocol.results import ProcessedHookResult
from hookline.settings.load import Settings
from hookline.settings.model import (
    DEFAULT_TIMEOUT_MS,
    HookConfig,
    HookSource,
    HookType,
    TrustStatus,
)

from .admission import CircuitBreaker
from .background import BackgroundHooks
from .handler import EventPipeline, HookEventHandler, LateReporter, Reporter
from .on_error import BrokenSystem
from .planner import HookPlanner
from .registry import HookRegistry
from .runner import HookRunner

if TYPE_CHECKING:
    from hookline.bus.contracts import HookBus
    from hookline.executors.standby import StandbyExecutor
    from hookline.executors.worker import WorkerExecutor
    from hookline.journal.record import JournalRecorder
    from hookline.telemetry.choice import TelemetryChoice
    from hookline.telemetry.contract import Telemetry

F = TypeVar("F", bound=HookFunction)
_starting = threading.RLock()


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


class HookSystem:
    """Owns registry, planner, runner and handler of one Config."""

    def __init__(
        self,
        config: Config,
        message_bus: HookBus | None = None,
        debug_logger: DebugLogger | None = None,
        *,
        start_workers: bool = False,
        telemetry: TelemetryChoice = None,
    ) -> None:
        """Build the parts; ``initialize()`` starts what ``start_workers`` asks for.

        ``telemetry="otel"`` makes spans and metrics, ``False`` makes none; without
        either it is what the settings say.
        """
        config.refuse_second_system()
        self._config = config
        self._bus = message_bus
        self._debug_logger = debug_logger or LoggingDebugLogger()
        self._registry, self._broken = _build_registry(config.settings)
        options = config.settings.global_options
        self._slots = ProcessSlots(options.max_processes)
        self._standby: StandbyExecutor | None = None
        self._workers: WorkerExecutor | None = None
        self._executors: dict[HookType, Executor] = {
            HookType.COMMAND: CommandExecutor(self._slots),
            HookType.PYTHON: PythonExecutor(),
        }
        self._add_executors(self._registry)
        self._breaker = CircuitBreaker(config.working_dir)
        self._background = BackgroundHooks(self._executors, self._breaker)
        self._start_workers = start_workers
        self._telemetry = telemetry
        self._build_telemetry(config.settings)  # raises for what cannot be had
        self._handler: HookEventHandler | None = None
        self._disposing: HookEventHandler | None = None
        self._subscribing: asyncio.Future[None] | None = None
        self._journal: JournalRecorder | None = None
        self._record = options.journal
        config.adopt(self)

    @property
    def status(self) -> HookSystemStatus:
        """Whether it is initialised, and how many hooks there are."""
        total = len(self._registry.all_hooks())
        return HookSystemStatus(self._handler is not None, total)

    def health(self) -> HookSystemHealth:
        """What monitoring wants to know; call it on the event loop of the events."""
        hooks = self._registry.all_hooks()
        workers = self._workers
        return HookSystemHealth(
            skipped=tuple(hook for hook in hooks if self._breaker.open_for(hook)),
            processes=0 if workers is None else workers.processes(),
            lost=() if workers is None else tuple(workers.lost_hooks()),
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
            raise HookSystemNotInitializedError("registry")
        return self._registry

    async def initialize(self) -> None:
        """Build what is missing; concurrent calls share one run.

        Raises if the bus refuses the subscription; then nothing is initialised.
        """
        if self._handler is None:
            with _starting:
                if self._handler is None:
                    self._start()
        if self._subscribing is not None:
            await self._finish_subscribing(self._subscribing)

    def _start(self) -> None:
        settings = self._config.settings
        for problem in (*settings.errors, *settings.warnings):
            logger.warning("%s", problem)
        self._journal = _start_journal(self._record, self._config)
        handler = HookEventHandler(self._pipeline(settings))
        if self._bus is not None:
            try:
                handler.listen(self._bus)
            except BaseException:
                if self._journal is not None:
                    self._journal.close()
                raise
            ready = getattr(self._bus, "ready", None)
            if ready is not None:
                self._subscribing = asyncio.ensure_future(ready())
        self._handler = handler
        if self._start_workers and self._workers is not None:
            self._workers.start(self._ready(HookType.WORKER), self._config.working_dir)
        if self._standby is not None:
            fields = {"cwd": self._config.working_dir}
            fields["session_id"] = self._config.session_id
            call = HookCall(HookEventName.SessionStart, fields, current_depth())
            self._standby.start(self._ready(HookType.COMMAND), call)

    def _pipeline(self, settings: Settings) -> EventPipeline:
        reporter = Reporter(self._debug_logger)
        late = LateReporter(reporter, self._journal)
        runner = HookRunner(self._executors, self._breaker, self._background, late)
        return EventPipeline(
            config=self._config,
            registry=self._registry,
            planner=HookPlanner(self._registry),
            runner=runner,
            reporter=reporter,
            recorder=self._journal,
            broken=self._broken,
            tool_selection=settings.global_options.tool_selection,
            telemetry=self._build_telemetry(settings),
        )

    def _build_telemetry(self, settings: Settings) -> Telemetry | None:
        options = settings.global_options.telemetry
        if self._telemetry is None and options is None:
            return None
        # Most hosts have no telemetry and need not load its modules.
        from hookline.telemetry.choice import choose_telemetry

        return choose_telemetry(self._telemetry, options)

    def _add_executors(self, registry: HookRegistry) -> None:
        """Make the executors that hooks need and that are not there yet.

        Most hosts need few of them, and need not load the modules of the others.
        """
        hooks = registry.all_hooks()
        missing = {hook.config.type for hook in hooks} - self._executors.keys()
        ahead = not self._config.one_shot and any(hook.config.standby for hook in hooks)
        if self._standby is None and ahead:
            from hookline.executors.standby import StandbyExecutor

            self._standby = StandbyExecutor(self._slots)
            self._executors[HookType.COMMAND] = self._standby
        if HookType.WORKER in missing:
            from hookline.executors.worker import WorkerExecutor

            self._workers = WorkerExecutor(self._slots)
            self._executors[HookType.WORKER] = self._workers
        if HookType.RULE in missing:
            from hookline.executors.rule import RuleExecutor

            self._executors[HookType.RULE] = RuleExecutor()
        if HookType.CEDAR in missing:
            from hookline.executors.cedar import CedarExecutor

            self._executors[HookType.CEDAR] = CedarExecutor()
        if HookType.HTTP in missing:
            from hookline.executors.http import HttpExecutor

            self._executors[HookType.HTTP] = HttpExecutor()

    def _ready(self, of: HookType) -> Iterator[RegisteredHook]:
        """The hooks of a type that may run as they are."""
        for hook in self._registry.all_hooks():
            if hook.config.type is of and hook.enabled and _is_trusted(hook):
                yield hook

    async def _finish_subscribing(self, subscribing: asyncio.Future[None]) -> None:
        try:
            await asyncio.shield(subscribing)
        except Exception:
            if self._subscribing is subscribing:
                self._subscribing = None
                await self.dispose()
            raise
        if self._subscribing is subscribing:
            self._subscribing = None

    async def dispose(self, *, background_s: float | None = None) -> None:
        """Release everything; the system may be initialised again.

        Hooks that nobody waits for have their timeouts to finish, or this many seconds.
        If it is cancelled, calling it again finishes the work.
        """
        if self._handler is not None:
            self._disposing, self._handler = self._handler, None
        if self._disposing is None:
            return
        await self._disposing.dispose()
        await self._background.finish(background_s)
        for executor in tuple(self._executors.values()):
            await executor.close()
        watcher.stop()
        if self._journal is not None:
            # Waits for the disk, which must not hold up the event loop.
            await asyncio.to_thread(self._journal.close)
        await flush_log(self._debug_logger)
        self._disposing = None

    def fire_sync(
        self, event_name: HookEventName | str, event_input: Mapping[str, Any]
    ) -> ProcessedHookResult:
        """Fire from plain code: any thread, with or without a running event loop."""
        from .background_loop import run_sync

        return run_sync(self._config, self._fire(event_name, event_input))

    async def _fire(
        self, event_name: HookEventName | str, event_input: Mapping[str, Any]
    ) -> ProcessedHookResult:
        await self.initialize()
        return await self.event_handler.fire(event_name, event_input)

    def record_to(self, path: str | None = None) -> None:
        """Record events from the next ``initialize()`` on, whatever settings say.

        Without a path it is the one in the settings, or the default one.
        """
        self._record = path or self._record or True

    def on(
        self,
        event: HookEventName | str,
        matcher: str | None = None,
        *,
        name: str | None = None,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
        sequential: bool = False,
        recheck: bool = True,
        condition: str | None = None,
        asynchronous: bool = False,
    ) -> Callable[[F], F]:
        """Register the decorated function as an in-process hook.

        ``recheck=False``: do not call it again where other hooks changed the input;
        ``condition`` and ``asynchronous`` are ``if`` and ``async`` in settings.
        """
        known = HookEventName.of(event)

        def register(function: F) -> F:
            found = name or getattr(function, "__name__", None) or repr(function)
            config = HookConfig(
                type=HookType.PYTHON,
                name=found,
                timeout_ms=timeout_ms,
                recheck=recheck,
                condition=condition,
                is_async=asynchronous,
            )
            hook = RegisteredHook(
                config=config,
                event=known,
                source=HookSource.RUNTIME,
                options=self._config.settings.hook_options(None, config),
                matcher=matcher,
                sequential=sequential,
                function=function,
            )
            self._registry.add_function(hook)
            return function

        return register

    def off(self, function: HookFunction) -> None:
        """Remove a function that was registered with ``on``, from all its events."""
        self._registry.remove_function(function)

    def set_hook_enabled(self, name: str, enabled: bool) -> None:
        """Switch all hooks of a name on or off (DELTA-HSYS-002)."""
        self._registry.set_enabled(name, enabled)
        if self._standby is not None:
            self._standby.retain(filter(_is_enabled, self._registry.all_hooks()))

    def get_all_hooks(self) -> list[RegisteredHook]:
        """All hooks, including disabled ones (DELTA-HSYS-002)."""
        return self._registry.all_hooks()

    async def __aenter__(self) -> HookSystem:
        await self.initialize()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.dispose()


def _build_registry(settings: Settings) -> tuple[HookRegistry, BrokenSystem | None]:
    """Register all hooks; if that fails, none, and every event fails by policy."""
    try:
        return HookRegistry(settings), None
    # A host must neither crash nor go on as if there were no hooks.
    except Exception as error:  # noqa: BLE001
        logger.error("the hooks could not be registered: %r", error)
        return HookRegistry(Settings()), BrokenSystem(error, settings)


def _is_enabled(hook: RegisteredHook) -> bool:
    return hook.enabled


def _is_trusted(hook: RegisteredHook) -> bool:
    if hook.trust is not TrustStatus.TRUSTED:
        return False
    return hook.approval is None or hook.approval.check()[0] is None


def _start_journal(option: bool | str, config: Config) -> JournalRecorder | None:
    if not option:
        return None
    from hookline.journal.record import JournalRecorder
    from hookline.journal.store import recording_path

    try:
        folder = config.settings.project_dir or config.working_dir
        path = recording_path(option, folder)
    except JournalError as error:
        logger.warning("%s", error)
        return None
    if path is None:
        return None
    journal = JournalRecorder(path, translator=config.translator)
    journal.start()
    return journal
