"""What statements destroy, however a database reads them."""

from __future__ import annotations

from hookline.recipes.destruction import sql_destruction

DESTROYS = [
    "DROP TABLE users",
    "drop/**/table users",
    "/*!50000DROP*/ TABLE users",
    "SELECT 1; TRUNCATE users",
    'TRUNCATE "users"',
    "DELETE FROM users",
    "DELETE FROM users WHERE 1 = 1",
    "UPDATE users SET name = 'where'",
    "WITH gone AS (DELETE FROM users RETURNING *) SELECT * FROM gone",
    "ALTER TABLE users ADD a int, DROP COLUMN b",
    "'\\'; DROP TABLE users; --'",  # in Postgres the text ends before the semicolon
    "SELECT 1 # 2; DROP TABLE users",  # in Postgres # is an operator
    "SELECT 1--1; DROP TABLE users",  # in MySQL a comment needs a blank
]


DESTROYS_NOTHING = [
    "SELECT * FROM users WHERE note = 'DROP TABLE users'",
    'INSERT INTO log VALUES ("DROP TABLE users")',
    "SELECT 1 -- DROP TABLE users",
    "SELECT 1 /* TRUNCATE users */",
    "DELETE FROM users WHERE id = 1",
    "UPDATE users SET name = 'x' WHERE id = 1",
    "SELECT * FROM users FOR UPDATE",
    "CREATE TABLE dropped (id int); DROP INDEX i",
    "ALTER TABLE users ADD COLUMN a int",
]


def test_statements_that_destroy_are_found_and_others_pass() -> None:
    """Issue 13.7."""
    assert [sql for sql in DESTROYS if not sql_destruction(sql)] == []
    assert [sql for sql in DESTROYS_NOTHING if sql_destruction(sql) is not None] == []


def test_a_megabyte_of_sql_is_read_in_bounded_time() -> None:
    """Patterns that backtrack would take hours here: the test would time out."""
    for unit in ("/*", "'", '"', "alter table ", "delete from x ", "$a$"):
        sql_destruction(unit * (1_000_000 // len(unit)))
