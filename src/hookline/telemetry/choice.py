"""Which telemetry a hook system has: what its host says, else what settings say."""

from __future__ import annotations

from typing import Literal

from hookline.errors import HooklineError, MissingExtraError
from hookline.log import logger
from hookline.settings.model import Exporter, TelemetryOptions

from .contract import Telemetry
from .together import Together

TelemetryChoice = Telemetry | Literal["otel", "off"] | bool | None
"""A backend, its name, False or ``off`` for none, None for what settings say."""


def choose_telemetry(
    choice: TelemetryChoice, options: TelemetryOptions | None
) -> Telemetry | None:
    """Build the telemetry of a hook system; raises for a choice that cannot be had.

    What settings ask for and cannot be had is a warning: the hooks work without it.
    """
    if choice is False or choice == "off":
        return None
    content = options is not None and options.content
    if choice is None:
        return None if options is None else _from_settings(content)
    if choice == Exporter.OTEL.value:
        return _otel(content)
    if isinstance(choice, str | bool):
        expected = "expected 'otel', 'off', False, None or a Telemetry"
        raise HooklineError(f"telemetry={choice!r}: {expected}")
    return choice if isinstance(choice, Together) else Together(choice)


def _from_settings(content: bool) -> Telemetry | None:
    try:
        return _otel(content)
    except MissingExtraError as error:
        logger.warning("hooksConfig.telemetry is ignored: %s", error)
        return None


def _otel(content: bool) -> Telemetry:
    from .otel import OtelTelemetry

    return Together(OtelTelemetry(content=content))
