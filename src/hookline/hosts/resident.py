"""The resident helper: one process per user that has Hookline loaded.

The *front* accepts connections and does nothing else: one thread, no event loop, so
that it can fork. For each set of surroundings (environment, directory, umask, limits,
module path) it forks an *engine* that takes them over and answers the events that
come from there. So hooks see what they would see without the helper, and one that
crashes takes only its own engine along.

What the front cannot take over, or where it may be out of date, it refuses: the client
then answers by itself.
"""

from __future__ import annotations

import sys

assert sys.platform == "linux", "the resident helper runs on Linux only"

import gc
import os
import selectors
import signal
import socket
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import TracebackType
from typing import NoReturn

from .client import HANDED_OVER, LENGTH_BYTES, Place, identity, peer_uid
from .resident_engine import LoadedFiles, run_engine
from .resident_files import Log
from .surroundings import Surroundings, limits_of

IDLE_S = 600.0
_MAX_ENGINES = 8
_MAX_PROCESSES = 24
"""Engines that still answer their last events count here too."""
_MAX_PENDING = 128
_MAX_BYTES = 8 << 20
_READ_S = 2.0
_STOP_S = 5.0
_LOOK_S = 60.0
"""How often an idle helper looks whether its socket is still there."""
_PRELOADED = (
    *(
        "agent.session",
        "config",
        "engine.system",
        "hosts.registry",
        "settings.watch",
    ),
    *("execute.command", "execute.python", "execute.rule", "execute.standby"),
    *("execute.worker", "journal.record", "trust.gate", "trust.records"),
)


class LastWords:
    """Ends the process after its work, whatever happens; errors go to the log."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _where: TracebackType | None,
    ) -> NoReturn:
        if kind is not None:
            self._log.write("".join(traceback.format_exception(error)))
        os._exit(kind is not None)


class Engine:
    """The front's end of a process that answers events."""

    def __init__(self, pid: int, control: socket.socket) -> None:
        self.pid, self.control = pid, control

    def hand_over(self, connection: socket.socket) -> None:
        """Give it a client; raises ``OSError`` if it is gone or has too many."""
        socket.send_fds(self.control, [b"."], [connection.fileno()])


class Pending:
    """A client whose surroundings are not complete yet."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.since = time.monotonic()
        self._data = bytearray()

    def receive(self) -> bytes | None:
        """The surroundings once they are there; raises ``OSError`` at a bad end."""
        # Never more than they are: what follows is for the engine.
        piece = self.connection.recv(self._wanted() - len(self._data))
        if not piece:
            raise ConnectionResetError
        self._data += piece
        if len(self._data) < self._wanted():
            return None
        return bytes(self._data[LENGTH_BYTES:])

    def _wanted(self) -> int:
        if len(self._data) < LENGTH_BYTES:
            return LENGTH_BYTES
        length = int.from_bytes(self._data[:LENGTH_BYTES])
        if not 0 < length <= _MAX_BYTES:
            raise ConnectionResetError
        return LENGTH_BYTES + length


class Front:
    """Accepts clients and hands them to engines."""

    def __init__(self, place: Place, lock: int, log: Log, files: LoadedFiles) -> None:
        self._place, self._lock, self._log, self._files = place, lock, log, files
        self._engines: dict[bytes, Engine] = {}
        self._pids: set[int] = set()
        self._pending: dict[socket.socket, Pending] = {}
        self._used = time.monotonic()
        self._serving, self._stop_requested, self._stop_by = True, False, 0.0
        self._look_requested = False
        self._wake, self._wake_end = socket.socketpair()
        self._wake_end.setblocking(False)
        self._listener = self._listen()
        self._socket_id = self._socket_on_disk()
        self._selector = selectors.DefaultSelector()
        self._watch(self._listener, self._accept)
        self._watch(self._wake, self._woken)
        os.ftruncate(lock, 0)
        os.pwrite(lock, b"%d\n" % os.getpid(), 0)

    def _listen(self) -> socket.socket:
        with suppress(FileNotFoundError):
            os.unlink(self._place.socket, dir_fd=self._place.fd)
        listener = socket.socket(socket.AF_UNIX)
        os.umask(0o177)
        listener.bind(self._place.address())
        listener.listen(256)
        listener.setblocking(False)
        return listener

    def _watch(self, source: socket.socket, call: Callable[[], None]) -> None:
        source.setblocking(False)
        self._selector.register(source, selectors.EVENT_READ, call)

    def _forget(self, source: socket.socket) -> None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(source)
        source.close()

    def run(self) -> None:
        """Serve until there is nothing to do."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._request_stop)
        signal.signal(signal.SIGHUP, self._request_look)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_end.fileno(), warn_on_full_buffer=False)
        while self._serving or self._pids:
            for key, _ in self._selector.select(self._timeout()):
                key.data()
            self._tidy()

    def _timeout(self) -> float | None:
        if self._pending or self._stop_by:
            return 0.1
        if not self._serving:
            return None  # engines end: a signal says so
        return min(max(0.0, self._used + IDLE_S - time.monotonic()), _LOOK_S)

    def _tidy(self) -> None:
        now = time.monotonic()
        for pending in list(self._pending.values()):
            if now - pending.since > _READ_S:
                self._drop(pending.connection)
        if self._serving and (now - self._used >= IDLE_S or not self._is_current()):
            self._drain()
        if self._look_requested:
            self._look_requested = False
            self._signal_engines(signal.SIGHUP)
        if self._stop_requested and not self._stop_by:
            self._stop()
        if self._stop_by and now > self._stop_by:
            self._signal_engines(signal.SIGKILL)
        self._reap()

    def _reap(self) -> None:
        for pid in list(self._pids):
            if os.waitpid(pid, os.WNOHANG)[0]:
                self._pids.discard(pid)

    def _woken(self) -> None:
        with suppress(BlockingIOError):
            self._wake.recv(4096)

    def _request_stop(self, *_: object) -> None:
        self._stop_requested = True  # a signal may come in the middle of anything

    def _request_look(self, *_: object) -> None:
        self._look_requested = True

    def _stop(self) -> None:
        """End everything now; clients answer by themselves."""
        self._drain(release=False)
        self._stop_by = time.monotonic() + _STOP_S
        self._signal_engines(signal.SIGTERM)

    def _signal_engines(self, number: signal.Signals) -> None:
        for pid in self._pids:
            os.kill(pid, number)  # our child: not reaped, so the number is its own

    def _drain(self, *, release: bool = True) -> None:
        """Take no more clients; if the lock is released, they start another helper."""
        if not self._serving:
            return
        self._serving = False
        if self._is_current():
            os.unlink(self._place.socket, dir_fd=self._place.fd)
        self._forget(self._listener)
        if release:
            os.close(self._lock)
        for connection in list(self._pending):
            self._drop(connection)
        for key in list(self._engines):
            self._retire(key)

    def _socket_on_disk(self) -> tuple[int, int] | None:
        try:
            name = os.stat(
                self._place.socket, dir_fd=self._place.fd, follow_symlinks=False
            )
        except OSError:
            return None
        return name.st_dev, name.st_ino

    def _is_current(self) -> bool:
        return self._socket_on_disk() == self._socket_id

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError:  # no descriptor left
            time.sleep(0.05)
            return
        if len(self._pending) >= _MAX_PENDING or not _is_ours(connection):
            connection.close()
            return
        self._pending[connection] = Pending(connection)
        self._watch(connection, lambda: self._read(connection))

    def _drop(self, connection: socket.socket) -> None:
        self._pending.pop(connection, None)
        self._forget(connection)

    def _read(self, connection: socket.socket) -> None:
        try:
            found = self._pending[connection].receive()
        except BlockingIOError:
            return
        except OSError:
            self._drop(connection)
            return
        if found is None:
            return
        self._pending.pop(connection)
        self._selector.unregister(connection)
        with connection:
            self._serve(connection, found)

    def _serve(self, connection: socket.socket, surroundings: bytes) -> None:
        """Hand a client over; to close its connection is to refuse it."""
        self._used = time.monotonic()
        if self._files.have_changed() or not self._is_current():
            self._drain()
            return
        with suppress(OSError):  # the client is gone, the engine is, or no fork
            limits = limits_of(connection)
            given = Surroundings.parsed(surroundings, limits)
            if given is None or given.identity != identity():
                return
            key = surroundings + repr(limits).encode()
            engine = self._engines.pop(key, None) or self._fork(given, connection)
            self._engines[key] = engine
            connection.send(HANDED_OVER)
            engine.hand_over(connection)

    def _fork(self, given: Surroundings, client: socket.socket) -> Engine:
        if len(self._pids) >= _MAX_PROCESSES:
            raise BlockingIOError
        while len(self._engines) >= _MAX_ENGINES:
            self._retire(next(iter(self._engines)))
        ours, theirs = socket.socketpair()
        try:
            pid = os.fork()
        except OSError:
            ours.close()
            theirs.close()
            raise
        if pid == 0:
            with LastWords(self._log):
                self._leave(ours, client)
                run_engine(theirs, given, self._log.write)
        theirs.close()
        self._pids.add(pid)
        engine = Engine(pid, ours)
        self._watch(ours, lambda: self._engine_ended(engine))
        return engine

    def _leave(self, *more: socket.socket) -> None:
        """In an engine: everything that is open here belongs to the front."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the engine looks itself
        self._selector.close()
        engines = (engine.control for engine in self._engines.values())
        own = (self._listener, self._wake, self._wake_end)
        for one in (*own, *engines, *self._pending, *more):
            one.close()
        for fd in (self._lock, self._place.fd):
            os.close(fd)

    def _retire(self, key: bytes) -> None:
        """Let an engine answer what it has, and end."""
        engine = self._engines.pop(key)
        self._forget(engine.control)

    def _engine_ended(self, engine: Engine) -> None:
        for key, one in list(self._engines.items()):
            if one is engine:
                self._retire(key)


def _is_ours(connection: socket.socket) -> bool:
    try:
        return peer_uid(connection) == os.getuid()
    except OSError:
        return False


def main(began_ns: int, lock: int, folder: str, name: str) -> None:
    """Be the helper; started by the client, which has locked the file for us."""
    place = Place(folder)
    log = Log(place)
    with LastWords(log):
        os.setsid()
        os.chdir("/")
        if place.socket != name:
            raise RuntimeError("the interpreter started with other options or code")
        for module in _PRELOADED:
            import_module(f"hookline.{module}")
        files = LoadedFiles()
        files.add_modules(began_ns)
        for path in (sys.executable, os.__file__):
            files.add(path, began_ns)
        # Engines share this memory for as long as nobody writes to it.
        gc.collect()
        gc.freeze()
        Front(place, lock, log, files).run()
