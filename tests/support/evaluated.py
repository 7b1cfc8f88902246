"""Rows of expressions: what a rule makes of them on an event."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hookline import Config, HookSystem, ProcessedHookResult, Settings

MISSING = "false: the event has no "


async def evaluate(
    expression: str, tool_input: Mapping[str, Any], folder: Path, cwd: str = ""
) -> Any:
    """What an expression is worth on a tool call.

    True or false as a rule decides; else its ``value``, and what is ``missing`` or
    the ``error`` that a rule fails with.
    """
    rule = {"type": "rule", "name": "decides", "when": expression}
    shows = {"hookSpecificOutput": {"tool_input": {"value": f"${{{expression}}}"}}}
    hooks = [
        {**rule, "then": {"systemMessage": "met"}},
        {"type": "rule", "name": "shows", "when": "true", "then": shows},
    ]
    result = await fire_rules(hooks, tool_input, folder, cwd)
    if not result.aggregated.hook_results:
        return {"refused": result.reason}
    decides = result.aggregated.hook_results[0]
    assert result.final_output is not None
    changed = result.final_output.modified_tool_input or {}
    value = changed.get("value")
    if decides.error is None and not decides.stderr:
        is_met = result.system_message == "met"
        return value if value is is_met else {"rule": is_met, "value": value}
    shown = {} if value == f"${{{expression}}}" else {"value": value}
    if decides.stderr:
        return shown | {"missing": decides.stderr.removeprefix(MISSING)}
    return shown | {"error": decides.error}


async def fire_rules(
    rules: list[dict[str, Any]],
    tool_input: Mapping[str, Any],
    folder: Path,
    cwd: str = "",
) -> ProcessedHookResult:
    """Fire a tool call on rules; with ``cwd`` they are those of a project around it."""
    mapping = {"hooks": {"BeforeTool": [{"hooks": rules}]}}
    if cwd:
        (folder / ".git").mkdir(exist_ok=True)
        file = folder / ".hookline" / "settings.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(mapping))
        with patch.dict(os.environ, {"HOOKLINE_TRUST": "all"}):
            config = Config.load(folder / cwd)
    else:
        config = Config("s-1", folder, Settings.from_mapping(mapping))
    async with HookSystem(config) as system:
        return await system.event_handler.fire(
            "BeforeTool", {"tool_name": "write_file", "tool_input": dict(tool_input)}
        )
