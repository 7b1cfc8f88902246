"""Text for the terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """Replace control characters, so that foreign text cannot control the terminal."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for c in text
    )


def one_line(text: str | None) -> str:
    """Make foreign text printable on one line."""
    return printable(" ".join((text or "").split()))


def shorten(text: str, limit: int) -> str:
    """Truncate a text that is longer than ``limit``."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def plural(number: int, noun: str) -> str:
    """A count with its noun: ``1 hook``, ``2 hooks``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_duration(duration_ms: float) -> str:
    """A duration with about three digits."""
    if duration_ms >= 10_000:
        return f"{duration_ms / 1000:.1f} s"
    return f"{duration_ms:.0f} ms" if duration_ms >= 100 else f"{duration_ms:.1f} ms"
