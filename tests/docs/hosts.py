"""Write the tables of the pages in ``docs/how-to/hosts`` from the data of the hosts.

``python -m tests.docs.hosts`` writes them; a test holds the pages against the data.
"""

from __future__ import annotations

from pathlib import Path

from hookline.hosts.effects import EFFECTS
from hookline.hosts.host import Host
from hookline.hosts.registry import HOSTS
from hookline.protocol.events import HookEventName

from .pages import ROOT

OVERVIEW = ROOT / "docs" / "how-to" / "hosts" / "README.md"
TABLE, AGENTS = "table", "agents"


def page_of(host: Host) -> Path:
    """The page of a host."""
    return ROOT / "docs" / "how-to" / "hosts" / f"{host.name}.md"


def with_table(text: str, name: str, table: str) -> str:
    """A page with a table between the markers of this name."""
    start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, rest = text.split(start)
    return f"{before}{start}\n{table}\n{end}{rest.partition(end)[2]}"


def agents_table() -> str:
    """Every host: its page, what it was tested with, and where it is installed."""
    lines = [_line(["agent", "HOST", "tested with", "settings"]), "|---" * 4 + "|"]
    for host in HOSTS.values():
        linked = f"[{host.title}]({host.name}.md)"
        title = linked if page_of(host).exists() else host.title
        tested = host.tested or "untested, by its documentation"
        file = f"`{host.files.project.format(event='EVENT')}`"
        lines.append(_line([title, f"`{host.name}`", tested, file]))
    return "\n".join([*lines, ""])


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


def _write(page: Path, name: str, table: str) -> None:
    page.write_text(with_table(page.read_text(), name, table))


if __name__ == "__main__":
    _write(OVERVIEW, AGENTS, agents_table())
    for one in HOSTS.values():
        if page_of(one).exists() and f"<!-- {TABLE} -->" in page_of(one).read_text():
            _write(page_of(one), TABLE, table_of(one))
