"""Is a worker ready? What is known of it, and what that means for each check.

Pure. What it says is for anybody who can reach the port: it names hooks, and neither
addresses nor contents of settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from hookline.journal.redact import Masker

_MAX_NAMES = 10
_MAX_NAME = 100


class WorkerState(Struct, frozen=True, kw_only=True):
    """What one worker of a bus looks like at a moment."""

    bus_connected: bool = False
    stopping: bool = False
    settings_errors: int = 0
    settings_loaded_at: float = 0.0
    """Of those in use, in seconds since the epoch."""
    reloaded: bool = True
    """Whether the last attempt to load settings succeeded."""
    hooks: Mapping[str, int] = {}
    """How many hooks there are, by their state."""
    lacks_hooks: bool = False
    """Whether there must be hooks, and there is none."""
    breakers: Mapping[str, bool] = {}
    """By the name of a hook: whether it is skipped because it keeps timing out."""
    processes: int = 0
    """Processes of worker hooks that live."""
    lost: tuple[str, ...] = ()
    """Hooks whose process is gone and was not replaced yet."""
    dropped: Mapping[str, int] = {}
    """How many requests were not run, by the reason."""
    in_flight: int = 0
    waiting: int = 0


class Check(Struct, frozen=True, omit_defaults=True):
    """The outcome of one check."""

    ok: bool
    message: str = ""


def live_checks(state: WorkerState | None) -> dict[str, Check]:
    """Whether the process lives; None is a loop that does not answer."""
    if state is None:
        return {"event_loop": Check(False, "it does not answer: a hook may block it")}
    return {"event_loop": Check(True)}


def ready_checks(state: WorkerState | None) -> dict[str, Check]:
    """Whether requests are answered as they should be."""
    checks = live_checks(state)
    if state is not None:
        checks["bus"] = _bus(state)
        checks["settings"] = _settings(state)
        checks["workers"] = _workers(state)
    return checks


def _bus(state: WorkerState) -> Check:
    if state.stopping:
        return Check(False, "stopping: no new requests are taken")
    if state.bus_connected:
        return Check(True)
    return Check(False, "not connected, or not allowed to subscribe: see the log")


def _settings(state: WorkerState) -> Check:
    if state.settings_errors:
        count = f"{state.settings_errors} error"
        plural = "" if state.settings_errors == 1 else "s"
        return Check(False, f"{count}{plural}: see the log, or run 'hookline check'")
    if state.lacks_hooks:
        return Check(False, "no hooks are configured, and --require-hooks was given")
    if not state.reloaded:
        return Check(True, "the last reload failed: the previous ones are in use")
    return Check(True)


def _workers(state: WorkerState) -> Check:
    if not state.lost:
        return Check(True)
    lost = map(Masker(texts=True).mask_text, state.lost[:_MAX_NAMES])
    names = ", ".join(repr(name[:_MAX_NAME]) for name in lost)
    more = ", ..." if len(state.lost) > _MAX_NAMES else ""
    return Check(False, f"no process is left of {names}{more}; another will be started")


def report(checks: Mapping[str, Check]) -> dict[str, Any]:
    """The answer to whoever asks, as an object."""
    status = "ok" if all(check.ok for check in checks.values()) else "failed"
    return {"status": status, "checks": checks}
