"""Replay: decide recorded events again with other settings, and show what changes.

Nothing is started: events that need a program are counted, and the page has the command
that replays them all.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct, structs
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hookline.config import Config
from hookline.engine.replay import Decider, Replayed, compare, inexact
from hookline.errors import SettingsError
from hookline.journal.query import EventFilter, JournalReader
from hookline.protocol.events import known_event
from hookline.protocol.values import encode
from hookline.settings.load import Settings
from hookline.settings.places import project_around
from hookline.settings.read import parse_text

from .answers import read_body, reply
from .desk import Desk

_BUDGET_S = 5.0
_MAX_CHANGES = 200
_MAX_FAILURES = 20
_MAX_VALUE_BYTES = 16 * 1024
_MAX_TEXT = 2000
_PASTED = "the pasted settings"

Wire = dict[str, Any]


class ReplayRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which events to replay, and with which settings; empty text is nothing."""

    since: float | None = None
    until: float | None = None
    """Seconds since 1970."""
    event: str | None = None
    tool: str | None = None
    hook: str | None = None
    session: str | None = None
    everywhere: bool = False
    """The events of all projects, not only of this one."""
    settings: str | None = None
    """The path of a settings file, from the inspector's directory."""
    settings_text: str | None = None
    """Settings that were pasted into the page."""

    def wanted(self, cwd: str) -> EventFilter:
        """The events that are wanted."""
        return EventFilter(
            since=self.since,
            until=self.until,
            event=self.event or None,
            tool=self.tool or None,
            hook=self.hook or None,
            session=self.session or None,
            project=None if self.everywhere else project_around(cwd),
        )

    def config(self, desk: Desk) -> Config:
        """The settings that are wanted; raises ``SettingsError``."""
        text = (self.settings_text or "").strip()
        if text and self.settings:
            raise HTTPException(400, "give the path of a settings file, or its text")
        if text:
            # Settings are an object; in JSON a comment may come before it.
            name = _PASTED if text[0] in "{/" else f"{_PASTED}.toml"
            try:
                settings = Settings.from_mapping(parse_text(text, name)).with_managed()
            except SettingsError as error:
                where = _PASTED, error.line, error.column
                raise SettingsError(error.problem, *where) from error
            return Config(None, desk.cwd, settings)
        if not self.settings:
            return desk.config
        if "\0" in self.settings:
            raise HTTPException(400, "a path cannot have a null character")
        file = os.path.join(desk.cwd, os.path.expanduser(self.settings))  # noqa: PTH111, PTH118 - never raises
        return Config(None, desk.cwd, Settings.from_file(file))

    def options(self, desk: Desk) -> Iterator[str]:
        """The options of ``hookline replay`` for the same."""
        yield "--everywhere" if self.everywhere else "--here"
        for name, at in (("since", self.since), ("until", self.until)):
            if at is not None:
                yield f"--{name}=@{at}"
        for name in ("event", "tool", "hook", "session"):
            if value := getattr(self, name):
                yield f"--{name}={value}"
        yield f"--journal={desk.journal}"
        yield from desk.options()
        # The last one counts, if the inspector was started with other settings.
        if self.settings_text:
            yield "--settings=FILE"
        elif self.settings:
            yield f"--settings={self.settings}"


def routes(desk: Desk) -> list[BaseRoute]:
    """The routes of this view."""

    async def start(request: Request) -> Response:
        try:
            body = msgspec.convert(await read_body(request), ReplayRequest)
        except msgspec.ValidationError as error:
            raise HTTPException(400, f"the request is invalid: {error}") from error
        return reply(await desk.in_thread(_replay, desk, body))

    return [Route("/api/replay", start, methods=["POST"])]


def _replay(desk: Desk, request: ReplayRequest) -> Wire:
    config, event_filter = request.config(desk), request.wanted(desk.cwd)
    words = ["hookline", "replay", *request.options(desk)]
    with desk.read() as reader:
        kinds = reader.kinds(event_filter)
        everywhere = reader.count(structs.replace(event_filter, project=None))
        outcome = _Found()
        asyncio.run(outcome.search(reader, event_filter, Decider(config)))
    events = sum(kind.count for kind in kinds)
    return {
        **outcome.report(),
        "events": events,
        "undecided": events - outcome.decided - sum(outcome.programs.values()),
        "apart_events": sum(kind.count for kind in kinds if inexact(kind)),
        "elsewhere": everywhere - events,
        "messages": [*map(str, config.settings.errors), *config.settings.warnings],
        "command": shlex.join(word for word in words if word.isprintable()),
    }


class _Found:
    """What a replay finds, the newest event first, until its time is over."""

    def __init__(self) -> None:
        self.decided = 0
        self.programs: Counter[str] = Counter()
        """The events that only programs decide, by the first of these hooks."""
        self._changes: list[Wire] = []
        self._kinds: Counter[tuple[str, str, bool]] = Counter()
        self._failed = 0
        self._failures: list[Wire] = []

    async def search(
        self, reader: JournalReader, event_filter: EventFilter, decider: Decider
    ) -> None:
        """Decide the events again."""
        deadline = time.monotonic() + _BUDGET_S
        ids = [event_id for event_id, _ in reader.sessions(event_filter)]
        for event_id in reversed(ids):
            if time.monotonic() > deadline:
                return
            recorded = reader.find(event_id)
            if recorded is None or known_event(recorded.entry.event) is None:
                continue  # deleted meanwhile, or of another version
            decided = await decider.decide(recorded.entry.event, recorded.input)
            if decided.programs:
                self.programs[decided.programs[0]] += 1
            else:
                self.decided += 1
                self._add(compare(recorded, decided.result))

    def _add(self, replayed: Replayed) -> None:
        if replayed.changes:
            before, after = replayed.before.word, replayed.after.word
            self._kinds[before, after, replayed.inexact is not None] += 1
            if len(self._changes) < _MAX_CHANGES:
                self._changes.append(_bounded(replayed.to_json()))
        if replayed.failures:
            self._failed += 1
            if len(self._failures) < _MAX_FAILURES:
                errors = [text[:_MAX_TEXT] for text in replayed.failures]
                self._failures.append({"id": replayed.entry.id, "errors": errors})

    def report(self) -> Wire:
        """All of it, for the page."""
        return {
            "decided": self.decided,
            "programs": dict(self.programs),
            "changes": self._changes,
            "kinds": [
                {"before": before, "after": after, "apart": apart, "count": count}
                for (before, after, apart), count in self._kinds.items()
            ],
            "failed": self._failed,
            "failures": self._failures,
        }


def _bounded(change: Wire) -> Wire:
    """A change without what is too long to be shown."""

    def cut(value: Any) -> Any:
        text = encode(value)
        if len(text) <= _MAX_VALUE_BYTES:
            return value
        return text[:_MAX_VALUE_BYTES].decode("utf-8", "ignore") + " … (cut)"

    values = [
        {**value, "before": cut(value["before"]), "after": cut(value["after"])}
        for value in change["changes"]
    ]
    reason = change["reason"]
    return {**change, "changes": values, "reason": reason and reason[:_MAX_TEXT]}
