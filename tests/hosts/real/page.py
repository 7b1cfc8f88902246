"""The tables of ``docs/how-to/hosts``: what each host can express, and was seen to."""

from __future__ import annotations

from collections.abc import Iterable

from hookline.hosts.effects import EFFECTS, Effect
from hookline.hosts.host import Host
from hookline.hosts.registry import HOSTS
from hookline.protocol.events import HookEventName
from tests.docs.hosts import OVERVIEW, with_table

from .check import Row
from .programs import PROGRAMS


def write_page(rows: list[Row]) -> None:
    """Put the tables between their markers."""
    text = with_table(OVERVIEW.read_text(), "seen", seen_table(rows))
    OVERVIEW.write_text(with_table(text, "limits", limits_table()))


def limits_table() -> str:
    """What the observed hosts can express; the page of each says what is limited."""
    observed = [host for host in HOSTS.values() if host.tested]
    heads = [f"{host.title}" for host in observed]
    lines = _head(["event", "effect", *heads])
    for event in HookEventName:
        for effect in EFFECTS[event]:
            cells = [_expressed(host, event, effect) for host in observed]
            lines.append(_line([event.value, effect.value, *cells]))
    return "\n".join([*lines, ""])


def _expressed(host: Host, event: HookEventName, effect: Effect) -> str:
    if event not in host.events.values():
        return "-"
    return "limited" if effect in host.limits.get(event, {}) else "yes"


def seen_table(rows: list[Row]) -> str:
    """One line for each effect, one column for each program that was run."""
    hosts = list(dict.fromkeys(row.host for row in rows))
    lines = _head(
        ["event", "effect", *(f"{host} {PROGRAMS[host].version}" for host in hosts)]
    )
    cells_by_row: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        key = (row.case.event.value, row.case.title)
        cells_by_row.setdefault(key, {})[row.host] = row.outcome.value
    for key, cells in cells_by_row.items():
        lines.append(_line([*key, *(cells.get(host, "") for host in hosts)]))
    return "\n".join([*lines, ""])


def _head(names: list[str]) -> list[str]:
    return [_line(names), "|---" * len(names) + "|"]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
