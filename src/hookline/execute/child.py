"""Run one child process: feed it, limit its output, time it out, kill and reap it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from fcntl import fcntl, ioctl
from functools import partial
from os import WNOHANG, killpg
from signal import SIGKILL
from subprocess import SubprocessError
from termios import FIONREAD

from hookline.plan import OnStart, RunEnd
from hookline.protocol.results import FailureCause

from .answer import as_text
from .spawn import ProcessSpec
from .watchdog import fork_lock, group_lives, own_fds, start, start_held, watcher

POLL_FIRST_S, POLL_LAST_S = 0.002, 0.05


def close_own(*fds: int) -> None:
    """Close the host's ends of what ``start`` opened."""
    with fork_lock:
        for fd in fds:
            own_fds.discard(fd)
            os.close(fd)


def _open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when a process ends; None: poll instead."""
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):  # an old C library, none left
            return os.pidfd_open(pid)
    return None


def _is_running(pid: int) -> bool:
    """Whether a child has not ended, for one with a descriptor; leaves it unreaped."""
    if sys.platform == "linux":
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        with suppress(ChildProcessError):  # somebody else has reaped it
            return os.waitid(os.P_PID, pid, options) is None
    return False


class ProcessGroup:
    """A child and what it started: signals it, notices its end and reaps it."""

    def __init__(
        self, pid: int, loop: asyncio.AbstractEventLoop, on_exit: Callable[[], None]
    ) -> None:
        self.pid = pid
        self.exit_code: int | None = None
        """None also if somebody else has reaped it."""
        self.reaped = False
        self.loop = loop
        self._host = os.getpid()
        self._terminated = False
        self._on_exit = on_exit
        self._pidfd = self._watch()

    def signal(self, number: signal.Signals) -> None:
        """Signal the whole group."""
        if self._host != os.getpid():
            return  # in a fork of the host, whose groups these are
        # Already gone, or only zombies are left (macOS).
        with suppress(ProcessLookupError, PermissionError):
            killpg(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM; until ``release`` the host's death ends what ignores it."""
        self._terminated = True
        self.signal(signal.SIGTERM)

    def release(self) -> None:
        """What its leader leaves running from now on may outlive the host."""
        if self._terminated:
            self._terminated = False
            if self.reaped:
                self._reap_orphans()
                watcher.release(self.pid)

    def kill(self) -> None:
        """Kill what is left of the group."""
        if self.lives():
            self.signal(SIGKILL)

    def lives(self) -> bool:
        """Whether anything of the group is left, not counting zombies."""
        return not self.reaped or group_lives(self.pid)

    async def wait_gone(self, limit_s: float) -> None:
        """Wait until nothing is left, for so long at most."""
        deadline, delay = self.loop.time() + limit_s, POLL_FIRST_S
        while self.lives() and self.loop.time() < deadline:
            await asyncio.sleep(delay)
            delay = min(delay * 2, POLL_LAST_S)
        if self.reaped:
            self._reap_orphans()

    def has_ended(self) -> bool:
        """Look now, whatever the event loop has seen so far."""
        if self._pidfd is not None and not self.reaped and _is_running(self.pid):
            return False
        return self._reap()

    def abandon(self) -> None:
        """Kill and reap at once, without the event loop, which may be closed."""
        self.kill()
        watcher.release(self.pid)
        if self.reaped:
            return
        self.reaped = True
        with suppress(ChildProcessError):  # already reaped
            os.waitpid(self.pid, 0)
        self._unwatch()

    def _watch(self) -> int | None:
        pidfd = _open_pidfd(self.pid)
        if pidfd is None:
            self.loop.call_later(POLL_FIRST_S, self._poll, POLL_FIRST_S)
            return None
        try:
            self.loop.add_reader(pidfd, self._reap)
        except BaseException:
            # A child that cannot be watched must not go on running.
            os.close(pidfd)
            killpg(self.pid, SIGKILL)
            watcher.release(self.pid)
            os.waitpid(self.pid, 0)
            raise
        own_fds.add(pidfd)
        return pidfd

    def _unwatch(self) -> None:
        if self._pidfd is not None:
            if not self.loop.is_closed():
                self.loop.remove_reader(self._pidfd)
            close_own(self._pidfd)
            self._pidfd = None

    def _poll(self, delay: float) -> None:
        if not self._reap():
            delay = min(delay * 2, POLL_LAST_S)
            self.loop.call_later(delay, self._poll, delay)

    def _reap(self) -> bool:
        if self.reaped:
            return True
        has_exited = self._pidfd is not None
        if has_exited:
            self._unlist()  # before its number can be reused
        try:
            pid, status = os.waitpid(self.pid, WNOHANG)
        except ChildProcessError:
            # The host ignores SIGCHLD or reaps all children: the status is lost.
            pid, status = self.pid, None
        if pid == 0:
            return False
        if not has_exited:
            self._unlist()
        self.reaped = True
        self.exit_code = None if status is None else os.waitstatus_to_exitcode(status)
        self._unwatch()
        self._on_exit()
        return True

    def _reap_orphans(self) -> None:
        """Reap what the leader left behind if the host has inherited it.

        The first process of a container does, and nobody else would.
        """
        with suppress(ChildProcessError):
            while os.waitpid(-self.pid, WNOHANG)[0]:
                pass

    def _unlist(self) -> None:
        if not self._terminated:
            watcher.release(self.pid)


_READ_SIZE = 64 * 1024
_DRAIN_READS = 64
PIPE_SIZE = 64 * 1024
"""What a pipe usually holds before its writer has to wait."""

_F_SETPIPE_SZ = 1031  # of Linux
_BIG_PIPE_SIZE = 256 * 1024  # a larger one does not fit the CPU cache


class Feeder:
    """Writes one payload into a pipe and closes it, even if nobody reads."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int) -> None:
        self._loop = loop
        self._fd = fd
        self._rest = memoryview(b"")
        self._size = 0
        self._open = True
        self._waiting = False
        self.failed = False
        """Nobody can read it any more."""

    @property
    def written(self) -> int:
        """How many bytes are in the pipe, or were."""
        return self._size - len(self._rest)

    def write(self, payload: bytes) -> None:
        """Write all of it, now or when there is room, then close the pipe."""
        self._rest = memoryview(payload)
        self._size = len(payload)
        if len(payload) > PIPE_SIZE:
            _enlarge(self._fd)
        self._write()

    def close(self) -> None:
        """Close the pipe, written or not."""
        if self._open:
            self._open = False
            if self._waiting:
                self._loop.remove_writer(self._fd)
            close_own(self._fd)

    def _write(self) -> None:
        try:
            self._rest = self._rest[os.write(self._fd, self._rest) :]
        except BlockingIOError:
            pass
        except OSError:
            self.failed = True
            self.close()
            return
        if not self._rest:
            self.close()
        elif not self._waiting:
            self._waiting = True
            self._loop.add_writer(self._fd, self._write)


class Collector:
    """Reads a pipe to its end and keeps the first ``limit`` bytes.

    Nothing is read before ``watch`` or ``drain`` is called.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        limit: int,
        on_end: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._fd = fd
        self._room = limit
        self._pieces: list[bytes] = []
        self._on_end = on_end
        self.ended = False
        self.truncated = False
        self._watched = False
        self.on_start: Callable[[bytes], bool] | None = None
        """Is shown the first line until it has seen enough of it."""

    def watch(self) -> None:
        """Start reading whenever data arrives."""
        if not self.ended and not self._watched:
            self._loop.add_reader(self._fd, self._on_readable)
            self._watched = True

    def data(self) -> bytes:
        """The output that was kept."""
        return b"".join(self._pieces)

    def drain(self) -> None:
        """Read what is already there, up to a limit for endless writers."""
        for _ in range(_DRAIN_READS):
            if not self._read():
                return

    def close(self) -> None:
        """Stop reading."""
        if not self.ended:
            self.ended = True
            if self._watched:
                self._loop.remove_reader(self._fd)
            close_own(self._fd)

    def _on_readable(self) -> None:
        if not self._read() and self.ended:
            self._on_end()

    def _read(self) -> bool:
        """Read once; False if there is nothing to read."""
        if self.ended:
            return False
        try:
            piece = os.read(self._fd, _READ_SIZE)
        except BlockingIOError:
            return False
        except OSError:
            piece = b""
        if not piece:
            self.close()
            return False
        self._keep(piece)
        return True

    def _keep(self, piece: bytes) -> None:
        if len(piece) > self._room:
            self.truncated = True
            piece = piece[: self._room]
        if piece:
            self._room -= len(piece)
            self._pieces.append(piece)
        if self.on_start is not None:
            line, end, _ = self.data().lstrip().partition(b"\n")
            if self.on_start(line) or end or len(line) > _READ_SIZE:
                self.on_start = None


def _enlarge(fd: int) -> None:
    """Enlarge a pipe for a big payload: fewer wake-ups of the event loop."""
    if sys.platform == "linux":
        # Over the user's limit of pipe memory the default size will do.
        with suppress(OSError):
            fcntl(fd, _F_SETPIPE_SZ, _BIG_PIPE_SIZE)


def _unread(fd: int) -> int:
    """How many bytes are in a pipe."""
    try:
        return int.from_bytes(ioctl(fd, FIONREAD, bytes(4)), sys.byteorder)
    except OSError:  # no pipe: the process that kept it was replaced by another
        return 0


DRAIN_S = 0.25
"""How long output is still read after the child exits."""

UNWATCHED_S = 0.005
"""Output is not watched before this time, unless the child ends."""

_ABORT_S = 1.0  # SIGKILL works at once, unless the kernel is stuck


async def run_process(spec: ProcessSpec) -> RunEnd:
    """Run one process to its end; cancelling the caller kills its whole group."""
    started = time.perf_counter()
    try:
        child = Child(spec)
    except (OSError, ValueError, SubprocessError) as error:
        return RunEnd(
            cause=FailureCause.SPAWN,
            error=_explain(error, spec),
            started=started,
            cwd=spec.cwd,
        )
    child.feed(spec.stdin, spec.on_start)
    return await child.finish(started)


def _explain(error: Exception, spec: ProcessSpec) -> str:
    if isinstance(error, OSError):
        if not os.path.isdir(spec.cwd):  # noqa: PTH112 - no Path on this path
            return f"could not start: the working directory {spec.cwd!r} is missing"
        return f"could not start {spec.argv[0]!r}: {error.strerror or error}"
    return f"could not start: {error}"


class Child:
    """A running process with its pipes and timers.

    Until it is fed it waits for its input: nothing of its output is read, so that it
    waits with that too once a pipe is full. Everything runs in callbacks of the event
    loop: no threads, no task per stream.
    """

    def __init__(
        self, spec: ProcessSpec, on_unfed_end: Callable[[], None] | None = None
    ) -> None:
        """Start it; with ``on_unfed_end`` its input outlives it, even after us."""
        self.loop = asyncio.get_running_loop()
        self._spec = spec
        self._on_unfed_end = on_unfed_end
        self._keeper = 0
        self._other_end: int | None = None
        self.has_read = True
        """Whether its input was read, once it has ended; known if it was held."""
        if on_unfed_end is None:
            pid, pipes = start(spec)
        else:
            pid, pipes, self._keeper = start_held(spec)
        self._finished: asyncio.Future[None] = self.loop.create_future()
        self._exited: asyncio.Future[None] | None = None
        self._timed_out = False
        self._stdout_open = False
        self._timers: list[asyncio.TimerHandle] = []
        try:
            self.group = ProcessGroup(pid, self.loop, self._ended)
        except OSError:
            close_own(*pipes)
            watcher.end_keeper(self._keeper)
            raise
        stdin, stdout, stderr = pipes
        limit = spec.max_output_bytes
        self._stdin = Feeder(self.loop, stdin)
        self._out = Collector(self.loop, stdout, limit, self._stream_ended)
        self._err = Collector(self.loop, stderr, limit, self._stream_ended)

    def feed(self, payload: bytes, on_start: OnStart | None = None) -> bool:
        """Write its input and start its timeout; False if nobody can read it."""
        if on_start is not None:
            self._out.on_start = partial(self._starts, on_start)
        # Most hooks print little and end soon: reading their pipes once at the end
        # saves a wake-up for every piece of output.
        timeout_s = self._spec.timeout_s
        if len(payload) > PIPE_SIZE or timeout_s <= UNWATCHED_S:
            self._settle(timeout_s)
        else:
            self._after(UNWATCHED_S, self._settle, timeout_s - UNWATCHED_S)
        self._stdin.write(payload)
        self._on_unfed_end = None
        if self._keeper:
            self._other_end = watcher.other_end(self._keeper)
            # Not before the event is written: if the host dies now, it ends as well.
            watcher.end_keeper(self._keeper, wait=False)
        return not self._stdin.failed

    async def finish(self, started: float) -> RunEnd:
        """Wait for its end; cancelling the caller kills its whole group."""
        try:
            await self._finished
        except asyncio.CancelledError:
            await self.abort()
            raise
        finally:
            self.close()
        out, err = self._out, self._err
        stdout, stderr = out.data(), err.data()
        return RunEnd(
            exit_code=self.group.exit_code,
            stdout=as_text(stdout),
            stderr=as_text(stderr),
            stdout_open=self._stdout_open,
            stdout_truncated=out.truncated,
            truncated=out.truncated or err.truncated,
            cause=FailureCause.TIMEOUT if self._timed_out else None,
            started=started,
            cwd=self._spec.cwd,
        )

    async def abort(self) -> None:
        """Kill the group and wait until it is gone."""
        self.group.kill()  # also what an ended leader left behind
        if not self.group.reaped:
            self._exited = self.loop.create_future()
            await asyncio.wait({self._exited}, timeout=_ABORT_S)
        await self.group.wait_gone(_ABORT_S)

    def close(self) -> None:
        """Close the pipes and timers; a child still running is reaped when it ends."""
        for timer in self._timers:
            timer.cancel()
        if self._other_end is not None:
            self.has_read = _unread(self._other_end) < self._stdin.written
            close_own(self._other_end)
            self._other_end = None
        self._stdin.close()
        self._out.close()
        self._err.close()
        self.group.release()
        if self._keeper:
            watcher.end_keeper(self._keeper)

    def abandon(self) -> None:
        """Kill and reap it at once, without the event loop, which may be closed."""
        self._on_unfed_end = None
        self.group.abandon()
        self.close()

    def _ended(self) -> None:
        if self._on_unfed_end is not None:
            self.group.kill()  # what it left behind shares its input
            self.close()
            self._on_unfed_end()
        elif self._exited is not None:
            self._exited.set_result(None)
        elif not self._finished.done():
            self._after_exit()

    def _after_exit(self) -> None:
        if self._timed_out:
            self._await_group(POLL_FIRST_S)
            return
        self._out.drain()
        self._err.drain()
        if self._out.ended and self._err.ended:
            self._finish()
        else:
            self._watch()
            self._after(DRAIN_S, self._stop_reading)

    def _stop_reading(self) -> None:
        self._stdout_open = not self._out.ended
        self._finish()

    def _settle(self, timeout_s: float) -> None:
        """Start the timeout and watch the output of a longer run."""
        self._after(timeout_s, self._time_out)
        self._watch()

    def _watch(self) -> None:
        self._out.watch()
        self._err.watch()

    def _starts(self, on_start: OnStart, line: bytes) -> bool:
        """Take the time that the beginning of its output asks for."""
        timeout_s = on_start(line)
        if timeout_s is None:
            return False
        if not self.group.reaped and not self._timed_out:
            for timer in self._timers:
                timer.cancel()
            self._settle(timeout_s)
        return True

    def _stream_ended(self) -> None:
        exited = self.group.reaped and not self._timed_out
        if exited and self._out.ended and self._err.ended:
            self._finish()

    def _time_out(self) -> None:
        if self.group.reaped:
            return
        self._timed_out = True
        self.group.terminate()
        self._after(self._spec.grace_s, self._kill)

    def _await_group(self, delay: float) -> None:
        """Wait until everything that the leader started is gone."""
        if not self.group.lives():
            self._finish()
        elif not self._finished.done():
            self._after(delay, self._await_group, min(delay * 2, POLL_LAST_S))

    def _kill(self) -> None:
        self.group.kill()
        self._after(DRAIN_S, self._finish)

    def _finish(self) -> None:
        if not self._finished.done():
            self._finished.set_result(None)

    def _after(self, delay: float, call: Callable[..., None], *args: object) -> None:
        self._timers.append(self.loop.call_later(delay, call, *args))


class ProcessSlots:
    """A limit on concurrent processes of each event loop; waiters get slots in order.

    Loops share nothing: one that is blocked or closed must not keep a slot from another
    (``fire_sync`` blocks a loop whose hooks are running).
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._loops: dict[tuple[int, asyncio.AbstractEventLoop], _LoopSlots] = {}

    @property
    def free(self) -> int:
        """How many could be taken now."""
        return max(0, self._limit - self._here().held)

    def resize(self, limit: int) -> None:
        """Change the limit; what is held beyond it is given back in its time."""
        self._limit = limit
        for (process, loop), slots in tuple(self._loops.items()):
            with suppress(RuntimeError):  # it is closed
                if process == os.getpid():
                    loop.call_soon_threadsafe(self._hand_out, slots)

    async def acquire(self) -> None:
        """Take a slot, or wait for one."""
        slots = self._here()
        if slots.held < self._limit:
            slots.held += 1
            return
        turn = asyncio.get_running_loop().create_future()
        slots.waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()  # handed over just before the cancellation
            raise

    def release(self) -> None:
        """Give the slot to the next waiter, or put it back."""
        slots = self._here()
        slots.held -= 1
        self._hand_out(slots)

    def _hand_out(self, slots: _LoopSlots) -> None:
        while slots.waiting and slots.held < self._limit:
            turn = slots.waiting.popleft()
            if not turn.done():  # else it was cancelled
                slots.held += 1
                turn.set_result(None)

    def _here(self) -> _LoopSlots:
        # What was taken before a fork is never given back in it.
        key = os.getpid(), asyncio.get_running_loop()
        slots = self._loops.get(key)
        if slots is None:
            self._loops[key] = slots = _LoopSlots()
            for process, loop in tuple(self._loops):
                if loop.is_closed():
                    self._loops.pop((process, loop), None)
        return slots

    __aenter__ = acquire

    async def __aexit__(self, *_: object) -> None:
        self.release()


class _LoopSlots:
    """The slots of one event loop."""

    def __init__(self) -> None:
        self.held = 0
        self.waiting: deque[asyncio.Future[None]] = deque()
