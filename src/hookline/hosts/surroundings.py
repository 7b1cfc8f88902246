"""What hooks depend on beside the event, and whether a client's can be taken over.

A client sends its environment, directory, umask and module path. Its resource limits
come from the kernel, and so does what else would make hooks run with other rights in
the helper than in the client: groups, capabilities, seccomp, namespaces. Where these
differ the client is refused, so that nobody leaves a sandbox through the helper.
"""

from __future__ import annotations

import sys

assert sys.platform == "linux", "the resident helper runs on Linux only"

import importlib
import os
import socket
import time
from functools import cache

from msgspec import Struct

Limits = tuple[tuple[int, int], ...]
_LIMITS = range(16)
"""All that Linux has."""
_RIGHTS = (b"Uid", b"Gid", b"Groups", b"NoNewPrivs", b"Seccomp")
_NAMESPACES = ("mnt", "user", "pid", "net")
_PID_BYTES = 4


class Surroundings(Struct, frozen=True):
    """Those of one client."""

    identity: bytes
    cwd: bytes
    folder: tuple[int, int]
    """Device and number of the directory: another may have taken its name."""
    umask: int
    path: tuple[str, ...]
    environment: dict[bytes, bytes]
    limits: Limits

    @classmethod
    def parsed(cls, given: bytes, limits: Limits) -> Surroundings | None:
        """Read what ``client.surroundings`` wrote; None if it is something else."""
        try:
            identity, cwd, folder, umask, *rest = given.split(b"\0")
            device, number = map(int, folder.split())
            length = int(rest[0]) + 1
            pairs = (entry.partition(b"=") for entry in rest[length:])
            return cls(
                identity=identity,
                cwd=cwd,
                folder=(device, number),
                umask=int(umask),
                path=tuple(map(os.fsdecode, rest[1:length])),
                environment={name: value for name, _, value in pairs},
                limits=limits,
            )
        except (ValueError, IndexError):
            return None

    def take_over(self) -> None:
        """Give them to this process; raises where that is not possible."""
        os.chdir(self.cwd)
        here = os.stat(os.curdir)  # noqa: PTH116 - a string
        if (here.st_dev, here.st_ino) != self.folder:
            raise FileNotFoundError("the client's directory has been replaced")
        for name in list(os.environb):
            del os.environb[name]
        os.environb.update(self.environment)
        os.umask(self.umask)
        sys.path[:] = self.path
        importlib.invalidate_caches()
        time.tzset()
        _set_limits(self.limits)

    def still_hold(self) -> bool:
        """Whether no hook has changed them for the next one."""
        mask = os.umask(self.umask)
        os.umask(mask)
        try:
            same_folder = os.getcwdb() == self.cwd  # noqa: PTH109 - as it was given
        except FileNotFoundError:
            return False
        same_path = tuple(sys.path) == self.path
        same = same_folder and same_path and mask == self.umask
        return same and dict(os.environb) == self.environment


def _set_limits(limits: Limits) -> None:
    if limits:
        import resource

        for number, limit in enumerate(limits):
            if resource.getrlimit(number) != limit:
                resource.setrlimit(number, limit)


def limits_of(connection: socket.socket) -> Limits:
    """The resource limits of a client; raises ``OSError`` if it must not be served."""
    import resource

    facts = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid = int.from_bytes(facts[:_PID_BYTES], sys.byteorder)
    if _rights_of(str(pid)) != _own_rights():
        raise PermissionError("the client has other rights than the helper")
    return tuple(resource.prlimit(pid, number) for number in _LIMITS)


@cache
def _own_rights() -> tuple[object, ...]:
    return _rights_of("self")


def _rights_of(process: str) -> tuple[object, ...]:
    with open(f"/proc/{process}/status", "rb") as file:  # noqa: PTH123
        lines = file.read().splitlines()
    kept = [line for line in lines if line.startswith((*_RIGHTS, b"Cap"))]
    spaces = (os.readlink(f"/proc/{process}/ns/{name}") for name in _NAMESPACES)  # noqa: PTH115
    return (*kept, *spaces)
