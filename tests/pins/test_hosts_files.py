"""What ``install``, ``uninstall``, ``check`` and ``migrate`` make of agents' files."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem
from tests.support.agent_files import AgentFiles
from tests.support.bridged import lines
from tests.support.fired import verdict_as_data
from tests.support.opencode import CALLS, NODE, OpenCode
from tests.support.pins import PinTable, masked

Tables = Callable[[str], PinTable]


def installed(folder: Path, row: dict[str, Any]) -> dict[str, Any]:
    """What the steps print and change, and what ``uninstall`` does not undo.

    A row that is ``quiet`` is about the files alone.
    """
    files = AgentFiles(folder)
    files.take([{"write": row.get("files", {})}])
    before = files.contents()
    printed = files.take(row["steps"])
    shown: dict[str, Any] = {"printed": printed} if not row.get("quiet") else {}
    shown |= {"files": files.changed(before)}
    words = [step for step in row["steps"] if isinstance(step, list)]
    for host in {step[1] for step in words if step[0] == "install"}:
        files.run("uninstall", host)
    left = files.changed(before)
    return shown | ({"left by uninstall": left} if left else {})


async def test_install_changes_these_files_and_uninstall_undoes_it(
    pin_table: Tables, tmp_path: Path
) -> None:
    """What is not ours is kept to the byte."""
    await _check(pin_table("hosts/install"), installed, tmp_path)


def printed(folder: Path, row: dict[str, Any]) -> object:
    """What the commands among the steps print."""
    return AgentFiles(folder).take(row["steps"])


async def test_list_and_check_see_where_the_bridge_is_installed(
    pin_table: Tables, tmp_path: Path
) -> None:
    await _check(pin_table("hosts/installed"), printed, tmp_path)


def migrated(folder: Path, row: dict[str, Any]) -> object:
    """What ``migrate`` prints, and the settings that it writes."""
    files = AgentFiles(folder)
    files.path(".hookline/settings.json").unlink()
    theirs = row.get("settings")
    written = {} if theirs is None else {row["file"]: json.dumps(theirs)}
    files.take([{"write": {**written, **row.get("files", {})}}])
    [shown] = files.take([["migrate", *row["arguments"]]])
    assert isinstance(shown, dict)
    for file in sorted((files.project / ".hookline").glob("*.json")):
        text = masked(file.read_text(), files.places)
        shown[file.name] = json.loads(text)
    return shown


async def test_settings_of_other_agents_are_converted(
    pin_table: Tables, tmp_path: Path
) -> None:
    """File in, settings and notes out."""
    await _check(pin_table("hosts/migrate"), migrated, tmp_path)


async def test_conditions_of_claude_code_hold_for_the_same_calls(
    pin_table: Tables, tmp_path: Path
) -> None:
    """Decision 0126: what 2.1.325 was seen to do with a hook's ``if``.

    ``tool`` and ``field`` say what the values are; those for which the hook runs.
    """

    def runs(folder: Path, row: dict[str, Any]) -> object:
        files = AgentFiles(folder)
        hook = {"type": "command", "command": "true", "if": row["rule"]}
        theirs = {"hooks": {"PreToolUse": [{"hooks": [hook]}]}}
        files.write(".claude/settings.json", json.dumps(theirs))
        files.run("migrate", "--from", "claude", "--force")
        files.run("trust", "--yes")
        matching = []
        for value in row["values"]:
            sent = {"tool_name": row["tool"], "tool_input": {row["field"]: value}}
            event = files.write("event.json", json.dumps(sent))
            ended = files.run("explain", "BeforeTool", "--input", str(event), "--json")
            matching += [value for hook in ended.json()["hooks"] if hook["runs"]]
        return matching

    await _check(pin_table("hosts/permission_rules"), runs, tmp_path)


async def test_projects_of_other_agents_work_after_migration(
    pin_table: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Migrated, checked, approved and run, with scripts as people write.

    What blocked there blocks here, with the host's names on the script's stdin.
    """
    table = pin_table("hosts/migrated_projects")

    async def observe(name: str, row: dict[str, Any]) -> object:
        files = AgentFiles(tmp_path / str(list(table.rows).index(name)) / "my folder")
        files.path(".hookline/settings.json").unlink()
        for variable, value in files.env.items():
            monkeypatch.setenv(variable, value)
        files.take([{"write": row["files"]}])
        words = [files.filled(word) for word in row["arguments"]]
        assert files.run("migrate", *words).returncode == 0
        ended = files.run("check")
        assert ": warning: " not in ended.stdout, ended.stdout
        assert files.run("trust", "--yes").returncode == 0
        shown = []
        for event, fields in row["fire"]:
            async with HookSystem(Config.load(files.project)) as system:
                result = await system.event_handler.fire(event, fields)
            text = json.dumps(verdict_as_data(result))
            shown.append(json.loads(masked(text, files.places)))
        seen = files.path("seen.txt")
        return {"verdicts": shown, "seen": seen.read_text()} if seen.exists() else shown

    await table.check(observe, at_once=1)


@pytest.mark.skipif(NODE is None, reason="needs node")
async def test_plugin_of_opencode_does_what_the_bridge_answers(
    pin_table: Tables, tmp_path: Path
) -> None:
    """``does`` is the program of the bridge; ``shows`` what it was sent."""
    table = pin_table("hosts/opencode_plugin")

    async def observe(name: str, row: dict[str, Any]) -> object:
        files = AgentFiles(tmp_path / str(list(table.rows).index(name)))
        opencode = OpenCode(files)
        opencode.install(*row.get("events", ()), closed=row.get("closed", False))
        files.write("bin/answer.py", row["does"])
        calls = [
            CALLS[call] if isinstance(call, str) else call for call in row["calls"]
        ]
        results, stderr = await asyncio.to_thread(opencode.ask, *calls)
        shown = {"results": results, **({"stderr": lines(stderr)} if stderr else {})}
        if "shows" in row:
            shown["seen"] = opencode.seen()
        text = masked(json.dumps(shown), files.places)
        # Each version of Node says otherwise what is wrong with a JSON text.
        return json.loads(
            re.sub(r"(: )[^:.]*in JSON at position \d+", r"\1<why>", text)
        )

    await table.check(observe, at_once=2)


async def _check(
    table: PinTable, observe: Callable[[Path, dict[str, Any]], object], folder: Path
) -> None:
    """One folder for each row; the commands run in this process, one at a time."""
    numbers = {name: number for number, name in enumerate(table.rows)}
    await table.check(
        lambda name, row: observe(folder / str(numbers[name]), row), at_once=1
    )
