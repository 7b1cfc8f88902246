"""The pages of the hosts agree with the hosts' tables (issue 15.2)."""

from __future__ import annotations

import pytest

from hookline.hosts.catalog import all_hosts
from hookline.hosts.host import Host

from .hosts import START, page_of, with_table
from .pages import ROOT, steps_of

HOSTS = [host for host in all_hosts().values() if page_of(host).exists()]
UNTESTED = "**Untested.**"


@pytest.mark.parametrize("host", HOSTS, ids=lambda one: one.name.value)
def test_a_page_shows_what_its_host_can_express(host: Host) -> None:
    """``python -m tests.docs.hosts`` writes it."""
    text = page_of(host).read_text()
    if START in text:
        assert with_table(text, host) == text
    else:
        assert host.tested


@pytest.mark.parametrize("host", HOSTS, ids=lambda one: one.name.value)
def test_a_page_calls_its_host_untested_or_names_the_version(host: Host) -> None:
    """Issue 15.1."""
    text = page_of(host).read_text()
    assert (UNTESTED in text) is (host.tested is None)
    assert host.tested is None or host.tested in text


@pytest.mark.parametrize("host", HOSTS, ids=lambda one: one.name.value)
def test_a_page_starts_with_three_commands(host: Host) -> None:
    """Issue 15, "How it is judged": from nothing to a rule that holds."""
    commands = [one.line for step in steps_of(page_of(host)) for one in step.commands]
    assert f"hookline install {host.name.value}" in commands[:3]


def test_the_overview_links_every_page_of_a_host() -> None:
    text = (ROOT / "docs" / "hosts.md").read_text()
    for host in HOSTS:
        assert f"(hosts/{host.name.value}.md)" in text
