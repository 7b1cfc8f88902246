"""Command hooks on standby: processes started ahead, each for one event.

A process waits on stdin with everything done that its script does before it reads. It
is used only by an event that would start the very same process now: the same words,
environment, folder and files, for the same session. Everything else runs cold. One
that is not needed is killed before its stdin is closed: no script ever takes the end of
its input for an event.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections.abc import Iterable
from contextlib import suppress
from subprocess import SubprocessError

from msgspec import structs

from hookline._internal.log import logger
from hookline.execute.child import Child, ProcessSpec, run_process
from hookline.execute.watchdog import fork_lock
from hookline.plan import Executor, HookCall, RegisteredHook, RunEnd
from hookline.protocol.results import FailureCause
from hookline.protocol.values import encode
from hookline.settings.model import Stamp
from hookline.trust.pins import times_of

from .command import command_spec, trace_environment
from .runtime import Runtimes
from .worker import HookFiles

_GONE_S = 1.0


class StandbyExecutor(Executor):
    """Runs commands as ``CommandExecutor`` does, from standby where there is one.

    Those that wait count as processes, but make way for every event that needs a slot.
    """

    def __init__(self, runtimes: Runtimes) -> None:
        self._runtimes = runtimes
        self._pools: dict[int, _Pool] = {}
        self._kept: frozenset[int] | None = None
        """The hooks that processes are started for; None for all."""
        self._waiting: list[_Waiting] = []
        self._host = os.getpid()
        # The last resort: at exit, or if a system is dropped without dispose().
        weakref.finalize(self, _abandon, self._waiting)

    async def run(self, hook: RegisteredHook, call: HookCall) -> RunEnd:
        """Give the event to a process on standby, or start one for it."""
        timeout_s = hook.config.timeout_ms / 1000
        spec = cold = command_spec(hook, call, timeout_s)
        trace = trace_environment(hook, call)
        if trace:  # those that wait were started before there was one
            spec = command_spec(hook, call, timeout_s, traced=False)
        # A re-check asks about another input, with a variable of its own.
        pool = None if call.recheck or not self._is_kept(hook) else self._pool(hook)
        if pool is None:
            async with self._runtimes.here().slots:
                self._make_room()
                return await run_process(cold)
        try:
            async with self._runtimes.here().slots:
                deadline = time.perf_counter() + spec.timeout_s
                spec = structs.replace(spec, stdin=_with_trace(spec.stdin, trace))
                end = await self._use_one(pool, call, spec)
                hit = end is not None
                if end is None:
                    self._make_room()
                    left_s = max(deadline - time.perf_counter(), 0)
                    end = await run_process(structs.replace(cold, timeout_s=left_s))
        finally:
            # Not earlier: a process that starts takes time from the one that answers.
            self._fill_soon(pool, call)
        return structs.replace(end, standby=hit)

    def start(self, hooks: Iterable[RegisteredHook], call: HookCall) -> None:
        """Start processes ahead of the first event, for the session of ``call``."""
        for hook in filter(has_standby, hooks):
            if hook.config.managed or call.depth < hook.options.max_depth:
                self._fill_soon(self._pool(hook), call)

    def retain(self, hooks: Iterable[RegisteredHook]) -> None:
        """Kill the processes of all other hooks."""
        kept = {hook.serial: hook for hook in hooks}
        self._kept = frozenset(kept)
        for serial, pool in list(self._pools.items()):
            if serial in kept:
                pool.keep_for(kept[serial])
            else:
                self._pools.pop(serial).discard_all()

    def _is_kept(self, hook: RegisteredHook) -> bool:
        is_kept = self._kept is None or hook.serial in self._kept
        return is_kept and has_standby(hook)

    async def close(self) -> None:
        """Kill what waits; if it is cancelled, calling it again finishes the work."""
        self._pools = {}
        self._disown_after_fork()
        loop = asyncio.get_running_loop()
        for one in tuple(self._waiting):
            if one.child.loop is loop:
                one.discard()
            else:
                one.abandon()
        for one in tuple(self._waiting):
            await one.child.group.wait_gone(_GONE_S)

    def _pool(self, hook: RegisteredHook) -> _Pool:
        self._disown_after_fork()
        pool = self._pools.get(hook.serial)
        if pool is None:
            # Another thread may have been faster.
            new = _Pool(hook, self._waiting)
            pool = self._pools.setdefault(hook.serial, new)
        return pool

    async def _use_one(
        self, pool: _Pool, call: HookCall, spec: ProcessSpec
    ) -> RunEnd | None:
        """The end of a process that got the event; None if there was none."""
        while (one := self._take(pool, call, spec)) is not None:
            started = time.perf_counter()
            if one.child.feed(spec.stdin, spec.on_start):
                end = await one.child.finish(started)
                if one.child.has_read or end.cause is FailureCause.TIMEOUT:
                    return end
                pool.give_up("ended without reading its event")
            else:
                pool.give_up("closed its stdin before it was given an event")
                await one.child.abort()
                one.child.close()
        return None

    def _take(self, pool: _Pool, call: HookCall, spec: ProcessSpec) -> _Waiting | None:
        """One that the event can have; those that no event can have any more go."""
        loop = asyncio.get_running_loop()
        wanted = structs.replace(spec, stdin=b"", on_start=None)
        for one in pool.waiting():
            if one.child.loop.is_closed():
                one.discard()
            elif one.child.loop is not loop or one.session != _session_of(call):
                continue
            elif one.spec != wanted or not one.is_current():
                one.discard()
            elif not one.child.group.has_ended() and one.take():
                return one
        return None

    def _make_room(self) -> None:
        """Throw away what waits beyond ``maxProcesses``, the oldest first."""
        waiting = _wanted(self._waiting)
        for one in waiting[: max(len(waiting) - self._runtimes.here().slots.free, 0)]:
            one.discard()

    def _fill_soon(self, pool: _Pool, call: HookCall) -> None:
        fields = {"cwd": call.cwd, "session_id": call.session_id}
        session = HookCall(pool.hook.event, fields, call.depth)
        asyncio.get_running_loop().call_soon(self._fill, pool, session)

    def _fill(self, pool: _Pool, call: HookCall) -> None:
        """Start what is missing, one process per turn of the event loop."""
        hook = pool.hook
        if self._pools.get(hook.serial) is not pool or pool.has_given_up:
            return
        with fork_lock:  # no other thread starts any meanwhile
            missing = hook.config.standby - len(pool.waiting())
            room = self._runtimes.here().slots.free - len(_wanted(self._waiting))
            started = min(missing, room) > 0 and pool.start(call)
        if started:
            asyncio.get_running_loop().call_soon(self._fill, pool, call)

    def _disown_after_fork(self) -> None:
        """In a fork of the host they are those of the host."""
        if self._host != os.getpid():
            self._host = os.getpid()
            self._pools = {}
            for one in tuple(self._waiting):
                one.abandon()  # signals nothing there


def _with_trace(event: bytes, trace: dict[str, str]) -> bytes:
    """An event with its trace context as one more field, if there is one."""
    if not trace:
        return event
    return b'%b,"hookline_trace":%b}' % (event[:-1], encode(trace))


def has_standby(hook: RegisteredHook) -> bool:
    """Whether processes of it are started ahead."""
    return hook.config.standby > 0 and not hook.config.is_async


Session = tuple[str, str, int]


def _session_of(call: HookCall) -> Session:
    return (call.session_id, call.cwd, call.depth)


class _Pool:
    """The processes of one hook, in all sessions."""

    def __init__(self, hook: RegisteredHook, everywhere: list[_Waiting]) -> None:
        self.has_given_up = False
        self._everywhere = everywhere
        self._has_warned = False
        self._belong_to(hook)

    def keep_for(self, hook: RegisteredHook) -> None:
        """Go on with the same hook as it was registered again."""
        if hook is not self.hook:
            if self.hook.approval is not None or hook.approval is not None:
                self.discard_all()  # they were started with another approval
            self._belong_to(hook)

    def _belong_to(self, hook: RegisteredHook) -> None:
        self.hook = hook
        self._files: dict[str, HookFiles] = {}
        if hook.approval is not None:
            hook.approval.when_changed(self.discard_all)

    def waiting(self) -> list[_Waiting]:
        """Those that wait, the oldest first."""
        return [one for one in _wanted(self._everywhere) if one.pool is self]

    def start(self, call: HookCall) -> bool:
        """Start one for the session of an event, if its files may run."""
        hook, approval = self.hook, self.hook.approval
        files = self._files_in(hook.project or call.cwd)
        # Before it reads its files: no change after that is missed.
        changed, stamp = (None, files.stamp()) if approval is None else approval.check()
        if changed is not None:
            return False
        try:
            spec = command_spec(hook, call, hook.config.timeout_ms / 1000)
            _Waiting(self, call, structs.replace(spec, stdin=b""), (files, stamp))
        except (OSError, ValueError, SubprocessError) as error:
            self._warn_once(f"could not be started ahead of its event: {error}")
            return False
        return True

    def add(self, one: _Waiting) -> None:
        """It waits from now on."""
        self._everywhere.append(one)

    def remove(self, one: _Waiting) -> None:
        """It waits no more."""
        with suppress(ValueError):  # another thread was faster
            self._everywhere.remove(one)

    def give_up(self, what: str) -> None:
        """Start no more of them: this one was not there for its event."""
        self.has_given_up = True
        self._warn_once(
            f"{what}, and is no longer started ahead: "
            '"standby" needs a script that waits for its input on stdin'
        )

    def _warn_once(self, text: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning("hook %r %s", self.hook.name, text)

    def _files_in(self, cwd: str) -> HookFiles:
        if cwd not in self._files:
            self._files[cwd] = HookFiles(self.hook, cwd)
        return self._files[cwd]

    def discard_all(self) -> None:
        """Kill those that wait, from any thread."""
        for one in self.waiting():
            one.discard()


class _Waiting:
    """A process that waits for its event.

    Threads share them: each goes to one event, or to one thread that kills it.
    """

    def __init__(
        self,
        pool: _Pool,
        call: HookCall,
        spec: ProcessSpec,
        files: tuple[HookFiles, Stamp],
    ) -> None:
        self.pool = pool
        self.spec = spec
        self.session = _session_of(call)
        self.is_unwanted = False
        self._taken = threading.Lock()
        self._files, self._stamp = files
        self._place = _place(spec)
        self.child = Child(spec, self._ended_unused)
        idle_s = pool.hook.options.worker_idle_ms / 1000
        self._idle_timer = self.child.loop.call_later(idle_s, self.discard)
        pool.add(self)

    def is_current(self) -> bool:
        """Whether its files and its folder are those that it was started with."""
        in_place = self._place == _place(self.spec)
        return in_place and self._files.unchanged_since(self._stamp)

    def take(self) -> bool:
        """Whether the caller is the one to have it; it waits no more."""
        taken = self._taken.acquire(blocking=False)
        if taken:
            self._forget()
        return taken

    def discard(self) -> None:
        """Kill it, from any thread; its own event loop closes its pipes after that."""
        if self._is_to_be_killed():
            if self.child.loop.is_closed():
                self.abandon()
            else:
                self.child.group.kill()

    def abandon(self) -> None:
        """Kill and reap it at once, without its event loop."""
        if self._is_to_be_killed():
            self._forget()
            self.child.abandon()

    def _is_to_be_killed(self) -> bool:
        """Whether no event has it, nor will have."""
        if self._taken.acquire(blocking=False):
            self.is_unwanted = True
        return self.is_unwanted

    def _forget(self) -> None:
        self._idle_timer.cancel()
        self.pool.remove(self)

    def _ended_unused(self) -> None:
        self._forget()
        if self._taken.acquire(blocking=False):
            code = self.child.group.exit_code
            self.pool.give_up(
                f"ended (exit status {code}) before it was given an event"
            )


def _wanted(waiting: list[_Waiting]) -> list[_Waiting]:
    return [one for one in waiting if not one.is_unwanted]


def _place(spec: ProcessSpec) -> Stamp:
    """The folder that it runs in, and the program that is started."""
    program = spec.argv[0] if spec.direct is None else spec.direct.path
    try:
        folder = os.stat(spec.cwd)  # noqa: PTH116 - no Path on this path
    except OSError:
        return ()
    return (folder.st_dev, folder.st_ino, times_of(program))


def _abandon(waiting: list[_Waiting]) -> None:
    for one in tuple(waiting):
        one.abandon()
