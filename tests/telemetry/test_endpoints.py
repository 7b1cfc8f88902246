"""The HTTP server beside the event loop, and a loop that hangs (issue 16)."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hookline import HooklineError
from hookline.telemetry import endpoints
from hookline.telemetry.endpoints import Endpoints
from hookline.telemetry.health import WorkerState
from hookline.telemetry.prometheus import PrometheusTelemetry


class Running:
    """Endpoints whose event loop is in a thread of its own."""

    def __init__(self, state: WorkerState) -> None:
        self.state = state
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.endpoints = self.call(self._make())
        address = self.endpoints.start("127.0.0.1", 0)
        self.port = int(address.rpartition(":")[2])

    async def _make(self) -> Endpoints:
        return Endpoints(PrometheusTelemetry(), lambda: self.state)

    def call(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Let the loop hang, as a hook that blocks it does."""
        hangs, release = threading.Event(), threading.Event()

        def hang() -> None:
            hangs.set()
            release.wait()

        self._loop.call_soon_threadsafe(hang)
        hangs.wait()
        yield
        release.set()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port))

    def ask(self, path: str, method: str = "GET") -> tuple[int, bytes, dict[str, str]]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        with closing(connection):
            connection.request(method, path)
            response = connection.getresponse()
            return response.status, response.read(), dict(response.getheaders())

    def send(self, data: bytes) -> bytes:
        with self.connect() as client:
            client.sendall(data)
            return b"".join(iter(lambda: client.recv(65536), b""))

    def stop(self) -> None:
        self.endpoints.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def running() -> Iterator[Running]:
    found = Running(WorkerState(bus_connected=True))
    yield found
    found.stop()


def test_healthy_and_ready_are_200_with_each_check(running: Running) -> None:
    status, body, headers = running.ask("/healthz")
    assert status == 200
    assert json.loads(body) == {"status": "ok", "checks": {"event_loop": {"ok": True}}}
    assert headers["Content-Type"] == "application/json"
    assert headers["Cache-Control"] == "no-store"
    status, body, _ = running.ask("/readyz?verbose=1")
    assert status == 200
    assert set(json.loads(body)["checks"]) == {
        *("event_loop", "bus", "settings", "workers"),
    }


def test_not_ready_is_503_and_says_why(running: Running) -> None:
    running.state = WorkerState(lost=("guard",))
    status, body, _ = running.ask("/readyz")
    assert status == 503
    found = json.loads(body)
    assert found["status"] == "failed"
    assert "not connected" in found["checks"]["bus"]["message"]
    assert "'guard'" in found["checks"]["workers"]["message"]
    assert running.ask("/healthz")[0] == 200


def test_metrics_are_in_the_format_that_the_answer_names(running: Running) -> None:
    status, body, headers = running.ask("/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=")
    names = {one.name for one in text_string_to_metric_families(body.decode())}
    assert "hookline_bus_connected" in names


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/readyz", "/x"])
def test_head_has_the_same_status_and_no_body(running: Running, path: str) -> None:
    head, get = running.ask(path, "HEAD"), running.ask(path)
    assert head[0] == get[0]
    assert head[1] == b""
    assert int(head[2]["Content-Length"]) > 0


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_refused(running: Running, method: str) -> None:
    status, _, headers = running.ask("/metrics", method)
    assert status == 405
    assert headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", ["/", "/metrics/", "//metrics", "/..", "/METRICS"])
def test_other_paths_are_not_found(running: Running, path: str) -> None:
    assert running.ask(path)[0] == 404


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /healthz\r\n\r\n", 400),
        (b"GET /healthz FTP/1.0\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", 431),
        (b"\xff" * 100_000, 431),
    ],
    ids=["nonsense", "http-0.9", "ftp", "tls", "long-header", "no-end"],
)
def test_an_invalid_request_is_refused(
    running: Running, request_bytes: bytes, status: int
) -> None:
    try:
        answer = running.send(request_bytes)
    except ConnectionError:  # closed while we still send
        answer = b""
    assert not answer or int(answer.split()[1]) == status
    assert running.ask("/healthz")[0] == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ("Host: evil.example:9464", 421),
        ("A: b\r\nhOST:\tevil.example ", 421),
        ("Host: [::1]:1\r\nHost: evil", 421),
        ("Host: LocalHost:9\r\nA: b", 200),
        ("Host: [::1]:9", 200),
        ("Host: 10.0.0.1", 200),
        ("Accept: */*", 200),
    ],
)
def test_a_page_that_rebinds_its_name_reads_nothing(
    running: Running, headers: str, status: int
) -> None:
    """Issue 16: names of hooks are not for any page that a browser opens."""
    answer = running.send(f"GET /metrics HTTP/1.1\r\n{headers}\r\n\r\n".encode())
    assert int(answer.split()[1]) == status
    assert (b"hookline_hooks" in answer) is (status == 200)


def test_a_loop_that_hangs_is_seen_and_its_recovery_too(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "LOOP_S", 0.2)
    with running.hanging():
        for path in ("/healthz", "/readyz"):
            status, body, _ = running.ask(path)
            assert status == 503
            assert (
                "does not answer" in json.loads(body)["checks"]["event_loop"]["message"]
            )
        status, body, _ = running.ask("/metrics")
        assert status == 200
        assert b"hookline_event_loop_up 0.0" in body
    assert running.ask("/readyz")[0] == 200


def test_questions_do_not_pile_up_in_a_loop_that_hangs(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "LOOP_S", 0.2)
    asked = 0

    def count() -> WorkerState:
        nonlocal asked
        asked += 1
        return running.state

    running.endpoints._state = count
    with running.hanging(), ThreadPoolExecutor(16) as pool:
        statuses = list(pool.map(lambda _: running.ask("/healthz")[0], range(32)))
    assert statuses == [503] * 32
    assert running.ask("/healthz")[0] == 200
    assert asked <= 2


def test_silent_clients_shut_nobody_out_and_take_no_threads(running: Running) -> None:
    before = threading.active_count()
    silent = [running.connect() for _ in range(3 * endpoints.MAX_CLIENTS)]
    for client in silent:
        client.sendall(b"GET /healthz HTTP/1.1\r\nX: ")  # and never the rest
    assert running.ask("/healthz")[0] == 200
    assert threading.active_count() == before
    assert len(running.endpoints._clients) <= endpoints.MAX_CLIENTS
    for client in silent:
        client.close()


def test_a_silent_client_is_cut_off_in_the_end(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "REQUEST_S", 0.2)
    with running.connect() as client:
        client.sendall(b"GET ")
        try:
            assert client.recv(100) == b""
        except ConnectionResetError:
            pass


def test_the_loop_of_the_events_is_not_delayed_by_slow_clients(
    running: Running,
) -> None:
    clients = [running.connect() for _ in range(20)]
    for client in clients:
        client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")  # and never read the answer

    async def nothing() -> float:
        return time.monotonic()

    began = time.monotonic()
    for _ in range(100):
        running.call(nothing())
    assert time.monotonic() - began < 30
    for client in clients:
        client.close()


def test_a_port_in_use_is_an_error_that_names_it() -> None:
    async def start(port: int) -> None:
        Endpoints(PrometheusTelemetry(), WorkerState).start("127.0.0.1", port)

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HooklineError, match=f"--metrics 127.0.0.1:{port}: Address"):
            asyncio.run(start(port))


@pytest.mark.parametrize("host", ["203.0.113.1", "ä..b", "a" * 300])
def test_a_host_that_is_not_ours_is_an_error(host: str) -> None:
    async def start() -> None:
        Endpoints(PrometheusTelemetry(), WorkerState).start(host, 0)

    with pytest.raises(HooklineError, match=f"--metrics {re.escape(host)}:0: "):
        asyncio.run(start())


def test_ipv6_is_served() -> None:
    async def start() -> str:
        found = Endpoints(PrometheusTelemetry(), WorkerState)
        try:
            return found.start("::1", 0)
        finally:
            found.stop()

    try:
        assert asyncio.run(start()).startswith("[::1]:")
    except HooklineError as error:
        pytest.skip(f"no IPv6 here: {error}")


def test_the_port_is_free_again_after_the_stop(running: Running) -> None:
    with running.connect():
        running.endpoints.stop()
    socket.create_server(("127.0.0.1", running.port)).close()
