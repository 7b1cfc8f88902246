"""Start a program with three pipes and no terminal, as cheaply as is sound.

``subprocess.Popen`` does it right and takes 0.15 ms longer than the system needs. So
its own core is called where its parameters are known (CPython 3.11 to 3.13); anywhere
else Popen is. Both give the child nothing but the three descriptors, default signal
handlers where Python had changed them, and a process group of its own; both report a
program that cannot be executed as ``OSError``, with nothing left running (decision
0070). The child gets a session of its own as well where the host has a terminal: that
is what keeps it from the terminal, and on a busy machine it is not for free (0073).
"""

from __future__ import annotations

import errno
import os
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
