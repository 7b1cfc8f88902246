"""Whatever a project, a journal or a hook holds, an answer of the page is bounded.

A clone is listed before anybody approved it, and a journal holds what others named.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hookline import Config, HookSystem, Settings
from hookline.inspector.approvals import MAX_HOOKS, MAX_LINE, MAX_LINES
from hookline.inspector.hooks import MAX_RECORDED
from tests.support.journals import NEWEST, change, make_journal
from tests.support.page_rows import PageProject
from tests.support.project import GUARD, Project


async def trust_view(project: Project) -> dict[str, Any]:
    """What waits in the project, as it is sent."""
    answer = await PageProject(project.folder.parent).ask("/api/trust")
    shown: dict[str, Any] = answer["projects"][0]
    return shown


async def test_many_hooks_are_cut_and_counted(project: Project) -> None:
    rules = [{"type": "rule", "name": f"r{n}", "when": "true"} for n in range(2_001)]
    project.settings(*rules)
    answer = await PageProject(project.folder.parent).ask("/api/hooks")
    assert (len(answer["hooks"]), answer["hooks_left_off"]) == (2_000, 1)


async def test_many_names_in_a_journal_are_cut_and_counted(tmp_path: Path) -> None:
    page = PageProject(tmp_path)
    page.folder.mkdir()
    rules = [
        {"type": "rule", "name": f"h{n}{'x' * 5000}", "when": "false"}
        for n in range(MAX_RECORDED + 5)
    ]
    settings = {
        "hooks": {"BeforeTool": [{"hooks": rules}]},
        "hooksConfig": {"journal": str(page.journal)},
    }
    config = Config("s", tmp_path, Settings.from_mapping(settings))
    async with HookSystem(config) as hooks:
        await hooks.event_handler.fire_before_tool_event("write", {})
    answer = await page.ask("/api/hooks")
    assert len(answer["recorded"]) == MAX_RECORDED
    assert answer["recorded_left_off"] == 5
    assert max(len(one["label"]) for one in answer["recorded"]) == 301


async def test_hooks_in_code_are_listed_apart(tmp_path: Path) -> None:
    page = PageProject(tmp_path)
    page.folder.mkdir()
    settings = Settings.from_mapping({"hooksConfig": {"journal": str(page.journal)}})
    async with HookSystem(Config("s", page.folder, settings)) as hooks:

        @hooks.on("BeforeTool")
        def in_code(_event: dict[str, Any]) -> None: ...

        await hooks.event_handler.fire_before_tool_event("write", {})
    (listed,) = (await page.ask("/api/hooks"))["recorded"]
    assert [listed[key] for key in ("kind", "name", "folder")] == [
        *("code", "in_code", None)
    ]


async def test_long_review_is_cut(project: Project) -> None:
    """The page names the command, which shows all of it."""
    many = [{**GUARD, "name": f"as approved {n}"} for n in range(MAX_HOOKS + 5)]
    project.guarded()
    project.settings(*many, {**GUARD, "name": "x", "command": "y" * 5_000})
    for n in range(MAX_LINES):
        project.write(f".hookline/data/{n}.txt", "x")
    shown = await trust_view(project)
    assert (len(shown["lines"]), shown["is_cut"]) == (MAX_LINES, True)
    assert max(map(len, shown["lines"])) == MAX_LINE
    project.trust()
    assert (await trust_view(project))["approval"]["hooks_left_off"] == 6


async def test_odd_files_and_names_are_shown(project: Project) -> None:
    project.guarded()
    folder = project.folder / ".hookline"
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    odd = Path(os.fsdecode(os.fsencode(folder) + b"/\xff\x1b[2Jname"))
    odd.write_bytes(b"caf\xe9 \x1b[31m \xe2\x80\xae text\n" + b"plain text\n" * 9)
    lines = (await trust_view(project))["lines"]
    assert all(line.isprintable() for line in lines)
    text = "\n".join(lines)
    assert ".hookline/pipe  is not a regular file" in text
    assert ".hookline/loop -> loop" in text
    assert "[2Jname" in text


async def test_long_search_comes_in_short_answers(tmp_path: Path) -> None:
    """No answer waits for the whole journal; together they reach the oldest event."""
    events = 60_000
    page = PageProject(tmp_path)
    page.folder.mkdir()
    make_journal(page.journal, events)
    change(page.journal, "UPDATE events SET verdict = 'stopped' WHERE id = 3")
    assert (await page.ask("/api/overview"))["journal"]["events"] == events
    assert (await page.ask("/api/facets"))["of"] == 10_000
    for limit, number in (("500", 500), (f"{10**9}", 500), ("", 100)):
        newest = await page.ask(f"/api/events?limit={limit}")
        ids = [row["id"] for row in newest["events"]]
        assert ids == [*range(events, events - number, -1)]
    old = (await page.ask(f"/api/events?until={NEWEST - events + 10}"))["events"]
    assert [row["id"] for row in old] == [*range(10, 0, -1)]
    assert await _all(page, "session=s-0&limit=500") == [*range(499, 0, -1)]
    assert await _all(page, "verdict=stopped") == [3]
    assert await _all(page, "text=notes-5.md") == [5]
    assert await _all(page, "hook=no*&text=no") == []


async def _all(page: PageProject, query: str) -> list[int]:
    found: list[int] = []
    before: int | None = None
    while True:
        more = "" if before is None else f"&before={before}"
        answer = await page.ask(f"/api/events?{query}{more}")
        found += [row["id"] for row in answer["events"]]
        if answer["next"] is None:
            return found
        assert before is None or answer["next"] < before
        before = answer["next"]
