"""The page of ``docs/how-to/hosts`` and ``make hosts`` agree with the hosts' tables."""

from __future__ import annotations

import pytest

from hookline.hosts.registry import host_of
from tests.docs.hosts import OVERVIEW, with_table

from .cases import CASES
from .page import limits_table
from .programs import PROGRAMS


def test_page_shows_what_each_host_can_express() -> None:
    """``python -m tests.hosts.real --write-docs`` writes it."""
    text = OVERVIEW.read_text()
    assert with_table(text, "limits", limits_table()) == text


@pytest.mark.parametrize("name", PROGRAMS)
def test_page_shows_what_was_seen_of_each_observed_version(name: str) -> None:
    program, host = PROGRAMS[name], host_of(name)
    assert program.version == host.tested
    seen = OVERVIEW.read_text().split("<!-- seen -->")[1]
    assert f" {name} {program.version} |" in seen.partition("<!-- /seen -->")[0]
    assert all(f"| {case.title} |" in seen for case in CASES)
