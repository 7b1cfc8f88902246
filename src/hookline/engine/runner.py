"""Run a plan: all hooks at once, or one after the other as a chain."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from msgspec import structs

from hookline.errors import EncodingError
from hookline.executors.contract import Executor, HookCall, HookPlan, RegisteredHook
from hookline.executors.exit_table import RunEnd, failed_result
from hookline.protocol.events import TRAITS
from hookline.protocol.results import FailureCause, HookExecutionResult
from hookline.settings.model import HookMode, HookType

from .admission import HookGuard
from .merge import chain_input
from .on_error import enforce


class HookRunner:
    """Runs hooks through the executor of their type."""

    def __init__(
        self, executors: Mapping[HookType, Executor], guard: HookGuard
    ) -> None:
        self._executors = executors
        self._guard = guard

    async def run(self, plan: HookPlan, call: HookCall) -> list[HookExecutionResult]:
        """Run every hook of a plan; results come back in plan order."""
        if len(plan.hooks) == 1:
            return [await self._run_hook(plan.hooks[0], call)]
        if plan.sequential:
            return await self._run_chain(plan, call)
        return await self._run_at_once(plan, call)

    async def close(self) -> None:
        """Close the executors."""
        for executor in self._executors.values():
            await executor.close()

    async def _run_at_once(
        self, plan: HookPlan, call: HookCall
    ) -> list[HookExecutionResult]:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._run_hook(hook, call)) for hook in plan.hooks
            ]
        return [task.result() for task in tasks]

    async def _run_chain(
        self, plan: HookPlan, call: HookCall
    ) -> list[HookExecutionResult]:
        traits = TRAITS[plan.event]
        results = []
        for hook in plan.hooks:
            result = await self._run_hook(hook, call)
            results.append(result)
            output = None if result.observed else result.output
            if output is None:
                continue
            if (output.stops and traits.can_stop) or (
                output.is_blocking and traits.can_block
            ):
                break
            if result.success:
                call = call.with_input(chain_input(call.input, output, traits.chain))
        return results

    async def _run_hook(
        self, hook: RegisteredHook, call: HookCall
    ) -> HookExecutionResult:
        result = await self._guard.watched(hook, call, lambda: self._run(hook, call))
        return _as_observed(enforce(result, hook), hook)

    async def _run(self, hook: RegisteredHook, call: HookCall) -> HookExecutionResult:
        try:
            return await self._executors[hook.config.type].run(hook, call)
        except EncodingError:
            raise  # the guard has not seen the event: not this hook's failure alone
        # Hooks run side by side: what breaks around one of them, be it our own fault,
        # must neither cancel the others nor take a block of theirs away.
        except Exception as error:  # noqa: BLE001
            message = f"could not be run: {type(error).__name__}: {error}"
            end = RunEnd(exit_code=None)
            return failed_result(hook, end, FailureCause.CRASH, message)


def _as_observed(
    result: HookExecutionResult, hook: RegisteredHook
) -> HookExecutionResult:
    if hook.config.mode is not HookMode.OBSERVE:
        return result
    blocks = result.output is not None and result.output.is_blocking
    would_block = blocks and TRAITS[hook.event].can_block
    return structs.replace(result, observed=True, would_block=would_block)
