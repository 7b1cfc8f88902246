"""Which tools an Anthropic request offers, and its ``tool_choice``.

The service can hold a call to one name, not to several, and to none under ``auto``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hookline.translators.fields import get, items_of, record, text_or_none
from hookline.translators.stable import HookToolConfig

_MODES = {"auto": "AUTO", "any": "ANY", "none": "NONE"}
_CHOICES = {mode: choice for choice, mode in _MODES.items()}
_PARALLEL = "disable_parallel_tool_use"


def read_tool_choice(choice: Any) -> HookToolConfig:
    """Read a ``tool_choice``; what is not in the table passes as text."""
    kind = text_or_none(get(record(choice, "tool_choice"), "type"), "tool_choice.type")
    if kind == "tool":
        name = text_or_none(get(choice, "name"), "tool_choice.name")
        return HookToolConfig("ANY", [name] if name else None)
    return HookToolConfig(None if kind is None else _MODES.get(kind, kind))


def write_tool_choice(tool_config: HookToolConfig, before: Any) -> dict[str, Any]:
    """Write a ``tool_choice``; whether tools run in parallel stays as it was."""
    mode, names = tool_config.mode or "AUTO", tool_config.allowed_function_names
    if carries_names(tool_config) and names:
        choice: dict[str, Any] = {"type": "tool", "name": names[0]}
    else:
        choice = {"type": _CHOICES.get(mode, mode)}
    parallel = get(before, _PARALLEL)
    if parallel is not None and mode != "NONE":
        choice[_PARALLEL] = parallel
    return choice


def carries_names(tool_config: HookToolConfig) -> bool:
    """Whether the names can be said: one that has to be called."""
    names = tool_config.allowed_function_names
    return tool_config.mode == "ANY" and names is not None and len(names) == 1


def offered_names(request: Any) -> list[str]:
    """Name the tools that a request offers."""
    tools = items_of(get(request, "tools"), "tools")
    return [name for tool in tools if isinstance(name := get(tool, "name"), str)]


def limit_offered(request: Mapping[str, Any], names: Collection[str]) -> Any:
    """Leave out all tools with a name but some."""
    tools = items_of(get(request, "tools"), "tools")
    kept = [tool for tool in tools if _stays(get(tool, "name"), names)]
    if kept == tools:
        return request
    if kept:
        return {**request, "tools": kept}
    # Without tools the service refuses a choice among them.
    return {k: v for k, v in request.items() if k not in ("tools", "tool_choice")}


def _stays(name: Any, names: Collection[str]) -> bool:
    return not isinstance(name, str) or name in names
