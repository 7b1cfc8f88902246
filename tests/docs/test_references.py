"""References in code to pages of this repository lead to a heading that is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from .pages import PAGES, ROOT, anchors_of

REFERENCE = re.compile(r"(?<![\w/])((?:[\w-]+/)*[\w-]+\.md)#([\w-]+)")
FOLDERS = ("src", "tests", "benches", "soak", "examples")


def references() -> Iterator[tuple[str, str, str]]:
    for folder in FOLDERS:
        for source in sorted((ROOT / folder).rglob("*.py")):
            for page, anchor in REFERENCE.findall(source.read_text()):
                yield str(source.relative_to(ROOT)), page, anchor


def test_references_in_code_lead_to_a_heading_of_a_page() -> None:
    """The specification is in this repository, and what is proven can be looked up."""
    anchors = cache(anchors_of)
    missing = []
    for source, page, anchor in references():
        matches = [path for path in PAGES if f"/{path}".endswith(f"/{page}")]
        if not any(anchor in anchors(path) for path in matches):
            missing.append(f"{source}: {page}#{anchor}")
    assert missing == []


def test_no_reference_leads_to_a_document_outside_of_the_repository() -> None:
    outside = re.compile(
        r"\b(?:PROTOCOL|DESIGN|HOSTS|FRAMEWORKS)(?:\.md|,? (?:section |rule )?\d)"
    )
    assert [
        str(source.relative_to(ROOT))
        for folder in FOLDERS
        for source in sorted((ROOT / folder).rglob("*.py"))
        if source != Path(__file__).resolve() and outside.search(source.read_text())
    ] == []
