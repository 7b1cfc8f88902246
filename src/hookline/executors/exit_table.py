"""The exit table: from exit code, stdout and stderr to a result.

PROTOCOL section 4 (HOOK-063..070), for processes, warm workers and functions alike.
"""

from __future__ import annotations

import signal
from typing import Any

from msgspec import Struct, structs

from hookline.protocol.jsontext import TooDeepError, decode
from hookline.protocol.outputs import read_output
from hookline.protocol.results import FailureCause, HookExecutionResult
from hookline.settings.model import Expect

from .contract import RegisteredHook

EXIT_BLOCK = 2
MAX_MESSAGE_BYTES = 64 * 1024
MAX_WARNING_BYTES = 4 * 1024
DEFAULT_BLOCK_REASON = "Blocked by hook"

_NOT_STARTED = (126, 127)
_CUT = "[...]"


class RunEnd(Struct, frozen=True, kw_only=True):
    """How a run ended."""

    exit_code: int | None
    stdout: str = ""
    stderr: str = ""
    stdout_truncated: bool = False
    truncated: bool = False
    duration: float = 0.0
    reran: bool = False


def read_end(hook: RegisteredHook, end: RunEnd) -> HookExecutionResult:
    """The result of a run that ended by itself."""
    if end.exit_code == 0:
        return _read_success(hook, end)
    if end.exit_code == EXIT_BLOCK:
        reason = _head(end.stderr) or DEFAULT_BLOCK_REASON
        said = {"decision": "deny", "reason": reason}
        return with_output(blank_result(hook, end, success=False), said)
    return _read_crash(hook, end)


def failed_result(
    hook: RegisteredHook, end: RunEnd, cause: FailureCause, error: str
) -> HookExecutionResult:
    """The result of a run that failed, without an output."""
    blank = blank_result(hook, end, success=False)
    return structs.replace(
        blank, error=error, cause=cause, timed_out=cause is FailureCause.TIMEOUT
    )


def timed_out_result(hook: RegisteredHook, end: RunEnd) -> HookExecutionResult:
    """The result of a run that was ended at its deadline."""
    error = f"timed out after {hook.config.timeout_ms:g} ms"
    return failed_result(hook, end, FailureCause.TIMEOUT, error)


def with_output(
    result: HookExecutionResult, said: dict[str, Any]
) -> HookExecutionResult:
    """Add the hook's output, read for its event."""
    output, warnings = read_output(said, result.event_name)
    if output.system_message:
        message = _head(output.system_message)
        output = structs.replace(output, system_message=message)
    return structs.replace(
        result, output=output, raw_output=said, warnings=(*result.warnings, *warnings)
    )


def blank_result(
    hook: RegisteredHook, end: RunEnd, *, success: bool
) -> HookExecutionResult:
    """A result without an output."""
    return HookExecutionResult(
        hook_name=hook.config.name,
        hook_type=hook.config.type,
        source=hook.source,
        event_name=hook.event,
        success=success,
        exit_code=end.exit_code,
        stdout=end.stdout,
        stderr=end.stderr,
        duration=end.duration,
        truncated=end.truncated,
        reran=end.reran,
    )


def as_text(stream: bytes) -> str:
    """Decode a complete stream and trim it, with any byte order mark."""
    return stream.decode("utf-8", "replace").strip().strip("\ufeff").strip()


def _read_success(hook: RegisteredHook, end: RunEnd) -> HookExecutionResult:
    if end.stdout_truncated:
        problem = "printed more than maxOutputBytes: the output is ignored"
        return failed_result(hook, end, FailureCause.OUTPUT, problem)
    result = blank_result(hook, end, success=True)
    if not end.stdout:
        return result
    try:
        said = parse_object(end.stdout)
    except TooDeepError as error:
        return failed_result(hook, end, FailureCause.OUTPUT, str(error))
    if said is None and hook.config.expect is Expect.JSON:
        problem = "printed text where JSON was expected"
        return failed_result(hook, end, FailureCause.OUTPUT, problem)
    if said is None:
        said = {"decision": "allow", "systemMessage": _head(end.stdout)}
    return with_output(result, said)


def parse_object(text: str) -> dict[str, Any] | None:
    """Parse a JSON object, or a JSON string that holds one."""
    try:
        found = decode(text)
        if isinstance(found, str):
            found = decode(found)
    except TooDeepError:
        raise
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _read_crash(hook: RegisteredHook, end: RunEnd) -> HookExecutionResult:
    cause = FailureCause.SPAWN if end.exit_code in _NOT_STARTED else FailureCause.CRASH
    result = failed_result(hook, end, cause, _describe(end.exit_code))
    if not end.stderr:
        return result
    warning = f"Warning: {_tail(end.stderr)}"
    return with_output(result, {"decision": "allow", "systemMessage": warning})


def _describe(exit_code: int | None) -> str:
    if exit_code is None:
        return "ended, but another part of the host took its exit status"
    if exit_code >= 0:
        return f"exited with status {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = "an unknown signal"
    return f"was killed by signal {-exit_code} ({name})"


def _head(text: str) -> str:
    if len(text) <= MAX_MESSAGE_BYTES // 4:
        return text
    cut = text.encode("utf-8", "replace")
    if len(cut) <= MAX_MESSAGE_BYTES:
        return text
    return cut[:MAX_MESSAGE_BYTES].decode("utf-8", "ignore") + _CUT


def _tail(text: str) -> str:
    cut = text.encode("utf-8", "replace")
    if len(cut) <= MAX_WARNING_BYTES:
        return text
    return _CUT + cut[-MAX_WARNING_BYTES:].decode("utf-8", "ignore")
