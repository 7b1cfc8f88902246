"""Load changed settings while events go on.

One thread loads, however many events wait for it in however many event loops. What
fails leaves the settings in use as they are, with an error in the log and the journal.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future

from msgspec import Struct

from hookline.errors import ReloadError
from hookline.settings.load import Settings
from hookline.settings.watch import SettingsWatch


class Reloaded(Struct, frozen=True):
    """Outcome of loading settings again."""

    changed: bool = False
    """Whether other settings are in use now."""
    problems: tuple[str, ...] = ()
    """Why changed settings are not used: all of them, or those of some projects."""


class SettingsReloader:
    """Shares the loads of one hook system between its events."""

    def __init__(
        self,
        watch: SettingsWatch,
        apply: Callable[[Settings], bool],
        tell: Callable[[Reloaded], None],
    ) -> None:
        """``apply`` puts settings to use, and says whether they are others."""
        self._watch, self._apply, self._tell = watch, apply, tell
        self.last = Reloaded()
        """Of the settings as they are now, as far as somebody looked."""
        self._reset()

    def _reset(self) -> None:
        self._host = os.getpid()
        self._lock = threading.Lock()
        self._running: Future[Reloaded] | None = None

    def has_changed(self) -> bool:
        """Whether there is anything to load."""
        return self._watch.has_changed()

    async def refresh(self) -> None:
        """Load settings that have changed; events that wait share one load."""
        if self._running is not None or self._watch.has_changed():
            await self.reload()

    async def reload(self) -> Reloaded:
        """Load the settings now, whether or not they have changed."""
        began_before = self._running is not None
        outcome = await asyncio.wrap_future(self._begin())
        if began_before and self._watch.has_changed():
            # That load may have looked before the change that is asked about.
            outcome = await asyncio.wrap_future(self._begin())
        return outcome

    async def finished(self) -> None:
        """Wait until no load is in progress."""
        running = self._running  # read once: the thread sets it to None
        if running is not None and self._host == os.getpid():
            await asyncio.wrap_future(running)

    def _begin(self) -> Future[Reloaded]:
        """Join the load in progress, or start one."""
        if self._host != os.getpid():
            self._reset()  # a thread does not survive a fork
        with self._lock:
            if self._running is not None:
                return self._running
            self._running = future = Future[Reloaded]()
            future.set_running_or_notify_cancel()  # whoever waits may be cancelled
            work = threading.Thread(
                target=lambda: self._end(future, self._attempt()),
                name="hookline-reload",
                daemon=True,
            )
            try:
                work.start()
            except RuntimeError as error:  # no thread left, or the process ends
                self._end(future, Reloaded(problems=(str(error),)))
            return future

    def _end(self, future: Future[Reloaded], outcome: Reloaded) -> None:
        self.last = outcome
        try:
            self._tell(outcome)
        finally:
            self._running = None
            future.set_result(outcome)

    def _attempt(self) -> Reloaded:
        before = self._watch.settings
        try:
            changed = self._apply(self._watch.load())
            return Reloaded(changed, self._watch.refused)
        except ReloadError as error:
            refused = self._watch.refused
            self._watch.settings, self._watch.refused = before, ()
            return Reloaded(problems=(*error.problems, *refused))
        # Extensions run code of others, and a host must go on with what it has.
        except Exception as error:  # noqa: BLE001
            self._watch.settings = before
            return Reloaded(problems=(f"{type(error).__name__}: {error}",))
