"""Fakes: handlers that record, raise or wait, and results to answer with."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from hookline.protocol.events import HookEventName
from hookline.protocol.outputs import read_output
from hookline.protocol.results import (
    AggregatedHookResult,
    HookExecutionResult,
    ProcessedHookResult,
    Stage,
    build_failure_envelope,
    make_empty_success_result,
    process_common_hook_output_fields,
)


class RecordingHandler:
    """Records the calls and returns a given result."""

    def __init__(self, result: ProcessedHookResult | None = None) -> None:
        self.result = result
        self.calls: list[dict[str, Any]] = []

    async def fire_fields(
        self,
        event: HookEventName,
        fields: Mapping[str, Any],
        session_id: str | None,
        transcript_path: str | None,
        correlation_id: str,
        trace: Mapping[str, str],
    ) -> ProcessedHookResult:
        call = {"event": event, "fields": dict(fields)}
        self.calls.append({**call, "correlation_id": correlation_id})
        nothing_matched = ProcessedHookResult(aggregated=make_empty_success_result())
        return self.result or nothing_matched

    def tell_invalid(self, *problems: object) -> None:
        """Nobody is told."""


class RaisingHandler(RecordingHandler):
    """Raises, which a handler must not do."""

    async def fire_fields(self, *args: Any, **kwargs: Any) -> ProcessedHookResult:
        raise RuntimeError("the handler broke")


class GatedHandler(RecordingHandler):
    """Holds every call at a gate, and counts the calls inside."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.inside = 0
        self.most_inside = 0
        self.entered = asyncio.Condition()

    async def fire_fields(self, *args: Any, **kwargs: Any) -> ProcessedHookResult:
        async with self.entered:
            self.inside += 1
            self.most_inside = max(self.most_inside, self.inside)
            self.entered.notify_all()
        await self.gate.wait()
        self.inside -= 1
        return await super().fire_fields(*args, **kwargs)

    async def until_inside(self, count: int) -> None:
        async with self.entered:
            await self.entered.wait_for(lambda: self.inside >= count)


def failed_at(stage: Stage, problem: str = "it broke") -> ProcessedHookResult:
    envelope = build_failure_envelope(ValueError(problem), stage)
    return ProcessedHookResult(aggregated=envelope)


def result_of(
    wire: dict[str, Any], event: HookEventName, *, stdout: str = ""
) -> ProcessedHookResult:
    """What the handler returns if one hook returns this output."""
    output, warnings = read_output(wire, event)
    result = HookExecutionResult(
        hook_name="guard",
        hook_type="command",
        source="project",
        event_name=event,
        success=True,
        output=output,
        raw_output=wire,
        exit_code=0,
        stdout=stdout,
        duration=1.5,
        warnings=warnings,
    )
    aggregated = AggregatedHookResult(
        final_output=output,
        all_outputs=[output],
        hook_results=[result],
        total_duration=2,
    )
    return process_common_hook_output_fields(aggregated, event)
