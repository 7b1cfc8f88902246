"""Command hooks on standby: processes started ahead, each for one event.

A process waits on stdin with everything done that its script does before it reads. It
is used only by an event that would start the very same process now: the same words,
environment, folder and files, for the same session. Everything else runs cold. One
that is not needed is killed before its stdin is closed: no script takes the end of its
input for an event, unless the host itself is killed.
"""

from __future__ import annotations

import os
import time
from subprocess import SubprocessError

from msgspec import structs

from hookline._internal.log import logger
from hookline.execute.child import Child, ProcessSpec, run_process
from hookline.plan import HookCall, RegisteredHook, RunEnd
from hookline.protocol.results import FailureCause
from hookline.protocol.values import encode
from hookline.trust.pins import times_of

from .command import command_spec, trace_environment
from .runtime import Runtime, Slots
from .worker import KeepingExecutor, KeptProcess, Origin, ProcessPool

_GONE_S = 1.0


class StandbyProcess(KeptProcess):
    """A command that waits for its event."""

    def __init__(self, spec: ProcessSpec, pool: ProcessPool) -> None:
        self.spec = spec
        self._pool = pool
        self._place = self._current_place()
        self.child = Child(spec, self._ended_unused)

    @property
    def is_usable(self) -> bool:
        """Whether it waits, and its folder and program are as they were."""
        in_place = self._place == self._current_place()
        return in_place and not self.child.group.has_ended()

    async def end(self) -> None:
        """Kill it; its pipes are closed after that."""
        self.child.group.kill()
        await self.child.group.wait_gone(_GONE_S)

    def abandon(self) -> None:
        """Kill and reap it without the event loop."""
        self.child.abandon()

    def _ended_unused(self) -> None:
        if self._pool.remove(self):
            code = self.child.group.exit_code
            problem = f"ended (exit status {code}) before it was given an event"
            _give_up(self._pool, self.origin.hook, problem)

    def _current_place(self) -> object:
        spec = self.spec
        program = spec.argv[0] if spec.direct is None else spec.direct.path
        try:
            folder = os.stat(spec.cwd)  # noqa: PTH116 - no Path on this path
        except OSError:
            return None
        return (folder.st_dev, folder.st_ino, times_of(program))


class StandbyExecutor(KeepingExecutor):
    """Runs commands as ``CommandExecutor`` does, from standby where there is one.

    Those that wait count as processes, but make way for every event that needs a slot.
    """

    async def run(self, hook: RegisteredHook, call: HookCall) -> RunEnd:
        """Give the event to a process on standby, or start one for it."""
        runtime = self._runtimes.here()
        pool = runtime.part(ProcessPool)
        timeout_s = hook.config.timeout_ms / 1000
        cold = command_spec(hook, call, timeout_s)
        async with runtime.slots:
            call.check_start()
            # A re-check asks about another input, with a variable of its own.
            if call.recheck or not self.keeps(hook) or not has_standby(hook):
                _make_room(pool, runtime.slots.free)
                return await run_process(cold)
            deadline = time.perf_counter() + timeout_s
            try:
                end = await self._use_one(pool, hook, call, cold)
                is_hit = end is not None
                if end is None:
                    _make_room(pool, runtime.slots.free)
                    left_s = max(deadline - time.perf_counter(), 0)
                    end = await run_process(structs.replace(cold, timeout_s=left_s))
            finally:
                # Not earlier: a process that starts takes time from the one that
                # answers.
                self._fill_soon(runtime, pool, hook, call)
        return structs.replace(end, standby=is_hit)

    def start(self, hook: RegisteredHook, call: HookCall) -> None:
        """Start processes ahead of the first event, for the session of ``call``."""
        may_run = hook.config.managed or call.depth < hook.options.max_depth
        if has_standby(hook) and may_run:
            runtime = self._runtimes.here()
            self._fill_soon(runtime, runtime.part(ProcessPool), hook, call)

    async def _use_one(
        self, pool: ProcessPool, hook: RegisteredHook, call: HookCall, cold: ProcessSpec
    ) -> RunEnd | None:
        """The end of a process that got the event; None if there was none."""
        spec, event = cold, call.payload
        if trace := trace_environment(hook, call):
            # Those that wait were started before there was one.
            untraced = structs.replace(call, telemetry=None)
            spec = command_spec(hook, untraced, cold.timeout_s)
            event = b'%b,"hookline_trace":%b}' % (event[:-1], encode(trace))
        spec = structs.replace(spec, stdin=b"", on_start=None)
        while (process := pool.take(hook, _session_of(call))) is not None:
            assert isinstance(process, StandbyProcess)
            if process.spec != spec:
                pool.end(process)
                continue
            pool.remove(process)
            child, started = process.child, time.perf_counter()
            if child.feed(event, call.on_start):
                end = await child.finish(started)
                if child.has_read or end.cause is FailureCause.TIMEOUT:
                    return end
                _give_up(pool, hook, "ended without reading its event")
            else:
                _give_up(pool, hook, "closed its stdin before it was given an event")
                await child.abort()
                child.close()
        return None

    def _fill_soon(
        self, runtime: Runtime, pool: ProcessPool, hook: RegisteredHook, call: HookCall
    ) -> None:
        fields = {"cwd": call.cwd, "session_id": call.session_id}
        session = HookCall(hook.event, fields, call.depth)
        pool.loop.call_soon(self._fill, runtime.slots, pool, hook, session)

    def _fill(
        self, slots: Slots, pool: ProcessPool, hook: RegisteredHook, call: HookCall
    ) -> None:
        """Start what is missing, one process per turn of the event loop."""
        if pool.is_closed or not self.keeps(hook) or hook.serial in pool.given_up:
            return
        pools = self._runtimes.parts(ProcessPool)
        missing = hook.config.standby - sum(len(p.of_hook(hook.serial)) for p in pools)
        room = slots.free - len(_on_standby(pool))
        if min(missing, room) <= 0:
            return
        # Before it reads its files: no change after that is missed.
        origin = Origin(hook, call, _session_of(call))
        if origin.changed is not None:
            return
        try:
            spec = command_spec(hook, call, hook.config.timeout_ms / 1000)
            process = StandbyProcess(structs.replace(spec, stdin=b""), pool)
        except (OSError, ValueError, SubprocessError) as error:
            _give_up(pool, hook, f"could not be started ahead: {error}")
            return
        pool.add(process, origin)
        pool.wait(process)
        pool.loop.call_soon(self._fill, slots, pool, hook, call)


def _give_up(pool: ProcessPool, hook: RegisteredHook, problem: str) -> None:
    """Start no more processes of a hook: this one was not there for its event."""
    if hook.serial not in pool.given_up:
        pool.given_up.add(hook.serial)
        hint = '"standby" needs a script that waits for its input on stdin'
        message = "hook %r %s, and is no longer started ahead: %s"
        logger.warning(message, hook.name, problem, hint)


def has_standby(hook: RegisteredHook) -> bool:
    """Whether processes of it are started ahead."""
    return hook.config.standby > 0 and not hook.config.is_async


def _session_of(call: HookCall) -> tuple[str, str, int]:
    return (call.session_id, call.cwd, call.depth)


def _on_standby(pool: ProcessPool) -> list[StandbyProcess]:
    return [each for each in pool.waiting if isinstance(each, StandbyProcess)]


def _make_room(pool: ProcessPool, free: int) -> None:
    """End what waits beyond the free slots, the oldest first."""
    waiting = _on_standby(pool)
    pool.end_waiting(waiting[: max(len(waiting) - free, 0)])
