"""Say what is expected of a result; the message of a failure tells the whole story."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hookline.results import ProcessedHookResult

from .verdicts import change_of, message_of, verdict_of


def assert_blocked(result: ProcessedHookResult, match: str | None = None) -> None:
    """The event was blocked or stopped, for a reason like ``match``."""
    __tracebackhide__ = True
    _fail_unless(verdict_of(result) in ("block", "stop"), "blocked", result)
    if match is not None and not re.search(match, message_of(result)):
        raise AssertionError(f"expected a reason like {match!r}, {_story(result)}")


def assert_allowed(result: ProcessedHookResult) -> None:
    """The event may go on, and no hook has failed."""
    __tracebackhide__ = True
    _fail_unless(verdict_of(result) == "allow", "allowed", result)
    # A hook that crashes lets pass as well; that is not what a test wants to hear.
    failed = [hook for hook in result.aggregated.hook_results if hook.failed]
    _fail_unless(not failed, "allowed by hooks that work", result)


def assert_modified(
    result: ProcessedHookResult,
    expected: Mapping[str, Any] | None = None,
    **more: Any,
) -> None:
    """These keys of the tool input or the model call have these values now."""
    __tracebackhide__ = True
    changed = change_of(result)
    _fail_unless(changed is not None, "modified", result)
    wanted = {**(expected or {}), **more}
    got = {key: (changed or {}).get(key) for key in wanted}
    if got != wanted:
        raise AssertionError(f"expected {wanted!r}, got {got!r}; {_story(result)}")


def _fail_unless(fine: bool, expected: str, result: ProcessedHookResult) -> None:
    __tracebackhide__ = True
    if not fine:
        raise AssertionError(f"expected it to be {expected}, {_story(result)}")


def _story(result: ProcessedHookResult) -> str:
    lines = [f"got {verdict_of(result)}: {message_of(result) or 'nothing was said'}"]
    hooks = result.aggregated.hook_results
    if not hooks:
        lines.append("  no hook ran")
    for hook in hooks:
        ended = hook.error or f"exit code {hook.exit_code}"
        lines.append(f"  {hook.hook_name}: {ended}, said {hook.said!r}")
        if hook.stderr:
            lines.append(f"    stderr: {hook.stderr}")
    return "\n".join(lines)
