"""Merge what several hooks said into one output (protocol.md#merging).

Results come in plan order; hooks in observe mode count for nothing, and one hook's
failure never takes another's output away. What they change about the event, one after
the other or all together, is here too.

Pure; the caller's own objects are never mutated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import structs

from hookline.protocol.events import TRAITS, Chain, HookEventName, Merge
from hookline.protocol.outputs import (
    MODES,
    Decision,
    HookOutput,
    changed_tool_input,
    named_input,
)
from hookline.protocol.results import (
    AggregatedHookResult,
    HookError,
    HookExecutionResult,
    Stage,
    make_empty_success_result,
)
from hookline.protocol.values import same_json
from hookline.settings.model import ToolSelection

EventInput = dict[str, Any]
Changes = dict[tuple[str, ...], Any]
"""The values that a hook gives, by where they go."""
Outputs = Sequence[HookOutput]
_DROPPED = object()
_BLOCKS = (Decision.BLOCK, Decision.DENY)
_REPLACES = "replacesToolInput"


def aggregate(
    results: list[HookExecutionResult],
    event: HookEventName,
    event_input: EventInput,
    total_duration: float,
    tool_selection: ToolSelection = ToolSelection.UNION,
) -> AggregatedHookResult:
    """Merge the results of one event (HOOK-166)."""
    if not results:  # no condition was true
        return make_empty_success_result()
    outputs: list[HookOutput] = []
    open_outputs: list[HookOutput] = []
    closing: list[HookOutput] = []
    errors: list[HookError] = []
    success = True
    for result in results:  # one loop: this runs for every event
        if result.observed:
            continue
        success = success and result.success
        if result.output is not None:
            outputs.append(result.output)
            (closing if result.closed else open_outputs).append(result.output)
        if result.cause is not None:
            error = HookError(
                stage=Stage.EXECUTION,
                message=f"hook {result.hook_name!r}: {result.error}",
                hook_name=result.hook_name,
                event_name=result.event_name,
            )
            errors.append(error)
    final = None
    if outputs:
        # Later outputs win: nothing reopens what a policy closed.
        by_weight = [*open_outputs, *closing]
        final = merge_outputs(by_weight, TRAITS[event].merge, tool_selection)
        if TRAITS[event].chain in final.hook_specific_output:
            final = _with_whole_change(final, by_weight, event, event_input)
    return AggregatedHookResult(
        success=success,
        final_output=final,
        all_outputs=outputs,
        errors=errors,
        hook_results=results,
        total_duration=total_duration,
    )


def _with_whole_change(
    merged: HookOutput, outputs: Outputs, event: HookEventName, event_input: EventInput
) -> HookOutput:
    """Add the whole changed tool input; a repeated value is no change.

    Neither for those who carry, nor for those who record or apply one.
    """
    specific, chain = merged.hook_specific_output, TRAITS[event].chain
    before = event_input.get(chain)
    if chain is Chain.TOOL_INPUT:
        after = final_input(event_input, outputs, chain)[chain]
    else:
        after = merged_part(before, specific[chain])
    if same_json(before, after):
        unchanged = {k: v for k, v in specific.items() if k not in (chain, _REPLACES)}
        return structs.replace(merged, hook_specific_output=unchanged)
    if chain is not Chain.TOOL_INPUT:
        return merged
    specific = {**specific, _REPLACES: True}
    if not any(
        output.replaces_tool_input and output.tool_input is not None
        for output in outputs
    ):
        # Said by a hook that gave no input: it must not drop what others left alone.
        del specific[_REPLACES]
    return structs.replace(
        merged, modified_tool_input=after, hook_specific_output=specific
    )


def merge_outputs(
    outputs: Outputs, merge: Merge, tool_selection: ToolSelection = ToolSelection.UNION
) -> HookOutput:
    """Merge at least one output."""
    return _STRATEGIES[merge](outputs, tool_selection)


def _any_blocks(outputs: Outputs, _: ToolSelection) -> HookOutput:
    """Any block blocks, else any question asks; texts are joined, later keys win."""
    decision = _decision(outputs)
    if len(outputs) == 1 and outputs[0].permission is None:
        # The same for the most frequent case, three microseconds faster.
        only = outputs[0]
        return HookOutput(
            decision=decision,
            reason=only.own_reason,
            continues=only.continues,
            stop_reason=only.stop_reason or None,
            suppress_output=only.suppress_output,
            system_message=only.system_message or None,
            hook_specific_output=only.hook_specific_output.copy(),
            extra=only.extra.copy(),
        )
    blocking = [output for output in outputs if output.is_blocking]
    reason = _joined_once(output.own_reason for output in blocking or outputs)
    specific = _later_keys(output.hook_specific_output for output in outputs)
    contexts = (o.hook_specific_output.get("additionalContext") for o in outputs)
    if context := _joined(contexts):
        specific["additionalContext"] = context
    tool_input: dict[str, Any] = {}
    for output in outputs:
        if output.tool_input is not None:
            tool_input = changed_tool_input(tool_input, output)
    if tool_input:
        specific["tool_input"] = tool_input
    if any(output.clear_context for output in outputs):
        specific["clearContext"] = True
    if any(output.permission for output in outputs):
        # It says what the merge says: a stop takes an allow back.
        specific.pop("permissionDecision", None)
        specific.pop("permissionDecisionReason", None)
        if decision is not None:
            permission = Decision.DENY if blocking else decision
            specific["permissionDecision"] = permission.value
        if reason is not None:
            specific["permissionDecisionReason"] = reason
    return _combined(
        outputs,
        specific,
        decision=decision,
        reason=reason,
        stop_reason=_joined(output.stop_reason for output in outputs),
    )


def _fields(outputs: Outputs, tool_selection: ToolSelection) -> HookOutput:
    """Later fields win; a block or a stop by any hook survives with its reason."""
    merged = _last_wins(outputs, tool_selection)
    specific = _later_keys(output.hook_specific_output for output in outputs)
    for key in ("llm_request", "llm_response"):
        whole: dict[str, Any] = {}
        for output in outputs:
            whole = merged_part(whole, output.hook_specific_output.get(key) or {})
        if whole:
            specific[key] = whole
    surviving: dict[str, Any] = {"hook_specific_output": specific}
    blocking = [output for output in outputs if output.is_blocking]
    stopping = [output for output in outputs if output.stops]
    if blocking:
        surviving["decision"] = _decision(outputs)
        surviving["reason"] = _joined_once(output.own_reason for output in blocking)
    if stopping:
        surviving["continues"] = False
        surviving["stop_reason"] = _joined(output.stop_reason for output in stopping)
    return structs.replace(merged, **surviving)


def _last_wins(outputs: Outputs, _: ToolSelection) -> HookOutput:
    merged: dict[str, Any] = {}
    for output in outputs:
        fields = structs.asdict(output)
        merged |= {k: v for k, v in fields.items() if v is not None and v != {}}
    extra = _later_keys(output.extra for output in outputs)
    return HookOutput(**{**merged, "extra": extra, "unreadable": None})


def _tool_selection(outputs: Outputs, tool_selection: ToolSelection) -> HookOutput:
    """The strictest mode, the names of all; only an absent list restricts nothing."""
    specific = _later_keys(output.hook_specific_output for output in outputs)
    configs = [output.tool_config for output in outputs if output.tool_config]
    if configs:
        modes = [config.get("mode") for config in configs]
        mode = next((mode for mode in MODES if mode in modes), "AUTO")
        allowed = [config.get("allowedFunctionNames") for config in configs]
        lists = [set(names) for names in allowed if names is not None]
        intersects = tool_selection is ToolSelection.INTERSECT
        combine = set.intersection if intersects else set.union
        names: set[str] = combine(*lists) if lists else set()
        specific["toolConfig"] = {"mode": mode}
        if mode == "NONE" or (lists and not names):
            specific["toolConfig"] = {"mode": "NONE", "allowedFunctionNames": []}
        elif lists:
            specific["toolConfig"]["allowedFunctionNames"] = sorted(names)
    stopping = [output for output in outputs if output.stops]
    return _combined(
        outputs,
        specific,
        reason=_joined_once(output.own_reason for output in outputs),
        stop_reason=_joined(output.stop_reason for output in stopping or outputs),
    )


_STRATEGIES: dict[Merge, Callable[[Outputs, ToolSelection], HookOutput]] = {
    Merge.ANY_BLOCKS: _any_blocks,
    Merge.FIELDS: _fields,
    Merge.LAST_WINS: _last_wins,
    Merge.TOOL_SELECTION: _tool_selection,
}


def _combined(outputs: Outputs, specific: dict[str, Any], **fields: Any) -> HookOutput:
    """An output with what all strategies but the last wins combine alike."""
    continues = [o.continues for o in outputs if o.continues is not None]
    suppresses = [o.suppress_output for o in outputs if o.suppress_output is not None]
    return HookOutput(
        continues=all(continues) if continues else None,
        suppress_output=any(suppresses) if suppresses else None,
        system_message=_joined(output.system_message for output in outputs),
        hook_specific_output=specific,
        extra=_later_keys(output.extra for output in outputs),
        **fields,
    )


def _decision(outputs: Outputs) -> Decision | None:
    for output in outputs:
        if output.is_blocking:
            is_said = output.decision in _BLOCKS
            return output.decision if is_said else Decision.DENY
    if any(output.asks for output in outputs):
        return Decision.ASK
    if any(output.stops for output in outputs):
        return None
    return Decision.ALLOW


def _joined(texts: Iterable[str | None]) -> str | None:
    return "\n".join(filter(None, texts)) or None


def _joined_once(reasons: Iterable[str | None]) -> str | None:
    """Several hooks may give one reason, to the letter: it is said once."""
    return _joined(dict.fromkeys(reasons))


def _later_keys(parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {key: value for part in parts for key, value in part.items()}


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
