"""May a planned hook run now? Trust, depth, and the breaker for repeated timeouts.

A refusal is a failure of the hook, so its policy decides what it means. Managed hooks
are refused for nothing but changed files.

The breaker remembers timeouts across processes, because ``hookline fire`` is a process
for each event: one small private file per project, written only when a hook times out
or recovers. If it cannot be kept, it counts for this process alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import msgspec
from msgspec import Struct

from hookline.errors import StateFileError
from hookline.executors.contract import HookCall, RegisteredHook
from hookline.executors.exit_table import RunEnd, failed_result
from hookline.log import logger
from hookline.protocol.results import FailureCause, HookExecutionResult
from hookline.settings.locations import (
    file_name,
    locked,
    read_private,
    state_dir,
    write_private,
)
from hookline.settings.model import Breaker, HookSource


def refusal(
    hook: RegisteredHook, call: HookCall, breaker: CircuitBreaker
) -> HookExecutionResult | None:
    """Why the hook must not run now, as its result; None if it may run."""
    if hook.config.managed:
        return None
    if call.depth >= hook.options.max_depth:
        error = f"skipped: nested deeper than maxDepth {hook.options.max_depth}"
        return refused(hook, FailureCause.SPAWN, error)
    if count := breaker.open_for(hook):
        error = f"skipped: it timed out {count} times in a row"
        return refused(hook, FailureCause.TIMEOUT, error)
    return None


def refused(
    hook: RegisteredHook, cause: FailureCause, error: str
) -> HookExecutionResult:
    """The result of a hook that did not run, or whose run does not count."""
    return failed_result(hook, RunEnd(exit_code=None), cause, error)


class Timeouts(Struct, frozen=True):
    """How often a hook timed out in a row, and until when it is skipped."""

    count: int
    until: float = 0.0
    """Seconds since the epoch; 0 if it is not skipped."""


class CircuitBreaker:
    """Skips the hooks of one project that keep timing out, for a while."""

    def __init__(
        self, project: str | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._folder, self._path = _state_file(project)
        self._known: dict[str, Timeouts] | None = None

    def open_for(self, hook: RegisteredHook) -> int:
        """How often a hook that is skipped now has timed out; 0 if it may run."""
        breaker, known = hook.options.breaker, self._known
        if known is None:
            known = self._known = self._load()
        found = known.get(_hook_id(hook)) if known else None
        if breaker is None or found is None or hook.config.managed:
            return 0
        left = found.until - self._clock()
        # More than a whole cooldown is left only if the clock was set back.
        return found.count if 0 < left <= breaker.cooldown_ms / 1000 else 0

    def note(self, hook: RegisteredHook, cause: FailureCause | None) -> None:
        """Remember how a run ended."""
        breaker = hook.options.breaker
        if breaker is None or hook.config.managed:
            return
        if cause is FailureCause.TIMEOUT:
            self._count(hook, breaker)
        elif self._known and _hook_id(hook) in self._known:
            self._change(hook, lambda known: known.pop(_hook_id(hook), None))

    def _count(self, hook: RegisteredHook, breaker: Breaker) -> None:
        def add(known: dict[str, Timeouts]) -> None:
            count = known.get(_hook_id(hook), Timeouts(0)).count + 1
            opens = count >= breaker.timeouts
            until = self._clock() + breaker.cooldown_ms / 1000 if opens else 0.0
            known[_hook_id(hook)] = Timeouts(count, until)

        self._change(hook, add)
        count = self.open_for(hook)
        if count:
            logger.warning(
                "hook %r timed out %d times in a row: skipped for %g s",
                hook.name,
                count,
                breaker.cooldown_ms / 1000,
            )

    def _change(
        self, hook: RegisteredHook, change: Callable[[dict[str, Timeouts]], object]
    ) -> None:
        if self._known is None:
            self._known = self._load()
        change(self._known)
        if hook.source is HookSource.RUNTIME or self._path is None:
            return
        try:
            # Never wait for the lock: an event loop must not be held up.
            with locked(self._folder, wait=False):
                # Read again: other processes count the same hook's timeouts.
                stored = self._load()
                change(stored)
                self._store(stored)
        except (StateFileError, OSError) as error:
            self._keep_in_memory(error)

    def _load(self) -> dict[str, Timeouts]:
        if self._path is None:
            return {}
        try:
            content = read_private(self._path) or b"{}"
            return msgspec.json.decode(content, type=dict[str, Timeouts])
        except (StateFileError, msgspec.MsgspecError, ValueError) as error:
            self._keep_in_memory(error)
            return {}

    def _store(self, timeouts: dict[str, Timeouts]) -> None:
        if self._path is not None:  # else it became unreadable just now
            write_private(self._path, msgspec.json.encode(timeouts), durable=False)

    def _keep_in_memory(self, error: Exception) -> None:
        logger.warning("timeouts of hooks are not remembered: %s", error)
        self._path = None


def _state_file(project: str | None) -> tuple[str, str | None]:
    if project is None or (base := state_dir()) is None:
        return "", None
    folder = f"{base}/timeouts"
    return folder, f"{folder}/{file_name(os.path.realpath(project))}.json"


def _hook_id(hook: RegisteredHook) -> str:
    own = str(hook.serial) if hook.source is HookSource.RUNTIME else ""
    return "\n".join((hook.event, hook.source, *hook.config.key, own))
