"""Which hooks keep timing out, remembered across processes.

``hookline fire`` is a process for each event: without a memory of its own it would pay
for a hanging hook every time. The memory is one small private file for each project,
written only when a hook times out or recovers. Where it cannot be kept, it is kept for
this process alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import msgspec
from msgspec import Struct

from hookline.errors import StateFileError
from hookline.executors.contract import RegisteredHook
from hookline.log import logger
from hookline.settings.locations import (
    file_name,
    locked,
    read_private,
    state_dir,
    write_private,
)
from hookline.settings.model import Breaker, HookSource


class Timeouts(Struct, frozen=True):
    """How often a hook timed out in a row, and until when it is skipped."""

    count: int
    until: float = 0.0
    """In seconds since the epoch; 0 where it is not skipped."""


class TimeoutMemory:
    """The timeouts in a row of one project's hooks."""

    def __init__(
        self, project: str | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._folder, self._path = _place(project)
        self._known: dict[str, Timeouts] | None = None

    def tripped(self, hook: RegisteredHook) -> int:
        """How often a hook that is skipped now has timed out; 0 where it may run."""
        breaker = hook.options.breaker
        known = self._all()
        found = known.get(_name(hook)) if known else None
        if breaker is None or found is None or hook.config.managed:
            return 0
        left = found.until - self._clock()
        # More than a whole cooldown is left only where the clock was set back.
        return found.count if 0 < left <= breaker.cooldown_ms / 1000 else 0

    def add(self, hook: RegisteredHook, breaker: Breaker) -> Timeouts:
        """Note one more timeout, and what follows from it."""

        def change(known: dict[str, Timeouts]) -> None:
            before = known.get(_name(hook), Timeouts(0))
            count = before.count + 1
            over = count >= breaker.timeouts
            until = self._clock() + breaker.cooldown_ms / 1000 if over else 0.0
            known[_name(hook)] = Timeouts(count, until)

        self._change(change, keep=hook.source is not HookSource.RUNTIME)
        return self._all()[_name(hook)]

    def clear(self, hook: RegisteredHook) -> None:
        """Note that a hook has answered."""
        known = self._all()
        if known and _name(hook) in known:
            self._change(
                lambda known: known.pop(_name(hook), None),
                keep=hook.source is not HookSource.RUNTIME,
            )

    def _all(self) -> dict[str, Timeouts]:
        if self._known is None:
            self._known = self._load()
        return self._known

    def _load(self) -> dict[str, Timeouts]:
        if self._path is None:
            return {}
        try:
            content = read_private(self._path) or b"{}"
            return msgspec.json.decode(content, type=dict[str, Timeouts])
        except (StateFileError, msgspec.MsgspecError, ValueError) as error:
            logger.warning("timeouts of hooks are not remembered: %s", error)
            self._path = None
            return {}

    def _change(
        self, change: Callable[[dict[str, Timeouts]], object], *, keep: bool
    ) -> None:
        change(self._all())
        if not keep or self._path is None or self._folder is None:
            return
        try:
            with locked(self._folder, wait=False):
                stored = self._load()
                change(stored)
                content = msgspec.json.encode(stored)
                write_private(self._path, content, durable=False)
        except (StateFileError, OSError) as error:
            logger.warning("timeouts of hooks are not remembered: %s", error)
            self._path = None


def _place(project: str | None) -> tuple[str | None, str | None]:
    base = state_dir() if project is not None else None
    if base is None or project is None:
        return None, None
    folder = f"{base}/timeouts"
    return folder, f"{folder}/{file_name(os.path.realpath(project))}.json"


def _name(hook: RegisteredHook) -> str:
    own = str(hook.serial) if hook.source is HookSource.RUNTIME else ""
    return "\n".join((hook.event, hook.source, *hook.config.key, own))
