"""What a hooked client knows of one call: its stop, its allowed tools, its notes.

A call of the SDK with automatic function calling is several model calls with function
calls in between; all of them share one ``CallState``.
"""

from __future__ import annotations

from collections.abc import Callable


class CallState:
    """Of one call: who may still be called, and whether it is over."""

    def __init__(self, on_stop: Callable[[str], None] | None = None) -> None:
        self._on_stop = on_stop
        self.stop_reason: str | None = None
        self.allowed_names: frozenset[str] | None = None
        self.notes: list[str] = []

    def stop(self, reason: str | None) -> None:
        """Let nothing more of this call happen."""
        if self.stop_reason is None:
            self.stop_reason = reason or "Stopped by hook"
            if self._on_stop is not None:
                self._on_stop(self.stop_reason)

    def problem(self, name: str) -> str | None:
        """Why a function must not be called now."""
        if self.stop_reason is not None:
            return f"Not run: {self.stop_reason}"
        if self.allowed_names is not None and name not in self.allowed_names:
            left = ", ".join(sorted(self.allowed_names)) or "none"
            return f"Tool {name!r} is not allowed now (allowed: {left})"
        return None
