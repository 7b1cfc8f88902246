"""protocol.md#logs: what is logged."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

import pytest

from hookline import HookEventName, HookSystem
from tests.support.workshop import INPUTS, Workshop


class ListLogger:
    """Keeps the records it is given."""

    def __init__(self, level: int) -> None:
        self.level = level
        self.records: list[tuple[int, str, Mapping[str, Any]]] = []

    def enabled(self, level: int) -> bool:
        return level >= self.level

    def log(self, level: int, name: str, record: Mapping[str, Any]) -> None:
        self.records.append((level, name, record))

    def flush(self) -> None:
        pass

    def named(self, name: str) -> list[Mapping[str, Any]]:
        return [record for _, found, record in self.records if found == name]


async def fire(workshop: Workshop, level: int, *hooks: dict[str, Any]) -> ListLogger:
    log = ListLogger(level)
    config = workshop.config(workshop.settings("BeforeTool", *hooks))
    async with HookSystem(config, debug_logger=log) as system:
        await system.event_handler.fire_before_tool_event("write_file", {})
    return log


async def test_every_hook_has_a_result_record(workshop: Workshop) -> None:
    """DELTA-HTEL-001, rule O1."""
    log = await fire(
        workshop,
        logging.DEBUG,
        workshop.runs("echo out; echo err >&2", "good"),
        workshop.runs("echo bad >&2; exit 3", "bad"),
    )
    good, bad = log.named("hook:result")
    assert (good["event"], good["hook"], good["success"]) == (
        "BeforeTool",
        "good",
        True,
    )
    assert (good["exit_code"], good["stdout"], good["stderr"]) == (0, "out", "err")
    assert good["duration_ms"] > 0
    assert (bad["success"], bad["exit_code"], bad["error"]) == (
        False,
        3,
        "exited with status 3",
    )


async def test_every_failure_has_a_record_of_its_own(workshop: Workshop) -> None:
    """DELTA-HTEL-003, rule O3; exit 2 is a block and no failure."""
    log = await fire(
        workshop,
        logging.WARNING,
        workshop.runs("exit 3", "bad"),
        workshop.runs("exit 2", "blocker"),
    )
    assert [record["hook"] for record in log.named("hook:failure")] == ["bad"]
    assert log.named("hook:result") == []


async def test_every_fire_has_one_summary(workshop: Workshop) -> None:
    """DELTA-HTEL-002, rule O2."""
    log = await fire(
        workshop,
        logging.DEBUG,
        workshop.runs("exit 2", "blocker"),
        workshop.runs("exit 3", "bad"),
    )
    (summary,) = log.named("hook:batch_summary")
    assert (summary["total"], summary["succeeded"], summary["failed"]) == (2, 1, 1)
    assert summary["duration_ms"] > 0


async def test_a_fire_without_a_match_has_a_summary_with_no_hooks(
    workshop: Workshop,
) -> None:
    """Domain model 5.1."""
    log = await fire(workshop, logging.DEBUG)
    (summary,) = log.named("hook:batch_summary")
    assert (summary["total"], summary["duration_ms"]) == (0, 0)


async def test_every_fire_has_one_line_for_people(workshop: Workshop) -> None:
    """Seed 004 section 10."""
    log = await fire(workshop, logging.DEBUG, workshop.runs("echo no >&2; exit 2"))
    lines = [name for _, name, _ in log.records if name.startswith("BeforeTool fired")]
    assert len(lines) == 1
    assert lines[0].startswith("BeforeTool fired for 'write_file': 1 hook, ")
    assert lines[0].endswith("blocked (no)")


async def test_no_record_is_built_when_logging_is_off(workshop: Workshop) -> None:
    log = await fire(workshop, logging.CRITICAL, workshop.runs("exit 3"))
    assert log.records == []


@pytest.mark.parametrize(
    ("event", "said", "matcher", "line"),
    [
        (
            "BeforeTool",
            {},
            None,
            "BeforeTool fired for 'write_file': 1 hook, #, success",
        ),
        (
            *("BeforeTool", {}, "^read_file$"),
            "BeforeTool fired for 'write_file': 0 hooks matched, skipped",
        ),
        (
            *("BeforeModel", {"llm_request": {"model": "m-2"}}, None),
            "BeforeModel fired: 1 hook, #, success (modified request)",
        ),
        (
            *("AfterModel", {"llm_response": {"text": "no"}}, None),
            "AfterModel fired: 1 hook, #, success (modified response)",
        ),
        (
            *("BeforeTool", {"tool_input": {"path": "b"}}, None),
            "BeforeTool fired for 'write_file': 1 hook, #, success (modified input)",
        ),
        (
            *("BeforeTool", {"tool_input": {"path": "a.txt"}}, None),
            "BeforeTool fired for 'write_file': 1 hook, #, success",
        ),
        ("BeforeAgent", {}, None, "BeforeAgent fired: 1 hook, #, success"),
    ],
)
async def test_line_for_people_is_that_of_the_specification(
    event: str, said: Any, matcher: str | None, line: str, workshop: Workshop
) -> None:
    """Seed 004 section 10, to the letter."""
    hook = workshop.says({"hookSpecificOutput": said} if said else {})
    group = {} if matcher is None else {"matcher": matcher}
    log = ListLogger(logging.DEBUG)
    config = workshop.config(workshop.settings(event, hook, **group))
    async with HookSystem(config, debug_logger=log) as system:
        await system.event_handler.fire(event, INPUTS[HookEventName(event)])
    lines = [re.sub(r"\d+ms", "#", name) for _, name, _ in log.records]
    assert [text for text in lines if " fired" in text] == [line]
