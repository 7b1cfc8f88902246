"""The history of a conversation and its tools, independent of any SDK.

A model's turn keeps the SDK's own response (``raw``), so that thoughts, signatures and
images go back to the SDK unchanged.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, Protocol, get_type_hints

import msgspec
from msgspec import Struct, field

from hookline.engine.registration import signature_of
from hookline.translators.shape import HookTranslator

from .tool_calls import ToolResult, annotation


class Role(StrEnum):
    """The author of a turn."""

    USER = "user"
    MODEL = "model"
    TOOLS = "tools"
    SYSTEM = "system"


class ToolCall(Struct, frozen=True):
    """A tool call of the model."""

    id: str
    name: str
    input: dict[str, Any]
    problem: str | None = None
    """Why it cannot be run, for example invalid arguments."""


class ToolAnswer(Struct, frozen=True):
    """The answer to one of the model's calls."""

    call: ToolCall
    result: ToolResult


class Turn(Struct, frozen=True, kw_only=True):
    """One entry of the history."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    answers: tuple[ToolAnswer, ...] = ()
    raw: Any = None

    @property
    def marked_text(self) -> str:
        """The text for a service without system turns: one is marked as such."""
        return annotation(self.text) if self.role is Role.SYSTEM else self.text


class ToolSpec(Struct, frozen=True, kw_only=True):
    """The description of a tool; ``parameters`` is a JSON Schema."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(
        default_factory=lambda: {"type": "object", "properties": {}}
    )


class ModelReply(Struct, frozen=True):
    """Text and calls of a complete response."""

    text: str
    calls: tuple[ToolCall, ...] = ()


class ModelClient(Protocol):
    """A model behind one SDK."""

    @property
    def translator(self) -> HookTranslator:
        """Translates between the SDK's objects and the stable shape."""

    def build(
        self, turns: Sequence[Turn], tools: Sequence[ToolSpec], system: str | None
    ) -> Any:
        """Build the SDK's request from a history."""

    def stream(self, request: Any) -> AsyncIterator[Any]:
        """Call the model and yield the SDK's chunks."""

    def text_of(self, chunk: Any) -> str:
        """The text of a chunk or of a complete response."""

    def assemble(self, chunks: Sequence[Any]) -> Any:
        """Build the SDK's complete response from its chunks."""

    def read(self, response: Any) -> ModelReply:
        """Read text and calls of a complete response."""


def user_turn(text: str) -> Turn:
    """A message of the user."""
    return Turn(role=Role.USER, text=text)


def tools_turn(answers: Sequence[ToolAnswer]) -> Turn:
    """The answers of tools, in call order."""
    return Turn(role=Role.TOOLS, answers=tuple(answers))


_POSITIONAL_OR_KEYWORD = inspect.Parameter.POSITIONAL_OR_KEYWORD
_VAR_POSITIONAL = inspect.Parameter.VAR_POSITIONAL
_VAR_KEYWORD = inspect.Parameter.VAR_KEYWORD


class Tool(Struct, frozen=True):
    """A tool: its description for the model, and the function to call."""

    spec: ToolSpec
    function: Callable[..., Any]

    @property
    def name(self) -> str:
        """The name that the model uses."""
        return self.spec.name

    def complete(self, tool_input: dict[str, Any]) -> dict[str, Any]:
        """An input with what the model leaves out: defaults, and what is bound."""
        _, bound = _unbound(self.function)
        try:
            parameters = [*signature_of(self.function).parameters.values()]
        except (TypeError, ValueError):
            parameters = []  # some built-in functions have no signature
        defaults = {
            parameter.name: parameter.default
            for parameter in parameters
            if parameter.default is not parameter.empty
            and parameter.kind is not parameter.POSITIONAL_ONLY
        }
        return {**defaults, **tool_input, **bound}

    async def execute(self, tool_input: dict[str, Any]) -> Any:
        """Call the function with the input as keyword arguments."""
        function, bound = _unbound(self.function)
        tool_input = {**bound, **tool_input}
        if is_coroutine_function(function):
            return await function(**tool_input)
        value = await asyncio.to_thread(function, **tool_input)
        return await value if inspect.isawaitable(value) else value


def as_tool(tool: Tool | Callable[..., Any]) -> Tool:
    """Make a Tool from a function, its annotations and its docstring."""
    if isinstance(tool, Tool):
        return tool
    description = inspect.getdoc(tool) or ""
    parameters = _parameters(tool)
    spec = ToolSpec(name=name_of(tool), description=description, parameters=parameters)
    return Tool(spec, tool)


def is_coroutine_function(function: Any) -> bool:
    """Whether a call gives a coroutine; objects may have an async ``__call__``."""
    is_async = inspect.iscoroutinefunction
    return is_async(function) or is_async(type(function).__call__)


def name_of(function: Any) -> str:
    """The name of a tool that is made from a function or a callable object."""
    while isinstance(function, partial) and not hasattr(function, "__name__"):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def by_name(tools: Iterable[Tool | Callable[..., Any]]) -> dict[str, Tool]:
    """Tools by name; the first one of a name counts."""
    tools_by_name: dict[str, Tool] = {}
    for tool in map(as_tool, tools):
        tools_by_name.setdefault(tool.name, tool)
    return tools_by_name


def input_of(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """The arguments of a call by name, defaults included, as a tool's input."""
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    tool_input: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind in (_VAR_POSITIONAL, _VAR_KEYWORD) and not value:
            continue
        # One that has the name of a parameter would hide it: then they stay apart.
        if kind is _VAR_KEYWORD and signature.parameters.keys().isdisjoint(value):
            tool_input |= value
        else:
            tool_input[name] = value
    return tool_input


def arguments_of(
    signature: inspect.Signature, tool_input: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments that call a function with a tool's input."""
    names = [name for name in signature.parameters if name in tool_input]
    arguments = OrderedDict((name, tool_input[name]) for name in names)
    bound = inspect.BoundArguments(signature, arguments)
    bound.apply_defaults()
    unnamed = {name: v for name, v in tool_input.items() if name not in names}
    return bound.args, {**bound.kwargs, **unnamed}


def _unbound(function: Any) -> tuple[Callable[..., Any], dict[str, Any]]:
    """A function and the arguments that a partial has bound by position, by name."""
    if not isinstance(function, partial) or not function.args:
        return function, {}
    parameters = list(signature_of(function.func).parameters.values())
    bound = parameters[: len(function.args)]
    if any(parameter.kind is not _POSITIONAL_OR_KEYWORD for parameter in bound):
        return function, {}  # these have no names
    names = (parameter.name for parameter in bound)
    inner = partial(function.func, **function.keywords)
    return inner, dict(zip(names, function.args, strict=False))


def _parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """The parameters of a function as JSON Schema."""
    try:
        hints = get_type_hints(function)
    except (NameError, TypeError):
        hints = {}  # annotations that cannot be resolved
    properties: dict[str, Any] = {}
    required = []
    for name, parameter in signature_of(function).parameters.items():
        if parameter.kind in (_VAR_POSITIONAL, _VAR_KEYWORD):
            continue
        try:
            properties[name] = msgspec.json.schema(hints.get(name, Any))
        except (TypeError, NotImplementedError):
            properties[name] = {}  # any value
        if parameter.default is parameter.empty:
            required.append(name)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema
