"""Run one child process: feed it, limit its output, time it out, kill and reap it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from subprocess import SubprocessError

from msgspec import Struct

from .spawn import POLL_FIRST_S, POLL_LAST_S, ProcessGroup, spawn

_READ_SIZE = 64 * 1024
_DRAIN_READS = 64
PIPE_SIZE = 64 * 1024
"""What a pipe holds, as a rule, before its writer has to wait."""


_F_SETPIPE_SZ: int | None = getattr(fcntl, "F_SETPIPE_SZ", None)
_BIG_PIPE_SIZE = 256 * 1024  # much more would no longer fit the processor's cache


class PipeEnds(Struct, frozen=True):
    """Descriptors for stdin, stdout and stderr: the child's and the parent's ends."""

    child: tuple[int, int, int]
    parent: tuple[int, int, int]

    def close_child(self) -> None:
        """Close the ends that belong to the child alone once it runs."""
        for fd in self.child:
            os.close(fd)

    def close_parent(self) -> None:
        """Close the ends that nobody will use, since nothing was started."""
        for fd in self.parent:
            os.close(fd)


def open_pipes() -> PipeEnds:
    """Open three pipes; where descriptors run out, none stays open."""
    opened: list[int] = []
    try:
        for _ in range(3):
            opened += os.pipe()
    except OSError:
        for fd in opened:
            os.close(fd)
        raise
    in_read, in_write, out_read, out_write, err_read, err_write = opened
    for fd in (in_write, out_read, err_read):
        os.set_blocking(fd, False)
    return PipeEnds((in_read, out_write, err_write), (in_write, out_read, err_read))


class Feeder:
    """Writes one payload into a pipe and closes it, also where nobody reads."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, fd: int, payload: bytes
    ) -> None:
        self._loop = loop
        self._fd = fd
        self._rest = memoryview(payload)
        self._open = True
        self._waiting = False
        if len(payload) > PIPE_SIZE:
            _enlarge(fd)
        self._write()

    def close(self) -> None:
        """Close the pipe, written or not."""
        if self._open:
            self._open = False
            if self._waiting:
                self._loop.remove_writer(self._fd)
            os.close(self._fd)

    def _write(self) -> None:
        try:
            self._rest = self._rest[os.write(self._fd, self._rest) :]
        except BlockingIOError:
            pass
        except OSError:
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

    def watch(self) -> None:
        """Read whenever there is something, from now on."""
        if not self.ended and not self._watched:
            self._loop.add_reader(self._fd, self._on_readable)
            self._watched = True

    def data(self) -> bytes:
        """What was kept."""
        return b"".join(self._pieces)

    def drain(self) -> None:
        """Read what is there already; an endless writer gets a bounded share."""
        for _ in range(_DRAIN_READS):
            if not self._read():
                return

    def close(self) -> None:
        """Stop reading."""
        if not self.ended:
            self.ended = True
            if self._watched:
                self._loop.remove_reader(self._fd)
            os.close(self._fd)

    def _on_readable(self) -> None:
        if not self._read() and self.ended:
            self._on_end()

    def _read(self) -> bool:
        """Read once; False where nothing is there now or ever."""
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


def _enlarge(fd: int) -> None:
    """Spare the loop wake-ups for a big payload, where the kernel grants it."""
    if _F_SETPIPE_SZ is not None:
        try:
            fcntl.fcntl(fd, _F_SETPIPE_SZ, _BIG_PIPE_SIZE)
        except OSError:
            pass  # over the user's share of pipe memory: the default size works too


GRACE_S = 5.0
"""From SIGTERM to SIGKILL."""

DRAIN_S = 0.25
"""How long output is still read after the child's own exit."""

UNWATCHED_S = 0.005
"""How long nobody looks at the output of a young child, unless it ends."""

_ABORT_S = 1.0  # SIGKILL works at once, unless the kernel itself is stuck.


class DirectStart(Struct, frozen=True):
    """How to start the same program without its shell."""

    program: str
    argv: Sequence[str]
    env: Mapping[str, str]


class ProcessSpec(Struct, frozen=True, kw_only=True):
    """What to run and within which bounds."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    stdin: bytes
    timeout_s: float
    max_output_bytes: int
    grace_s: float = GRACE_S
    direct: DirectStart | None = None
    """Tried first; where it cannot be executed, ``argv`` is started after all."""


class ProcessOutcome(Struct, frozen=True, kw_only=True):
    """How a process ended; a program that cannot be started is an outcome too."""

    exit_code: int | None = None
    """Minus the signal number where a signal ended it; None where it never ran."""
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    timed_out: bool = False
    spawn_error: str | None = None
    duration_ms: float = 0.0


async def run_process(spec: ProcessSpec) -> ProcessOutcome:
    """Run one process to its end; cancelling the caller kills its whole group."""
    started = time.perf_counter()
    try:
        child = _spawn(spec)
    except (OSError, ValueError, SubprocessError) as error:
        return ProcessOutcome(
            spawn_error=_explain(error, spec),
            duration_ms=(time.perf_counter() - started) * 1000,
        )
    try:
        await child.finished
    except asyncio.CancelledError:
        await child.abort()
        raise
    finally:
        child.close()
    return child.outcome((time.perf_counter() - started) * 1000)


def _spawn(spec: ProcessSpec) -> _Child:
    pipes = open_pipes()
    try:
        pid = start_program(spec, pipes)
    except BaseException:
        pipes.close_parent()
        raise
    finally:
        pipes.close_child()
    try:
        return _Child(pid, pipes, spec)
    except OSError:
        # The event loop cannot watch it (no descriptor left): it must not run on.
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        pipes.close_parent()
        raise


def start_program(spec: ProcessSpec, pipes: PipeEnds) -> int:
    """Start the program and return its process id; raises ``OSError``."""
    if spec.direct is not None:
        direct = spec.direct
        try:
            return spawn(direct.argv, spec.cwd, direct.env, pipes.child, direct.program)
        except OSError:
            pass  # a script without "#!", say: nothing has run yet, the shell knows
    return spawn(spec.argv, spec.cwd, spec.env, pipes.child)


def _explain(error: Exception, spec: ProcessSpec) -> str:
    if isinstance(error, OSError):
        if not os.path.isdir(spec.cwd):  # noqa: PTH112 - no Path on this path
            return f"could not start: the working directory {spec.cwd!r} is missing"
        return f"could not start {spec.argv[0]!r}: {error.strerror or error}"
    return f"could not start: {error}"


class _Child:
    """A running process and everything that is open for it.

    ``finished`` is resolved when the outcome is known. All of it runs in callbacks of
    the event loop: no thread, and no task per stream.
    """

    def __init__(self, pid: int, pipes: PipeEnds, spec: ProcessSpec) -> None:
        self._spec = spec
        self._loop = asyncio.get_running_loop()
        self.finished: asyncio.Future[None] = self._loop.create_future()
        self._exited: asyncio.Future[None] | None = None
        self._timed_out = False
        self._timers: list[asyncio.TimerHandle] = []
        self._group = ProcessGroup(pid, self._loop, self._ended)
        stdin, stdout, stderr = pipes.parent
        limit = spec.max_output_bytes
        self._out = Collector(self._loop, stdout, limit, self._stream_ended)
        self._err = Collector(self._loop, stderr, limit, self._stream_ended)
        # Most hooks say little and end soon: one look at their pipes when they have
        # ended saves a wake-up for every piece and every end of a stream.
        if len(spec.stdin) > PIPE_SIZE or spec.timeout_s <= UNWATCHED_S:
            self._settle(spec.timeout_s)
        else:
            self._after(UNWATCHED_S, self._settle, spec.timeout_s - UNWATCHED_S)
        self._stdin = Feeder(self._loop, stdin, spec.stdin)

    def outcome(self, duration_ms: float) -> ProcessOutcome:
        return ProcessOutcome(
            exit_code=self._group.exit_code,
            stdout=self._out.data(),
            stderr=self._err.data(),
            stdout_truncated=self._out.truncated,
            stderr_truncated=self._err.truncated,
            timed_out=self._timed_out,
            duration_ms=duration_ms,
        )

    async def abort(self) -> None:
        """Kill the group at once and wait for its leader to be gone."""
        self._group.kill()  # what a leader left behind too, be it gone already
        if self._group.reaped:
            return
        self._exited = self._loop.create_future()
        await asyncio.wait({self._exited}, timeout=_ABORT_S)

    def close(self) -> None:
        """Close the pipes and timers; a child not yet dead is reaped when it dies."""
        for timer in self._timers:
            timer.cancel()
        self._stdin.close()
        self._out.close()
        self._err.close()

    def _ended(self) -> None:
        if self._exited is not None:
            self._exited.set_result(None)
        elif not self.finished.done():
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
            self._after(DRAIN_S, self._finish)

    def _settle(self, timeout_s: float) -> None:
        """Treat it as one that takes its time."""
        self._after(timeout_s, self._time_out)
        self._watch()

    def _watch(self) -> None:
        self._out.watch()
        self._err.watch()

    def _stream_ended(self) -> None:
        if not self._group.reaped or self._timed_out:
            return
        if self._out.ended and self._err.ended:
            self._finish()

    def _time_out(self) -> None:
        if self._group.reaped:
            return
        self._timed_out = True
        self._group.signal(signal.SIGTERM)
        self._after(self._spec.grace_s, self._kill)

    def _await_group(self, delay: float) -> None:
        """Wait for what the leader started, so that nothing of it is left behind."""
        if self.finished.done():
            return
        if not self._group.lives():
            self._finish()
            return
        self._after(delay, self._await_group, min(delay * 2, POLL_LAST_S))

    def _kill(self) -> None:
        self._group.kill()
        self._after(DRAIN_S, self._finish)

    def _finish(self) -> None:
        if not self.finished.done():
            self.finished.set_result(None)

    def _after(self, delay: float, call: Callable[..., None], *args: object) -> None:
        self._timers.append(self._loop.call_later(delay, call, *args))
