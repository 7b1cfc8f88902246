"""Rows of hooks that run for one event: functions in this process, and commands.

A row has ``hooks``. One with ``says`` is a function that returns that value (``again``
on a later call, ``raises`` to fail instead), any other an entry of the settings.
``event``, ``input``, ``config``, ``sequential``, ``matcher``, ``files`` and ``times``
say the rest. What comes of it is the verdict, the files that hooks left behind, and
``saw``: what functions were shown of the value that hooks may change, once it differs
from what the first one was shown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hookline import (
    Config,
    HookBusClient,
    HookEventName,
    HookSystem,
    InMemoryMessageBus,
    ProcessedHookResult,
    RemoteHooks,
    Settings,
)

from .fired import filled_in, places_of, verdict_as_data, write_files
from .pins import Row, masked, plain
from .workspace import INPUTS

_FUNCTION_KEYS = ("says", "again", "raises")
_CHANGED = {
    **dict.fromkeys(("BeforeTool", "AfterTool"), "tool_input"),
    **dict.fromkeys(("BeforeAgent", "AfterAgent"), "prompt"),
    **dict.fromkeys(("BeforeModel", "BeforeToolSelection"), "llm_request"),
    "AfterModel": "llm_response",
}


def marked_verdict(result: ProcessedHookResult) -> dict[str, Any]:
    """The verdict with the marks of each hook, and without hooks that only succeeded.

    Such a hook is its name; the error of a hook is not repeated in ``errors``.
    """
    verdict = verdict_as_data(result)
    if result.final_output and result.final_output.modified_tool_input == {}:
        verdict["modified_tool_input"] = {}
    hooks: list[Any] = []
    pairs = zip(verdict.pop("hooks", []), result.aggregated.hook_results, strict=True)
    for described, hook in pairs:
        for mark in ("observed", "is_async", "host_answer"):
            if getattr(hook, mark):
                described[mark] = getattr(hook, mark)
        if described.get("exit_code") in (None, 0):
            described.pop("exit_code", None)
        if described.get("stderr", "").startswith("Traceback"):
            described.pop("stderr")  # it names lines of this file
        if described.get("stdout", "").lstrip().startswith("{"):
            described.pop("stdout")  # it is what the row says
        is_plain = described == {"name": hook.hook_name, "success": True}
        hooks.append(hook.hook_name if is_plain else described)
    own = [f"hook {hook.hook_name!r}: {hook.error}" for hook in _failed(result)]
    if own == [error["message"] for error in verdict.get("errors", [])]:
        verdict.pop("errors", None)
    return {**verdict, "hooks": hooks}


def _failed(result: ProcessedHookResult) -> list[Any]:
    hooks = result.aggregated.hook_results
    return [hook for hook in hooks if hook.cause is not None and not hook.observed]


class RecordList:
    """A debug logger that keeps the records it is given."""

    def __init__(self, level: int) -> None:
        self.level = level
        self.records: list[tuple[int, str, Mapping[str, Any]]] = []

    def enabled(self, level: int) -> bool:
        return level >= self.level

    def log(self, level: int, name: str, record: Mapping[str, Any]) -> None:
        self.records.append((level, name, record))

    def flush(self) -> None:
        pass


class _Functions:
    """The functions of a row, and what they were shown."""

    def __init__(self, row: Row, event: HookEventName) -> None:
        self._row = row
        self._event = event
        self._field = _CHANGED.get(event, "")
        self._first: Any = None
        self.calls: dict[str, int] = {}
        self.saw: dict[str, list[Any]] = {}

    def register(self, system: HookSystem) -> None:
        for at, hook in enumerate(self._row["hooks"]):
            if not any(key in hook for key in _FUNCTION_KEYS):
                continue
            name = hook.get("name", "abcdefgh"[at])
            options = {k: v for k, v in hook.items() if k not in _FUNCTION_KEYS}
            options = {"sequential": self._row.get("sequential", False), **options}
            if "matcher" in self._row:
                options["matcher"] = self._row["matcher"]
            on: Callable[..., Any] = system.on
            on(self._event, **{**options, "name": name})(self._function(name, hook))

    def _function(self, name: str, hook: Row) -> Callable[[dict[str, Any]], Any]:
        def answer(event_input: dict[str, Any]) -> Any:
            shown = plain(event_input.get(self._field))
            if not self.calls:
                self._first = shown
            if json.dumps(shown) != json.dumps(self._first):  # true is not 1
                self.saw.setdefault(name, []).append(shown)
            self.calls[name] = self.calls.get(name, 0) + 1
            if "raises" in hook:
                raise RuntimeError(hook["raises"])
            if self.calls[name] > 1 and "again" in hook:
                return hook["again"]
            return hook.get("says")

        return answer


async def fire_hook_row(
    row: Row,
    folder: Path,
    *,
    over_the_bus: bool = False,
    log: RecordList | None = None,
) -> dict[str, Any]:
    """Make a row happen in a new folder; ``over_the_bus``: there the same comes of it.

    What a remote caller gets is compared with the verdict of a direct call.
    """
    places = places_of(folder)
    row = filled_in(row, places)
    write_files(row.get("files", {}), folder)
    event = HookEventName(row.get("event", "BeforeTool"))
    event_input = row.get("input", INPUTS[event])
    config = Config("s-1", folder, Settings.from_mapping(_settings(row, event)))
    bus = InMemoryMessageBus()
    functions = _Functions(row, event)
    async with HookSystem(config, bus, debug_logger=log) as system:
        functions.register(system)
        fire = system.event_handler.fire
        results = [
            marked_verdict(await fire(event, event_input))
            for _ in range(row.get("times", 1))
        ]
        if over_the_bus:
            functions.calls.clear()
            saw, functions.saw = functions.saw, {}
            remote = await RemoteHooks(HookBusClient(bus)).fire(event, event_input)
            if (there := marked_verdict(remote)) != results[0]:
                results[0]["over the bus"] = there
            functions.saw = saw
    outcome: dict[str, Any] = results[0] if len(results) == 1 else {"fired": results}
    if functions.saw:
        outcome["saw"] = functions.saw
    left = {
        file.name: _content(file)
        for file in sorted(folder.iterdir())
        if file.is_file() and file.name not in row.get("files", {})
    }
    if left:
        outcome["files"] = left
    described: dict[str, Any] = json.loads(masked(json.dumps(outcome), places))
    return described


def _settings(row: Row, event: HookEventName) -> dict[str, Any]:
    if "settings" in row:
        settings: dict[str, Any] = row["settings"]
        return settings
    listed = [
        hook for hook in row["hooks"] if not any(key in hook for key in _FUNCTION_KEYS)
    ]
    group = {key: row[key] for key in ("sequential", "matcher") if key in row}
    hooks: dict[str, Any] = {event: [{"hooks": listed, **group}]} if listed else {}
    return {"hooks": hooks, "hooksConfig": row.get("config", {})}


def _content(file: Path) -> Any:
    text = file.read_text()
    try:
        return json.loads(text)
    except ValueError:
        return text
