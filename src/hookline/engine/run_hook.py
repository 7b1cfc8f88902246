"""Run one hook: may it run, run it, what does a failure mean, does it only observe.

All of it happens inside one ``try``. Whatever breaks around a hook, our own code
included, is that hook's failure with its policy applied; no other hook's verdict is
touched.
"""

from __future__ import annotations

import time
from asyncio import CancelledError
from collections.abc import Mapping

from msgspec import structs

from hookline.errors import EncodingError
from hookline.execute.answer import read_end
from hookline.plan import Executor, HookCall, RegisteredHook
from hookline.protocol.events import TRAITS
from hookline.protocol.results import FailureCause, HookExecutionResult
from hookline.settings.model import (
    Dialect,
    HookMode,
    HookType,
    OnFailure,
    TrustStatus,
)

from .breaker import CircuitBreaker, refusal, refused, tool_of
from .merge import merge_outputs
from .on_error import closed_output

Executors = Mapping[HookType, Executor]

# On Python 3.11 finding a member in its enum costs more than a call.
_OBSERVE, _OWN_DIALECT = HookMode.OBSERVE, Dialect.HOOKLINE
_ENDS = (CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit)


async def run_hook(
    hook: RegisteredHook,
    call: HookCall,
    executors: Executors,
    breaker: CircuitBreaker,
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
            result = refused(hook, FailureCause.CHANGED, error)
        elif refusal_result := refusal(hook, call, breaker):
            result = refusal_result
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
            breaker.note(hook, result.cause, tool_of(call))
            if approval is not None and not (
                # Which bytes ran is unknown then: only a block still counts.
                _blocks(result) or approval.unchanged_since(stamp)
            ):
                error = "its files changed during the run"
                result = refused(hook, FailureCause.CHANGED, error)
        if result.cause is not None:
            result = apply_policy(result, hook)
    except EncodingError as error:
        # No guard may be left out because it cannot be shown the event: that blocks.
        problem = f"could not be shown the event: {error}"
        result = refused(hook, FailureCause.CRASH, problem)
        if TRAITS[hook.event].can_block:
            reason = f"Blocked by Hookline: hook {hook.name!r} {problem}"
            result = _closed(result, reason)
        else:
            result = apply_policy(result, hook)
    except _ENDS:
        raise
    # The edge of one hook: nothing that breaks here may reach the others. A panic of a
    # native library is not an ``Exception``.
    except BaseException as error:  # noqa: BLE001
        problem = f"could not be run: {type(error).__name__}: {error}"
        result = apply_policy(refused(hook, FailureCause.CRASH, problem), hook)
    finally:
        if result is not None and hook.config.mode is _OBSERVE:
            would_block = _blocks(result) and TRAITS[hook.event].can_block
            result = structs.replace(result, observed=True, would_block=would_block)
        if span is not None:
            span.end(result)
    return result


def _blocks(result: HookExecutionResult) -> bool:
    return result.output is not None and result.output.is_blocking


def apply_policy(
    result: HookExecutionResult, hook: RegisteredHook
) -> HookExecutionResult:
    """A failure as the hook's policy has it: as it is, or closing the event."""
    if result.cause is None or hook.on(result.cause) is OnFailure.ALLOW:
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
