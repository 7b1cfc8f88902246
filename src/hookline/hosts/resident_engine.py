"""An engine of the resident helper: answers the events from one set of surroundings.

A process of its own, forked from the front. It keeps configs, warm workers and imported
modules from one event to the next, and ends when the front closes its connection, when
it has been idle, or when a file that it has imported or what it took over changes.
"""

from __future__ import annotations

import sys

assert sys.platform == "linux", "the resident helper runs on Linux only"

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from hookline._internal.log import silent_log
from hookline.execute.watchdog import watcher

from .bridge import Bridge
from .client import ACCEPTED, LENGTH_BYTES
from .failsafe import MAX_EVENT_BYTES
from .surroundings import Surroundings

IDLE_S = 600.0
_MAX_WORDS = 64 << 10
_SEND_S = 60.0
"""How long a client may take to read its answer."""
_STANDARD = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120
_INSTALLED = ("site-packages", "dist-packages")

_TICK_NS = 10_000_000
"""The times of files lag behind the clock by this much at most."""

Log = Callable[[str], None]


class LoadedFiles:
    """The files that this process has code of, and whether they are still the same."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known = set(known)
        self._stamps: dict[str, object] = {}
        self._changed = False

    def add_modules(self, since_ns: int) -> None:
        """Note the files of new modules, imported after this time."""
        for name in sys.modules.keys() - self._known:
            self._known.add(name)
            path = getattr(sys.modules.get(name), "__file__", None)
            if isinstance(path, str) and not _is_standard(path):
                self.add(path, since_ns)

    def add(self, path: str, since_ns: int) -> None:
        """Note one file; written since then, it may not be what was loaded."""
        found = self._stamps[path] = _stamp(path)
        self._changed |= found is not None and found[0] > since_ns - _TICK_NS

    def have_changed(self) -> bool:
        """Whether any file is not what it was."""
        return self._changed or any(
            _stamp(path) != stamp for path, stamp in self._stamps.items()
        )


def _is_standard(path: str) -> bool:
    rest = path.removeprefix(_STANDARD)
    return rest != path and not rest.startswith(_INSTALLED)


def _stamp(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - a string
    except OSError:
        return None
    return found.st_ctime_ns, found.st_mtime_ns, found.st_size, found.st_ino


class EngineLoop:
    """Takes clients from the front and answers them."""

    def __init__(self, control: socket.socket, given: Surroundings, log: Log) -> None:
        self._control, self._given, self._log = control, given, log
        self._files = LoadedFiles(sys.modules)
        self._loop = asyncio.get_running_loop()
        self._bridge = Bridge(one_shot=False)
        self._waiting: set[asyncio.Task[None]] = set()
        self._busy: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()
        self._idle = self._loop.call_later(IDLE_S, self._retire)

    async def run(self) -> None:
        """Answer until the front or a signal ends this."""
        self._loop.set_exception_handler(lambda _, context: self._log(repr(context)))
        self._control.setblocking(False)
        self._loop.add_reader(self._control, self._take)
        self._loop.add_signal_handler(signal.SIGTERM, self._stop)
        self._loop.add_signal_handler(signal.SIGHUP, self._bridge.look_again)
        await self._ended.wait()
        await self._bridge.close()

    def _take(self) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(self._control, 1, 1)
        except BlockingIOError:
            return
        except OSError:
            data, fds = b"", []
        if not data:
            self._retire()
        for fd in fds:
            client = socket.socket(fileno=fd)
            client.setblocking(False)
            task = self._loop.create_task(self._serve(client))
            self._waiting.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._waiting.discard(task)
        self._busy.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log(f"an event failed: {error!r}")
        self._idle.cancel()
        self._idle = self._loop.call_later(IDLE_S, self._retire)
        if self._control.fileno() < 0:
            self._retire()

    def _retire(self) -> None:
        """Take no more clients; end when those that have sent an event are answered."""
        if self._control.fileno() >= 0:
            self._loop.remove_reader(self._control)
            self._control.close()
        for task in self._waiting:
            task.cancel()
        if not self._busy:
            self._ended.set()

    def _stop(self) -> None:
        for task in self._busy:
            task.cancel()
        self._retire()

    async def _serve(self, client: socket.socket) -> None:
        with client, suppress(ConnectionError, TimeoutError):
            if self._files.have_changed() or not self._given.still_hold():
                self._retire()
                return
            await self._loop.sock_sendall(client, ACCEPTED)
            words, event = await self._read_event(client)
            task = asyncio.current_task()
            assert task is not None  # this runs in one
            self._waiting.discard(task)
            self._busy.add(task)
            answer = await self._answer(client, words, event)
            if answer is not None:
                async with asyncio.timeout(_SEND_S):
                    await self._loop.sock_sendall(client, answer)

    async def _read_event(self, client: socket.socket) -> tuple[list[str], bytes]:
        head = await self._read(client, 2 * LENGTH_BYTES)
        lengths = head[:LENGTH_BYTES], head[LENGTH_BYTES:]
        for_words, for_event = map(int.from_bytes, lengths)
        if for_words > _MAX_WORDS or for_event > MAX_EVENT_BYTES:
            raise ConnectionResetError
        words = await self._read(client, for_words)
        event = await self._read(client, for_event)
        return [os.fsdecode(word) for word in bytes(words).split(b"\0")], bytes(event)

    async def _read(self, client: socket.socket, length: int) -> memoryview:
        whole = memoryview(bytearray(length))
        rest = whole
        while rest:
            count = await self._loop.sock_recv_into(client, rest)
            if not count:
                raise ConnectionResetError
            rest = rest[count:]
        return whole

    async def _answer(
        self, client: socket.socket, words: list[str], event: bytes
    ) -> bytes | None:
        """The answer for one event; None if the client has gone away meanwhile."""
        started_ns = time.time_ns()
        host, name, deadline = words
        deadline_ms = int(deadline) if deadline.isdecimal() else None
        answer = self._bridge.answer(host, name or None, event, deadline_ms)
        work = self._loop.create_task(answer)
        gone = self._loop.create_task(_wait_for_end(self._loop, client))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, gone):
                task.cancel()
            await asyncio.wait({work, gone})
            self._files.add_modules(started_ns)
        if work.cancelled():
            return None
        reply = work.result()
        lengths = (
            len(part).to_bytes(LENGTH_BYTES) for part in (reply.stdout, reply.stderr)
        )
        return b"".join((bytes([reply.status]), *lengths, reply.stdout, reply.stderr))


async def _wait_for_end(loop: asyncio.AbstractEventLoop, client: socket.socket) -> None:
    with suppress(ConnectionError):
        while await loop.sock_recv(client, 1):
            pass


def run_engine(control: socket.socket, given: Surroundings, log: Log) -> None:
    """Take over a client's surroundings and answer; returns when all is done."""
    given.take_over()
    asyncio.run(_run(control, given, log))
    watcher.kill_all()
    watcher.stop()


async def _run(control: socket.socket, given: Surroundings, log: Log) -> None:
    with silent_log():  # what a person should know is in the replies
        await EngineLoop(control, given, log).run()
