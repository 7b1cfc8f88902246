"""The site: its navigation, its Python API, and the check of its links."""

from __future__ import annotations

import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from .built_site import problems
from .pages import ROOT, anchors_of
from .site import DECISIONS, DOCS, HOME, navigation, site_path, stage, staged_text

API = DOCS / "reference" / "python"
ADAPTERS = API / "adapters.md"  # some cannot be imported beside the others
MODULES = [
    "hookline",
    "hookline.agent",
    "hookline.bus",
    "hookline.script",
    "hookline.testing",
    "hookline.translators",
    "hookline.types",
]


def documented() -> set[str]:
    """The dotted names on the pages of the Python API, but for adapters."""
    return {
        name
        for page in set(API.glob("*.md")) - {ADAPTERS}
        for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)
    }


def resolved(name: str) -> object:
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


def test_every_page_is_in_the_navigation_once() -> None:
    """A page is listed in the README.md of its folder."""
    listed = Counter(page for entry in navigation() for page in entry.pages())
    pages = set(DOCS.rglob("*.md")) - {HOME} - set(DECISIONS.glob("0*.md"))
    assert sorted(map(str, pages - set(listed))) == []
    assert [page for page, times in listed.items() if times > 1] == []


def test_navigation_has_the_four_kinds_of_pages() -> None:
    """The structure of the documentation."""
    titles = [entry.title for entry in navigation()]
    assert titles[:4] == ["Tutorial", "How-to", "Reference", "Explanation"]


def test_every_public_name_is_on_a_page_of_the_python_api() -> None:
    """The Python API from docstrings."""
    on_pages = {id(resolved(name)) for name in documented()}
    on_pages |= set(map(id, vars(import_module("hookline.errors")).values()))
    assert [
        f"{module}.{name}"
        for module in MODULES
        for name in import_module(module).__all__
        if id(resolved(f"{module}.{name}")) not in on_pages
    ] == []


def test_names_of_adapters_are_on_a_page_of_the_python_api() -> None:
    """One section for each adapter."""
    text = ADAPTERS.read_text()
    adapters = {file.stem for file in ROOT.glob("src/hookline/adapters/[a-z]*.py")}
    shown = re.findall(r"^::: hookline\.adapters\.(\w+)\.", text, re.MULTILINE)
    assert adapters - {"kit"} == set(shown)


def test_staged_pages_keep_their_links_and_show_linked_files(tmp_path: Path) -> None:
    """Links are true in the repository and on the site."""
    stage(tmp_path / "pages")
    text = (tmp_path / "pages" / "how-to" / "workers.md").read_text()
    assert "](../examples/workers/no_env_files.sh.md)" in text
    shown = (tmp_path / "pages/examples/workers/no_env_files.sh.md").read_text()
    assert (ROOT / "examples/workers/no_env_files.sh").read_text() in shown
    decisions = anchors_of(tmp_path / "pages" / "decisions" / "README.md")
    assert decisions == {"decisions"}


def test_staged_pages_name_files_and_hide_comments() -> None:
    """What the tests of pages read is not shown."""
    text = staged_text(HOME)
    assert '```json title=".hookline/settings.json"' in text
    assert "<!--" not in text
    assert site_path(ROOT / "README.md") == Path("index.md")


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        ('<a href="other/">', None),
        ('<a href="other/#top">', None),
        ('<a href="https://example.org/">', None),
        ('<a href="none/">', "none/ does not exist"),
        ('<a href="other/#none">', "other/#none does not exist"),
        ('<a href="#none">', "#none does not exist"),
        ('<img src="none.png">', "none.png does not exist"),
        ('<script src="//cdn.example/x.js">', "//cdn.example/x.js is loaded"),
    ],
)
def test_broken_links_of_the_built_site_are_found(
    html: str, problem: str | None, tmp_path: Path
) -> None:
    """Links and anchors are checked, and nothing is loaded from elsewhere."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "index.html").write_text('<h1 id="top"><a href="../">')
    (tmp_path / "index.html").write_text(html)
    expected = [f"index.html: {problem}"] if problem else []
    assert list(problems(tmp_path)) == expected


def test_a_site_without_pages_is_a_problem(tmp_path: Path) -> None:
    assert list(problems(tmp_path)) == [f"{tmp_path} has no pages"]
