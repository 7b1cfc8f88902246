"""Events recorded for real, and what a journal then holds."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from hookline import Config, HookSystem, ProcessedHookResult, Settings
from hookline.executors.contract import HookCall
from hookline.journal.query import EventFilter, FullEntry, read_journal
from hookline.journal.record import JournalRecorder
from hookline.protocol.events import HookEventName
from hookline.protocol.inputs import base_fields
from hookline.protocol.results import make_empty_success_result
from tests.support.python import PATIENCE_S


def settings_with(journal: Path, hooks: Mapping[str, Any] | None = None) -> Settings:
    found = {"hooks": hooks or {}, "hooksConfig": {"journal": str(journal)}}
    return Settings.from_mapping(found)


def system_at(
    folder: Path, journal: Path, hooks: Mapping[str, Any] | None = None
) -> HookSystem:
    return HookSystem(Config("s-1", folder, settings_with(journal, hooks)))


def command(text: str, name: str = "hook", **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": text, "name": name, **more}


def on(event: str, *hooks: dict[str, Any], **group: Any) -> dict[str, Any]:
    return {event: [{"hooks": list(hooks), **group}]}


async def record(
    folder: Path,
    journal: Path,
    event: str,
    event_input: Mapping[str, Any],
    hooks: Mapping[str, Any] | None = None,
) -> ProcessedHookResult:
    """Fire one event with the journal on, and dispose of everything."""
    async with system_at(folder, journal, hooks) as system:
        return await system.event_handler.fire(event, event_input)


def entries(journal: Path) -> list[FullEntry]:
    """Everything that a journal holds."""
    with read_journal(str(journal)) as reader:
        found = [reader.find(one.id) for one in reader.newest(EventFilter(), None)]
    return [full for full in found if full is not None]


def targets(journal: Path) -> list[str | None]:
    """The tools of all events, in order."""
    with read_journal(str(journal)) as reader:
        return [entry.target for entry in reader.newest(EventFilter(), None)]


def count(journal: Path) -> int:
    with read_journal(str(journal)) as reader:
        return reader.count(EventFilter())


def only_entry(journal: Path) -> FullEntry:
    (full,) = entries(journal)
    return full


def record_write(
    recorder: JournalRecorder, tool_input: Mapping[str, Any] | None = None
) -> None:
    """Record an event that no hook matched."""
    event = HookEventName.BeforeTool
    own = {"tool_name": "write_file", "tool_input": dict(tool_input or {})}
    fields = base_fields(event, "s-1", "/project", "") | own
    result = ProcessedHookResult(aggregated=make_empty_success_result())
    recorder.record(HookCall(event, fields), None, result)


def is_intact(journal: Path) -> bool:
    with closing(sqlite3.connect(journal)) as connection:
        return bool(connection.execute("PRAGMA integrity_check").fetchone() == ("ok",))


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for a state; fails when it does not come."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "the state was not reached"
        time.sleep(0.01)
