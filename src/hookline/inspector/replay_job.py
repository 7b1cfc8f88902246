"""One replay: a process that fires recorded events again, and what it has found so far.

The verdicts that change go into a file that has no name and ends with the job, so that
a replay of a million events takes no memory for them.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from array import array
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from enum import StrEnum
from os import fchmod, pread
from tempfile import TemporaryFile, mkstemp
from typing import Any

import msgspec
from msgspec import Struct

from hookline.errors import SettingsError
from hookline.protocol.values import decode, encode
from hookline.settings.read import parse_text

from .own_command import CommandEnd, OwnCommand, finish

MAX_KEPT = 100_000
"""Changes that are kept; further ones are counted."""
MAX_KEPT_BYTES = 64 * 1024 * 1024
_MAX_VALUE_BYTES = 16 * 1024
_MAX_TEXT = 2000
_MAX_FAILURES = 20
_PASTED = "the pasted settings"

Wire = dict[str, Any]


class State(StrEnum):
    """How far a replay is."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Kind(Struct, frozen=True):
    """From which verdict to which."""

    before: str
    after: str
    apart: bool
    """The event could not be replayed exactly: the change does not count."""


class FoundChanges:
    """The verdicts that changed, in a file; found again by number."""

    def __init__(self) -> None:
        self._file = TemporaryFile(prefix="hookline-replay-", buffering=0)  # noqa: SIM115 - closed with the job
        self._ends = array("Q")
        self._kinds = array("H")
        self.counts: Counter[Kind] = Counter()

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._ends)

    def add(self, change: Wire) -> None:
        """Keep one, or only count it if there are too many."""
        apart = change.get("apart") is not None
        kind = Kind(str(change.get("before")), str(change.get("after")), apart)
        self.counts[kind] += 1
        line, start = encode(_bounded(change)), self._ends[-1] if self._ends else 0
        if len(self) < MAX_KEPT and start + len(line) <= MAX_KEPT_BYTES:
            self._file.write(line)
            self._ends.append(start + len(line))
            self._kinds.append(list(self.counts).index(kind))

    def page(
        self, start: int, limit: int, kinds: Collection[int] = ()
    ) -> tuple[list[Wire], int | None]:
        """Some of them from a number on, and the number to go on with.

        ``kinds``: only these, by their places in ``counts``.
        """
        found: list[Wire] = []
        for n in range(start, len(self)):
            if kinds and self._kinds[n] not in kinds:
                continue
            if len(found) == limit:
                return found, n
            found.append(self._read(n))
        return found, None

    def close(self) -> None:
        """Delete them."""
        self._file.close()

    def _read(self, n: int) -> Wire:
        start = self._ends[n - 1] if n else 0
        line = pread(self._file.fileno(), self._ends[n] - start, start)
        found: Wire = decode(line)
        return {"n": n, **found}


def _bounded(change: Wire) -> Wire:
    """A change without what is too long to be kept."""
    values = [
        {**one, "before": _cut(one.get("before")), "after": _cut(one.get("after"))}
        for one in change.get("changes", ())
    ]
    reason = change.get("reason")
    return {**change, "changes": values, "reason": reason and str(reason)[:_MAX_TEXT]}


def _cut(value: Any) -> Any:
    text = encode(value)
    if len(text) <= _MAX_VALUE_BYTES:
        return value
    return text[:_MAX_VALUE_BYTES].decode("utf-8", "ignore") + " … (cut)"


class Replay:
    """A replay that runs, or has ended; belongs to one event loop."""

    def __init__(
        self,
        number: int,
        wanted: Wire,
        words: list[str],
        pasted: PastedSettings | None,
        stopping: asyncio.Event,
    ) -> None:
        """Start it; raises ``OSError``."""
        self.number = number
        self.state = State.RUNNING
        self.changes = FoundChanges()
        self._wanted = wanted
        self._pasted = pasted
        self._started = time.time()
        self._ended: float | None = None
        self._began: float | None = None
        """When the first event was fired."""
        self._done = self._total = self._failed = 0
        self._failures: list[Wire] = []
        self._report: Wire | None = None
        self._messages: list[str] = []
        self.news = asyncio.Event()
        """Set when something has changed; then the next one takes its place."""
        self._command = OwnCommand(words, on_line=self._read_line)
        self._task = asyncio.create_task(self._finish(stopping))

    @property
    def status(self) -> Wire:
        """Everything but the changes themselves."""
        counts = self.changes.counts
        return {
            "id": self.number,
            "state": self.state,
            "wanted": self._wanted,
            "started": self._started,
            "ended": self._ended,
            "done": self._done,
            "total": self._total,
            **self._speed(),
            "kinds": [
                {**msgspec.to_builtins(kind), "count": count}
                for kind, count in counts.items()
            ],
            "found": counts.total(),
            "kept": len(self.changes),
            "failed_events": self._failed,
            "failures": self._failures,
            "messages": self._messages,
            "report": self._report,
        }

    async def cancel(self) -> None:
        """End the process and its hooks; return when they are gone."""
        await self._command.end()
        await asyncio.wait([self._task])

    def forget(self) -> None:
        """Delete what was found."""
        self.changes.close()

    def _speed(self) -> Wire:
        """Events per second, and the seconds that are left."""
        if self._began is None or not self._done:
            return {"rate": None, "left_s": None}
        taken = (self._ended or time.time()) - self._began
        rate = self._done / max(taken, 0.001)
        left = (self._total - self._done) / rate
        return {"rate": rate, "left_s": left if self._ended is None else 0}

    def _read_line(self, line: bytes) -> None:
        if self._pasted is not None:
            self._pasted.remove()  # what prints has read its settings
        with suppress(ValueError):
            value = decode(line)
            if isinstance(value, dict):
                self._read(value.pop("type", ""), value)
                self._tell()

    def _read(self, kind: str, value: Wire) -> None:
        if kind == "progress":
            self._began = self._began or time.time()
            self._done, self._total = value["done"], value["total"]
        elif kind == "change":
            self.changes.add(value)
        elif kind == "failure":
            self._failed += 1
            if len(self._failures) < _MAX_FAILURES:
                errors = [str(text)[:_MAX_TEXT] for text in value["errors"]]
                self._failures.append({"id": value["id"], "errors": errors})
        elif kind == "report":
            names = ("events", "apart_events", "elsewhere")
            self._report = {name: value[name] for name in names}

    async def _finish(self, stopping: asyncio.Event) -> None:
        try:
            end = await finish(self._command, stopping)
        finally:
            if self._pasted is not None:
                self._pasted.remove()
        self._messages = self._said(end)
        self._ended = time.time()
        if end.cancelled:
            self.state = State.CANCELLED
        else:
            self.state = State.FAILED if self._report is None else State.DONE
        self._tell()

    def _said(self, end: CommandEnd) -> list[str]:
        failed = self._report is None and not end.cancelled
        messages = end.messages or ([end.message] if failed else [])
        if self._pasted is None:
            return messages
        return [self._pasted.hide(text) for text in messages]

    def _tell(self) -> None:
        news, self.news = self.news, asyncio.Event()
        news.set()


class PastedSettings:
    """Settings that were pasted into the page, as a file that only its owner reads.

    It is in memory and goes with this process, however that dies; on disk only where
    the system has no files in memory. Raises ``SettingsError`` if they are not valid.
    """

    def __init__(self, text: str) -> None:
        # Settings are an object; in JSON a comment may come before it.
        is_json = text.lstrip()[:1] in {"{", "/"}
        try:
            found = parse_text(text, _PASTED if is_json else f"{_PASTED}.toml")
        except SettingsError as error:
            where = _PASTED, error.line, error.column
            raise SettingsError(error.problem, *where) from error
        content = text.encode("utf-8", "replace") if is_json else encode(found)
        self._in_memory = False
        if sys.platform == "linux" and hasattr(os, "memfd_create"):
            self._in_memory = True
            descriptor = os.memfd_create("hookline-settings")
            fchmod(descriptor, 0o600)
            self.path = f"/proc/{os.getpid()}/fd/{descriptor}"
        else:
            descriptor, self.path = mkstemp(prefix="hookline-settings-", suffix=".json")
        self._file = open(descriptor, "wb", buffering=0)  # noqa: SIM115, PTH123 - a descriptor
        self._file.write(content)

    def hide(self, text: str) -> str:
        """Name the settings as the user knows them."""
        return text.replace(self.path, _PASTED)

    def remove(self) -> None:
        """Delete the file, if it is still there."""
        self._file.close()
        if not self._in_memory:
            with suppress(FileNotFoundError):
                os.unlink(self.path)  # noqa: PTH108 - a string
