"""What statements destroy, however a database reads them."""

from __future__ import annotations

import json
from pathlib import Path

from hookline.recipes.destruction import sql_destruction

STATEMENTS = json.loads(Path(__file__).with_name("statements.json").read_text())
"""By what they do, each with the reason where it is not plain."""


def test_statements_that_destroy_are_found_and_others_pass() -> None:
    destroys, harmless = STATEMENTS["destroys"], STATEMENTS["destroys nothing"]
    assert [sql for sql in destroys if not sql_destruction(sql)] == []
    assert [sql for sql in harmless if sql_destruction(sql) is not None] == []


def test_a_megabyte_of_sql_is_read_in_bounded_time() -> None:
    """Patterns that backtrack would take hours here: the test would time out."""
    for unit in ("/*", "'", '"', "alter table ", "delete from x ", "$a$"):
        sql_destruction(unit * (1_000_000 // len(unit)))
