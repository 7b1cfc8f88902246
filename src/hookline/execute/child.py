"""Run one child process: start it, feed it, limit its output, time it out, reap it.

A child leads a process group of its own, which ends with the host (decision 0003).
Everything runs in callbacks of the event loop: no threads, no task per stream.
"""

from __future__ import annotations

import asyncio
import codecs
import errno
import fcntl
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from os import WNOHANG, killpg
from signal import SIGKILL
from subprocess import Popen, SubprocessError
from termios import FIONREAD
from typing import Any

from msgspec import Struct

from hookline.plan import OnStart, RunEnd
from hookline.protocol.results import FailureCause

from .watchdog import fork_lock, group_lives, own_fds, watcher

GRACE_S = 5.0
"""From SIGTERM to SIGKILL."""
DRAIN_S = 0.25
"""How long output is still read after the child exits."""
_UNWATCHED_S = 0.005  # output is not watched before, unless the child ends
_PIPE_SIZE = 64 * 1024  # what a pipe usually holds
_BIG_PIPE_SIZE = 256 * 1024  # a larger one does not fit the CPU cache
_READ_SIZE = 64 * 1024
_DRAIN_READS = 64
_POLL_FIRST_S, _POLL_LAST_S = 0.002, 0.05
_ABORT_S = 1.0  # SIGKILL works at once, unless the kernel is stuck

Streams = tuple[int, int, int]
"""Stdin, stdout and stderr."""

_MARKS = (  # UTF-32 first: its mark starts with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Program(Struct, frozen=True):
    """A program to execute without a shell."""

    path: str
    argv: Sequence[str]


class ProcessSpec(Struct, frozen=True, kw_only=True):
    """What to run, and its limits."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    stdin: bytes
    timeout_s: float
    max_output_bytes: int
    direct: Program | None = None
    """The same without a shell; if it cannot be executed, ``argv`` is started."""
    on_start: OnStart | None = None
    """Is shown the first line of its output, also while it is incomplete; gives the
    seconds that it has from then on, or None to leave that as it is."""


def start(
    spec: ProcessSpec, on_exit: Callable[[], None]
) -> tuple[ProcessGroup, Streams]:
    """Start a program that ends with the host: its group and our ends of its pipes."""
    with fork_lock:
        opened: list[int] = []
        pid = None
        if not watcher.pipes:
            watcher.start_shell()
        watcher.is_starting = True
        try:
            for _ in range(3):
                opened += os.pipe()
            stdin, in_end, out_end, stdout, err_end, stderr = opened
            streams = stdin, stdout, stderr
            pid = _spawn(spec, streams)
        except BaseException:
            for fd in opened:
                os.close(fd)
            raise
        finally:
            watcher.started(pid)
        for fd in streams:
            os.close(fd)
        pipes = in_end, out_end, err_end
        for fd in pipes:
            os.set_blocking(fd, False)
        own_fds.update(pipes)
    try:
        return ProcessGroup(pid, asyncio.get_running_loop(), on_exit), pipes
    except OSError:
        close_own(*pipes)
        raise


def _spawn(spec: ProcessSpec, streams: Streams) -> int:
    # A session of its own only where a terminal must be kept from it: Linux schedules
    # sessions as groups, and a new one starts without credit.
    has_terminal = _has_terminal(int(time.monotonic()))

    def popen(words: Sequence[str | bytes], env: Any, program: str) -> int:
        child = Popen(
            words,
            executable=program,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            cwd=spec.cwd,
            env=env,
            start_new_session=has_terminal,
            process_group=None if has_terminal else 0,
        )
        child.returncode = 0  # reaped here, not by Popen
        return child.pid

    if spec.direct is not None:
        # A script without "#!", for example: the shell can still run it.
        with suppress(OSError, UnicodeEncodeError):
            return popen(spec.direct.argv, spec.env, spec.direct.path)
    try:
        return popen(spec.argv, spec.env, spec.argv[0])
    except UnicodeEncodeError:  # no character keeps a hook from starting
        words = [_encoded(word) for word in spec.argv]
        env = {_encoded(name): _encoded(text) for name, text in spec.env.items()}
        return popen(words, env, spec.argv[0])


@lru_cache(maxsize=1)
def _has_terminal(_second: int) -> bool:
    """Whether a child in this session could open a terminal; looks once a second."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError as error:
        return error.errno not in {errno.ENXIO, errno.ENOENT}
    return True


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate
        return text.encode("utf-8", "replace")


def close_own(*fds: int) -> None:
    """Close the host's ends of what ``start`` opened."""
    with fork_lock:
        for fd in fds:
            own_fds.discard(fd)
            os.close(fd)


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
        self._pidfd = -1
        if sys.platform == "linux":
            with suppress(AttributeError, OSError):  # an old C library, none left
                self._pidfd = os.pidfd_open(pid)
                own_fds.add(self._pidfd)
        try:
            if self._pidfd >= 0:
                loop.add_reader(self._pidfd, self.has_ended)
            else:
                loop.call_later(_POLL_FIRST_S, self._poll, _POLL_FIRST_S)
        except BaseException:
            # A child that cannot be watched must not go on running.
            self.abandon()
            raise

    def signal(self, number: signal.Signals) -> None:
        """Signal the whole group."""
        if self._host == os.getpid():  # in a fork these are the groups of the host
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
        deadline, delay = self.loop.time() + limit_s, _POLL_FIRST_S
        while self.lives() and self.loop.time() < deadline:
            await asyncio.sleep(delay)
            delay = min(delay * 2, _POLL_LAST_S)
        if self.reaped:
            self._reap_orphans()

    def has_ended(self) -> bool:
        """Reap the child if it has ended, whatever the event loop has seen so far."""
        if self.reaped:
            return True
        status: int | None = None
        try:
            if sys.platform == "linux":
                options = os.WEXITED | os.WNOHANG | os.WNOWAIT
                if os.waitid(os.P_PID, self.pid, options) is None:
                    return False
                if not self._terminated:
                    watcher.release(self.pid)  # before its number can be reused
            pid, status = os.waitpid(self.pid, WNOHANG)
            if pid == 0:
                return False
        except ChildProcessError:
            pass  # the host ignores SIGCHLD or reaps all children: the status is lost
        if status is not None:
            self.exit_code = os.waitstatus_to_exitcode(status)
        self._reaped()
        self._on_exit()
        del self._on_exit  # a cycle would keep the input, which may be large
        return True

    def abandon(self) -> None:
        """Kill and reap at once, without the event loop, which may be closed."""
        self.kill()
        self._terminated = False
        if not self.reaped:
            with suppress(ChildProcessError):  # already reaped
                os.waitpid(self.pid, 0)
        self._reaped()

    def _reaped(self) -> None:
        self.reaped = True
        if not self._terminated and self.pid in watcher.groups:
            watcher.release(self.pid)
        if self._pidfd >= 0:
            if not self.loop.is_closed():
                self.loop.remove_reader(self._pidfd)
            close_own(self._pidfd)
            self._pidfd = -1

    def _poll(self, delay: float) -> None:
        if not self.has_ended():
            delay = min(delay * 2, _POLL_LAST_S)
            self.loop.call_later(delay, self._poll, delay)

    def _reap_orphans(self) -> None:
        """Reap what the leader left behind if the host has inherited it.

        The first process of a container does, and nobody else would.
        """
        with suppress(ChildProcessError):
            while os.waitpid(-self.pid, WNOHANG)[0]:
                pass


class Feeder:
    """Writes into a pipe, even if nobody reads."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        on_failure: Callable[[], None] | None = None,
    ) -> None:
        self._loop = loop
        self._fd = fd
        self._on_failure = on_failure
        self._unsent = memoryview(b"")
        self._size = 0
        self._is_last = True
        self.is_closed = False
        self._waiting = False
        self.failed = False
        """Nobody can read it any more."""

    @property
    def written(self) -> int:
        """How many bytes are in the pipe, or were."""
        return self._size - len(self._unsent)

    def write(self, payload: bytes, *, is_last: bool = True) -> None:
        """Write all of it, now or when there is room; close the pipe after the last."""
        self._unsent, self._size = memoryview(payload), len(payload)
        self._is_last = is_last
        if self._size > _PIPE_SIZE and sys.platform == "linux":
            # Fewer wake-ups of the event loop. Over the user's limit of pipe memory
            # the default size will do.
            with suppress(OSError):
                fcntl.fcntl(self._fd, fcntl.F_SETPIPE_SZ, _BIG_PIPE_SIZE)
        self._write()

    def close(self) -> None:
        """Close the pipe, written or not."""
        if not self.is_closed:
            self.is_closed = True
            if self._waiting and not self._loop.is_closed():
                self._loop.remove_writer(self._fd)
            close_own(self._fd)

    def _write(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._fd, self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            self.failed = True
        if self.failed or (self._is_last and not self._unsent):
            self.close()
        elif self._unsent and not self._waiting:
            self._waiting = True
            self._loop.add_writer(self._fd, self._write)
        elif self._waiting and not self._unsent:
            self._waiting = False
            self._loop.remove_writer(self._fd)
        if self.failed and self._on_failure is not None:
            self._on_failure()


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
            self._loop.add_reader(self._fd, self._read)
            self._watched = True

    def data(self) -> bytes:
        """The output that was kept."""
        return b"".join(self._pieces)

    def drain(self) -> None:
        """Read what is already there, the rest of an endless writer as it arrives."""
        for _ in range(_DRAIN_READS):
            if not self._read():
                break
        self.watch()

    def close(self) -> None:
        """Stop reading."""
        if not self.ended:
            self.ended = True
            if self._watched and not self._loop.is_closed():
                self._loop.remove_reader(self._fd)
            close_own(self._fd)
            del self._on_end  # as in ``ProcessGroup``

    def _read(self) -> bool:
        """Read once; False if there is nothing to read."""
        if self.ended:
            return False
        try:
            piece = os.read(self._fd, _READ_SIZE)
        except BlockingIOError:
            return False
        if not piece:
            self._on_end()
            self.close()
            return False
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
        return True


async def run_process(spec: ProcessSpec) -> RunEnd:
    """Run one process to its end; cancelling the caller kills its whole group."""
    started = time.perf_counter()
    try:
        child = Child(spec)
    except (OSError, ValueError, SubprocessError) as error:
        return RunEnd(
            cause=FailureCause.SPAWN,
            error=f"could not start{_explain(error, spec)}",
            started=started,
            cwd=spec.cwd,
        )
    child.feed(spec.stdin, spec.on_start)
    return await child.finish(started)


def _explain(error: Exception, spec: ProcessSpec) -> str:
    if not isinstance(error, OSError):
        return f": {error}"
    if not os.path.isdir(spec.cwd):  # noqa: PTH112 - no Path on this path
        return f": the working directory {spec.cwd!r} is missing"
    return f" {spec.argv[0]!r}: {error.strerror or error}"


class Child:
    """A running process with its pipes.

    Until it is fed it waits for its input: nothing of its output is read, so that it
    waits with that too once a pipe is full.
    """

    def __init__(
        self, spec: ProcessSpec, on_unfed_end: Callable[[], None] | None = None
    ) -> None:
        """Start it; ``on_unfed_end`` is called if it ends before it is fed."""
        self.loop = asyncio.get_running_loop()
        self._spec = spec
        self._on_unfed_end = on_unfed_end
        self._deadline = 0.0
        self._news: asyncio.Future[None] | None = None
        self._other_end = -1
        self.has_read = True
        """Whether its input was read, once it has ended; known if it had to wait."""
        self.group, pipes = start(spec, self._ended)
        limit = spec.max_output_bytes
        self._stdin_fd, stdout, stderr = pipes
        self._stdin = Feeder(self.loop, self._stdin_fd)
        self._out = Collector(self.loop, stdout, limit, self._tell)
        self._err = Collector(self.loop, stderr, limit, self._tell)

    def feed(self, payload: bytes, on_start: OnStart | None = None) -> bool:
        """Write its input and start its timeout; False if nobody can read it."""
        self._deadline = self.loop.time() + self._spec.timeout_s
        if on_start is not None:
            self._out.on_start = partial(self._starts, on_start)
        if self._on_unfed_end is not None:
            self._on_unfed_end = None
            if sys.platform == "linux":
                poll = select.poll()
                poll.register(self._stdin_fd, 0)
                if not poll.poll(0):  # else nobody reads, and writing has to fail
                    # To see afterwards how much of its input was read.
                    path = f"/proc/self/fd/{self._stdin_fd}"
                    with fork_lock, suppress(OSError):
                        self._other_end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                        own_fds.add(self._other_end)
        self._stdin.write(payload)
        return not self._stdin.failed

    async def finish(self, started: float) -> RunEnd:
        """Wait for its end; cancelling the caller kills its whole group."""
        group, out, err = self.group, self._out, self._err
        stdout_open = timed_out = False
        try:
            if self._stdin.is_closed:
                # Most hooks print little and end soon: reading their pipes once at the
                # end saves a wake-up for every piece of output.
                soon = self.loop.time() + _UNWATCHED_S
                await self._wait(min(soon, self._deadline))
            if not group.reaped:
                out.watch()
                err.watch()
            while not group.has_ended() and await self._wait(self._deadline):
                pass
            if group.has_ended():
                out.drain()
                err.drain()
                drained_by = self.loop.time() + DRAIN_S
                while not (out.ended and err.ended) and await self._wait(drained_by):
                    pass
                stdout_open = not out.ended
            else:
                timed_out = True
                group.terminate()
                killed_at = self.loop.time() + GRACE_S
                while not group.has_ended() and await self._wait(killed_at):
                    pass
                await group.wait_gone(killed_at - self.loop.time())
                group.kill()
                await group.wait_gone(DRAIN_S)
                out.drain()
                err.drain()
        except asyncio.CancelledError:
            await self.abort()
            raise
        finally:
            self.close()
        stdout, stderr = out.data(), err.data()
        return RunEnd(
            exit_code=group.exit_code,
            stdout=as_text(stdout),
            stderr=as_text(stderr),
            stdout_open=stdout_open,
            stdout_truncated=out.truncated,
            truncated=out.truncated or err.truncated,
            cause=FailureCause.TIMEOUT if timed_out else None,
            started=started,
            cwd=self._spec.cwd,
        )

    async def abort(self) -> None:
        """Kill the group and wait until it is gone."""
        self.group.kill()  # also what an ended leader left behind
        await self.group.wait_gone(_ABORT_S)

    def close(self) -> None:
        """Close the pipes; a child still running is reaped when it ends."""
        if self._other_end >= 0:
            unread = fcntl.ioctl(self._other_end, FIONREAD, bytes(4))
            unread_bytes = int.from_bytes(unread, sys.byteorder)
            self.has_read = unread_bytes < self._stdin.written
            close_own(self._other_end)
            self._other_end = -1
        self._stdin.close()
        self._out.close()
        self._err.close()
        self.group.release()

    def abandon(self) -> None:
        """Kill and reap it at once, without the event loop, which may be closed."""
        self._on_unfed_end = None
        self.group.abandon()
        self.close()

    def _ended(self) -> None:
        if self._on_unfed_end is None:
            self._tell()
        else:
            self.group.kill()  # what it left behind shares its input
            self.close()
            self._on_unfed_end()

    def _starts(self, on_start: OnStart, line: bytes) -> bool:
        """Take the time that the beginning of its output asks for."""
        timeout_s = on_start(line)
        if timeout_s is not None:
            self._deadline = self.loop.time() + timeout_s
            self._tell()
        return timeout_s is not None

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def _wait(self, deadline: float) -> bool:
        """Wait for news of the process, until a moment; False if that is over."""
        left_s = deadline - self.loop.time()
        if left_s <= 0:
            return False
        self._news = self.loop.create_future()
        timer = self.loop.call_later(left_s, self._tell)
        try:
            await self._news
        finally:
            timer.cancel()
        return True


def as_text(stream: bytes) -> str:
    """Decode a complete stream and trim it; a byte order mark says how."""
    encoding = "utf-8"
    for mark, marked_encoding in _MARKS:
        if stream.startswith(mark):
            encoding = marked_encoding
            with suppress(UnicodeDecodeError):
                return trimmed(stream[len(mark) :].decode(encoding))
    return trimmed(stream.decode(encoding, "replace"))


def trimmed(text: str) -> str:
    """A text without what surrounds it, byte order marks included."""
    return text.strip().strip("\ufeff").strip()
