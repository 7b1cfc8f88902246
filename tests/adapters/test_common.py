"""What holds for every adapter: its extra, page, example and driver.

Somebody who follows the page of a framework must be able to install the extra, paste
the first lines, and see what the example prints; without the framework the error names
the extra.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import hookline.adapters
from hookline.testing.adapters import AdapterSuite

from .drivers.own_agent import OwnAgentDriver

ROOT = Path(__file__).parents[2]
FOLDER = Path(hookline.adapters.__file__).parent
PAGES = ROOT / "docs" / "how-to" / "frameworks"
# What each adapter imports first, and the distribution that it names without it.
IMPORTS = {
    "agent_hooks": ("agent_hooks", "agent-hooks-sdk"),
    "claude_agent_sdk": ("claude_agent_sdk", "claude-agent-sdk"),
    "fastmcp": ("fastmcp", "fastmcp"),
    "google_adk": ("google.adk.agents.base_agent", "google-adk"),
    "langchain": ("langgraph", "langchain"),
    "openai_agents": ("agents", "openai-agents"),
    "pydantic_ai": ("pydantic_ai", "pydantic-ai-slim"),
    "strands": ("strands", "strands-agents"),
}
EACH = pytest.mark.parametrize("name", IMPORTS)


class TestOwnAgent(AdapterSuite):
    """Our own agent must do what is asked of others."""

    driver = OwnAgentDriver()


@EACH
def test_adapter_has_extra_page_driver_and_uses_public_names(name: str) -> None:
    """Each adapter is one file on public names, with all that a user needs of it."""
    files = {file.stem for file in FOLDER.glob("[!_]*.py")} - {"kit"}
    assert files == set(IMPORTS)
    extra = name.replace("_", "-")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert extra in project["optional-dependencies"]
    page = (PAGES / f"{extra}.md").read_text()
    assert f"hookline[{extra}]" in page
    assert f"hookline.adapters.{name}" in page
    assert f"({extra}.md)" in (PAGES / "README.md").read_text()
    assert (Path(__file__).parent / "drivers" / f"{name}.py").exists()
    imported = [
        f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse((FOLDER / f"{name}.py").read_text()))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("hookline")
        for alias in node.names
    ]
    assert imported
    assert [name for name in imported if "._" in name] == []


@EACH
def test_first_lines_on_a_page_import_what_they_use(name: str) -> None:
    """They can be pasted into an agent as they are."""
    page = (PAGES / f"{name.replace('_', '-')}.md").read_text()
    tree = ast.parse(page.split("```python\n")[1].split("```")[0])
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    used = {name.id for name in names if isinstance(name.ctx, ast.Load)}
    made = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    imported = {alias.name for node in imports for alias in node.names}
    assert imported <= used
    assert used - made - imported <= {"agent", "client", "model", "project", "tools"}


@EACH
def test_missing_framework_is_named_with_its_extra(name: str) -> None:
    module, package = IMPORTS[name]
    hide = f"import sys; sys.modules[{module!r}] = None"
    code = f"{hide}; import hookline.adapters.{name}"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert f"MissingExtraError: {package}" in done.stderr
    assert f"hookline[{name.replace('_', '-')}]" in done.stderr


EXAMPLES = {
    "google_adk": "google_adk",
    "langchain": "langchain_agent",
    "pydantic_ai": "pydantic_ai_agent",
    "strands": "strands_agent",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_prints_what_its_page_shows(name: str) -> None:
    pytest.importorskip(IMPORTS[name][0], reason="not in this environment")
    file = ROOT / "examples" / "frameworks" / f"{EXAMPLES[name]}.py"
    command = [sys.executable, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    text = (PAGES / f"{name.replace('_', '-')}.md").read_text()
    assert done.stdout.strip()
    assert f"\n{done.stdout.strip()}\n```" in text
    if name in ("google_adk", "pydantic_ai"):  # the code on the page is the example's
        blocks = [block.split("```")[0] for block in text.split("```python\n")[2:]]
        lines = [line for block in blocks for line in block.splitlines()]
        assert [line for line in lines if line not in file.read_text()] == []
