"""Our own command line as a child process, so that hooks run outside the server.

It ends with this process, however that dies, and its hooks end with it: the watcher of
each process knows the groups that it started.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from hookline.execute.child import (
    GRACE_S,
    Collector,
    Feeder,
    ProcessGroup,
    ProcessSpec,
    close_own,
    start,
)

if TYPE_CHECKING:  # also used where the extra is not installed
    from starlette.requests import Request

MAX_OUTPUT_BYTES = 64 * 1024 * 1024
"""Of one line, or of all output where nobody reads it by line."""
_MAX_STDERR_BYTES = 64 * 1024
_KILLED_S = 1.0
_PREFIX = "hookline: "


class CommandEnd(Struct, frozen=True, kw_only=True):
    """How a command ended."""

    status: int | None
    """Minus the number of the signal that ended it."""
    stdout: bytes
    """Empty if it was read by line."""
    messages: list[str]
    """The lines of its standard error, without our name in front."""
    truncated: bool
    cancelled: bool
    """Somebody asked for its end."""

    @property
    def message(self) -> str:
        """Why it failed, in its own words."""
        ended = f"the command ended with status {self.status}"
        return "\n".join(self.messages) or ended


class OwnCommand:
    """One running command; belongs to one event loop.

    With ``on_line`` its output is handed over line by line, and not kept.
    """

    def __init__(
        self,
        argv: Sequence[str],
        stdin: bytes = b"",
        on_line: Callable[[bytes], None] | None = None,
    ) -> None:
        """Start it; raises ``OSError``."""
        loop = asyncio.get_running_loop()
        self._cancelled = False
        self._ended: asyncio.Future[None] = loop.create_future()
        pid, pipes = start(_spec(argv))
        try:
            self._group = ProcessGroup(pid, loop, self._exited)
        except OSError:
            close_own(*pipes)
            raise
        self._stdin = Feeder(loop, pipes[0])
        if on_line is None:
            self._out = Collector(loop, pipes[1], MAX_OUTPUT_BYTES, _nothing)
        else:
            self._out = _LineReader(loop, pipes[1], on_line)
        self._err = Collector(loop, pipes[2], _MAX_STDERR_BYTES, _nothing)
        self._out.watch()
        self._err.watch()
        self._stdin.write(stdin)

    @property
    def pid(self) -> int:
        """The process, which leads a group of its own."""
        return self._group.pid

    async def wait(self) -> CommandEnd:
        """Wait for its end; cancelling the caller ends it."""
        try:
            await asyncio.shield(self._ended)
        except asyncio.CancelledError:
            await self.end()
            raise
        return CommandEnd(
            status=self._group.exit_code,
            stdout=self._out.data(),
            messages=_messages(self._err.data()),
            truncated=self._out.truncated,
            cancelled=self._cancelled,
        )

    async def end(self) -> None:
        """Ask it to end itself and its hooks, then kill it; return when it is gone."""
        if not self._group.reaped:
            self._cancelled = True
            self._group.terminate()
        try:
            await self._group.wait_gone(GRACE_S)
        finally:
            self._group.kill()
            self._group.release()
        await self._group.wait_gone(_KILLED_S)

    def _exited(self) -> None:
        self._out.drain()
        self._err.drain()
        for pipe in (self._stdin, self._out, self._err):
            pipe.close()
        if not self._ended.done():
            self._ended.set_result(None)


class _LineReader(Collector):
    """Hands over each line when it is complete; leaves out lines beyond the limit."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        on_line: Callable[[bytes], None],
    ) -> None:
        super().__init__(loop, fd, 0, _nothing)
        self._on_line = on_line
        self._begun: list[bytes] = []
        self._begun_bytes = 0

    def _keep(self, piece: bytes) -> None:
        *lines, rest = piece.split(b"\n")
        for line in lines:
            self._add(line)
            whole = b"".join(self._begun)
            self._begun, self._begun_bytes = [], 0
            if whole:
                self._on_line(whole)
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        self._begun_bytes += len(piece)
        if self._begun_bytes > MAX_OUTPUT_BYTES:
            self._begun = []
            self.truncated = True
        elif piece:
            self._begun.append(piece)


async def finish(
    command: OwnCommand, stopping: asyncio.Event, request: Request | None = None
) -> CommandEnd:
    """Wait for a command; end it when the server stops or the page goes away."""
    done = asyncio.create_task(command.wait())
    reasons = [asyncio.create_task(stopping.wait())]
    if request is not None:
        reasons.append(asyncio.create_task(_disconnected(request)))
    try:
        await asyncio.wait([done, *reasons], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for reason in reasons:
            reason.cancel()
        if not done.done():
            await command.end()
    return await done


async def _disconnected(request: Request) -> Literal[True]:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    return True


def _spec(argv: Sequence[str]) -> ProcessSpec:
    return ProcessSpec(
        argv=argv,
        cwd=os.getcwd(),  # noqa: PTH109 - a string
        env=dict(os.environ),
        stdin=b"",
        timeout_s=0,
        max_output_bytes=MAX_OUTPUT_BYTES,
    )


def _messages(stderr: bytes) -> list[str]:
    lines = stderr.decode("utf-8", "replace").splitlines()
    return [line.removeprefix(_PREFIX) for line in lines if line.strip()]


def _nothing() -> None:
    """Nobody waits for the end of one pipe alone."""
