"""For hook authors: what a hook may say, and ``run`` to say it.

One file works both ways: started for each event, or kept warm (``HOOKLINE_WORKER=1``)
and asked one event after the other. In both, only the hook's return value is the
answer: whatever else is printed, by child processes too, goes to standard error.

Promises: standard library only, nothing of ours, and as little of either as can be,
since a cold hook pays for every import at every event.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeAlias

    Hook: TypeAlias = Callable[[dict[str, Any]], Any]

_STRICTNESS = {"ask": 1, "block": 2, "deny": 2}
_MAX_PRINTED = 1 << 20
_MAX_DIGITS = 4000
_INTERRUPTED = 130
_JOINED = ("systemMessage", "additionalContext")


class Output(dict[str, object]):
    """What a hook says, in the spelling of the wire; ``|`` says two things at once.

    The stricter decision is kept with its reason, texts for people and the model are
    joined, and ``hookSpecificOutput`` is merged key by key.
    """

    def __or__(self, other: Mapping[str, object]) -> Output:  # type: ignore[override]
        # dict's own operator is overloaded for other value types; here they are fixed.
        if not isinstance(other, dict):
            return NotImplemented
        return Output(_without_softening(self, _merged(self, other)))

    def __ior__(self, other: Mapping[str, object]) -> Output:  # type: ignore[override]
        # As above.
        return self | other


def allow(reason: str | None = None) -> Output:
    """Let it pass, explicitly; returning None does the same."""
    return Output(decision="allow") if reason is None else _decide("allow", reason)


def block(reason: str) -> Output:
    """Keep it from happening; the reason is shown to the model."""
    return _decide("block", reason)


def ask(reason: str) -> Output:
    """Let a person decide."""
    return _decide("ask", reason)


def stop(reason: str) -> Output:
    """Stop the agent."""
    return Output({"continue": False, "stopReason": str(reason)})


def system_message(text: str) -> Output:
    """Tell the model something, outside of the conversation."""
    return Output(systemMessage=str(text))


def suppress_output() -> Output:
    """Keep what happened from being displayed."""
    return Output(suppressOutput=True)


def add_context(text: str) -> Output:
    """Give the model further text to work with."""
    return _specific(additionalContext=str(text))


def clear_context() -> Output:
    """Let the agent start over with an empty history (AfterAgent)."""
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
    """Answer in the model's place: the model is not called (BeforeModel)."""
    return block("answered by a hook") | _specific(llm_response=_response(text))


def restrict_tools(names: Iterable[str], mode: str | None = None) -> Output:
    """Leave the model only these tools, or none at all (BeforeToolSelection).

    The mode is ``AUTO`` (the model may call one), ``ANY`` (it must) or ``NONE``.
    """
    allowed = [names] if isinstance(names, str) else list(names)
    mode = mode or ("AUTO" if allowed else "NONE")
    return _specific(toolConfig={"mode": mode, "allowedFunctionNames": allowed})


def run(hook: Hook) -> None:
    """Hand the hook its event, or one event after the other, and send its answers.

    The hook takes the event as a dict and returns None, a value of this module, or a
    dict in the spelling of the wire. It may be ``async``. An exception is a failed
    hook (exit code 1, the traceback on standard error).
    """
    # Not for the hook's own children: they are asked once, on their own stdin.
    if os.environ.pop("HOOKLINE_WORKER", "") == "1":
        _Worker(hook).serve()
        return
    _open_closed_streams()
    answer = os.dup(1)
    os.dup2(2, 1)
    try:
        said = _answer(hook, _read_event())
    finally:
        _flush()
    if said:
        _write(answer, said)


def _answer(hook: Hook, event: dict[str, Any]) -> str:
    """Call a hook and write down what it says as JSON, or as nothing."""
    said = hook(event)
    if hasattr(said, "__await__"):
        said = _awaited(said)
    if said is None:
        return ""
    name = getattr(hook, "__qualname__", None) or repr(hook)
    if not isinstance(said, dict):
        hint = " (call it: add parentheses)" if callable(said) else ""
        raise TypeError(
            f"{name}() returned {_shown(said)}{hint}: return None, a value of "
            "hookline.script such as block('why'), or a dict"
        )
    import json

    try:
        return json.dumps(said, allow_nan=False, default=str)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            f"{name}() returned what JSON cannot hold: {error}: {_shown(said)}"
        ) from None


def _decide(decision: str, reason: object) -> Output:
    # A reason of another type must not turn a block into a crash, which lets pass.
    return Output(decision=decision, reason=str(reason))


def _specific(**fields: object) -> Output:
    return Output(hookSpecificOutput=fields)


def _response(text: str) -> dict[str, object]:
    content = {"role": "model", "parts": [str(text)]}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return {"text": str(text), "candidates": [candidate]}


def _merged(
    left: Mapping[str, object], right: Mapping[str, object]
) -> dict[str, object]:
    merged = {**left, **right}
    for key in left.keys() & right.keys():
        old, new = left[key], right[key]
        if isinstance(old, dict) and isinstance(new, dict):
            merged[key] = _merged(old, new)
        elif key in _JOINED:
            merged[key] = f"{old}\n{new}"
    return merged


def _without_softening(
    left: Mapping[str, object], merged: dict[str, object]
) -> dict[str, object]:
    said, now = left.get("decision"), merged.get("decision")
    if _STRICTNESS.get(str(said), 0) > _STRICTNESS.get(str(now), 0):
        merged |= {key: left[key] for key in ("decision", "reason") if key in left}
    if left.get("continue") is False:
        merged |= {key: left[key] for key in ("continue", "stopReason") if key in left}
    return merged


def _read_event() -> dict[str, Any]:
    if sys.stdin is None:
        raise SystemExit("no event: standard input is closed")
    if sys.stdin.isatty():
        _say(
            "waiting for an event as JSON on standard input; 'hookline fire' sends one"
        )
    try:
        event = _parsed(sys.stdin.buffer.read())
    except ValueError as error:
        raise SystemExit(f"no event: standard input is no JSON: {error}") from None
    if not isinstance(event, dict):
        raise SystemExit(f"no event: expected a JSON object, got {_shown(event)}")
    return event


def _parsed(text: bytes) -> Any:
    import json

    try:
        return json.loads(text)
    except ValueError:  # also for a number with more digits than int() takes at once
        return json.loads(text, parse_int=_whole_number)


def _whole_number(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MAX_DIGITS else digits


def _awaited(said: Any) -> Any:
    import asyncio

    async def wait() -> Any:
        return await said

    return asyncio.run(wait())


class _Worker:
    """A hook kept warm: a frame in, a frame out, each event as if it were the first."""

    def __init__(self, hook: Hook) -> None:
        _open_closed_streams()
        self._hook = hook
        self._requests = os.fdopen(os.dup(0), "rb", 1 << 16)
        self._answers = os.dup(1)
        self._printed = _Printed()
        self._home = os.open(".", os.O_RDONLY)
        self._own_env = dict(os.environ)
        self._env: dict[str, str] = {}
        # Comparing the raw mapping takes a microsecond, decoding it fifty.
        self._live: dict[bytes, bytes] = vars(os.environ)["_data"]
        self._entered = dict(self._live)
        # A child of the hook must not eat the frames that come after this one.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    def serve(self) -> None:
        """Answer until the input ends."""
        import json

        for line in self._requests:
            frame = _parsed(line)
            self._enter(frame.get("env") or {})
            code, said = self._call(frame["input"])
            _flush()
            answer = {"id": frame["id"], "exit_code": code, "stdout": said}
            answer["stderr"] = self._printed.take()
            try:
                _write(self._answers, json.dumps(answer) + "\n")
            except BrokenPipeError:  # nobody is there to hear it
                return
            if code == _INTERRUPTED:
                return

    def _enter(self, env: dict[str, str]) -> None:
        """Undo what the last event's hook did to the process, and set its own."""
        os.fchdir(self._home)
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
            sys.excepthook(type(error), error, trace and trace.tb_next)
            return 1, ""


class _Printed:
    """What reaches standard output and error during one event, up to a limit.

    A pipe that nobody reads stops its writer when it is full, and a file has no
    limit: so a thread reads along. It sleeps as long as nothing is printed.
    """

    def __init__(self) -> None:
        import _thread

        self._source, sink = os.pipe()
        os.set_blocking(self._source, False)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        os.close(sink)
        self._kept = bytearray()
        self._lock = _thread.allocate_lock()
        _thread.start_new_thread(self._read_along, ())

    def take(self) -> str:
        """All that was printed since the last time."""
        self._drain()
        with self._lock:
            text, self._kept = self._kept, bytearray()
        return text.decode("utf-8", "replace")

    def _read_along(self) -> None:
        from select import select

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
    _say(str(code))
    return 1


def _open_closed_streams() -> None:
    """Let no descriptor that is opened from here on pass for a standard stream."""
    while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(spare)


def _write(descriptor: int, text: str) -> None:
    data = text.encode()
    while data:  # a pipe may take less at once
        data = data[os.write(descriptor, data) :]


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):  # None, gone, or closed
            continue


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."
