"""The resident helper follows changed settings without a restart.

Settings with an error leave the old ones in use, and hooks that did not change keep
their processes.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

from tests.support.resident import Desk

WORKER = """
import os
from hookline.script import block, run
run(lambda event: block(str(os.getpid())))
"""


def denies(reason: str) -> dict[str, Any]:
    return {"type": "rule", "name": "r", "when": "true", "description": reason}


def worker(desk: Desk, name: str, **more: Any) -> dict[str, Any]:
    script = desk.runtime.parent / "w.py"
    if not script.exists():
        script.write_text(WORKER)
    command = f"{sys.executable} {script}"
    return {"type": "worker", "name": name, "command": command, **more}


def test_settings_with_errors_leave_the_old_ones_in_use(desk: Desk) -> None:
    """The error is on stderr of each call, and once in the journal."""
    journal = desk.runtime.parent / "journal.sqlite"
    file = desk.user_settings(denies("old"))
    whole = json.loads(file.read_text())
    whole["hooksConfig"] = {"journal": str(journal)}
    file.write_text(json.dumps(whole))
    desk.warm_up()
    file.write_text("{ no")
    for _ in range(3):
        status, stdout, stderr = desk.bridge()
        assert (status, b"old" in stdout) == (0, True)
        problem = (
            f"hookline: changed settings are not used: {file}:1:3: is not valid JSON"
        )
        assert stderr.decode().startswith(problem)
        assert stderr.count(b"\n") == 1
    desk.user_settings(denies("new"))
    assert desk.reason() == "new"
    assert desk.until(lambda: _noted(journal)) == 1


def test_a_journal_that_cannot_be_written_is_told_at_each_event(desk: Desk) -> None:
    """An agent went on without its record, and nobody was told."""
    blocked = desk.runtime.parent / "file"
    blocked.write_text("a journal cannot be below a file")
    file = desk.user_settings(denies("old"))
    whole = json.loads(file.read_text())
    whole["hooksConfig"] = {"journal": str(blocked / "journal.sqlite")}
    file.write_text(json.dumps(whole))
    desk.warm_up()
    problem = f"hookline: journal {blocked}/journal.sqlite: ".encode()
    assert desk.until(lambda: desk.bridge()[2].startswith(problem))


def _noted(journal: Path) -> int:
    """How often the journal says that settings are not used."""
    connection = sqlite3.connect(journal)
    try:
        query = "SELECT count(*) FROM events WHERE reason LIKE 'changed settings are%'"
        (count,) = connection.execute(query).fetchone()
    finally:
        connection.close()
    return int(count)


def test_workers_of_hooks_that_did_not_change_stay_also_on_sighup(desk: Desk) -> None:
    same, other = worker(desk, "same"), worker(desk, "other", env={"A": "1"})
    desk.user_settings(same)
    helper = desk.warm_up()
    before = desk.reason()
    desk.user_settings(same, other)
    first, second = desk.reason().split()
    assert first == before
    desk.user_settings(other)
    for _ in range(50):
        os.kill(helper, signal.SIGHUP)
    # No event asks for it: the worker of the hook that went ends all the same.
    desk.until(lambda: not Path(f"/proc/{first}").exists())
    assert desk.helpers() == [helper]
    assert desk.reason() == second
