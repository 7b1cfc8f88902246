"""Replay: fire recorded events again with other settings, and watch what changes.

One replay at a time, as ``hookline replay`` in a process of its own. It goes on when
the page is closed and ends with the server; the last few can be looked at again.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
from msgspec import Struct, structs
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hookline.errors import HooklineError
from hookline.protocol.values import decode

from .answers import event_stream, number_of, read_body, reply, server_event
from .desk import Desk
from .own_command import OwnCommand, finish
from .replay_job import PastedSettings, Replay, State, Wire

MAX_REPLAYS = 5
"""Replays that can be looked at again."""
_PAGE = 100
_MAX_PAGE = 500
_INTERVAL_S = 0.1
"""Between two messages of a stream: more than a page can show."""
_KEEP_ALIVE_S = 15.0
_KIND = re.compile("[0-9]{1,9}")
_FILTERS = ("event", "tool", "hook", "session")


class ReplayRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which events to replay, and with which settings; empty text is nothing."""

    since: float | str | None = None
    until: float | str | None = None
    """Seconds since 1970, or what ``--since`` takes."""
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

    def __post_init__(self) -> None:
        """Refuse what cannot be an argument of a command."""
        if any("\0" in str(value) for value in structs.astuple(self)):
            raise ValueError("null characters are not allowed")

    def options(self) -> Iterator[str]:
        """The options of ``hookline replay``, without the settings."""
        yield "--everywhere" if self.everywhere else "--here"
        for name, at in (("since", self.since), ("until", self.until)):
            if at not in {None, ""}:
                yield f"--{name}={at}" if isinstance(at, str) else f"--{name}=@{at}"
        for name in _FILTERS:
            if value := getattr(self, name):
                yield f"--{name}={value}"

    def shown(self) -> Wire:
        """What the page shows of it: not the settings that were pasted."""
        given: Wire = msgspec.to_builtins(self)
        return {**given, "settings_text": None, "pasted": bool(self.settings_text)}


def routes(desk: Desk) -> list[BaseRoute]:
    """The routes of this view."""
    replays = Replays(desk)

    async def list_all(_: Request) -> Response:
        return reply({"replays": [one.status for one in replays.newest()]})

    async def start(request: Request) -> Response:
        return reply({"id": replays.start(await _read_request(request)).number})

    async def count(request: Request) -> Response:
        return reply(await replays.count(await _read_request(request), request))

    async def show(request: Request) -> Response:
        return reply(replays.find(request).status)

    async def changes(request: Request) -> Response:
        return reply(_page(replays.find(request), request))

    async def watch(request: Request) -> Response:
        after = number_of(request, "after")
        start = 0 if after is None else after + 1
        return event_stream(_events(desk, replays.find(request), start))

    async def cancel(request: Request) -> Response:
        replay = replays.find(request)
        await replay.cancel()
        return reply(replay.status)

    one = "/api/replays/{id:number}"
    return [
        Route("/api/replays", list_all, methods=["GET"]),
        Route("/api/replays", start, methods=["POST"]),
        Route("/api/replays/count", count, methods=["POST"]),
        Route(one, show),
        Route(f"{one}/changes", changes),
        Route(f"{one}/stream", watch),
        Route(f"{one}/cancel", cancel, methods=["POST"]),
    ]


async def _read_request(request: Request) -> ReplayRequest:
    try:
        return msgspec.convert(await read_body(request), ReplayRequest)
    except msgspec.ValidationError as error:
        raise HTTPException(400, f"the request is invalid: {error}") from error


class Replays:
    """The replay that runs, and the last ones."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._known: dict[int, Replay] = {}
        self._number = 0

    def newest(self) -> list[Replay]:
        """All that are known, the newest first."""
        return list(self._known.values())[::-1]

    def find(self, request: Request) -> Replay:
        """The replay in the request's path."""
        found = self._known.get(request.path_params["id"])
        if found is None:
            kept = f"the inspector keeps the last {MAX_REPLAYS} until it ends"
            raise HTTPException(404, f"there is no such replay: {kept}")
        return found

    def start(self, wanted: ReplayRequest) -> Replay:
        """Start a replay, if none is running."""
        if any(one.state is State.RUNNING for one in self._known.values()):
            raise HTTPException(409, "a replay is running: wait for it, or cancel it")
        pasted = _pasted(wanted)
        self._number += 1
        words = self._words(wanted, pasted, "--progress=json")
        stopping = self._desk.stopping
        try:
            replay = Replay(self._number, wanted.shown(), words, pasted, stopping)
        except BaseException:
            if pasted is not None:
                pasted.remove()
            raise
        self._known[replay.number] = replay
        while len(self._known) > MAX_REPLAYS:
            self._known.pop(next(iter(self._known))).forget()
        return replay

    async def count(self, wanted: ReplayRequest, request: Request) -> Wire:
        """What ``hookline replay --dry-run`` says; no hook is run."""
        pasted = _pasted(wanted)
        try:
            words = self._words(wanted, pasted, "--dry-run", "--json")
            end = await finish(OwnCommand(words), self._desk.stopping, request)
        finally:
            if pasted is not None:
                pasted.remove()
        hide = str if pasted is None else pasted.hide
        if end.status != 0:
            raise HooklineError(hide(end.message))
        found: Wire = decode(end.stdout)
        return {**found, "messages": [hide(text) for text in end.messages]}

    def _words(
        self, wanted: ReplayRequest, pasted: PastedSettings | None, *more: str
    ) -> list[str]:
        desk = self._desk
        journal = f"--journal={desk.journal}"
        words = desk.command("replay", *wanted.options(), *more, journal)
        path = pasted.path if pasted is not None else wanted.settings
        if not path:
            return words
        file = os.path.join(desk.cwd, os.path.expanduser(path))  # noqa: PTH111, PTH118 - never raises
        # The last one counts, if the inspector was started with other settings.
        return [*words, f"--settings={file}"]


def _pasted(wanted: ReplayRequest) -> PastedSettings | None:
    if not wanted.settings_text or not wanted.settings_text.strip():
        return None
    if wanted.settings:
        raise HTTPException(400, "give the path of a settings file, or its text")
    return PastedSettings(wanted.settings_text)


def _page(replay: Replay, request: Request) -> dict[str, Any]:
    start = number_of(request, "start", 0) or 0
    limit = min(number_of(request, "limit", _PAGE) or _PAGE, _MAX_PAGE)
    kinds = request.query_params.get("kinds", "")
    numbers = [int(one) for one in kinds.split(",") if _KIND.fullmatch(one)]
    found, following = replay.changes.page(start, limit, numbers)
    return {"changes": found, "next": following}


async def _events(desk: Desk, replay: Replay, start: int) -> AsyncIterator[bytes]:
    """The first changes as they are found, and how far the replay is, to its end."""
    while not desk.stopping.is_set():
        news = replay.news
        found, _ = replay.changes.page(start, max(_PAGE - start, 0))
        for change in found:
            yield server_event("change", change, change["n"])
        start += len(found)
        if replay.state is not State.RUNNING:
            failed = replay.state is State.FAILED
            yield server_event("failed" if failed else "done", replay.status)
            return
        yield server_event("progress", replay.status)
        if not await _has_news(news, desk.stopping):
            yield b": still running\n\n"
        await asyncio.sleep(_INTERVAL_S)


async def _has_news(*events: asyncio.Event) -> bool:
    """Wait for one of them, for a while."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        done, _ = await asyncio.wait(
            waiting, timeout=_KEEP_ALIVE_S, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        for task in waiting:
            task.cancel()
    return bool(done)
