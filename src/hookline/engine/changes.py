"""What hooks change about an event: one after the other, or all together.

Pure; the caller's own objects are never mutated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import structs

from hookline.protocol.events import Chain
from hookline.protocol.outputs import HookOutput, changed_tool_input, named_input
from hookline.protocol.values import same_json

EventInput = dict[str, Any]
Changes = dict[tuple[str, ...], Any]
"""The values that a hook gives, by where they go."""

_DROPPED = object()


def chain_input(event_input: EventInput, output: HookOutput, by: Chain) -> EventInput:
    """The input after one hook's changes: the next one's in a sequential plan.

    The very same where the hook repeats what it was shown.
    """
    changed = before = event_input.get(by)
    if by is Chain.TOOL_INPUT and output.tool_input is not None:
        changed = changed_tool_input(before, output)
    elif by in (Chain.LLM_REQUEST, Chain.LLM_RESPONSE):
        if (parts := output.hook_specific_output.get(by)) is not None:
            changed = merged_part(before, parts)
    elif by is Chain.PROMPT and output.additional_context is not None:
        changed = f"{event_input.get('prompt', '')}\n\n{output.additional_context}"
    if same_json(before, changed):
        return event_input
    return {**event_input, by.value: changed}


def final_input(
    event_input: EventInput, outputs: Iterable[HookOutput], by: Chain
) -> EventInput:
    """The input with the changes of all these hooks, as the caller applies them."""
    context = None
    for output in outputs:
        event_input = chain_input(event_input, output, by)
        context = output.additional_context or context
    if by is not Chain.LLM_REQUEST or context is None:
        return event_input
    request = event_input.get(by) or {}
    appended = {"role": "user", "content": context}
    messages = [*(request.get("messages") or ()), appended]
    return {**event_input, by.value: {**request, "messages": messages}}


def with_one_answer(output: HookOutput, event_input: EventInput) -> HookOutput:
    """A model's answer in one spelling, where ``text`` and ``candidates`` disagree.

    Many hooks return the response that they were shown with one of the two changed. The
    other one still holds the old text, which the next hook must not bring back.
    """
    response = output.llm_response or {}
    if "text" not in response or "candidates" not in response:
        return output
    texts = _texts_of(response["candidates"])
    if (response["text"] or "") == texts[0]:
        return output
    before = event_input.get(Chain.LLM_RESPONSE) or {}
    is_stale = texts == _texts_of(before.get("candidates"))
    stale = "candidates" if is_stale else "text"
    answer = {key: value for key, value in response.items() if key != stale}
    specific = {**output.hook_specific_output, "llm_response": answer}
    return structs.replace(output, hook_specific_output=specific)


def changes_of(output: HookOutput, event_input: EventInput, by: Chain) -> Changes:
    """What a hook gave for each key, given the input that it was shown."""
    part = output.hook_specific_output.get(by)
    if not isinstance(part, dict):
        return {}
    changes: Changes = {(key,): value for key, value in part.items()}
    if by is Chain.TOOL_INPUT and output.replaces_tool_input:
        tool_input = event_input.get("tool_input")
        if isinstance(tool_input, Mapping):
            for key in named_input(tool_input):
                changes.setdefault((key,), _DROPPED)
    if by is Chain.LLM_REQUEST and isinstance(part.get("config"), dict):
        del changes["config",]
        changes |= {("config", key): value for key, value in part["config"].items()}
    if by is Chain.LLM_RESPONSE:
        # Two spellings of one thing: the answer.
        answer = {key: part[key] for key in ("text", "candidates") if key in part}
        changes = {k: v for k, v in changes.items() if k[0] not in answer}
        if answer:
            changes["answer",] = answer
    return changes


def merged_part(part: Any, changes: dict[str, Any]) -> dict[str, Any]:
    """Apply a model request or response part by its keys, ``config`` key by key."""
    base = part if isinstance(part, dict) else {}
    merged = {**base, **changes}
    if isinstance(base.get("config"), dict) and isinstance(changes.get("config"), dict):
        merged["config"] = {**base["config"], **changes["config"]}
    if "candidates" in changes:
        if "text" in base and "text" not in changes:
            merged["text"] = _texts_of(changes["candidates"])[0]
    elif "text" in changes and "candidates" in base:
        # Otherwise these would still hold the text that was replaced.
        content = {"role": "model", "parts": [changes["text"] or ""]}
        merged["candidates"] = [{"content": content}]
    return merged


def _texts_of(candidates: Any) -> list[str]:
    """The text of each candidate; of none at all an empty one."""
    texts = []
    for candidate in candidates or ():
        content = candidate.get("content") if isinstance(candidate, dict) else None
        parts = content.get("parts") if isinstance(content, dict) else None
        texts.append("".join(part for part in parts or () if isinstance(part, str)))
    return texts or [""]
