"""Rows that fire events: settings and files in, the verdict as plain data out."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from hookline import Config, HookEventName, HookSystem, ProcessedHookResult, Settings

from . import odd_values
from .pins import masked
from .workspace import INPUTS

_VERDICT = (
    *("blocked", "reason", "ask", "should_stop", "stop_reason"),
    *("system_message", "suppress_output", "user_message"),
)
_HOOK = (
    *("success", "exit_code", "error", "timed_out", "truncated", "would_block"),
    *("reran", "recheck", "warnings", "stdout", "stderr"),
)


def verdict_as_data(result: ProcessedHookResult) -> dict[str, Any]:
    """Every field of a result that says something: the empty ones are left out."""
    output = result.final_output
    fields: dict[str, Any] = {name: getattr(result, name) for name in _VERDICT}
    if output is not None:
        fields["output"] = output.to_wire()
        fields["modified_tool_input"] = output.modified_tool_input
        fields["additional_context"] = output.additional_context
    fields["errors"] = [error.to_wire() for error in result.aggregated.errors]
    fields["hooks"] = [
        {
            "name": hook.hook_name,
            **_filled({name: getattr(hook, name) for name in _HOOK}),
            **({} if hook.cause is None else {"cause": hook.cause}),
        }
        for hook in result.aggregated.hook_results
    ]
    if result.aggregated.success != all(
        hook.success for hook in result.aggregated.hook_results
    ):
        fields["success"] = result.aggregated.success
    return _filled(fields)


def _filled(fields: dict[str, Any]) -> dict[str, Any]:
    empty: tuple[object, ...] = (None, False, "", [], (), {})
    return {
        name: value
        for name, value in fields.items()
        if name in {"success", "exit_code"} or value not in empty
    }


def places_of(folder: Path) -> dict[str, object]:
    """The folders and programs of this run, by their names in a row."""
    return {
        "folder": folder,
        "tests": Path(__file__).parent.parent,
        "python": sys.executable,
        "bash": shutil.which("bash") or "/bin/sh",
    }


def filled_in(row: dict[str, Any], places: dict[str, object]) -> dict[str, Any]:
    """What a person wrote of a row, with the places of this run."""
    given = {name: value for name, value in row.items() if name != "then"}
    text = json.dumps(given, ensure_ascii=False)
    for name, place in _escaped(places).items():
        text = text.replace(f"<{name}>", place)
    filled: dict[str, Any] = json.loads(text)
    return filled


def write_files(files: dict[str, Any], folder: Path) -> None:
    """Write the files of a row: text, or a ``text`` in another ``encoding``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            file.write_text(content)
        else:
            file.write_bytes(content["text"].encode(content["encoding"]))
        file.chmod(0o755)


def folder_of(name: str, parent: Path) -> Path:
    """A folder for the row of this name, whatever characters are in it."""
    return parent / re.sub(r"\W+", "-", name)


def input_of(row: dict[str, Any], event: HookEventName) -> Any:
    """The input of a row: JSON, or a Python expression where JSON has no such value."""
    if "expression" in row:
        return eval(row["expression"], vars(odd_values))
    return row.get("input", INPUTS[event])


def settings_of(row: dict[str, Any], event: HookEventName) -> dict[str, Any]:
    """The settings of a row: all of them, or those of one group of hooks."""
    settings: dict[str, Any] = row.get("settings") or {
        "hooks": {event: [{"hooks": row["hooks"], **row.get("group", {})}]},
        "hooksConfig": row.get("config", {}),
    }
    return settings


async def fire_row(
    row: dict[str, Any], folder: Path, places: dict[str, object] | None = None
) -> dict[str, Any]:
    """Fire the event of a row in a new folder, and describe the verdict.

    ``files`` are written first, ``hooks`` is one group or ``settings`` all of them,
    ``config`` are ``hooksConfig``; ``<python>`` and ``<folder>`` are filled in.
    ``within`` names a folder of another name in the folder.
    """
    folder = folder / row.get("within", "")
    places = places_of(folder) | (places or {})
    filled = filled_in(row, places)
    write_files(filled.get("files", {}), folder)
    event = HookEventName(filled.get("event", "BeforeTool"))
    config = Config("s-1", folder, Settings.from_mapping(settings_of(filled, event)))
    async with HookSystem(config) as system:
        result = await system.event_handler.fire(event, input_of(filled, event))
    return described(verdict_as_data(result), places)


async def fire_function_row(row: dict[str, Any]) -> dict[str, Any]:
    """Fire the event of a row on the function ``guard`` of its ``source``."""
    namespace: dict[str, Any] = {"__name__": "guards"}
    exec(row["source"], namespace)
    event = HookEventName(row.get("event", "BeforeTool"))
    settings = Settings.from_mapping({"hooksConfig": row.get("config", {})})
    async with HookSystem(Config("s-1", "/", settings)) as system:
        system.on(event, name="h", **row.get("options", {}))(namespace["guard"])
        result = await system.event_handler.fire(event, input_of(row, event))
    caller = asyncio.current_task()
    assert caller is not None
    assert caller.cancelling() == 0, "a function cancelled its caller"
    return described(verdict_as_data(result), {})


def described(verdict: dict[str, Any], places: dict[str, object]) -> dict[str, Any]:
    """A verdict without what differs from run to run, and without very long texts."""
    text = json.dumps(without_huge_numbers(verdict), ensure_ascii=False, default=str)
    text = re.sub("toolu_[0-9a-f]{24}", "toolu_<id>", masked(text, _escaped(places)))
    shown: dict[str, Any] = shortened(json.loads(text))
    return shown


def without_huge_numbers(value: Any) -> Any:
    """A value without the numbers that Python's JSON does not write."""
    if isinstance(value, dict):
        return {name: without_huge_numbers(item) for name, item in value.items()}
    if isinstance(value, int) and value > 1 << 14_000:
        return f"a number of {value.bit_length()} bits"
    return value


def _escaped(places: dict[str, object]) -> dict[str, str]:
    """Places as they are written in JSON."""
    return {
        name: json.dumps(str(place), ensure_ascii=False)[1:-1]
        for name, place in places.items()
    }


def shortened(value: Any) -> Any:
    """A value with the beginning, the end, the length and a digest of long texts."""
    if isinstance(value, dict):
        return {name: shortened(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [shortened(item) for item in value]
    if not isinstance(value, str) or len(value) <= 1000:
        return value
    digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{value[:40]} ... {value[-40:]} ({len(value)} characters, {digest[:8]})"
