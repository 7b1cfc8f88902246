"""Start a child process in a process group of its own, with pipes to it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from os import O_NOCTTY
from typing import Any

from msgspec import Struct

from hookline.plan import OnStart

GRACE_S = 5.0
"""From SIGTERM to SIGKILL."""

Streams = tuple[int, int, int]
"""The child's stdin, stdout and stderr."""

_KNOWN_VERSIONS = ((3, 11), (3, 12), (3, 13))
_MAX_REPORT = 50_000


class Program(Struct, frozen=True):
    """What to execute: a path, or a name to look up in the ``PATH`` of ``env``."""

    path: str
    argv: Sequence[str]
    env: Mapping[str, str]


class ProcessSpec(Struct, frozen=True, kw_only=True):
    """What to run, and its limits."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    stdin: bytes
    timeout_s: float
    max_output_bytes: int
    grace_s: float = GRACE_S
    direct: Program | None = None
    """The same without a shell; if it cannot be executed, ``argv`` is started."""
    on_start: OnStart | None = None
    """Is shown the first line of its output, also while it is incomplete; gives the
    seconds that it has from then on, or None to leave that as it is."""


def spawn(
    program: Program, cwd: str, streams: Streams, *, new_session: bool = False
) -> int:
    """Start a program in a group or session of its own and return its process id."""
    if _fork_exec is None or min(streams) < 3:
        # With closed standard streams a pipe may be 0 to 2; Popen handles that.
        return spawn_by_popen(program, cwd, streams, new_session=new_session)
    session = new_session or has_terminal()
    return _spawn_directly(_fork_exec, program, cwd, streams, session)


def spawn_by_popen(
    program: Program, cwd: str, streams: Streams, *, new_session: bool = False
) -> int:
    """The same with the public API of ``subprocess`` only."""
    session = new_session or has_terminal()
    env: Any = {  # typeshed knows that these are bytes on POSIX only
        _encoded(name): _encoded(text) for name, text in program.env.items()
    }
    popen = subprocess.Popen(
        [_encoded(word) for word in program.argv],
        executable=_encoded(program.path),
        stdin=streams[0],
        stdout=streams[1],
        stderr=streams[2],
        cwd=cwd,
        env=env,
        start_new_session=session,
        process_group=None if session else 0,
    )
    popen.returncode = 0  # the caller reaps it, Popen must not
    return popen.pid


def has_terminal() -> bool:
    """Whether a child in this session could open a terminal."""
    return _has_terminal_now(int(time.monotonic()))


@lru_cache(maxsize=1)
def _has_terminal_now(_second: int) -> bool:
    # Checked once a second: a process without a terminal rarely gets one.
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | O_NOCTTY)
    except FileNotFoundError:
        return False
    except OSError as error:
        return error.errno != errno.ENXIO
    os.close(terminal)
    return True


def _known_fork_exec() -> Callable[..., int] | None:
    version = sys.version_info[:2]
    if sys.implementation.name != "cpython" or version not in _KNOWN_VERSIONS:
        return None
    if sys.platform != "win32":
        with suppress(ImportError):
            from _posixsubprocess import fork_exec

            return fork_exec
    return None


_fork_exec = _known_fork_exec()


def _spawn_directly(
    fork_exec: Callable[..., int],
    program: Program,
    cwd: str,
    streams: Streams,
    session: bool,
) -> int:
    sys.audit("subprocess.Popen", program.path, program.argv, cwd, program.env)
    words = [_encoded(word) for word in program.argv]
    files = _candidates(program)
    entries = _entries(program.env)
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
                *(None, None, None, -1),  # group, groups, user, umask: inherited
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


def _encoded(text: str) -> bytes:
    """Encode text for the system: no character keeps a hook from starting."""
    try:
        return os.fsencode(text)
    except UnicodeEncodeError:  # under LANG=C
        pass
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate
        return text.encode("utf-8", "replace")


def _candidates(program: Program) -> list[bytes]:
    if "/" in program.path:
        return [_encoded(program.path)]
    folders = os.get_exec_path(program.env)
    return [_encoded(f"{folder}/{program.path}") for folder in folders]


_last_entries: tuple[Mapping[str, str], list[bytes]] = ({}, [])


def _entries(env: Mapping[str, str]) -> list[bytes]:
    """The environment for ``exec``; cached, since it rarely changes between events."""
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
    return _encoded(f"{name}={value}")


def _fail(pid: int, problem: bytes) -> None:
    """Reap the child whose ``exec`` failed, and raise the reason."""
    with suppress(ChildProcessError):  # the host ignores SIGCHLD: already reaped
        os.waitpid(pid, 0)
    kind, _, rest = problem.partition(b":")
    number, _, _ = rest.partition(b":")
    if kind != b"OSError":
        raise subprocess.SubprocessError(problem.decode("utf-8", "replace"))
    code = int(number, 16)
    raise OSError(code, os.strerror(code))
