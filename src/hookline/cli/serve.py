"""``hookline serve``: a worker that runs hooks for agents on other machines."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from hookline.bus.contracts import HookExecutionResponse, RequestHandler, subject_name
from hookline.bus.server import RequestServer
from hookline.config import Config
from hookline.errors import BusConnectionError, HooklineError
from hookline.protocol.verdict import Verdict

from . import connection
from .messages import json_line, log_to_stderr, logs_json
from .monitor import Monitor, parse_address
from .options import Options, Parser, at_least, load_config
from .signals import reload_on_hangup, stop_on_signals
from .terminal import plural

if TYPE_CHECKING:
    from hookline.bus.nats import NatsBus
    from hookline.engine.system import HookSystem

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

_log = logging.getLogger("hookline.serve")
_reload_log = logging.getLogger("hookline.reload")

_NO_HOOKS = """\
no hooks are configured for %s, so every request is allowed: see --cwd and --settings"""
_HOOKS_MISSING = """\
no hooks are configured for %s: taking no requests until there are (--require-hooks)"""
_POLL_S = 0.1
RELOAD_S = 1.0
"""How often the settings are looked at."""


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
    async with _following_settings(system), system:
        server = RequestServer(system.event_handler, max_concurrent=options.concurrency)
        with monitor.watch(config, system, server):
            monitor.bus = bus = await connection.connect(options, queue=options.queue)
            stopping = asyncio.Event()
            stop_on_signals(asyncio.get_running_loop(), stopping.set)
            try:
                if not system.active_hooks:
                    required = options.require_hooks
                    text = _HOOKS_MISSING if required else _NO_HOOKS
                    _log.warning(text, config.working_dir)
                while options.require_hooks and not system.active_hooks:
                    if stopping.is_set():
                        return
                    await asyncio.sleep(_POLL_S)
                bus.serve(_logged(server.handle_request))
                await bus.ready()
                # Exclude long-lived objects from garbage collection, and collect less
                # often: requests leave few cycles, and the default thresholds cost a
                # tenth of a worker's time.
                gc.collect()
                gc.freeze()
                gc.set_threshold(20_000, 20, 20)
                hooks = plural(system.status.total_hooks, "hook")
                ready = f"ready, serving {hooks} on {bus.subject} as {bus.queue}"
                line = f"hookline: {ready}"
                if logs_json(options):
                    # Collectors of logs read both streams as one.
                    line = json_line("info", _log.name, {"message": ready})
                print(line, flush=True)
                await _wait_for(stopping, bus)
                monitor.stopping = True
                _log.info("stopping: finishing requests in progress")
                await bus.drain()
            finally:
                await bus.close()


async def _wait_for(stopping: asyncio.Event, bus: NatsBus) -> None:
    """Wait for a signal; raises if the connection is lost for good."""
    closed = asyncio.ensure_future(bus.wait_closed())
    stopped = asyncio.ensure_future(stopping.wait())
    await asyncio.wait({closed, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if closed.done() and not stopping.is_set():
        stopped.cancel()
        raise BusConnectionError(bus.subject, closed.result() or "closed")
    closed.cancel()


@asynccontextmanager
async def _following_settings(system: HookSystem) -> AsyncIterator[None]:
    """Reload settings that have changed, and whenever SIGHUP arrives."""
    hangup = asyncio.Event()

    async def follow() -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(hangup.wait(), RELOAD_S)
            is_hangup = hangup.is_set()
            if not is_hangup and not system.settings_changed():
                continue
            hangup.clear()
            outcome = await system.reload()
            if is_hangup and not outcome.changed and not outcome.problems:
                _reload_log.info("settings have not changed")

    reload_on_hangup(asyncio.get_running_loop(), hangup.set)
    _reload_log.setLevel(
        logging.INFO
    )  # also without --verbose: it is rare, and matters
    following = asyncio.create_task(follow())
    try:
        yield
    finally:
        following.cancel()
        await asyncio.wait({following})
        # It must not kill hooks that finish, either.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _logged(handle: RequestHandler) -> RequestHandler:
    """Log one line per request with ``--verbose``."""
    if not _log.isEnabledFor(logging.INFO):
        return handle

    async def handle_and_log(payload: Any) -> HookExecutionResponse:
        started = time.perf_counter()
        response = await handle(payload)
        took_ms = (time.perf_counter() - started) * 1000
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
            "event": payload.get("eventName") if isinstance(payload, dict) else None,
            "correlation_id": response["correlationId"],
            "verdict": verdict.word.value,
            "error": error["code"] if error else None,
            "duration_ms": round(took_ms, 1),
        }
        # %r: a request must not be able to forge lines in the log. The error, and
        # before it a colon, is written of failed ones only.
        text = "%.60r %.80r %s%.0s %.1f ms"
        if request["verdict"] == "failed":
            text = "%.60r %.80r %s: %s %.1f ms"
        _log.info(text, *request.values(), extra={"request": request})
        return response

    return handle_and_log
