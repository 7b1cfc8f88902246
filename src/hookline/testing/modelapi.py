"""A server on this machine that speaks the REST APIs of the model services.

For tests, examples and demonstrations without a network: the real clients of
google-genai, OpenAI (Chat Completions) and Anthropic (Messages) talk to it, streaming
or not. It gives one prepared answer after the other and keeps what it was asked.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, cast

from msgspec import Struct

from . import modelwire


class Answer(Struct, frozen=True):
    """What the model is to say: text, and calls as (name, arguments)."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


class Asked(Struct, frozen=True):
    """One request that came in."""

    path: str
    body: dict[str, Any]


class ModelServer:
    """Serves on a free port of the loopback interface; use it as ``with``."""

    def __init__(self, answers: Iterable[Answer | str] = ()) -> None:
        self._answers = iter(answers)
        self._lock = threading.Lock()
        self.requests: list[Asked] = []
        self.gate: threading.Event | None = None
        """Where set, a stream waits for it after its first chunk."""
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )

    @property
    def url(self) -> str:
        """Where it is, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, path: str, body: dict[str, Any]) -> Answer:
        """Note a request and give the next answer; an empty one after the last."""
        with self._lock:
            self.requests.append(Asked(path, body))
            answer = next(self._answers, "")
        return Answer(answer) if isinstance(answer, str) else answer

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.gate is not None:
            self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, owner: ModelServer) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer as the service whose path it is."""
        owner = cast("_Server", self.server).owner
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length) or b"{}")
        service = modelwire.service_of(self.path)
        if service is None:
            self._send(404, {"error": {"message": f"no such path: {self.path}"}})
            return
        answer = owner.take(self.path, body)
        if not service.is_streamed(self.path, body):
            self._send(200, service.whole(answer.text, answer.calls))
            return
        self._stream(service.events(answer.text, answer.calls), owner.gate)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Keep quiet."""

    def _send(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterator[str], gate: threading.Event | None) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for at, event in enumerate(events):
                if at == 1 and gate is not None:
                    gate.wait()
                self.wfile.write(event.encode())
                self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client has hung up, as an aborted one does
