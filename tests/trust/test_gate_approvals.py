"""Whether pinned files are unchanged, and when their bytes are read to find out.

How often files are read cannot be seen from outside, so this asks the pins themselves.
"""

from __future__ import annotations

from pathlib import Path

from hookline.trust.gate import PinnedPaths
from hookline.trust.pins import Pins, take_pin

FAR_FUTURE_NS = 1 << 62


class CountedReads:
    """Pins one file, and counts how often."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.count = 0

    def __call__(self) -> Pins:
        self.count += 1
        return {self.path: take_pin(self.path)}


def test_bytes_are_read_again_only_when_times_or_size_differ(tmp_path: Path) -> None:
    file = tmp_path / "guard.sh"
    file.write_text("one")
    reads = CountedReads(file)
    pinned = PinnedPaths(reads(), reads, str(tmp_path), clock_ns=lambda: FAR_FUTURE_NS)
    assert [pinned.check()[0] for _ in range(5)] == [None] * 5
    assert reads.count == 2
    file.write_text("two")
    assert pinned.check()[0] == "guard.sh changed since it was approved"


def test_bytes_are_read_every_time_while_the_file_is_recent(
    tmp_path: Path,
) -> None:
    file = tmp_path / "guard.sh"
    file.write_text("one")
    reads = CountedReads(file)
    pinned = PinnedPaths(
        reads(), reads, str(tmp_path), clock_ns=lambda: file.stat().st_mtime_ns
    )
    for _ in range(5):
        pinned.check()
    assert reads.count == 6


def test_changed_file_is_read_once_for_all_that_ask(tmp_path: Path) -> None:
    """A project with many hooks and files takes no longer than with one."""
    file = tmp_path / "guard.sh"
    file.write_text("one")
    reads = CountedReads(file)
    approved = reads()
    pinned = PinnedPaths(approved, reads, str(tmp_path), clock_ns=lambda: FAR_FUTURE_NS)
    file.write_text("two")
    changed = "guard.sh changed since it was approved"
    assert [pinned.check()[0] for _ in range(5)] == [changed] * 5
    assert reads.count == 2
    file.write_text("one")
    assert pinned.check()[0] is None
