"""Services that misbehave, asked by http hooks: no verdict is lost, nothing leaks."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from typing import Any

from hookline import Config, HookSystem, Settings
from hookline.protocol.results import FailureCause

from .faults import Fault, wrong_verdict
from .tally import Tally

_CRASH, _OUTPUT = FailureCause.CRASH, FailureCause.OUTPUT
_SPAWN, _TIMEOUT = FailureCause.SPAWN, FailureCause.TIMEOUT
_HANG_MS = 700
_MOST_BYTES = 100_000
SERVICE_FAULTS = (
    Fault(name="service-allow", command="", weight=20),
    Fault(name="service-deny", command="", blocks=True, weight=20),
    Fault(name="service-error", command="", cause=_CRASH, weight=3),
    Fault(name="service-moved", command="", cause=_CRASH, weight=2),
    Fault(name="service-broken", command="", cause=_OUTPUT, weight=3),
    Fault(name="service-flood", command="", cause=_OUTPUT, weight=2),
    Fault(name="service-hang", command="", cause=_TIMEOUT, weight=1),
    Fault(name="service-drip", command="", cause=_TIMEOUT, weight=1),
)
_DENY = b'{"decision": "deny", "reason": "no"}'


async def bother_services(chance: random.Random, tally: Tally, until: float) -> None:
    """Ask until the time is over; some connections end between two questions."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        with tempfile.TemporaryDirectory() as folder:
            config = Config("soak", folder, _settings(port))
            async with HookSystem(config) as hooks, asyncio.TaskGroup() as group:
                for _ in range(4):
                    own = random.Random(chance.random())
                    group.create_task(_ask_on(hooks, own, tally, until))


def _settings(port: int) -> Settings:
    groups: list[dict[str, Any]] = []
    for policy in ("allow", "block"):
        for kind, timeout in (("(?!hang|drip).*", 60_000), ("(?:hang|drip)", _HANG_MS)):
            hook = {
                "type": "http",
                "url": f"http://127.0.0.1:{port}/",
                "name": f"{kind}-{policy}",
                "timeout": timeout,
                "onError": policy,
            }
            groups.append({"matcher": f"^service-{kind}-{policy}$", "hooks": [hook]})
    options = {"breaker": False, "maxOutputBytes": _MOST_BYTES}
    return Settings.from_mapping(
        {"hooks": {"BeforeTool": groups}, "hooksConfig": options}
    )


async def _ask_on(
    hooks: HookSystem, chance: random.Random, tally: Tally, until: float
) -> None:
    while time.monotonic() < until:
        weights = [fault.weight for fault in SERVICE_FAULTS]
        (fault,) = chance.choices(SERVICE_FAULTS, weights)
        policy = chance.choice(("allow", "block"))
        tool = f"{fault.name}-{policy}"
        given = {"text": "x" * chance.choice((1, 1000, 100_000))}
        fire = hooks.event_handler.fire_before_tool_event(tool, given)
        if chance.random() < 0.05:
            await _cancelled(fire, chance)
            continue
        result = await fire
        tally.fired(fault.name, wrong_verdict(fault, policy, result))
        if fault.cause is _TIMEOUT:
            (ran,) = result.aggregated.hook_results
            tally.answered(ran.duration, _HANG_MS)


async def _cancelled(fire: Any, chance: random.Random) -> None:
    task = asyncio.ensure_future(fire)
    await asyncio.sleep(chance.uniform(0, 0.01))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer what a connection asks, in the way that the tool's name says."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length:")[2].split()[0])
            body = await reader.readexactly(size)
            kind = body.partition(b'"tool_name":"service-')[2].partition(b"-")[0]
            writer.write(await _answer(kind.decode(), writer))
            await writer.drain()
            if random.random() < 0.1:
                return  # the next question finds it closed
    except (asyncio.IncompleteReadError, ConnectionError, IndexError):
        return
    finally:
        writer.close()


async def _answer(kind: str, writer: asyncio.StreamWriter) -> bytes:
    if kind == "hang":
        await asyncio.sleep(_HANG_MS / 1000 * 3)
    if kind == "drip":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(20):
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(_HANG_MS / 5000)
    status, body = {
        "deny": (b"200 OK", _DENY),
        "error": (b"500 Internal Server Error", b"no"),
        "moved": (b"302 Found", _DENY),
        "broken": (b"200 OK", _DENY[:-5]),
        "flood": (b"200 OK", b"x" * (2 * _MOST_BYTES)),
    }.get(kind, (b"200 OK", b""))
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)
