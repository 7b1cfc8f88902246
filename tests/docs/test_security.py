"""Every test that SECURITY.md names exists, in the file it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text()
FILES = sorted(set(re.findall(r"`(tests/[\w/.]+)`", PAGE)))
TESTS = re.findall(r"`(test_\w+)`", PAGE)


@pytest.mark.parametrize("file", FILES)
def test_file_of_tests_exists(file: str) -> None:
    assert (ROOT / file).exists()


@pytest.mark.parametrize("name", TESTS)
def test_named_test_exists(name: str) -> None:
    sources = (ROOT / file for file in FILES if file.endswith(".py"))
    assert any(f"def {name}(" in source.read_text() for source in sources)
