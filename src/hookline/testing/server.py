"""A web server on this machine for one case: it answers as told and keeps what came."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import TracebackType

from .cases import ServerAnswer


class LoopbackServer:
    """Serves one answer to every request, as long as the ``with`` block lasts."""

    def __init__(self, answer: ServerAnswer) -> None:
        self.requests: list[str] = []
        """What came in: method, path and body of each request."""
        self._closing = Event()
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", 0), _handler(self, answer, self._closing)
        )
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> LoopbackServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(
    server: LoopbackServer, answer: ServerAnswer, closing: Event
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length).decode("utf-8", "replace")
            server.requests.append(f"{self.command} {self.path} {body}")
            closing.wait(answer.delay_ms / 1000)
            try:
                self._send()
            except ConnectionError:  # the hook did not wait for it
                self.close_connection = True

        do_GET = do_PUT = do_POST  # noqa: N815 - names that the base class calls

        def _send(self) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value.replace("{server}", server.url))
            body = answer.body.encode()
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            pieces = [body] if not answer.drip_ms else [bytes([byte]) for byte in body]
            for piece in pieces:
                self.wfile.write(piece)
                self.wfile.flush()
                if answer.drip_ms and closing.wait(answer.drip_ms / 1000):
                    return

        def log_message(self, *_: object) -> None:
            """Say nothing: the case's own report is what people read."""

    return Handler
