"""Events over a real NATS server: the verdict is the same as without it.

Some requests go to a prefix that nobody serves, and some are given up before the hook
has answered: the client's ``on_error`` decides those.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from pathlib import Path

from tests.support.nats import NatsServer

from hookline import Config, HookSystem, Settings
from hookline.bus import HookBusClient, NatsBus, RemoteHooks
from hookline.protocol.results import FailureCause, ProcessedHookResult

from .faults import DENY_JSON, FIVE_MINUTES, Fault, wrong_verdict
from .tally import Tally

_CRASH, _TIMEOUT = FailureCause.CRASH, FailureCause.TIMEOUT
BUS_FAULTS = (
    Fault(name="bus-allow", command="cat >/dev/null", weight=20),
    Fault(name="bus-deny", command=DENY_JSON, blocks=True, weight=20),
    Fault(name="bus-crash", command="exit 1", cause=_CRASH),
    Fault(name="bus-hang", command=FIVE_MINUTES, cause=_TIMEOUT, timeout_ms=300),
)
_SLOW = "bus-slow"
_SLOW_HOOK = {"type": "command", "command": "sleep 2; exit 2", "name": _SLOW}


def settings() -> Settings:
    """One group for each hook, matched by its own tool name."""
    groups = [
        {"matcher": f"^{tool}$", "hooks": [hook]}
        for fault in BUS_FAULTS
        for tool, hook in fault.hooks()
    ]
    groups.append({"matcher": f"^{_SLOW}$", "hooks": [_SLOW_HOOK]})
    options = {"breaker": False}
    return Settings.from_mapping(
        {"hooks": {"BeforeTool": groups}, "hooksConfig": options}
    )


async def bother_bus(chance: random.Random, tally: Tally, until: float) -> None:
    """Fire over the bus until the time is over; then server and clients are gone."""
    with tempfile.TemporaryDirectory() as folder:
        server = NatsServer(Path(folder)).start()
        try:
            await _on_server(server.url, folder, chance, tally, until)
        finally:
            server.stop()


async def _on_server(
    url: str, folder: str, chance: random.Random, tally: Tally, until: float
) -> None:
    async with (
        await NatsBus.connect(url) as serving,
        await NatsBus.connect(url) as asking,
        await NatsBus.connect(url, prefix="nobody") as unserved,
        HookSystem(Config("soak", folder, settings()), serving),
        asyncio.TaskGroup() as group,
    ):
        await serving.ready()
        for _ in range(3):
            own = random.Random(chance.random())
            group.create_task(_fire_on(asking, unserved, own, tally, until))


async def _fire_on(
    asking: NatsBus,
    unserved: NatsBus,
    chance: random.Random,
    tally: Tally,
    until: float,
) -> None:
    while time.monotonic() < until:
        on_error = chance.choice(("allow", "block"))
        kind = chance.random()
        if kind < 0.1:
            hooks = RemoteHooks(HookBusClient(unserved, on_error))
            result = await hooks.fire_before_tool_event("x", {})
            tally.fired("bus-unserved", _wrong_without_verdict(on_error, result))
        elif kind < 0.15:
            hooks = RemoteHooks(HookBusClient(asking, on_error, timeout_s=0.2))
            result = await hooks.fire_before_tool_event(_SLOW, {})
            tally.fired("bus-given-up", _wrong_without_verdict(on_error, result))
        else:
            hooks = RemoteHooks(HookBusClient(asking, on_error))
            await _fire_fault(hooks, chance, tally)


async def _fire_fault(hooks: RemoteHooks, chance: random.Random, tally: Tally) -> None:
    (fault,) = chance.choices(BUS_FAULTS, [fault.weight for fault in BUS_FAULTS])
    policy = chance.choice(("allow", "block"))
    result = await hooks.fire_before_tool_event(f"{fault.name}-{policy}", {"a": "x"})
    tally.fired(fault.name, wrong_verdict(fault, policy, result))


def _wrong_without_verdict(on_error: str, result: ProcessedHookResult) -> str | None:
    if result.blocked is (on_error == "block") and not result.aggregated.success:
        return None
    return f"blocked is {result.blocked} with on_error {on_error}: {result.reason}"
