"""``hookline stats``."""

from __future__ import annotations

import re

from .bench import Bench


def test_stats_counts_per_hook(recorded: Bench) -> None:
    guard, crash = recorded.json("stats")
    assert (guard["name"], guard["runs"], guard["blocks"], guard["failures"]) == (
        *("guard", 2),
        *(1, 0),
    )
    assert (crash["name"], crash["runs"], crash["blocks"], crash["failures"]) == (
        *("crash", 1),
        *(0, 1),
    )
    assert 0 < guard["p50_ms"] <= guard["p95_ms"] <= guard["p99_ms"] <= guard["max_ms"]
    lines = recorded.run("stats").stdout.splitlines()
    assert lines[0].split() == [
        *("hook", "source", "runs", "blocks", "failures", "p50", "p95", "p99")
    ]
    assert re.match(r"guard +project +2 +1 +0 .*█", lines[1])
    assert lines[-1].startswith("4 events from ")


def test_stats_takes_the_filters_of_log(recorded: Bench) -> None:
    assert [hook["name"] for hook in recorded.json("stats", "--hook", "c*")] == [
        "crash"
    ]
    assert recorded.json("stats", "--since", "2099-01-01") == []
