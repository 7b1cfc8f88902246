"""Hooks that run elsewhere, as one hook of a plan: the first one.

The runner treats their merged verdict as that of any hook: local hooks are asked about
what it changes, and it is asked again about what they change (protocol.md#bus).
"""

from __future__ import annotations

from msgspec import structs

from hookline.plan import Executor, HookCall, RegisteredHook, RunEnd
from hookline.protocol.events import HookEventName
from hookline.protocol.inputs import BASE_FIELDS, EventFirer, Fields
from hookline.protocol.results import (
    AggregatedHookResult,
    HookExecutionResult,
    ProcessedHookResult,
)
from hookline.settings.load import HookOptions
from hookline.settings.model import HookConfig, HookSource, HookType


class RemoteSide(Executor):
    """What hooks elsewhere say of one event: the executor of the hook for them."""

    def __init__(
        self,
        firer: EventFirer,
        event: HookEventName,
        fields: Fields,
        session: tuple[str | None, str | None],
    ) -> None:
        """``fields``: as they were fired, with an SDK's own objects."""
        self._firer, self._event = firer, event
        self._fields, self._session = fields, session
        self._answers: list[AggregatedHookResult] = []
        # Managed: neither the breaker nor the depth of nested events skips it.
        self.hook = RegisteredHook(
            config=HookConfig(type=HookType.PYTHON, name="remote hooks", managed=True),
            event=event,
            source=HookSource.RUNTIME,
            options=HookOptions(),
            executor=self,
        )

    async def run(self, hook: RegisteredHook, call: HookCall) -> RunEnd:
        """Ask once; a recheck is another question."""
        fields = self._fields
        if call is not call.origin:
            fields = {k: v for k, v in call.input.items() if k not in BASE_FIELDS}
        answer = await self._firer.fire_fields(call.event, fields, *self._session)
        aggregated = answer.aggregated
        self._answers.append(aggregated)
        result = HookExecutionResult(
            hook_name=hook.name,
            hook_type="remote",
            source=hook.source.value,
            event_name=call.event,
            success=aggregated.success,
            output=aggregated.final_output,
            closed=not aggregated.success and not aggregated.hook_results,
        )
        return RunEnd(result=result)

    def with_its_hooks(self, merged: AggregatedHookResult) -> AggregatedHookResult:
        """A result with the single hooks of each answer in its place."""
        if not self._answers:  # it could not be asked, and the result says why
            return merged
        answers, results = iter(self._answers), list[HookExecutionResult]()
        for result in merged.hook_results:
            if result.hook_type != "remote":
                results.append(result)
                continue
            results += (
                structs.replace(hook, recheck=hook.recheck or result.recheck)
                for hook in next(answers).hook_results
            )
        outputs, first = merged.all_outputs, self._answers[0]
        if first.final_output is not None:
            outputs = [*(first.all_outputs or [first.final_output]), *outputs[1:]]
        errors = [error for answer in self._answers for error in answer.errors]
        errors += merged.errors
        return structs.replace(
            merged, all_outputs=outputs, hook_results=results, errors=errors
        )

    async def judge_beside(self, local: ProcessedHookResult) -> ProcessedHookResult:
        """What they say of an event that the hooks here neither judge nor close.

        ``local`` is the result here: no hook is there, or something failed.
        """
        if local.final_output is not None:
            return local
        fire = self._firer.fire_fields
        answer = await fire(self._event, self._fields, *self._session)
        aggregated = structs.replace(
            answer.aggregated,
            success=answer.aggregated.success and local.aggregated.success,
            errors=[*local.aggregated.errors, *answer.aggregated.errors],
        )
        return structs.replace(answer, aggregated=aggregated)
