"""The example notebook, run by a real kernel."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples/notebook/agent.ipynb"

AGAIN = """
@hooks.on("BeforeTool", matcher="refund|credit")
def limit(event):
    return {"decision": "deny", "reason": "closed today"}
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
def test_a_notebook_runs_and_registering_again_adds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Top-level await, fire_sync in a running loop; no guard replaces another."""
    for name in ("HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    notebook: Any = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call] # it has no types
    shown = outputs(notebook)
    *cells, dispose = notebook.cells
    added = [SHOW, AGAIN, SHOW]
    notebook.cells = [*cells, *map(nbformat.v4.new_code_cell, added), dispose]
    resources = {"metadata": {"path": os.fspath(tmp_path)}}
    NotebookClient(notebook, timeout=60, resources=resources).execute()
    printed = outputs(notebook)
    assert [*printed[: len(shown) - 1], printed[-1]] == shown
    once, _, twice = printed[len(shown) - 1 : -1]
    assert once.split("\n")[-2] == "over 100: ask a person 1"
    assert twice.split("\n")[-3:-1] == ["over 100: ask a person", "closed today 2"]
