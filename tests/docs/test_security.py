"""Every test that SECURITY.md names exists, in one of the files it names."""

from __future__ import annotations

import re

from .pages import ROOT


def test_every_test_that_the_page_names_exists() -> None:
    page = (ROOT / "SECURITY.md").read_text()
    files = [ROOT / file for file in set(re.findall(r"`(tests/[\w/.]+)`", page))]
    assert [str(file) for file in files if not file.exists()] == []
    sources = "".join(file.read_text() for file in files if file.suffix == ".py")
    names = re.findall(r"`(test_\w+)`", page)
    assert len(names) > 100
    assert [name for name in names if f"def {name}(" not in sources] == []
