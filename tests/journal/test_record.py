"""Every event is recorded as it was, and recording changes nothing else.

What is kept of each kind of event is in ``tests/pins/journal/recorded.json``.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem
from tests.support.journals import (
    command,
    entries,
    on,
    only_entry,
    record,
    settings_with,
    system_at,
    targets,
    wait_until,
)


async def test_what_the_host_changes_after_the_fire_is_not_recorded(
    tmp_path: Path,
) -> None:
    journal = tmp_path / "j.sqlite"
    hooks = on("BeforeTool", command("true"), matcher="matched")
    async with system_at(tmp_path, journal, hooks) as system:
        for tool in ("matched", "unmatched"):
            tool_input = {"list": [1], "path": "a"}
            await system.event_handler.fire_before_tool_event(tool, tool_input)
            tool_input["list"].append(2)  # type: ignore[attr-defined]
            tool_input["path"] = "changed"
    assert targets(journal) == ["matched", "unmatched"]
    for full in entries(journal):
        assert full.input["tool_input"] == {"list": [1], "path": "a"}


async def test_what_a_tool_does_to_its_changed_input_is_not_recorded(
    tmp_path: Path,
) -> None:
    journal = tmp_path / "j.sqlite"
    async with system_at(tmp_path, journal) as system:

        @system.on("BeforeTool")
        def change(event: dict[str, Any]) -> dict[str, Any]:
            return {"hookSpecificOutput": {"tool_input": {"lines": [1]}}}

        result = await system.event_handler.fire_before_tool_event("t", {"path": "a"})
        assert result.final_output is not None
        changed = result.final_output.modified_tool_input
        assert changed == {"path": "a", "lines": [1]}
        changed["lines"].append(2)
        changed["path"] = "b"
    full = only_entry(journal)
    assert full.decided.tool_input == '{"lines":[1],"path":"a"}'
    assert full.hooks[0]["output"] == {
        "hookSpecificOutput": {"tool_input": {"lines": [1]}}
    }
    assert full.entry.verdict == "changed"
    assert full.entry.in_code


OPENAI = {
    "model": "gpt",
    "temperature": 0.5,
    "messages": [
        {"role": "assistant", "content": "hi"},
        {"role": "user", "content": [{"type": "text", "text": "and \ud800?"}]},
    ],
}


@pytest.mark.parametrize(
    "hook",
    [command("true"), {"type": "rule", "when": "llm_request.model == 'x'"}],
    ids=["command", "rule"],
)
async def test_a_model_request_is_recorded_as_hooks_saw_it(
    tmp_path: Path, hook: dict[str, Any]
) -> None:
    """Whether or not a hook needs the event as text."""
    journal = tmp_path / "j.sqlite"
    settings = settings_with(journal, on("BeforeModel", hook))
    config = Config("s-1", tmp_path, settings, translator="openai")
    async with HookSystem(config) as system:
        await system.event_handler.fire_before_model_event(OPENAI)
    seen = only_entry(journal).input["llm_request"]
    assert seen["config"] == {"temperature": 0.5}
    assert seen["messages"] == [
        {"role": "model", "content": "hi"},
        {"role": "user", "content": "and \ufffd?"},
    ]


@pytest.mark.parametrize("mask", [0o000, 0o022])
async def test_the_files_are_private_from_the_start(tmp_path: Path, mask: int) -> None:
    journal = tmp_path / "new" / "j.sqlite"
    before = os.umask(mask)
    try:
        async with system_at(tmp_path, journal) as system:
            await system.event_handler.fire_before_agent_event("x")
            side = journal.with_name("j.sqlite-wal")
            wait_until(side.exists)
            found = {
                file.name: stat.S_IMODE(file.stat().st_mode)
                for file in journal.parent.iterdir()
                if file.exists()
            }
    finally:
        os.umask(before)
    assert {"j.sqlite", "j.sqlite-wal", "j.sqlite-shm"} <= set(found)
    assert set(found.values()) == {0o600}
    assert stat.S_IMODE(journal.parent.stat().st_mode) == 0o700


async def test_a_journal_that_others_could_read_is_made_private(
    tmp_path: Path,
) -> None:
    journal = tmp_path / "j.sqlite"
    await record(tmp_path, journal, "BeforeAgent", {"prompt": "x"})
    journal.chmod(0o644)
    await record(tmp_path, journal, "BeforeAgent", {"prompt": "y"})
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600
    assert len(entries(journal)) == 2


async def test_a_call_in_flight_during_dispose_is_recorded(tmp_path: Path) -> None:
    journal = tmp_path / "j.sqlite"
    system = system_at(tmp_path, journal)
    async with system:
        handler = system.event_handler
        await handler.fire_before_agent_event("before")
    await handler.fire_before_agent_event("after")
    wait_until(lambda: len(entries(journal)) == 2)
    await system.initialize()
    await system.event_handler.fire_before_agent_event("again")
    await system.dispose()
    prompts = [full.input["prompt"] for full in entries(journal)]
    assert prompts == ["before", "after", "again"]


async def test_what_is_over_the_limit_is_truncated_and_marked(tmp_path: Path) -> None:
    journal = tmp_path / "j.sqlite"
    hooks = on("BeforeTool", command("head -c 300000 /dev/zero | tr '\\0' x"))
    long = {"path": "a", "content": "y" * 400_000, "lines": [["z"]] * 50_000}
    fields = {"tool_name": "write_file", "tool_input": long}
    await record(tmp_path, journal, "BeforeTool", fields, hooks)
    full = only_entry(journal)
    assert full.entry.input_cut
    assert full.entry.output_cut
    assert full.entry.input_bytes > 400_000
    seen = full.input["tool_input"]
    assert seen["path"] == "a"
    assert seen["content"].startswith("yyy")
    assert "[cut: 400000 characters]" in seen["content"]
    assert "[cut: 300000 characters]" in full.hooks[0]["stdout"]
    assert journal.stat().st_size < 1_000_000


async def test_nothing_is_recorded_in_a_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOKLINE_REPLAY", "1")
    await record(tmp_path, tmp_path / "j.sqlite", "BeforeAgent", {"prompt": "x"})
    assert list(tmp_path.iterdir()) == []


async def test_a_very_deep_input_does_not_end_the_recording(tmp_path: Path) -> None:
    """Hooks see 500 levels; the journal keeps fewer and says so."""
    journal = tmp_path / "j.sqlite"
    deep: Any = {"password": "x"}
    for _ in range(490):
        deep = {"inner": deep}
    deeper: Any = [deep] * 2
    for _ in range(100):
        deeper = [deeper]
    fields = {"tool_name": "deep", "tool_input": {"deep": deep}}
    hooks = on("BeforeTool", command("cat", "echo"))
    await record(tmp_path, journal, "BeforeTool", fields, hooks)
    unseen = {"tool_name": "deeper", "tool_input": {"deeper": deeper}}
    assert (await record(tmp_path, journal, "BeforeTool", unseen, hooks)).blocked
    after = {"tool_name": "after", "tool_input": {}}
    await record(tmp_path, journal, "BeforeTool", after, hooks)
    assert targets(journal) == ["deep", "deeper", "after"]
