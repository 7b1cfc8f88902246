"""Python hooks: functions that are called in this process.

The hooks of a project find its modules, and run them as they were approved: see
``project_modules``. A traceback starts at the author's own file: the frames that lead
there, of Hookline, asyncio and importlib, are only shown where the log is at debug
level.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import re
import sys
import time
from collections.abc import Awaitable, Iterable, Mapping
from inspect import isawaitable
from itertools import count, dropwhile
from traceback import StackSummary, TracebackException
from typing import TYPE_CHECKING, Any

from hookline.errors import EncodingError, nearest
from hookline.plan import (
    SILENT,
    Executor,
    HookCall,
    HookFunction,
    RegisteredHook,
    RunEnd,
    UnapprovedModuleError,
    depth_inside,
)
from hookline.protocol.results import FailureCause
from hookline.protocol.values import as_plain
from hookline.settings.model import Approval

from .answer import shortened

if TYPE_CHECKING:
    from .project_modules import ProjectModules

_CANCEL_GRACE_S = 5.0
_HERE = os.path.dirname(__file__)  # noqa: PTH120
_PROJECT = "_hookline_project_"
"""How the names of projects in ``sys.modules`` start; a number follows."""
_numbers = count(1)
_IMPORTING = (
    "<frozen importlib",
    os.path.dirname(importlib.__file__),  # noqa: PTH120
    os.path.join(_HERE, "project_modules.py"),  # noqa: PTH118
)
_LEADING = (
    *_IMPORTING,
    os.path.dirname(_HERE),  # noqa: PTH120
    os.path.dirname(asyncio.__file__),  # noqa: PTH120
)

_Key = tuple[str | None, str | None, Approval | None]
"""A function, the project that it belongs to, and what was approved."""


def _key(hook: RegisteredHook) -> _Key:
    return hook.config.function, hook.project, hook.approval


class PythonExecutor(Executor):
    """Calls functions registered in code or named in settings."""

    def __init__(self) -> None:
        self._functions: dict[_Key, HookFunction] = {}
        self._modules: dict[str | None, ProjectModules] = {}

    async def run(self, hook: RegisteredHook, call: HookCall) -> RunEnd:
        """Call the function once."""
        deadline = time.perf_counter() + hook.config.timeout_ms / 1000
        event = call.plain_input()  # a guard that cannot be shown it is no mere crash
        depth_outside = depth_inside.set(call.depth + 1)
        outcome, function = _Outcome(), hook.function
        try:
            try:
                function = function or self._load(hook)
                answer = outcome.answer = function(event)
            # The author's code, also as it is imported: it may raise anything, or exit.
            except BaseException as error:  # noqa: BLE001
                return _error_end(error, None if function else hook)
            if answer is not None and type(answer) is not dict and isawaitable(answer):
                if not await outcome.wait_for(answer, deadline):
                    return RunEnd(cause=FailureCause.TIMEOUT)
                if outcome.error is not None:
                    return _error_end(outcome.error, None)
        finally:
            depth_inside.reset(depth_outside)
        if outcome.answer is None:
            return SILENT
        kind = type(outcome.answer).__name__
        such_as = 'such as {"decision": "block", "reason": "..."}'
        problem = f"returned {kind}, expected None or a dict, {such_as}"
        if isinstance(outcome.answer, Mapping):
            try:
                # As in JSON: an enum or another mapping must not be ignored.
                return RunEnd(exit_code=0, answer=as_plain(dict(outcome.answer)))
            except EncodingError as error:
                problem = f"returned what is not JSON: {error}"
        return RunEnd(exit_code=0, cause=FailureCause.OUTPUT, error=problem)

    def retain(self, hooks: Iterable[RegisteredHook]) -> None:
        """Forget the functions of all other hooks."""
        keys = set(map(_key, hooks))
        for key in [key for key in self._functions if key not in keys]:
            self._functions.pop(key, None)

    async def close(self) -> None:
        """Forget the functions; installed modules stay loaded."""
        self._functions.clear()
        while self._modules:
            self._modules.popitem()[1].close()

    def _load(self, hook: RegisteredHook) -> HookFunction:
        key = _key(hook)
        if key in self._functions:
            return self._functions[key]
        module_name, _, name = (hook.config.function or "").partition(":")
        if hook.project is None:
            module = importlib.import_module(module_name)
        else:
            # Most hosts have no such hook.
            from .project_modules import ProjectModules

            if hook.project not in self._modules:
                namespace = f"{_PROJECT}{next(_numbers)}"
                self._modules[hook.project] = ProjectModules(hook.project, namespace)
            module = self._modules[hook.project].load(module_name, hook.approval)
        function: HookFunction | None = getattr(module, name, None)
        file = getattr(module, "__file__", None) or module_name
        if function is None:
            names = (name for name, value in vars(module).items() if callable(value))
            near = nearest(name, names)
            hint = f": did you mean {near!r}?" if near else ""
            raise AttributeError(f"{file} has no function {name!r}{hint}")
        if not callable(function):
            raise TypeError(f"{name!r} in {file} is not callable")
        self._functions[key] = function
        if hook.approval is not None:
            hook.approval.when_changed(lambda: self._forget(key))
        return function

    def _forget(self, key: _Key) -> None:
        """Load it again when it is used next: its files are others."""
        self._functions.pop(key, None)
        if modules := self._modules.pop(key[1], None):
            modules.close()


class _Outcome:
    """What a function returned or raised."""

    answer: Any = None
    error: BaseException | None = None
    _is_over = False

    async def wait_for(self, awaitable: Awaitable[Any], deadline: float) -> bool:
        """Await an async hook in a task of its own; whether it ended in time.

        At its deadline it is cancelled. One that swallows that has timed out all the
        same; one that goes on for longer than a grace period is left behind.
        """
        task = asyncio.create_task(self._collect(awaitable))
        try:
            # Most hooks wait for nothing and end with their first step.
            await asyncio.sleep(0)
            if not self._is_over:
                seconds = max(0.0, deadline - time.perf_counter())
                await asyncio.wait((task,), timeout=seconds)
            if self._is_over:
                return True
            task.cancel()
            await asyncio.wait((task,), timeout=_CANCEL_GRACE_S)
        except asyncio.CancelledError:
            task.cancel()
            raise
        return False

    async def _collect(self, awaitable: Awaitable[Any]) -> None:
        # Not as the result of the task: SystemExit would end the event loop, and of a
        # hook that cancels itself and returns all the same there would be none.
        try:
            self.answer = await awaitable
        except asyncio.CancelledError:
            self.error = RuntimeError("the hook cancelled itself")
        except BaseException as error:  # noqa: BLE001
            self.error = error
        self._is_over = True


def _error_end(error: BaseException, not_loaded: RegisteredHook | None) -> RunEnd:
    """What an exception means, of a function or of loading one."""
    if isinstance(error, KeyboardInterrupt):
        raise error
    if isinstance(error, SystemExit) and not_loaded is None:
        code = 0 if error.code is None else error.code
        if isinstance(code, int):
            return RunEnd(exit_code=code & 0xFF)  # as the system does
        return RunEnd(exit_code=1, stderr=str(code))
    cause, problem = FailureCause.CRASH, f"raised {_one_line(error)}"
    if not_loaded is not None:
        function = not_loaded.config.function or ""
        cause = FailureCause.SPAWN
        problem = f"could not load {function!r}: {_one_line(error)}"
        if isinstance(error, ModuleNotFoundError) and not error.__cause__:
            module = function.partition(":")[0]
            missing = _without_prefix(error.name or "")
            # The module of the hook itself, and not one that this imports.
            if missing and f"{module}.".startswith(f"{missing}."):
                hint = f"install it for {sys.executable}"
                if module.endswith(".py"):
                    hint = "name the module without .py"
                elif not_loaded.project is not None:
                    hint = f"put it into .hookline, or {hint}"
                problem += f": {hint}"
    if isinstance(error, UnapprovedModuleError):
        # An unapproved file must not take a guard out of the way.
        cause = FailureCause.CHANGED
    return RunEnd(cause=cause, error=problem, stderr=shortened(_traceback(error)))


def _traceback(error: BaseException) -> str:
    """Format an exception and those behind it; empty if no code of the author ran."""
    trace = TracebackException.from_exception(error)
    if not logging.getLogger("hookline.hooks").isEnabledFor(logging.DEBUG):
        chain = [trace]
        for part in chain:  # grows meanwhile
            frames = dropwhile(lambda f: f.filename.startswith(_LEADING), part.stack)
            part.stack = StackSummary.from_list(
                [frame for frame in frames if not frame.filename.startswith(_IMPORTING)]
            )
            behind = (part.__cause__, part.__context__, *(part.exceptions or ()))
            chain += filter(None, behind)
        if not any(part.stack for part in chain):
            is_syntax = isinstance(error, SyntaxError)
            lines = trace.format_exception_only() if is_syntax else ()
            return _without_prefix("".join(lines))
    return _without_prefix("".join(trace.format()))


def _one_line(error: BaseException) -> str:
    """An exception in one line, with the place of a syntax error."""
    if isinstance(error, UnapprovedModuleError):
        return shortened(str(error))
    trace = TracebackException.from_exception(error)
    trace.__notes__ = None  # they would come last
    *_, text = trace.format_exception_only()
    text = _without_prefix(text).strip()
    if isinstance(error, SyntaxError) and error.filename is not None:
        text = f"{text} ({error.filename}, line {error.lineno})"
    return shortened(text)


def _without_prefix(text: str) -> str:
    """The names of a project's modules as their author knows them."""
    return re.sub(rf"{_PROJECT}\d+\.", "", text)
