"""Whether a planned hook may run now, and what is remembered of how it ran.

A hook that keeps timing out is skipped for a while, and hooks that fire hooks are cut
off at a depth. Both count as failures of the hook, so that its policy decides what they
mean. Managed hooks are never held back.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from .executors.contract import HookCall
from .executors.reading import RunEnd, failed_result
from .log import logger
from .registry import RegisteredHook
from .results import FailureCause, HookExecutionResult


class HookGuard:
    """Keeps the breaker's counts for one hook system."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._timeouts: dict[int, int] = {}
        self._open_until: dict[int, float] = {}

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
        if self.is_tripped(hook):
            return _refused(
                hook,
                FailureCause.TIMEOUT,
                f"skipped: it timed out {self._timeouts[hook.serial]} times in a row",
            )
        return None

    def note(self, hook: RegisteredHook, result: HookExecutionResult) -> None:
        """Remember how a run ended."""
        breaker = hook.options.breaker
        if breaker is None or hook.config.managed:
            return
        if result.cause is not FailureCause.TIMEOUT:
            self._timeouts.pop(hook.serial, None)
            return
        count = self._timeouts.get(hook.serial, 0) + 1
        self._timeouts[hook.serial] = count
        if count >= breaker.timeouts:
            self._open_until[hook.serial] = self._clock() + breaker.cooldown_ms / 1000
            logger.warning(
                "hook %r timed out %d times in a row: skipped for %g s",
                hook.name,
                count,
                breaker.cooldown_ms / 1000,
            )

    def is_tripped(self, hook: RegisteredHook) -> bool:
        """Whether the hook is being skipped for its timeouts."""
        until = self._open_until.get(hook.serial)
        if until is None:
            return False
        if self._clock() < until:
            return True
        del self._open_until[hook.serial]
        return False


def _refused(
    hook: RegisteredHook, cause: FailureCause, error: str
) -> HookExecutionResult:
    return failed_result(hook, RunEnd(exit_code=None), cause, error)
