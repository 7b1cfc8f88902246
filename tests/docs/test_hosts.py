"""The pages of the hosts agree with the hosts' tables."""

from __future__ import annotations

import pytest

from hookline.hosts.host import Host
from hookline.hosts.registry import HOSTS

from .hosts import AGENTS, OVERVIEW, TABLE, agents_table, page_of, table_of, with_table
from .pages import steps_of

WITH_PAGES = [host for host in HOSTS.values() if page_of(host).exists()]


@pytest.mark.parametrize("host", WITH_PAGES, ids=lambda host: host.name)
def test_a_page_agrees_with_the_tables_of_its_host(host: Host) -> None:
    """``python -m tests.docs.hosts`` writes the table.

    What was run is said, and three commands lead to a rule that holds.
    """
    text = page_of(host).read_text()
    if f"<!-- {TABLE} -->" in text:
        assert with_table(text, TABLE, table_of(host)) == text
    else:
        assert host.tested
    assert host.tested in text if host.tested else "untested" in text.lower()
    steps = steps_of(page_of(host))
    lines = [command.line for step in steps for command in step.commands]
    assert f"hookline install {host.name}" in lines[:3]


def test_the_overview_lists_every_host_with_its_page() -> None:
    """``python -m tests.docs.hosts`` writes it."""
    text = OVERVIEW.read_text()
    assert with_table(text, AGENTS, agents_table()) == text
