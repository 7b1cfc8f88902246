"""Start processes that end with the host, however it dies.

One small shell per host waits at a pipe whose other end only the host holds. The
kernel closes that end with the host, also on SIGKILL; the shell then kills the process
groups listed in a table (decision 0103). The table is a file in memory: keeping it up
to date wakes nobody.

A fork of the host has nothing of its hooks: it keeps no pipe of theirs open and takes
none out of the event loop that it shares with the host.
"""

from __future__ import annotations

import atexit
import errno
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from os import O_NONBLOCK, WNOHANG, killpg, pwrite, register_at_fork, set_blocking
from signal import SIGKILL

from hookline._internal.log import logger

from .spawn import ProcessSpec, Program, Streams, spawn

_SCRIPT = """\
trap '' HUP INT QUIT TERM PIPE
read -r end
while read -r state group pipe; do
  case $state in
    +) kill -s KILL -- "-$group" ;;
    '~') ls -l /proc/[0-9]*/fd/0 | while read -r line; do
           case $line in *" -> pipe:[$pipe]")
             pid=${line#* /proc/}
             pid=${pid%%/*}
             kill -s KILL -- "-$pid" "$pid" ;;
           esac
         done ;;
  esac
done <&1 2>/dev/null
"""
# BusyBox finds its shell by the first word: the name comes last.
_SHELL = Program(
    "/bin/sh", ("/bin/sh", "-c", _SCRIPT, "hookline-watch"), {"PATH": "/usr/bin:/bin"}
)
_WAIT = """\
trap '' HUP INT QUIT TERM
while read -r line; do :; done
"""
_KEEPER = Program("/bin/sh", ("/bin/sh", "-c", _WAIT, "hookline-keep"), {})
_FREE, _STARTING, _RUNNING = ".", "~", "+"
_ROW_BYTES = 33
_GONE_S = 0.5
_POLL_S = 0.001


fork_lock = threading.RLock()
"""Held while descriptors are opened or closed: no fork happens meanwhile."""
own_fds: set[int] = set()
"""The host's ends of the pipes to its hooks, and what else it has of them."""


class Watcher:
    """The process groups that end with the host; safe to use from any thread."""

    def __init__(self) -> None:
        self._has_warned = False
        self._is_missing = False
        self._reset()

    def _reset(self) -> None:
        self._rows: dict[int, int] = {}
        self._free: list[int] = []
        self._total = 0
        self._table: int | None = None
        self._lifeline: int | None = None
        self._shell = 0
        self._shell_end: int | None = None
        self._keepers: set[int] = set()
        self._on_started: Callable[[], None] | None = None

    def expect(self, stdin: int) -> int:
        """Reserve a row for a process about to start, known by its stdin alone."""
        with fork_lock:
            if not self._is_missing and not self._is_running():
                self._start()
            if self._free:
                row = self._free.pop()
            else:
                row, self._total = self._total, self._total + 1
            self._write(row, _STARTING, pipe=os.fstat(stdin).st_ino)
        return row

    def watch(self, row: int, group: int) -> None:
        """Fill in the number of the group that has started."""
        self._rows[group] = row
        self._write(row, _RUNNING, group)
        if self._on_started is not None:
            self._tell_started()

    def clear(self, row: int) -> None:
        """Free the row of a process that did not start or has ended."""
        self._write(row, _FREE)
        self._free.append(row)
        if self._on_started is not None:
            self._tell_started()

    def postpone(self, action: Callable[[], None]) -> bool:
        """Call it when the process that is being started is known; False if none is.

        For signal handlers: until its number is known, ``kill_all`` cannot kill it.
        Who asks a second time has waited long enough.
        """
        if self._on_started is not None:
            return False
        self._on_started = action
        if len(self._rows) + len(self._free) == self._total:
            self._on_started = None
            return False
        return True

    def _tell_started(self) -> None:
        action, self._on_started = self._on_started, None
        if action is not None:
            action()

    def release(self, group: int) -> None:
        """Leave a group alone from now on; its number may be reused."""
        row = self._rows.pop(group, None)
        if row is not None:
            self.clear(row)

    def keep_open(self, stdin: int) -> int:
        """Start a process that keeps a pipe open until the shell has done its work.

        So nobody who reads from it sees its end because the host died: it is killed
        first. Gives the process id for ``end_keeper``.
        """
        if self._shell_end is None:
            raise OSError(errno.ESRCH, "no process watches this host")
        null = os.open(os.devnull, os.O_RDWR)
        try:
            pid = spawn(_KEEPER, "/", (self._shell_end, stdin, null), new_session=True)
        finally:
            os.close(null)
        self._keepers.add(pid)
        return pid

    def other_end(self, keeper: int) -> int | None:
        """Open the reading end of the pipe that it keeps; None where that fails."""
        flags = os.O_RDONLY | O_NONBLOCK
        with fork_lock, suppress(OSError):  # not Linux, or the keeper is gone
            fd = os.open(f"/proc/{keeper}/fd/1", flags)
            own_fds.add(fd)
            return fd
        return None

    def end_keeper(self, pid: int, *, wait: bool = True) -> None:
        """End a keeper; its pipe is closed a moment later, or at once with ``wait``."""
        if pid in self._keepers:
            if wait:
                self._keepers.discard(pid)
            _end_process(pid, wait=wait)

    def kill_all(self) -> None:
        """Kill every group at once and wait until they are gone.

        Takes no lock: a signal handler may call it in the middle of anything.
        """
        groups = list(self._rows)
        for group in groups:
            with suppress(ProcessLookupError, PermissionError):
                killpg(group, SIGKILL)
        deadline = time.monotonic() + _GONE_S
        while any(map(group_lives, groups)) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        for group in groups:
            self.release(group)

    def stop(self) -> None:
        """End the shell if no group is left; the next process starts another."""
        with fork_lock:
            if len(self._free) == self._total:
                if self._shell:
                    _end_process(self._shell)
                self._close()
                self._reset()

    def disown(self) -> None:
        """In a forked child: the groups are the parent's, and so is the shell."""
        self._close()
        self._reset()
        # A copy of a pipe would keep a hook waiting for the end of its input; a
        # descriptor that is removed from epoll is removed for the host as well.
        # Their owners still close these numbers: another file has to take them.
        with suppress(OSError), open(os.devnull, "r+b") as null:  # noqa: PTH123
            for fd in own_fds:
                os.dup2(null.fileno(), fd, inheritable=False)

    def _start(self) -> None:
        try:
            if self._table is None:
                self._table = _memory_file()
            self._start_shell(self._table)
        except OSError as error:
            self._is_missing = isinstance(error, FileNotFoundError | PermissionError)
            self._warn(error)

    def _start_shell(self, table: int) -> None:
        reading, writing = os.pipe()
        try:
            shell_end, error_end = os.pipe()
        except OSError:
            _close_all((reading, writing))
            raise
        try:
            streams = reading, table, error_end
            self._shell = spawn(_SHELL, "/", streams, new_session=True)
        except OSError:
            _close_all((writing, shell_end))
            raise
        finally:
            _close_all((reading, error_end))
        for old in (self._lifeline, self._shell_end):
            if old is not None:
                os.close(old)  # of a shell that somebody killed
        self._lifeline, self._shell_end = writing, shell_end

    def _is_running(self) -> bool:
        if not self._shell:
            return False
        try:
            return os.waitpid(self._shell, WNOHANG)[0] == 0
        except ChildProcessError:
            # The host ignores SIGCHLD or reaps all children.
            return _exists(self._shell)

    def _close(self) -> None:
        for fd in (self._lifeline, self._shell_end, self._table):
            if fd is not None:
                os.close(fd)

    def _write(self, row: int, state: str, group: int = 0, pipe: int = 0) -> None:
        if self._table is None:
            return
        text = f"{state} {group:<10} {pipe:<19}\n".encode()
        try:
            pwrite(self._table, text, row * _ROW_BYTES)
        except OSError as error:
            self._warn(error)

    def _warn(self, error: OSError) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning("hooks may outlive this process if it is killed: %s", error)


def _end_process(pid: int, *, wait: bool = True) -> None:
    """Kill a child of ours and reap it, if it has not ended by itself."""
    with suppress(ChildProcessError):  # reaped by somebody else: not ours to kill
        if os.waitpid(pid, WNOHANG)[0] == 0:
            os.kill(pid, SIGKILL)
            if wait:
                os.waitpid(pid, 0)


def _memory_file() -> int:
    if sys.platform == "linux" and hasattr(os, "memfd_create"):
        return os.memfd_create("hookline-watch")
    from tempfile import TemporaryFile

    with TemporaryFile() as file:
        return os.dup(file.fileno())


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def group_lives(group: int) -> bool:
    """Whether a process group has members other than zombies."""
    try:
        killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # macOS does not count zombies, and says this of a group that has no others.
        return sys.platform != "darwin"
    return _has_members_beside_zombies(group)


def _has_members_beside_zombies(group: int) -> bool:
    # A container's first process may never reap orphans, and signalling a zombie
    # succeeds: only /proc tells them apart.
    try:
        pids = [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    except OSError:
        return True
    return any(_is_living_member(pid, group) for pid in pids) if pids else True


def _is_living_member(pid: str, group: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123
            fields = stat.read().rpartition(b")")[2].split()
    except OSError:
        return False
    return int(fields[2]) == group and fields[0] not in {b"Z", b"X"}


def _end() -> None:
    watcher.kill_all()
    watcher.stop()


watcher = Watcher()
"""The one of this process."""
atexit.register(_end)
register_at_fork(before=fork_lock.acquire, after_in_parent=fork_lock.release)
register_at_fork(after_in_child=watcher.disown)
register_at_fork(after_in_child=fork_lock.release)


def start(spec: ProcessSpec) -> tuple[int, Streams]:
    """Start a program that ends with the host: its pid and our ends of its pipes."""
    with fork_lock:
        return _start_locked(spec)[:2]


def start_held(spec: ProcessSpec) -> tuple[int, Streams, int]:
    """The same, with a keeper of its input: that does not end before the program."""
    with fork_lock:
        return _start_locked(spec, hold=True)


def _start_locked(spec: ProcessSpec, *, hold: bool = False) -> tuple[int, Streams, int]:
    child, own = _open_pipes()
    keeper = 0
    try:
        row = watcher.expect(child[0])
        try:
            keeper = watcher.keep_open(own[0]) if hold else 0
            pid = _start_program(spec, child)
        except BaseException:
            watcher.clear(row)
            watcher.end_keeper(keeper)
            raise
        watcher.watch(row, pid)
        own_fds.update(own)
    except BaseException:
        _close_all(own)
        raise
    finally:
        _close_all(child)
    return pid, own, keeper


def _close_all(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)


def _open_pipes() -> tuple[Streams, Streams]:
    """Open three pipes: the child's ends and ours; all or none."""
    opened: list[int] = []
    try:
        for _ in range(3):
            opened += os.pipe()
    except OSError:
        _close_all(opened)
        raise
    in_read, in_write, out_read, out_write, err_read, err_write = opened
    for fd in (in_write, out_read, err_read):
        set_blocking(fd, False)
    return (in_read, out_write, err_write), (in_write, out_read, err_read)


def _start_program(spec: ProcessSpec, streams: Streams) -> int:
    if spec.direct is not None:
        try:
            return spawn(spec.direct, spec.cwd, streams)
        except OSError:
            pass  # for example a script without "#!": the shell can still run it
    return spawn(Program(spec.argv[0], spec.argv, spec.env), spec.cwd, streams)
