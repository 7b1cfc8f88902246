"""What a failed hook means for its event.

By default nothing: the agent goes on. Where settings say ``"onError": "block"`` the
failure becomes a block, or on an event that cannot block its closed form: the tool's
result is withheld, the model's answer replaced, no tool is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import structs

from hookline.executors.contract import RegisteredHook
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.outputs import read_output
from hookline.protocol.results import (
    AggregatedHookResult,
    FailureCause,
    HookExecutionResult,
)
from hookline.settings.model import HookMode, OnFailure, TrustStatus


def enforce(result: HookExecutionResult, hook: RegisteredHook) -> HookExecutionResult:
    """Turn a failure into what the hook's policy says."""
    if result.cause is None or hook.on(result.cause) is OnFailure.ALLOW:
        return result
    reason = (
        f"Blocked by policy: hook {hook.name!r} failed ({result.error}) "
        f"and onError says block for {result.cause.value}"
    )
    raw = (result.raw_output or {}) | fail_closed_output(result.event_name, reason)
    output, _ = read_output(raw, result.event_name)
    return structs.replace(result, output=output, raw_output=raw, closed=True)


def enforce_on_envelope(
    envelope: AggregatedHookResult,
    event: HookEventName,
    hooks: Iterable[RegisteredHook],
    *,
    always: bool = False,
) -> AggregatedHookResult:
    """Let an envelope carry a block where a hook of its event asked for one.

    ``always``: the input could not even be encoded, so no guard has seen it.
    """
    strict = [hook.name for hook in hooks if _is_strict(hook)]
    if not strict and not (always and TRAITS[event].can_block):
        return envelope
    error = envelope.errors[0]
    whose = f"the policy of hook {strict[0]!r}" if strict else "Hookline"
    reason = f"Blocked by {whose}: {error.stage.value} failed ({error.message})"
    output, _ = read_output(fail_closed_output(event, reason), event)
    return structs.replace(envelope, final_output=output, all_outputs=[output])


def _is_strict(hook: RegisteredHook) -> bool:
    counts = hook.enabled and hook.config.mode is HookMode.ENFORCE
    return (
        counts
        and hook.trust is not TrustStatus.UNTRUSTED
        and hook.on(FailureCause.CRASH) is OnFailure.BLOCK
    )


def fail_closed_output(event: HookEventName, reason: str) -> dict[str, Any]:
    """The strictest output that an event heeds."""
    if TRAITS[event].can_block:
        return {"decision": "deny", "reason": reason}
    specific = _FAIL_CLOSED.get(event)
    if specific is None:
        return {}
    return {"reason": reason, "hookSpecificOutput": specific(reason)}


def _withheld(reason: str) -> dict[str, Any]:
    return {"withholdResult": True, "additionalContext": reason}


def _replaced(reason: str) -> dict[str, Any]:
    candidate = {
        "content": {"role": "model", "parts": [reason]},
        "finishReason": "STOP",
    }
    return {"llm_response": {"text": reason, "candidates": [candidate]}}


def _no_tools(_: str) -> dict[str, Any]:
    return {"toolConfig": {"mode": "NONE", "allowedFunctionNames": []}}


_FAIL_CLOSED = {
    HookEventName.AfterTool: _withheld,
    HookEventName.AfterModel: _replaced,
    HookEventName.BeforeToolSelection: _no_tools,
}
