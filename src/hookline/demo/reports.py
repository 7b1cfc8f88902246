"""Report what each hook of the demo did."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from hookline.engine.handler import HookEventHandler
from hookline.protocol.events import HookEventName
from hookline.protocol.inputs import EventFirer, Fields
from hookline.protocol.outputs import HookOutput
from hookline.protocol.results import HookExecutionResult, ProcessedHookResult
from hookline.protocol.verdict import Word, hook_verdict
from hookline.translators.shape import LLMRequest


class HookRun(Struct, frozen=True, kw_only=True):
    """What one hook did at one event."""

    event: HookEventName
    tool: str
    hook: str
    kind: str
    action: str
    detail: str
    milliseconds: float


class ReportingHooks(EventFirer):
    """Fires on a handler and reports each hook that ran."""

    def __init__(
        self, handler: HookEventHandler, report: Callable[[HookRun], None]
    ) -> None:
        self._handler = handler
        self._report = report

    async def fire(
        self, event_name: HookEventName | str, event_input: Mapping[str, Any]
    ) -> ProcessedHookResult:
        """Fire by name."""
        return await self.fire_fields(HookEventName.of(event_name), dict(event_input))

    async def fire_fields(
        self,
        event: HookEventName,
        fields: Fields,
        session_id: str | None = None,
        transcript_path: str | None = None,
    ) -> ProcessedHookResult:
        """Fire and report."""
        result = await self._handler.fire_fields(
            event, fields, session_id, transcript_path
        )
        for hook in result.aggregated.hook_results:
            action, detail = _action(hook, fields)
            self._report(
                HookRun(
                    event=event,
                    tool=str(fields.get("tool_name", "")),
                    hook=hook.hook_name,
                    kind=hook.hook_type,
                    action=action,
                    detail=detail,
                    milliseconds=hook.duration,
                )
            )
        return result


def _action(hook: HookExecutionResult, fields: Fields) -> tuple[str, str]:
    """What a hook did in one word, and in detail."""
    verdict, output = hook_verdict(hook), hook.output
    match verdict.word:
        case Word.FAILED | Word.STOPPED | Word.BLOCKED:
            return verdict.word, verdict.reason or ""
        case Word.ASK:
            return "asked", verdict.reason or ""
    if output is None:
        return "allowed", "asked again: another hook changed it" if hook.recheck else ""
    return _change(output, fields)


def _change(output: HookOutput, fields: Fields) -> tuple[str, str]:
    if output.tool_config is not None:
        names = ", ".join(output.tool_config["allowedFunctionNames"])
        return "restricted", f"only {names}"
    if output.tool_input:
        return "changed", _difference(fields["tool_input"], output.tool_input)
    if output.llm_request:
        request: LLMRequest = fields["llm_request"]
        after = output.llm_request.get("config", {})
        return "changed", _difference(request.config or {}, after)
    if output.llm_response:
        return "changed", str(output.llm_response.get("text"))
    if output.additional_context is not None:
        return "added", output.additional_context
    return (
        ("noted", output.system_message) if output.system_message else ("allowed", "")
    )


def _difference(before: dict[str, Any], after: dict[str, Any]) -> str:
    return ", ".join(
        f"{key} {before.get(key)} → {new}"
        for key, new in after.items()
        if before.get(key) != new
    )
