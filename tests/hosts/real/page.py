"""The tables of ``docs/hosts.md``: what each host can express, and what was seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from hookline.hosts.catalog import all_hosts
from hookline.hosts.host import EFFECTS, Effect, Host
from hookline.protocol.events import HookEventName

from .check import Row
from .programs import PROGRAMS

PAGE = Path(__file__).parents[3] / "docs" / "hosts.md"


def write_page(rows: Iterable[Row]) -> None:
    """Put both tables between their markers."""
    text = between(PAGE.read_text(), "seen", seen_table(list(rows)))
    PAGE.write_text(between(text, "limits", limits_table(all_hosts().values())))


def between(text: str, name: str, table: str) -> str:
    """Put a table between the markers of this name."""
    start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, rest = text.split(start)
    return f"{before}{start}\n{table}\n{end}{rest.split(end)[1]}"


def limits_table(hosts: Iterable[Host]) -> str:
    """What each host cannot express, and what happens instead."""
    lines = ["| host | event | effect | what happens instead |", "|---|---|---|---|"]
    for host in hosts:
        for event in HookEventName:
            if event not in host.events.values():
                continue
            limits = host.limits.get(event, {})
            lines += [
                f"| {host.title} | {event.value} | {effect} | {limits[effect]} |"
                for effect in EFFECTS[event]
                if effect in limits
            ]
    return "\n".join(lines) + "\n"


def seen_table(rows: list[Row]) -> str:
    """One line for each effect, one column for each program that was run."""
    hosts = list(dict.fromkeys(row.host for row in rows))
    heads = [f"{host} {PROGRAMS[host].version}" for host in hosts]
    lines = [_line(["event", "effect", *heads]), "|---" * (len(heads) + 2) + "|"]
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        key = (row.case.event.value, row.case.title)
        found.setdefault(key, {})[row.host] = row.outcome.value
    lines += [_line([*key, *_cells(cells, hosts)]) for key, cells in found.items()]
    return "\n".join(lines) + "\n"


def _cells(cells: Mapping[str, str], hosts: list[str]) -> list[str]:
    return [cells.get(host, "") for host in hosts]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
