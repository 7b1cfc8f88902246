"""A result as text or as JSON, for ``fire``, ``explain`` and ``log``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.protocol.events import HookEventName
from hookline.protocol.outputs import HookOutput
from hookline.protocol.results import HookExecutionResult, ProcessedHookResult
from hookline.protocol.values import encode
from hookline.protocol.verdict import Word, event_verdict, hook_verdict
from hookline.settings.model import HookType

from .terminal import (
    format_duration,
    one_line,
    paint,
    printable,
    printable_text,
    shorten,
)

_STYLES: dict[str, str] = {
    **dict.fromkeys((Word.STOPPED, Word.BLOCKED), "red"),
    **dict.fromkeys((Word.ASK, Word.FAILED, Word.WOULD_BLOCK), "yellow"),
    Word.CHANGED: "blue",
}
_HOOK_WORDS = {
    Word.NOT_WAITED_FOR: "started",
    Word.WOULD_BLOCK: "would block",
    Word.STOPPED: "stop",
    Word.BLOCKED: "block",
    Word.FAILED: "failed",
}
"""What one hook did, where it is not just ``ok``."""


def paint_verdict(word: str, text: str | None = None) -> str:
    """Colour a verdict, or a text that stands for it."""
    return paint(text or word, _STYLES.get(word, "green"))


def paint_hook(word: Word, texts: Mapping[Word, str]) -> str:
    """Colour what one hook did: ``ok``, unless the texts have another word for it."""
    return paint_verdict(word, texts[word]) if word in texts else paint("ok", "green")


def to_json(event: HookEventName, result: ProcessedHookResult) -> dict[str, Any]:
    """The result in the documented shape of ``--json``."""
    aggregated, final = result.aggregated, result.final_output
    report = {
        "event": event.value,
        "success": aggregated.success,
        "blocked": result.blocked,
        "reason": result.reason,
        "ask": result.ask,
        "should_stop": result.should_stop,
        "stop_reason": result.stop_reason,
        "system_message": result.system_message,
        "suppress_output": result.suppress_output,
        "additional_context": final.additional_context if final else None,
        "final_output": final.to_wire() if final else None,
        "all_outputs": [output.to_wire() for output in aggregated.all_outputs],
        "errors": [error.to_wire() for error in aggregated.errors],
        "total_duration_ms": round(aggregated.total_duration, 3),
        "hooks": [hook.to_wire() for hook in aggregated.hook_results],
    }
    if result.user_message is not None:
        report["user_message"] = result.user_message
    return report


def print_result(event: HookEventName, result: ProcessedHookResult) -> None:
    """Print what was decided and what each hook did."""
    hooks = result.aggregated.hook_results
    print(f"{event.value}: {_headline(event, result)}")
    for hook in hooks:
        outcome = paint_hook(hook_verdict(hook).word, _HOOK_WORDS)
        facts = f"{hook.source}, {format_duration(hook.duration)}"
        if hook.is_async:
            facts = f"{hook.source}, not waited for"
        elif hook.recheck:
            facts += ", asked again about the final input"
        print(f"  {outcome} {printable(hook.hook_name)} ({facts})")
    _print_effects(result)
    for hook in hooks:
        _print_warnings(hook)
    for error in result.aggregated.errors:
        print(f"{paint('error', 'red')}: {printable_text(error.message)}")
    for hook in hooks:
        if hook.failed and hook.hook_type == HookType.PYTHON and hook.stderr:
            print(f"\n{printable_text(hook.stderr.rstrip())}")


def _headline(event: HookEventName, result: ProcessedHookResult) -> str:
    verdict = event_verdict(event, result)
    word = paint_verdict(verdict.word)
    if verdict.ends:
        return f"{word}: {printable_text(verdict.reason or '')}"
    if verdict.ask:
        question = verdict.reason or "the user has to decide"
        return f"{word}: {printable_text(question)}"
    # What hooks changed is printed below; errors too.
    no_hook = "" if result.aggregated.hook_results else ", no hook ran"
    return f"{paint('allowed', 'green')}{no_hook}"


def _print_effects(result: ProcessedHookResult) -> None:
    final = result.final_output or HookOutput()
    withheld = "withheld from the model" if final.withholds_result else None
    for label, value in (
        ("tool input now", final.modified_tool_input),
        ("tool result", withheld),
        ("model request changed", final.llm_request),
        ("model response", final.llm_response),
        ("tools", final.tool_config),
        ("context for the model", final.additional_context),
        ("message for the model", result.system_message),
        ("message for the user", result.user_message),
    ):
        if value is not None:
            text = value if isinstance(value, str) else encode(value).decode()
            print(f"{label}: {printable_text(text)}")


def _print_warnings(hook: HookExecutionResult) -> None:
    for warning in hook.warnings:
        text = printable(f"hook {hook.hook_name!r}: {warning}")
        print(f"{paint('warning', 'yellow')}: {text}")
    is_process = hook.hook_type in (HookType.COMMAND, HookType.WORKER)
    if is_process and hook.success and hook.output is None and hook.stderr:
        text = printable(f"hook {hook.hook_name!r}: {one_line(hook.stderr)}")
        print(f"stderr, ignored with exit 0: {shorten(text, 200)}")
