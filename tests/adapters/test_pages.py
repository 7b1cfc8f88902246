"""Each adapter has its extra, page, example and driver, and uses public names only."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

import hookline.adapters

ROOT = Path(__file__).parents[2]
FOLDER = Path(hookline.adapters.__file__).parent
ADAPTERS = sorted(file.stem for file in FOLDER.glob("[!_]*.py"))
EXTRAS = {name: name.replace("_", "-") for name in ADAPTERS}
PAGES = ROOT / "docs" / "how-to" / "frameworks"


def test_there_is_one_module_for_each_framework() -> None:
    """Issue 14 adapters: eight of them, each one file."""
    found = " ".join(ADAPTERS)
    assert found == (
        "agent_hooks claude_agent_sdk fastmcp google_adk langchain openai_agents "
        "pydantic_ai strands"
    )


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_has_extra_page_and_driver(name: str) -> None:
    extra = EXTRAS[name]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert extra in extras["optional-dependencies"]
    page = (PAGES / f"{extra}.md").read_text()
    assert f"hookline[{extra}]" in page
    assert f"hookline.adapters.{name}" in page
    assert f"({extra}.md)" in (PAGES / "README.md").read_text()
    assert (Path(__file__).parent / "drivers" / f"{name}.py").exists()


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_imports_no_private_name_of_ours(name: str) -> None:
    """Issue 14 sessions: adapters are written on the public seams."""
    found = [
        f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse((FOLDER / f"{name}.py").read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if (node.module or "").startswith("hookline")
    ]
    assert found
    private = [one for one in found if "._" in one]
    assert private == []


YOURS = {"agent", "client", "model", "project", "tools"}
"""What a page leaves to its reader."""


@pytest.mark.parametrize("extra", EXTRAS.values())
def test_the_first_lines_on_a_page_import_what_they_use(extra: str) -> None:
    """Issue 17: they can be pasted into an agent as they are."""
    page = (PAGES / f"{extra}.md").read_text()
    tree = ast.parse(page.split("```python\n")[1].split("```")[0])
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    used = {one.id for one in names if isinstance(one.ctx, ast.Load)}
    made = {one.id for one in names if isinstance(one.ctx, ast.Store)}
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    imported = {alias.name for node in imports for alias in node.names}
    assert imported <= used
    assert used - made - imported <= YOURS
