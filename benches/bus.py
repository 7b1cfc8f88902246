"""What the bus costs: ``python -m benches.bus``.

- mediated over direct: an event that no hook matches, asked for over the bus inside
  the process, against the same event fired on the handler;
- NATS: requests per second through ``hookline serve`` for an event that no hook
  matches, against a bare nats-py echo of the same bytes in the same run;
- latency over NATS with 1, 10 and 100 requests in flight.

Many short rounds of the two sides alternate and the best round of each counts: whatever
else runs on the machine only ever makes things slower.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from hookline import (
    Config,
    HookBusClient,
    HookSystem,
    InMemoryMessageBus,
    Settings,
)
from hookline.bus import NatsBus
from hookline.protocol.values import encode

TOOL = {"tool_name": "read_file", "tool_input": {"path": "src/main.py", "limit": 200}}
ECHO = """
import asyncio, sys, nats
async def main():
    client = await nats.connect(sys.argv[1])
    async def echo(message):
        await message.respond(message.data)
    await client.subscribe("echo", "workers", cb=echo)
    await client.flush()
    print("ready", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""

Ask = Callable[[], Awaitable[Any]]


async def mediated_over_direct(folder: Path, count: int = 50) -> dict[str, float]:
    """Microseconds per event: fired directly, and asked for over the memory bus."""
    bus = InMemoryMessageBus()
    config = Config(working_dir=folder, settings=Settings.from_file(_settings(folder)))
    async with HookSystem(config, message_bus=bus) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        client = HookBusClient(bus)

        async def direct() -> Any:
            return await fire(TOOL["tool_name"], TOOL["tool_input"])

        async def mediated() -> Any:
            return await client.request("BeforeTool", TOOL)

        direct_rate, mediated_rate = await _best_of_both(
            direct, mediated, count, in_flight=1, rounds=200
        )
    return {
        "direct_us": 1e6 / direct_rate,
        "mediated_us": 1e6 / mediated_rate,
        "added_us": 1e6 / mediated_rate - 1e6 / direct_rate,
    }


async def over_nats(folder: Path, count: int = 800) -> dict[str, float]:
    """Request rates and latencies through a real server and a real worker."""
    import nats

    with _server(folder) as url, _worker(folder, url), _echo(url):
        bare = await nats.connect(url)
        bus = await NatsBus.connect(url)
        client = HookBusClient(bus)
        data = encode({"eventName": "BeforeTool", "input": TOOL, "correlationId": "c"})

        async def echo() -> Any:
            return await bare.request("echo", data, timeout=30)

        async def ask() -> Any:
            response = await client.request("BeforeTool", TOOL, timeout_s=30)
            assert response["success"], response
            return response

        echo_rate, rate = await _best_of_both(
            echo, ask, count, in_flight=100, rounds=40
        )
        found = {
            "echo_per_s": echo_rate,
            "requests_per_s": rate,
            "ratio": rate / echo_rate,
        }
        for in_flight in (1, 10, 100):
            found |= await _latency(ask, 2000, in_flight)
        await bus.close()
        await bare.close()
    return found


async def _best_of_both(
    one: Ask, other: Ask, count: int, *, in_flight: int, rounds: int
) -> tuple[float, float]:
    """Calls per second of each, the best of alternating rounds."""
    best = [0.0, 0.0]
    for _ in range(rounds):
        for index, ask in enumerate((one, other)):
            best[index] = max(best[index], await _rate(ask, count, in_flight))
    return best[0], best[1]


async def _rate(ask: Ask, count: int, in_flight: int) -> float:
    async def some() -> None:
        for _ in range(count // in_flight):
            await ask()

    await asyncio.gather(*(ask() for _ in range(in_flight)))
    began = time.perf_counter()
    await asyncio.gather(*(some() for _ in range(in_flight)))
    return count / (time.perf_counter() - began)


async def _latency(ask: Ask, count: int, in_flight: int) -> dict[str, float]:
    waits_ms: list[float] = []

    async def some() -> None:
        for _ in range(count // in_flight):
            began = time.perf_counter()
            await ask()
            waits_ms.append((time.perf_counter() - began) * 1000)

    await asyncio.gather(*(some() for _ in range(in_flight)))
    return {
        f"p50_ms_{in_flight}": median(waits_ms),
        f"p99_ms_{in_flight}": quantiles(waits_ms, n=100)[98],
    }


def _settings(folder: Path) -> Path:
    """Settings with a hook that the event does not match: planning has to look."""
    hook = {"type": "command", "command": "true", "name": "guard"}
    groups = [{"matcher": "write_file|replace", "hooks": [hook]}]
    file = folder / "settings.json"
    file.write_text(json.dumps({"hooks": {"BeforeTool": groups}}))
    return file


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    program = Path(sysconfig.get_path("scripts")) / "nats-server"
    words = ["-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", str(folder)]
    with _process([str(program), *words], wait=False) as process:
        file = folder / f"nats-server_{process.pid}.ports"
        while not (file.exists() and file.read_text().endswith("}")):
            time.sleep(0.01)
        yield json.loads(file.read_text())["nats"][0]


@contextmanager
def _worker(folder: Path, url: str) -> Iterator[None]:
    words = ["serve", "--bus", url, "--settings", str(_settings(folder))]
    with _process([sys.executable, "-m", "hookline.cli.main", *words]):
        yield


@contextmanager
def _echo(url: str) -> Iterator[None]:
    with _process([sys.executable, "-c", ECHO, url]):
        yield


@contextmanager
def _process(
    words: list[str], *, wait: bool = True
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program, if wanted until it has printed that it is ready."""
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            if wait:
                assert process.stdout is not None
                assert b"ready" in process.stdout.readline()
            yield process
        finally:
            process.kill()


def run() -> dict[str, float]:
    """Measure everything."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = asyncio.run(mediated_over_direct(folder))
        return found | asyncio.run(over_nats(folder))


def main() -> dict[str, float]:
    """Measure everything and print it as a table."""
    import msgspec
    import nats.aio.client

    found = run()
    print(
        f"python {sys.version.split()[0]}, msgspec {msgspec.__version__}, "
        f"nats-py {nats.aio.client.__version__}"
    )
    for name, value in found.items():
        print(f"{name:16} {value:12.3f}")
    return found


if __name__ == "__main__":
    main()
