"""A hook's verdict, and what it changed, in a few words."""

from __future__ import annotations

from typing import Any

from hookline.outputs import HookOutput
from hookline.results import HookExecutionResult
from hookline.translators.stable import LLMRequest, LLMResponse

ALLOWED, CHANGED, ADDED = "allowed", "changed", "added"
BLOCKED, STOPPED, RESTRICTED, FAILED = "blocked", "stopped", "restricted", "failed"


def verdict_of(hook: HookExecutionResult) -> str:
    """One word."""
    said = hook.output
    if hook.failed:
        return FAILED
    if said is None:
        return ALLOWED
    checks = {
        STOPPED: said.stops,
        BLOCKED: said.is_blocking,
        RESTRICTED: said.tool_config is not None,
        CHANGED: bool(said.tool_input or said.llm_request or said.llm_response),
        ADDED: said.additional_context is not None,
    }
    return next((word for word, holds in checks.items() if holds), ALLOWED)


def change_of(hook: HookExecutionResult, fields: dict[str, Any]) -> str:
    """What is different for it."""
    said = hook.output
    if hook.failed:
        return hook.error or ""
    if said is None:
        return ""
    if said.stops:
        return said.effective_stop_reason
    return said.effective_reason if said.is_blocking else _change(said, fields)


def _change(said: HookOutput, fields: dict[str, Any]) -> str:
    if said.tool_config is not None:
        return "only " + ", ".join(said.tool_config["allowedFunctionNames"])
    if said.tool_input:
        return _changes(fields["tool_input"], said.tool_input)
    if said.llm_request:
        request: LLMRequest = fields["llm_request"]
        return _changes(request.config or {}, said.llm_request.get("config", {}))
    if said.llm_response:
        response: LLMResponse = fields["llm_response"]
        return f"{response.text} → {said.llm_response.get('text')}"
    return said.additional_context or ""


def _changes(before: dict[str, Any], after: dict[str, Any]) -> str:
    return ", ".join(
        f"{key} {before.get(key)} → {new}"
        for key, new in after.items()
        if before.get(key) != new
    )
