from __future__ import annotations

from pathlib import Path

import pytest

from .bench import CRASH, GUARD, Bench, before_tool, group


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Four events: allowed, blocked, failed, unmatched; no test adds to them."""
    bench = Bench(tmp_path_factory.mktemp("recorded"))
    settings = bench.settings(
        "s.json",
        before_tool(group(GUARD, matcher="write"), group(CRASH, matcher="run")),
    )
    bench.fire(settings, "write_file", path="a")
    bench.fire(settings, "write_file", path="forbidden")
    bench.fire(settings, "run_tests", path="b")
    bench.fire(settings, "read_file", path="c", password="hunter2")
    return bench
