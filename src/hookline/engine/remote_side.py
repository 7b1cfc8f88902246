"""Hooks that run elsewhere, as one hook of a plan: the first one.

The runner treats their merged verdict as that of any hook: local hooks are asked about
what it changes, and it is asked again about what they change (protocol.md#bus).
"""

from __future__ import annotations

from msgspec import structs

from hookline.plan import HookCall, RegisteredHook, RunEnd
from hookline.protocol.events import HookEventName
from hookline.protocol.inputs import BASE_FIELDS, EventFirer, Fields
from hookline.protocol.results import (
    AggregatedHookResult,
    HookExecutionResult,
    ProcessedHookResult,
)
from hookline.settings.load import HookOptions
from hookline.settings.model import HookConfig, HookSource, HookType

_NAME = "remote hooks"


class RemoteSide:
    """What hooks elsewhere say of one event: the executor of the hook for them."""

    def __init__(
        self,
        firer: EventFirer,
        event: HookEventName,
        fields: Fields,
        session_id: str | None = None,
        transcript_path: str | None = None,
    ) -> None:
        """``fields``: as they were fired, with an SDK's own objects."""
        self._firer, self._event, self._fields = firer, event, fields
        self._session = session_id, transcript_path
        self._answers: list[ProcessedHookResult] = []
        # Managed: neither the breaker nor the depth of nested events skips it.
        config = HookConfig(type=HookType.PYTHON, name=_NAME, managed=True)
        self.hook = RegisteredHook(
            config=config,
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
        self._answers.append(answer)
        aggregated = answer.aggregated
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

    async def close(self) -> None:
        """Nothing is kept."""

    def with_its_hooks(self, merged: AggregatedHookResult) -> AggregatedHookResult:
        """A result with the single hooks of each answer in its place."""
        answers = [answer.aggregated for answer in self._answers]
        if not answers:  # it could not be asked, and the result says why
            return merged
        outputs, final = merged.all_outputs, answers[0].final_output
        if final is not None:
            outputs = [*(answers[0].all_outputs or [final]), *outputs[1:]]
        results: list[HookExecutionResult] = []
        for result in merged.hook_results:
            if result.hook_type != "remote":
                results.append(result)
                continue
            results += (
                structs.replace(one, recheck=one.recheck or result.recheck)
                for one in answers.pop(0).hook_results
            )
        errors = [e for answer in self._answers for e in answer.aggregated.errors]
        return structs.replace(
            merged,
            all_outputs=outputs,
            hook_results=results,
            errors=[*errors, *merged.errors],
        )

    async def ask_alone(self) -> ProcessedHookResult:
        """What they say of an event that the hooks here do not judge."""
        fire = self._firer.fire_fields
        return await fire(self._event, self._fields, *self._session)


async def or_remote(
    local: ProcessedHookResult, remote: RemoteSide | None
) -> ProcessedHookResult:
    """What remote hooks say, if there are any and those here said nothing."""
    if remote is None or local.final_output is not None:
        return local
    answer = await remote.ask_alone()
    aggregated = structs.replace(
        answer.aggregated,
        success=answer.aggregated.success and local.aggregated.success,
        errors=[*local.aggregated.errors, *answer.aggregated.errors],
    )
    return structs.replace(answer, aggregated=aggregated)
