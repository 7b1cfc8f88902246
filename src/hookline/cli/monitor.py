"""``hookline serve --metrics``: what the worker is asked for while it runs."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from hookline.bus.server import RequestServer
from hookline.config import Config
from hookline.plan import RegisteredHook
from hookline.settings.model import TrustStatus
from hookline.telemetry.health import WorkerState

from .messages import note
from .options import Options

if TYPE_CHECKING:
    from hookline.bus.nats import NatsBus
    from hookline.engine.system import HookSystem
    from hookline.telemetry.prometheus import PrometheusTelemetry

_HOST = "127.0.0.1"
_HOOK_STATES = (
    "enabled",
    "disabled",
    *(s.value for s in TrustStatus if s != "trusted"),
)


def parse_address(text: str) -> tuple[str, int]:
    """Parse ``PORT``, ``HOST:PORT`` or ``[IPv6]:PORT``."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if colon else _HOST
    if not host or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r}: expected PORT or HOST:PORT")
    return host, int(port)


class Monitor:
    """Counts what a worker does, and says whether it is ready; idle without a port."""

    def __init__(self, options: Options) -> None:
        self.bus: NatsBus | None = None
        self.stopping = False
        self.figures: PrometheusTelemetry | None = None
        """What the hook system tells about its events."""
        self._options = options
        if options.metrics is not None:
            # Most workers have no port for this, and need not have the package.
            from hookline.telemetry.prometheus import PrometheusTelemetry

            self.figures = PrometheusTelemetry()

    @contextmanager
    def watch(
        self, config: Config, system: HookSystem, server: RequestServer
    ) -> Iterator[None]:
        """Answer at the port until the end of the block."""
        if self.figures is None:
            yield
            return
        from hookline.telemetry.endpoints import Endpoints

        endpoints = Endpoints(
            self.figures, partial(self._state, config, system, server)
        )
        address = endpoints.start(*self._options.metrics)
        note(f"hookline: metrics on http://{address}/metrics", self._options)
        try:
            yield
        finally:
            endpoints.stop()

    def _state(
        self, config: Config, system: HookSystem, server: RequestServer
    ) -> WorkerState:
        """The state of the worker; called on its event loop."""
        hooks, health, bus = system.get_all_hooks(), system.health(), self.bus
        counts = Counter(map(_hook_state, hooks))
        skipped = {hook.name for hook in health.skipped}
        return WorkerState(
            bus_connected=bus is not None and bus.is_connected,
            stopping=self.stopping,
            settings_errors=len(config.settings.errors),
            settings_loaded_at=health.settings_loaded_at,
            reloaded=not health.reload_failed,
            hooks={state: counts[state] for state in _HOOK_STATES},
            lacks_hooks=system.require_hooks and not system.active_hooks,
            breakers={hook.name: hook.name in skipped for hook in hooks},
            processes=health.processes,
            lost=health.lost,
            dropped=Counter(server.dropped)
            + Counter(overload=0 if bus is None else bus.overloads),
            in_flight=server.in_flight,
            waiting=server.waiting,
        )


def _hook_state(hook: RegisteredHook) -> str:
    if not hook.enabled:
        return "disabled"
    return "enabled" if hook.trust is TrustStatus.TRUSTED else hook.trust.value
