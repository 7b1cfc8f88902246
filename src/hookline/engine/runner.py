"""Run a plan: all hooks at once, or one after the other as a chain."""

from __future__ import annotations

import asyncio

from hookline.executors.contract import HookCall, HookPlan
from hookline.protocol.events import TRAITS
from hookline.protocol.results import HookExecutionResult

from .admission import CircuitBreaker
from .merge import chain_input
from .run_hook import Executors, run_hook


class HookRunner:
    """Runs hooks with the executor of their type."""

    def __init__(self, executors: Executors, breaker: CircuitBreaker) -> None:
        self._executors = executors
        self._breaker = breaker

    async def run(self, plan: HookPlan, call: HookCall) -> list[HookExecutionResult]:
        """Run every hook of a plan; results come back in plan order."""
        if len(plan.hooks) == 1:
            hook = plan.hooks[0]
            return [await run_hook(hook, call, self._executors, self._breaker)]
        if plan.sequential:
            return await self._run_chain(plan, call)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(run_hook(hook, call, self._executors, self._breaker))
                for hook in plan.hooks
            ]
        return [task.result() for task in tasks]

    async def close(self) -> None:
        """Close the executors."""
        for executor in self._executors.values():
            await executor.close()

    async def _run_chain(
        self, plan: HookPlan, call: HookCall
    ) -> list[HookExecutionResult]:
        traits = TRAITS[plan.event]
        results = []
        for hook in plan.hooks:
            result = await run_hook(hook, call, self._executors, self._breaker)
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
