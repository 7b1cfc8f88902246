"""Worker hooks: the program of a command hook, started once and kept warm.

Each hook has up to ``pool`` processes; an event takes one that is idle, or waits its
turn, which does not eat its timeout. A hang is a timeout like any other. A worker that
dies or talks nonsense is replaced, and the event in hand is run cold within the time
that is left, so that no verdict is lost.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Iterable

from msgspec import structs

from hookline.jsontext import encode
from hookline.limits import ProcessSlots
from hookline.log import logger
from hookline.process import run_process
from hookline.registry import RegisteredHook
from hookline.results import HookExecutionResult

from .command import command_spec, read_outcome, timed_out_result
from .contract import HookCall
from .environment import request_environment
from .guardian import Guardian
from .reading import RunEnd, read_end
from .warm import Answer, WarmProcess, WorkerLostError, WorkerTalksTooMuchError
from .workerpool import WorkerPool


class WorkerExecutor:
    """Keeps the workers of all hooks of one hook system."""

    def __init__(self, slots: ProcessSlots) -> None:
        self._slots = slots
        self._pools: dict[tuple[int, str], WorkerPool] = {}
        self._guardian = Guardian()
        self._live: set[WarmProcess] = set()
        # The last resort: at exit, or when a system was forgotten without dispose().
        weakref.finalize(self, _abandon, self._live, self._guardian)

    async def run(self, hook: RegisteredHook, call: HookCall) -> HookExecutionResult:
        """Ask a worker once; waiting for one does not eat the timeout."""
        pool = self._pool(hook, call)
        await pool.places.acquire()
        try:
            await self._slots.acquire()
            try:
                return await _Request(pool, hook, call).run()
            finally:
                self._slots.release()
        finally:
            pool.places.release()

    def start(self, hooks: Iterable[RegisteredHook], cwd: str) -> None:
        """Start one worker for each hook ahead of its first event."""
        for hook in hooks:
            call = HookCall(hook.event, {"cwd": cwd, "session_id": ""})
            try:
                self._pool(hook, call).start_ahead(call)
            except (OSError, ValueError) as error:
                logger.warning("worker %r could not be started: %s", hook.name, error)

    async def close(self) -> None:
        """End all workers; those at work finish first."""
        pools, self._pools = list(self._pools.values()), {}
        await asyncio.gather(*(pool.close() for pool in pools))
        await self._guardian.close()

    def _pool(self, hook: RegisteredHook, call: HookCall) -> WorkerPool:
        key = (hook.serial, call.cwd)
        pool = self._pools.get(key)
        if pool is None:
            pool = WorkerPool(hook, call.cwd, self._live, self._guardian)
            self._pools[key] = pool
        return pool


class _Request:
    """One event for one hook of a pool."""

    def __init__(self, pool: WorkerPool, hook: RegisteredHook, call: HookCall) -> None:
        self._pool = pool
        self._hook = hook
        self._call = call
        self._started = time.perf_counter()
        self._deadline = self._started + hook.config.timeout_ms / 1000

    async def run(self) -> HookExecutionResult:
        try:
            worker = self._pool.take(self._call)
        except (OSError, ValueError):
            return await self._run_cold(reran=False)  # it says why it cannot start
        try:
            answer = await self._ask(worker)
        except TimeoutError:
            await worker.terminate()
            return timed_out_result(self._hook, self._end())
        except WorkerTalksTooMuchError:
            await worker.kill()
            return read_end(self._hook, structs.replace(self._end(0), **_CUT_OFF))
        except WorkerLostError as error:
            logger.warning("worker %r is replaced: %s", self._hook.name, error)
            await worker.kill()
            return await self._run_cold(reran=True)
        except asyncio.CancelledError:
            await worker.kill()
            raise
        self._pool.give_back(worker)
        return read_end(self._hook, self._read(answer))

    async def _ask(self, worker: WarmProcess) -> Answer:
        env = encode(request_environment(self._hook, self._call))
        return await worker.ask(self._call.payload, env, self._left())

    async def _run_cold(self, *, reran: bool) -> HookExecutionResult:
        if self._left() <= 0:
            return timed_out_result(self._hook, self._end())
        spec = command_spec(self._hook, self._call, self._left())
        outcome = await run_process(spec)
        whole = structs.replace(outcome, duration_ms=self._took())
        return read_outcome(self._hook, whole, reran=reran)

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
            duration=self._took(),
        )

    def _end(self, exit_code: int | None = None) -> RunEnd:
        return RunEnd(exit_code=exit_code, duration=self._took())

    def _took(self) -> float:
        return (time.perf_counter() - self._started) * 1000

    def _left(self) -> float:
        return self._deadline - time.perf_counter()


_CUT_OFF = {"stdout_truncated": True, "truncated": True}


def _within(text: str, limit: int) -> tuple[str, bool]:
    """A text trimmed, cut to so many bytes, and whether it had to be cut."""
    if len(text) * 4 > limit:
        data = text.encode("utf-8", "replace")
        if len(data) > limit:
            return data[:limit].decode("utf-8", "ignore").strip(), True
    return text.strip().strip("\ufeff").strip() if text else "", False


def _abandon(live: set[WarmProcess], guardian: Guardian) -> None:
    for worker in tuple(live):
        worker.abandon()
    guardian.abandon()
