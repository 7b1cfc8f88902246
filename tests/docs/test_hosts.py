"""The pages of the hosts agree with the hosts' tables (issue 15.2)."""

from __future__ import annotations

import pytest

from hookline.hosts.catalog import all_hosts
from hookline.hosts.host import Host

from .hosts import AGENTS, OVERVIEW, TABLE, agents_table, page_of, table_of, with_table
from .pages import steps_of

HOSTS = [host for host in all_hosts().values() if page_of(host).exists()]


@pytest.mark.parametrize("host", HOSTS, ids=lambda one: one.name.value)
def test_a_page_shows_what_its_host_can_express(host: Host) -> None:
    """``python -m tests.docs.hosts`` writes it."""
    text = page_of(host).read_text()
    if f"<!-- {TABLE} -->" in text:
        assert with_table(text, TABLE, table_of(host)) == text
    else:
        assert host.tested


@pytest.mark.parametrize("host", HOSTS, ids=lambda one: one.name.value)
def test_a_page_calls_its_host_untested_or_names_the_version(host: Host) -> None:
    """Issue 15.1."""
    text = page_of(host).read_text()
    assert host.tested in text if host.tested else "untested" in text.lower()


@pytest.mark.parametrize("host", HOSTS, ids=lambda one: one.name.value)
def test_a_page_starts_with_three_commands(host: Host) -> None:
    """Issue 15, "How it is judged": from nothing to a rule that holds."""
    commands = [one.line for step in steps_of(page_of(host)) for one in step.commands]
    assert f"hookline install {host.name.value}" in commands[:3]


def test_the_overview_lists_every_host_with_its_page() -> None:
    """``python -m tests.docs.hosts`` writes it."""
    text = OVERVIEW.read_text()
    assert with_table(text, AGENTS, agents_table()) == text
