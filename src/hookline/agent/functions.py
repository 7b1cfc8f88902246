"""Python functions as tools: their description for a model, and calling them.

A plain function runs in a thread, so that tools of one turn run side by side.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable
from typing import Any, get_type_hints

import msgspec
from msgspec import Struct

from .conversation import ToolSpec

_VAR_POSITIONAL = inspect.Parameter.VAR_POSITIONAL


class Tool(Struct, frozen=True):
    """A tool: what the model is told of it, and the function that does it."""

    spec: ToolSpec
    function: Callable[..., Any]

    @property
    def name(self) -> str:
        """What the model calls it by."""
        return self.spec.name

    async def execute(self, tool_input: dict[str, Any]) -> Any:
        """Call the function with the input's keys as arguments."""
        if inspect.iscoroutinefunction(self.function):
            return await self.function(**tool_input)
        return await asyncio.to_thread(self.function, **tool_input)


def as_tool(tool: Tool | Callable[..., Any]) -> Tool:
    """Take a Tool, or make one of a function, its annotations and its docstring."""
    if isinstance(tool, Tool):
        return tool
    name = getattr(tool, "__name__", type(tool).__name__)
    spec = ToolSpec(
        name=name,
        description=inspect.getdoc(tool) or "",
        parameters=_parameters(tool),
    )
    return Tool(spec, tool)


def by_name(tools: Iterable[Tool | Callable[..., Any]]) -> dict[str, Tool]:
    """Tools under their names; the first of a name stays."""
    found: dict[str, Tool] = {}
    for tool in map(as_tool, tools):
        found.setdefault(tool.name, tool)
    return found


def input_of(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """What a call looks like as a tool's input: arguments by name."""
    bound = signature.bind(*args, **kwargs)
    found: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            found |= value
        else:
            found[name] = value
    return found


def arguments_of(
    signature: inspect.Signature, tool_input: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """How to call a function with a tool's input."""
    left = dict(tool_input)
    kinds = {name: p.kind for name, p in signature.parameters.items()}
    names = list(kinds)
    star = next((n for n in names if kinds[n] is _VAR_POSITIONAL and left.get(n)), None)
    positional = [n for n in names if kinds[n] is inspect.Parameter.POSITIONAL_ONLY]
    if star is not None:
        positional = names[: names.index(star)]
    args = [left.pop(name) for name in positional if name in left]
    more = left.pop(star) if star is not None else ()
    return (*args, *more), left


def _parameters(function: Callable[..., Any]) -> dict[str, Any]:
    signature = inspect.signature(function)
    hints = _hints(function)
    properties: dict[str, Any] = {}
    required = []
    for name, parameter in signature.parameters.items():
        if parameter.kind in (_VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        properties[name] = _schema(hints.get(name, Any))
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except (NameError, TypeError):
        return {}  # an annotation that cannot be resolved says nothing


def _schema(annotation: Any) -> dict[str, Any]:
    try:
        return msgspec.json.schema(annotation)
    except (TypeError, NotImplementedError):
        return {}  # anything goes
