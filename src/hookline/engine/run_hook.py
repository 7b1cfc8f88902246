"""Run one hook: may it run, run it, what does a failure mean, does it only observe.

All of it happens inside one ``try``. Whatever breaks around a hook, our own code
included, is that hook's failure with its policy applied; no other hook's verdict is
touched.
"""

from __future__ import annotations

import time
from asyncio import CancelledError
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import structs

from hookline.errors import EncodingError
from hookline.execute.answer import read_end
from hookline.plan import Executor, HookCall, RegisteredHook
from hookline.protocol.events import TRAITS
from hookline.protocol.results import FailureCause, HookExecutionResult
from hookline.settings.model import Dialect, HookMode, HookType

from .admission import CircuitBreaker, refusal, refused, tool_of
from .on_error import apply_policy, block_unseen

if TYPE_CHECKING:
    from .translated import Translation

Executors = Mapping[HookType, Executor]

# On Python 3.11 finding a member in its enum costs more than a call.
_OBSERVE, _OWN = HookMode.OBSERVE, Dialect.HOOKLINE
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
        approval = hook.approval
        changed, stamp = (None, ()) if approval is None else approval.check()
        if changed is not None:
            error = f"{changed}: review it with 'hookline trust'"
            result = refused(hook, FailureCause.CHANGED, error)
        elif no := refusal(hook, call, breaker):
            result = no
        else:
            result = await _execute(hook, call, executors)
            breaker.note(hook, result.cause, tool_of(call))
            if approval is not None and not approval.unchanged_since(stamp):
                result = _changed_during_run(hook, result)
        if result.cause is not None:
            result = apply_policy(result, hook)
    except EncodingError as error:
        result = block_unseen(hook, error)
    except _ENDS:
        raise
    # The edge of one hook: nothing that breaks here may reach the others. A panic of a
    # native library is not an ``Exception``.
    except BaseException as error:  # noqa: BLE001
        message = f"could not be run: {type(error).__name__}: {error}"
        result = apply_policy(refused(hook, FailureCause.CRASH, message), hook)
    finally:
        if result is not None and hook.config.mode is _OBSERVE:
            result = _observed(result, hook)
        if span is not None:
            span.end(result)
    return result


async def _execute(
    hook: RegisteredHook, call: HookCall, executors: Executors
) -> HookExecutionResult:
    executor = hook.executor or executors.get(hook.config.type)
    if executor is None:
        error = (
            f'hooks of "type": "{hook.config.type}" cannot run on {call.event}: '
            'use another type, such as "command" or "rule"'
        )
        return refused(hook, FailureCause.SPAWN, error)
    translation: Translation | None = None
    if hook.config.dialect is not _OWN and hook.config.is_foreign:
        # Most hosts have no such hook and need not load the tables.
        from .translated import translate

        translation = translate(hook, call)
        call = translation.call
    started = time.perf_counter()
    end = await executor.run(hook, call)
    duration = (time.perf_counter() - (end.started or started)) * 1000
    result = read_end(hook, end, duration)
    return result if translation is None else translation.read(result)


def _changed_during_run(
    hook: RegisteredHook, result: HookExecutionResult
) -> HookExecutionResult:
    """Which bytes ran is unknown: only a block still counts."""
    if result.output is not None and result.output.is_blocking:
        return result
    error = "its files changed during the run"
    return refused(hook, FailureCause.CHANGED, error)


def _observed(result: HookExecutionResult, hook: RegisteredHook) -> HookExecutionResult:
    blocks = result.output is not None and result.output.is_blocking
    would_block = blocks and TRAITS[hook.event].can_block
    return structs.replace(result, observed=True, would_block=would_block)
