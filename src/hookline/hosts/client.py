"""Ask the resident helper about one event; without one, the command line answers.

This runs at every step of a coding agent, so it loads next to nothing: only ``os``,
``sys`` and ``_socket``, no ``from __future__`` either.

The helper is asked in three steps, and each may fail: what the hooks depend on (the
environment, the directory, the umask, the module path) goes out, the helper accepts it,
the event goes out. Until then nothing has run, so that a helper that hangs costs
seconds and no event is handled twice. Whatever fails, the command line answers.

Nothing is sent to a process of another user. The folder of the socket is ours alone,
and the kernel says who listens.
"""

import sys

assert sys.platform == "linux", "the resident helper runs on Linux only"

import os

from .failsafe import MAX_EVENT_BYTES, Failsafe, failure_status

try:
    import _socket
except ImportError:  # a Python without sockets
    _socket = None  # type: ignore[assignment] # checked before it is used

SWITCH = "HOOKLINE_NO_RESIDENT"
ACCEPT_S = 2.0
"""How long the helper may take for each of its two acknowledgements."""
HANDED_OVER, ACCEPTED = b"H", b"A"
LENGTH_BYTES = 8
_LONGEST_S = 86_400.0
_PRIME = (1 << 61) - 1
_PATH_BYTES = 100
"""A socket's name has to fit into 108 bytes."""
_RETRY_S = 10.0
_STARTING = b"starting"
_BOOT = """\
import os, sys, time
began, lock = time.time_ns(), int(sys.argv[1])
for fd in map(int, os.listdir("/dev/fd")):
    if fd > 2 and fd != lock:
        try:
            os.close(fd)
        except OSError:
            pass
from hookline.hosts.resident import main
main(began, lock, *sys.argv[2:])
"""


class Place:
    """The folder of the helper's files, and its names there."""

    def __init__(self, folder: str) -> None:
        self.folder, self.fd = folder, private_folder(folder)
        name = f"{int.from_bytes(identity()) % _PRIME:016x}"
        self.socket, self.lock, self.log = name, f"{name}.lock", f"{name}.log"

    def address(self) -> str:
        """The path of the socket, in a form that is short enough."""
        path = f"{self.folder}/{self.socket}"
        if len(os.fsencode(path)) <= _PATH_BYTES:
            return path
        return f"/proc/self/fd/{self.fd}/{self.socket}"


def private_folder(path: str) -> int:
    """Open a folder; raises ``OSError`` if anybody else could change it."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    found = os.fstat(fd)
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        os.close(fd)
        raise PermissionError(f"{path} is not a private folder of this user")
    return fd


def identity() -> bytes:
    """What two processes that load the same code in the same way have in common."""
    flags = sys.flags
    # Without the option the first entry is the script's folder, or the current one.
    path = sys.path if flags.safe_path else sys.path[1:]
    facts = (
        *(sys.executable, sys.version, os.path.dirname(__file__), path),  # noqa: PTH120
        *(flags.isolated, flags.ignore_environment, flags.no_site, flags.no_user_site),
        *(flags.optimize, flags.utf8_mode, flags.dev_mode, flags.bytes_warning),
        *(flags.hash_randomization, flags.dont_write_bytecode, sys.warnoptions),
    )
    return repr(facts).encode("utf-8", "backslashreplace")


def folder() -> str:
    """Where the helper's files are: the runtime directory, else one of our own."""
    uid = os.getuid()
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/"):
        try:
            found = os.stat(runtime)  # noqa: PTH116
            if found.st_uid == uid and not found.st_mode & 0o022:
                return f"{runtime}/hookline"
        except OSError:
            pass
    temporary = os.environ.get("TMPDIR", "")
    return f"{temporary if temporary[:1] == '/' else '/tmp'}/hookline-{uid}"  # noqa: S108


def peer_uid(connection: "_socket.socket") -> int:
    """The user at the other end; raises ``OSError`` where the kernel cannot say."""
    # pid, uid, gid
    facts = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return int.from_bytes(facts[4:8], sys.byteorder)


def surroundings() -> bytes:
    """What hooks depend on beside the event; raises ``OSError`` without a directory."""
    mask = os.umask(0o077)
    os.umask(mask)
    cwd = os.getcwdb()  # noqa: PTH109 - no pathlib here
    here = os.stat(cwd)  # noqa: PTH116
    path = list(map(os.fsencode, sys.path))
    return b"\0".join(
        (
            *(identity(), cwd, b"%d %d" % (here.st_dev, here.st_ino)),
            *(b"%d" % mask, b"%d" % len(path), *path),
            *(name + b"=" + value for name, value in os.environb.items()),
        )
    )


def ask(failsafe: Failsafe) -> None:
    """Answer through the helper and exit; return if the command line has to answer."""
    if not _can_ask(failsafe.words):
        return
    try:
        place = Place(folder())
    except OSError:
        _start_helper()
        return
    try:
        connection = _accepted(place)
        if connection is not None:
            _answer_and_exit(connection, failsafe)
    finally:
        os.close(place.fd)


def _can_ask(arguments: list[str]) -> bool:
    is_event = 1 <= len(arguments) <= 2 and not any(w[:1] == "-" for w in arguments)
    if not is_event or os.environ.get(SWITCH, "0") not in {"", "0"}:
        return False
    # A closed stream's number would be taken by the connection.
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return None not in streams and hasattr(_socket, "AF_UNIX") and _is_plain_user()


def _is_plain_user() -> bool:
    return os.getuid() == os.geteuid() and os.getgid() == os.getegid()


def _accepted(place: Place) -> "_socket.socket | None":
    """Connect and wait until the event may be sent; None if that fails."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.settimeout(ACCEPT_S)
    try:
        connection.connect(place.address())
        if peer_uid(connection) != os.getuid():
            return None
        given = surroundings()
        connection.sendall(len(given).to_bytes(LENGTH_BYTES) + given)
        handed_over = connection.recv(1) == HANDED_OVER
    except TimeoutError:
        _replace_helper(place)
        return None
    except BlockingIOError:  # too many wait already
        return None
    except OSError:
        handed_over = False
    if not handed_over:
        _start_helper()
        return None
    try:
        return connection if connection.recv(1) == ACCEPTED else None
    except OSError:
        return None


def _answer_and_exit(connection: "_socket.socket", failsafe: Failsafe) -> None:
    """Send the event and write the answer; return if there is none."""
    event = failsafe.read()
    failsafe.doing = "the resident helper"
    if failsafe.deadline_ms is None:
        failsafe.allow(_LONGEST_S)  # the helper knows how long hooks may take
    host, name = (*failsafe.words, "")[:2]
    try:
        found = _exchange(connection, [host, name, str(failsafe.deadline_ms)], event)
    except OSError:
        found = None
    if found is None:
        from io import BytesIO, TextIOWrapper

        sys.stdin = TextIOWrapper(BytesIO(event))
        return
    status, stdout, stderr = found
    failsafe.claim()
    try:
        _write(1, stdout)
    except OSError as error:
        # Whoever cannot read the verdict must not take that for a yes.
        status = status or failure_status(name, event)
        stderr += f"hookline: standard output: {error.strerror}\n".encode()
    try:
        _write(2, stderr)
    finally:
        # Nothing is left to do, and leaving in the ordinary way takes milliseconds.
        os._exit(status)


def _exchange(
    connection: "_socket.socket", arguments: list[str], event: bytes
) -> tuple[int, bytes, bytes] | None:
    """Send one event: status, stdout and stderr; None if the helper has died."""
    if len(event) > MAX_EVENT_BYTES:
        return None
    words = b"\0".join(map(os.fsencode, arguments))
    connection.settimeout(None)
    connection.sendall(
        len(words).to_bytes(LENGTH_BYTES) + len(event).to_bytes(LENGTH_BYTES) + words
    )
    if event:  # else the engine may have answered and gone already
        connection.sendall(event)
    pieces = []
    while piece := connection.recv(1 << 20):
        pieces.append(piece)
    return parse_answer(b"".join(pieces))


def parse_answer(whole: bytes) -> tuple[int, bytes, bytes] | None:
    """Status, stdout and stderr; None where the end is missing."""
    start = 1 + 2 * LENGTH_BYTES
    if len(whole) < start:
        return None
    end = start + int.from_bytes(whole[1 : 1 + LENGTH_BYTES])
    last = end + int.from_bytes(whole[1 + LENGTH_BYTES : start])
    if len(whole) != last:
        return None
    return whole[0], whole[start:end], whole[end:]


def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _replace_helper(place: Place) -> None:
    """The helper hangs: leave it its files under no name, and start another."""
    for name in (place.socket, place.lock):
        try:
            os.unlink(name, dir_fd=place.fd)
        except OSError:
            pass
    _start_helper()


def _start_helper() -> None:
    """Start a helper in the background, unless one is being started."""
    from hookline.plan import current_depth

    if current_depth():
        return  # the limit that marks a hook would be one of the helper's for good
    try:
        os.mkdir(folder(), 0o700)  # noqa: PTH102
    except OSError:
        pass
    try:
        place = Place(folder())
        lock = _take_lock(place)
        if lock is not None:
            _spawn(place, lock)
    except OSError:
        pass


def _take_lock(place: Place) -> int | None:
    import fcntl
    import time

    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    lock = os.open(place.lock, flags, 0o600, dir_fd=place.fd)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    # The helper writes its process id as soon as it listens: one that failed to start
    # is not started again at every event.
    failed = os.read(lock, len(_STARTING)) == _STARTING
    if failed and abs(time.time() - os.fstat(lock).st_mtime) < _RETRY_S:
        os.close(lock)
        return None
    os.ftruncate(lock, 0)
    os.pwrite(lock, _STARTING, 0)
    return lock


def _spawn(place: Place, lock: int) -> None:
    import subprocess

    # What an interpreter was started with is known to this function alone.
    own_options = subprocess._args_from_interpreter_flags  # type: ignore[attr-defined] # noqa: SLF001
    words = (str(lock), place.folder, place.socket)
    os.set_inheritable(lock, True)
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0o600) for fd in range(3)]
    try:
        os.posix_spawn(
            sys.executable,
            [sys.executable, *own_options(), "-P", "-c", _BOOT, *words],
            os.environ,
            file_actions=null,
        )
    finally:
        os.close(lock)
