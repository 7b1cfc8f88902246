"""One equality decides whether hooks changed anything, wherever that is told.

protocol.md#results: two values are the same if they are equal as JSON values.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from hookline import Config, HookEventName, HookSystem, Settings
from hookline.agent import execute_tool_with_hooks
from hookline.bus import HookBusClient, InMemoryMessageBus, RemoteHooks
from hookline.journal.query import EventFilter, read_journal
from hookline.telemetry.prometheus import PrometheusTelemetry
from tests.support.workshop import INPUTS, Workshop


class Text(str):
    """A text of another type."""

    __slots__ = ()


BIG = 10**40
PAIRS: list[tuple[Any, Any, bool]] = [
    ({"b": {"d": 1, "c": 2}, "a": 3}, {"a": 3, "b": {"c": 2, "d": 1}}, True),
    ([{"b": 1, "a": 2}], [{"a": 2, "b": 1}], True),
    (1, 1.0, True),
    (2.0, 2, True),
    (0, -0.0, True),
    (BIG, BIG, True),
    (BIG, BIG + 1, False),
    (2**53 + 1, float(2**53 + 1), False),
    (1, True, False),
    (0, False, False),
    ([1], [True], False),
    (True, 1.0, False),
    (1, "1", False),
    (None, False, False),
    (None, 0, False),
    ("", None, False),
    ({}, [], False),
    (float("nan"), None, True),
    ((1, (2,)), [1, [2]], True),
    ([1, 2], [2, 1], False),
    ([1], [1, 1], False),
    ({"a": None}, {}, False),
    (Text("a"), "a", True),
    (PurePosixPath("a/b"), "a/b", True),
    (Decimal("1.50"), "1.50", True),
    (b"a", "a", True),
    ({1: "a"}, {"1": "a"}, True),
    ("a\ud800", "a\ufffd", True),
    ("e\u0301", "\u00e9", False),
]


def ids(pair: object) -> str:
    return ascii(pair)[:40]


@pytest.mark.parametrize(("shown", "repeated", "same"), PAIRS, ids=ids)
async def test_hook_that_repeats_a_value_changes_nothing(
    shown: Any, repeated: Any, same: bool, tmp_path: Path
) -> None:
    """In results, journal, metrics, hooked tools and over the bus alike."""
    journal, figures = tmp_path / "journal.sqlite", PrometheusTelemetry()
    given = {"path": "a", "value": shown}
    said = {"hookSpecificOutput": {"tool_input": {"value": repeated, "path": "a"}}}
    bus = InMemoryMessageBus()
    config = Config("s", tmp_path, Settings.from_mapping({}))
    hooks = HookSystem(config, bus, telemetry=figures)
    hooks.record_to(str(journal))
    hooks.on("BeforeTool")(lambda _event: said)
    ran: list[Mapping[str, Any]] = []
    async with hooks:
        fired = await config.session().fire(
            "BeforeTool", {"tool_name": "t", "tool_input": given}
        )
        remote = await RemoteHooks(HookBusClient(bus)).fire_before_tool_event(
            "t", given
        )
        result = await execute_tool_with_hooks(config, "t", given, ran.append)
    for verdict in (fired, remote):
        final = verdict.final_output
        assert final is not None
        assert (final.modified_tool_input is None) is same
    assert ("A hook changed" not in result.text) is same
    assert (ran[0]["value"] is shown) is same
    word = "allowed" if same else "changed"
    with read_journal(str(journal)) as reader:
        rows = reader.newest(EventFilter(event="BeforeTool"), None)
    assert [row.verdict for row in rows] == [word] * 3
    line = f'event="BeforeTool",verdict="{word}"}} 3.0'
    assert line in figures.render(None).decode()


@pytest.mark.parametrize("event", ["BeforeModel", "AfterModel"])
async def test_hook_that_repeats_a_model_call_changes_nothing(
    event: str, workshop: Workshop
) -> None:
    """protocol.md#results: a request or response, with its keys in another order."""
    field = "llm_request" if event == "BeforeModel" else "llm_response"
    script = (
        "import json, sys; value = json.load(sys.stdin)[sys.argv[1]]; "
        "value = dict(reversed(value.items())); "
        "print(json.dumps({'hookSpecificOutput': {sys.argv[1]: value}}, indent=1))"
    )
    hook = workshop.runs(f'"$HOOKLINE_PYTHON" -c "{script}" {field}')
    result = await workshop.fire(event, hook)
    assert result.aggregated.hook_results[0].raw_output
    assert result.final_output is not None
    assert field not in result.final_output.hook_specific_output


async def test_hook_that_repeats_its_input_asks_nobody_again(
    workshop: Workshop,
) -> None:
    """protocol.md#several-hooks: what is executed is what the guards have seen."""
    note = workshop.runs("cat >/dev/null; echo x >>ran", "note")
    value = {"content": "hello", "path": "a.txt"}
    repeat = workshop.says({"hookSpecificOutput": {"tool_input": value}}, "repeat")
    for sequential in (False, True):
        result = await workshop.fire("BeforeTool", note, repeat, sequential=sequential)
        assert [hook.recheck for hook in result.aggregated.hook_results] == [False] * 2
    assert (workshop.folder / "ran").read_text() == "x\nx\n"


async def test_change_that_is_taken_back_is_none(workshop: Workshop) -> None:
    """protocol.md#results: what counts is the value in the end."""
    change = workshop.says({"hookSpecificOutput": {"tool_input": {"path": "b"}}}, "one")
    back = workshop.says(
        {"hookSpecificOutput": {"tool_input": {"path": "a.txt"}}}, "two"
    )
    result = await workshop.fire("BeforeTool", change, back, sequential=True)
    assert result.final_output is not None
    assert result.final_output.modified_tool_input is None
    assert INPUTS[HookEventName.BeforeTool]["tool_input"]["path"] == "a.txt"
