"""What all views of the inspector share: the settings and the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from hookline._internal.log import logger
from hookline.config import Config
from hookline.journal.query import JournalReader, read_journal
from hookline.journal.store import journal_path
from hookline.settings.load import Settings
from hookline.settings.places import SettingsPlaces, absolute
from hookline.settings.watch import Reloaded, SettingsWatch

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Desk:
    """The settings in effect, and the journal.

    Views call what reads files in a thread, with ``in_thread``.
    """

    def __init__(
        self, cwd: str, settings: str | None = None, journal: str | None = None
    ) -> None:
        self.cwd = absolute(cwd)
        self._settings = settings and absolute(settings)
        self._journal = journal
        places = SettingsPlaces.around(self.cwd)
        if self._settings:
            places = SettingsPlaces(file=self._settings)
        self._watch = SettingsWatch.start(places, self.cwd)
        self._watch.follow(self._apply, self._tell)
        self.config = Config(None, self.cwd, self._watch.settings)
        """The settings in effect."""
        self._asked = False
        self.reload_errors: list[str] = []
        """Why changed settings could not be loaded; the earlier ones are in effect."""
        self.reloads = 0
        """How often changed settings were loaded, or could not be."""
        self.stopping = asyncio.Event()
        """Set when the server ends: streams end too."""

    @property
    def journal(self) -> str:
        """The path of the journal, which need not exist."""
        if self._journal is not None:
            return self._journal
        settings = self.config.settings
        folder = settings.project_dir or self.config.working_dir
        return journal_path(settings.global_options.journal, folder)

    @contextmanager
    def read(self, tick: Callable[[], None] | None = None) -> Iterator[JournalReader]:
        """Open the journal; raises ``JournalError`` if there is none."""
        with read_journal(self.journal, tick) as reader:
            yield reader

    def options(self) -> list[str]:
        """The options of our own command line for these settings."""
        chosen = ["--settings", self._settings] if self._settings else []
        return [*chosen, "--cwd", self.cwd]

    async def in_thread(
        self, work: Callable[_P, _R], *args: _P.args, **more: _P.kwargs
    ) -> _R:
        """Do what reads files without blocking the event loop."""
        return await asyncio.to_thread(work, *args, **more)

    def reload_soon(self) -> None:
        """Load the settings again at the next look, changed or not."""
        self._asked = True

    async def refresh(self) -> None:
        """Load the settings if they have changed; keep the old ones on an error."""
        if self._asked or await self.in_thread(self._watch.has_changed):
            self._asked = False
            await self._watch.reload()

    def _apply(self, settings: Settings) -> bool:
        self.config = Config(None, self.cwd, settings)
        return True

    def _tell(self, outcome: Reloaded) -> None:
        self.reload_errors = list(outcome.problems)
        if outcome.problems:
            problems = "; ".join(outcome.problems)
            logger.warning("changed settings are not used: %s", problems)
        self.reloads += 1
