"""Stages the pages for the site generator: ``make docs`` (decision 0145).

Links between pages are true in the repository. The site has other folders: ``docs/`` is
its root, the pages at the root of the repository lie beside, and a linked file that is
no page (an example) becomes one that shows it. The navigation is what the index pages
list: each entry of a list or table that begins with a link.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from .pages import ROOT, links_of

DOCS = ROOT / "docs"
HOME = DOCS / "index.md"
DECISIONS = DOCS / "decisions"
STAGED = ROOT / "build" / "pages"

_FENCE = re.compile(r"^```.*?^```\n?", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^<!-- file: (\S+) -->\n```(\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^<!-- .*? -->\n", re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()([^)#\s:]+)(?=[)#])")
_ENTRY = re.compile(
    r"^(?:## (?P<group>.+)"
    r"|(?:- |\| )\[(?P<title>[^\]]+)\]\((?P<path>[^)#:]+\.md)\).*)$",
    re.MULTILINE,
)
_UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
_KINDS = {".sh": "bash", ".mjs": "js", ".py": "python"}


class Entry(Struct, frozen=True):
    """A page of the navigation, or a group of them."""

    title: str
    page: Path | None = None
    children: tuple[Entry, ...] = ()

    def pages(self) -> Iterator[Path]:
        """The page and those below."""
        if self.page:
            yield self.page
        for child in self.children:
            yield from child.pages()


def navigation(index: Path = HOME) -> tuple[Entry, ...]:
    """What an index page lists, grouped by its headings."""
    groups: list[tuple[str, list[Entry]]] = [("", [])]
    for found in _ENTRY.finditer(index.read_text()):
        if found["group"]:
            groups.append((found["group"], []))
            continue
        page = (index.parent / found["path"]).resolve()
        groups[-1][1].append(_entry(found["title"].strip("`"), page))
    return tuple(entry for title, all_ in groups for entry in _group(title, all_))


def _entry(title: str, page: Path) -> Entry:
    return Entry(title, page, navigation(page) if page.name == "README.md" else ())


def _group(title: str, entries: list[Entry]) -> list[Entry]:
    if title and len(entries) > 1:
        return [Entry(title, children=tuple(entries))]
    return entries


def site_path(file: Path) -> Path:
    """Where a file of the repository lies on the site."""
    if file == ROOT / "README.md":
        return Path("index.md")
    if file.is_relative_to(DOCS):
        return file.relative_to(DOCS)
    path = file.relative_to(ROOT)
    return path if path.suffix == ".md" else path.with_name(f"{path.name}.md")


def staged_text(page: Path) -> str:
    """A page as the site has it: links, titles of files, no comments."""
    # Choices of the past must not come before the answer in the search.
    head = _UNSEARCHED if page.parent == DECISIONS else ""
    text = head + _FILE.sub(r'```\2 title="\1"', page.read_text())
    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_prose(text[end : fence.start()], page), fence.group()]
        end = fence.end()
    return "".join([*parts, _prose(text[end:], page)])


def _prose(text: str, page: Path) -> str:
    def on_the_site(found: re.Match[str]) -> str:
        target = site_path((page.parent / found.group(1)).resolve())
        return os.path.relpath(target, site_path(page).parent)

    return _LINK.sub(on_the_site, _COMMENT.sub("", text))


def listing(entries: Iterable[Entry]) -> list[Any]:
    """The navigation as the generator reads it."""
    return [{entry.title: _item(entry)} for entry in entries]


def _item(entry: Entry) -> Any:
    page = str(site_path(entry.page)) if entry.page else None
    if not entry.children:
        return page
    return [*([page] if page else []), *listing(entry.children)]


def decisions() -> str:
    """The list of the decisions, the latest first."""
    files = sorted(DECISIONS.glob("0*.md"), reverse=True)
    titles = [(file.name, file.read_text().partition("\n")[0][2:]) for file in files]
    return "".join(f"- [{title}]({name})\n" for name, title in titles)


def stage(folder: Path = STAGED) -> None:
    """Write all that the generator reads."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder)
    listed = [page for entry in navigation() for page in entry.pages()]
    for page in {*DOCS.rglob("*.md"), *listed}:
        (folder / site_path(page)).write_text(staged_text(page))
        for file in shown_files(page):
            _show(file, folder / site_path(file))
    with (folder / site_path(DECISIONS / "README.md")).open("a") as index:
        index.write(f"\n{decisions()}")
    nav = [{"Home": "index.md"}, *listing(navigation())]
    (folder / ".nav.yml").write_bytes(msgspec.json.encode({"nav": nav}))


def shown_files(page: Path) -> set[Path]:
    """The files outside of docs that a page links to and that are no pages."""
    paths = {(page.parent / path).resolve() for path, _ in links_of(page) if path}
    outside = {path for path in paths if not path.is_relative_to(DOCS)}
    return {path for path in outside if path.is_file() and path.suffix != ".md"}


def _show(file: Path, page: Path) -> None:
    page.parent.mkdir(parents=True, exist_ok=True)
    kind = _KINDS.get(file.suffix, "text")
    path = file.relative_to(ROOT)
    page.write_text(f"# {file.name}\n\n`{path}`\n\n```{kind}\n{file.read_text()}```\n")


if __name__ == "__main__":
    stage()
