"""``hookline serve``: a worker that runs hooks for agents on other machines."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import time
from typing import TYPE_CHECKING, Any

from hookline.bus.contracts import HookExecutionResponse, RequestHandler, subject_name
from hookline.bus.server import RequestServer
from hookline.config import Config
from hookline.errors import BusConnectionError, HooklineError
from hookline.protocol.verdict import Verdict

from . import connection
from .common import (
    Options,
    Parser,
    at_least,
    end_hooks_on_signals,
    load_config,
    log_to_stderr,
    logs_json,
)
from .log_format import json_line
from .monitor import Monitor, parse_address
from .reload import following_settings
from .terminal import plural

if TYPE_CHECKING:
    from hookline.bus.nats import NatsBus

SUMMARY = "run hooks for agents on other machines, over NATS"
DESCRIPTION = f"""\
Start a worker: it receives requests from a bus, runs the hooks of its settings and
replies with the verdicts. Workers with the same --prefix and --queue share the load.

  hookline serve --bus nats://localhost:4222 --settings hooks.json
  hookline serve --bus tls://bus:4222 --tls-ca ca.pem --creds worker.creds
  hookline serve --bus nats://bus:4222 --user worker --password-file secret

It prints one line when it is ready. On SIGTERM or Ctrl-C it accepts no new requests,
finishes those in progress and exits. A second signal kills the hooks that run and ends
it at once.

Changed settings apply within a second, or at once on SIGHUP: requests in progress are
answered by the old ones, later requests by the new ones. If a changed file has new
errors, its old content stays and the log says why. With --require-hooks, so it does if
no hook would be left.

{connection.SAFE_PASSWORDS}

exit status: 0 stopped by a signal, 1 usage error or connection lost; by the signal
itself if it ended at once"""

_STOPPING = (signal.SIGTERM, signal.SIGINT)

_log = logging.getLogger("hookline.serve")

_NO_HOOKS = """\
no hooks are configured for %s, so every request is allowed: see --cwd and --settings"""
_HOOKS_MISSING = """\
no hooks are configured for %s: taking no requests until there are (--require-hooks)"""
_LOOK_S = 0.1


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    connection.add_connection_arguments(parser)
    text = "queue group that shares the load (default: hookline-workers)"
    parser.add_option("--queue Q", text, default="hookline-workers")
    text = "requests handled at the same time; others wait (default: 64)"
    parser.add_option("--concurrency N", text, type=at_least(1), default=64)
    text = "take no requests without a hook, and keep the last ones at a reload"
    parser.add_flag("--require-hooks", text)
    text = "serve /metrics, /healthz and /readyz there (default host: 127.0.0.1)"
    parser.add_option("--metrics [HOST:]PORT", text, type=parse_address)
    parser.add_settings()
    text = "log each request, and what happens to the connection"
    parser.add_flag("-v --verbose", text)
    text = "format of messages on standard error: text (default) or json"
    choices = ("text", "json")
    parser.add_option("--log-format FORMAT", text, choices=choices, default="text")


def run(options: Options) -> None:
    """Serve until a signal arrives."""
    connection.require_bus(options, "serve")
    subject_name("--queue", options.queue)
    log_to_stderr(logging.INFO if options.verbose else logging.WARNING, options)
    asyncio.run(_serve(load_config(options, one_shot=False), options))


async def _serve(config: Config, options: Options) -> None:
    from hookline.engine.system import HookSystem

    if not config.settings.hooks_enabled:
        raise HooklineError("hooks are disabled: enableHooks is false in the settings")
    monitor = Monitor(options)
    system = HookSystem(config, start_workers=True, telemetry=monitor.figures)
    system.require_hooks = options.require_hooks
    async with following_settings(system), system:
        server = RequestServer(system.event_handler, max_concurrent=options.concurrency)
        with monitor.watch(config, system, server):
            monitor.bus = bus = await connection.connect(options, queue=options.queue)
            received = _signal_event()
            try:
                if not system.active_hooks:
                    required = options.require_hooks
                    text = _HOOKS_MISSING if required else _NO_HOOKS
                    _log.warning(text, config.working_dir)
                while options.require_hooks and not system.active_hooks:
                    if received.is_set():
                        return
                    await asyncio.sleep(_LOOK_S)
                bus.serve(_logged(server.handle_request))
                await bus.ready()
                _tune_garbage_collection()
                hooks = f"{plural(system.status.total_hooks, 'hook')} on {bus.subject}"
                _print_ready(f"ready, serving {hooks} as {bus.queue}", options)
                await _wait_for(received, bus)
                monitor.stopping = True
                _log.info("stopping: finishing requests in progress")
                await bus.drain()
            finally:
                await bus.close()


def _print_ready(message: str, options: Options) -> None:
    line = f"hookline: {message}"
    if logs_json(options):
        # Collectors of logs read both streams as one.
        line = json_line("info", _log.name, {"message": message})
    print(line, flush=True)


def _tune_garbage_collection() -> None:
    """Exclude long-lived objects, and collect less often.

    Requests leave few cycles; the default thresholds cost a tenth of a worker's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _signal_event() -> asyncio.Event:
    """An event that the first SIGTERM or SIGINT from now on sets."""
    loop, received = asyncio.get_running_loop(), asyncio.Event()

    def receive(_number: int, _frame: object) -> None:
        # Not in the loop, which may be late: the next signal is not lost then.
        end_hooks_on_signals(*_STOPPING)
        loop.call_soon_threadsafe(received.set)

    for number in _STOPPING:
        signal.signal(number, receive)
    return received


async def _wait_for(received: asyncio.Event, bus: NatsBus) -> None:
    """Wait for a signal; raises if the connection is lost for good."""
    closed = asyncio.ensure_future(bus.wait_closed())
    waiting = asyncio.ensure_future(received.wait())
    await asyncio.wait({closed, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if closed.done() and not received.is_set():
        waiting.cancel()
        raise BusConnectionError(bus.subject, closed.result() or "closed")
    closed.cancel()


def _logged(handle: RequestHandler) -> RequestHandler:
    """Log one line per request with ``--verbose``."""
    if not _log.isEnabledFor(logging.INFO):
        return handle

    async def handle_and_log(payload: Any) -> HookExecutionResponse:
        started = time.perf_counter()
        response = await handle(payload)
        took_ms = (time.perf_counter() - started) * 1000
        _log_request(payload, response, took_ms)
        return response

    return handle_and_log


def _log_request(payload: Any, response: HookExecutionResponse, took_ms: float) -> None:
    name = payload.get("eventName") if isinstance(payload, dict) else None
    error, processed = response.get("error"), response.get("processed")
    verdict = Verdict(failed=bool(error))
    if processed:
        verdict = Verdict(
            blocked=processed["blocked"],
            stop=processed["shouldStop"],
            ask=processed["ask"],
            failed=bool(error),
        )
    request = {
        "event": name,
        "correlation_id": response["correlationId"],
        "verdict": verdict.word.value,
        "error": error["code"] if error else None,
        "duration_ms": round(took_ms, 1),
    }
    failed = request["verdict"] == "failed"
    # %r: a request must not be able to forge lines in the log.
    text = "%.60r %.80r %s: %s %.1f ms" if failed else "%.60r %.80r %s%.0s %.1f ms"
    _log.info(text, *request.values(), extra={"request": request})
