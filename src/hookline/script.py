"""For hook authors: functions for a hook's answers, and ``run``, which calls the hook.

One file works both ways: started for each event, or kept running as a worker
(``HOOKLINE_WORKER=1``). In both, only the return value is the answer: what the hook and
its child processes print goes to standard error.

Standard library only, and few imports: a hook pays for them at every event.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeAlias

    Hook: TypeAlias = Callable[[dict[str, Any]], Any]
    Json: TypeAlias = Mapping[str, object]

__all__ = [
    "Output",
    "run",
    "allow",
    "block",
    "ask",
    "stop",
    "modify_input",
    "modify_request",
    "modify_response",
    "respond",
    "restrict_tools",
    "add_context",
    "system_message",
    "suppress_output",
    "clear_context",
]

_STRICTNESS = {"ask": 1, "block": 2, "deny": 2}
_MAX_PRINTED = 1 << 20
_MAX_DIGITS = 4000
_INTERRUPTED = 130
_JOINED = ("systemMessage", "additionalContext")


class Output(dict[str, object]):
    """A hook's answer, as the protocol spells it; ``|`` combines two.

    The stricter decision wins with its reason, ``systemMessage`` and additional context
    are joined, and ``hookSpecificOutput`` is merged key by key.
    """

    def __or__(self, other: Json) -> Output:  # type: ignore[override]
        # dict overloads this operator for other value types; here they are fixed.
        if not isinstance(other, dict):
            return NotImplemented
        return Output(_keep_stricter(self, _merged(self, other)))

    __ior__ = __or__  # type: ignore[assignment]  # as above


def allow(reason: str | None = None) -> Output:
    """Allow it explicitly; returning None does the same."""
    return Output(decision="allow") if reason is None else _decide("allow", reason)


def block(reason: str) -> Output:
    """Block it; the model gets the reason."""
    return _decide("block", reason)


def ask(reason: str) -> Output:
    """Ask a person."""
    return _decide("ask", reason)


def stop(reason: str) -> Output:
    """Stop the agent."""
    return Output({"continue": False, "stopReason": str(reason)})


def system_message(text: str) -> Output:
    """Send a system message."""
    return Output(systemMessage=str(text))


def suppress_output() -> Output:
    """Do not display the output."""
    return Output(suppressOutput=True)


def add_context(text: str) -> Output:
    """Give the model more text."""
    return _specific(additionalContext=str(text))


def clear_context() -> Output:
    """Make the agent start again with an empty history (AfterAgent)."""
    return _specific(clearContext=True)


def modify_input(changes: Mapping[str, Any] | None = None, **more: Any) -> Output:
    """Change keys of the tool's input; the other keys stay as they are (BeforeTool)."""
    return _specific(tool_input={**(changes or {}), **more})


def modify_request(changes: Mapping[str, Any] | None = None, **more: Any) -> Output:
    """Change parts of the model request: model, messages, config (BeforeModel)."""
    return _specific(llm_request={**(changes or {}), **more})


def modify_response(text: str | None = None, **more: Any) -> Output:
    """Replace the text of the model's response, or other parts of it (AfterModel)."""
    response = {} if text is None else _response(text)
    return _specific(llm_response={**response, **more})


def respond(text: str) -> Output:
    """Answer instead of the model, which is not called (BeforeModel)."""
    return block("answered by a hook") | _specific(llm_response=_response(text))


def restrict_tools(names: Iterable[str], mode: str | None = None) -> Output:
    """Allow the model only these tools, or none (BeforeToolSelection).

    The mode is ``AUTO`` (the model may call one), ``ANY`` (it must) or ``NONE``.
    """
    allowed = [names] if isinstance(names, str) else list(names)
    mode = mode or ("AUTO" if allowed else "NONE")
    return _specific(toolConfig={"mode": mode, "allowedFunctionNames": allowed})


def run(hook: Hook) -> None:
    """Call the hook with its event, or as a worker with each event; send its answers.

    The hook takes the event as a dict and returns None, an answer of this module, or a
    dict. It may be ``async``. An exception is a failed hook: exit code 1, the traceback
    on standard error.
    """
    # Removed, since the hook's child processes are not workers.
    if os.environ.pop("HOOKLINE_WORKER", "") == "1":
        _Worker(hook).serve()
        return
    _open_closed_streams()
    answer = os.dup(1)
    os.dup2(2, 1)
    try:
        event = _read_event()
        _enter_trace(event.pop("hookline_trace", None))
        text = _answer(hook, event)
    finally:
        _flush()
    if text:
        _write(answer, text)


def _answer(hook: Hook, event: dict[str, Any]) -> str:
    """Call a hook and encode its answer; an empty text for None."""
    answer = hook(event)
    if hasattr(answer, "__await__"):
        answer = _awaited(answer)
    if answer is None:
        return ""
    name = getattr(hook, "__qualname__", None) or repr(hook)
    if not isinstance(answer, dict):
        hint = " (call it: add parentheses)" if callable(answer) else ""
        raise TypeError(
            f"{name}() returned {_short_repr(answer)}{hint}: return None, an answer of "
            "hookline.script such as block('why'), or a dict"
        )
    import json

    try:
        return json.dumps(answer, allow_nan=False, default=str)
    except (TypeError, ValueError, RecursionError) as error:
        problem = f"returned a value that is not JSON: {error}: {_short_repr(answer)}"
        raise TypeError(f"{name}() {problem}") from None


def _decide(decision: str, reason: object) -> Output:
    # A reason of another type must not turn a block into a crash, which may allow.
    return Output(decision=decision, reason=str(reason))


def _specific(**fields: object) -> Output:
    return Output(hookSpecificOutput=fields)


def _response(text: str) -> dict[str, object]:
    content = {"role": "model", "parts": [str(text)]}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return {"text": str(text), "candidates": [candidate]}


def _merged(left: Json, right: Json) -> dict[str, object]:
    merged = {**left, **right}
    for key in left.keys() & right.keys():
        old, new = left[key], right[key]
        if isinstance(old, dict) and isinstance(new, dict):
            merged[key] = _merged(old, new)
        elif key in _JOINED:
            merged[key] = f"{old}\n{new}"
    return merged


def _keep_stricter(left: Json, merged: dict[str, object]) -> dict[str, object]:
    old, new = left.get("decision"), merged.get("decision")
    words = [str(word).strip().lower() for word in (old, new)]
    if _STRICTNESS.get(words[0], 0) > _STRICTNESS.get(words[1], 0):
        merged |= {key: left[key] for key in ("decision", "reason") if key in left}
    if left.get("continue") is False:
        merged |= {key: left[key] for key in ("continue", "stopReason") if key in left}
    return merged


def _read_event() -> dict[str, Any]:
    if sys.stdin is None:
        raise SystemExit("no event: standard input is closed")
    if sys.stdin.isatty():
        sys.stderr.write("reading an event from standard input, as JSON\n")
    try:
        event = _parsed(sys.stdin.buffer.read())
    except ValueError as error:
        raise SystemExit(f"no event: standard input is not JSON: {error}") from None
    if not isinstance(event, dict):
        raise SystemExit(f"no event: expected a JSON object, got {_short_repr(event)}")
    return event


def _enter_trace(trace: object) -> None:
    """Set the trace context of an event, for which this process was started ahead."""
    for name in ("TRACEPARENT", "TRACESTATE"):
        value = trace.get(name) if isinstance(trace, dict) else None
        if isinstance(value, str) and value.isascii() and value.isprintable():
            os.environ[name] = value


def _parsed(text: bytes) -> Any:
    import json

    try:
        return json.loads(text)
    except ValueError:  # int() rejects numbers with very many digits
        return json.loads(
            text, parse_int=lambda n: int(n) if len(n) <= _MAX_DIGITS else n
        )


def _awaited(answer: Any) -> Any:
    import asyncio

    async def wait() -> Any:
        return await answer

    return asyncio.run(wait())


class _Worker:
    """Runs a hook for one event after the other, each in a clean environment."""

    def __init__(self, hook: Hook) -> None:
        _open_closed_streams()
        self._hook = hook
        self._requests = os.fdopen(os.dup(0), "rb", 1 << 16)
        self._answers = os.dup(1)
        self._printed = _Printed()
        self._folder = os.open(".", os.O_RDONLY)
        self._own_env = dict(os.environ)
        self._env: dict[str, str] = {}
        # Comparing the raw mapping takes 1 µs, decoding it 50.
        self._live: dict[bytes, bytes] = vars(os.environ)["_data"]
        self._entered = dict(self._live)
        # A child process of the hook must not read the next events.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    def serve(self) -> None:
        """Answer events until the input ends."""
        import json

        for line in self._requests:
            frame = _parsed(line)
            self._enter(frame.get("env") or {})
            code, text = self._call(frame["input"])
            _flush()
            answer = {"id": frame["id"], "exit_code": code, "stdout": text}
            answer["stderr"] = self._printed.take()
            try:
                _write(self._answers, json.dumps(answer) + "\n")
            except BrokenPipeError:  # the host is gone
                return
            if code == _INTERRUPTED:
                return

    def _enter(self, env: dict[str, str]) -> None:
        """Restore directory and environment, and set the variables of the event."""
        os.fchdir(self._folder)
        if env == self._env and self._live == self._entered:
            return
        wanted = {**self._own_env, **env}
        for name in os.environ.keys() - wanted.keys():
            del os.environ[name]
        os.environ.update(wanted)
        self._env, self._entered = env, dict(self._live)

    def _call(self, event: dict[str, Any]) -> tuple[int, str]:
        try:
            return 0, _answer(self._hook, event)
        except SystemExit as leaving:
            return _exit_code(leaving.code), ""
        except KeyboardInterrupt:
            return _INTERRUPTED, ""
        except BaseException as error:  # noqa: BLE001 - the hook is foreign code
            trace = error.__traceback__
            while trace and trace.tb_frame.f_code.co_filename == __file__:
                trace = trace.tb_next  # it starts at the author's own file
            sys.excepthook(type(error), error.with_traceback(trace), trace)
            return 1, ""


class _Printed:
    """Collects standard output and error of one event, up to a limit.

    A full pipe blocks its writer and a file has no limit, so a thread reads the pipe.
    """

    def __init__(self) -> None:
        import _thread
        from select import select

        self._source, sink = os.pipe()
        os.set_blocking(self._source, False)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        os.close(sink)
        self._kept = bytearray()
        self._lock = _thread.allocate_lock()
        # Python crashes where it ends while a thread is still starting.
        starting = _thread.allocate_lock()
        starting.acquire()
        _thread.start_new_thread(self._read_forever, (select, starting))
        starting.acquire()

    def take(self) -> str:
        """What was printed since the last call."""
        self._drain()
        with self._lock:
            text, self._kept = self._kept, bytearray()
        return text.decode("utf-8", "replace")

    def _read_forever(self, select: Callable[..., Any], starting: Any) -> None:
        starting.release()
        while select([self._source], [], []):
            self._drain()

    def _drain(self) -> None:
        with self._lock:
            try:
                while chunk := os.read(self._source, 1 << 16):
                    self._kept += chunk[: _MAX_PRINTED - len(self._kept)]
            except BlockingIOError:
                return


def _exit_code(code: object) -> int:
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    sys.stderr.write(f"{code}\n")
    return 1


def _open_closed_streams() -> None:
    """Open 0, 1 and 2, so that no file opened later becomes a standard stream."""
    while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(spare)


def _write(descriptor: int, text: str) -> None:
    data = text.encode()
    while data:  # a pipe may take only a part
        data = data[os.write(descriptor, data) :]


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):  # None or closed
            continue


def _short_repr(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
