"""Run a plan: all hooks at once, or one after the other as a chain.

What is executed is what the guards have seen (protocol.md#several-hooks): parallel
hooks that change one key differently run again, one after the other, and hooks that
saw another value than the final one are asked once more.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext, suppress
from weakref import WeakKeyDictionary

from msgspec import Struct, structs

from hookline.execute.runtime import Slots
from hookline.plan import HookCall, HookPlan, RegisteredHook
from hookline.protocol.events import TRAITS, Chain, HookEventName
from hookline.protocol.outputs import Decision, HookOutput
from hookline.protocol.results import FailureCause, HookExecutionResult
from hookline.protocol.values import same_json
from hookline.settings.model import Dialect, HookMode, HookType

from .breaker import CircuitBreaker
from .merge import (
    Changes,
    EventInput,
    chain_input,
    changes_of,
    final_input,
    with_one_answer,
)
from .run_hook import Executors, refused, run_hook

MAX_BACKGROUND = 64
"""Hooks that nobody waits for, at once in each event loop."""

_RECHECKED = frozenset({Chain.TOOL_INPUT, Chain.LLM_REQUEST})
_IN_ONE_STEP = frozenset({HookType.RULE, HookType.CEDAR})
# On Python 3.11 finding a member in its enum costs more than a call.
_CLAUDE, _COMMAND = Dialect.CLAUDE, HookType.COMMAND
_AFTER_MODEL = HookEventName.AfterModel


class _Run(Struct):
    """A hook, what it was shown, and its result."""

    hook: RegisteredHook
    event_input: EventInput
    result: HookExecutionResult

    @property
    def output(self) -> HookOutput | None:
        """What counts of its output."""
        return None if self.result.observed else self.result.output

    @property
    def ends(self) -> bool:
        """Whether it blocks or stops the event."""
        traits, output = TRAITS[self.hook.event], self.output
        return output is not None and (
            (output.stops and traits.can_stop)
            or (output.is_blocking and traits.can_block)
        )

    def changes(self, chain: Chain) -> Changes:
        """What it gives for each key of what it was shown."""
        output = self.output
        return {} if output is None else changes_of(output, self.event_input, chain)


class _Background:
    """The hooks of one event loop that nobody waits for."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[None]] = set()
        self.turns = Slots(MAX_BACKGROUND)


class HookRunner:
    """Runs hooks with the executor of their type."""

    def __init__(self, executors: Executors, breaker: CircuitBreaker) -> None:
        self._executors = executors
        self._breaker = breaker
        # Several threads may each have a loop.
        self._background: WeakKeyDictionary[asyncio.AbstractEventLoop, _Background] = (
            WeakKeyDictionary()
        )

    async def run(self, plan: HookPlan, call: HookCall) -> list[HookExecutionResult]:
        """Run every hook of a plan; results in plan order, then those of re-checks."""
        if len(plan.hooks) == 1 and not plan.special:
            return [await self._run_hook(plan.hooks[0], call)]
        chain = TRAITS[plan.event].chain
        if plan.sequential:
            runs = await self._run_chain(plan, call, chain)
        else:
            hooks = [hook for hook in plan.hooks if _is_met(hook, call)]
            runs = await self._run_together(hooks, call)
            if any(
                run.output and chain in run.output.hook_specific_output for run in runs
            ):
                await self._settle(runs, call, chain)
        results = [run.result for run in runs]
        if chain in _RECHECKED and not any(run.ends for run in runs):
            results += await self._recheck(plan, runs, call, chain)
        return results

    async def finish(self, limit_s: float | None = None) -> None:
        """Let the hooks end that nobody on this event loop waits for.

        What is left after the limit is cancelled.
        """
        background = self._background.get(asyncio.get_running_loop())
        if background is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while background.tasks:  # they may fire events
                    await asyncio.wait(background.tasks)
        for task in background.tasks:
            task.cancel()
        await asyncio.gather(*background.tasks, return_exceptions=True)

    async def _run_hook(
        self, hook: RegisteredHook, call: HookCall
    ) -> HookExecutionResult:
        config = hook.config
        if config.is_async:
            # The host may change its objects once the event has been answered.
            call = call.with_input(call.plain_input())
            call.start_by = None  # the requester has its answer
            return self._leave(hook, call)
        if config.dialect is _CLAUDE and config.type is _COMMAND:
            return await self._run_until_async(hook, call)
        result = await run_hook(hook, call, self._executors, self._breaker)
        if result.output is not None and hook.event is _AFTER_MODEL:
            output = with_one_answer(result.output, call.input)
            result = structs.replace(result, output=output)
        return result

    async def _run_until_async(
        self, hook: RegisteredHook, call: HookCall
    ) -> HookExecutionResult:
        """Run a hook that may say, in its first line, that nobody should wait for it.

        So do hooks for Claude Code (protocol.md#dialects).
        """
        from hookline.protocol.dialects import async_timeout  # rarely needed

        loop = asyncio.get_running_loop()
        is_left: asyncio.Future[None] = loop.create_future()

        def read_first_line(line: bytes) -> float | None:
            timeout_s = async_timeout(line, hook.config.timeout_ms / 1000)
            if timeout_s is not None and not is_left.done():
                is_left.set_result(None)
            return timeout_s

        watched = structs.replace(call, on_start=read_first_line, fired=call.origin)
        run = run_hook(hook, watched, self._executors, self._breaker)
        task = loop.create_task(run)
        try:
            await asyncio.wait((task, is_left), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise
        return self._leave(hook, call, task) if is_left.done() else task.result()

    def _leave(
        self,
        hook: RegisteredHook,
        call: HookCall,
        running: asyncio.Task[HookExecutionResult] | None = None,
    ) -> HookExecutionResult:
        """Wait no longer for a hook, or not at all; its result is not known."""
        loop = asyncio.get_running_loop()
        background = self._background.get(loop)
        if background is None:
            background = self._background[loop] = _Background()
        turn = background.turns if running is None else nullcontext()

        async def end() -> None:
            cause, error = FailureCause.SPAWN, "never started: its host ends"
            try:
                async with turn:
                    cause = FailureCause.CRASH
                    error = "ended before it had finished: its host ends"
                    result = await (
                        running or run_hook(hook, call, self._executors, self._breaker)
                    )
            except asyncio.CancelledError:
                # Else the event would look as if it had a result.
                result = refused(hook, cause, error)
            if call.on_late is not None:
                call.on_late(call, result)

        task = loop.create_task(end())
        background.tasks.add(task)
        task.add_done_callback(background.tasks.discard)
        return HookExecutionResult(
            hook_name=hook.name,
            hook_type=hook.config.type,
            source=hook.source,
            event_name=hook.event,
            success=True,
            is_async=True,
        )

    async def _run_together(
        self, hooks: list[RegisteredHook], call: HookCall
    ) -> list[_Run]:
        async def run(hook: RegisteredHook) -> _Run:
            return _Run(hook, call.input, await self._run_hook(hook, call))

        # What waits for nothing needs no task of its own.
        runs = {
            hook: await run(hook)
            for hook in hooks
            if hook.config.type in _IN_ONE_STEP or hook.config.is_async
        }
        waiting = [hook for hook in hooks if hook not in runs]
        if len(waiting) == 1:
            runs[waiting[0]] = await run(waiting[0])
        elif waiting:
            async with asyncio.TaskGroup() as group:
                tasks = {hook: group.create_task(run(hook)) for hook in waiting}
            runs |= {hook: task.result() for hook, task in tasks.items()}
        return [runs[hook] for hook in hooks]

    async def _run_chain(
        self, plan: HookPlan, call: HookCall, chain: Chain
    ) -> list[_Run]:
        runs: list[_Run] = []
        for hook in plan.hooks:
            if not _is_met(hook, call):
                continue
            run = _Run(hook, call.input, await self._run_hook(hook, call))
            runs.append(run)
            if run.ends:
                break
            if run.output is not None and run.result.success:
                call = call.with_input(chain_input(call.input, run.output, chain))
        return runs

    async def _settle(self, runs: list[_Run], call: HookCall, chain: Chain) -> None:
        """Run hooks again that changed a key which an earlier one changed too."""
        changes: Changes = {}
        owners: dict[tuple[str, ...], str] = {}
        so_far = call.input
        for run in runs:
            if chain in _RECHECKED and any(run.ends for run in runs):
                return
            by_hook = run.changes(chain)
            for key, value in by_hook.items():
                if key not in changes or same_json(changes[key], value):
                    continue
                result = await self._run_hook(run.hook, call.with_input(so_far))
                warning = (
                    f"hooks {owners[key]!r} and {run.hook.name!r} disagree on "
                    f"{chain}.{'.'.join(key)}: the later one ran again on the value of "
                    'the earlier one; put both into a "sequential" group to run them '
                    "in this order from the start"
                )
                warnings = (*result.warnings, warning)
                run.event_input = so_far
                run.result = structs.replace(result, warnings=warnings)
                by_hook = run.changes(chain)
                break
            changes |= by_hook
            owners |= dict.fromkeys(by_hook, run.hook.name)
            if run.output is not None:
                so_far = chain_input(so_far, run.output, chain)

    async def _recheck(
        self, plan: HookPlan, runs: list[_Run], call: HookCall, chain: Chain
    ) -> list[HookExecutionResult]:
        """Ask the hooks again that did not see the final value."""
        outputs = [run.output for run in runs if run.output is not None]
        final = final_input(call.input, outputs, chain)
        if final is call.input:
            return []
        have_seen: set[RegisteredHook] = set()
        for run in runs:  # with its own changes
            outputs = [] if run.output is None else [run.output]
            seen_input = final_input(run.event_input, outputs, chain)
            if same_json(seen_input.get(chain), final.get(chain)):
                have_seen.add(run.hook)
        recheck = call.with_input(final, recheck=True)
        hooks = [
            hook
            for hook in plan.hooks
            if hook.config.recheck
            and hook.config.mode is not HookMode.OBSERVE
            and not hook.config.is_async
            and hook not in have_seen
            and _is_met(hook, recheck)  # it may have been false before
        ]
        return [
            structs.replace(
                run.result,
                output=verdict_part(run.result.output),
                recheck=True,
                user_message=None,
            )
            for run in await self._run_together(hooks, recheck)
        ]


def _is_met(hook: RegisteredHook, call: HookCall) -> bool:
    """Whether the condition of a hook holds, if it has one."""
    if hook.config.condition is None:
        return True
    # Most hosts have no conditions and need not load the expressions.
    from hookline.execute.rule import is_met

    return is_met(hook, call)


def verdict_part(output: HookOutput | None) -> HookOutput | None:
    """What counts of a second answer: only a block, a question or a stop."""
    if output is None or not output.decides:
        return None
    return HookOutput(
        decision=None if output.decision is Decision.ALLOW else output.decision,
        reason=output.reason or (output.system_message if output.asks else None),
        continues=output.continues,
        stop_reason=output.stop_reason,
        permission=output.permission,
        permission_reason=output.permission_reason,
    )
