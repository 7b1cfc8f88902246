"""Try and Replay start nothing: rules and policies decide in the inspector itself.

What they answer is in ``tests/pins/page/try.json`` and ``requests.json``.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.commandline import run_command
from tests.support.page_rows import PageProject

RULE = {
    "type": "rule",
    "name": "no-env",
    "when": "tool_input.path.endsWith('.env')",
    "then": {"decision": "deny", "reason": "keep out"},
}


def program(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "name": name, "command": "touch ran", **more}


async def opened(place: Path, *hooks: dict[str, Any], **group: Any) -> PageProject:
    page = PageProject(place)
    before_tool = [{"hooks": list(hooks), **group}]
    await page.do({"settings": {"hooks": {"BeforeTool": before_tool}}})
    return page


def tried(path: str) -> dict[str, Any]:
    body = {"event": "BeforeTool", "tool": "t", "tool_input": {"path": path}}
    return {"post": "/api/explain", "body": body}


@pytest.mark.parametrize(
    ("hooks", "group", "path", "programs", "word"),
    [
        ([RULE], {}, ".env", [], "blocked"),
        ([RULE], {}, "a", [], "allowed"),
        ([RULE, program("scan")], {}, "a", ["scan"], None),
        # In parallel, nobody takes a block back; in a chain the rule may see a change.
        ([program("scan"), RULE], {}, ".env", [], "blocked"),
        ([program("scan"), RULE], {"sequential": True}, ".env", ["scan"], None),
        # What has no effect on the verdict is not waited for.
        ([RULE, program("log", mode="observe")], {}, "a", [], "allowed"),
        ([RULE, program("log", **{"async": True})], {}, "a", [], "allowed"),
        ([RULE, program("rare", **{"if": "false"})], {}, "a", [], "allowed"),
    ],
)
async def test_verdict_is_known_where_no_program_decides_it(
    tmp_path: Path,
    hooks: list[dict[str, Any]],
    group: dict[str, Any],
    path: str,
    programs: list[str],
    word: str | None,
) -> None:
    page = await opened(tmp_path, *hooks, **group)
    answer = await page.ask(tried(path))
    assert answer["programs"] == programs
    result = answer["result"]
    assert (None if result is None else result["verdict"]["word"]) == word
    assert answer["command"].startswith("hookline fire BeforeTool --settings ")
    assert not (page.folder / "ran").exists()


async def test_replay_says_which_events_a_program_decides(tmp_path: Path) -> None:
    """The newest first; a program is named, and the command replays them all."""
    page = await opened(tmp_path, RULE)
    events = [
        ["BeforeTool", {"tool_name": "t", "tool_input": {"path": path}}]
        for path in ("a", ".env", "b")
    ]
    await page.do({"fire": events})
    scan = program("scan", **{"if": "tool_input.path == 'b'"})
    settings = {"hooks": {"BeforeTool": [{"hooks": [scan]}]}}
    body = {"settings_text": json.dumps(settings), "everywhere": True}
    answer = await page.ask({"post": "/api/replay", "body": body})
    assert (answer["events"], answer["decided"], answer["undecided"]) == (3, 2, 0)
    assert answer["programs"] == {"scan": 1}
    (change,) = answer["changes"]
    assert (change["before"], change["after"], change["id"]) == (
        "blocked",
        "allowed",
        2,
    )
    assert answer["command"].startswith("hookline replay --everywhere ")
    assert not (page.folder / "ran").exists()
    later = await page.ask({"post": "/api/replay", "body": {"everywhere": True}})
    assert later["events"] == 3  # a replay is not recorded


async def test_samples_of_all_events_can_be_fired(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    page = PageProject(tmp_path)
    page.folder.mkdir()
    for event in (await page.ask("/api/try"))["events"]:
        with subtests.test(event["name"]):
            tool = ("--tool", "my_tool") if event["takes_tool"] else ()
            words = ("fire", event["name"], *tool, "--input", "-", "--json")
            text = json.dumps(event["sample"])
            ended = await asyncio.to_thread(
                run_command, *words, cwd=page.folder, stdin=text
            )
            assert (ended.returncode, ended.stderr) == (0, "")
