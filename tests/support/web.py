"""A web server on a free port whose bytes a test decides, and what reached it."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Self

from msgspec import Struct

PATIENCE_S = 60.0


class Exchange(Struct, kw_only=True):
    """One request, and how to answer it by hand."""

    target: str
    headers: dict[str, str]
    body: bytes
    number: int
    """Of the request on its connection, from 1."""
    connection: socket.socket

    @property
    def event(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


Answer = Callable[[Exchange], bytes | None]
"""The bytes to send; None closes the connection."""


def reply(body: object = b"", status: int = 200, **headers: str) -> bytes:
    """A whole answer; a dict is sent as JSON."""
    text = json.dumps(body) if isinstance(body, dict | list | bool) else body
    data = text.encode() if isinstance(text, str) else bytes(text)  # type: ignore[call-overload] # bytes by now
    phrase = HTTPStatus(status).phrase
    lines = [f"HTTP/1.1 {status} {phrase}", f"Content-Length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


class WebServer:
    """Serves each connection in a thread of its own, with keep-alive."""

    def __init__(
        self, answer: Answer | bytes, tls: ssl.SSLContext | None = None
    ) -> None:
        self._answer = answer
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._port = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.exchanges: list[Exchange] = []
        self.connections = 0
        self.most_open = 0
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self._port}"

    @property
    def open(self) -> int:
        return len(self._open)

    def __enter__(self) -> Self:
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        # Closed under a thread that accepts, its number may be the next server's.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join(PATIENCE_S)
        self._listener.close()
        for connection in tuple(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.wait(lambda: not self._open)

    def wait(self, condition: Callable[[], bool]) -> None:
        """Wait on a state, from a thread."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, "it did not come to that"
            time.sleep(0.002)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self._open.add(connection)
                self.most_open = max(self.most_open, len(self._open))
            threading.Thread(
                target=self._serve, args=(connection,), daemon=True
            ).start()

    def _serve(self, plain: socket.socket) -> None:
        connection = plain
        try:
            if self._tls is not None:
                connection = self._tls.wrap_socket(plain, server_side=True)
                with self._lock:
                    self._open ^= {plain, connection}
            self._talk(connection)
        except OSError:
            pass  # the client went away
        finally:
            connection.close()
            with self._lock:
                self._open -= {plain, connection}

    def _talk(self, connection: socket.socket) -> None:
        number = 0
        with connection.makefile("rb") as stream:
            while line := stream.readline():
                number += 1
                headers: dict[str, str] = {}
                while (field := stream.readline().strip()) != b"":
                    name, _, value = field.decode("latin-1").partition(":")
                    headers[name.lower()] = value.strip()
                body = stream.read(int(headers.get("content-length", 0)))
                exchange = Exchange(
                    target=line.split()[1].decode(),
                    headers=headers,
                    body=body,
                    number=number,
                    connection=connection,
                )
                self.exchanges.append(exchange)
                found = self._answer
                said = found if isinstance(found, bytes) else found(exchange)
                if said is None:
                    return
                connection.sendall(said)


def hook(server: WebServer, path: str = "/", **more: Any) -> dict[str, Any]:
    """An http hook that asks this server."""
    return {"type": "http", "name": "service", "url": f"{server.url}{path}", **more}
