"""``/metrics``, ``/healthz`` and ``/readyz`` over HTTP, in threads of their own.

The event loop of the events is asked for its state; one that hangs is told from one
that works. On a loopback address no page in a browser can read the answers.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any

import msgspec

from hookline.errors import HooklineError

from .health import WorkerState, live_checks, ready_checks, report
from .prometheus import CONTENT_TYPE, PrometheusTelemetry

LOOP_S = 2.0
"""How long the event loop may take to answer."""
REQUEST_S = 10.0
"""How long a client may take to send its request, and to read the answer."""


class Endpoints:
    """The HTTP server of one worker; ``start`` and ``stop`` it on its event loop."""

    def __init__(
        self, figures: PrometheusTelemetry, state: Callable[[], WorkerState]
    ) -> None:
        self.figures = figures
        self._state = state
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._asked: Future[WorkerState] | None = None
        self._server: ThreadingHTTPServer | None = None
        self.names: set[str] | None = None
        """The names that requests may have used; None for any."""

    def start(self, host: str, port: int) -> str:
        """Listen; returns the address, such as ``127.0.0.1:9464``."""
        endpoints = self

        class Handler(_Handler):
            worker = endpoints

        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            family, _, _, _, address = addresses[0]

            class Server(ThreadingHTTPServer):
                address_family = family
                daemon_threads = True
                block_on_close = False

                def handle_error(self, request: Any, client_address: Any) -> None:
                    """A client that is gone, or too slow."""

            self._server = Server((str(address[0]), int(address[1])), Handler)
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", "invalid host")
            raise HooklineError(f"--metrics {_shown(host, port)}: {why}") from error
        bound = self._server.server_address
        if ip_address(str(bound[0]).partition("%")[0]).is_loopback:
            self.names = {"", "localhost", host.lower()}
        threading.Thread(
            target=self._server.serve_forever, name="hookline-metrics", daemon=True
        ).start()
        return _shown(str(bound[0]), int(bound[1]))

    def stop(self) -> None:
        """Take no more requests."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def ask_loop(self) -> WorkerState | None:
        """The state, from the loop of the events; None if that does not answer."""
        with self._lock:
            # One question at a time: they must not pile up in a loop that hangs.
            if self._asked is None or self._asked.done():
                asking = self._find_state()
                self._asked = asyncio.run_coroutine_threadsafe(asking, self._loop)
            question = self._asked
        try:
            return question.result(LOOP_S)
        except TimeoutError:
            return None

    async def _find_state(self) -> WorkerState:
        return self._state()


class _Handler(BaseHTTPRequestHandler):
    worker: Endpoints
    server_version, sys_version = "hookline", ""
    timeout = REQUEST_S

    def do_GET(self) -> None:
        worker, path = self.worker, self.path.partition("?")[0]
        hosts = {_name_of(host) for host in self.headers.get_all("host", [])}
        if worker.names is not None and not hosts <= worker.names:
            message = "ask 127.0.0.1 or localhost"
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, message)
        elif path == "/metrics":
            body = worker.figures.render(worker.ask_loop())
            self._answer(HTTPStatus.OK, CONTENT_TYPE, body)
        elif path in {"/healthz", "/readyz"}:
            checks = (live_checks if path == "/healthz" else ready_checks)(
                worker.ask_loop()
            )
            works = all(check.ok for check in checks.values())
            status = HTTPStatus.OK if works else HTTPStatus.SERVICE_UNAVAILABLE
            self._answer_json(status, report(checks))
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    do_HEAD = do_GET  # noqa: N815 - as above

    def send_error(
        self, code: int, message: str | None = None, explain: str | None = None
    ) -> None:
        """Answer a request that is refused, here or by the standard library."""
        del explain
        status = HTTPStatus(code)
        if status is HTTPStatus.NOT_IMPLEMENTED:  # no do_POST, for example
            status = HTTPStatus.METHOD_NOT_ALLOWED
        text = message if status is HTTPStatus.MISDIRECTED_REQUEST else status.phrase
        self._answer_json(status, {"error": {"message": text}})

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - named by the standard library
        """Log nothing: each scrape would be a line."""

    def _answer_json(self, status: HTTPStatus, content: object) -> None:
        body = msgspec.json.encode(content) + b"\n"
        self._answer(status, "application/json", body)

    def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _name_of(host: str) -> str:
    """The name in a ``Host`` header; "" for an address, which cannot be rebound."""
    name, colon, port = host.strip().lower().rpartition(":")
    name = name if colon and port.isdecimal() else host.strip().lower()
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return name
    return ""


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
