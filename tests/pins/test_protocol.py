"""What hooks are shown of an event, and how their answers are read."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookEventName, HookSystem, Settings
from hookline.agent import Confirmation, execute_tool_with_hooks
from hookline.errors import EncodingError
from hookline.protocol.validators import PREDICATES, explain
from hookline.protocol.values import (
    as_plain,
    decode,
    encode,
    encode_whole,
    restored,
    text_of,
)
from tests.support import typed_values
from tests.support.hook_rows import fire_hook_row
from tests.support.pins import PinTable, Row
from tests.support.workspace import INPUTS

Table = Callable[[str], PinTable]
DIALECTS = ("hookline", "claude", "gemini", "llxprt")
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
CALL_ID = r"toolu_[0-9a-f]{24}"
BASE = {
    "session_id": "s",
    "cwd": "/",
    "hook_event_name": "e",
    "timestamp": "t",
    "transcript_path": "",
}


async def test_field_of_an_output_counts_if_it_has_the_right_type(
    pin_table: Table, tmp_path: Path
) -> None:
    """protocol.md#process: a wrong value is ignored by itself."""

    async def fired(name: str, row: Row) -> object:
        row = {**row, "hooks": [{"name": "hook", "says": row["says"]}]}
        return await fire_hook_row(row, tmp_path / str(hash(name)))

    await pin_table("protocol/outputs").check(fired)


async def test_text_of_an_output_is_read_as_json(
    pin_table: Table, tmp_path: Path
) -> None:
    """A verdict must not be lost because of an unusual value beside it."""

    async def fired(name: str, row: Row) -> object:
        hook = {"type": "command", "name": "hook", "command": "cat answer >&1"}
        text = row["prints"] * row.get("times", 1) + row.get("and", "")
        row = {"files": {"answer": text}, "hooks": [{**hook, **row.get("hook", {})}]}
        return await fire_hook_row(row, tmp_path / str(hash(name)))

    await pin_table("protocol/json_texts").check(fired)


async def test_input_of_an_event_is_valid_or_the_first_wrong_field_is_named(
    pin_table: Table,
) -> None:
    """DELTA-HPAY-001, DELTA-HPAY-002, rules V1 to V4; "" is no problem."""

    def explained(name: str, row: Row) -> object:
        event, value = HookEventName(row["event"]), row["input"]
        value = BASE | value if isinstance(value, dict) else value
        problem = explain(event, value)
        assert PREDICATES[event](value) is (problem == "")
        return problem

    await pin_table("protocol/inputs").check(explained)


REPEATS_ITS_INPUT = """
from hookline import script

KEYS = {"BeforeTool": "tool_input", "PreToolUse": "updatedInput"}

def repeat(event):
    answer = {"seen": event}
    if key := KEYS.get(event["hook_event_name"]):
        answer["hookSpecificOutput"] = {key: event["tool_input"]}
    return answer

script.run(repeat)
"""


async def test_hook_is_shown_an_event_in_the_words_of_its_dialect(
    pin_table: Table, tmp_path: Path
) -> None:
    """HOOK-061, HOOK-062, protocol.md#events and #dialects.

    Each hook gives its input back unchanged, which is no change to ours. Fields that
    have the same value in every row are left out.
    """
    (tmp_path / "repeat.py").write_text(REPEATS_ITS_INPUT)
    worker = {"type": "worker", "command": '"$HOOKLINE_PYTHON" repeat.py'}
    hooks = [
        {**worker, "name": dialect, "dialect": dialect, "recheck": False}
        for dialect in DIALECTS
    ]
    groups = {event: [{"hooks": hooks}] for event in INPUTS}
    config = Config("s-1", tmp_path, Settings.from_mapping({"hooks": groups}))
    usual = {"session_id": "s-1", "cwd": str(tmp_path), "transcript_path": ""}

    async with HookSystem(config) as system:

        async def shown(name: str, row: Row) -> object:
            event = HookEventName(row.get("event", "BeforeTool"))
            event_input = row.get("input", INPUTS[event])
            result = await system.event_handler.fire(event, event_input)
            outcome: dict[str, Any] = {}
            for hook in result.aggregated.hook_results:
                seen = (hook.raw_output or {}).get("seen", {})
                shown_fields = {k: v for k, v in seen.items() if usual.get(k) != v}
                if re.fullmatch(TIME, shown_fields.get("timestamp", "")):
                    del shown_fields["timestamp"]
                outcome[hook.hook_name] = shown_fields
                if hook.output is not None and hook.output.asks:
                    shown_fields["-> asks"] = hook.output.reason
            outcome = json.loads(re.sub(CALL_ID, "toolu_<id>", json.dumps(outcome)))
            if outcome.get("llxprt") == outcome.get("gemini"):
                outcome["llxprt"] = "as gemini"
            if result.final_output and result.final_output.modified_tool_input:
                outcome["changed"] = result.final_output.modified_tool_input
            return outcome

        await pin_table("protocol/shown").check(shown, at_once=1)


async def test_answer_of_a_hook_of_another_host_means_what_it_means_there(
    pin_table: Table, tmp_path: Path
) -> None:
    """protocol.md#dialects: exit codes, words, messages, and first lines."""

    async def fired(name: str, row: Row) -> object:
        return await fire_hook_row(row, tmp_path / str(hash(name)))

    await pin_table("protocol/dialect_answers").check(fired)


async def test_hook_has_the_variables_of_its_host_and_no_other(
    pin_table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the host of Hookline is another one of these.

    A key of an API is no variable of another agent, but Claude Code's hooks get none.
    """
    for name in os.environ:
        if name.startswith(("CLAUDE", "GEMINI", "LLXPRT", "HOOKLINE_D")):
            monkeypatch.delenv(name)
    for name in ("GEMINI_API_KEY", "GEMINI_SESSION_ID", "GEMINI_CWD", "CLAUDECODE"):
        monkeypatch.setenv(name, "inherited")

    async def fired(name: str, row: Row) -> object:
        return await fire_hook_row(row, tmp_path / str(hash(name)))

    await pin_table("protocol/dialect_variables").check(fired)


async def test_tool_of_an_agent_with_hooks_of_another_host_gives_its_model_a_text(
    pin_table: Table, tmp_path: Path
) -> None:
    """The tool returns SECRET; ``agrees`` is what a person says if they are asked."""

    async def called(name: str, row: Row) -> object:
        folder = tmp_path / str(hash(name))
        folder.mkdir()
        group = [{"hooks": [{"type": "command", "name": "theirs", **row["hook"]}]}]
        hooks = dict.fromkeys(row["events"], group)
        questions: list[str | None] = []

        def confirm(question: Confirmation) -> bool:
            questions.append(question.reason)
            return bool(row["agrees"])

        settings = Settings.from_mapping({"hooks": hooks})
        async with Config("s-1", folder, settings) as config:
            result = await execute_tool_with_hooks(
                config,
                *(row.get("tool", "run_shell_command"), row.get("input", {})),
                lambda _: "SECRET",
                confirm=confirm if "agrees" in row else None,
            )
        shown = {"model": result.llm_content, "person": result.return_display}
        failed = {} if result.error is None else {"error": str(result.error)}
        return {**shown, **failed, **({"asked": questions} if questions else {})}

    await pin_table("protocol/dialect_tools").check(called)


async def test_value_of_any_type_is_shown_as_what_it_means(
    pin_table: Table, tmp_path: Path
) -> None:
    """protocol.md#process: by itself and inside of others.

    What cannot be shown as a whole is refused; the rest has a text as well.
    """

    def shown(name: str, row: Row) -> object:
        value = eval(row["value"], vars(typed_values) | {"folder": tmp_path})
        inside = {"k": [value]}
        try:
            seen = decode(encode_whole(inside))
        except EncodingError as error:
            return {"refused": str(error)}
        assert decode(encode(inside)) == as_plain(inside) == seen
        assert decode(encode(value)) == as_plain(value) == seen["k"][0]
        assert decode(encode_whole(value)) == seen["k"][0]
        outcome = {"shown": seen["k"][0], "text": text_of(value)}
        return json.loads(json.dumps(outcome).replace(str(tmp_path), "<folder>"))

    await pin_table("protocol/values").check(shown)


async def test_changed_value_keeps_the_type_that_it_replaces(pin_table: Table) -> None:
    """Of a value and what hooks made of it, a tool gets nothing that was not shown."""

    def restored_value(name: str, row: Row) -> object:
        return repr(restored(eval(row["original"], vars(typed_values)), row["changed"]))

    await pin_table("protocol/restored").check(restored_value)
