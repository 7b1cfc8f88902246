"""Write the tables of the hosts' pages: ``python -m tests.docs.hosts``."""

from __future__ import annotations

from pathlib import Path

from hookline.hosts.catalog import all_hosts
from hookline.hosts.host import EFFECTS, Host
from hookline.protocol.events import HookEventName

from .pages import ROOT

START, END = "<!-- table -->\n", "<!-- /table -->"


def page_of(host: Host) -> Path:
    """The page of a host."""
    return ROOT / "docs" / "hosts" / f"{host.name.value}.md"


def with_table(text: str, host: Host) -> str:
    """A page with its table between the markers."""
    before, rest = text.split(START)
    return f"{before}{START}\n{table_of(host)}\n{END}{rest.partition(END)[2]}"


def table_of(host: Host) -> str:
    """What hooks can do in a host, event by event."""
    known = [event for event in HookEventName if event in host.events.values()]
    heads = ["event", f"in {host.title}", "as the hook says", "limited"]
    lines = [_line(heads), "|---" * len(heads) + "|"]
    lines += [_line(_cells(host, event)) for event in known]
    missing = [event.value for event in HookEventName if event not in known]
    told = f"{host.title} has no {', '.join(missing)}." if missing else ""
    return "\n".join([*lines, "", told, ""] if told else [*lines, ""])


def _cells(host: Host, event: HookEventName) -> list[str]:
    names = [f"`{theirs}`" for theirs, ours in host.events.items() if ours is event]
    limits = host.limits.get(event, {})
    whole = [one.value for one in EFFECTS[event] if one not in limits]
    # Effects that share a sentence are told together.
    sentences: dict[str, list[str]] = {}
    for effect, text in limits.items():
        sentences.setdefault(text, []).append(effect.value)
    lost = [f"{', '.join(effects)}: {text}" for text, effects in sentences.items()]
    return [event.value, ", ".join(names), ", ".join(whole) or "-", "; ".join(lost)]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    for one in all_hosts().values():
        page = page_of(one)
        if page.exists() and START in page.read_text():
            page.write_text(with_table(page.read_text(), one))
