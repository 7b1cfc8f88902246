"""The SDK's tool runner, whose model calls and tools are one run with hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, update_wrapper
from typing import Any

from hookline.agent.decorator import run_to_end
from hookline.agent.tool_calls import ToolResult, content_text
from hookline.agent.turn import HookedRun
from hookline.translators.values import get

from .anthropic_api import tool_name
from .http import HttpHooks

# A runner without these runs its tools elsewhere; its requests are refused then.
_RUNS_TOOLS = ("_run_tool", "_run_toolset_member")


def with_hooked_runner(
    beta: Any, client: Any, in_run: Callable[[Any, HookedRun], Any]
) -> Any:
    """Replace ``tool_runner`` of a client's new ``beta.messages``.

    ``in_run`` makes the client whose calls belong to a run.
    """
    messages: Any = getattr(beta, "messages", None)
    own = getattr(messages, "tool_runner", None)
    if own is not None:
        runner = partial(_tool_runner, client, in_run, type(messages))
        messages.tool_runner = update_wrapper(runner, own)
    return beta


def _tool_runner(
    client: Any,
    in_run: Callable[[Any, HookedRun], Any],
    kind: Callable[[Any], Any],
    /,
    **given: Any,
) -> Any:
    hooks: HttpHooks = client._hookline  # noqa: SLF001 - our own field
    run = hooks.hooks.begin_run()
    runner = kind(in_run(client, run)).tool_runner(**given)
    if not all(hasattr(runner, name) for name in _RUNS_TOOLS):
        return kind(client).tool_runner(**given)
    finish: Any = (lambda work: work) if hooks.wait.is_async else run_to_end
    result = partial(_result, hooks, run)
    own_tool, own_member = runner._run_tool, runner._run_toolset_member  # noqa: SLF001 - replaced here
    runner._run_tool = lambda tool, use: finish(result(use, partial(own_tool, tool)))  # noqa: SLF001 - same
    runner._run_toolset_member = lambda use: finish(result(use, own_member))  # noqa: SLF001 - same
    return runner


async def _result(
    hooks: HttpHooks, run: HookedRun, tool_use: Any, execute: Callable[[Any], Any]
) -> Any:
    """The ``tool_result`` of a call, run as its hooks allow."""
    if not isinstance(tool_use.input, Mapping):
        return _error(tool_use, "input: expected a JSON object")
    wait, confirm = hooks.wait, hooks.hooks.confirm
    begin = run.begin_tool(tool_name(tool_use), tool_use.input, confirm=confirm)
    call = await wait.hooks(begin)
    if call.refused:
        return _error(tool_use, call.message)
    changed = tool_use.model_copy(update={"input": call.tool_input})
    block = await wait.value(execute(changed))
    content = block.get("content")
    error = content_text(content) if block.get("is_error") else None
    result = ToolResult(llm_content=content, error=error)
    outcome = await wait.hooks(call.finish(result))
    if not outcome.changed:
        return block
    if not isinstance(outcome.content, list):
        return {**block, "content": outcome.text}
    added = [{"type": "text", "text": text} for text in outcome.additions]
    return {**block, "content": [*outcome.content, *added]}


def _error(tool_use: Any, message: str) -> dict[str, Any]:
    family = get(tool_use, "toolset_name")
    named = {} if family is None else {"toolset_name": family}
    head = {"type": "tool_result", "tool_use_id": tool_use.id, **named}
    return {**head, "content": message, "is_error": True}
