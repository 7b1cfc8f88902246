"""The example notebook, run by a real kernel; cells are edited and run again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples/notebook/agent.ipynb"

EDITED = """
@hooks.on("BeforeTool", matcher="refund|credit")
def limit(event):
    return {"decision": "deny", "reason": "closed today"}
"""
MANY = """
for day in ("Saturday", "Sunday"):
    @hooks.on("BeforeTool")
    def weekend(event, day=day):
        return {"systemMessage": f"not on {day}"}

@hooks.on("BeforeTool")
def _(event): ...

def made(reason):
    @hooks.on("BeforeTool")
    def inner(event): ...

made("a")

class Guard:
    def check(self, event): ...

hooks.on("BeforeTool")(Guard().check)
"""
ONCE = """
import functools

def logged(function, level):
    @functools.wraps(function)
    def logging(event): ...
    return logging

hooks.on("BeforeTool")(logged(limit, 1))
"""
AGAIN = """
hooks.on("BeforeTool")(logged(limit, 2))
"""
SHOW = """
verdict = await config.session("carol").fire("BeforeTool", given)
print(verdict.reason, len(verdict.aggregated.hook_results))
"""


def outputs(notebook: Any) -> list[str]:
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    return ["".join(out.get("text", "") for out in cell.outputs) for cell in cells]


# Neither the kernel's own warnings nor those of its client are ours.
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_runs_and_a_cell_that_is_run_again_replaces_its_hooks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 17: top-level await, fire_sync in a running loop, cells run twice."""
    for name in ("HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    notebook: Any = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call] # it has no types
    shown = outputs(notebook)
    *cells, dispose = notebook.cells
    # What cannot be told apart from another hook of the same name stays.
    added = [SHOW, EDITED, SHOW, EDITED, MANY, SHOW, MANY, SHOW, ONCE, AGAIN, SHOW]
    notebook.cells = [*cells, *map(nbformat.v4.new_code_cell, added), dispose]
    resources = {"metadata": {"path": os.fspath(tmp_path)}}
    NotebookClient(notebook, timeout=60, resources=resources).execute()
    found = outputs(notebook)
    assert [*found[: len(shown) - 1], found[-1]] == shown
    counted = [text.split() for text in found[len(shown) - 1 : -1] if "\n" in text]
    first, edited, many, twice, wrapped = [
        text for text in counted if text[-1].isdigit()
    ]
    assert first == ["over", "100:", "ask", "a", "person", "1"]
    assert edited == ["closed", "today", "1"]
    assert many == ["closed", "today", "6"]
    assert twice == ["closed", "today", "9"]
    assert wrapped == ["closed", "today", "11"]
