"""The timeline: recorded events, live and back through the journal."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import AsyncIterator
from importlib.metadata import version
from typing import Any

from msgspec.structs import asdict
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hookline.errors import JournalError
from hookline.journal.query import (
    VERDICTS,
    EventFilter,
    Found,
    JournalReader,
    ListedEntry,
)

from .answers import event_stream, number_of, reply, server_event
from .desk import Desk
from .live import JournalState, Live

_BUDGET_S = 0.3
_LIMIT, _LARGEST_LIMIT = 100, 500
_LONGEST_FILTER = 500
_STREAM_BATCH = 200
_MOST_STREAMS = 64
_MOST_BROWSER_STREAMS = 4
_WAKE_S = 0.05
_KEEP_ALIVE_S = 15.0
_FACET_EVENTS = 10_000
_FACETS = ("projects", "sessions", "events", "tools", "hooks", "verdicts")
_LONGEST_TEXT = 1_000
_FILTERS = (
    *("event", "tool", "hook", "session", "project", "verdict", "text"),
    *("since", "until"),
)


def routes(desk: Desk) -> list[BaseRoute]:
    """The routes of this view."""
    live = Live(desk)
    streams: list[_EventStream] = []

    async def overview(_: Request) -> Response:
        return reply(await desk.in_thread(_overview, desk))

    async def events(request: Request) -> Response:
        return reply(await desk.in_thread(_search, desk, request))

    async def facets(_: Request) -> Response:
        return reply(await desk.in_thread(_facets, desk))

    async def stream(request: Request) -> Response:
        if len(streams) >= _MOST_STREAMS:
            raise HTTPException(503, "too many pages are open: close some")
        page_stream = _EventStream(desk, live, _wanted(request), _after(request))
        page_stream.is_of_browser = "sec-fetch-site" in request.headers
        return event_stream(page_stream.run(streams))

    return [
        Route("/api/overview", overview, methods=["GET"]),
        Route("/api/events", events, methods=["GET"]),
        Route("/api/events/stream", stream, methods=["GET"]),
        Route("/api/facets", facets, methods=["GET"]),
    ]


def _overview(desk: Desk) -> dict[str, Any]:
    settings = desk.config.settings
    return {
        "version": version("hookline"),
        "cwd": desk.cwd,
        "project": settings.project_dir,
        "journal": _journal(desk),
        "settings": {
            "files": [layer.file for layer in settings.layers if layer.file],
            "errors": [*desk.reload_errors, *map(str, settings.errors)],
            "warnings": list(settings.warnings),
        },
    }


def _journal(desk: Desk) -> dict[str, Any]:
    """The journal in figures."""
    facts: dict[str, Any] = {
        "path": None,
        "exists": False,
        "recording": bool(desk.config.settings.global_options.journal),
        **dict.fromkeys(("events", "oldest", "newest", "error")),
    }
    try:
        facts["path"] = desk.journal
        if not os.path.lexists(desk.journal):
            return facts | {"events": 0}
        facts["exists"] = True
        with desk.read() as reader:
            span = reader.span(EventFilter()) or (0, None, None)
            facts |= dict(zip(("events", "oldest", "newest"), span, strict=True))
    except JournalError as error:
        facts["error"] = str(error)
    return facts


def _search(desk: Desk, request: Request) -> dict[str, Any]:
    event_filter, before = _wanted(request), number_of(request, "before")
    limit = min(number_of(request, "limit", _LIMIT) or _LIMIT, _LARGEST_LIMIT)
    if not os.path.lexists(desk.journal):
        return asdict(Found(events=[], next=None, searched_to=None, complete=True))
    with desk.read() as reader:
        found = reader.search(event_filter, before, limit, _BUDGET_S)
        rows = [_row(event, reader) for event in found.events]
    return {**asdict(found), "events": rows}


def _row(event: ListedEntry, reader: JournalReader) -> dict[str, Any]:
    """An event as the list shows it; what is too long for that is cut."""
    entry = event.entry
    row = asdict(entry) | {
        "project": reader.project_of(entry.cwd),
        "would_block": entry.observers is not None,
        "recheck": entry.rechecked is not None,
        "tool_use_id": event.tool_use_id,
        "turn": event.turn,
    }
    return {
        name: value[:_LONGEST_TEXT] if isinstance(value, str) else value
        for name, value in row.items()
    }


def _wanted(request: Request) -> EventFilter:
    """The filters of the query; those that are empty do not count."""
    texts = {
        name: text for name in _FILTERS if (text := request.query_params.get(name, ""))
    }
    for name, text in texts.items():
        if len(text) > _LONGEST_FILTER:
            raise HTTPException(400, f"{name} is too long: use less of it")
    if texts.get("verdict", VERDICTS[0]) not in VERDICTS:
        raise HTTPException(400, f"unknown verdict: one of {', '.join(VERDICTS)}")
    times = {name: _time(name, texts.pop(name, None)) for name in ("since", "until")}
    return EventFilter(**texts, **times)  # type: ignore[arg-type] # names of filters


def _time(name: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise HTTPException(400, f"{name} is not a time in seconds since 1970")
    return seconds


def _after(request: Request) -> int | None:
    """The last event that the page has; a browser that reconnects says it itself."""
    last = request.headers.get("last-event-id", "")
    if last.isascii() and last.isdecimal() and len(last) <= 18:
        return int(last)
    return number_of(request, "after")


class _EventStream:
    """The events of one page, as they are recorded."""

    def __init__(
        self, desk: Desk, live: Live, event_filter: EventFilter, after: int | None
    ) -> None:
        self._desk = desk
        self._live = live
        self._wanted = event_filter
        self._after = after or 0
        self._from_now = after is None
        self._file: tuple[int, int] | None = None
        self._reloads = desk.reloads
        self.is_of_browser = False
        self.has_ended = False

    async def run(self, streams: list[_EventStream]) -> AsyncIterator[bytes]:
        """Bytes to send until the page or the server ends.

        The next ones are made when the last are sent: a slow page fills no memory.
        """
        streams.append(self)
        _end_oldest(streams)
        try:
            state = await self._live.start()
            self._file = state.file
            if self._from_now:
                self._after = state.last_id
            yield b": connected\n\n"
            quiet_s = 0.0
            while not await self._ended():
                parts = await self._news()
                quiet_s = 0.0 if parts else quiet_s + _WAKE_S
                if quiet_s >= _KEEP_ALIVE_S:
                    parts, quiet_s = [b": still here\n\n"], 0.0
                if parts:
                    yield b"".join(parts)
        finally:
            streams.remove(self)
            self._live.stop()

    async def _ended(self) -> bool:
        try:
            async with asyncio.timeout(_WAKE_S):
                return await self._desk.stopping.wait()
        except TimeoutError:
            return self.has_ended

    async def _news(self) -> list[bytes]:
        parts = []
        if self._reloads != self._desk.reloads:
            self._reloads = self._desk.reloads
            parts.append(server_event("settings", _settings(self._desk)))
        state = self._live.state
        if state.file != self._file or state.last_id < self._after:
            self._file, self._after = state.file, state.last_id
            parts.append(server_event("reset", {}))
        elif state.last_id > self._after:
            parts += await self._new_events(state)
        return parts

    async def _new_events(self, state: JournalState) -> list[bytes]:
        try:
            rows, last = await self._desk.in_thread(
                _next_events, self._desk, self._wanted, self._after
            )
        except JournalError:
            return []  # the next look finds out what happened to it
        # An event that was recorded after the state was read comes with the next
        # one: until then the journal would look as if it had lost it.
        self._after = min(max(last, self._after), state.last_id)
        return [
            server_event("event", row, row["id"])
            for row in rows
            if row["id"] <= self._after
        ]


def _end_oldest(streams: list[_EventStream]) -> None:
    """Leave a browser connections for other requests: it has six for one server.

    A page whose stream ends connects again, and misses nothing.
    """
    of_browsers = [
        stream for stream in streams if stream.is_of_browser and not stream.has_ended
    ]
    for stream in of_browsers[:-_MOST_BROWSER_STREAMS]:
        stream.has_ended = True


def _settings(desk: Desk) -> dict[str, Any]:
    errors = [*desk.reload_errors, *map(str, desk.config.settings.errors)]
    return {"errors": errors}


def _next_events(
    desk: Desk, event_filter: EventFilter, after: int
) -> tuple[list[dict[str, Any]], int]:
    with desk.read() as reader:
        events, last = reader.search_after(event_filter, after, _STREAM_BATCH)
        return [_row(event, reader) for event in events], last


def _facets(desk: Desk) -> dict[str, Any]:
    """The values to offer for each filter."""
    if not os.path.lexists(desk.journal):
        return {"of": 0, **dict.fromkeys(_FACETS, ())}
    with desk.read() as reader:
        facets = reader.facets(_FACET_EVENTS)
    for name in _FACETS:
        facets[name] = [{"value": v, "count": n} for v, n in facets[name]]
    return facets
