"""Sees to it that no warm process outlives a host that was killed.

A warm process ends when its input does, but one that hangs never looks. So a small
shell waits at a pipe whose other end is held by the host alone: when the host is gone,
however it went, it kills the process groups that it was told of and ends itself. It is
started with the first worker and ends with the hook system (decision 0072).
"""

from __future__ import annotations

import asyncio
import os

from hookline.log import logger
from hookline.processgroup import ProcessGroup
from hookline.spawning import spawn

_SHELL = "/bin/sh"
_SCRIPT = """\
trap '' HUP INT QUIT TERM PIPE
live=
while read -r sign group; do
  case $sign in
    +) live="$live $group" ;;
    -) left=
       for one in $live; do [ "$one" = "$group" ] || left="$left $one"; done
       live=$left ;;
  esac
done
for one in $live; do kill -s KILL -- "-$one"; done 2>/dev/null
"""


class Guardian:
    """Holds one end of the pipe; told of every worker that starts or ends."""

    def __init__(self) -> None:
        self._fd: int | None = None
        self._shell: ProcessGroup | None = None
        self._ended = asyncio.Event()

    def guard(self, group: int) -> None:
        """Let a group be killed should the host go away."""
        if self._fd is None:
            self._start()
        self._tell(f"+ {group}\n")

    def release(self, group: int) -> None:
        """A group is gone; its number may be another's soon."""
        self._tell(f"- {group}\n")

    async def close(self) -> None:
        """End the shell; there must be nobody left to guard."""
        self._stop()
        shell, self._shell = self._shell, None
        if shell is not None and shell.loop is not asyncio.get_running_loop():
            shell.abandon()
        elif shell is not None:
            await self._ended.wait()

    def abandon(self) -> None:
        """End the shell at once, without the event loop."""
        self._stop()
        if self._shell is not None:
            self._shell.abandon()

    def _start(self) -> None:
        reading, self._fd = os.pipe()
        null = os.open(os.devnull, os.O_RDWR)
        try:
            streams = (reading, null, null)
            pid = spawn([_SHELL, "-c", _SCRIPT], "/", {}, streams)
            loop = asyncio.get_running_loop()
            self._ended = asyncio.Event()
            self._shell = ProcessGroup(pid, loop, self._ended.set)
        except OSError as error:
            logger.warning("workers may outlive a killed host: %s", error)
        finally:
            os.close(reading)
            os.close(null)

    def _stop(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _tell(self, line: str) -> None:
        if self._fd is None:
            return
        try:
            os.write(self._fd, line.encode())
        except OSError:
            self._stop()  # somebody killed it; the next worker starts another
