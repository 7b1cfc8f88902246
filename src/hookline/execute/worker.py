"""Worker hooks: the program of a command hook, started once and kept warm.

Each hook has up to ``pool`` processes; an event takes one that is idle, or waits its
turn, which does not count against its timeout. A hang is a timeout like any other. A
worker that dies or gives an invalid answer is replaced, and its event is run
cold within the time that is left, so that no verdict is lost.

The first answer is the handshake: until then nothing says that a program is a worker.
If it stays silent, another process of it is sent an event that needs no work. If that
is silent too, the program is no worker, and the hook fails long before its timeout.
"""

from __future__ import annotations

import asyncio
import os
import time
import weakref
from collections.abc import Iterable
from subprocess import SubprocessError

from msgspec import structs

from hookline._internal.log import logger
from hookline.execute.child import ProcessSlots, run_process
from hookline.plan import Executor, HookCall, RegisteredHook, RunEnd
from hookline.protocol.inputs import BASE_FIELDS
from hookline.protocol.results import FailureCause
from hookline.protocol.values import encode
from hookline.settings.model import Stamp
from hookline.trust.pins import NamedPaths, times_of

from .answer import trimmed
from .command import (
    command_spec,
    request_environment,
    trace_environment,
)
from .runtime import Runtimes
from .warm import (
    Answer,
    HandshakeError,
    WarmProcess,
    WorkerLostError,
    WorkerOutputLimitError,
    is_answer,
)

NO_HANDSHAKE = (
    "did not answer the worker handshake: a script that answers one event and ends "
    'is "type": "command"; see docs/how-to/workers.md'
)
NO_COMMAND = (
    "answered as a worker when run as a command: see docs/how-to/workers.md#cold-runs"
)
HANDSHAKE_S = 10.0
_HANDSHAKE_SHARE = 1 / 6
"""Of the hook's timeout, if that is more: for workers that take long to start."""
_SILENT_S = 60.0
"""How long a program that is no worker is not asked again, unless it changes."""
REPLACE_S = 1.0
"""How long a worker that was started ahead is gone; longer each time it dies again."""
_MAX_REPLACE_S = 60.0


def handshake_limit_s(hook: RegisteredHook) -> float:
    """How long a program may take for its first answer before it is given up."""
    return max(HANDSHAKE_S, hook.config.timeout_ms / 1000 * _HANDSHAKE_SHARE)


def handshake_input(call: HookCall) -> bytes:
    """An event that no hook knows, with the fields that all events have."""
    base = {name: call.input.get(name, "") for name in sorted(BASE_FIELDS)}
    return encode(base | {"hook_event_name": "Handshake"})


class WorkerPool:
    """Up to ``pool`` workers of one hook in one directory."""

    def __init__(self, hook: RegisteredHook, cwd: str, live: set[WarmProcess]) -> None:
        self.places = ProcessSlots(hook.config.pool)
        self._cwd = cwd
        self._live = live
        self._retired = False
        self._idle: list[WarmProcess] = []
        self._stamps: dict[WarmProcess, Stamp] = {}
        self._known: Stamp | None = None
        """The files of a process that has answered."""
        self._silent: tuple[Stamp, float] | None = None
        """The files of a program that is no worker, and until when it is not asked."""
        self._lost = False
        self._ahead: HookCall | None = None
        """What it was started for ahead of events; None if events start it."""
        self._replace_s = REPLACE_S
        self._replace_timer: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._idle_timers: dict[asyncio.AbstractEventLoop, asyncio.TimerHandle] = {}
        self._idle_s = hook.options.worker_idle_ms / 1000
        self._belong_to(hook)

    def keep_for(self, hook: RegisteredHook) -> None:
        """Go on with the same hook as it was registered again.

        Workers with other files than its approved ones are replaced when they are used.
        """
        if hook is not self._hook:
            self._belong_to(hook)

    def _belong_to(self, hook: RegisteredHook) -> None:
        self._hook = hook
        self._files = HookFiles(hook, self._cwd)
        if hook.approval is not None:
            hook.approval.when_changed(self._abandon_idle)

    def retire(self) -> None:
        """Keep no worker any more: idle ones end now, from any thread, others later."""
        self._retired = True
        # Also for busy ones: they may be given back at this very moment.
        for worker in tuple(self._stamps):
            try:
                worker.loop.call_soon_threadsafe(self._end_retired)
            except RuntimeError:  # its event loop is closed
                worker.abandon()
                self._forget(worker)

    @property
    def has_ended(self) -> bool:
        """Whether it has no process left."""
        return not self._stamps and not self._ending

    def _end_retired(self) -> None:
        loop = asyncio.get_running_loop()
        for worker in [one for one in self._idle if one.loop is loop]:
            if self._claim(worker):
                self._retire(worker)

    def _claim(self, worker: WarmProcess) -> bool:
        """Take it out of the idle ones; False if another thread was faster."""
        try:
            self._idle.remove(worker)
        except ValueError:
            return False
        return True

    def take(self, call: HookCall) -> WarmProcess:
        """An idle worker that is up to date, or a new one; raises ``OSError``.

        That is a ``HandshakeError`` for a program that is no worker. Those of another
        event loop are left to it: plain and async calls of one host have one each.
        """
        loop = asyncio.get_running_loop()
        for worker in tuple(reversed(self._idle)):
            is_own = worker.loop is loop
            if (not is_own and worker.loop.is_running()) or not self._claim(worker):
                continue
            if is_own and self._is_current(worker) and worker.usable:
                return worker
            self._retire(worker)
        return self._start(call)

    def give_back(self, worker: WarmProcess) -> None:
        """Keep a worker that has answered for the next event."""
        if not worker.usable:
            return
        if self._retired:
            self._retire(worker)
            return
        self._idle.append(worker)
        if worker.loop not in self._idle_timers:
            self._watch_idle(self._idle_s)

    def is_known(self, worker: WarmProcess) -> bool:
        """Whether a process with the same files has answered before."""
        return self._known is not None and self._stamps.get(worker) == self._known

    def know(self, worker: WarmProcess) -> None:
        """Remember that it has answered."""
        self._known = self._stamps.get(worker)
        self._replace_s = REPLACE_S

    async def shake_hands(
        self, silent: WarmProcess, call: HookCall, env: bytes
    ) -> None:
        """Tell a slow hook from a program that is no worker, and give up on the latter.

        Another process is asked: the silent one is busy, or does not read.
        """
        limit_s = handshake_limit_s(self._hook)
        try:
            other = self._start(call)
        except HandshakeError as error:  # the same was found meanwhile
            silent.give_up(error)
            return
        except (OSError, ValueError, SubprocessError):
            return
        stamp = self._stamps[other]
        same = stamp == self._stamps.get(silent)
        try:
            await other.ask(handshake_input(call), env, limit_s / 2)
            self.know(other)
        except TimeoutError:
            if same:
                self._silent = stamp, time.monotonic() + _SILENT_S
                silent.give_up(HandshakeError(limit_s))
        except (WorkerLostError, WorkerOutputLimitError):
            pass  # it answers what it does not know by dying: no proof either way
        finally:
            await other.kill()

    def start_ahead(self, call: HookCall) -> None:
        """Start a worker before the first event, and another whenever it is lost."""
        self._ahead = call
        if self._stamps:
            return
        self._lost = True  # until it is there
        try:
            self.give_back(self._start(call))
        except (OSError, ValueError) as error:
            logger.warning("worker %r could not be started: %s", self._hook.name, error)
            self._replace_later()

    def _replace_later(self) -> None:
        if self._ahead is not None and self._replace_timer is None:
            loop = asyncio.get_running_loop()
            self._replace_timer = loop.call_later(self._replace_s, self._replace)
            self._replace_s = min(2 * self._replace_s, _MAX_REPLACE_S)

    def _replace(self) -> None:
        self._replace_timer = None
        if self._ahead is None or self._retired or self.lost_hook is None:
            return
        if self._hook.may_start:
            logger.warning("worker %r is replaced: it is gone", self._hook.name)
            self.start_ahead(self._ahead)
        else:  # its files may be approved again
            self._replace_later()

    @property
    def lost_hook(self) -> str | None:
        """The name of the hook, if its worker is gone and no other was started yet."""
        silent = self._silent is not None and time.monotonic() < self._silent[1]
        return self._hook.name if (self._lost or silent) and not self._stamps else None

    async def close(self) -> None:
        """Wait for the workers that are busy, then end them all.

        If it is cancelled, calling it again finishes the work.
        """
        taken = 0
        try:
            while taken < self._hook.config.pool:
                await self.places.acquire()
                taken += 1
            self._retired = True  # those of other event loops end after their event
            self._ahead = None
            self._cancel_timers()
            while self._idle:
                self._retire(self._idle.pop())
            if self._ending:
                await asyncio.wait(self._ending)
        finally:
            for _ in range(taken):
                self.places.release()

    def _cancel_timers(self) -> None:
        own = self._idle_timers.pop(asyncio.get_running_loop(), None)
        for timer in (own, self._replace_timer):
            if timer is not None:
                timer.cancel()

    def _is_current(self, worker: WarmProcess) -> bool:
        """Whether the files are those that the worker was started with."""
        stamp = self._stamps.get(worker)
        return stamp is not None and self._files.unchanged_since(stamp)

    def _abandon_idle(self) -> None:
        """Kill the workers: they may have loaded other files than the approved ones."""
        for worker in tuple(self._idle):
            worker.abandon()
            self._forget(worker)

    def _start(self, call: HookCall) -> WarmProcess:
        # Before the worker reads its files: no change after that is missed.
        stamp = self._files.stamp()
        self._refuse_silent(stamp)
        spec = command_spec(self._hook, call, 0, warm=True)
        worker = WarmProcess(spec, self._ended)
        self._stamps[worker] = stamp
        self._live.add(worker)
        return worker

    def _refuse_silent(self, stamp: Stamp) -> None:
        if self._silent is not None:
            found, until = self._silent
            if found == stamp and time.monotonic() < until:
                raise HandshakeError(handshake_limit_s(self._hook))
            self._silent = None

    def _ended(self, worker: WarmProcess) -> None:
        """A worker has ended, on its event loop."""
        self._forget(worker)
        if self._lost:
            self._replace_later()

    def _forget(self, worker: WarmProcess) -> None:
        self._live.discard(worker)
        self._stamps.pop(worker, None)
        self._lost = worker.lost
        self._claim(worker)

    def _retire(self, worker: WarmProcess) -> None:
        if worker.loop is not asyncio.get_running_loop():
            worker.abandon()
            self._forget(worker)
            return
        task = asyncio.create_task(worker.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _watch_idle(self, delay: float) -> None:
        # A timer of an event loop that is closed never fires.
        left = {one: t for one, t in self._idle_timers.items() if not one.is_closed()}
        loop = asyncio.get_running_loop()
        self._idle_timers = left | {loop: loop.call_later(delay, self._end_idle)}

    def _end_idle(self) -> None:
        loop = asyncio.get_running_loop()
        self._idle_timers.pop(loop, None)
        now = loop.time()
        idle = [worker for worker in self._idle if worker.loop is loop]
        for worker in idle:
            if worker.idle_since + self._idle_s <= now and self._claim(worker):
                self._retire(worker)
        times = [one.idle_since for one in idle if one in self._idle]
        if times:
            self._watch_idle(max(min(times) + self._idle_s - now, 0.001))


class HookFiles:
    """The files whose change replaces a process: all that is pinned or named."""

    def __init__(self, hook: RegisteredHook, cwd: str) -> None:
        self._approval = hook.approval
        self._named: tuple[str, ...] = ()
        if hook.approval is None:
            named = NamedPaths(hook.config, cwd)
            paths = (*named.roles, *named.listed)
            # What is missing counts too: it may appear.
            self._named = tuple(path for path in paths if not os.path.isdir(path))  # noqa: PTH112

    def stamp(self) -> Stamp:
        """Their state now."""
        if self._approval is not None:
            return self._approval.check()[1]
        return tuple(map(times_of, self._named))

    def unchanged_since(self, stamp: Stamp) -> bool:
        """Whether none of them was touched since then."""
        if self._approval is not None:
            return self._approval.unchanged_since(stamp)
        return bool(stamp == self.stamp())


class WorkerExecutor(Executor):
    """Keeps the workers of all hooks of one hook system."""

    def __init__(self, runtimes: Runtimes) -> None:
        self._runtimes = runtimes
        self._pools: dict[tuple[int, str], WorkerPool] = {}
        self._kept: frozenset[int] | None = None
        """The hooks whose workers are kept; None for all."""
        self._retired: list[WorkerPool] = []
        self._live: set[WarmProcess] = set()
        self._host = os.getpid()
        # The last resort: at exit, or if a system is dropped without dispose().
        weakref.finalize(self, _abandon, self._live)

    async def run(self, hook: RegisteredHook, call: HookCall) -> RunEnd:
        """Ask a worker once; waiting for one does not count against the timeout."""
        self._disown_after_fork()
        pool = self._pool(hook, call)
        async with pool.places, self._runtimes.here().slots:
            return await _Request(pool, hook, call).run()

    def start(self, hooks: Iterable[RegisteredHook], cwd: str) -> None:
        """Start one worker for each hook ahead of its first event."""
        for hook in hooks:
            call = HookCall(hook.event, {"cwd": cwd, "session_id": ""})
            self._pool(hook, call).start_ahead(call)

    def processes(self) -> int:
        """How many workers live."""
        return len(self._live)

    def lost_hooks(self) -> list[str]:
        """The hooks whose worker is gone, and no other is there yet."""
        names = (pool.lost_hook for pool in list(self._pools.values()))
        return [name for name in names if name is not None]

    async def close(self) -> None:
        """End all workers; those that are busy finish first."""
        self._disown_after_fork()
        pools = (*self._pools.values(), *self._retired)
        await asyncio.gather(*(pool.close() for pool in pools))
        self._pools, self._retired = {}, []

    def retain(self, hooks: Iterable[RegisteredHook]) -> None:
        """End the workers of all other hooks, from any thread; busy ones finish."""
        kept = {hook.serial: hook for hook in hooks}
        self._kept = frozenset(kept)
        for pool in [pool for pool in self._retired if pool.has_ended]:
            self._retired.remove(pool)
        for key, pool in list(self._pools.items()):
            if key[0] in kept:
                pool.keep_for(kept[key[0]])
            else:
                self._retire(self._pools.pop(key))

    def _disown_after_fork(self) -> None:
        """In a fork of the host they are those of the host."""
        if self._host != os.getpid():
            self._host = os.getpid()
            self._pools, self._retired = {}, []
            for worker in tuple(self._live):
                worker.abandon()  # signals nothing there
            self._live.clear()

    def _retire(self, pool: WorkerPool) -> WorkerPool:
        self._retired.append(pool)
        pool.retire()
        return pool

    def _pool(self, hook: RegisteredHook, call: HookCall) -> WorkerPool:
        if self._kept is not None and hook.serial not in self._kept:
            # An event that began before its hook was changed: one worker for it alone.
            own = WorkerPool(hook, hook.project or call.cwd, self._live)
            return self._retire(own)
        key = (hook.serial, call.cwd)
        pool = self._pools.get(key)
        if pool is None:
            # Another thread may have been faster.
            new = WorkerPool(hook, hook.project or call.cwd, self._live)
            pool = self._pools.setdefault(key, new)
        return pool


class _Request:
    """One event for one hook of a pool."""

    def __init__(self, pool: WorkerPool, hook: RegisteredHook, call: HookCall) -> None:
        self._pool = pool
        self._hook = hook
        self._call = call
        self._started = time.perf_counter()
        self._deadline = self._started + hook.config.timeout_ms / 1000

    async def run(self) -> RunEnd:
        try:
            worker = self._pool.take(self._call)
        except HandshakeError as error:
            return self._no_handshake(error.limit_s)
        except (OSError, ValueError):
            return await self._run_cold(reran=False)  # reports why it cannot start
        try:
            env = encode(
                request_environment(self._hook, self._call)
                | trace_environment(self._hook, self._call)
            )
            if worker.answered:
                answer = await worker.ask(self._call.payload, env, self._left())
            else:
                answer = await self._ask_first(worker, env)
        except HandshakeError as error:
            await worker.terminate()
            return self._no_handshake(error.limit_s)
        except TimeoutError:
            known = worker.answered or self._pool.is_known(worker)
            await worker.terminate()
            if not known:
                return self._no_handshake(self._hook.config.timeout_ms / 1000)
            return self._failed(FailureCause.TIMEOUT)
        except WorkerOutputLimitError:
            await worker.kill()
            return RunEnd(
                exit_code=0,
                stdout_truncated=True,
                truncated=True,
                started=self._started,
            )
        except WorkerLostError as error:
            self._warn(worker, error)
            await worker.kill()
            return await self._run_cold(reran=True)
        except asyncio.CancelledError:
            await worker.kill()
            raise
        self._pool.give_back(worker)
        return self._read(answer)

    async def _ask_first(self, worker: WarmProcess, env: bytes) -> Answer:
        """Ask a process that has not answered yet; its silence is looked into."""
        payload, watch = self._call.payload, None
        wait_s = handshake_limit_s(self._hook) / 2
        if not self._pool.is_known(worker) and 2 * wait_s < self._left():
            watch = asyncio.create_task(self._look_into(worker, env, wait_s))
        try:
            answer = await worker.ask(payload, env, self._left())
            self._pool.know(worker)
        finally:
            if watch is not None:
                watch.cancel()
                await asyncio.wait({watch})
        return answer

    async def _look_into(self, worker: WarmProcess, env: bytes, wait_s: float) -> None:
        await asyncio.sleep(wait_s)
        await self._pool.shake_hands(worker, self._call, env)

    def _no_handshake(self, limit_s: float) -> RunEnd:
        # As a timeout: whoever has it block must not be let through by its kind.
        error = f"timed out after {limit_s * 1000:g} ms: {NO_HANDSHAKE}"
        return self._failed(FailureCause.TIMEOUT, error)

    def _failed(self, cause: FailureCause, error: str | None = None) -> RunEnd:
        return RunEnd(cause=cause, error=error, started=self._started)

    def _warn(self, worker: WarmProcess, error: WorkerLostError) -> None:
        known = worker.answered or self._pool.is_known(worker)
        hint = "" if known else f"; it {NO_HANDSHAKE}"
        logger.warning("worker %r is replaced: %s%s", self._hook.name, error, hint)

    async def _run_cold(self, *, reran: bool) -> RunEnd:
        if self._left() <= 0:
            return self._failed(FailureCause.TIMEOUT)
        end = await run_process(command_spec(self._hook, self._call, self._left()))
        end = structs.replace(end, started=self._started, reran=reran)
        if end.cause is None and end.exit_code == 0 and is_answer(end.stdout):
            return structs.replace(end, cause=FailureCause.OUTPUT, error=NO_COMMAND)
        return end

    def _read(self, answer: Answer) -> RunEnd:
        limit = self._hook.options.max_output_bytes
        stdout, out_cut = _within(answer.stdout, limit)
        stderr, err_cut = _within(answer.stderr, limit)
        return RunEnd(
            exit_code=answer.exit_code,
            stdout=stdout,
            stderr=stderr,
            stdout_truncated=out_cut,
            truncated=out_cut or err_cut,
            started=self._started,
        )

    def _left(self) -> float:
        return self._deadline - time.perf_counter()


def _within(text: str, limit: int) -> tuple[str, bool]:
    """A text trimmed and truncated to so many bytes, and whether it was truncated."""
    if len(text) * 4 > limit:
        data = text.encode("utf-8", "replace")
        if len(data) > limit:
            return data[:limit].decode("utf-8", "ignore").strip(), True
    return trimmed(text) if text else "", False


def _abandon(live: set[WarmProcess]) -> None:
    for worker in tuple(live):
        worker.abandon()
