"""A child that leads a process group: its end, and signals to all of the group.

The end is seen through a pidfd; asyncio's own child watcher of Python 3.11 would start
a thread for each child. Where there are no pidfds it is looked for now and then.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

POLL_FIRST_S, POLL_LAST_S = 0.002, 0.05


class ProcessGroup:
    """Knows when its leader has ended, and reaps it: no zombie, no descriptor left."""

    def __init__(
        self,
        pid: int,
        loop: asyncio.AbstractEventLoop,
        on_exit: Callable[[], None],
    ) -> None:
        self.pid = pid
        self.exit_code: int | None = None
        """None also where somebody else has taken the status."""
        self.reaped = False
        self.loop = loop
        self._on_exit = on_exit
        self._pidfd = self._watch()

    def signal(self, number: signal.Signals) -> None:
        """Signal the leader and everything that it started."""
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # gone already, or only zombies are left (macOS)

    def kill(self) -> None:
        """Kill what is left of the group, the leader or what it started."""
        if not self.reaped or group_lives(self.pid):
            self.signal(signal.SIGKILL)

    def lives(self) -> bool:
        """Whether anything of the group is left, zombies aside."""
        return not self.reaped or group_lives(self.pid)

    def abandon(self) -> None:
        """Kill and reap at once, without the event loop: it may be closed already."""
        self.kill()
        if self.reaped:
            return
        self.reaped = True
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            pass  # reaped by the system or by the host
        self._unwatch()

    def _watch(self) -> int | None:
        try:
            pidfd = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            # Not Linux, or no descriptor left: look for the end now and then.
            self.loop.call_later(POLL_FIRST_S, self._poll, POLL_FIRST_S)
            return None
        try:
            self.loop.add_reader(pidfd, self._reap)
        except BaseException:
            os.close(pidfd)
            raise
        return pidfd

    def _unwatch(self) -> None:
        if self._pidfd is not None:
            if not self.loop.is_closed():
                self.loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def _poll(self, delay: float) -> None:
        if not self._reap():
            delay = min(delay * 2, POLL_LAST_S)
            self.loop.call_later(delay, self._poll, delay)

    def _reap(self) -> bool:
        if self.reaped:
            return True
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            # The host ignores SIGCHLD or waits for strangers: the code is lost.
            pid, status = self.pid, None
        if pid == 0:
            return False
        self.reaped = True
        self.exit_code = None if status is None else os.waitstatus_to_exitcode(status)
        self._unwatch()
        self._on_exit()
        return True


def group_lives(group: int) -> bool:
    """Whether a process group has members that are no zombies."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _has_members_beside_zombies(group)


def _has_members_beside_zombies(group: int) -> bool:
    # A container's first process may never reap orphans, and a signal reaches
    # zombies too: only /proc can tell the living from the dead.
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
