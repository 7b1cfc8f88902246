"""The resident helper: a process that answers the events of one set of surroundings.

The client that found none has forked it (``client.py``), so hooks see in it what they
would see without it. It keeps configs, warm workers and imported modules from one event
to the next. It ends after ten idle minutes, where a file that it has loaded has
changed, where a hook has changed the surroundings for the next one, and where its
socket has another owner or none: then a client starts the next helper.

The lock is held for as long as the helper lives, and has its process id.
"""

from __future__ import annotations

import sys

assert sys.platform == "linux", "the resident helper runs on Linux only"

import asyncio
import fcntl
import json
import os
import select
import signal
import socket
import stat
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import NoReturn

from msgspec import Struct

from hookline._internal.log import silent_log
from hookline.execute.watchdog import watcher

from .bridge import Bridge
from .client import (
    ACCEPTED,
    LENGTH_BYTES,
    LOG,
    OF_ONE_CALL,
    Place,
    folder,
    peer,
    private_folder,
    rights,
    surroundings,
)
from .failsafe import MAX_EVENT_BYTES, Failsafe

IDLE_S = 600.0
MOST_HELPERS = 8
"""Of one user: a new one ends those that have not been asked for longest."""
_LOOK_S = 5.0
"""How often an idle helper looks whether it is still wanted."""
_MOST_CLIENTS = 128
_MAX_SURROUNDINGS = 8 << 20
_MAX_WORDS = 64 << 10
_READ_S = 2.0
_SEND_S = 60.0
"""How long a client may take to read its answer."""
_STOP_S = 5.0
_HANG_S = 120
"""How long a Python hook may hold up all others before the helper is killed."""
_LOG_BYTES = 256 << 10
_ENTRY_CHARACTERS = 8000
_RETRY_S = 10.0
_STARTING = b"starting"
_TICK_NS = 10_000_000
"""The times of files lag behind the clock by this much at most."""


class Helper:
    """Accepts clients and answers them."""

    def __init__(self, place: Place, files: LoadedFiles) -> None:
        self._place, self._own, self._files = place, place.surroundings, files
        self._loop = asyncio.get_running_loop()
        self._bridge = Bridge(one_shot=False)
        self._clients: set[asyncio.Task[None]] = set()
        self._retired = asyncio.Event()
        self._used = time.monotonic()
        self._rights = rights("self")
        with suppress(FileNotFoundError):
            os.unlink(place.socket, dir_fd=place.fd)
        self._listener = socket.socket(socket.AF_UNIX)
        mask = os.umask(0o177)
        self._listener.bind(place.address())
        os.umask(mask)
        self._listener.listen(256)
        self._listener.setblocking(False)
        self._socket_id = self._socket_on_disk()

    async def run(self) -> None:
        """Answer until the helper is not wanted any more."""
        loop = self._loop
        loop.set_exception_handler(
            lambda _, context: log(self._place.fd, repr(context))
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        loop.add_signal_handler(signal.SIGHUP, self._bridge.look_again)
        loop.add_reader(self._listener, self._accept)
        while not self._retired.is_set():
            signal.alarm(_HANG_S)  # the kernel ends a helper that does not come back
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._retired.wait()
            is_idle = not self._clients and time.monotonic() - self._used >= IDLE_S
            if is_idle or self._socket_on_disk() != self._socket_id:
                self._retire()
        while self._clients:
            signal.alarm(_HANG_S)
            await asyncio.wait(self._clients, timeout=_LOOK_S)
        await self._bridge.close()

    def _socket_on_disk(self) -> tuple[int, int] | None:
        place = self._place
        try:
            status = os.stat(place.socket, dir_fd=place.fd, follow_symlinks=False)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _retire(self) -> None:
        """Take no more clients; those that are here get their answers."""
        if self._retired.is_set():
            return
        self._retired.set()
        if self._socket_on_disk() == self._socket_id:
            self._place.clear()
        self._loop.remove_reader(self._listener)
        self._listener.close()

    def _stop(self) -> None:
        """End now; clients answer by themselves."""
        self._retire()
        for task in self._clients:
            task.cancel()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError:  # no descriptor is left
            self._retire()
            return
        if len(self._clients) >= _MOST_CLIENTS or not self._is_ours(connection):
            connection.close()
            return
        connection.setblocking(False)
        task = self._loop.create_task(self._serve(connection))
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)

    def _is_ours(self, connection: socket.socket) -> bool:
        """Whether a client may do no less than the hooks that would run here."""
        with suppress(OSError):
            pid, uid = peer(connection)
            return uid == os.getuid() and rights(str(pid)) == self._rights
        return False

    async def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            async with asyncio.timeout(_READ_S):
                sent = await self._read(connection, _MAX_SURROUNDINGS)
            if sent != self._own:
                return
            if not self._is_current():
                self._retire()
                return
            self._used = time.monotonic()
            os.utime(self._place.socket, dir_fd=self._place.fd)
            await self._loop.sock_sendall(connection, ACCEPTED)
            words = await self._read(connection, _MAX_WORDS)
            event = await self._read(connection, MAX_EVENT_BYTES)
            answer = await self._answer(connection, words, event)
            if self._bridge.is_full:
                self._retire()
            if answer is not None:
                async with asyncio.timeout(_SEND_S):
                    await self._loop.sock_sendall(connection, answer)

    def _is_current(self) -> bool:
        """Whether an event gets the answer that the client itself would give."""
        try:
            is_same = surroundings() == self._own
        except OSError:
            return False
        has_socket = self._socket_on_disk() == self._socket_id
        return is_same and has_socket and not self._files.have_changed()

    async def _read(self, connection: socket.socket, longest: int) -> bytes:
        """Read a text, which comes after its length."""
        length = int.from_bytes(await self._receive(connection, LENGTH_BYTES))
        if length > longest:
            raise ConnectionResetError
        return bytes(await self._receive(connection, length))

    async def _receive(self, connection: socket.socket, length: int) -> bytearray:
        data = bytearray(length)
        unread = memoryview(data)
        while unread:
            count = await self._loop.sock_recv_into(connection, unread)
            if not count:
                raise ConnectionResetError
            unread = unread[count:]
        return data

    async def _answer(
        self, connection: socket.socket, words: bytes, event: bytes
    ) -> bytes | None:
        """The answer for one event; None if the client has gone away meanwhile."""
        started_ns = time.time_ns()
        host, name, deadline = map(os.fsdecode, words.split(b"\0"))
        deadline_ms = int(deadline) if deadline.isdecimal() else None
        work = self._loop.create_task(
            self._bridge.answer(host, name or None, event, deadline_ms)
        )
        # A client sends nothing more: what can be read is its end.
        end = self._loop.create_task(self._loop.sock_recv(connection, 1))
        try:
            await asyncio.wait({work, end}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            work.cancel()
            end.cancel()
            await asyncio.wait({work, end})
            self._files.add_modules(started_ns)
        if work.cancelled():
            return None
        reply = work.result()
        parts = reply.stdout, reply.stderr
        lengths = (len(part).to_bytes(LENGTH_BYTES) for part in parts)
        return b"".join((bytes([reply.status]), *lengths, *parts))


class LoadedFiles:
    """The files that this process has code of, and whether they are still the same."""

    def __init__(self) -> None:
        self._modules: set[str] = set()
        self._stamps: dict[str, object] = {}
        self._changed = False

    def add_modules(self, since_ns: int) -> None:
        """Note the files of new modules, imported after this time."""
        standard = f"{os.path.dirname(os.__file__)}/"  # noqa: PTH120
        packages = f"{standard}site-packages", f"{standard}dist-packages"
        for name in sys.modules.keys() - self._modules:
            self._modules.add(name)
            path = getattr(sys.modules.get(name), "__file__", None)
            if not isinstance(path, str):
                continue
            if not path.startswith(standard) or path.startswith(packages):
                self.add(path, since_ns)

    def add(self, path: str, since_ns: int) -> None:
        """Note one file; written since then, it may not be what was loaded."""
        stamp = self._stamps[path] = _stamp(path)
        self._changed |= stamp is not None and stamp[0] > since_ns - _TICK_NS

    def have_changed(self) -> bool:
        """Whether any file is not what it was."""
        return self._changed or any(
            _stamp(path) != stamp for path, stamp in self._stamps.items()
        )


def _stamp(path: str) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - a string
    except OSError:
        return None
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino


def start(place: Place, failsafe: Failsafe) -> None:
    """Fork a helper, unless there is one or one is being started."""
    lock = None
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        lock = os.open(place.lock, flags, 0o600, dir_fd=place.fd)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held by the helper
        # The helper writes its process id as soon as it listens: one that failed to
        # start is not started again at every event.
        failed = os.read(lock, len(_STARTING)) == _STARTING
        if failed and abs(time.time() - os.fstat(lock).st_mtime) < _RETRY_S:
            return
        os.ftruncate(lock, 0)
        os.pwrite(lock, _STARTING, 0)
        with warnings.catch_warnings():
            # About threads: the one of failsafe holds no lock, and is not in the fork.
            warnings.simplefilter("ignore", DeprecationWarning)
            if os.fork() == 0:
                _be_helper(place, lock, failsafe)
    except OSError:
        pass  # as without a helper
    finally:
        for fd in (place.fd, lock):
            if fd is not None:
                os.close(fd)


def _be_helper(place: Place, lock: int, failsafe: Failsafe) -> NoReturn:
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        for fd in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208
            if fd not in (0, 1, 2, lock, place.fd):
                with suppress(OSError):  # the one that listed them
                    os.close(fd)
        os.environb.pop(OF_ONE_CALL, None)
        failsafe.disarm()
        files = LoadedFiles()
        files.add_modules(failsafe.began_ns)
        for path in (sys.executable, os.__file__):
            files.add(path, failsafe.began_ns)
        with silent_log():  # what a person should know is in the replies
            # Not asyncio.run, which waits for threads: hooks may hang in them.
            asyncio.new_event_loop().run_until_complete(_run(place, lock, files))
        watcher.kill_all()
        watcher.stop()
    # The process ends here, whatever happens.
    except BaseException:  # noqa: BLE001
        log(place.fd, traceback.format_exc())
    finally:
        os._exit(0)


async def _run(place: Place, lock: int, files: LoadedFiles) -> None:
    helper = Helper(place, files)
    os.ftruncate(lock, 0)
    os.pwrite(lock, b"%d\n" % os.getpid(), 0)
    used = []
    for name in os.listdir(place.fd):  # noqa: PTH208 - by descriptor
        with suppress(OSError):
            status = os.stat(name, dir_fd=place.fd, follow_symlinks=False)
            if stat.S_ISSOCK(status.st_mode):
                used.append((status.st_mtime_ns, name))
    for _, name in sorted(used)[:-MOST_HELPERS]:
        # Its helper ends when it looks for it; a dead one has left it behind.
        for file in (name, f"{name}.lock"):
            with suppress(OSError):
                os.unlink(file, dir_fd=place.fd)
    await helper.run()


def log(folder_fd: int, text: str) -> None:
    """Write down what went wrong, in a file of bounded size beside the sockets.

    One JSON object per line: nobody is there to ask for another format.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    end = text.rstrip()[-_ENTRY_CHARACTERS:]  # which says what it was
    entry = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "level": "error",
        "logger": "hookline.bridge",
        "message": end.encode(errors="backslashreplace").decode(),
        "process": os.getpid(),
    }
    with suppress(OSError):  # the disk is full
        fd = os.open(LOG, flags, 0o600, dir_fd=folder_fd)
        try:
            if os.fstat(fd).st_size > _LOG_BYTES:
                os.ftruncate(fd, 0)
            os.write(fd, json.dumps(entry).encode() + b"\n")
        finally:
            os.close(fd)


class Running(Struct, frozen=True):
    """A helper that takes clients."""

    pid: int
    since: float
    log: str


def running() -> Iterator[Running]:
    """The helpers of this user."""
    try:
        folder_fd = private_folder(folder())
    except OSError:
        return
    try:
        for name in sorted(os.listdir(folder_fd)):  # noqa: PTH208 - by descriptor
            if not name.endswith(".lock"):
                continue
            with suppress(OSError, ValueError):
                lock = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder_fd)
                try:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:  # held, so there is a helper
                    since = os.fstat(lock).st_mtime
                    yield Running(int(os.read(lock, 32)), since, f"{folder()}/{LOG}")
                finally:
                    os.close(lock)
    finally:
        os.close(folder_fd)


def stop(helper: Running) -> None:
    """End a helper and what it runs."""
    with suppress(ProcessLookupError):
        process = os.pidfd_open(helper.pid)
        try:
            for number in (signal.SIGTERM, signal.SIGKILL):
                signal.pidfd_send_signal(process, number)
                if select.select([process], [], [], _STOP_S)[0]:
                    break
        finally:
            os.close(process)
