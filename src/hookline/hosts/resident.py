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
import stat
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NoReturn

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
_BUFFER_BYTES = 1 << 20
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
        self._place, self._files = place, files
        self._bridge = Bridge(one_shot=False)
        self._clients: set[asyncio.Task[Any]] = set()
        self._wake = asyncio.Event()
        self._used = time.monotonic()
        self._rights = rights("self")

    async def run(self, lock: int) -> None:
        """Answer until the helper is not wanted any more."""
        loop, place = asyncio.get_running_loop(), self._place
        loop.set_exception_handler(lambda _, context: log(place.fd, repr(context)))
        mask = os.umask(0o177)
        self._server = await asyncio.start_unix_server(
            self._serve, place.address(), backlog=256, limit=_BUFFER_BYTES
        )
        os.umask(mask)
        self._socket_id = self._socket_on_disk()
        os.ftruncate(lock, 0)
        os.pwrite(lock, b"%d\n" % os.getpid(), 0)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        loop.add_signal_handler(signal.SIGHUP, self._bridge.look_again)
        _end_oldest(place.fd)
        while self._server.is_serving() or self._clients:
            self._wake.clear()
            signal.alarm(_HANG_S)  # the kernel ends a helper that does not come back
            is_idle = not self._clients and time.monotonic() - self._used >= IDLE_S
            if is_idle or self._socket_on_disk() != self._socket_id:
                self._retire()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._wake.wait()
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
        if self._server.is_serving():
            if self._socket_on_disk() == self._socket_id:
                self._place.clear()
            self._server.close()
            self._wake.set()

    def _stop(self) -> None:
        """End now; clients answer by themselves."""
        self._retire()
        for task in self._clients:
            task.cancel()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None  # this runs in one
        self._clients.add(task)
        try:
            # Cancelled by ``_stop``: the client answers by itself.
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._answer(reader, writer)
            writer.close()
            with suppress(OSError):
                async with asyncio.timeout(_SEND_S):
                    await writer.wait_closed()
        finally:
            writer.transport.abort()
            self._clients.discard(task)
            self._wake.set()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer one client; to write nothing is to refuse it."""
        pid, uid = peer(writer.get_extra_info("socket"))
        # A client may do no less than the hooks that would run here.
        if uid != os.getuid() or rights(str(pid)) != self._rights:
            return
        async with asyncio.timeout(_READ_S):
            if await _read(reader, _MAX_SURROUNDINGS) != self._place.surroundings:
                return
        if not self._is_current():
            self._retire()
            return
        self._used = time.monotonic()
        os.utime(self._place.socket, dir_fd=self._place.fd)
        writer.write(ACCEPTED)
        words = os.fsdecode(await _read(reader, _MAX_WORDS)).split("\0")
        event = await _read(reader, MAX_EVENT_BYTES)
        started_ns = time.time_ns()
        deadline_ms = int(words[2]) if words[2].isdecimal() else None
        work = asyncio.ensure_future(
            self._bridge.answer(words[0], words[1] or None, event, deadline_ms)
        )
        # A client sends nothing more: what can be read is its end.
        end = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({work, end}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            work.cancel()
            end.cancel()
            await asyncio.wait({work, end})
            self._files.add_modules(started_ns)
        if not work.cancelled():
            reply = work.result()
            lengths = len(reply.stdout), len(reply.stderr)
            writer.write(bytes([reply.status]))
            writer.write(b"".join(each.to_bytes(LENGTH_BYTES) for each in lengths))
            writer.write(reply.stdout + reply.stderr)
        if self._bridge.is_full:
            self._retire()

    def _is_current(self) -> bool:
        """Whether an event gets the answer that the client itself would give."""
        has_socket = self._socket_on_disk() == self._socket_id
        is_same = surroundings() == self._place.surroundings
        return has_socket and is_same and not self._files.have_changed()


async def _read(reader: asyncio.StreamReader, longest: int) -> bytes:
    """Read bytes, which come after their length."""
    length = int.from_bytes(await reader.readexactly(LENGTH_BYTES))
    if length > longest:
        raise ConnectionResetError
    return await reader.readexactly(length)


def _end_oldest(folder_fd: int) -> None:
    """Leave few helpers: one ends when it does not find its socket any more."""
    helpers = []
    for name in os.listdir(folder_fd):
        with suppress(OSError):
            status = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
            if stat.S_ISSOCK(status.st_mode):
                helpers.append((status.st_mtime_ns, name))
    for _, name in sorted(helpers)[:-MOST_HELPERS]:
        for file in (name, f"{name}.lock"):
            with suppress(OSError):
                os.unlink(file, dir_fd=folder_fd)


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
            helper = Helper(place, files)
            asyncio.new_event_loop().run_until_complete(helper.run(lock))
        watcher.kill_all()
        watcher.stop()
    # The process ends here, whatever happens.
    except BaseException:  # noqa: BLE001
        log(place.fd, traceback.format_exc())
    finally:
        os._exit(0)


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


def running() -> Iterator[tuple[int, float]]:
    """The process ids of this user's helpers, and since when they run."""
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
                    yield int(os.read(lock, 32)), os.fstat(lock).st_mtime
                finally:
                    os.close(lock)
    finally:
        os.close(folder_fd)


def stop(pid: int) -> None:
    """End a helper and what it runs."""
    with suppress(ProcessLookupError):
        process = os.pidfd_open(pid)
        try:
            for number in (signal.SIGTERM, signal.SIGKILL):
                signal.pidfd_send_signal(process, number)
                if select.select([process], [], [], _STOP_S)[0]:
                    break
        finally:
            os.close(process)
