"""Plugin hooks: accepted for compatibility, and failing open with a clear error."""

from __future__ import annotations

from hookline.executors.contract import RegisteredHook
from hookline.protocol.results import FailureCause, HookExecutionResult

from .contract import HookCall
from .exit_table import RunEnd, failed_result


class PluginExecutor:
    """Says what to use instead."""

    async def run(self, hook: RegisteredHook, call: HookCall) -> HookExecutionResult:
        """Fail: there are no plugins to run."""
        error = (
            f'hooks of "type": "plugin" cannot run on {call.event.value}: '
            'use "command", "worker" or "python"'
        )
        return failed_result(hook, RunEnd(exit_code=None), FailureCause.SPAWN, error)

    async def close(self) -> None:
        """Nothing is kept."""
