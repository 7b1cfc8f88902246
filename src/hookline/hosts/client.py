"""Ask the resident helper about one event; without one, the command line answers.

This runs at every step of a coding agent, so it loads next to nothing: only ``os``,
``sys`` and ``_socket``, no ``from __future__`` either.

There is a helper for each set of surroundings: everything that decides what hooks see
and do, beside the event (``surroundings``). The client finds it by a socket that is
named after them. Where nobody listens, the process starts one (``resident.start``) and
answers this one event by itself.

The helper compares the surroundings and accepts; then the event goes out. Until then
nothing has run, so that a helper that hangs costs seconds and no event is handled
twice. Whatever fails, the command line answers.

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
"""How long the helper may take to accept a client."""
ACCEPTED = b"A"
LENGTH_BYTES = 8
OF_ONE_CALL = b"CLAUDE_ENV_FILE"
"""A variable that a host sets anew for each call of a hook.

No helper has it, and none is asked for a call that has it.
"""
_RIGHTS = (b"Uid", b"Gid", b"Groups", b"NoNewPrivs", b"Seccomp", b"Cap")
_NAMESPACES = ("mnt", "user", "pid", "net")
_LONGEST_S = 86_400.0
_PRIME = (1 << 61) - 1
LOG = "errors.log"
"""Of all helpers, in the folder of their sockets."""


class Place:
    """The folder of the helpers' files, and the names of one helper's there."""

    def __init__(self, surroundings: bytes) -> None:
        self.surroundings, self.folder = surroundings, folder()
        try:
            self.fd = private_folder(self.folder)
        except FileNotFoundError:
            os.mkdir(self.folder, 0o700)  # noqa: PTH102
            self.fd = private_folder(self.folder)
        # The helper compares all of the surroundings: the name need not be unique.
        self.socket = f"{int.from_bytes(surroundings) % _PRIME:016x}"
        self.lock = f"{self.socket}.lock"

    def address(self) -> str:
        """The path of the socket, in a form that fits into an address."""
        return f"/proc/self/fd/{self.fd}/{self.socket}"

    def clear(self) -> None:
        """Leave the helper its files under no name: it ends, and another may start."""
        for name in (self.socket, self.lock):
            try:
                os.unlink(name, dir_fd=self.fd)
            except FileNotFoundError:
                pass


def folder() -> str:
    """Where the helpers' files are: the runtime directory, else one of our own."""
    uid = os.getuid()
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/"):
        try:
            status = os.stat(runtime)  # noqa: PTH116
            if status.st_uid == uid and not status.st_mode & 0o022:
                return f"{runtime}/hookline"
        except OSError:
            pass
    temporary = os.environ.get("TMPDIR", "")
    return f"{temporary if temporary[:1] == '/' else '/tmp'}/hookline-{uid}"  # noqa: S108


def private_folder(path: str) -> int:
    """Open a folder; raises ``OSError`` if anybody else could change it."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    status = os.fstat(fd)
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        os.close(fd)
        raise PermissionError(f"{path} is not a private folder of this user")
    return fd


def surroundings() -> bytes:
    """What decides, beside the event, what hooks see and may do in this process.

    Raises ``OSError`` where that cannot be told, as in a directory that is gone.
    """
    mask = os.umask(0o077)
    os.umask(mask)
    cwd = os.getcwdb()  # noqa: PTH109 - no pathlib here
    status = os.stat(cwd)  # noqa: PTH116
    # Which code is loaded, and how.
    code = sys.executable, sys.version, __file__, sys.path, tuple(sys.flags)
    environment = os.environb.items()
    return b"\0".join(
        (
            repr((*code, sys.warnoptions)).encode("utf-8", "backslashreplace"),
            *(cwd, b"%d %d %d" % (status.st_dev, status.st_ino, mask)),
            rights("self"),
            *(b"%b=%b" % pair for pair in environment if pair[0] != OF_ONE_CALL),
        )
    )


def rights(process: str) -> bytes:
    """What the kernel lets a process do; raises ``OSError`` where it is not told.

    Two processes of one user may differ in it: one of them is in a sandbox.
    """
    with open(f"/proc/{process}/status", "rb") as file:  # noqa: PTH123
        lines = [line for line in file if line.startswith(_RIGHTS)]
    with open(f"/proc/{process}/limits", "rb") as file:  # noqa: PTH123
        lines.append(file.read())
    links = [os.readlink(f"/proc/{process}/ns/{name}") for name in _NAMESPACES]  # noqa: PTH115
    return b"".join(lines) + " ".join(links).encode()


def peer(connection: "_socket.socket") -> tuple[int, int]:
    """Process and user at the other end; ``OSError`` if the kernel cannot say."""
    # pid, uid, gid
    facts = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    pid, uid = (int.from_bytes(facts[at : at + 4], sys.byteorder) for at in (0, 4))
    return pid, uid


def ask(failsafe: Failsafe) -> Place | None:
    """Answer through the helper and exit; return if the command line has to answer.

    Gives the place where a helper is missing.
    """
    words = failsafe.words
    # A closed stream's number would be taken by the connection.
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if (
        not 1 <= len(words) <= 2
        or any(word[:1] == "-" for word in words)
        or os.environ.get(SWITCH, "0") not in {"", "0"}
        or "HOOKLINE_DEPTH" in os.environ  # a hook: its environment is of one event
        or None in streams
        or not hasattr(_socket, "AF_UNIX")
        or (os.getuid(), os.getgid()) != (os.geteuid(), os.getegid())
    ):
        return None
    try:
        place = Place(surroundings())
    except OSError:
        return None
    if OF_ONE_CALL not in os.environb:
        connection = accepted(place)
        if connection is not None:
            _answer_and_exit(connection, failsafe)
            return None
    return place


def accepted(place: Place) -> "_socket.socket | None":
    """Connect and wait until the event may be sent; None if that fails."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.settimeout(ACCEPT_S)
    length = len(place.surroundings).to_bytes(LENGTH_BYTES)
    try:
        connection.connect(place.address())
        if peer(connection)[1] != os.getuid():
            return None
        connection.sendall(length + place.surroundings)
        return connection if connection.recv(1) == ACCEPTED else None
    except TimeoutError:
        place.clear()
    except OSError:
        pass
    return None


def _answer_and_exit(connection: "_socket.socket", failsafe: Failsafe) -> None:
    """Send the event and write the answer; return if there is none."""
    event = failsafe.read()
    failsafe.doing = "the resident helper"
    if failsafe.deadline_ms is None:
        failsafe.allow(_LONGEST_S)  # the helper knows how long hooks may take
    host, name = (*failsafe.words, "")[:2]
    try:
        answer = _exchange(connection, [host, name, str(failsafe.deadline_ms)], event)
    except OSError:
        answer = None
    if answer is None:
        from io import BytesIO, TextIOWrapper

        sys.stdin = TextIOWrapper(BytesIO(event))
        return
    status, stdout, stderr = answer
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
        len(words).to_bytes(LENGTH_BYTES) + words + len(event).to_bytes(LENGTH_BYTES)
    )
    if event:  # else the helper may have answered already, and gone
        connection.sendall(event)
    pieces = []
    while piece := connection.recv(1 << 20):
        pieces.append(piece)
    return parse_answer(b"".join(pieces))


def parse_answer(answer: bytes) -> tuple[int, bytes, bytes] | None:
    """Status, stdout and stderr; None where the end is missing."""
    start = 1 + 2 * LENGTH_BYTES
    if len(answer) < start:
        return None
    middle = start + int.from_bytes(answer[1 : 1 + LENGTH_BYTES])
    end = middle + int.from_bytes(answer[1 + LENGTH_BYTES : start])
    if len(answer) != end:
        return None
    return answer[0], answer[start:middle], answer[middle:]


def _write(fd: int, data: bytes) -> None:
    unwritten = memoryview(data)
    while unwritten:
        unwritten = unwritten[os.write(fd, unwritten) :]
