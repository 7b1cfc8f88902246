"""What hooks cost in an SDK's client: one call of a local server, with and without.

A hook in this process listens to each of the three model events and changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from inspect import isawaitable
from itertools import repeat
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI, OpenAI

from hookline import Config, HookEventName, HookSystem, Settings
from hookline.agent import hooked
from hookline.testing.modelapi import ModelServer

from .floor import Floors
from .measure import Bar, Figure, Timed, compare

EVENTS = (
    HookEventName.BeforeToolSelection,
    HookEventName.BeforeModel,
    HookEventName.AfterModel,
)
REQUEST = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
ANSWER = "one word after the other"
MAX_ADDED_US = 3000.0


async def figures(_floors: Floors, _folder: Path, rounds: int) -> list[Figure]:
    """A plain and an async client, an answer at once and in pieces."""
    config = Config("bench", ".", Settings())
    system = HookSystem(config)
    for event in EVENTS:
        system.on(event)(_nothing)
    with ModelServer(repeat(ANSWER)) as server:
        async with config:
            return [
                await compare(
                    "clients",
                    f"{type(client).__name__}: {name} with hooks",
                    _call(hooked(client, config), stream=name == "a stream"),
                    _call(client, stream=name == "a stream"),
                    "the same client without hooks",
                    rounds,
                    Bar(MAX_ADDED_US, "added_us"),
                )
                for client in _clients(f"{server.url}/v1")
                for name in ("a call", "a stream")
            ]


def _clients(url: str) -> Iterator[Any]:
    yield OpenAI(api_key="none", base_url=url)
    yield AsyncOpenAI(api_key="none", base_url=url)


def _call(client: Any, *, stream: bool) -> Timed:
    async def call() -> float:
        started = time.perf_counter()
        made = client.chat.completions.create(**REQUEST, stream=stream)
        found = await made if isawaitable(made) else made
        if hasattr(found, "__aiter__"):
            _ = [chunk async for chunk in found]
        elif stream:
            list(found)
        return time.perf_counter() - started

    return call


def _nothing(_: dict[str, Any]) -> None:
    return None
