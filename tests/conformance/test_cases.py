"""The protocol as data: every case fired by the command line.

Each file in ``cases/`` names in its ``ids`` the requirements that it proves.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from .case import Case, Outcome, fire, read_case, shortfalls

OWN = Path(__file__).parent / "cases"
# ``make conformance DIR=...`` runs cases from elsewhere.
FOLDERS = [Path(name) for name in os.environ.get("CONFORMANCE", "").split()] or [OWN]
FILES = sorted(file for folder in FOLDERS for file in folder.glob("*.json"))


CASES = [read_case(file) for file in FILES]


PARTS = 8
"""Workers of a test run share the cases."""


@pytest.mark.parametrize("part", range(PARTS))
def test_conformance_cases_hold(
    part: int, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for case in CASES[part::PARTS]:
        with subtests.test(case.name):
            top = tmp_path / case.name
            top.mkdir()
            assert shortfalls(case, fire(case, top), top) == []


def test_conformance_cases_are_named_like_their_files_and_name_a_requirement() -> None:
    pairs = zip(FILES, CASES, strict=True)
    assert [file.stem for file, case in pairs if case.name != file.stem] == []
    assert [case.name for case in CASES if not case.ids] == []


def test_every_kind_of_difference_is_found(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "there").write_text("1")
    (tmp_path / "project" / "seen.json").write_text(json.dumps({"a": [1]}))
    case = Case(
        *("bad", ["protocol.md#process"], "BeforeTool", {}, {}, {}),
        expect={"success": True, "hooks.0.name": "h0"},
        expect_json={"seen.json": {"a.0": True}},
        expect_text={"there": "2", "nowhere": "x"},
        expect_missing=["there"],
        expect_min_int={"there": 2},
        max_seconds=1,
        max_rss_mb=1,
    )
    answer = {"success": 1, "blocked": True, "should_stop": False}
    outcome = Outcome(answer, status=0, seconds=2, rss_mb=2)
    assert len(shortfalls(case, outcome, tmp_path)) == 10
