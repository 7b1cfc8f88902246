"""Run a plan: all hooks at once, or one after the other as a chain.

What is executed is what the guards have seen (protocol.md#several-hooks): parallel
hooks that change one key differently run again, one after the other, and hooks that
saw another value than the final one are asked once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from msgspec import Struct, structs

from hookline.plan import HookCall, HookPlan, RegisteredHook
from hookline.protocol.events import TRAITS, Chain, HookEventName
from hookline.protocol.outputs import Decision, HookOutput
from hookline.protocol.results import HookExecutionResult
from hookline.protocol.values import same_json
from hookline.settings.model import Dialect, HookMode, HookType

from .background import BackgroundHooks
from .breaker import CircuitBreaker
from .changes import (
    Changes,
    EventInput,
    chain_input,
    changes_of,
    disagreement,
    final_input,
    with_one_answer,
)
from .run_hook import Executors, run_hook

_RECHECKED = frozenset({Chain.TOOL_INPUT, Chain.LLM_REQUEST})
_CLAUDE = Dialect.CLAUDE
_IN_ONE_STEP = frozenset({HookType.RULE, HookType.CEDAR})


class _Asked(Struct):
    """A hook, what it was shown, and its result."""

    hook: RegisteredHook
    shown: EventInput
    result: HookExecutionResult

    @property
    def output(self) -> HookOutput | None:
        """What counts of its output."""
        return None if self.result.observed else self.result.output


class HookRunner:
    """Runs hooks with the executor of their type."""

    def __init__(
        self,
        executors: Executors,
        breaker: CircuitBreaker,
        background: BackgroundHooks | None = None,
    ) -> None:
        self._executors = executors
        self._breaker = breaker
        self._background = background or BackgroundHooks(executors, breaker)

    async def run(self, plan: HookPlan, call: HookCall) -> list[HookExecutionResult]:
        """Run every hook of a plan; results in plan order, then those of re-checks."""
        if len(plan.hooks) == 1 and not plan.special:
            return [await self._run_hook(plan.hooks[0], call)]
        chain = TRAITS[plan.event].chain
        if plan.sequential:
            asked = await self._run_chain(plan, call)
        else:
            hooks = [hook for hook in plan.hooks if _is_met(hook, call)]
            results = await self._run_together(hooks, call)
            pairs = zip(hooks, results, strict=True)
            asked = [_Asked(hook, call.input, result) for hook, result in pairs]
            if _change_anything(asked, chain):
                await self._settle(asked, call, chain)
        results = [one.result for one in asked]
        if chain in _RECHECKED and not _ends(asked):
            results += await self._recheck(plan, asked, call, chain)
        return results

    async def _run_hook(
        self, hook: RegisteredHook, call: HookCall
    ) -> HookExecutionResult:
        if hook.config.is_async:
            return self._background.start(hook, call)
        if hook.config.dialect is _CLAUDE and hook.config.type is HookType.COMMAND:
            return await self._background.run_until_async(hook, call)
        result = await run_hook(hook, call, self._executors, self._breaker)
        if result.output is None or hook.event is not HookEventName.AfterModel:
            return result
        return structs.replace(
            result, output=with_one_answer(result.output, call.input)
        )

    async def _run_together(
        self, hooks: list[RegisteredHook], call: HookCall
    ) -> list[HookExecutionResult]:
        # What waits for nothing needs no task of its own.
        done = {
            hook: await self._run_hook(hook, call)
            for hook in hooks
            if hook.config.type in _IN_ONE_STEP or hook.config.is_async
        }
        left = [hook for hook in hooks if hook not in done]
        if len(left) == 1:
            done[left[0]] = await self._run_hook(left[0], call)
        elif left:
            async with asyncio.TaskGroup() as group:
                tasks = {
                    hook: group.create_task(self._run_hook(hook, call)) for hook in left
                }
            done |= {hook: task.result() for hook, task in tasks.items()}
        return [done[hook] for hook in hooks]

    async def _run_chain(self, plan: HookPlan, call: HookCall) -> list[_Asked]:
        chain = TRAITS[plan.event].chain
        asked: list[_Asked] = []
        for hook in plan.hooks:
            if not _is_met(hook, call):
                continue
            one = _Asked(hook, call.input, await self._run_hook(hook, call))
            asked.append(one)
            if _ends((one,)):
                break
            if one.output is not None and one.result.success:
                call = call.with_input(chain_input(call.input, one.output, chain))
        return asked

    async def _settle(self, asked: list[_Asked], call: HookCall, chain: Chain) -> None:
        """Run hooks again that changed a key which an earlier one changed too."""
        given: Changes = {}
        owners: dict[tuple[str, ...], str] = {}
        so_far = call.input
        for one in asked:
            if chain in _RECHECKED and _ends(asked):
                return
            changes = _changes(one, chain)
            key = disagreement(given, changes)
            if key is not None:
                one.shown = so_far
                again = await self._run_hook(one.hook, call.with_input(so_far))
                one.result = _warned(again, owners[key], f"{chain}.{'.'.join(key)}")
                changes = _changes(one, chain)
            given |= changes
            owners |= dict.fromkeys(changes, one.hook.name)
            if one.output is not None:
                so_far = chain_input(so_far, one.output, chain)

    async def _recheck(
        self, plan: HookPlan, asked: list[_Asked], call: HookCall, chain: Chain
    ) -> list[HookExecutionResult]:
        """Ask the hooks again that did not see the final value."""
        outputs = [one.output for one in asked if one.output is not None]
        final = final_input(call.input, outputs, chain)
        if final is call.input:
            return []
        seen = {one.hook: one for one in asked}
        again = call.as_recheck(final)
        hooks = [
            hook
            for hook in plan.hooks
            if _is_asked_again(hook, seen.get(hook), final, chain)
            and _is_met(hook, again)
        ]
        results = await self._run_together(hooks, again)
        return [_verdict_only(result) for result in results]


def _change_anything(asked: list[_Asked], chain: Chain) -> bool:
    return any(
        one.output is not None and chain in one.output.hook_specific_output
        for one in asked
    )


def _ends(asked: Iterable[_Asked]) -> bool:
    """Whether any of these hooks blocks or stops the event."""
    for one in asked:
        traits, output = TRAITS[one.hook.event], one.output
        if output is None:
            continue
        if (output.stops and traits.can_stop) or (
            output.is_blocking and traits.can_block
        ):
            return True
    return False


def _changes(one: _Asked, chain: Chain) -> Changes:
    return {} if one.output is None else changes_of(one.output, one.shown, chain)


def _warned(result: HookExecutionResult, other: str, field: str) -> HookExecutionResult:
    warning = (
        f"hooks {other!r} and {result.hook_name!r} disagree on {field}: the later one "
        'ran again on the value of the earlier one; put both into a "sequential" group '
        "to run them in this order from the start"
    )
    return structs.replace(result, warnings=(*result.warnings, warning))


def _is_met(hook: RegisteredHook, call: HookCall) -> bool:
    """Whether the condition of a hook holds, if it has one."""
    if hook.config.condition is None:
        return True
    # Most hosts have no conditions and need not load the expressions.
    from hookline.execute.rule import is_met

    return is_met(hook, call)


def _is_asked_again(
    hook: RegisteredHook, one: _Asked | None, final: EventInput, chain: Chain
) -> bool:
    config = hook.config
    if not config.recheck or config.mode is HookMode.OBSERVE or config.is_async:
        return False
    if one is None:  # its condition was false before
        return True
    own = () if one.output is None else (one.output,)
    return not same_json(
        final_input(one.shown, own, chain).get(chain), final.get(chain)
    )


def _verdict_only(result: HookExecutionResult) -> HookExecutionResult:
    output = verdict_part(result.output)
    return structs.replace(result, output=output, recheck=True, user_message=None)


def verdict_part(said: HookOutput | None) -> HookOutput | None:
    """What counts of a second answer: only a block, a question or a stop."""
    if said is None or not said.decides:
        return None
    return HookOutput(
        decision=None if said.decision is Decision.ALLOW else said.decision,
        reason=said.reason or (said.system_message if said.asks else None),
        continues=said.continues,
        stop_reason=said.stop_reason,
        permission=said.permission,
        permission_reason=said.permission_reason,
    )
