"""What a failure outside the hooks means for its event.

By default nothing: the agent goes on. Where a hook of the event has ``"onError":
"block"`` it becomes a block or, on an event that cannot block, the strictest output it
has: the tool's result is withheld, the model's answer replaced, no tool allowed.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from hookline.errors import EncodingError
from hookline.plan import RegisteredHook
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.outputs import HookOutput, read_output
from hookline.protocol.results import (
    FailureCause,
    FailureMeta,
    ProcessedHookResult,
    Stage,
    build_failure_envelope,
    fail_closed_output,
    process_common_hook_output_fields,
)
from hookline.settings.load import Settings
from hookline.settings.model import HookMode, OnFailure


def closed_output(event: HookEventName, reason: str) -> HookOutput:
    """The strictest output that an event can have."""
    output, _ = read_output(fail_closed_output(event, reason), event)
    return output


def failed_event(
    error: Exception,
    stage: Stage,
    event: HookEventName,
    hooks: Iterable[RegisteredHook] = (),
    *,
    correlation_id: str | None = None,
    always: bool = False,
) -> ProcessedHookResult:
    """The result of an event that failed, closed if one of its ``hooks`` asks for that.

    ``always``: whatever the hooks say. So it is for a step that no guard could be
    shown.
    """
    meta = FailureMeta(event_name=event, correlation_id=correlation_id)
    envelope = build_failure_envelope(error, stage, meta)
    unseen = isinstance(error, EncodingError) and TRAITS[event].can_block
    strict = next((hook.name for hook in hooks if _is_strict(hook)), None)
    if strict is not None or always or unseen:
        whose = "Hookline" if strict is None else f"the policy of hook {strict!r}"
        failure = f"{stage.value} failed ({envelope.errors[0].message})"
        output = closed_output(event, f"Blocked by {whose}: {failure}")
        envelope = structs.replace(envelope, final_output=output, all_outputs=[output])
    return process_common_hook_output_fields(envelope, event)


def closed_events(settings: Settings) -> frozenset[HookEventName]:
    """The events on which settings ask for a block, if none of their hooks can be had.

    They could not be registered, so that only their settings can tell.
    """
    try:
        return frozenset(
            event
            for layer in settings.layers
            for event, groups in settings.groups_of(layer).items()
            if any(
                hook.managed
                or settings.hook_options(layer, hook).on_error.get(FailureCause.CRASH)
                is OnFailure.BLOCK
                for group in groups
                for hook in group.hooks
            )
        )
    # What broke the registry may break this too: then nothing is let through.
    except Exception:  # noqa: BLE001
        return frozenset(HookEventName)


def _is_strict(hook: RegisteredHook) -> bool:
    return (
        hook.enabled
        and hook.config.mode is HookMode.ENFORCE
        and not hook.is_skipped
        and hook.on(FailureCause.CRASH) is OnFailure.BLOCK
    )
