"""Which tools an OpenAI request offers, and ``tool_choice`` in both APIs.

Chat Completions nests a tool's name (``{"function": {"name": ...}}``), the Responses
API does not (``flat``). Both can hold a call to a list of names under every mode.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hookline.translators.fields import get, is_record, items_of, text_or_none, wrong
from hookline.translators.stable import HookToolConfig

_MODES = {"none": "NONE", "auto": "AUTO", "required": "ANY"}
_CHOICES = {mode: choice for choice, mode in _MODES.items()}


def read_tool_choice(choice: Any) -> HookToolConfig:
    """Read a ``tool_choice``; what is not in the table passes as text."""
    if isinstance(choice, str):
        return HookToolConfig(_MODES.get(choice, choice))
    if not is_record(choice):
        raise wrong("tool_choice", "a string or an object", choice)
    kind = text_or_none(get(choice, "type"), "tool_choice.type")
    if kind != "allowed_tools":
        return HookToolConfig("ANY", [_name_of(choice, "tool_choice")])
    inner = get(choice, "allowed_tools") or choice
    mode = text_or_none(get(inner, "mode"), "tool_choice.mode") or "auto"
    tools = items_of(get(inner, "tools"), "tool_choice.tools")
    names = [_name_of(tool, "tool_choice.tools") for tool in tools]
    return HookToolConfig(_MODES.get(mode, mode), names)


def write_tool_choice(tool_config: HookToolConfig, tools: Any, *, flat: bool) -> Any:
    """Write a ``tool_choice`` in the spelling of one of the two APIs."""
    mode, names = tool_config.mode or "AUTO", tool_config.allowed_function_names
    choice = _CHOICES.get(mode, mode)
    if not names or mode == "NONE":
        return choice
    kinds = {
        name: kind
        for kind, name in map(_kind_and_name, items_of(tools, "tools"))
        if name
    }
    chosen = [_spelt(name, kinds.get(name, "function"), flat=flat) for name in names]
    if mode == "ANY" and len(chosen) == 1:
        return chosen[0]
    allowed = {"mode": choice, "tools": chosen}
    if flat:
        return {"type": "allowed_tools", **allowed}
    return {"type": "allowed_tools", "allowed_tools": allowed}


def offered_names(request: Any) -> list[str]:
    """Name the functions and custom tools that a request offers."""
    tools = _leaves(items_of(get(request, "tools"), "tools"))
    return [name for _, name in map(_kind_and_name, tools) if name]


def limit_offered(request: Mapping[str, Any], names: Collection[str]) -> Any:
    """Leave out all tools with a name but some; hosted tools stay."""
    tools = items_of(get(request, "tools"), "tools")
    kept = [left for tool in tools if (left := _limited(tool, names)) is not None]
    if kept == tools:
        return request
    if kept:
        return {**request, "tools": kept}
    # Without tools the service refuses the settings that speak of them.
    gone = ("tools", "tool_choice", "parallel_tool_calls")
    return {key: value for key, value in request.items() if key not in gone}


def _limited(tool: Any, names: Collection[str]) -> Any:
    inner = _namespace(tool)
    if inner is not None:
        kept = [one for one in inner if _kind_and_name(one)[1] in names]
        return {**tool, "tools": kept} if kept else None
    name = _kind_and_name(tool)[1]
    return tool if name is None or name in names else None


def _leaves(tools: list[Any]) -> list[Any]:
    return [leaf for tool in tools for leaf in _namespace(tool) or [tool]]


def _namespace(tool: Any) -> list[Any] | None:
    if get(tool, "type") != "namespace":
        return None
    return items_of(get(tool, "tools"), "tools.tools")


def _kind_and_name(tool: Any) -> tuple[str, str | None]:
    kind = str(get(tool, "type") or "function")
    name = get(tool, "name") or get(get(tool, kind), "name")
    return kind, name if isinstance(name, str) else None


def _name_of(choice: Any, place: str) -> str:
    kind, name = _kind_and_name(choice)
    return name or str(get(choice, "server_label") or kind or place)


def _spelt(name: str, kind: str, *, flat: bool) -> dict[str, Any]:
    return (
        {"type": kind, "name": name} if flat else {"type": kind, kind: {"name": name}}
    )
