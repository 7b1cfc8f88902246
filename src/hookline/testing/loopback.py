"""HTTP servers on the loopback interface: one that answers as told, for hooks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Generic, Self, TypeVar

from .cases import ServerAnswer


class _Server(ThreadingHTTPServer):
    request_queue_size = 256  # the default of 5 drops connections of many calls at once


class ThreadedServer:
    """Serves on a free port for the time of a ``with`` block."""

    def __init__(self, handler: Callable[..., BaseHTTPRequestHandler]) -> None:
        self._server = _Server(("127.0.0.1", 0), partial(handler, self))
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        """The address, without a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


Owner = TypeVar("Owner", bound=ThreadedServer)


class QuietHandler(BaseHTTPRequestHandler, Generic[Owner]):
    """A handler that knows its server and logs nothing."""

    def __init__(self, owner: Owner, *connection: Any) -> None:
        self.owner = owner
        super().__init__(*connection)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class AnsweringServer(ThreadedServer):
    """Gives the same answer to every request, and keeps the requests."""

    def __init__(self, answer: ServerAnswer) -> None:
        super().__init__(_Handler)
        self.answer = answer
        self.requests: list[str] = []
        """Method, path and body of each request."""
        self.closing = Event()

    def __exit__(self, *details: object) -> None:
        self.closing.set()
        super().__exit__(*details)


class _Handler(QuietHandler[AnsweringServer]):
    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length).decode("utf-8", "replace")
        self.owner.requests.append(f"{self.command} {self.path} {body}")
        self.owner.closing.wait(self.owner.answer.delay_ms / 1000)
        try:
            self._send(self.owner.answer)
        except ConnectionError:  # the hook did not wait for the answer
            self.close_connection = True

    do_GET = do_PUT = do_POST  # noqa: N815 - names that the base class calls

    def _send(self, answer: ServerAnswer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value.replace("{server}", self.owner.url))
        body = answer.body.encode()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        pieces = [bytes([byte]) for byte in body] if answer.drip_ms else [body]
        for piece in pieces:
            self.wfile.write(piece)
            self.wfile.flush()
            if answer.drip_ms and self.owner.closing.wait(answer.drip_ms / 1000):
                return
