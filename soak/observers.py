"""Observers that raise and hang: none of them changes a verdict, or holds one up."""

from __future__ import annotations

import asyncio
import logging
import random
import sqlite3
import tempfile
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from hookline import (
    Config,
    HookBusClient,
    HookSystem,
    InMemoryMessageBus,
    RemoteHooks,
    Settings,
)
from hookline.bus import MessageBusType
from hookline.protocol.results import FailureCause

from .faults import DENY_JSON, Fault, wrong_verdict
from .tally import Tally

_LATE_S = 30.0
"""Far less than an observer hangs, and more than a loaded machine is late."""
_FAULTS = (
    Fault(name="observed-allow", command="true"),
    Fault(name="observed-deny", command=DENY_JSON, blocks=True),
    Fault(name="observed-crash", command="exit 1", cause=FailureCause.CRASH),
)
_KINDS = ("raises", "panics", "hangs", "wrong")


class _PanicError(BaseException):
    """Not an ``Exception``, as what a native library raises."""


class _Trouble:
    """What observers do instead of their work, now and then."""

    def __init__(self, kind: str, chance: random.Random) -> None:
        self.kind, self._chance = kind, chance
        self.over = threading.Event()

    def __call__(self, *_: Any) -> Any:
        if self._chance.random() < 0.5:
            return True
        if self.kind == "raises":
            raise ZeroDivisionError
        if self.kind == "panics":
            raise _PanicError
        if self.kind == "hangs":
            self.over.wait(300)
        return object()


class _Handler(logging.Handler):
    def __init__(self, trouble: _Trouble) -> None:
        super().__init__()
        self._trouble = trouble

    def emit(self, record: logging.LogRecord) -> None:
        self._trouble()


class _Observer:
    """A debug logger, and a telemetry backend with its events and hooks."""

    def __init__(self, trouble: _Trouble) -> None:
        self.enabled = self.log = self.flush = self.end = self.carrier = trouble
        self._trouble = trouble

    def start_event(self, *_: Any) -> Any:
        return self._trouble() and self

    start_hook = start_event


class _Bus(InMemoryMessageBus):
    """Refuses the first subscriptions, and keeps some responses."""

    def __init__(self, trouble: _Trouble, chance: random.Random) -> None:
        super().__init__()
        self._refusals = chance.randrange(3)
        self._over = asyncio.Event()
        bad = self._hang if trouble.kind == "hangs" else trouble
        super().subscribe(MessageBusType.HOOK_EXECUTION_RESPONSE, bad)

    def subscribe(self, message_type: str, handler: Any) -> Any:
        self._refusals -= 1
        if self._refusals >= 0:
            raise ConnectionError("not now")
        return super().subscribe(message_type, handler)

    async def _hang(self, _: object) -> None:
        await self._over.wait()

    def end(self) -> None:
        """Let the subscriber go that hangs."""
        self._over.set()


async def bother_observers(chance: random.Random, tally: Tally, until: float) -> None:
    """Build systems with broken observers until the time is over, and fire on them."""
    while time.monotonic() < until:
        kind = chance.choice(_KINDS)
        trouble = _Trouble(kind, random.Random(chance.random()))
        with tempfile.TemporaryDirectory() as folder:
            try:
                await _fire_observed(kind, trouble, Path(folder), chance, tally, until)
            finally:
                trouble.over.set()


async def _fire_observed(
    kind: str,
    trouble: _Trouble,
    folder: Path,
    chance: random.Random,
    tally: Tally,
    until: float,
) -> None:
    groups = [
        {"matcher": f"^{tool}$", "hooks": [hook]}
        for fault in _FAULTS
        for tool, hook in fault.hooks()
    ]
    journal = folder / "journal.sqlite"
    options = {"breaker": False, "journal": str(journal)}
    raw = {"hooks": {"BeforeTool": groups}, "hooksConfig": options}
    target = logging.Logger("soak", logging.DEBUG)
    target.addHandler(_Handler(trouble))
    bus = _Bus(trouble, chance)
    config = Config("soak", folder, Settings.from_mapping(raw))
    system = HookSystem(
        config,
        bus,
        chance.choice((None, target, _Observer(trouble))),
        telemetry=chance.choice((None, _Observer(trouble))),
    )
    await system.initialize()
    connection = sqlite3.connect(journal, isolation_level=None, timeout=0)
    with closing(connection) as locking:
        if chance.random() < 0.3:
            with suppress(sqlite3.OperationalError):  # the journal is being written
                locking.execute("BEGIN EXCLUSIVE")
        for _ in range(20):
            if time.monotonic() > until:
                break
            await _fire_one(kind, system, bus, chance, tally)
    await system.dispose(background_s=1)
    bus.end()


async def _fire_one(
    kind: str,
    system: HookSystem,
    bus: InMemoryMessageBus,
    chance: random.Random,
    tally: Tally,
) -> None:
    fault, policy = chance.choice(_FAULTS), chance.choice(("allow", "block"))
    started = time.monotonic()
    await system.initialize()
    has_bus = bus.has_subscribers(MessageBusType.HOOK_EXECUTION_REQUEST)
    hooks: Any = system.event_handler
    if has_bus and chance.random() < 0.5:
        hooks = RemoteHooks(HookBusClient(bus))
    result = await hooks.fire_before_tool_event(f"{fault.name}-{policy}", {"a": "x"})
    problem = wrong_verdict(fault, policy, result)
    if problem is None and time.monotonic() - started > _LATE_S:
        problem = f"after {time.monotonic() - started:.0f} s"
    tally.fired(f"observer {kind}", problem)
