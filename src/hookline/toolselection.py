"""Combine the tool restrictions of several hooks into one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .outputs import MODES
from .settings.schema import ToolSelection


def merge_tool_configs(
    configs: Sequence[dict[str, Any]], selection: ToolSelection
) -> dict[str, Any]:
    """Merge at least one ``toolConfig``; a hook that names no tool adds none."""
    mode = _strictest(config.get("mode") for config in configs)
    lists = [names for config in configs if (names := allowed_names(config))]
    names = _combined(lists, selection)
    if mode == "NONE" or (lists and not names):
        return {"mode": "NONE", "allowedFunctionNames": []}
    return {"mode": mode, "allowedFunctionNames": sorted(names)}


def allowed_names(config: dict[str, Any]) -> set[str]:
    """The names in one ``toolConfig``, leaving out what is no name."""
    names = config.get("allowedFunctionNames")
    if not isinstance(names, list):
        return set()
    return {name for name in names if isinstance(name, str)}


def _strictest(modes: Iterable[Any]) -> str:
    said = {mode for mode in modes if mode in MODES}
    return next((mode for mode in MODES if mode in said), "AUTO")


def _combined(lists: list[set[str]], selection: ToolSelection) -> set[str]:
    if not lists:
        return set()
    if selection is ToolSelection.INTERSECT:
        return set.intersection(*lists)
    return set.union(*lists)
