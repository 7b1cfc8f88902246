"""Checks the links of the built site: each target and each anchor exists.

The generator checks links between pages only. This reads what it wrote, so that
pictures, files, raw HTML and the links in signatures are checked too, and that nothing
is loaded from elsewhere.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from .pages import ROOT

SITE = ROOT / "site"
_MEMBERS = re.compile(
    r"^::: (?P<name>\S+)\n    options:\n      members: \[(?P<members>.+)\]$",
    re.MULTILINE,
)
_LOADED = {"script", "img", "iframe", "source"}


class Document(HTMLParser):
    """The anchors, links and loaded files of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what a tag says."""
        values = {name: value for name, value in attrs if value}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if "href" in values:
            (self.loaded if tag == "link" else self.links).add(values["href"])
        if tag in _LOADED:
            self.loaded.update(
                values[name] for name in ("src", "srcset") if name in values
            )


def problems(site: Path = SITE) -> Iterator[str]:
    """The broken links of all pages."""
    pages = {file: Document(file) for file in sorted(site.rglob("*.html"))}
    if not pages:
        yield f"{site} has no pages"
    for file, page in pages.items():
        if file.name == "404.html":  # its links start at the address of the site
            continue
        for link in sorted(page.links | page.loaded):
            if problem := _problem(link, file, pages):
                yield f"{file.relative_to(site)}: {link} {problem}"


def missing_members(site: Path = SITE) -> Iterator[str]:
    """The members that a page of the Python API names and that do not exist."""
    for page in sorted(ROOT.glob("docs/reference/python/*.md")):
        named = list(_MEMBERS.finditer(page.read_text()))
        file = site / "reference" / "python" / page.stem / "index.html"
        anchors = Document(file).anchors if named else set()
        for found in named:
            members = [one.strip(' "') for one in found["members"].split(",")]
            names = [f"{found['name']}.{member}" for member in members]
            yield from (f"{page.name}: no {x}" for x in names if x not in anchors)


def _problem(link: str, file: Path, pages: dict[Path, Document]) -> str | None:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return "is loaded" if link in pages[file].loaded else None
    return None if _exists(link, file, pages) else "does not exist"


def _exists(link: str, file: Path, pages: dict[Path, Document]) -> bool:
    parts = urlsplit(link)
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    target = target / "index.html" if target.is_dir() else target
    if not parts.fragment or parts.fragment.startswith("__"):
        return target.is_file()
    return target in pages and unquote(parts.fragment) in pages[target].anchors


if __name__ == "__main__":
    sys.exit("\n".join([*problems(), *missing_members()]) or None)
