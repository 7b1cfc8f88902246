"""When the bytes of pinned files are read to find out whether they are unchanged.

That cannot be seen from outside, so this asks for the pins themselves.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hookline.trust.pins import take_pin


def test_bytes_are_read_again_only_where_times_differ_or_are_recent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed file is read once for all hooks that ask, too."""
    file = tmp_path / "guard.sh"
    file.write_text("one")
    reads: list[str] = []
    open_file = os.open

    def count(path: str, flags: int) -> int:
        reads.append(path)
        return open_file(path, flags)

    monkeypatch.setattr(os, "open", count)
    first, *others = [take_pin(str(file)) for _ in range(5)]
    assert (others, len(reads)) == ([first] * 4, 5)
    later = time.time_ns() + 3_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: later)
    assert [take_pin(str(file)) for _ in range(5)] == [first] * 5
    assert len(reads) == 6
    file.write_text("two")
    second, *others = [take_pin(str(file)) for _ in range(5)]
    assert (others, len(reads)) == ([second] * 4, 7)
    assert second.digest != first.digest
    file.chmod(0o600)
    assert take_pin(str(file)).mode == 0o600
    file.write_text("one")
    assert take_pin(str(file)).digest == first.digest
