"""Which telemetry a hook system has: what its host says, else what settings say."""

from __future__ import annotations

from typing import Literal

from hookline._internal.log import logger
from hookline.errors import HooklineError, MissingExtraError
from hookline.settings.model import Exporter, TelemetryOptions

from .contract import Telemetry
from .together import Together

TelemetryChoice = Telemetry | Literal["otel", "off"] | bool | None
"""A backend, its name, False or ``off`` for none, None for what settings say."""


def choose_telemetry(
    choice: TelemetryChoice, options: TelemetryOptions | None
) -> Together | None:
    """Build the telemetry of a hook system; raises for a choice that cannot be had.

    A backend of the host stands beside what settings ask for. What they ask for and
    cannot be had is a warning: the hooks work without it.
    """
    if choice is False or choice == "off":
        return None
    if choice == Exporter.OTEL.value:
        return Together(_otel(options))
    start = getattr(Together if choice is None else choice, "start_event", None)
    if isinstance(choice, str | bool | type) or not callable(start):
        expected = "expected 'otel', 'off', False, None or a Telemetry"
        raise HooklineError(f"telemetry={choice!r}: {expected}")
    chosen: tuple[Telemetry, ...] = () if choice is None else (choice,)
    if isinstance(choice, Together):
        chosen = choice.backends
    by_settings = [] if options is None else _from_settings(options)
    kinds = {type(backend) for backend in chosen}
    backends = (
        *chosen,
        *(backend for backend in by_settings if type(backend) not in kinds),
    )
    return Together(*backends) if backends else None


def _from_settings(options: TelemetryOptions) -> list[Telemetry]:
    try:
        return [_otel(options)]
    except MissingExtraError as error:
        logger.warning("hooksConfig.telemetry is ignored: %s", error)
        return []


def _otel(options: TelemetryOptions | None) -> Telemetry:
    from .otel import OtelTelemetry

    return OtelTelemetry(content=options is not None and options.content)
