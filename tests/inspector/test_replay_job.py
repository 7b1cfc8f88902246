"""Issue 16: what a replay finds takes no memory, however much it is."""

from __future__ import annotations

import os
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from hookline.inspector.replay_job import (
    MAX_KEPT,
    MAX_KEPT_BYTES,
    FoundChanges,
    PastedSettings,
)
from hookline.settings.load import Settings


def change(n: int, after: str = "blocked", **more: Any) -> dict[str, Any]:
    return {"id": n, "before": "allowed", "after": after, "apart": None, **more}


def test_changes_are_read_page_by_page() -> None:
    found = FoundChanges()
    for n in range(250):
        found.add(change(n, "ask" if n % 5 == 0 else "blocked"))
    first, following = found.page(0, 100)
    assert [one["id"] for one in first] == [one["n"] for one in first] == [*range(100)]
    assert following == 100
    last, following = found.page(200, 100)
    assert (len(last), following) == (50, None)
    only, following = found.page(0, 30, kinds=[0])
    assert [one["after"] for one in only] == ["ask"] * 30
    rest, following = found.page(following or 0, 30, kinds=[0])
    assert (len(rest), following) == (20, None)
    assert found.page(0, 10, kinds=[7]) == ([], None)
    found.close()


def test_a_hundred_thousand_changes_take_no_memory() -> None:
    found = FoundChanges()
    text = "a reason that says why " * 5
    tracemalloc.start()
    try:
        for n in range(MAX_KEPT + 500):
            found.add(change(n, reason=text))
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found) == MAX_KEPT
    assert found.counts.total() == MAX_KEPT + 500
    assert size < 4 * 1024 * 1024
    assert found.page(MAX_KEPT - 1, 100)[0][0]["id"] == MAX_KEPT - 1
    found.close()


def test_changes_with_huge_values_are_cut_and_bounded() -> None:
    found = FoundChanges()
    values = [{"what": "changed input", "before": None, "after": "x" * 5_000_000}]
    found.add(change(1, changes=values, reason="y" * 5_000_000))
    (kept,), _ = found.page(0, 1)
    assert kept["changes"][0]["after"].endswith("(cut)")
    assert sys.getsizeof(str(kept)) < 100_000
    values = [{"what": "changed input", "before": "x" * 16_000, "after": "y" * 16_000}]
    for n in range(3000):
        found.add(change(n, changes=values))
    assert len(found) < 3000
    assert found.counts.total() == 3001
    assert sum(len(str(one)) for one in found.page(0, 3000)[0]) < 2 * MAX_KEPT_BYTES
    found.close()


@pytest.mark.parametrize("store", ["memory", "disk"])
@pytest.mark.parametrize(
    ("text", "content"),
    [('{"hooks": {}}', None), ("// why\n{}", None), ("[hooks]\n", '{"hooks":{}}')],
)
def test_pasted_settings_are_readable_by_their_owner_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    content: str | None,
    store: str,
) -> None:
    """In memory a server that is killed leaves nothing of them on the disk."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if store == "disk":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    pasted = PastedSettings(text)
    file = Path(pasted.path)
    assert file.read_text() == (content or text)
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(list(tmp_path.iterdir())) == (store == "disk")
    Settings.from_file(file)
    assert pasted.hide(f"{file}:1: bad") == "the pasted settings:1: bad"
    pasted.remove()
    pasted.remove()
    assert list(tmp_path.iterdir()) == []
    assert not file.exists()
