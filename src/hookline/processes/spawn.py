"""Start a child process in a group of its own, and end that group."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

Streams = tuple[int, int, int]
"""The child's stdin, stdout and stderr."""

_KNOWN_VERSIONS = ((3, 11), (3, 12), (3, 13))
_MAX_REPORT = 50_000


def spawn(
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    streams: Streams,
    program: str | None = None,
) -> int:
    """Start a program and return its process id; ``program`` is its file if known."""
    if _fork_exec is None or min(streams) < 3:
        # A host with closed standard streams: Popen sorts the descriptors out.
        return spawn_by_popen(argv, cwd, env, streams, program)
    return _spawn_directly(_fork_exec, argv, cwd, env, streams, program)


def spawn_by_popen(
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    streams: Streams,
    program: str | None = None,
) -> int:
    """Do the same by public means alone."""
    session = has_terminal()
    popen = subprocess.Popen(
        argv,
        executable=program,
        stdin=streams[0],
        stdout=streams[1],
        stderr=streams[2],
        cwd=cwd,
        env=env,
        start_new_session=session,
        process_group=None if session else 0,
    )
    popen.returncode = 0  # the caller reaps it; this keeps Popen from doing it too
    return popen.pid


def has_terminal() -> bool:
    """Whether this process, and so a child in its session, could open a terminal."""
    return _has_terminal_now(int(time.monotonic()))


@lru_cache(maxsize=1)
def _has_terminal_now(_second: int) -> bool:
    # Asked once a second: a process without a terminal hardly ever gets one.
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except FileNotFoundError:
        return False
    except OSError as error:
        return error.errno != errno.ENXIO
    os.close(terminal)
    return True


def _known_fork_exec() -> Callable[..., int] | None:
    if sys.implementation.name != "cpython":
        return None
    if sys.version_info[:2] not in _KNOWN_VERSIONS:
        return None
    try:
        from _posixsubprocess import fork_exec
    except ImportError:
        return None
    return fork_exec


_fork_exec = _known_fork_exec()


def _spawn_directly(
    fork_exec: Callable[..., int],
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    streams: Streams,
    program: str | None,
) -> int:
    sys.audit("subprocess.Popen", program or argv[0], argv, cwd, env)
    words = [os.fsencode(word) for word in argv]
    files = _candidates(program or argv[0], env)
    entries = _entries(env)
    session = has_terminal()
    report, report_end = os.pipe()
    try:
        try:
            pid = fork_exec(
                words,
                files,
                True,  # close all other descriptors,
                (report_end,),  # but this one
                os.fsencode(cwd),
                entries,
                *(streams[0], -1, -1, streams[1], -1, streams[2]),
                report,
                report_end,
                True,  # restore signals
                session,
                -1 if session else 0,  # a session is a process group too
                *(None, None, None, -1),  # group, groups, user, umask: as here
                None,
                getattr(subprocess, "_USE_VFORK", True),
            )
        finally:
            os.close(report_end)
        problem = os.read(report, _MAX_REPORT)
    finally:
        os.close(report)
    if problem:
        _fail(pid, problem)
    return pid


def _candidates(program: str, env: Mapping[str, str]) -> list[bytes]:
    if "/" in program:
        return [os.fsencode(program)]
    return [os.fsencode(f"{folder}/{program}") for folder in os.get_exec_path(env)]


_last_entries: tuple[Mapping[str, str], list[bytes]] = ({}, [])


def _entries(env: Mapping[str, str]) -> list[bytes]:
    """The environment as the system takes it, mostly the same as the last time."""
    global _last_entries  # noqa: PLW0603 - one pair, replaced as a whole
    last, entries = _last_entries
    if env != last:
        entries = [_entry(name, value) for name, value in env.items()]
        _last_entries = (dict(env), entries)
    return entries


@lru_cache(maxsize=4096)
def _entry(name: str, value: str) -> bytes:
    if "=" in name:
        raise ValueError("illegal environment variable name")
    return os.fsencode(f"{name}={value}")


def _fail(pid: int, problem: bytes) -> None:
    """Reap the child that could not become the program, and say why it could not."""
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass  # the host ignores SIGCHLD: the system has reaped it
    kind, _, rest = problem.partition(b":")
    number, _, _ = rest.partition(b":")
    if kind != b"OSError":
        raise subprocess.SubprocessError(problem.decode("utf-8", "replace"))
    code = int(number, 16)
    raise OSError(code, os.strerror(code))


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
