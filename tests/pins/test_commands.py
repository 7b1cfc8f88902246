"""What commands print as JSON, return and write: projects and arguments in.

Of what is printed for people, only the texts that a row looks for are compared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support import showcase
from tests.support.command_rows import RowProject
from tests.support.pins import PinTable

TABLES = (
    *("check", "explain", "explain_host", "fire", "fire_mistakes", "init", "install"),
    *("journal_scope", "list", "log", "migrate", "migrate_refused", "mistakes"),
    *("paths", "replay", "settings_mistakes", "test", "test_cases"),
    *("bridge", "test_update", "trust"),
)


def check_rows(table: PinTable, results: Mapping[str, object]) -> None:
    """Compare what happened; commands have loops of their own, so this is the last."""

    def result(name: str, _row: object) -> object:
        return results[name]

    asyncio.run(table.check(result))


@pytest.mark.parametrize("name", TABLES)
def test_command_prints_returns_and_writes_what_is_recorded(
    name: str, pin_table: Callable[[str], PinTable], tmp_path: Path
) -> None:
    table = pin_table(f"commands/{name}")
    results = {
        row_name: RowProject(tmp_path / str(number)).happen(row)
        for number, (row_name, row) in enumerate(table.rows.items())
    }
    check_rows(table, results)


def test_reports_on_one_journal_are_as_recorded(
    pin_table: Callable[[str], PinTable], tmp_path: Path
) -> None:
    """One project with its recorded sessions, which no command of the table changes."""
    table = pin_table("commands/showcase")
    project = RowProject(tmp_path)
    showcase.build(project.project, project.project / "journal.sqlite")
    results = {name: project.happen(row) for name, row in table.rows.items()}
    check_rows(table, results)
