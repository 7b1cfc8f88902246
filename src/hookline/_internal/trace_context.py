"""The trace context of a request (W3C): written by the requester, checked by a worker.

A requester needs no setting for it: it sends the context of the current span, if its
host uses OpenTelemetry at all.
"""

from __future__ import annotations

import re
import sys
from typing import Any, TypeAlias

_PARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_STATE = re.compile(r"[ -~]{1,512}")


TraceContext: TypeAlias = dict[str, str]
"""``traceparent`` and maybe ``tracestate``; empty for none."""


def current_trace() -> TraceContext:
    """The trace context of the host's current span."""
    if "opentelemetry.trace" not in sys.modules:
        return {}
    from opentelemetry.trace.propagation.tracecontext import (
        TraceContextTextMapPropagator,
    )

    context: dict[str, str] = {}
    try:
        TraceContextTextMapPropagator().inject(context)
    # Spans are objects of the host.
    except Exception:  # noqa: BLE001
        return {}
    return checked_trace(context)


def checked_trace(context: Any) -> TraceContext:
    """The valid part of a trace context that anybody may have sent."""
    if not isinstance(context, dict):
        return {}
    parent, state = context.get("traceparent"), context.get("tracestate")
    if not isinstance(parent, str) or not _PARENT.fullmatch(parent):
        return {}
    if not isinstance(state, str) or not _STATE.fullmatch(state):
        return {"traceparent": parent}
    return {"traceparent": parent, "tracestate": state}
