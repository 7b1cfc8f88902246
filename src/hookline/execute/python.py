"""Python hooks: functions that are called in this process.

The hooks of a project find its modules, see ``project_modules``. An installed module
that one of them names is pinned too, and imported from the very bytes that were
approved: Python would prefer a cached ``.pyc`` beside it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Coroutine, Iterable, Mapping
from importlib import import_module
from inspect import isawaitable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hookline.errors import EncodingError, nearest
from hookline.plan import (
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

if sys.version_info < (3, 12):
    from .eager import start_eagerly

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from .project_modules import ProjectModules


def import_pinned(name: str, approval: Approval) -> ModuleType:
    """Import a module and the packages around it; raises ``ImportError``."""
    parent: ModuleType | None = None
    at = ""
    for step in name.split("."):
        at = f"{at}.{step}" if at else step
        parent = sys.modules.get(at) or _load(at, step, parent, approval)
    assert parent is not None  # a name has at least one step
    return parent


def _load(
    name: str, step: str, parent: ModuleType | None, approval: Approval
) -> ModuleType:
    from importlib.util import module_from_spec

    spec = _spec(name, parent)
    module = module_from_spec(spec)
    source = _trusted_source(spec, approval)
    sys.modules[name] = module
    try:
        if source is not None and spec.origin and not spec.origin.endswith(".py"):
            assert spec.loader is not None  # it has a file
            spec.loader.exec_module(module)
        elif source is not None:
            code = compile(source, spec.origin or name, "exec", dont_inherit=True)
            exec(code, module.__dict__)  # noqa: S102 - what an import does
    except BaseException:
        del sys.modules[name]
        raise
    if parent is not None:
        setattr(parent, step, module)
    return module


def _spec(name: str, parent: ModuleType | None) -> ModuleSpec:
    from importlib.machinery import PathFinder
    from importlib.util import find_spec

    if parent is None:
        spec = find_spec(name)
    else:
        spec = PathFinder.find_spec(name, getattr(parent, "__path__", None))
    if spec is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return spec


def _trusted_source(spec: ModuleSpec, approval: Approval) -> bytes | None:
    if spec.origin is None or not spec.has_location:
        return None  # a package without a file of its own
    import hashlib  # only for hooks of trusted projects

    with open(spec.origin, "rb") as file:  # noqa: PTH123
        source = file.read()
    if hashlib.sha256(source).hexdigest() != approval.digest_of(spec.origin):
        problem = f"{spec.origin} changed since it was approved"
        raise UnapprovedModuleError(f"{problem}: run 'hookline trust'")
    return source


_CANCEL_GRACE_S = 5.0

_Key = tuple[str | None, str | None, Approval | None]
"""A function, the project that it belongs to, and what was approved."""


def _key(hook: RegisteredHook) -> _Key:
    return hook.config.function, hook.project, hook.approval


class PythonExecutor:
    """Calls functions registered in code or named in settings."""

    def __init__(self) -> None:
        self._found: dict[_Key, HookFunction] = {}
        self._modules: dict[str, ProjectModules] = {}

    async def run(self, hook: RegisteredHook, call: HookCall) -> RunEnd:
        """Call the function once."""
        started = time.perf_counter()
        try:
            function = hook.function or self._find(hook)
        except KeyboardInterrupt:
            raise
        # Importing a hook's module runs the author's code, which may call exit().
        except BaseException as error:  # noqa: BLE001
            return _not_loaded(hook, error)
        return await _call(function, hook, call, started)

    def retain(self, hooks: Iterable[RegisteredHook]) -> None:
        """Forget the functions of all other hooks."""
        kept = set(map(_key, hooks))
        for key in [one for one in self._found if one not in kept]:
            self._found.pop(key, None)

    async def close(self) -> None:
        """Forget the functions; installed modules stay loaded."""
        self._found.clear()
        for project in tuple(self._modules):
            self._forget(project)

    def _find(self, hook: RegisteredHook) -> HookFunction:
        key = _key(hook)
        if key not in self._found:
            module, _, name = (hook.config.function or "").partition(":")
            self._found[key] = _function(self._import(module, hook), name)
            if hook.approval is not None:
                hook.approval.when_changed(lambda: self._forget(hook.project, key))
        return self._found[key]

    def _import(self, name: str, hook: RegisteredHook) -> ModuleType:
        if hook.project is not None:
            # Most hosts have no such hook.
            from .project_modules import ProjectModules

            if hook.project not in self._modules:
                self._modules[hook.project] = ProjectModules(hook.project)
            own = self._modules[hook.project].load(name, hook.approval)
            if own is not None:
                return own
        if hook.approval is not None:
            import_pinned(name, hook.approval)
        return import_module(name)

    def _forget(self, project: str | None, key: _Key | None = None) -> None:
        """Load it again when it is used next: its files are others."""
        if key is not None:
            self._found.pop(key, None)
        modules = self._modules.pop(project or "", None)
        if modules is not None:
            modules.close()


def _function(module: ModuleType, name: str) -> HookFunction:
    found = getattr(module, name, None)
    if callable(found):
        return found  # type: ignore[no-any-return]  # the author's
    where = getattr(module, "__file__", None) or module.__name__
    if found is not None:
        raise TypeError(f"{name!r} in {where} is not callable")
    public = (one for one, value in vars(module).items() if callable(value))
    near = nearest(name, public)
    hint = f": did you mean {near!r}?" if near else ""
    raise AttributeError(f"{where} has no function {name!r}{hint}")


async def _call(
    function: HookFunction, hook: RegisteredHook, call: HookCall, started: float
) -> RunEnd:
    event = call.plain_input()  # a guard that cannot be shown it is no mere crash
    outside = depth_inside.set(call.depth + 1)
    waits = False
    try:
        answer = function(event)
        if answer is not None and type(answer) is not dict and isawaitable(answer):
            running = _TimedCall(answer)
            if not running.is_over:
                waits = True
                await running.wait(_seconds_left(hook, started))
                waits = False
            answer = running.result()
    except _HookTimeout:
        return RunEnd(cause=FailureCause.TIMEOUT)
    except SystemExit as error:
        return _exit_end(error)
    # The hook is the author's code and may raise anything: a result, no exception.
    except BaseException as error:
        # Ctrl-C, and what ends the caller while it waits, are not the hook's.
        if waits or isinstance(error, KeyboardInterrupt):
            raise
        return _crashed(error)
    finally:
        depth_inside.reset(outside)
    return _read_answer(answer)


class _HookTimeout(TimeoutError):  # noqa: N818 - never leaves this module
    """The hook timed out, unlike a TimeoutError that it raises itself."""


class _TimedCall:
    """An async hook in a task of its own, cancelled at its timeout.

    One that does not wait has ended after its first step, without a turn of the event
    loop. One that swallows the cancellation has timed out all the same; one that goes
    on for longer than a grace period is left behind.
    """

    _answer: Any = None
    _error: BaseException | None = None
    _ended = False
    _expired = False
    _outcome: asyncio.Future[None] | None = None
    """Done when there is no more to wait for."""
    _timer: asyncio.TimerHandle

    def __init__(self, answer: Awaitable[Any]) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._task = task = _start(self._report(answer), loop)
        self.is_over = task is None or task.done()
        """Whether there is nothing to wait for."""

    async def wait(self, deadline_s: float) -> None:
        """Wait for its end, or until so many seconds have passed."""
        assert self._task is not None  # else it is over
        if self._ended:
            await asyncio.sleep(0)  # all that is left is for its task to end
            return
        self._outcome = self._loop.create_future()
        self._timer = self._loop.call_later(deadline_s, self._expire)
        try:
            await self._outcome
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        finally:
            self._timer.cancel()

    def result(self) -> Any:
        """What the hook returned or raises; raises ``_HookTimeout``."""
        if self._expired:
            raise _HookTimeout
        if self._error is None:
            return self._answer
        try:
            raise self._error
        finally:
            self._error = None  # no cycle with its traceback

    def _expire(self) -> None:
        if not self._ended:
            self._expired = True
            self._timer = self._loop.call_later(_CANCEL_GRACE_S, self._stop_waiting)
            assert self._task is not None  # else nothing expires
            self._task.cancel()

    def _stop_waiting(self) -> None:
        if self._outcome is not None and not self._outcome.done():
            self._outcome.set_result(None)

    async def _report(self, answer: Awaitable[Any]) -> None:
        try:
            self._answer = await answer
        except asyncio.CancelledError:
            if self._outcome is not None and self._outcome.cancelled():
                raise  # the caller is gone
            self._error = RuntimeError("the hook cancelled itself")
        # What the hook raises is for the caller to read, SystemExit too.
        except BaseException as raised:  # noqa: BLE001
            self._error = raised
        self._ended = True
        self._stop_waiting()


def _start(
    work: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop
) -> asyncio.Task[None] | None:
    """Start a hook; None if it has ended and needs no task."""
    if loop.get_task_factory() is not None:
        return loop.create_task(work)
    # A hook that does not wait needs no turn of the event loop.
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, eager_start=True)
    if loop.get_debug():
        # Another thread that looks at a task builds it, which debug mode refuses.
        return loop.create_task(work)
    return start_eagerly(work, loop)


_SUCH_AS = ', such as {"decision": "block", "reason": "..."}'


def _read_answer(answer: Any) -> RunEnd:
    if answer is None:
        return RunEnd(exit_code=0)
    problem = f"returned {type(answer).__name__}, expected None or a dict{_SUCH_AS}"
    if type(answer) is dict or isinstance(answer, Mapping):
        try:
            # Plain values as in JSON: an enum or another mapping must not be ignored.
            return RunEnd(exit_code=0, answer=as_plain(dict(answer)))
        except EncodingError as error:
            problem = f"returned what is not JSON: {error}"
    return RunEnd(exit_code=0, cause=FailureCause.OUTPUT, error=problem)


def _not_loaded(hook: RegisteredHook, error: BaseException) -> RunEnd:
    from .tracebacks import author_traceback, one_line, without_prefix

    problem = f"could not load {hook.config.function!r}: {shortened(one_line(error))}"
    if isinstance(error, ModuleNotFoundError) and not error.__cause__:
        problem += _where_to_put(hook, without_prefix(error.name or ""))
    cause, stderr = _cause(error, FailureCause.SPAWN), author_traceback(error)
    return RunEnd(cause=cause, error=problem, stderr=shortened(stderr))


def _cause(error: BaseException, other: FailureCause) -> FailureCause:
    # An unapproved file must not take a guard out of the way.
    changed = isinstance(error, UnapprovedModuleError)
    return FailureCause.CHANGED if changed else other


def _where_to_put(hook: RegisteredHook, missing: str) -> str:
    """What to do where the module of the hook itself is missing."""
    module = (hook.config.function or "").partition(":")[0]
    if not missing or not f"{module}.".startswith(f"{missing}."):
        return ""
    if hook.project is None:
        return f": install it for {sys.executable}"
    if module.endswith(".py"):
        return ": name the module without .py"
    return f": put it into .hookline, or install it for {sys.executable}"


def _crashed(error: BaseException) -> RunEnd:
    from .tracebacks import author_traceback, one_line

    cause, stderr = _cause(error, FailureCause.CRASH), author_traceback(error)
    problem = f"raised {shortened(one_line(error))}"
    return RunEnd(cause=cause, error=problem, stderr=shortened(stderr))


def _exit_end(error: SystemExit) -> RunEnd:
    code = 0 if error.code is None else error.code
    if isinstance(code, int):
        return RunEnd(exit_code=code & 0xFF)  # as the system does
    return RunEnd(exit_code=1, stderr=str(code))


def _seconds_left(hook: RegisteredHook, started: float) -> float:
    return started + hook.config.timeout_ms / 1000 - time.perf_counter()
