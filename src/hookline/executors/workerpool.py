"""The warm processes of one hook: taken, given back, replaced, ended.

A worker runs the files that its command names as they were when it started: when one of
them has changed, the next event gets a new worker. One that has been idle for
``workerIdleMs`` is ended.
"""

from __future__ import annotations

import asyncio
import os
import shlex

from hookline.limits import ProcessSlots
from hookline.registry import RegisteredHook

from .command import command_spec
from .contract import HookCall
from .environment import PROJECT_DIR_NAMES
from .guardian import Guardian
from .warm import WarmProcess

Stamp = tuple[tuple[int, int, int, int] | None, ...]
"""What tells one state of some files from another."""


class WorkerPool:
    """Up to ``pool`` workers of one hook in one directory."""

    def __init__(
        self,
        hook: RegisteredHook,
        cwd: str,
        live: set[WarmProcess],
        guardian: Guardian,
    ) -> None:
        self.places = ProcessSlots(hook.config.pool)
        self._hook = hook
        self._files = named_files(hook, cwd)
        self._live = live
        self._guardian = guardian
        self._idle: list[WarmProcess] = []
        self._stamps: dict[WarmProcess, Stamp] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def take(self, call: HookCall) -> WarmProcess:
        """An idle worker that is up to date, or a new one; raises ``OSError``."""
        stamp, loop = _stamp(self._files), asyncio.get_running_loop()
        while self._idle:
            worker = self._idle.pop()
            if worker.loop is not loop:
                worker.abandon()
                self._forget(worker)
            elif worker.usable and self._stamps.get(worker) == stamp:
                return worker
            else:
                self._retire(worker)
        return self._start(call, stamp)

    def give_back(self, worker: WarmProcess) -> None:
        """Keep a worker that has answered for the next event."""
        if not worker.usable:
            return
        self._idle.append(worker)
        if self._timer is None:
            self._watch_idle(self._idle_s)

    def start_ahead(self, call: HookCall) -> None:
        """Have a worker ready before it is needed."""
        if not self._idle:
            self.give_back(self._start(call, _stamp(self._files)))

    async def close(self) -> None:
        """Wait for the workers that are busy, then end them all."""
        for _ in range(self._hook.config.pool):
            await self.places.acquire()
        if self._timer is not None:
            self._timer.cancel()
        while self._idle:
            self._retire(self._idle.pop())
        if self._ending:
            await asyncio.wait(self._ending)

    @property
    def _idle_s(self) -> float:
        return self._hook.options.worker_idle_ms / 1000

    def _start(self, call: HookCall, stamp: Stamp) -> WarmProcess:
        spec = command_spec(self._hook, call, 0, warm=True)
        worker = WarmProcess(spec, self._forget)
        self._stamps[worker] = stamp
        self._live.add(worker)
        self._guardian.guard(worker.group)
        return worker

    def _forget(self, worker: WarmProcess) -> None:
        """A worker has ended, whoever ended it."""
        if worker in self._live:
            self._live.discard(worker)
            self._guardian.release(worker.group)
        self._stamps.pop(worker, None)
        if worker in self._idle:
            self._idle.remove(worker)

    def _retire(self, worker: WarmProcess) -> None:
        if worker.loop is not asyncio.get_running_loop():
            worker.abandon()
            self._forget(worker)
            return
        task = asyncio.get_running_loop().create_task(worker.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _watch_idle(self, delay: float) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(delay, self._end_idle)

    def _end_idle(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for worker in tuple(self._idle):
            if worker.idle_since + self._idle_s <= now:
                self._idle.remove(worker)
                self._retire(worker)
        if self._idle:
            oldest = min(worker.idle_since for worker in self._idle)
            self._watch_idle(max(oldest + self._idle_s - now, 0.001))


def named_files(hook: RegisteredHook, cwd: str) -> tuple[str, ...]:
    """The files that a command names, as far as its text tells."""
    command = hook.config.command or ""
    for name in PROJECT_DIR_NAMES:
        command = command.replace(f"${{{name}}}", f"${name}")
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    for name in PROJECT_DIR_NAMES:
        words = [word.replace(f"${name}", cwd) for word in words]
    named = (*words, *hook.config.trust_files)
    return tuple(
        path
        for word in dict.fromkeys(named)
        if not word.startswith("-")
        and not os.path.isdir(path := os.path.join(cwd, word))  # noqa: PTH112, PTH118
    )


def _stamp(files: tuple[str, ...]) -> Stamp:
    return tuple([_state(file) for file in files])


def _state(file: str) -> tuple[int, int, int, int] | None:
    try:
        found = os.stat(file)  # noqa: PTH116 - no Path on this path
    except (OSError, ValueError):
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
