"""Which functions a google-genai request offers, and which of them may be called."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hookline.translators.fields import (
    get,
    is_record,
    items_of,
    put,
    record,
    text_or_none,
    wrong,
)
from hookline.translators.stable import HookToolConfig

from .names import field, spellings
from .sdk import types_of, unknown_values_allowed


def read_tool_config(tool_config: Any) -> HookToolConfig:
    """Read a ToolConfig or its dict."""
    place = "toolConfig.functionCallingConfig"
    calling = field(record(tool_config, "toolConfig"), "function_calling_config")
    if calling is None:
        return HookToolConfig()
    mode = text_or_none(get(record(calling, place), "mode"), f"{place}.mode")
    names = field(calling, "allowed_function_names")
    if names is not None:
        place = f"{place}.allowedFunctionNames"
        names = [_name(name, place) for name in items_of(names, place)]
    return HookToolConfig(mode, names)


def write_tool_config(tool_config: HookToolConfig, base: Any, plain: bool) -> Any:
    """Write a ToolConfig, on top of what the base has beside it."""
    mode: Any = tool_config.mode or "AUTO"
    # The service refuses names under any other mode; who restricts tools under AUTO
    # has to leave the others out of the request.
    names = tool_config.allowed_function_names if carries_names(mode) else None
    if base is None:
        base = {} if plain else types_of().ToolConfig()
    calling = field(base, "function_calling_config")
    if calling is None:
        is_dict = isinstance(base, Mapping)
        calling = {} if is_dict else types_of().FunctionCallingConfig()
    if not isinstance(calling, Mapping):
        with unknown_values_allowed():
            mode = types_of().FunctionCallingConfigMode(mode)
    calling = put(calling, mode, "mode")
    calling = put(calling, names or None, *spellings("allowed_function_names"))
    return put(base, calling, *spellings("function_calling_config"))


def carries_names(mode: str | None) -> bool:
    """Whether allowed names are heeded under a mode."""
    return mode in ("ANY", "VALIDATED")


def function_names(request: Any) -> list[str]:
    """Name the functions that a request offers."""
    return [name for tool in _tools(request) for name in _names_in(tool)]


def limit_functions(request: Any, names: Collection[str]) -> Any:
    """Leave out all functions but some; tools that are no functions stay."""
    tools = _tools(request)
    kept = [left for tool in tools if (left := _limited(tool, names)) is not None]
    if len(kept) == len(tools) and all(map(_is, kept, tools)):
        return request
    return put(request, put(get(request, "config"), kept or None, "tools"), "config")


def _is(a: Any, b: Any) -> bool:
    return a is b


def _tools(request: Any) -> list[Any]:
    return items_of(get(get(request, "config"), "tools"), "config.tools")


def _names_in(tool: Any) -> list[str]:
    if not is_record(tool):
        name = getattr(tool, "__name__", None)
        return [name] if isinstance(name, str) else []
    declared = items_of(field(tool, "function_declarations"), "functionDeclarations")
    return [name for one in declared if isinstance(name := get(one, "name"), str)]


def _limited(tool: Any, names: Collection[str]) -> Any:
    inside = _names_in(tool)
    if all(name in names for name in inside):
        return tool
    if not is_record(tool):
        return None
    declared = field(tool, "function_declarations")
    kept = [one for one in declared if get(one, "name") in names]
    if not kept and not _has_more(tool):
        return None
    return put(tool, kept or None, *spellings("function_declarations"))


def _has_more(tool: Any) -> bool:
    return any(
        value is not None and name not in spellings("function_declarations")
        for name, value in dict(tool).items()
    )


def _name(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise wrong(place, "a list of strings", value)
    return value
