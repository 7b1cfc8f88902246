"""The exit table: from exit code, stdout and stderr to a result.

protocol.md#process (HOOK-063..070), for processes, warm workers and functions alike.
A broken answer is not a yes: text that starts like a JSON object is one, or a failure.
"""

from __future__ import annotations

import codecs
import re
import signal
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

_MARKS = (  # UTF-32 first: its mark starts with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# What a terminal or an encoding puts in front of an answer, unseen by its author.
_SEQUENCES = (  # "{" may end one, but then starts an answer
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-z|}~]?+|\x1b[ -/]++[0-z|}~]|\x1b[0-Z\\^-z|}~]"
    r"|(?:\x1b\]|\x9d)[^\x00-\x1f\x9c\x9d]*+(?:\x07|\x1b\\|\x9c)"
)
_UNSEEN = (
    rf"{_SEQUENCES}|[\x00-\x09\x0b\x0c\x0e-\x20\x7f-\xa0\xad\u034f\u061c\u115f\u1160]"
    r"|[\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000]"
    r"|[\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffd\U000e0000-\U000e0fff]"
)
_ESCAPED = r"\\(?:[bfnrt]|u(?:00[0-2][0-9A-Fa-f]|200[0-9A-Fa-f]|feff|FEFF))"
_STARTS_AN_OBJECT = (
    rf'(?:{_UNSEEN}|[\r\n])*+(?:\{{|"(?:{_UNSEEN}|{_ESCAPED})*+(?:\{{|\\u007[Bb]))'
)
_HOLDS_AN_OBJECT = rf"""(?m:(?:^|\r)(?:{_UNSEEN}|b?['"`]|[\[\\])*+\{{\\*+["'])"""
_SAMPLE = 64 * 1024


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


def read_streams(hook: RegisteredHook, end: RunEnd) -> RunEnd:
    """Add the answer, or what is wrong, by the table of exit codes and streams."""
    if end.cause is not None:
        if end.error is not None:
            return end
        assert end.cause is FailureCause.TIMEOUT  # others say what went wrong
        error = f"timed out after {hook.config.timeout_ms:g} ms"
        return _hinted(hook, structs.replace(end, error=error))
    if end.exit_code == 0:
        return _read_stdout(hook, end)
    if end.exit_code == EXIT_BLOCK:
        reason = shortened(end.stderr) or BLOCKED_BY_HOOK
        answer = {"decision": "deny", "reason": reason}
        no_reason = end.stdout and (not end.stderr or end.stdout[0] == "{")
        if no_reason or any(mark in end.stderr for mark in _ODD):
            end = _hinted(hook, end)
        return structs.replace(end, answer=answer)
    cause = FailureCause.SPAWN if end.exit_code in _NOT_STARTED else FailureCause.CRASH
    end = structs.replace(end, cause=cause, error=_describe(end.exit_code))
    if end.stderr:
        warning = f"Warning: {_tail(end.stderr)}"
        answer = {"decision": "allow", "systemMessage": warning}
        end = structs.replace(end, answer=answer)
    return _hinted(hook, end)


_ODD = (
    "can't open file",
    "command not found",
    "syntax error",
    "\r",
    "usage:",
    "/dev/tty",
)
"""In the reason of a block that the script hardly wrote itself."""


def _hinted(hook: RegisteredHook, end: RunEnd) -> RunEnd:
    from .hints import hint_about  # most runs end as they should

    hint = hint_about(hook, end)
    if hint is None:
        return end
    return structs.replace(end, warnings=(*end.warnings, hint))


def with_output(
    result: HookExecutionResult, said: dict[str, Any]
) -> HookExecutionResult:
    """Add the hook's output, read for its event."""
    output, warnings = read_output(said, result.event_name)
    if output.system_message:
        message = shortened(output.system_message)
        output = structs.replace(output, system_message=message)
    if output.unreadable is not None and result.cause is None:
        error = f"gave an answer that cannot be read: {output.unreadable}"
        cause = FailureCause.OUTPUT
        result = structs.replace(result, success=False, cause=cause, error=error)
    return structs.replace(
        result, output=output, raw_output=said, warnings=(*result.warnings, *warnings)
    )


def as_text(stream: bytes) -> str:
    """Decode a complete stream and trim it; a byte order mark says how."""
    encoding = "utf-8"
    if stream[:1] in {b"\xff", b"\xfe", b"\x00"}:
        for mark, encoding in _encodings(stream):
            try:
                return trimmed(stream[len(mark) :].decode(encoding))
            except UnicodeDecodeError:
                continue
    return trimmed(stream.decode(encoding, "replace"))


def trimmed(text: str) -> str:
    """A text without what surrounds it, byte order marks included."""
    return text.strip().strip("\ufeff").strip()


def _encodings(stream: bytes) -> list[tuple[bytes, str]]:
    return [pair for pair in _MARKS if stream.startswith(pair[0])]


def _read_stdout(hook: RegisteredHook, end: RunEnd) -> RunEnd:
    problem: str | None
    if not (end.stdout or end.stdout_open or end.stdout_truncated):
        return end
    if end.stdout_truncated:
        limit = f"maxOutputBytes ({hook.options.max_output_bytes:,} bytes)"
        todo = "print less, or raise it in hooksConfig"
        problem = f"printed more than {limit}: the output is ignored: {todo}"
        return structs.replace(end, cause=FailureCause.OUTPUT, error=problem)
    try:
        answer, warnings = parse_answer(end.stdout, cut=end.stdout_open)
    except BrokenAnswerError as error:
        return structs.replace(end, cause=FailureCause.OUTPUT, error=str(error))
    if answer is None and (problem := _missing(hook, end)):
        return structs.replace(end, cause=FailureCause.OUTPUT, error=problem)
    if answer is None and end.stdout:
        answer = {"decision": "allow", "systemMessage": shortened(end.stdout)}
    return structs.replace(end, answer=answer, warnings=(*end.warnings, *warnings))


def _missing(hook: RegisteredHook, end: RunEnd) -> str | None:
    """Why the JSON that was expected is missing; printing nothing is an answer."""
    if hook.config.expect is not Expect.JSON:
        return None
    if end.stdout:
        return "printed text where JSON was expected"
    if end.stdout_open:
        return f"printed nothing where JSON was expected, and {_STILL_OPEN}"
    return None


_STILL_OPEN = "another process held its output open after it exited"


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
    inner, where, problem = text, "", ValueError("it is not an object")
    try:
        found = decode(inner)
        if isinstance(found, str):
            inner, where = found, "in the JSON string, "
            found = decode(inner)
        if isinstance(found, dict):
            return _without_repeats(inner, found)
    except ValueError as error:
        problem = error
    if isinstance(problem, TooDeepError) or _is_meant_as_object(text, cut=cut):
        raise BrokenAnswerError(_explain(problem, inner, where, cut=cut))
    return None, _text_warnings(text)


def _is_meant_as_object(text: str, *, cut: bool) -> bool:
    # Half a byte order mark, or the first half of a JSON string, may still become one.
    if cut and text.startswith(('"', "\ufffd")):
        return True
    return re.match(_STARTS_AN_OBJECT, text) is not None


def _explain(error: ValueError, text: str, where: str, *, cut: bool) -> str:
    line, column = getattr(error, "lineno", None), getattr(error, "colno", None)
    if text[0] not in '{"' and not isinstance(error, TooDeepError):
        problem = f"it starts with U+{ord(text[0]):04X}"
    elif line is None:
        problem = str(error)
    else:
        problem = f"{where}line {line} column {column}: {getattr(error, 'msg', error)}"
    if cut:
        return f"printed broken JSON ({problem}): {_STILL_OPEN}"
    if re.match(r"\{\s*'", text):
        problem += "; JSON has double quotes: in Python, use json.dumps"
    return f"printed broken JSON ({problem}): print one JSON object and nothing else"


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
    text: str, found: dict[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Where an object names a key twice the stricter value counts, with a warning."""
    if _has_all_quotes(text, found):
        return found, ()
    repeated: list[str] = []

    def merge(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for key, value in pairs:
            if key in merged:
                repeated.append(key)
                merged[key] = _stricter(key, merged[key], value)
            else:
                merged[key] = value
        return merged

    found = decode(text, pairs=merge)
    names = ", ".join(repr(name[:80]) for name in dict.fromkeys(repeated[:8]))
    return found, (f"gives {names} twice: the stricter counts",) if names else ()


def _has_all_quotes(text: str, found: dict[str, Any]) -> bool:
    """Whether no key was lost: its quotation marks would be missing in the dict."""
    try:
        written = msgspec.json.encode(found).count(b'"')
    except (ValueError, RecursionError):  # a huge number, or nested deeply
        return False
    return written == text.count('"') and "\\u0022" not in text


def _stricter(key: str, old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        both = {
            name: _stricter(name, old[name], new[name]) for name in old if name in new
        }
        return {**old, **new, **both}
    return old if _strictness(key, old) > _strictness(key, new) else new


def _strictness(key: str, value: Any) -> int:
    if key in _DECIDING:
        try:
            word = read_decision(value)
        except ValueError:
            return 2  # a failure, which may block
        return -1 if word is None else _STRICTNESS.get(word, 0)
    if isinstance(value, str):
        return _STRICTNESS.get(value, 0)
    if isinstance(value, dict):
        return 2  # it may hold a verdict
    if value is None:
        return -1
    return int(value is (key != "continue"))


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


def shortened(text: str) -> str:
    """The beginning of a text that is too long for a message or a reason."""
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
