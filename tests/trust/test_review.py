"""What changed since an approval is shown soon, whatever the files hold."""

from __future__ import annotations

import pytest

from hookline.trust.review_text import MAX_COMPARED_LINES, line_diff


def applied(old: list[str], diff: list[str]) -> list[str]:
    """The lines that a diff makes of the old ones."""
    header = next(line for line in diff if line.startswith("@@"))
    start, count = map(int, header.split()[1][1:].split(","))
    body = diff[diff.index(header) + 1 :]
    replaced = [line[1:] for line in body if line[0] in " +"]
    assert [line[1:] for line in body if line[0] in " -"] == old[start - 1 :][:count]
    return [*old[: start - 1], *replaced, *old[start - 1 + count :]]


@pytest.mark.parametrize("place", [0, 1, 2000, 2999])
def test_change_in_a_long_text_is_one_small_hunk(place: int) -> None:
    old = [f"line {number % 7}" for number in range(3000)]
    new = [*old[:place], "changed", *old[place + 1 :]]
    diff = line_diff(old, new)
    assert "+changed" in diff
    assert len(diff) < 210
    assert applied(old, diff) == new


def test_long_texts_that_share_every_second_line_are_compared_at_once() -> None:
    """Finding the smallest diff of these would take hours."""
    many = MAX_COMPARED_LINES * 40
    old = [f"x{n % 900}" if n % 2 else f"old {n}" for n in range(many)]
    new = [f"x{n % 900}" if n % 2 else f"new {n}" for n in range(many)]
    assert applied(old, line_diff(old, new)) == new
