"""Worker hooks: the program of a command hook, started once and kept warm.

Each hook has up to ``pool`` processes on an event loop; an event takes one that is
idle, or waits its turn, which does not count against its timeout. A hang is a timeout
like any other. A worker that dies or gives an invalid answer is replaced, and its event
is run cold within the time that is left, so that no verdict is lost.

Processes on standby wait in the same pool (``standby.py``).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Hashable, Iterable
from contextlib import AsyncExitStack, suppress
from functools import partial

import msgspec
from msgspec import Struct, structs

from hookline._internal.log import logger
from hookline.execute.child import (
    DRAIN_S,
    GRACE_S,
    Collector,
    Feeder,
    ProcessSpec,
    close_own,
    run_process,
    start,
)
from hookline.plan import Executor, HookCall, RegisteredHook, RunEnd
from hookline.protocol.results import FailureCause
from hookline.protocol.values import decode, encode
from hookline.settings.model import Approval
from hookline.trust.pins import NamedPaths, times_of

from .child import trimmed
from .command import command_spec, request_environment, trace_environment
from .runtime import Runtime, Runtimes, Slots

NO_ANSWER = (
    "did not answer as a worker: a script that answers one event and ends "
    'is "type": "command"; see docs/how-to/workers.md'
)
NO_COMMAND = (
    "answered as a worker when run as a command: see docs/how-to/workers.md#cold-runs"
)
REPLACE_S = 1.0
"""How long a worker that was started ahead is gone; longer each time it dies again."""
_MAX_REPLACE_S = 60.0
_READ_SIZE = 64 * 1024
_GROWTH = 6
"""A byte takes up to six in JSON: ``\\u0000``."""
_FRAME_BYTES = 4096
"""Room for the rest of an answer."""
_SPARE_BITS = 64 - 53
"""An id is a whole number that JSON parsers of all languages keep exactly."""


class Origin:
    """What a process was started for, and its files as they were before that."""

    def __init__(self, hook: RegisteredHook, call: HookCall, key: Hashable) -> None:
        """``key``: what else an event has in common with it that can be given to it."""
        self.hook = hook
        self.key = key
        self.changed: str | None = None
        """What of its files is not as it was approved: it must not be started."""
        self._paths: tuple[str, ...] | None = None
        if hook.approval is not None:
            self.changed, self._stamp = hook.approval.check()
            return
        names = NamedPaths(hook.config, hook.project or call.cwd)
        paths = (*names.roles, *names.listed)
        # What is missing counts too: it may appear.
        self._paths = tuple(path for path in paths if not os.path.isdir(path))  # noqa: PTH112
        self._stamp = tuple(map(times_of, self._paths))

    def has_same_files(self, hook: RegisteredHook) -> bool:
        """Whether none of them was touched since then."""
        if hook.approval is not None:
            return hook.approval.unchanged_since(self._stamp)
        if self._paths is None:
            return False
        return self._stamp == tuple(map(times_of, self._paths))


class KeptProcess:
    """A worker, or a command on standby."""

    origin: Origin

    @property
    def is_usable(self) -> bool:
        """Whether it can take an event."""
        raise NotImplementedError

    async def end(self) -> None:
        """End it; it has no event."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Kill and reap it without the event loop."""
        raise NotImplementedError


class ProcessPool:
    """The processes that one event loop keeps for later events."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.is_closed = False
        self.workers: dict[tuple[int, str], HookWorkers] = {}
        self.waiting: dict[KeptProcess, float] = {}
        """Those without an event, the oldest first, and when they end."""
        self.given_up: set[int] = set()
        """Hooks whose processes on standby do not wait for an event."""
        self._live: set[KeptProcess] = set()
        self._approvals: dict[int, Approval] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, process: KeptProcess, origin: Origin) -> None:
        """Keep a process until it ends: ``remove`` is called then."""
        process.origin = origin
        self._live.add(process)
        hook, approval = origin.hook, origin.hook.approval
        if approval is not None and approval is not self._approvals.get(hook.serial):
            self._approvals[hook.serial] = approval
            approval.when_changed(partial(self._files_changed, hook.serial))

    def remove(self, process: KeptProcess) -> bool:
        """Forget a process that has ended; whether it was waiting for an event."""
        self._live.discard(process)
        return self.waiting.pop(process, None) is not None

    def wait(self, process: KeptProcess) -> None:
        """Let it wait for the next event, unless it has ended or cannot be used."""
        idle_s = process.origin.hook.options.worker_idle_ms / 1000
        self.waiting[process] = end_at = self.loop.time() + idle_s
        # One that has ended already was waiting when that is noticed here.
        if self.is_closed or not process.is_usable:
            self.end(process)
        elif self._timer is None or self._timer.when() > end_at:
            self._end_idle()

    def of_hook(self, serial: int) -> list[KeptProcess]:
        """Those of one hook that wait, for any thread."""
        waiting = tuple(self.waiting)
        return [process for process in waiting if process.origin.hook.serial == serial]

    def take(self, hook: RegisteredHook, key: Hashable) -> KeptProcess | None:
        """One that was started for this, under the same files; others of it end."""
        for process in reversed(tuple(self.waiting)):
            origin = process.origin
            if origin.hook.serial == hook.serial and origin.key == key:
                if process.is_usable and origin.has_same_files(hook):
                    del self.waiting[process]
                    return process
                self.end(process)
        return None

    def end(self, process: KeptProcess) -> None:
        """End one that has no event, now or no longer."""
        self.waiting.pop(process, None)
        task = self.loop.create_task(process.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def end_waiting(self, processes: Iterable[KeptProcess]) -> None:
        """End those of them that have no event."""
        for process in processes:
            if process in self.waiting:
                self.end(process)

    def retain(self, serials: frozenset[int]) -> None:
        """End those that wait for events of other hooks."""
        for process in tuple(self.waiting):
            if process.origin.hook.serial not in serials:
                self.end(process)
        for key in [key for key in self.workers if key[0] not in serials]:
            self.workers.pop(key).stop_replacing()

    def _files_changed(self, serial: int) -> None:
        """They may have loaded other files than the approved ones; from any thread."""
        with suppress(RuntimeError):  # its event loop is closed
            self.loop.call_soon_threadsafe(self.end_waiting, self.of_hook(serial))

    def _end_idle(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        time_now = self.loop.time()
        self.end_waiting([each for each, at in self.waiting.items() if at <= time_now])
        times = self.waiting.values()
        self._timer = self.loop.call_at(min(times), self._end_idle) if times else None

    async def close(self) -> None:
        """End all of them; those that have an event finish it first."""
        self.is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self.end_waiting(tuple(self.waiting))
        for workers in tuple(self.workers.values()):
            workers.stop_replacing()
            async with AsyncExitStack() as turns:  # all of them: none has an event
                for _ in range(workers.hook.config.pool):
                    await turns.enter_async_context(workers.turns)
        while self._ending:
            await asyncio.wait(self._ending)

    def abandon(self) -> None:
        """Kill all of them, without the event loop."""
        self.is_closed = True
        for process in tuple(self._live):
            process.abandon()


class KeepingExecutor(Executor):
    """An executor whose processes are kept by the runtimes of event loops."""

    def __init__(self, runtimes: Runtimes) -> None:
        self._runtimes = runtimes
        self._kept: frozenset[int] | None = None
        """The hooks whose processes are kept; None for all."""

    def keeps(self, hook: RegisteredHook) -> bool:
        """Whether its processes are kept; not of one that an event outlived."""
        return self._kept is None or hook.serial in self._kept

    def retain(self, hooks: Iterable[RegisteredHook]) -> None:
        """End the processes of all other hooks, from any thread; busy ones finish."""
        self._kept = frozenset(hook.serial for hook in hooks)
        for pool in self._runtimes.parts(ProcessPool):
            with suppress(RuntimeError):  # its event loop is closed
                pool.loop.call_soon_threadsafe(pool.retain, self._kept)


class Answer(Struct, frozen=True):
    """A worker's answer to one request."""

    id: int
    exit_code: int
    stdout: str
    stderr: str


_decode_answer = msgspec.json.Decoder(Answer).decode


class WorkerLostError(Exception):
    """The worker died or gave an invalid answer."""

    def __init__(self, why: str, output: bytes = b"") -> None:
        super().__init__(why)
        self.output = output
        """What it printed instead; for those who test it, never for a log."""


class WorkerProcess(KeptProcess):
    """A worker with its pipes; belongs to one event loop."""

    def __init__(
        self, spec: ProcessSpec, on_end: Callable[[WorkerProcess], None]
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.fault: WorkerLostError | None = None
        """Why it cannot be used any more; None also if it was ended on purpose."""
        self._on_end = on_end
        self._limit = spec.max_output_bytes
        self._is_open = True
        self._id = 0
        self._answer: asyncio.Future[RunEnd] | None = None
        self._line = bytearray()
        self.group, (stdin, self._stdout, stderr) = start(spec, self._exited)
        unread = "it does not read its input"
        self._stdin = Feeder(self.loop, stdin, lambda: self._lose(unread))
        # Read so that it can go on writing, and not kept.
        self._stderr = Collector(self.loop, stderr, 0, lambda: None)
        self._stderr.watch()
        self.loop.add_reader(self._stdout, self._readable)

    @property
    def is_usable(self) -> bool:
        """Whether it can take a request."""
        return self._is_open and self._answer is None and not self.group.reaped

    async def ask(self, event_input: bytes, env: bytes, timeout_s: float) -> RunEnd:
        """Send one request and wait for its answer.

        Raises ``TimeoutError`` or ``WorkerLostError``; it cannot be used again then.
        """
        # Random, so that no answer can be written before its question.
        self._id = int.from_bytes(os.urandom(8)) >> _SPARE_BITS
        answer: asyncio.Future[RunEnd] = self.loop.create_future()
        self._answer = answer
        timer = self.loop.call_later(timeout_s, _expire, answer)
        try:
            line = request_line(self._id, event_input, env)
            self._stdin.write(line, is_last=False)
            return await answer
        finally:
            timer.cancel()
            self._answer = None

    async def end(self, input_s: float = DRAIN_S, grace_s: float = GRACE_S) -> None:
        """Close its input; after these times SIGTERM and SIGKILL end its group."""
        self._close()
        try:
            await self.group.wait_gone(input_s)
            if not (input_s and self.group.reaped) and grace_s and self.group.lives():
                self.group.terminate()
                await self.group.wait_gone(grace_s)
        finally:
            if not (input_s and self.group.reaped):
                self.group.kill()
            self.group.release()
        await self.group.wait_gone(DRAIN_S if self.group.lives() else 0)

    def abandon(self) -> None:
        """Kill and reap it without the event loop."""
        self._close()
        self.group.abandon()

    def _readable(self) -> None:
        try:
            piece = os.read(self._stdout, _READ_SIZE)
        except BlockingIOError:
            if self.group.reaped:  # another process holds its output open
                self._lose("it ended")
            return
        except OSError:
            piece = b""
        answer = self._answer
        if not piece:
            self._lose("it ended")
        elif answer is None or answer.done():
            self._lose("unexpected output", piece)
        else:
            self._line += piece
            if b"\n" in piece:
                line, self._line = bytes(self._line), bytearray()
                self._receive(line, answer)
            elif len(self._line) > 2 * _GROWTH * self._limit + _FRAME_BYTES:
                end = RunEnd(exit_code=0, stdout_truncated=True, truncated=True)
                answer.set_result(end)
                self._lose("its answer is too long")

    def _receive(self, line: bytes, answer: asyncio.Future[RunEnd]) -> None:
        if line.index(b"\n") != len(line) - 1:
            self._lose("invalid answer: more output after the answer", line)
            return
        try:
            reply = _decode_answer(line)
        except msgspec.MsgspecError:  # also for lone surrogates, which are valid JSON
            try:
                reply = msgspec.convert(decode(line), Answer)
            except ValueError as error:  # of msgspec too
                self._lose(f"invalid answer: {error}", line)
                return
        if reply.id != self._id:
            self._lose("answer to another request", line)
            return
        stdout, out_cut = _within(reply.stdout, self._limit)
        stderr, err_cut = _within(reply.stderr, self._limit)
        end = RunEnd(
            exit_code=reply.exit_code,
            stdout=stdout,
            stderr=stderr,
            stdout_truncated=out_cut,
            truncated=out_cut or err_cut,
        )
        answer.set_result(end)

    def _lose(self, why: str, output: bytes = b"") -> None:
        """Stop listening; a waiting caller gets the error."""
        self.fault = WorkerLostError(why, output)
        self._close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(self.fault)
        else:  # nobody will end it
            self.group.kill()

    def _exited(self) -> None:
        # Its last output may be the answer.
        while self._is_open:
            self._readable()
        self._on_end(self)

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            if not self.loop.is_closed():
                self.loop.remove_reader(self._stdout)
            close_own(self._stdout)
            self._stdin.close()
            self._stderr.close()


_LINE_ENDS = {
    b"\xe2\x80\xa8": rb"\u2028",
    b"\xe2\x80\xa9": rb"\u2029",
    b"\xc2\x85": rb"\u0085",
}


def request_line(number: int, event_input: bytes, env: bytes) -> bytes:
    """One request as it is sent: one line to the line readers of all languages.

    Node ends a line at U+2028, others at U+0085; JSON allows both inside a text.
    """
    line = b'{"id":%d,"input":%b,"env":%b}\n' % (number, event_input, env)
    if not line.isascii():
        for character, escaped in _LINE_ENDS.items():
            line = line.replace(character, escaped)
    return line


def is_answer(output: str) -> bool:
    """Whether a command printed what only a worker says."""
    with suppress(ValueError):
        document = decode(output)
        return isinstance(document, dict) and "exit_code" in document
    return False


def _expire(answer: asyncio.Future[RunEnd]) -> None:
    if not answer.done():
        answer.set_exception(TimeoutError())


def _within(text: str, limit: int) -> tuple[str, bool]:
    """A text trimmed and truncated to so many bytes, and whether it was truncated."""
    if len(text) * 4 > limit:
        data = text.encode("utf-8", "replace")
        if len(data) > limit:
            return data[:limit].decode("utf-8", "ignore").strip(), True
    return trimmed(text) if text else "", False


class HookWorkers:
    """The workers of one hook in one folder, on one event loop."""

    def __init__(self, pool: ProcessPool, hook: RegisteredHook) -> None:
        self.hook = hook
        self.turns = Slots(hook.config.pool)
        self.has_answered = False
        self.processes: set[WorkerProcess] = set()
        self.pool = pool
        self._loss = asyncio.Event()
        self.keeping: asyncio.Task[None] | None = None
        """What starts one ahead of events; None where events start it."""
        self.replace_s = REPLACE_S

    @property
    def is_lost(self) -> bool:
        """Whether its worker ended by itself, and no other was started yet."""
        return self._loss.is_set() and not self.processes

    def take(self, call: HookCall) -> WorkerProcess:
        """One that is idle and up to date, or a new one; raises ``OSError``."""
        worker = self.pool.take(self.hook, call.cwd)
        return worker if isinstance(worker, WorkerProcess) else self._start(call)

    def stop_replacing(self) -> None:
        """Start none ahead of events any more."""
        if self.keeping is not None:
            self.keeping.cancel()

    async def keep_one(self, call: HookCall) -> None:
        """Start a worker before the first event, and another whenever it is lost."""
        while True:
            # Its files may be approved again later.
            if not self.processes and self.hook.may_start:
                name = self.hook.name
                if self._loss.is_set():
                    logger.warning("worker %r is replaced: it is gone", name)
                try:
                    self.pool.wait(self._start(call))
                except (OSError, ValueError) as error:
                    self._loss.set()
                    logger.warning("worker %r could not be started: %s", name, error)
            if self.processes:
                await self._loss.wait()
            await asyncio.sleep(self.replace_s)
            self.replace_s = min(2 * self.replace_s, _MAX_REPLACE_S)

    def _start(self, call: HookCall) -> WorkerProcess:
        # Before the worker reads its files: no change after that is missed.
        origin = Origin(self.hook, call, call.cwd)
        worker = WorkerProcess(command_spec(self.hook, call, 0, warm=True), self._ended)
        self._loss.clear()
        self.processes.add(worker)
        self.pool.add(worker, origin)
        return worker

    def _ended(self, worker: WorkerProcess) -> None:
        self.processes.discard(worker)
        self.pool.remove(worker)
        if worker.fault is not None and not self.processes:
            self._loss.set()


class WorkerExecutor(KeepingExecutor):
    """Asks the workers of all hooks of one hook system."""

    async def run(self, hook: RegisteredHook, call: HookCall) -> RunEnd:
        """Ask a worker once; waiting for one does not count against the timeout."""
        runtime = self._runtimes.here()
        workers = self._workers(runtime, hook, call)
        async with workers.turns, runtime.slots:
            call.check_start()
            started = time.perf_counter()
            try:
                worker = workers.take(call)
            except (OSError, ValueError):
                return await _run_cold(hook, call, started)  # reports why
            env = request_environment(hook, call) | trace_environment(hook, call)
            left_s = started + hook.config.timeout_ms / 1000 - time.perf_counter()
            try:
                end = await worker.ask(call.payload, encode(env), left_s)
            except TimeoutError:
                await worker.end(0)
                problem = f"timed out after {hook.config.timeout_ms:g} ms: {NO_ANSWER}"
                return RunEnd(
                    cause=FailureCause.TIMEOUT,
                    error=None if workers.has_answered else problem,
                    started=started,
                )
            except WorkerLostError as error:
                hint = "" if workers.has_answered else f"; it {NO_ANSWER}"
                logger.warning("worker %r is replaced: %s%s", hook.name, error, hint)
                await worker.end(0, 0)
                end = await _run_cold(hook, call, started)
                return structs.replace(end, reran=True)
            except asyncio.CancelledError:
                await worker.end(0, 0)
                raise
            workers.has_answered, workers.replace_s = True, REPLACE_S
            if self.keeps(hook):
                workers.pool.wait(worker)
            else:
                workers.pool.end(worker)
            return structs.replace(end, started=started)

    def start(self, hook: RegisteredHook, call: HookCall) -> None:
        """Start a worker ahead of the first event, in the folder of ``call``."""
        runtime = self._runtimes.here()
        workers = self._workers(runtime, hook, call)
        if workers.keeping is None:
            workers.keeping = runtime.loop.create_task(workers.keep_one(call))

    def all_workers(self) -> list[HookWorkers]:
        """Those of all hooks on all event loops, for any thread."""
        pools = self._runtimes.parts(ProcessPool)
        return [workers for pool in pools for workers in tuple(pool.workers.values())]

    def _workers(
        self, runtime: Runtime, hook: RegisteredHook, call: HookCall
    ) -> HookWorkers:
        pool = runtime.part(ProcessPool)
        workers = pool.workers.get((hook.serial, call.cwd))
        if workers is None:
            workers = HookWorkers(pool, hook)
            if self.keeps(hook):
                pool.workers[hook.serial, call.cwd] = workers
        workers.hook = hook  # it may have been registered again
        return workers


async def _run_cold(hook: RegisteredHook, call: HookCall, started: float) -> RunEnd:
    """Run the program as a command, in the time that is left."""
    left_s = started + hook.config.timeout_ms / 1000 - time.perf_counter()
    if left_s <= 0:
        return RunEnd(cause=FailureCause.TIMEOUT, started=started)
    end = await run_process(command_spec(hook, call, left_s))
    if end.cause is None and end.exit_code == 0 and is_answer(end.stdout):
        end = structs.replace(end, cause=FailureCause.OUTPUT, error=NO_COMMAND)
    return structs.replace(end, started=started)
