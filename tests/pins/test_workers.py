"""``hookline test --worker`` finds every way to break the protocol."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from hookline import Config, HookSystem, Settings
from hookline.testing.worker import exercise
from tests.docs.pages import ROOT, anchors_of
from tests.support.pins import PinTable, Row, masked
from tests.support.processes import marked, none_left

WORKER = """
import json, os, subprocess, sys, signal, time
if os.environ.get("HOOKLINE_WORKER") != "1":
    sys.exit(0)
count = 0
def answer(frame, **more):
    reply = {{"id": frame["id"], "exit_code": 0, "stdout": "", "stderr": "", **more}}
    print(json.dumps(reply), flush=True)
for line in sys.stdin:
    frame, count = json.loads(line), count + 1
    {body}
{end}
"""
RULE = re.compile(r"; see docs/how-to/workers\.md#([a-z-]+)$")
NEW_ID = re.compile(r'(?<=\\"id\\": )(\\")?\d{6,}(\.\d+)?(\\")?')
ANCHORS = anchors_of(ROOT / "docs" / "how-to" / "workers.md")


async def exercise_row(row: Row, folder: Path) -> Row:
    """Exercise the ``command`` of a row, its ``source``, or a worker with its ``body``.

    ``then`` has the checks that it does not pass, with their first problem, or what
    was warned about. Of one that ``breaks`` a check it is that one, of one that
    ``finds`` a text, whether it is in any problem: the others depend on the time.
    """
    command = row.get("command", "<python> subject.py")
    if command.startswith("node") and shutil.which("node") is None:
        then: Row = row["then"]
        return then
    folder.mkdir()
    worker = WORKER.format(body=row.get("body", "pass"), end=row.get("end", ""))
    source = row.get("source", worker)
    (folder / "subject.py").write_text(source)
    command = command.replace("<python>", shlex.quote(sys.executable))
    command = command.replace("<examples>", str(ROOT / "examples"))
    mark = uuid4().hex
    env = {"MARK": mark, **row.get("env", {})}
    hook = {"type": "worker", "command": command, "name": "subject", "env": env}
    event = row.get("event", "BeforeTool")
    settings = Settings.from_mapping({"hooks": {event: [{"hooks": [hook]}]}})
    (subject,) = HookSystem(Config("s", folder, settings)).get_all_hooks()
    results = [result async for result in exercise(subject, str(folder))]
    if "start_new_session" in source:  # of processes that ended by themselves
        for pid in marked(mark):
            os.kill(pid, signal.SIGKILL)
    assert await none_left(mark)
    problems = {
        result.name: result.problems[0] for result in results if not result.passed
    }
    warnings = {
        result.name: result.warnings[0] for result in results if result.warnings
    }
    for problem in (*problems.values(), *warnings.values()):
        rule = RULE.search(problem)
        assert rule is not None, problem
        assert rule[1] in ANCHORS
    if "finds" in row:
        return {"found": any(row["finds"] in problem for problem in problems.values())}
    if "breaks" in row:
        problems = {row["breaks"]: problems.get(row["breaks"], "none")}
    places = {"folder": folder, "python": sys.executable}
    outcome = {"checks": len(results), "problems": problems, "warnings": warnings}
    data = {key: value for key, value in outcome.items() if value}
    text = masked(json.dumps(data, ensure_ascii=False), places)
    recorded: Row = json.loads(NEW_ID.sub("<id>", text))
    return recorded


async def test_worker_passes_or_fails_the_checks_of_its_rules(
    pin_table: Callable[[str], PinTable], tmp_path: Path
) -> None:
    """Real limits, many workers at once. Each problem names a section of the page."""

    async def exercised(name: str, row: Row) -> object:
        return await exercise_row(row, tmp_path / re.sub(r"\W", "-", name))

    await pin_table("testing/workers").check(exercised, at_once=8)
