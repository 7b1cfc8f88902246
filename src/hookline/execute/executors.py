"""The executors of one hook system: made when a hook needs them, kept until its end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hookline.config import Config
from hookline.execute.command import CommandExecutor
from hookline.execute.python import PythonExecutor
from hookline.plan import (
    Executor,
    HookCall,
    RegisteredHook,
    current_depth,
)
from hookline.protocol.events import HookEventName
from hookline.settings.model import HookType

from .runtime import Runtimes

if TYPE_CHECKING:
    from hookline.execute.standby import StandbyExecutor
    from hookline.execute.worker import WorkerExecutor


class HookExecutors:
    """Runs hooks by their type, within one limit on processes."""

    def __init__(self, config: Config) -> None:
        self._config = config
        limit = config.settings.global_options.max_processes
        self.runtimes = Runtimes(limit)
        self.standby: StandbyExecutor | None = None
        self.workers: WorkerExecutor | None = None
        self.by_type: dict[HookType, Executor] = {
            HookType.COMMAND: CommandExecutor(self.runtimes),
            HookType.PYTHON: PythonExecutor(),
        }

    def provide_for(self, hooks: list[RegisteredHook]) -> None:
        """Make the executors that hooks need and that are not there yet.

        Most hosts need few of them, and need not load the modules of the others.
        """
        missing = {hook.config.type for hook in hooks} - self.by_type.keys()
        ahead = not self._config.one_shot and any(hook.config.standby for hook in hooks)
        if self.standby is None and ahead:
            from hookline.execute.standby import StandbyExecutor

            self.standby = StandbyExecutor(self.runtimes)
            self.by_type[HookType.COMMAND] = self.standby
        if HookType.WORKER in missing:
            from hookline.execute.worker import WorkerExecutor

            self.workers = WorkerExecutor(self.runtimes)
            self.by_type[HookType.WORKER] = self.workers
        if HookType.RULE in missing:
            from hookline.execute.rule import RuleExecutor

            self.by_type[HookType.RULE] = RuleExecutor()
        if HookType.CEDAR in missing:
            from hookline.execute.cedar import CedarExecutor

            self.by_type[HookType.CEDAR] = CedarExecutor()
        if HookType.HTTP in missing:
            from hookline.execute.http import HttpExecutor

            self.by_type[HookType.HTTP] = HttpExecutor(self.runtimes)

    def start_ahead(self, hooks: Iterable[RegisteredHook], *, workers: bool) -> None:
        """Start what waits for events: standby, and the first workers if asked for."""
        ahead: dict[HookType, StandbyExecutor | WorkerExecutor] = {}
        if self.standby is not None:
            ahead[HookType.COMMAND] = self.standby
        if self.workers is not None and workers:
            ahead[HookType.WORKER] = self.workers
        if ahead:
            config = self._config
            fields = {"cwd": config.working_dir, "session_id": config.session_id}
            call = HookCall(HookEventName.SessionStart, fields, current_depth())
            for hook in hooks:
                if hook.config.type in ahead and hook.may_start:
                    ahead[hook.config.type].start(hook, call)

    def retain(self, hooks: Iterable[RegisteredHook]) -> None:
        """Release what is kept of all other hooks, from any thread."""
        enabled = [hook for hook in hooks if hook.enabled]
        for executor in tuple(self.by_type.values()):
            executor.retain(enabled)

    async def close(self) -> None:
        """Release everything."""
        for executor in tuple(self.by_type.values()):
            await executor.close()
        await self.runtimes.close()
