"""End the processes of hooks with their host, however it dies.

One small shell per host waits at a pipe whose other end only the host holds. The
kernel closes that end with the host, also on SIGKILL. Then the shell reads another
pipe, which has a line for each process group that started or ended, and kills those
that are left (decision 0103).

A fork of the host has none of its hooks: it keeps no pipe of theirs open and takes
nothing out of the event loop that it shares with the host.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from os import WNOHANG, killpg, register_at_fork
from signal import SIGKILL

from hookline._internal.log import logger

_SCRIPT = """\
trap '' HUP INT QUIT TERM PIPE
read -r end
groups=' '
while read -r sign group; do
  case $sign in
    +) groups="$groups$group " ;;
    -) groups="${groups%% $group *} ${groups#* $group }" ;;
  esac
done <&1
for group in $groups; do kill -s KILL -- "-$group"; done
"""
# BusyBox finds its shell by the first word: the name comes last.
_SHELL = ("/bin/sh", "-c", _SCRIPT, "hookline-watch")
_GONE_S = 0.5
_POLL_S = 0.001
_PIPE_SIZE = 64 * 1024

fork_lock = threading.RLock()
"""Held while descriptors are opened or closed: no fork happens meanwhile."""
own_fds: set[int] = set()
"""The host's ends of the pipes to its hooks, and what else it has of them."""


class Watcher:
    """The process groups that end with the host; safe to use from any thread."""

    def __init__(self) -> None:
        self.groups: set[int] = set()
        self._shell = 0
        self.pipes: tuple[int, ...] = ()
        """The lifeline of the shell, and both ends of the pipe with its lines."""
        self._has_warned = False
        self.is_starting = False
        """Set while a process is being started; ``started`` follows."""
        self._postponed: Callable[[], None] | None = None

    def started(self, group: int | None) -> None:
        """End a group with the host from now on; None: it could not be started."""
        if group is not None:
            self.groups.add(group)
            if not self._is_running():
                self._end_shell()
                self.start_shell()
            else:
                try:
                    os.write(self.pipes[-1], b"+ %d\n" % group)
                except BlockingIOError:
                    self._rewrite()
        self.is_starting = False
        action, self._postponed = self._postponed, None
        if action is not None:
            action()

    def release(self, group: int) -> None:
        """Leave a group alone from now on; its number may be reused."""
        with fork_lock:
            if group in self.groups:
                self.groups.remove(group)
                try:
                    os.write(self.pipes[-1], b"- %d\n" % group)
                except (IndexError, BlockingIOError):
                    self._rewrite()

    def postpone(self, action: Callable[[], None]) -> bool:
        """Call it when the process that is being started is known; False if none is.

        For signal handlers: until its number is known, ``kill_all`` cannot kill it.
        Who asks a second time has waited long enough.
        """
        if not self.is_starting or self._postponed is not None:
            return False
        self._postponed = action
        return True

    def kill_all(self) -> None:
        """Kill every group at once and wait until they are gone."""
        groups = tuple(self.groups)
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
            if not self.groups:
                self._end_shell()

    def disown(self) -> None:
        """In a forked child: the groups are the parent's, and so is the shell."""
        self.groups.clear()
        self._shell, self.is_starting, self._postponed = 0, False, None
        # A copy of a pipe would keep a hook waiting for the end of its input; a
        # descriptor that is removed from epoll is removed for the host as well.
        # Their owners still close these numbers: another file has to take them.
        with suppress(OSError), open(os.devnull, "r+b") as null:  # noqa: PTH123
            for fd in own_fds:
                os.dup2(null.fileno(), fd, inheritable=False)
        self._end_shell()
        fork_lock.release()

    def _rewrite(self) -> None:
        """Make room in a full pipe: what is in it comes to the present groups."""
        if self.pipes:
            _, reading, writing = self.pipes
            os.read(reading, _PIPE_SIZE)
            os.write(writing, self._lines())

    def _lines(self) -> bytes:
        return b"".join(b"+ %d\n" % group for group in self.groups)

    def _is_running(self) -> bool:
        try:
            return self._shell > 0 and os.waitpid(self._shell, WNOHANG)[0] == 0
        except ChildProcessError:  # it has ended, and somebody else has reaped it
            return False

    def start_shell(self) -> None:
        """Start it before the first process, so that no process is without one."""
        opened: list[int] = []
        try:
            opened += os.pipe()
            opened += os.pipe()
            waiting, lifeline, reading, writing = opened
            os.set_blocking(writing, False)
            os.write(writing, self._lines())
            shell = subprocess.Popen(
                _SHELL,
                stdin=waiting,
                stdout=reading,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": "/usr/bin:/bin"},
                start_new_session=True,
            )
        except OSError as error:
            for fd in opened:
                os.close(fd)
            if not self._has_warned:
                self._has_warned = True
                problem = "hooks may outlive this process if it is killed: %s"
                logger.warning(problem, error)
            return
        shell.returncode = 0  # reaped here, not by Popen
        self._shell = shell.pid
        os.close(waiting)
        self.pipes = lifeline, reading, writing
        own_fds.update(self.pipes)

    def _end_shell(self) -> None:
        if self._is_running():
            os.kill(self._shell, SIGKILL)
            with suppress(ChildProcessError):  # the host ignores SIGCHLD
                os.waitpid(self._shell, 0)
        self._shell = 0
        for fd in self.pipes:
            own_fds.discard(fd)
            os.close(fd)
        self.pipes = ()


def group_lives(group: int) -> bool:
    """Whether a process group has members other than zombies."""
    try:
        killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # macOS does not count zombies, and says this of a group that has no others.
        return sys.platform != "darwin"
    # A container's first process may never reap orphans, and signalling a zombie
    # succeeds: only /proc tells them apart.
    try:
        pids = [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    except OSError:
        pids = []
    for pid in pids:
        with (
            suppress(OSError),  # it has ended meanwhile
            open(f"/proc/{pid}/stat", "rb") as stat,  # noqa: PTH123
        ):
            state, _, process_group = stat.read().rpartition(b")")[2].split()[:3]
            if int(process_group) == group and state not in {b"Z", b"X"}:
                return True
    return not pids


watcher = Watcher()
"""The one of this process."""
atexit.register(watcher.stop)
atexit.register(watcher.kill_all)  # the last to be registered comes first
register_at_fork(
    before=fork_lock.acquire,
    after_in_parent=fork_lock.release,
    after_in_child=watcher.disown,
)
