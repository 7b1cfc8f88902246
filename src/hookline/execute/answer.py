"""The exit table: from exit code, stdout and stderr to a result.

protocol.md#process (HOOK-063..070), for processes, warm workers and functions alike.
A broken answer is not a yes: text that starts like a JSON object is one, or a failure.
"""

from __future__ import annotations

import re
import signal
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import structs

from hookline.plan import SILENT, RegisteredHook, RunEnd
from hookline.protocol.outputs import BLOCKED_BY_HOOK, read_decision, read_output
from hookline.protocol.results import FailureCause, HookExecutionResult
from hookline.protocol.values import TooDeepError, decode
from hookline.settings.model import Expect

EXIT_BLOCK = 2
MAX_MESSAGE_BYTES = 64 * 1024
MAX_WARNING_BYTES = 4 * 1024

_NOT_STARTED = (126, 127)
_CUT = "[...]"
_SAMPLE = 64 * 1024
_STILL_OPEN = "another process held its output open after it exited"

# What may stand before an answer, unseen by its author: sequences of a terminal (a "{"
# would end one, but then starts an answer), control characters, blanks and symbols.
_UNSEEN = (
    r"(?:\x1b\]|\x9d)[^\x00-\x1f\x9c\x9d]*+(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-z|}~]?+|\x1b[ -/]*+[0-z|}~]"
    r"|[^\w!-~\r\n]|[\u115f\u1160\u3164\uffa0]"
)
_ESCAPED = r"\\(?:[bfnrt]|u(?:00[0-2]|200)\w|u(?i:feff))"
_STARTS_AN_OBJECT = (
    rf"(?:{_UNSEEN}|[\r\n])*+"
    rf'(?:\{{|"(?:{_UNSEEN}|{_ESCAPED})*+(?:\{{|\\u007[bB]))'
)
_HOLDS_AN_OBJECT = rf"""(?m:(?:^|\r)(?:{_UNSEEN}|b?['"`]|[\[\\])*+\{{\\*+["'])"""

_ODD_REASONS = (
    *("can't open file", "command not found", "syntax error"),
    *("\r", "usage:", "/dev/tty"),
)
"""In the reason of a block that the script hardly wrote itself."""


def read_end(
    hook: RegisteredHook, end: RunEnd, duration: float = 0.0
) -> HookExecutionResult:
    """The result of a run, whatever it ran and however it ended.

    ``duration``: in milliseconds.
    """
    if end is SILENT:  # as of most rules and functions
        config = hook.config
        return HookExecutionResult(
            hook_name=config.name,
            hook_type=config.type,
            source=hook.source,
            event_name=hook.event,
            success=True,
            exit_code=0,
            duration=duration,
        )
    if end.result is not None:
        return structs.replace(end.result, duration=duration)
    if end.answer is None:
        end = read_streams(hook, end)
    result = HookExecutionResult(
        hook_name=hook.config.name,
        hook_type=hook.config.type,
        source=hook.source,
        event_name=hook.event,
        success=end.cause is None and end.exit_code == 0,
        exit_code=end.exit_code,
        stdout=end.stdout,
        stderr=end.stderr,
        duration=duration,
        error=end.error,
        cause=end.cause,
        warnings=end.warnings,
        timed_out=end.cause is FailureCause.TIMEOUT,
        truncated=end.truncated,
        reran=end.reran,
        standby=end.standby,
    )
    return result if end.answer is None else with_output(result, end.answer)


def with_output(
    result: HookExecutionResult, answer: dict[str, Any]
) -> HookExecutionResult:
    """Add the hook's output, read for its event."""
    output, warnings = read_output(answer, result.event_name)
    if output.system_message:
        message = shortened(output.system_message)
        output = structs.replace(output, system_message=message)
    if output.unreadable is not None and result.cause is None:
        error = f"gave an answer that cannot be read: {output.unreadable}"
        cause = FailureCause.OUTPUT
        result = structs.replace(result, success=False, cause=cause, error=error)
    warnings = (*result.warnings, *warnings)
    return structs.replace(result, output=output, raw_output=answer, warnings=warnings)


def read_streams(hook: RegisteredHook, end: RunEnd) -> RunEnd:
    """Add the answer, or what is wrong, by the table of exit codes and streams."""
    if end.error is not None:
        return end
    is_silent = not (end.stdout or end.stdout_open or end.stdout_truncated)
    if end.exit_code == 0 and end.cause is None and is_silent:
        return end
    answer: dict[str, Any] | None = None
    code, cause, error, warnings = end.exit_code, end.cause, None, end.warnings
    is_odd = True
    if cause is not None:
        assert cause is FailureCause.TIMEOUT  # others say what went wrong
        error = f"timed out after {hook.config.timeout_ms:g} ms"
    elif code == 0:
        is_odd = False
        try:
            answer, warnings = _read_stdout(hook, end)
        except BrokenAnswerError as problem:
            cause, error = FailureCause.OUTPUT, str(problem)
    elif code == EXIT_BLOCK:
        reason = shortened(end.stderr) or BLOCKED_BY_HOOK
        answer = {"decision": "deny", "reason": reason}
        is_odd = bool(end.stdout and (not end.stderr or end.stdout[0] == "{"))
        is_odd = is_odd or any(mark in end.stderr for mark in _ODD_REASONS)
    else:
        cause = FailureCause.SPAWN if code in _NOT_STARTED else FailureCause.CRASH
        error = f"exited with status {code}"
        if code is None:
            error = "ended, but another part of the host took its exit status"
        elif code < 0:
            error = f"was killed by signal {-code} ({_signal_name(-code)})"
        if end.stderr:
            warning = f"Warning: {_tail(end.stderr)}"
            answer = {"decision": "allow", "systemMessage": warning}
    end = structs.replace(
        end, answer=answer, cause=cause, error=error, warnings=warnings
    )
    if is_odd:
        from .hints import hint_about  # most runs end as they should

        if hint := hint_about(hook, end):
            return structs.replace(end, warnings=(*end.warnings, hint))
    return end


def _read_stdout(
    hook: RegisteredHook, end: RunEnd
) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    if end.stdout_truncated:
        limit = f"maxOutputBytes ({hook.options.max_output_bytes:,} bytes)"
        todo = "print less, or raise it in hooksConfig"
        problem = f"printed more than {limit}: the output is ignored: {todo}"
        raise BrokenAnswerError(problem)
    answer, warnings = parse_answer(end.stdout, cut=end.stdout_open)
    if answer is None and hook.config.expect is Expect.JSON:
        # Printing nothing at all is an answer.
        if end.stdout:
            raise BrokenAnswerError("printed text where JSON was expected")
        if end.stdout_open:
            problem = f"printed nothing where JSON was expected, and {_STILL_OPEN}"
            raise BrokenAnswerError(problem)
    if answer is None and end.stdout:
        answer = {"decision": "allow", "systemMessage": shortened(end.stdout)}
    return answer, (*end.warnings, *warnings)


class BrokenAnswerError(ValueError):
    """An answer that is meant as a JSON object and cannot be read as one."""


def parse_answer(
    text: str, *, cut: bool = False
) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """Parse a JSON object, or a JSON string that holds one; with warnings.

    None for any other text; raises ``BrokenAnswerError`` where it starts like an
    object. ``cut``: the text may be only the beginning of what was written.
    """
    if not text:
        return None, ()
    inner, where, problem, is_too_deep = text, "", "it is not an object", False
    try:
        answer = decode(inner)
        if isinstance(answer, str):
            inner, where = answer, "in the JSON string, "
            answer = decode(inner)
        if isinstance(answer, dict):
            return _without_repeats(inner, answer)
    # The error is not kept: it holds this frame, and with it the event.
    except ValueError as error:
        problem, is_too_deep = str(error), isinstance(error, TooDeepError)
        if hasattr(error, "lineno"):
            message = getattr(error, "msg", error)
            place = f"line {error.lineno} column {getattr(error, 'colno', None)}"
            problem = f"{where}{place}: {message}"
    # Half a byte order mark, or the first half of a JSON string, may still become one.
    is_object = (cut and text[0] in '"\ufffd') or re.match(_STARTS_AN_OBJECT, text)
    if not is_object and not is_too_deep:
        return None, _text_warnings(text)
    if inner[:1] not in '{"' and not is_too_deep:
        problem = f"it starts with U+{ord(inner[0]):04X}"
    advice = "print one JSON object and nothing else"
    if cut:
        advice = _STILL_OPEN
    elif re.match(r"\{\s*'", inner):
        problem += "; JSON has double quotes: in Python, use json.dumps"
    raise BrokenAnswerError(f"printed broken JSON ({problem}): {advice}")


def _text_warnings(text: str) -> tuple[str, ...]:
    if "{" not in text:
        return ()
    if len(text) > 2 * _SAMPLE:
        text = f"{text[:_SAMPLE]}\n{text[-_SAMPLE:]}"
    if re.search(_HOLDS_AN_OBJECT, text) is None:
        return ()
    problem = "printed text with JSON in it, which is not read as an answer"
    return (f'{problem}: print one JSON object and nothing else ("expect": "json")',)


_STRICTNESS = {"deny": 4, "block": 4, "NONE": 4, "ask": 3, "ANY": 3}
_DECIDING = ("decision", "permissionDecision")


def _without_repeats(
    text: str, answer: dict[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Where an object names a key twice the stricter value counts, with a warning.

    A shell hook that echoes a model's text into its JSON must not lose its verdict.
    """
    # A key that was lost took its quotation marks along: most answers are read once.
    with suppress(ValueError, RecursionError):  # a huge number, or nested deeply
        quotes = msgspec.json.encode(answer).count(b'"')
        if quotes == text.count('"') and r"\u0022" not in text:
            return answer, ()
    repeated: dict[str, None] = {}

    def merge(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for key, value in pairs:
            if key not in merged:
                merged[key] = value
            else:
                repeated[key] = None
                merged[key] = _stricter(key, merged[key], value)
        return merged

    answer = decode(text, pairs=merge)
    names = ", ".join(repr(name[:80]) for name in list(repeated)[:8])
    return answer, (f"gives {names} twice: the stricter counts",) if names else ()


def _stricter(key: str, first: Any, second: Any) -> Any:
    if isinstance(first, dict) and isinstance(second, dict):
        both = first.keys() & second.keys()
        merged = {name: _stricter(name, first[name], second[name]) for name in both}
        return {**first, **second, **merged}
    return first if _strictness(key, first) > _strictness(key, second) else second


def _strictness(key: str, value: Any) -> int:
    if key in _DECIDING:
        try:
            value = read_decision(value)
        except ValueError:
            return 2  # a failure, which may block
    if value is None:
        return -1
    if isinstance(value, str):
        return _STRICTNESS.get(value, 0)
    if isinstance(value, dict):
        return 2  # it may hold a verdict
    return int(value is (key != "continue"))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "an unknown signal"


def shortened(text: str) -> str:
    """The beginning of a text that is too long for a message or a reason."""
    if len(text) <= MAX_MESSAGE_BYTES // 4:
        return text
    data = text.encode("utf-8", "replace")
    if len(data) <= MAX_MESSAGE_BYTES:
        return text
    return data[:MAX_MESSAGE_BYTES].decode("utf-8", "ignore") + _CUT


def _tail(text: str) -> str:
    data = text.encode("utf-8", "replace")
    if len(data) <= MAX_WARNING_BYTES:
        return text
    return _CUT + data[-MAX_WARNING_BYTES:].decode("utf-8", "ignore")
