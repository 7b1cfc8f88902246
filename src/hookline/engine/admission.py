"""Whether a planned hook may run now, and what is remembered of how it ran.

A hook whose trusted files have changed does not run, one that keeps timing out is
skipped for a while, and hooks that fire hooks are cut off at a depth. All of these
count as failures of the hook, so that its policy decides what they mean. Managed hooks
are never held back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hookline.executors.contract import HookCall, RegisteredHook
from hookline.executors.exit_table import RunEnd, failed_result
from hookline.log import logger
from hookline.protocol.results import FailureCause, HookExecutionResult

from .breaker import TimeoutMemory

Run = Callable[[], Awaitable[HookExecutionResult]]


class HookGuard:
    """Stands before the hooks of one hook system."""

    def __init__(self, memory: TimeoutMemory | None = None) -> None:
        self._memory = TimeoutMemory() if memory is None else memory

    async def watched(
        self, hook: RegisteredHook, call: HookCall, run: Run
    ) -> HookExecutionResult:
        """Run a hook if it may run, and remember how it went."""
        approval = hook.approval
        if approval is None:
            return await self._attempt(hook, call, run)
        problem, stamp = approval.check()
        if problem is not None:
            error = f"{problem}: a person has to look and run 'hookline trust'"
            return _refused(hook, FailureCause.CHANGED, error)
        result = await self._attempt(hook, call, run)
        if approval.unchanged_since(stamp) or _blocks(result):
            return result
        # Which bytes ran cannot be told: they may have been swapped and put back.
        return _refused(hook, FailureCause.CHANGED, "its files moved while it ran")

    def refusal(
        self, hook: RegisteredHook, call: HookCall
    ) -> HookExecutionResult | None:
        """Why the hook must not run now, as its result; None where it may."""
        if hook.config.managed:
            return None
        if call.depth >= hook.options.max_depth:
            return _refused(
                hook,
                FailureCause.SPAWN,
                f"skipped: hooks are nested deeper than maxDepth "
                f"{hook.options.max_depth}",
            )
        if count := self._memory.tripped(hook):
            return _refused(
                hook,
                FailureCause.TIMEOUT,
                f"skipped: it timed out {count} times in a row",
            )
        return None

    async def _attempt(
        self, hook: RegisteredHook, call: HookCall, run: Run
    ) -> HookExecutionResult:
        refusal = self.refusal(hook, call)
        if refusal is not None:
            return refusal
        result = await run()
        self.note(hook, result)
        return result

    def note(self, hook: RegisteredHook, result: HookExecutionResult) -> None:
        """Remember how a run ended."""
        breaker = hook.options.breaker
        if breaker is None or hook.config.managed:
            return
        if result.cause is not FailureCause.TIMEOUT:
            self._memory.clear(hook)
            return
        timeouts = self._memory.add(hook, breaker)
        if timeouts.until:
            logger.warning(
                "hook %r timed out %d times in a row: skipped for %g s",
                hook.name,
                timeouts.count,
                breaker.cooldown_ms / 1000,
            )

    def is_tripped(self, hook: RegisteredHook) -> bool:
        """Whether the hook is being skipped for its timeouts."""
        return bool(self._memory.tripped(hook))


def _blocks(result: HookExecutionResult) -> bool:
    return result.output is not None and result.output.is_blocking


def _refused(
    hook: RegisteredHook, cause: FailureCause, error: str
) -> HookExecutionResult:
    return failed_result(hook, RunEnd(exit_code=None), cause, error)
