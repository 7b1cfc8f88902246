"""``hookline serve``: a worker that runs hooks for agents elsewhere."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import signal
import time
from typing import TYPE_CHECKING, Any

from hookline.config import Config
from hookline.errors import BusConnectionError, HooklineError

from .common import add_settings_arguments, load_config, log_to_stderr
from .connection import (
    SAFE_PASSWORDS,
    add_connection_arguments,
    connect,
    need_bus,
    need_word,
)

if TYPE_CHECKING:
    from hookline.bus.contracts import HookExecutionResponse, RequestHandler
    from hookline.bus.nats import NatsBus

SUMMARY = "run hooks for agents elsewhere, over NATS"
DESCRIPTION = f"""\
Be a worker: take requests from a bus, run the hooks of these settings for them, and
send back the verdicts. Start as many as you like; those with the same --prefix and
--queue share the load.

  hookline serve --bus nats://localhost:4222 --settings hooks.json
  hookline serve --bus tls://bus.example.com --tls-ca ca.pem --creds worker.creds
  hookline serve --bus nats://bus:4222 --user worker --password-file /run/secrets/bus

It prints one line when it is ready. Told to stop (SIGTERM, Ctrl-C) it takes no more,
finishes what it has, and leaves; told twice it leaves at once.

{SAFE_PASSWORDS}

exit status: 0 told to stop, 1 a mistake in the call or the connection lost for good"""

_log = logging.getLogger("hookline.serve")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_connection_arguments(parser)
    parser.add_argument(
        "--queue",
        metavar="Q",
        default="hookline-workers",
        help="the group that shares the load (default: hookline-workers)",
    )
    parser.add_argument(
        "--concurrency",
        metavar="N",
        type=int,
        default=64,
        help="requests in work at once; more wait their turn (default: 64)",
    )
    add_settings_arguments(parser)
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="log one line per request"
    )


def run(options: argparse.Namespace) -> int:
    """Serve until told to stop."""
    need_bus(options, "serve")
    if options.concurrency < 1:
        raise HooklineError("--concurrency must be 1 or more")
    need_word("--queue", options.queue)
    log_to_stderr(logging.INFO if options.verbose else logging.WARNING)
    return asyncio.run(_serve(load_config(options), options))


async def _serve(config: Config, options: argparse.Namespace) -> int:
    from hookline.bus.server import RequestServer

    system = config.get_hook_system()
    if system is None:
        raise HooklineError("hooks are switched off here (enableHooks is false)")
    async with system:
        server = RequestServer(system.event_handler, max_concurrent=options.concurrency)
        bus = await connect(options, queue=options.queue)
        try:
            bus.serve(_logged(server.handle_request))
            await bus.ready()
            _settle_memory()
            _announce(bus, system.status.total_hooks)
            await _until_told(bus)
            _log.info("told to stop: finishing what is in hand")
            await bus.drain()
        finally:
            await bus.close()
    return 0


def _settle_memory() -> None:
    """Spare the collector what lives as long as we do.

    A request leaves next to no cycles behind, so that looking for them at the usual
    pace costs a tenth of a worker's time and finds nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _announce(bus: NatsBus, hooks: int) -> None:
    noun = "hook" if hooks == 1 else "hooks"
    print(
        f"hookline: ready, serving {hooks} {noun} on {bus.subject} as {bus.queue}",
        flush=True,
    )


async def _until_told(bus: NatsBus) -> None:
    """Wait for a signal; raises where the connection is gone for good."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()

    def tell(number: signal.Signals) -> None:
        told.set()
        loop.remove_signal_handler(number)  # the next one ends us at once

    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, tell, number)
        except NotImplementedError:  # on Windows, where Ctrl-C ends us at once
            break
    closed = asyncio.ensure_future(bus.wait_closed())
    waiting = asyncio.ensure_future(told.wait())
    await asyncio.wait({closed, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if closed.done() and not told.is_set():
        waiting.cancel()
        raise BusConnectionError(bus.subject, closed.result() or "closed")
    closed.cancel()


def _logged(handle: RequestHandler) -> RequestHandler:
    """Log one line per request, where anybody listens."""
    if not _log.isEnabledFor(logging.INFO):
        return handle

    async def handle_and_log(payload: Any) -> HookExecutionResponse:
        started = time.perf_counter()
        response = await handle(payload)
        took_ms = (time.perf_counter() - started) * 1000
        name = payload.get("eventName") if isinstance(payload, dict) else None
        # Quoted: what a requester wrote must not forge lines in our log.
        _log.info(
            "%.60r %.80r %s %.1f ms",
            name,
            response["correlationId"],
            _outcome(response),
            took_ms,
        )
        return response

    return handle_and_log


def _outcome(response: HookExecutionResponse) -> str:
    processed = response.get("processed") or {}
    if processed.get("blocked"):
        return "blocked"
    if processed.get("shouldStop"):
        return "stopped"
    error = response.get("error")
    return f"failed: {error['code']}" if error else "allowed"
