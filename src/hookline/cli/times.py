"""Times as people write and read them."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

from hookline.errors import HooklineError

_SPAN = re.compile(r"([0-9]{1,9})\s*(s|m|h|d|w)", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def parse_since(text: str) -> float:
    """Read a point in time: a span before now, a date, or a date with a time."""
    given = text.strip()
    span = _SPAN.fullmatch(given)
    if span:
        return time.time() - int(span[1]) * _SECONDS[span[2].lower()]
    try:
        if given.lower() in {"today", "yesterday"}:
            return _midnight(days_ago=0 if given.lower() == "today" else 1)
        # Without an offset it is the time of day of whoever typed it.
        return datetime.fromisoformat(given).astimezone().timestamp()
    except (ValueError, OverflowError):
        raise HooklineError(
            f"--since {text!r} is no time: give a span such as 90s, 30m, 2h, 3d or 1w, "
            "'today', or a date such as 2026-11-01 or 2026-11-01T09:30"
        ) from None


def clock(at: float) -> str:
    """Local date and time, to the second."""
    return _local(at).strftime("%Y-%m-%d %H:%M:%S")


def iso(at: float) -> str:
    """The time as hooks get it: ISO 8601, UTC, milliseconds."""
    stamp = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return stamp.replace("+00:00", "Z")


def took(duration_ms: float) -> str:
    """A duration with three digits or so."""
    if duration_ms >= 10_000:
        return f"{duration_ms / 1000:.1f} s"
    return f"{duration_ms:.0f} ms" if duration_ms >= 100 else f"{duration_ms:.1f} ms"


def _midnight(days_ago: int) -> float:
    day = datetime.now().astimezone() - timedelta(days=days_ago)
    return day.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def _local(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC).astimezone()
