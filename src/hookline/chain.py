"""How one hook's output changes the next one's input in a sequential plan.

Pure: the caller's own objects are never mutated; every change makes new containers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .events import Chain
from .outputs import HookOutput

EventInput = dict[str, Any]


def chain_input(event_input: EventInput, output: HookOutput, by: Chain) -> EventInput:
    """Make the next hook's input."""
    return _CHAINS[by](event_input, output)


def merged_part(part: Any, changes: dict[str, Any]) -> dict[str, Any]:
    """Apply a model request or response part by its keys, ``config`` key by key."""
    base = part if isinstance(part, dict) else {}
    merged = {**base, **changes}
    if isinstance(base.get("config"), dict) and isinstance(changes.get("config"), dict):
        merged["config"] = {**base["config"], **changes["config"]}
    return merged


def changed_tool_input(tool_input: Any, output: HookOutput) -> dict[str, Any]:
    """The tool input after one output: key by key, or replaced as a whole."""
    changes = output.tool_input or {}
    if isinstance(tool_input, dict) and not output.replaces_tool_input:
        return {**tool_input, **changes}
    return dict(changes)


def _chain_tool_input(event_input: EventInput, output: HookOutput) -> EventInput:
    if output.tool_input is None:
        return event_input
    changed = changed_tool_input(event_input.get("tool_input"), output)
    return {**event_input, "tool_input": changed}


def _chain_prompt(event_input: EventInput, output: HookOutput) -> EventInput:
    context = output.additional_context
    if context is None:
        return event_input
    return {**event_input, "prompt": f"{event_input.get('prompt', '')}\n\n{context}"}


def _chain_request(event_input: EventInput, output: HookOutput) -> EventInput:
    if output.llm_request is None:
        return event_input
    part = merged_part(event_input.get("llm_request"), output.llm_request)
    return {**event_input, "llm_request": part}


def _chain_response(event_input: EventInput, output: HookOutput) -> EventInput:
    if output.llm_response is None:
        return event_input
    part = merged_part(event_input.get("llm_response"), output.llm_response)
    return {**event_input, "llm_response": part}


def _chain_nothing(event_input: EventInput, _: HookOutput) -> EventInput:
    return event_input


_CHAINS: dict[Chain, Callable[[EventInput, HookOutput], EventInput]] = {
    Chain.TOOL_INPUT: _chain_tool_input,
    Chain.PROMPT: _chain_prompt,
    Chain.LLM_REQUEST: _chain_request,
    Chain.LLM_RESPONSE: _chain_response,
    Chain.NOTHING: _chain_nothing,
}
