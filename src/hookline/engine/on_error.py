"""What a failed hook means for its event.

By default nothing: the agent goes on. With ``"onError": "block"`` the failure becomes a
block or, on an event that cannot block, the strictest output it has: the tool's result
is withheld, the model's answer replaced, no tool allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import structs

from hookline.errors import EncodingError
from hookline.execute.answer import read_end
from hookline.plan import RegisteredHook, RunEnd
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.outputs import read_output
from hookline.protocol.results import (
    AggregatedHookResult,
    FailureCause,
    HookExecutionResult,
    fail_closed_output,
)
from hookline.settings.load import Settings
from hookline.settings.model import HookMode, OnFailure, TrustStatus

from .merge import merge_outputs


def apply_policy(
    result: HookExecutionResult, hook: RegisteredHook
) -> HookExecutionResult:
    """Turn a failure into what the hook's policy says."""
    if result.cause is None or hook.on(result.cause) is OnFailure.ALLOW:
        return result
    policy = f"onError blocks on {result.cause.value}"
    if hook.trust is TrustStatus.UNTRUSTED:
        policy = "hooksConfig.untrusted blocks"
    return _closed(result, f"hook {hook.name!r} failed, and {policy}: {result.error}")


def block_unseen(hook: RegisteredHook, error: EncodingError) -> HookExecutionResult:
    """A hook that could not be shown the event; whatever its policy, that blocks."""
    message = f"could not be shown the event: {error}"
    result = read_end(hook, RunEnd(cause=FailureCause.CRASH, error=message))
    if not TRAITS[hook.event].can_block:
        return apply_policy(result, hook)
    return _closed(result, f"Blocked by Hookline: hook {hook.name!r} {message}")


def apply_policy_to_envelope(
    envelope: AggregatedHookResult,
    event: HookEventName,
    hooks: Iterable[RegisteredHook],
    *,
    always: bool = False,
) -> AggregatedHookResult:
    """Let a failure envelope carry a block if a hook of its event asks for one.

    ``always``: whatever the hooks say, for example if no guard has seen the event.
    """
    strict = [hook.name for hook in hooks if _is_strict(hook)]
    if not strict and not always:
        return envelope
    error = envelope.errors[0]
    whose = f"the policy of hook {strict[0]!r}" if strict else "Hookline"
    reason = f"Blocked by {whose}: {error.stage.value} failed ({error.message})"
    output, _ = read_output(fail_closed_output(event, reason), event)
    return structs.replace(envelope, final_output=output, all_outputs=[output])


class BrokenSystem:
    """Hooks that could not be registered: every event fails, by policy."""

    def __init__(self, error: Exception, settings: Settings) -> None:
        self.error = error
        try:
            self.closed = frozenset(_events_with_strict_hooks(settings))
        # What broke the registry may break this too: then nothing is let through.
        except Exception:  # noqa: BLE001
            self.closed = frozenset(HookEventName)


def _events_with_strict_hooks(settings: Settings) -> Iterator[HookEventName]:
    for layer in settings.layers:
        for event, groups in settings.groups_of(layer).items():
            if any(
                hook.managed
                or settings.hook_options(layer, hook).on_error.get(FailureCause.CRASH)
                is OnFailure.BLOCK
                for group in groups
                for hook in group.hooks
            ):
                yield event


def _closed(result: HookExecutionResult, reason: str) -> HookExecutionResult:
    event = result.event_name
    output, _ = read_output(fail_closed_output(event, reason), event)
    if result.output is not None:
        output = merge_outputs((result.output, output), TRAITS[event].merge)
    raw = output.to_wire()
    return structs.replace(result, output=output, raw_output=raw, closed=True)


def _is_strict(hook: RegisteredHook) -> bool:
    return (
        hook.enabled
        and hook.config.mode is HookMode.ENFORCE
        and not hook.is_skipped
        and hook.on(FailureCause.CRASH) is OnFailure.BLOCK
    )
