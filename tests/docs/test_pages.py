"""Commands on the pages run and print what is shown; links are valid."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from .pages import (
    PAGES,
    ROOT,
    Command,
    anchors_of,
    broken_rows_of,
    comparable,
    fits,
    links_of,
    project_of,
    steps_of,
)

BIN = Path(sys.executable).parent


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def environment(folder: Path) -> dict[str, str]:
    home = folder.parent / "home"
    return {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_STATE_HOME": str(home / "state"),
        "LANG": "C.UTF-8",
        "COLUMNS": "100",
        # bash reads this file first: the setup of a page can set variables there.
        "BASH_ENV": str(folder.parent / "profile"),
    }


def run(command: Command, folder: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", command.line],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
        check=False,
    )
    shown = comparable(command.output, folder)
    real = comparable(done.stdout, folder)
    assert fits(shown, real), f"$ {command.line}\n{done.stdout}"


WITH_COMMANDS = [
    page for page in PAGES if any(step.commands for step in steps_of(page))
]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name_of)
def test_commands_on_a_page_print_what_the_page_shows(
    page: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    project = project_of(page)
    if project is None:
        folder.mkdir()
    else:
        shutil.copytree(project, folder)
    for step in steps_of(page):
        if step.file is not None:
            file = folder / step.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(step.text)
        for command in step.commands:
            run(command, folder)


def test_links_on_the_pages_are_valid(subtests: pytest.Subtests) -> None:
    anchors = cache(anchors_of)
    for page in PAGES:
        with subtests.test(name_of(page)):
            for path, anchor in links_of(page):
                if path.startswith(("http:", "https:", "mailto:")):
                    continue
                target = (page.parent / path).resolve() if path else page
                assert target.exists(), f"{path} does not exist"
                if anchor and target.suffix == ".md":
                    assert anchor in anchors(target), f"{path}#{anchor} does not exist"


def test_every_block_of_commands_is_run() -> None:
    """A block that is only shown would say why; there is none."""
    shown_only = {
        name_of(page): count
        for page in PAGES
        if (count := sum(step.shown_only for step in steps_of(page)))
    }
    assert shown_only == {}


def test_tables_on_the_pages_are_whole() -> None:
    """A row of the reference is shown as it was written."""
    assert {page.name: rows for page in PAGES if (rows := broken_rows_of(page))} == {}


def test_make_has_every_target_that_is_named() -> None:
    rules = (ROOT / "Makefile").read_text()
    known = set(re.findall(r"^([\w.-]+):", rules, re.MULTILINE))
    named = set(re.findall(r"^\.PHONY: (.+)$", rules, re.MULTILINE)[0].split())
    named |= set(re.findall(r"(?m)^make ([a-z-]+)", (ROOT / ".ci/run").read_text()))
    for page in PAGES:
        named |= set(re.findall(r"`make ([a-z-]+)", page.read_text()))
    assert named <= known


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, pending = set(), [ROOT / "README.md"]
    while pending:
        page = pending.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        links = ((page.parent / path).resolve() for path, _ in links_of(page) if path)
        pending += links
    decisions = set(ROOT.glob("docs/decisions/*.md"))
    assert set(PAGES) - decisions <= reached
