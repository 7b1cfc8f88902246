"""How hooked tools of the OpenAI Agents SDK run, fail and answer."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
from collections.abc import Callable
from dataclasses import asdict, is_dataclass, replace
from types import SimpleNamespace
from typing import Any

from agents import (
    ApplyPatchTool,
    CustomTool,
    FunctionTool,
    LocalShellTool,
    ShellTool,
    ToolTimeoutError,
)
from agents.editor import ApplyPatchResult
from agents.tool import (
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    default_tool_timeout_error_message,
    invoke_function_tool,
    maybe_invoke_function_tool_failure_error_function,
    set_function_tool_failure_error_function,
)
from agents.tool_context import ToolContext

from hookline.agent import HookedToolCall, ToolOutcome

from .model import AgentRun


async def needs_approval(
    tool: Any, own: Any, context: Any, params: Any, call_id: str
) -> bool:
    """Whether a call waits for a person; ``own`` is what the tool says itself."""
    arguments, call = tool.hookline.run().calls.get(call_id, (None, None))
    if call is not None and call.question is not None:
        return True
    if not callable(own):
        return bool(own)
    plain = getattr(tool, "plain_invoke", None)
    prepare = getattr(plain, "prepare_arguments", None)
    prepared = prepare and prepare(arguments or json.dumps(params), tool.name)
    # As the SDK: a policy decides only about arguments that the tool gets as they are.
    if prepared is not None and not prepared.unchanged:
        return True
    return bool(await awaited(own(context, params, call_id)))


async def awaited(value: Any) -> Any:
    """A value, or what it gives when awaited."""
    return await value if inspect.isawaitable(value) else value


async def run_tool(tool: FunctionTool, ctx: ToolContext[Any], arguments: str) -> Any:
    """Run a tool with its timeout; whatever fails is raised."""
    plain = set_function_tool_failure_error_function(copy.copy(tool), None)
    plain.timeout_behavior = "raise_exception"
    return await invoke_function_tool(
        function_tool=plain, context=ctx, arguments=arguments
    )


async def error_result(
    tool: FunctionTool, ctx: ToolContext[Any], call: HookedToolCall, error: Exception
) -> Any:
    """What the model gets from a tool that raised, unless the tool raises on."""
    outcome = await call.finish(error)
    if outcome.withheld or outcome.stop_reason:
        return await text_result(tool, ctx, outcome.text)
    message = await _error_message(tool, ctx, error)
    if message is None:
        raise error
    return "\n\n".join([message, *outcome.additions])


async def _error_message(
    tool: FunctionTool, ctx: ToolContext[Any], error: Exception
) -> str | None:
    if isinstance(error, ToolTimeoutError) and tool.timeout_seconds is not None:
        return await _timeout_message(tool, ctx, error, tool.timeout_seconds)
    # A tool that was made by hand lets its errors end the run.
    if not hasattr(tool.on_invoke_tool, "__agents_bind_function_tool__"):
        return None
    return await maybe_invoke_function_tool_failure_error_function(
        function_tool=tool, context=ctx, error=error
    )


async def _timeout_message(
    tool: FunctionTool, ctx: ToolContext[Any], error: ToolTimeoutError, seconds: float
) -> str | None:
    if tool.timeout_behavior == "raise_exception":
        return None
    if tool.timeout_error_function is not None:
        return str(await awaited(tool.timeout_error_function(ctx, error)))
    text = default_tool_timeout_error_message(
        tool_name=tool.name, timeout_seconds=seconds
    )
    return await text_result(tool, ctx, text)


async def full_result(
    tool: FunctionTool, ctx: ToolContext[Any], outcome: ToolOutcome
) -> Any:
    """What the model gets from a tool."""
    content, additions = outcome.content, outcome.additions
    if outcome.withheld or outcome.stop_reason:
        return await text_result(tool, ctx, outcome.text)
    if not additions:
        return content
    parts = list(content) if isinstance(content, list | tuple) else [content]
    kinds = (ToolOutputText, ToolOutputImage, ToolOutputFileContent)
    added = "\n\n".join(additions)
    if all(isinstance(part, kinds) for part in parts):
        return [*parts, ToolOutputText(text=added)]
    return await text_result(tool, ctx, f"{content}\n\n{added}")


async def text_result(tool: FunctionTool, ctx: ToolContext[Any], text: str) -> str:
    """A text that the SDK does not check against the output schema of the tool."""
    if tool.output_json_schema is not None:
        # The SDK's own mark of a failure that it has handled; its text is not used.
        await maybe_invoke_function_tool_failure_error_function(
            function_tool=_DEFAULTS, context=ctx, error=asyncio.CancelledError()
        )
    return text


async def _no_tool(_ctx: ToolContext[Any], _arguments: str) -> None:
    return None


_DEFAULTS = FunctionTool("default", "", {}, _no_tool, strict_json_schema=False)


_Rebuild = Callable[[dict[str, Any]], tuple[Any, ...]]


def guarded(tool: Any, run: Callable[[], AgentRun]) -> Any:
    """A tool of another kind that runs in this process, with hooks; else as it is."""
    made = copy.copy(tool)
    if isinstance(tool, ShellTool) and tool.executor is not None:
        made.executor = _Guarded(run, tool, tool.executor, _shell)
    elif isinstance(tool, LocalShellTool):
        made.executor = _Guarded(run, tool, tool.executor, _local_shell)
    elif isinstance(tool, CustomTool):
        made.on_invoke_tool = _Guarded(run, tool, tool.on_invoke_tool, _custom)
    elif isinstance(tool, ApplyPatchTool):
        names = ("create_file", "update_file", "delete_file")
        own = {name: getattr(tool.editor, name) for name in names}
        made.editor = SimpleNamespace(
            **{name: _Guarded(run, tool, own[name], _patch) for name in names}
        )
    else:
        return tool
    made.is_guarded = True
    return made


class _Guarded:
    """A function of a tool that runs as hooks allow."""

    def __init__(
        self,
        run: Callable[[], AgentRun],
        tool: Any,
        work: Callable[..., Any],
        split: Callable[..., tuple[dict[str, Any], _Rebuild]],
    ) -> None:
        self.run, self.tool, self.work, self.split = run, tool, work, split

    async def __call__(self, *given: Any) -> Any:
        tool_input, rebuild = self.split(*given)
        call = await self.run().run.begin_tool(self.tool.name, tool_input)
        if call.refused:
            return self._told(call.message)
        try:
            value = await awaited(self.work(*rebuild(call.tool_input)))
        # The tool is foreign code: hooks see its failure before the SDK does.
        except Exception as error:
            outcome = await call.finish(error)
            if outcome.withheld or outcome.stop_reason:
                return self._told(outcome.text)
            raise
        is_record = is_dataclass(value) and not isinstance(value, type)
        outcome = await call.finish(asdict(value) if is_record else value)
        if outcome.withheld or outcome.stop_reason:
            return self._told(outcome.text)
        return outcome.text if outcome.changed else value

    def _told(self, text: str) -> Any:
        """A text in place of a result."""
        if isinstance(self.tool, ApplyPatchTool):
            return ApplyPatchResult(status="failed", output=text)
        return text


def _shell(request: Any) -> tuple[dict[str, Any], _Rebuild]:
    data = request.data

    def rebuilt(given: dict[str, Any]) -> tuple[Any, ...]:
        action = replace(data.action, commands=list(given["commands"]))
        return (replace(request, data=replace(data, action=action)),)

    return {"commands": list(data.action.commands)}, rebuilt


def _local_shell(request: Any) -> tuple[dict[str, Any], _Rebuild]:
    data = request.data

    def rebuilt(given: dict[str, Any]) -> tuple[Any, ...]:
        action = data.action.model_copy(update={"command": list(given["command"])})
        changed = data.model_copy(update={"action": action})
        return (replace(request, data=changed),)

    return {"command": list(data.action.command)}, rebuilt


def _custom(ctx: Any, text: str) -> tuple[dict[str, Any], _Rebuild]:
    return {"input": text}, lambda given: (ctx, given["input"])


def _patch(operation: Any) -> tuple[dict[str, Any], _Rebuild]:
    given = {name: getattr(operation, name) for name in ("type", "path", "diff")}
    return given, lambda changed: (
        replace(operation, path=changed["path"], diff=changed.get("diff")),
    )
