"""Hold what hooks did against what a case expects.

Pure: the differences come back as text for people, none is a pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

from hookline.results import ProcessedHookResult

from .cases import HookTestCase


def verdict_of(result: ProcessedHookResult) -> str:
    """One word for what was decided."""
    if result.should_stop:
        return "stop"
    if result.blocked:
        return "block"
    return "ask" if result.ask else "allow"


def message_of(result: ProcessedHookResult) -> str:
    """All that was said to people and the model, in one text."""
    final = result.final_output
    own = final.own_reason if final else None
    said = (result.stop_reason, result.reason, own, result.system_message)
    return "\n".join(dict.fromkeys(text for text in said if text))


def change_of(result: ProcessedHookResult) -> dict[str, Any] | None:
    """What the hooks changed: the whole tool input, or parts of a model call."""
    final = result.final_output
    if final is None:
        return None
    return final.modified_tool_input or final.llm_request or final.llm_response


def differences(
    case: HookTestCase, result: ProcessedHookResult, cwd: Path
) -> Iterator[str]:
    """Everything about a result that is not as expected, except for a server."""
    verdict, message = verdict_of(result), message_of(result)
    if verdict != case.expect:
        said = f": {message}" if message else ""
        yield f"expected {case.expect}, got {verdict}{said}"
    yield from _failures(case, result)
    if case.message is not None:
        yield from _unlike("message", case.message, message)
    if case.context is not None:
        final = result.final_output
        yield from _unlike(
            "context", case.context, (final and final.additional_context) or ""
        )
    yield from _wrong_change(case, result)
    for name, pattern in case.wrote.items():
        yield from _unlike(name, pattern, _content(cwd / name))
    for name in case.absent:
        if (cwd / name).exists():
            yield f"{name} is there, and should not be"


def unlike_received(case: HookTestCase, requests: list[str]) -> Iterator[str]:
    """What is wrong with the requests that a case's server got."""
    if case.received is not None:
        yield from _unlike("received", case.received, "\n".join(requests))


def _failures(case: HookTestCase, result: ProcessedHookResult) -> Iterator[str]:
    hooks = result.aggregated.hook_results
    for error in () if hooks else result.aggregated.errors:
        yield f"{error.stage}: {error.message}"
    if not hooks and not result.aggregated.errors and case.expect != "allow":
        yield "no hook ran: is there one for this event and tool, and is it trusted?"
    failed = [hook for hook in hooks if hook.failed]
    if case.fails and not failed:
        yield "expected the hook to fail, and it did not"
    for hook in () if case.fails else failed:
        stderr = f"\n{hook.stderr}" if hook.stderr else ""
        yield f"{hook.hook_name} failed: {hook.error}{stderr}"


def _wrong_change(case: HookTestCase, result: ProcessedHookResult) -> Iterator[str]:
    changed, final = change_of(result), result.final_output
    if case.unchanged and changed is not None:
        yield f"expected no change, got {_pretty(changed)}"
    if case.changed is not None:
        whole = final is not None and final.modified_tool_input is not None
        shown = changed if whole else _part_like(case.changed, changed or {})
        if shown != case.changed:
            yield _diff("changed", case.changed, shown)
    if case.output is not None:
        wire = final.to_wire() if final else {}
        shown = _part_like(case.output, wire)
        if shown != case.output:
            yield _diff("output", case.output, shown)


def _part_like(expected: Any, actual: Any) -> Any:
    """The actual value without the keys that were not asked for."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return {
            key: _part_like(expected[key], value)
            for key, value in actual.items()
            if key in expected
        }
    return actual


def _unlike(what: str, pattern: str, text: str) -> Iterator[str]:
    """An empty pattern means: nothing."""
    if (pattern == "" and text) or not re.search(pattern, text):
        expected = f"something like {pattern!r}" if pattern else "nothing"
        yield f"{what}: expected {expected}, got {text!r:.2000}"


def _content(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace").rstrip("\n")
    except OSError as error:
        return f"<{error.strerror}>"


def _diff(what: str, expected: Any, actual: Any) -> str:
    lines = unified_diff(
        _pretty(expected).splitlines(),
        _pretty(actual).splitlines(),
        f"{what}: expected",
        f"{what}: got",
        lineterm="",
    )
    return "\n".join(lines)


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, default=str)
