"""Parses the pages: commands, their expected output, files and links.

In a fenced block marked ``console``, lines that start with ``$`` are run, and the lines
below are the expected output. All blocks of a page share one directory, which is empty
unless the page says ``<!-- project: examples/NAME -->``. A block after
``<!-- file: NAME -->`` is written to that file. ``<!-- setup: COMMAND -->`` is run
without being shown; variables that it writes to ``../profile`` apply to later commands.
A line of ``...`` matches any lines; times, sizes and paths are normalised.
A block after ``<!-- shown only: reason -->`` is not run; a test pins their number.
"""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

_STEP = re.compile(
    r"<!-- setup: (?P<setup>[^\n]+?) -->"
    r"|(?:^(?P<lead><!-- [^\n]* -->)\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```",
    re.MULTILINE | re.DOTALL,
)
_FILE = re.compile(r"<!-- file: (\S+) -->")
_PROJECT = re.compile(r"<!-- project: (\S+) -->")
_SHOWN_ONLY = re.compile(r"<!-- shown only: .+ -->")
_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
_FENCE = re.compile(r"^```.*?^```\n", re.MULTILINE | re.DOTALL)
_CELL = re.compile(r"(?<!\\)\|")
_KINDS = [
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    # Columns of times are padded, by more or by less.
    (re.compile(r" *\b\d+(?:\.\d+)? ?(?:ms|µs|us|s)\b"), " N ms"),
    (re.compile(r" *\b\d+(?:\.\d)? [kMG]?B\b"), " N B"),
    (re.compile("[█▓░]+"), "BAR"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?Z?"), "WHEN"),
    (re.compile(r'(?<="duration_ms":) ?[\d.]+'), "N"),
    (re.compile(r'(?<="total_duration_ms":) ?[\d.]+'), "N"),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
]


class Command(Struct, frozen=True):
    """A command on a page, and its expected output."""

    line: str
    output: str


class Step(Struct, frozen=True):
    """Commands to run, a file to write, or neither."""

    commands: tuple[Command, ...] = ()
    file: str | None = None
    text: str = ""
    shown_only: bool = False


def project_of(page: Path) -> Path | None:
    """The example project of a page."""
    found = _PROJECT.search(page.read_text())
    return ROOT / found.group(1) if found else None


def steps_of(page: Path) -> list[Step]:
    """The steps of a page, in order."""
    return [_step(found) for found in _STEP.finditer(page.read_text())]


def links_of(page: Path) -> list[tuple[str, str | None]]:
    """The links of a page: path and anchor."""
    found = _LINK.findall(page.read_text())
    return [(path, anchor or None) for path, anchor in found]


def broken_rows_of(page: Path) -> list[str]:
    """Rows of tables with other cells than the row above: a ``|`` in code counts."""
    broken, width = [], 0
    for line in _FENCE.sub("", page.read_text()).splitlines():
        cells = len(_CELL.findall(line)) if line.startswith("|") else 0
        if cells and width and cells != width:
            broken.append(line)
        width = cells
    return broken


def anchors_of(page: Path) -> set[str]:
    """The anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def comparable(text: str, folder: Path) -> str:
    """Normalise what differs between machines and runs."""
    text = text.replace(str(folder), "/project")
    for pattern, kind in _KINDS:
        text = pattern.sub(kind, text)
    return text.strip("\n")


def fits(shown: str, real: str) -> bool:
    """Whether real output matches; ``...`` matches any lines."""
    gaps = re.compile(r"^\.\.\.$", re.MULTILINE)
    parts = [re.escape(part) for part in gaps.split(shown)]
    return re.fullmatch(r"(?s:.*)".join(parts), real) is not None


def _step(found: re.Match[str]) -> Step:
    if found["setup"]:
        return Step((Command(found["setup"], "..."),))
    lead, text = found["lead"] or "", found["text"]
    file = _FILE.search(lead)
    if file:
        return Step(file=file.group(1), text=text)
    if found["kind"] != "console":
        return Step()
    if _SHOWN_ONLY.search(lead):
        return Step(shown_only=True)
    return Step(tuple(map(_command, re.split(r"^\$ ", text, flags=re.MULTILINE)[1:])))


def _command(text: str) -> Command:
    line, _, output = text.partition("\n")
    while line.endswith("\\"):
        more, _, output = output.partition("\n")
        line = f"{line[:-1]}{more.lstrip()}"
    return Command(line, output)
