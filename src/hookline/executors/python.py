"""Hooks that are functions in this process.

A hook gets a private copy of the event. An async one is cancelled at its timeout, and
left behind if it does not heed that; a plain one cannot be interrupted, and holds up
the event loop for as long as it runs.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Awaitable, Mapping
from importlib import import_module
from inspect import isawaitable
from typing import Any

from hookline.jsontext import decode
from hookline.limits import one_deeper
from hookline.registry import HookFunction, RegisteredHook
from hookline.results import FailureCause, HookExecutionResult

from .contract import HookCall
from .reading import RunEnd, blank_result, failed_result, read_end, with_output

_CANCEL_GRACE_S = 5.0


class PythonExecutor:
    """Calls functions: those registered in code, and those that settings name."""

    def __init__(self) -> None:
        self._found: dict[str, HookFunction] = {}

    async def run(self, hook: RegisteredHook, call: HookCall) -> HookExecutionResult:
        """Call the function once."""
        started = time.perf_counter()
        try:
            function = hook.function or self._find(hook)
        # Importing a hook's module runs the author's code.
        except Exception as error:  # noqa: BLE001
            return failed_result(
                hook,
                RunEnd(exit_code=None, duration=_ms_since(started)),
                FailureCause.SPAWN,
                f"could not load {hook.config.function!r}: {_one_line(error)}",
            )
        return await _call(function, hook, call, started)

    async def close(self) -> None:
        """Forget the functions; their modules stay loaded."""
        self._found.clear()

    def _find(self, hook: RegisteredHook) -> HookFunction:
        path = hook.config.function or ""
        if path not in self._found:
            module, _, name = path.partition(":")
            if hook.seal is not None:
                from hookline.trust.loading import import_sealed

                import_sealed(module, hook.seal)
            found = getattr(import_module(module), name)
            if not callable(found):
                raise TypeError(f"{path!r} is no function")
            self._found[path] = found
        return self._found[path]


async def _call(
    function: HookFunction, hook: RegisteredHook, call: HookCall, started: float
) -> HookExecutionResult:
    try:
        with one_deeper(call.depth):
            answer = function(decode(call.payload))
            if isawaitable(answer):
                answer = await _within(answer, hook.config.timeout_ms / 1000)
    except TimeoutError as error:
        if not isinstance(error, _HookTimeout):
            return _crashed(hook, error, started)
        end = RunEnd(exit_code=None, duration=_ms_since(started))
        message = f"timed out after {hook.config.timeout_ms:g} ms"
        return failed_result(hook, end, FailureCause.TIMEOUT, message)
    except SystemExit as error:
        return read_end(hook, _exit_end(error, started))
    # The hook is the author's code: it may raise anything, and that is data.
    except Exception as error:  # noqa: BLE001
        return _crashed(hook, error, started)
    return _read_answer(hook, answer, started)


class _HookTimeout(TimeoutError):  # noqa: N818 - never leaves this module
    """The hook's own time is over, unlike a TimeoutError that it raises itself."""


async def _within(answer: Awaitable[Any], timeout_s: float) -> Any:
    loop = asyncio.get_running_loop()
    task = loop.create_task(_awaited(answer))
    waiter: asyncio.Future[None] = loop.create_future()
    task.add_done_callback(lambda _: _wake(waiter))
    timer = loop.call_later(timeout_s, task.cancel)
    last = loop.call_later(timeout_s + _CANCEL_GRACE_S, _wake, waiter)
    try:
        await waiter
    except asyncio.CancelledError:
        task.cancel()
        raise
    finally:
        expired = loop.time() >= timer.when()
        timer.cancel()
        last.cancel()
    if not task.done() or (expired and task.cancelled()):
        raise _HookTimeout
    if task.cancelled():
        raise RuntimeError("the hook cancelled itself")
    return task.result()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


async def _awaited(answer: Awaitable[Any]) -> Any:
    return await answer


def _read_answer(
    hook: RegisteredHook, answer: Any, started: float
) -> HookExecutionResult:
    end = RunEnd(exit_code=0, duration=_ms_since(started))
    if answer is None:
        return blank_result(hook, end, success=True)
    if isinstance(answer, Mapping):
        return with_output(blank_result(hook, end, success=True), dict(answer))
    problem = f"returned {type(answer).__name__}, expected None or a dict"
    return failed_result(hook, end, FailureCause.OUTPUT, problem)


def _crashed(
    hook: RegisteredHook, error: Exception, started: float
) -> HookExecutionResult:
    trace = "".join(traceback.format_exception(error))
    end = RunEnd(exit_code=None, stderr=trace, duration=_ms_since(started))
    message = f"raised {_one_line(error)}"
    return failed_result(hook, end, FailureCause.CRASH, message)


def _exit_end(error: SystemExit, started: float) -> RunEnd:
    code, text = error.code, ""
    if code is None:
        code = 0
    elif not isinstance(code, int):
        code, text = 1, str(code)
    return RunEnd(exit_code=code, stderr=text, duration=_ms_since(started))


def _one_line(error: BaseException) -> str:
    return traceback.format_exception_only(error)[-1].strip()


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
