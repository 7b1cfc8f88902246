"""A verdict for people: what was decided, and what each hook did."""

from __future__ import annotations

from hookline.events import HookEventName
from hookline.jsontext import encode
from hookline.results import HookExecutionResult, ProcessedHookResult

from .style import paint, plain


def print_verdict(event: HookEventName, result: ProcessedHookResult) -> None:
    """Print the verdict on one event."""
    print(f"{event.value}: {_headline(result)}")
    for hook in result.aggregated.hook_results:
        print(f"  {_hook_line(hook)}")
    for label, text in _effects(result):
        print(f"{label}: {plain(text)}")
    for hook in result.aggregated.hook_results:
        for warning in hook.warnings:
            told = plain(f"hook {hook.hook_name!r}: {warning}")
            print(f"{paint('warning', 'yellow')}: {told}")
    for error in result.aggregated.errors:
        print(f"{paint('error', 'red')}: {plain(error.message)}")


def _headline(result: ProcessedHookResult) -> str:
    if result.should_stop:
        return f"{paint('stopped', 'red')}: {plain(result.stop_reason or '')}"
    if result.blocked:
        return f"{paint('blocked', 'red')}: {plain(result.reason or '')}"
    if result.ask:
        return f"{paint('ask', 'yellow')}: {plain(_asked(result))}"
    if not result.aggregated.hook_results:
        return f"{paint('allowed', 'green')}, no hook ran"
    return paint("allowed", "green")


def _asked(result: ProcessedHookResult) -> str:
    final = result.final_output
    return (final.reason if final else None) or "a person should decide"


def _hook_line(hook: HookExecutionResult) -> str:
    took = f"{hook.duration:.1f} ms"
    return f"{_mark(hook)} {plain(hook.hook_name)} ({hook.source}, {took})"


def _mark(hook: HookExecutionResult) -> str:
    if hook.would_block:
        return paint("would block", "yellow")
    if hook.output is not None and hook.output.is_blocking:
        return paint("block", "red")
    if hook.failed:
        return paint(f"failed: {plain(hook.error or '')}:", "yellow")
    return paint("ok", "green")


def _effects(result: ProcessedHookResult) -> list[tuple[str, str]]:
    final = result.final_output
    found: list[tuple[str, str]] = []
    if final is None:
        return found
    if final.modified_tool_input is not None:
        found.append(("tool input now", encode(final.modified_tool_input).decode()))
    if final.llm_request is not None:
        found.append(("model request changed", encode(final.llm_request).decode()))
    if final.llm_response is not None:
        found.append(("model response", encode(final.llm_response).decode()))
    if final.tool_config is not None:
        found.append(("tools", encode(final.tool_config).decode()))
    if final.additional_context is not None:
        found.append(("context for the model", final.additional_context))
    if result.system_message is not None:
        found.append(("message for the model", result.system_message))
    return found
