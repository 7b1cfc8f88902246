"""Run one hook: may it run, run it, what does a failure mean, does it only observe.

All of it happens inside one ``try``. Whatever breaks around a hook, our own code
included, is that hook's failure with its policy applied; no other hook's verdict is
touched.

By default a failure means nothing: the agent goes on. With ``"onError": "block"`` it
becomes a block or, on an event that cannot block, the strictest output it has: the
tool's result is withheld, the model's answer replaced, no tool allowed. The same holds
for what fails outside the hooks, for their event.
"""

from __future__ import annotations

import time
from asyncio import CancelledError
from collections.abc import Iterable, Mapping

from msgspec import structs

from hookline.errors import EncodingError
from hookline.execute.answer import read_end
from hookline.plan import Executor, HookCall, RegisteredHook, RunEnd
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.outputs import HookOutput, read_output
from hookline.protocol.results import (
    FailureCause,
    FailureMeta,
    HookExecutionResult,
    ProcessedHookResult,
    Stage,
    build_failure_envelope,
    fail_closed_output,
    process_common_hook_output_fields,
)
from hookline.protocol.values import plain_text
from hookline.settings.load import Settings
from hookline.settings.model import Dialect, HookMode, HookType, OnFailure, TrustStatus

from .breaker import CircuitBreaker
from .merge import merge_outputs

Executors = Mapping[HookType, Executor]

# On Python 3.11 finding a member in its enum costs more than a call.
_OBSERVE, _ENFORCE, _OWN_DIALECT = HookMode.OBSERVE, HookMode.ENFORCE, Dialect.HOOKLINE
_CRASH, _CHANGED, _BLOCK = FailureCause.CRASH, FailureCause.CHANGED, OnFailure.BLOCK
_TIMEOUT = FailureCause.TIMEOUT
_ENDS = (CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit)


async def run_hook(
    hook: RegisteredHook, call: HookCall, executors: Executors, breaker: CircuitBreaker
) -> HookExecutionResult:
    """Run a hook if it may run; never raises, except for cancellation."""
    telemetry, result = call.telemetry, None
    span = None if telemetry is None else telemetry.start_hook(hook, call)
    try:
        config, approval = hook.config, hook.approval
        changed, stamp = (None, ()) if approval is None else approval.check()
        executor = hook.executor or executors.get(config.type)
        if changed is not None:
            error = f"{changed}: review it with 'hookline trust'"
            result = refused(hook, _CHANGED, error)
        elif (result := refusal(hook, call, breaker)) is not None:
            pass  # too deep, or it keeps timing out
        elif executor is None:
            error = (
                f'hooks of "type": "{config.type}" cannot run on {call.event}: '
                'use another type, such as "command" or "rule"'
            )
            result = refused(hook, FailureCause.SPAWN, error)
        else:
            translation, shown_call = None, call
            if config.dialect is not _OWN_DIALECT and config.is_foreign:
                # Most hosts have no such hook and need not load the tables.
                from .translated import translate

                translation = translate(hook, call)
                shown_call = translation.call
            started = time.perf_counter()
            end = await executor.run(hook, shown_call)
            duration = (time.perf_counter() - (end.started or started)) * 1000
            result = read_end(hook, end, duration)
            if translation is not None:
                result = translation.read(result)
            if breaker.timeouts or result.cause is _TIMEOUT:
                breaker.note(hook, result.cause, _tool_of(call))
            if not (
                approval is None
                # Which bytes ran is unknown then: only a block still counts.
                or approval.unchanged_since(stamp)
                or _blocks(result)
            ):
                result = refused(hook, _CHANGED, "its files changed during the run")
        if result.cause is not None:
            result = apply_policy(result, hook)
    except _ENDS:
        raise
    # The edge of one hook: nothing that breaks here may reach the others. A panic of a
    # native library is not an ``Exception``.
    except BaseException as error:  # noqa: BLE001
        is_unseen = isinstance(error, EncodingError)
        problem = f"could not be run: {type(error).__name__}: {error}"
        if is_unseen:
            problem = f"could not be shown the event: {error}"
        result = refused(hook, _CRASH, problem)
        if is_unseen and TRAITS[hook.event].can_block:
            # Whatever the policy: no guard is left out.
            reason = f"Blocked by Hookline: hook {hook.name!r} {problem}"
            result = _closed(result, reason)
        else:
            result = apply_policy(result, hook)
    finally:
        if result is not None and hook.config.mode is _OBSERVE:
            would_block = _blocks(result) and TRAITS[hook.event].can_block
            result = structs.replace(result, observed=True, would_block=would_block)
        if span is not None:
            span.end(result)
    return result


def refusal(
    hook: RegisteredHook,
    call: HookCall,
    breaker: CircuitBreaker,
    *,
    to_run: bool = True,
) -> HookExecutionResult | None:
    """The result of a hook that must not run now, None if it may; managed ones may.

    A refusal is a failure: where timeouts block, the skip blocks. ``to_run``: it runs
    if it may, so that this event is the one that tries it again after a cooldown.
    """
    if hook.config.managed:
        return None
    if call.depth >= hook.options.max_depth:
        error = f"skipped: nested deeper than maxDepth {hook.options.max_depth}"
        return refused(hook, FailureCause.SPAWN, error)
    if breaker.timeouts:
        count = breaker.skips(hook, _tool_of(call), to_run=to_run)
        error = f"skipped: it timed out {count} times in a row"
        return refused(hook, _TIMEOUT, error) if count else None
    return None


def refused(
    hook: RegisteredHook, cause: FailureCause, error: str
) -> HookExecutionResult:
    """The result of a hook that did not run, or whose run does not count."""
    return read_end(hook, RunEnd(cause=cause, error=error))


def _tool_of(call: HookCall) -> str:
    """The tool that an event is about; events without one share a count."""
    return plain_text(call.input.get("tool_name")) or ""


def _blocks(result: HookExecutionResult) -> bool:
    return result.output is not None and result.output.is_blocking


def apply_policy(
    result: HookExecutionResult, hook: RegisteredHook
) -> HookExecutionResult:
    """A failure as the hook's policy has it: as it is, or closing the event."""
    if result.cause is None or hook.on(result.cause) is not _BLOCK:
        return result
    policy = f"onError blocks on {result.cause.value}"
    if hook.trust is TrustStatus.UNTRUSTED:
        policy = "hooksConfig.untrusted blocks"
    return _closed(result, f"hook {hook.name!r} failed, and {policy}: {result.error}")


def _closed(result: HookExecutionResult, reason: str) -> HookExecutionResult:
    output = closed_output(result.event_name, reason)
    if result.output is not None:
        merge = TRAITS[result.event_name].merge
        output = merge_outputs((result.output, output), merge)
    raw = output.to_wire()
    return structs.replace(result, output=output, raw_output=raw, closed=True)


def closed_output(event: HookEventName, reason: str) -> HookOutput:
    """The strictest output that an event can have."""
    return read_output(fail_closed_output(event, reason), event)[0]


def failed_event(
    error: Exception,
    stage: Stage,
    event: HookEventName,
    hooks: Iterable[RegisteredHook] = (),
    *,
    correlation_id: str | None = None,
    always: bool = False,
) -> ProcessedHookResult:
    """The result of an event that failed outside its hooks.

    It is closed if one of its ``hooks`` asks for that, and where no guard could be
    shown the event; ``always``: whatever they say.
    """
    meta = FailureMeta(event_name=event, correlation_id=correlation_id)
    envelope = build_failure_envelope(error, stage, meta)
    strict = (
        hook.name
        for hook in hooks
        if hook.is_active
        if hook.config.mode is _ENFORCE and hook.on(_CRASH) is _BLOCK
    )
    name = next(strict, None)
    is_unseen = isinstance(error, EncodingError) and TRAITS[event].can_block
    if name is not None or always or is_unseen:
        policy = "Hookline" if name is None else f"the policy of hook {name!r}"
        failure = f"{stage.value} failed ({envelope.errors[0].message})"
        output = closed_output(event, f"Blocked by {policy}: {failure}")
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
            for group in groups
            for hook in group.hooks
            if hook.managed
            or settings.hook_options(layer, hook).on_error.get(_CRASH) is _BLOCK
        )
    # What broke the registry may break this too: then nothing is let through.
    except Exception:  # noqa: BLE001
        return frozenset(HookEventName)
