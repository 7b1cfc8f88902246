"""Events recorded for real, and what a journal then holds."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from hookline import Config, HookSystem, ProcessedHookResult, Settings
from hookline.executors.contract import HookCall
from hookline.journal.query import EventFilter, FullEntry, read_journal
from hookline.journal.rows import Occurrence, occurrence_of
from hookline.protocol.events import HookEventName
from hookline.protocol.inputs import base_fields
from hookline.protocol.results import make_empty_success_result

PATIENCE_S = 60.0
"""A guard against hanging, no claim about speed."""


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
        found = [reader.find(one.id) for one in reader.oldest(EventFilter())]
    return [full for full in found if full is not None]


def only_entry(journal: Path) -> FullEntry:
    (full,) = entries(journal)
    return full


def occurrence(
    tool_input: Mapping[str, Any] | None = None, at: float | None = None
) -> Occurrence:
    """An event that no hook matched."""
    event = HookEventName.BeforeTool
    own = {"tool_name": "write_file", "tool_input": dict(tool_input or {})}
    fields = base_fields(event, "s-1", "/project", "") | own
    result = ProcessedHookResult(aggregated=make_empty_success_result())
    found = occurrence_of(HookCall(event, fields), None, result)
    if at is None:
        return found
    import msgspec

    return msgspec.structs.replace(found, at=at)


def is_intact(journal: Path) -> bool:
    with closing(sqlite3.connect(journal)) as connection:
        return bool(connection.execute("PRAGMA integrity_check").fetchone() == ("ok",))


def start_python(script: str, *words: str, **more: Any) -> subprocess.Popen[bytes]:
    """Start a Python process with a script and its arguments."""
    argv = [sys.executable, "-c", textwrap.dedent(script), *words]
    return subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more
    )


def run_python(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", textwrap.dedent(script), *words]
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for a state; fails when it does not come."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)


def names(found: Iterable[FullEntry]) -> list[str | None]:
    return [full.entry.target for full in found]
