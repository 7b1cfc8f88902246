"""A worker for the fault tests: ``python -m tests.bus.worker URL PREFIX MODE LIMIT``.

It says by a system message which process answered. Modes: ``answer`` at once,
``hold`` for ever after printing ``holding``, ``slow`` for a moment after printing
``working``. Told to stop it drains, and prints how many requests it has handled.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from hookline.bus import NatsBus
from hookline.bus.server import RequestServer
from hookline.protocol.events import HookEventName
from hookline.protocol.results import ProcessedHookResult

from .fakes import RecordingHandler, result_of


class PidHandler(RecordingHandler):
    """Answers with the id of its process, at once or later."""

    def __init__(self, mode: str) -> None:
        super().__init__(
            result_of({"systemMessage": str(os.getpid())}, HookEventName.BeforeTool)
        )
        self._mode = mode

    async def fire_fields(self, *args: Any, **kwargs: Any) -> ProcessedHookResult:
        if self._mode == "hold":
            print("holding", flush=True)
            await asyncio.Event().wait()
        if self._mode == "slow":
            print("working", flush=True)
            await asyncio.sleep(0.2)
        return await super().fire_fields(*args, **kwargs)


async def main(url: str, prefix: str, mode: str, limit: str) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    bus = await NatsBus.connect(url, prefix=prefix)
    handler = PidHandler(mode)
    RequestServer(handler, bus, max_concurrent=int(limit)).subscribe()
    await bus.ready()
    print("ready", flush=True)
    await stop.wait()
    await bus.drain()
    print(f"handled {len(handler.calls)}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
