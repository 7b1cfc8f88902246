"""One warm process: ask it, read its answer, end it (docs/how-to/workers.md)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import msgspec
from msgspec import Struct

from hookline.execute.child import (
    DRAIN_S,
    Collector,
    ProcessGroup,
    ProcessSpec,
    close_own,
    start,
)
from hookline.protocol.values import decode

_READ_SIZE = 64 * 1024
_LAST_READS = 8
_STDERR_BYTES = 16 * 1024
_GROWTH = 6
"""A byte takes up to six in JSON: ``\\u0000``."""
_SPARE_BITS = 64 - 53
"""An id is a whole number that JSON parsers of all languages keep exactly."""
_FRAME_BYTES = 4096
"""Room for the rest of an answer."""


class Answer(Struct, frozen=True):
    """A worker's answer to one request."""

    id: int
    exit_code: int
    stdout: str
    stderr: str


class WorkerLostError(Exception):
    """The worker died or gave an invalid answer."""

    def __init__(self, why: str, output: bytes = b"") -> None:
        super().__init__(why)
        self.output = output
        """What it printed instead; for those who test it, never for a log."""


class HandshakeError(TimeoutError):
    """The program has never answered: it is not a worker."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"did not answer the worker handshake within {limit_s:g} s")
        self.limit_s = limit_s


class WorkerOutputLimitError(Exception):
    """The answer is longer than ``maxOutputBytes`` allows."""


_decode_answer = msgspec.json.Decoder(Answer).decode


class WarmProcess:
    """A worker process with its pipes; belongs to one event loop."""

    def __init__(
        self, spec: ProcessSpec, on_end: Callable[[WarmProcess], None]
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.idle_since = self.loop.time()
        self._on_end = on_end
        self._grace_s = spec.grace_s
        self._max_line = 2 * _GROWTH * spec.max_output_bytes + _FRAME_BYTES
        pid, pipes = start(spec)
        self._stdin, self._stdout, stderr = pipes
        self._open = True
        self.answered = False
        """Whether it has answered a request."""
        self.fault: Exception | None = None
        """Why it cannot be used any more; None also if it was ended on purpose."""
        self._asked = 0
        self._pieces: list[bytes] = []
        self._read_bytes = 0
        self._unsent = memoryview(b"")
        self._answer: asyncio.Future[Answer] | None = None
        self._gone: asyncio.Future[None] = self.loop.create_future()
        try:
            self._group = ProcessGroup(pid, self.loop, self._exited)
        except OSError:
            close_own(*pipes)
            raise
        self._stderr = Collector(self.loop, stderr, _STDERR_BYTES, lambda: None)
        self._stderr.watch()
        self.loop.add_reader(self._stdout, self._readable)

    @property
    def pid(self) -> int:
        """The process, which leads a group of its own."""
        return self._group.pid

    @property
    def lost(self) -> bool:
        """Whether it ended, or was given up, without being asked to end."""
        return self._open or self.fault is not None

    @property
    def usable(self) -> bool:
        """Whether it can take a request."""
        return self._open and self._answer is None and not self._group.reaped

    async def ask(self, event_input: bytes, env: bytes, timeout_s: float) -> Answer:
        """Send one request and wait for its answer; raises ``TimeoutError``.

        If it fails, the worker cannot be used again.
        """
        # Random, so that no answer can be written before its question.
        self._asked = int.from_bytes(os.urandom(8)) >> _SPARE_BITS
        answer: asyncio.Future[Answer] = self.loop.create_future()
        self._answer = answer
        timer = self.loop.call_later(timeout_s, _expire, answer)
        try:
            self._send(request_line(self._asked, event_input, env))
            found = await answer
            self.answered = True
            return found
        finally:
            timer.cancel()
            self._answer = None
            self.idle_since = self.loop.time()

    def give_up(self, error: Exception) -> None:
        """Let the request in progress fail."""
        self._fail(error)

    async def end(self) -> None:
        """Close its input, then terminate and finally kill the group."""
        self._close()
        try:
            await asyncio.wait({self._gone}, timeout=DRAIN_S)
        finally:
            if not self._gone.done():
                await self.terminate()

    async def terminate(self) -> None:
        """Send SIGTERM to the group and SIGKILL later; return when it is gone."""
        self._close()
        if self._group.lives():
            self._group.terminate()
        try:
            await self._wait_gone(self._grace_s)
        finally:
            self._group.kill()
            self._group.release()
        await self._wait_gone(DRAIN_S)

    async def kill(self) -> None:
        """Kill the group and wait until it is gone."""
        self._close()
        self._group.kill()
        await self._wait_gone(DRAIN_S)

    def abandon(self) -> None:
        """Kill and reap it without the event loop."""
        self._close()
        self._group.abandon()

    async def _wait_gone(self, limit_s: float) -> None:
        deadline = self.loop.time() + limit_s
        await asyncio.wait({self._gone}, timeout=limit_s)
        await self._group.wait_gone(deadline - self.loop.time())

    def _send(self, frame: bytes) -> None:
        self._unsent = memoryview(frame)
        self._write()
        if self._unsent and self._open:
            self.loop.add_writer(self._stdin, self._write_more)

    def _write(self) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._stdin, self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            self._lose("it does not read its input")

    def _write_more(self) -> None:
        self._write()
        if not self._unsent and self._open:
            self.loop.remove_writer(self._stdin)

    def _readable(self) -> None:
        try:
            piece = os.read(self._stdout, _READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if not piece:
            self._lose("it ended")
        elif self._answer is None or self._answer.done():
            self._lose("unexpected output", piece)
        else:
            self._collect(piece)

    def _collect(self, piece: bytes) -> None:
        self._read_bytes += len(piece)
        self._pieces.append(piece)
        if b"\n" in piece:
            line = b"".join(self._pieces)
            self._pieces, self._read_bytes = [], 0
            self._receive(line)
        elif self._read_bytes > self._max_line:
            self._fail(WorkerOutputLimitError())

    def _receive(self, line: bytes) -> None:
        try:
            answer = _parse(line)
        except ValueError as error:
            self._lose(f"invalid answer: {error}", line)
            return
        if answer.id != self._asked:
            self._lose("answer to another request", line)
        elif self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)

    def _lose(self, why: str, output: bytes = b"") -> None:
        self._fail(WorkerLostError(why, output))

    def _fail(self, error: Exception) -> None:
        """Stop listening; a waiting caller gets the error."""
        waiting = self._answer
        self.fault = error
        self._close()
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)
        else:  # nobody will end it
            self._group.kill()

    def _exited(self) -> None:
        if not self._gone.done():
            self._gone.set_result(None)
        if self._open:
            # Its last output may be the answer: read it before the end of file.
            self.loop.call_soon(self._readable_at_last)
        self._on_end(self)

    def _readable_at_last(self) -> None:
        for _ in range(_LAST_READS):
            if self._open:
                self._readable()
        if self._open:
            self._lose("it ended")

    def _close(self) -> None:
        if not self._open:
            return
        self._open = False
        if not self.loop.is_closed():
            self.loop.remove_reader(self._stdout)
            self.loop.remove_writer(self._stdin)
            self._stderr.close()
        close_own(self._stdout, self._stdin)


_LINE_ENDS = {
    b"\xe2\x80\xa8": rb"\u2028",
    b"\xe2\x80\xa9": rb"\u2029",
    b"\xc2\x85": rb"\u0085",
}


def request_line(number: int, event_input: bytes, env: bytes) -> bytes:
    """One request as it is sent: one line to the line readers of all languages.

    Node ends a line at U+2028, others at U+0085; JSON allows both inside a text.
    """
    line = b'{"id":%d,"input":%b,"env":%b}\n' % (number, event_input, env)
    if not line.isascii():
        for character, escaped in _LINE_ENDS.items():
            line = line.replace(character, escaped)
    return line


def is_answer(output: str) -> bool:
    """Whether a command printed what only a worker says."""
    if '"exit_code"' not in output:
        return False
    try:
        found = decode(output)
    except ValueError:
        return False
    return isinstance(found, dict) and "exit_code" in found


def _expire(answer: asyncio.Future[Answer]) -> None:
    if not answer.done():
        answer.set_exception(TimeoutError())


def _parse(line: bytes) -> Answer:
    if line.index(b"\n") != len(line) - 1:
        raise ValueError("more output after the answer")
    try:
        return _decode_answer(line)
    except msgspec.MsgspecError:
        pass  # msgspec refuses lone surrogates, which are valid JSON
    try:
        return msgspec.convert(decode(line), Answer)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None
