from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hookline.journal.query import figures_of, percentile


def run(name: str, duration_ms: float, **more: int) -> dict[str, object]:
    flags = dict.fromkeys(("failed", "blocked", "would_block", "timed_out"), 0)
    flags |= {"standby_hit": 0, "standby_miss": 0} | more
    return {"name": name, "source": "project", "duration_ms": duration_ms, **flags}


def test_runs_are_counted_hook_by_hook_the_most_frequent_first() -> None:
    runs = [
        run("a", 1.0, blocked=1),
        run("b", 5.0, failed=1, timed_out=1, standby_miss=1),
        run("b", 7.0, standby_hit=1),
        run("b", 6.0, would_block=1),
    ]
    b, a = figures_of(runs)
    assert (b.name, b.runs, b.blocks, b.failures, b.timeouts) == ("b", 3, 0, 1, 1)
    assert (b.p50_ms, b.p99_ms, b.max_ms, b.would_block) == (6.0, 7.0, 7.0, 1)
    assert (b.standby_hits, b.standby_misses) == (1, 1)
    assert (a.name, a.runs, a.blocks) == ("a", 1, 1)


def test_percentiles_of_a_hundred_values_are_those_values() -> None:
    ordered = [float(number) for number in range(1, 101)]
    assert [percentile(ordered, p) for p in (50, 95, 99)] == [50.0, 95.0, 99.0]


@given(
    st.lists(st.floats(0, 1e6), min_size=1).map(sorted),
    st.floats(min_value=0.1, max_value=100),
)
def test_a_percentile_is_a_value_with_that_share_at_or_below_it(
    ordered: list[float], percent: float
) -> None:
    found = percentile(ordered, percent)
    assert found in ordered
    not_above = sum(value <= found for value in ordered)
    assert not_above * 100 >= percent * len(ordered) * (1 - 1e-9)
