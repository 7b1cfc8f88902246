"""What each check says, from a known state (issue 16: ``/healthz`` and ``/readyz``)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hookline.telemetry.health import WorkerState, live_checks, ready_checks, report

READY = WorkerState(bus_connected=True)


def test_a_worker_that_is_connected_with_valid_settings_is_ready() -> None:
    assert report(ready_checks(READY))["status"] == "ok"
    assert list(ready_checks(READY)) == ["event_loop", "bus", "settings", "workers"]


@pytest.mark.parametrize(
    ("check", "change", "message"),
    [
        ("bus", {"bus_connected": False}, "not connected"),
        ("bus", {"stopping": True}, "stopping"),
        ("settings", {"settings_errors": 1}, "1 error: see the log"),
        ("settings", {"settings_errors": 2}, "2 errors"),
        ("workers", {"lost": ("a", "b\n")}, r"no process is left of 'a', 'b\n'"),
    ],
)
def test_what_is_wrong_is_named_with_its_check(
    check: str, change: dict[str, object], message: str
) -> None:
    state = replace(READY, **change)
    checks = ready_checks(state)
    assert [name for name, found in checks.items() if not found.ok] == [check]
    assert message in checks[check].message
    assert report(checks)["status"] == "failed"
    assert report(live_checks(state))["status"] == "ok"


def test_a_loop_that_does_not_answer_is_neither_alive_nor_ready() -> None:
    for checks in (live_checks(None), ready_checks(None)):
        assert report(checks)["status"] == "failed"
        assert "does not answer" in checks["event_loop"].message


def test_after_a_failed_reload_the_settings_in_use_are_valid() -> None:
    checks = ready_checks(replace(READY, reloaded=False))
    assert checks["settings"].ok
    assert "the last reload failed" in checks["settings"].message


def test_many_lost_hooks_with_long_names_make_no_long_answer() -> None:
    state = replace(READY, lost=tuple(f"{n}" + "x" * 10_000 for n in range(1000)))
    assert len(ready_checks(state)["workers"].message) < 2000
