"""Merge what several hooks said into one output (protocol.md#merging).

Pure. Results come in plan order; hooks in observe mode count for nothing, and one
hook's failure never takes another's output away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

from msgspec import structs

from hookline.protocol.events import TRAITS, Chain, HookEventName, Merge
from hookline.protocol.outputs import (
    MODES,
    Decision,
    HookOutput,
    changed_tool_input,
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

from .changes import EventInput, final_input, merged_part

Outputs = Sequence[HookOutput]
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
    outputs, closed, errors = [], [], []
    success = True
    for result in results:  # one loop: this runs for every event
        if result.observed:
            continue
        success = success and result.success
        if result.output is not None:
            outputs.append(result.output)
            closed.append(result.closed)
        if result.cause is not None:
            errors.append(_error(result))
    ordered = _closed_last(outputs, closed) if True in closed else outputs
    return AggregatedHookResult(
        success=success,
        final_output=_final(ordered, event, event_input, tool_selection),
        all_outputs=outputs,
        errors=errors,
        hook_results=results,
        total_duration=total_duration,
    )


def _closed_last(outputs: list[HookOutput], closed: list[bool]) -> list[HookOutput]:
    """Later outputs win: what a policy closed goes last, so nothing reopens it."""
    by_weight = sorted(zip(closed, outputs, strict=True), key=itemgetter(0))
    return [output for _, output in by_weight]


def merge_outputs(
    outputs: Outputs, merge: Merge, tool_selection: ToolSelection = ToolSelection.UNION
) -> HookOutput:
    """Merge at least one output."""
    found = _MERGES.get(merge)
    if found is None:
        return _merge_tool_selection(outputs, tool_selection)
    return found(outputs)


def _final(
    outputs: list[HookOutput],
    event: HookEventName,
    event_input: EventInput,
    tool_selection: ToolSelection,
) -> HookOutput | None:
    if not outputs:
        return None
    final = merge_outputs(outputs, TRAITS[event].merge, tool_selection)
    specific, chain = final.hook_specific_output, TRAITS[event].chain
    if chain not in specific:
        return final
    before, is_model = event_input.get(chain), chain is not Chain.TOOL_INPUT
    if is_model:
        whole = merged_part(before, specific[chain])
    else:
        whole = final_input(event_input, outputs, chain)[chain]
    if same_json(before, whole):
        # A repeated value is no change, for all who carry, record or apply one.
        rest = {k: v for k, v in specific.items() if k not in (chain, _REPLACES)}
        return structs.replace(final, hook_specific_output=rest)
    if is_model:
        return final
    specific = {**specific, _REPLACES: True}
    if not any(
        one.replaces_tool_input and one.tool_input is not None for one in outputs
    ):
        # Said by a hook that gave no input: it must not drop what others left alone.
        del specific[_REPLACES]
    return structs.replace(
        final, modified_tool_input=whole, hook_specific_output=specific
    )


def _error(result: HookExecutionResult) -> HookError:
    return HookError(
        stage=Stage.EXECUTION,
        message=f"hook {result.hook_name!r}: {result.error}",
        hook_name=result.hook_name,
        event_name=result.event_name,
    )


def _merge_any_blocks(outputs: Outputs) -> HookOutput:
    if len(outputs) == 1 and outputs[0].permission is None:
        return _merge_alone(outputs[0])
    blocking = [output for output in outputs if output.is_blocking]
    specific = _later_keys(output.hook_specific_output for output in outputs)
    contexts = [o.hook_specific_output.get("additionalContext") for o in outputs]
    for key, value in (
        ("additionalContext", _joined(contexts)),
        ("tool_input", _merged_tool_input(outputs)),
        ("clearContext", any(output.clear_context for output in outputs) or None),
    ):
        if value is not None:
            specific[key] = value
    merged = HookOutput(
        decision=_decision(outputs, blocking),
        reason=_joined_once(output.own_reason for output in blocking or outputs),
        continues=_flag(all, (output.continues for output in outputs)),
        stop_reason=_joined(output.stop_reason for output in outputs),
        suppress_output=_flag(any, (output.suppress_output for output in outputs)),
        system_message=_joined(output.system_message for output in outputs),
        hook_specific_output=specific,
        extra=_later_keys(output.extra for output in outputs),
    )
    return _with_permission(merged, outputs)


def _merged_tool_input(outputs: Outputs) -> dict[str, Any] | None:
    merged: dict[str, Any] = {}
    for output in outputs:
        if output.tool_input is not None:
            merged = changed_tool_input(merged, output)
    return merged or None


def _merge_alone(output: HookOutput) -> HookOutput:
    """The same merge for a single output, the most frequent case."""
    blocking, reason = output.is_blocking, output.own_reason
    alone = (output,)
    return HookOutput(
        decision=_decision(alone, alone if blocking else ()),
        reason=reason or None,
        continues=output.continues,
        stop_reason=output.stop_reason or None,
        suppress_output=output.suppress_output,
        system_message=output.system_message or None,
        hook_specific_output=output.hook_specific_output.copy(),
        extra=output.extra.copy(),
    )


def _with_permission(merged: HookOutput, outputs: Outputs) -> HookOutput:
    """Let ``permissionDecision`` say what the merge says, if any hook used it."""
    if not any(output.permission for output in outputs):
        return merged
    specific = dict(merged.hook_specific_output)
    specific.pop("permissionDecision", None)  # a stop takes an allow back
    specific.pop("permissionDecisionReason", None)
    if merged.decision is not None:
        permission = Decision.DENY if merged.is_blocking else merged.decision
        specific["permissionDecision"] = permission.value
    if merged.reason is not None:
        specific["permissionDecisionReason"] = merged.reason
    return structs.replace(merged, hook_specific_output=specific)


def _merge_fields(outputs: Outputs) -> HookOutput:
    merged = _merge_last_wins(outputs)
    specific = _later_keys(output.hook_specific_output for output in outputs)
    for key in ("llm_request", "llm_response"):
        whole: dict[str, Any] = {}
        for output in outputs:
            whole = merged_part(whole, output.hook_specific_output.get(key) or {})
        if whole:
            specific[key] = whole
    return _surviving(structs.replace(merged, hook_specific_output=specific), outputs)


def _surviving(merged: HookOutput, outputs: Outputs) -> HookOutput:
    """A block or a stop by any hook survives the merge with its reason."""
    blocking = [output for output in outputs if output.is_blocking]
    stopping = [output for output in outputs if output.stops]
    if blocking:
        reason = _joined_once(output.own_reason for output in blocking)
        decision = _decision(outputs, blocking)
        merged = structs.replace(merged, decision=decision, reason=reason)
    if stopping:
        reason = _joined(output.stop_reason for output in stopping)
        merged = structs.replace(merged, continues=False, stop_reason=reason)
    return merged


def _merge_last_wins(outputs: Outputs) -> HookOutput:
    said: dict[str, Any] = {}
    for output in outputs:
        fields = structs.asdict(output)
        said |= {k: v for k, v in fields.items() if v is not None and v != {}}
    extra = _later_keys(output.extra for output in outputs)
    return HookOutput(**{**said, "extra": extra, "unreadable": None})


def _merge_tool_selection(
    outputs: Outputs, tool_selection: ToolSelection
) -> HookOutput:
    specific = _later_keys(output.hook_specific_output for output in outputs)
    configs = [output.tool_config for output in outputs if output.tool_config]
    if configs:
        specific["toolConfig"] = merge_tool_configs(configs, tool_selection)
    stopping = [output for output in outputs if output.stops]
    return HookOutput(
        continues=_flag(all, (output.continues for output in outputs)),
        reason=_joined_once(output.own_reason for output in outputs),
        stop_reason=_joined(output.stop_reason for output in stopping or outputs),
        suppress_output=_flag(any, (output.suppress_output for output in outputs)),
        system_message=_joined(output.system_message for output in outputs),
        hook_specific_output=specific,
        extra=_later_keys(output.extra for output in outputs),
    )


def _decision(outputs: Outputs, blocking: Outputs) -> Decision | None:
    if blocking:
        first = blocking[0]
        return first.decision if first.decision in _BLOCKS else Decision.DENY
    if any(output.asks for output in outputs):
        return Decision.ASK
    if any(output.stops for output in outputs):
        return None
    return Decision.ALLOW


_BLOCKS = (Decision.BLOCK, Decision.DENY)


def _flag(
    combine: Callable[[list[bool]], bool], flags: Iterable[bool | None]
) -> bool | None:
    said = [flag for flag in flags if flag is not None]
    return combine(said) if said else None


def _joined(texts: Iterable[str | None]) -> str | None:
    return "\n".join(filter(None, texts)) or None


def _joined_once(reasons: Iterable[str | None]) -> str | None:
    """Several hooks may give one reason, to the letter: it is said once."""
    return _joined(dict.fromkeys(reasons))


def _later_keys(parts: Iterable[dict[str, Any] | None]) -> dict[str, Any]:
    return {key: value for part in parts if part for key, value in part.items()}


_MERGES: dict[Merge, Callable[[Outputs], HookOutput]] = {
    Merge.ANY_BLOCKS: _merge_any_blocks,
    Merge.FIELDS: _merge_fields,
    Merge.LAST_WINS: _merge_last_wins,
}


def merge_tool_configs(
    configs: Sequence[dict[str, Any]], selection: ToolSelection
) -> dict[str, Any]:
    """Merge at least one ``toolConfig``; only an absent list restricts nothing."""
    modes = [config.get("mode") for config in configs]
    mode = next((mode for mode in MODES if mode in modes), "AUTO")
    named = (config.get("allowedFunctionNames") for config in configs)
    lists = [set(names) for names in named if names is not None]
    combine = set.intersection if selection is ToolSelection.INTERSECT else set.union
    names: set[str] = combine(*lists) if lists else set()
    if mode == "NONE" or (lists and not names):
        return {"mode": "NONE", "allowedFunctionNames": []}
    if not lists:
        return {"mode": mode}
    return {"mode": mode, "allowedFunctionNames": sorted(names)}
