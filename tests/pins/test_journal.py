"""What the journal keeps of an event, as ``hookline log`` prints it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.commandline import run_command
from tests.support.fired import fire_row
from tests.support.page_rows import mask_answer, picked
from tests.support.pins import PinTable

Table = Callable[[str], PinTable]


async def recorded(row: dict[str, Any], folder: Path) -> Any:
    """Fire the event of a row with the journal on: its verdict, and what is kept."""
    journal = folder / "journal.sqlite"
    config = {"journal": str(journal), **row.get("config", {})}
    await fire_row({**row, "config": config}, folder)
    # One at a time: a command in this process has the streams for itself.
    log = await asyncio.to_thread(
        run_command, "log", "1", "--journal", journal, "--json"
    )
    for file in folder.iterdir():
        assert b"hunter2" not in file.read_bytes()
    text = json.dumps(mask_answer(log.json())).replace(str(folder), "<folder>")
    return json.loads(text)


async def test_events_are_recorded_with_input_plan_results_and_verdict(
    pin_table: Table, tmp_path: Path
) -> None:
    async def observed(name: str, row: dict[str, Any]) -> object:
        return await recorded(row, tmp_path / name)

    await pin_table("journal/recorded").check(observed, at_once=1)


async def test_credentials_are_masked_and_nothing_else(
    pin_table: Table, tmp_path: Path
) -> None:
    """In inputs by key; in what a hook prints also by how it is written."""
    numbers = iter(range(1000))

    async def observed(_: str, row: dict[str, Any]) -> object:
        printed = row.get("printed") or json.dumps(row.get("output", {}))
        command = f"cat >/dev/null; cat <<'END'\n{printed}\nEND"
        hook = {"type": "command", "name": "says", "command": command}
        event = {"tool_name": "t", "tool_input": row.get("tool_input", {})}
        folder = tmp_path / str(next(numbers))
        kept = await recorded({"hooks": [hook], "input": event}, folder)
        shown = ["input_masked", "output_masked"]
        shown += ["input.tool_input"] if "tool_input" in row else ["hooks.*.stdout"]
        shown += ["hooks.*.output", "final_output", "reason"] if "output" in row else []
        return {path: picked(kept, path) for path in shown}

    await pin_table("journal/redaction").check(observed, at_once=1)


@pytest.mark.parametrize("container", [list, dict])
async def test_what_is_nested_too_deeply_is_left_out(
    container: type, tmp_path: Path
) -> None:
    """``recorded`` fails if anything of it is in a file of the journal."""
    value: Any = "hunter2"
    for _ in range(200):
        value = [value] if container is list else {"inner": value}
    event = {"tool_name": "t", "tool_input": {"path": "a.txt", "value": value}}
    hook = {"type": "command", "name": "looks", "command": "cat >/dev/null"}
    kept = await recorded({"hooks": [hook], "input": event}, tmp_path / "project")
    assert kept["input_masked"]
    assert "[cut: nested too deeply]" in json.dumps(kept["input"])
