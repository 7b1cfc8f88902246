"""When the bytes of pinned files are read to find out whether they are unchanged.

That cannot be seen from outside, so this asks the pins themselves.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hookline.trust.gate import PinnedFiles
from hookline.trust.pins import Pins, take_pin


class CountedReads:
    """Pins one file, and counts how often."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.count = 0

    def __call__(self) -> Pins:
        self.count += 1
        return {self.path: take_pin(self.path)}


def test_bytes_are_read_again_only_where_times_differ_or_are_recent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed file is read once for all hooks that ask, too."""
    file = tmp_path / "guard.sh"
    file.write_text("one")
    reads = CountedReads(file)
    pinned = PinnedFiles(str(tmp_path), reads(), reads, exact=[str(file)])
    assert [pinned.check()[0] for _ in range(5)] == [None] * 5
    assert reads.count == 6
    later = time.time_ns() + 3_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: later)
    assert [pinned.check()[0] for _ in range(5)] == [None] * 5
    assert reads.count == 7
    file.write_text("two")
    changed = "guard.sh changed since it was approved"
    assert [pinned.check()[0] for _ in range(5)] == [changed] * 5
    assert reads.count == 8
    file.write_text("one")
    assert pinned.check()[0] is None
