"""``/metrics``, ``/healthz`` and ``/readyz`` over HTTP, in a thread of their own.

Whoever asks can neither delay the events nor use up threads: one thread answers all,
with a limit on connections, on the size of a request and on the time for it. The event
loop of the events is asked for its state; one that hangs is told from one that works.
On a loopback address no page in a browser can read the answers.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address

import msgspec

from hookline.errors import HooklineError

from .health import WorkerState, live_checks, ready_checks, report
from .prometheus import CONTENT_TYPE, PrometheusTelemetry

LOOP_S = 2.0
"""How long the event loop may take to answer."""
REQUEST_S = 10.0
MAX_CLIENTS = 64
_MAX_HEAD = 8 * 1024
_STOP_S = 5.0
_PAUSE_S = 0.1

Answer = tuple[HTTPStatus, str, bytes]


class Endpoints:
    """The HTTP server of one worker; ``start`` and ``stop`` it on its event loop."""

    def __init__(
        self, figures: PrometheusTelemetry, state: Callable[[], WorkerState]
    ) -> None:
        self._figures = figures
        self._state = state
        self._loop = asyncio.get_running_loop()
        self._asked: Future[WorkerState] | None = None
        self._clients: dict[asyncio.Task[None], None] = {}
        self._thread: threading.Thread | None = None
        self._own_loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._names: set[str] | None = None
        """The names that requests may have used; None for any."""

    def start(self, host: str, port: int) -> str:
        """Listen; returns the address, such as ``127.0.0.1:9464``."""
        listener = _listen(host, port)
        address = listener.getsockname()
        if ip_address(address[0].partition("%")[0]).is_loopback:
            self._names = {"", "localhost", host.lower()}
        started = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run(listener, started)),
            name="hookline-metrics",
            daemon=True,
        )
        self._thread.start()
        started.wait()
        return _shown(address[0], address[1])

    def stop(self) -> None:
        """Close all connections and end the thread."""
        if self._own_loop is not None and self._thread is not None:
            self._own_loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(_STOP_S)
            self._own_loop = None

    async def _run(self, listener: socket.socket, started: threading.Event) -> None:
        self._own_loop = asyncio.get_running_loop()
        self._listen_on(listener)
        started.set()
        await self._stopping.wait()
        self._own_loop.remove_reader(listener)
        listener.close()
        ending = list(self._clients)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    def _listen_on(self, listener: socket.socket) -> None:
        if not self._stopping.is_set():
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        # In one step: a task that is cancelled while it accepts would lose a client.
        try:
            client, _ = listener.accept()
        except BlockingIOError:
            return  # the client is gone
        except OSError:  # no descriptor is left
            loop = asyncio.get_running_loop()
            loop.remove_reader(listener)
            loop.call_later(_PAUSE_S, self._listen_on, listener)
            return
        client.setblocking(False)
        if len(self._clients) >= MAX_CLIENTS:
            # The newest one is served: those that are slow shut nobody out.
            oldest = next(iter(self._clients))
            del self._clients[oldest]
            oldest.cancel()
        task = asyncio.get_running_loop().create_task(self._serve(client))
        self._clients[task] = None
        task.add_done_callback(partial(self._forget, client))

    def _forget(self, client: socket.socket, task: asyncio.Task[None]) -> None:
        client.close()  # also where the task was cancelled before it began
        self._clients.pop(task, None)

    async def _serve(self, client: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=client, limit=_MAX_HEAD)
        try:
            async with asyncio.timeout(REQUEST_S):
                writer.write(await self._response(reader))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client is gone, or too slow
        finally:
            writer.transport.abort()

    async def _response(self, reader: asyncio.StreamReader) -> bytes:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return _encoded(_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE))
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _encoded(_error(HTTPStatus.BAD_REQUEST))
        method, target, _ = words
        if self._names is not None and not _hosts(head) <= self._names:
            answer = _error(
                HTTPStatus.MISDIRECTED_REQUEST, "ask 127.0.0.1 or localhost"
            )
        elif method not in {b"GET", b"HEAD"}:
            answer = _error(HTTPStatus.METHOD_NOT_ALLOWED)
        else:
            answer = await self._answer(target.partition(b"?")[0])
        return _encoded(answer, with_body=method != b"HEAD")

    async def _answer(self, path: bytes) -> Answer:
        if path == b"/metrics":
            state = await self._ask_loop()
            return HTTPStatus.OK, CONTENT_TYPE, self._figures.render(state)
        if path == b"/healthz":
            checks = live_checks(await self._ask_loop())
        elif path == b"/readyz":
            checks = ready_checks(await self._ask_loop())
        else:
            return _error(HTTPStatus.NOT_FOUND)
        works = all(check.ok for check in checks.values())
        status = HTTPStatus.OK if works else HTTPStatus.SERVICE_UNAVAILABLE
        return _json(status, report(checks))

    async def _ask_loop(self) -> WorkerState | None:
        """The state, from the loop of the events; None if that does not answer."""
        # One question at a time: they must not pile up in a loop that hangs.
        if self._asked is None or self._asked.done():
            asking = asyncio.run_coroutine_threadsafe(self._find_state(), self._loop)
            self._asked = asking
        answer = asyncio.wrap_future(self._asked)
        done, _ = await asyncio.wait({answer}, timeout=LOOP_S)
        return answer.result() if done else None

    async def _find_state(self) -> WorkerState:
        return self._state()


def _listen(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, _, _, _, address = found[0]
        listener = socket.create_server(address, family=family, backlog=MAX_CLIENTS)
    except (OSError, UnicodeError) as error:
        # asyncio and socket add the address to it, which the message has already.
        why = str(getattr(error, "strerror", "invalid host")).partition(" (while")[0]
        raise HooklineError(f"--metrics {_shown(host, port)}: {why}") from error
    listener.setblocking(False)
    return listener


def _hosts(head: bytes) -> set[str]:
    """The names of this host in a request; an address in numbers cannot be rebound."""
    found = re.findall(rb"\r\nhost:[ \t]*(.*?)(?::\d*)?[ \t]*(?=\r\n)", head.lower())
    names = {name.decode("latin-1") for name in found}
    return {name for name in names if not _is_address(name.strip("[]"))}


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _json(status: HTTPStatus, content: object) -> Answer:
    return status, "application/json", msgspec.json.encode(content) + b"\n"


def _error(status: HTTPStatus, message: str = "") -> Answer:
    return _json(status, {"error": {"message": message or status.phrase}})


def _encoded(answer: Answer, *, with_body: bool = True) -> bytes:
    status, content_type, body = answer
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
    ]
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        lines.append("Allow: GET, HEAD")
    head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
    return head + body if with_body else head
