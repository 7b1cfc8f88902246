"""The recorder that the handler knows: takes every event and hands it to the writer."""

from __future__ import annotations

from hookline.executors.contract import HookCall
from hookline.planner import HookPlan
from hookline.results import ProcessedHookResult

from .occurrence import occurrence_of
from .rows import Limits
from .writer import JournalWriter


class JournalRecorder:
    """Records to one file; its own work on the firing side is a few microseconds."""

    def __init__(
        self, path: str, limits: Limits | None = None, translator: str = "auto"
    ) -> None:
        self._translator = translator
        self._writer = JournalWriter(path, limits)

    @property
    def path(self) -> str:
        """The journal's file."""
        return self._writer.path

    @property
    def stopped(self) -> bool:
        """Whether something went wrong with the file, and nothing is recorded."""
        return self._writer.stopped

    def start(self) -> None:
        """Open the file, from the writer's thread."""
        self._writer.start()

    def record(
        self, call: HookCall, plan: HookPlan | None, result: ProcessedHookResult
    ) -> None:
        """Take one event, whether or not a hook matched it."""
        if not self._writer.stopped:
            self._writer.put(occurrence_of(call, plan, result, self._translator))

    def flush(self) -> None:
        """Return when all that was taken is written."""
        self._writer.flush()

    def close(self) -> None:
        """Write everything and give the file back; safe to call again."""
        self._writer.close()
