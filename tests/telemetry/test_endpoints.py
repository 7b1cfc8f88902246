"""The HTTP server beside the event loop, and a loop that hangs."""

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
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
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


OK: dict[str, Any] = {"ok": True}
READY = WorkerState(bus_connected=True)


def ask_checks(running: Running, path: str) -> tuple[int, dict[str, Any]]:
    status, body, headers = running.ask(path)
    assert headers["Content-Type"] == "application/json"
    assert headers["Cache-Control"] == "no-store"
    report = json.loads(body)
    assert report["status"] == ("ok" if status == 200 else "failed")
    return status, report["checks"]


def test_checks_say_what_is_wrong_and_who_is_ready(
    running: Running, subtests: pytest.Subtests
) -> None:
    """What is wrong with one check is named with it; the worker is alive all the same.

    Names of hooks are short, few and without secrets.
    """
    rows = json.loads(Path(__file__).with_name("checks.json").read_text())
    long_name = {"check": "workers", "state": {"lost": ["x" * 10_000]}}
    shown = f"no process is left of '{'x' * 100}'; another will be started"
    rows["a long name"] = {**long_name, "says": shown}
    for name, row in rows.items():
        running.state = replace(READY, **row["state"])
        with subtests.test(name):
            expected = dict.fromkeys(("event_loop", "bus", "settings", "workers"), OK)
            failed = {row["check"]: {"ok": False, "message": row["says"]}}
            assert ask_checks(running, "/readyz?verbose=1") == (503, expected | failed)
            assert ask_checks(running, "/healthz") == (200, {"event_loop": OK})
    running.state = replace(READY, reloaded=False)
    status, checks = ask_checks(running, "/readyz")
    message = "the last reload failed: the previous ones are in use"
    assert (status, checks["settings"]) == (200, {"ok": True, "message": message})


def test_metrics_are_in_the_format_that_the_answer_names(running: Running) -> None:
    status, body, headers = running.ask("/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=")
    names = {one.name for one in text_string_to_metric_families(body.decode())}
    assert "hookline_bus_connected" in names


def test_other_methods_and_paths_are_refused(running: Running) -> None:
    for path in ("/metrics", "/healthz", "/readyz", "/x"):
        head, get = running.ask(path, "HEAD"), running.ask(path)
        assert head[0] == get[0] == (404 if path == "/x" else 200)
        assert head[1] == b""
        assert int(head[2]["Content-Length"]) > 0
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        status, _, headers = running.ask("/metrics", method)
        assert (status, headers["Allow"]) == (405, "GET, HEAD")
    for path in ("/", "/metrics/", "/..", "/METRICS"):
        assert running.ask(path)[0] == 404


def test_invalid_request_is_refused(
    running: Running, subtests: pytest.Subtests
) -> None:
    for data, status in (
        (b"nonsense\r\n\r\n", 400),
        (b"GET /healthz FTP/1.0\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", 431),
        (b"\xff" * 100_000, 414),
    ):
        with subtests.test(str(data[:20])):
            try:
                answer = running.send(data)
            except ConnectionError:  # closed while we still send
                answer = b""
            # What names no version is answered as HTTP/0.9, without a status.
            refused = b'{"error":{"message":"Bad Request"}}\n'
            assert answer in (b"", refused) or int(answer.split()[1]) == status
            assert running.ask("/healthz")[0] == 200


def test_page_that_rebinds_its_name_reads_nothing(
    running: Running, subtests: pytest.Subtests
) -> None:
    """Names of hooks are not for any page that a browser opens."""
    for headers, status in (
        ("Host: evil.example:9464", 421),
        ("A: b\r\nhOST:\tevil.example ", 421),
        ("Host: [::1]:1\r\nHost: evil", 421),
        ("Host: LocalHost:9\r\nA: b", 200),
        ("Host: [::1]:9", 200),
        ("Host: 10.0.0.1", 200),
        ("Accept: */*", 200),
    ):
        with subtests.test(headers):
            request = f"GET /metrics HTTP/1.1\r\n{headers}\r\n\r\n"
            answer = running.send(request.encode())
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


def test_silent_clients_shut_nobody_out(running: Running) -> None:
    silent = [running.connect() for _ in range(100)]
    for client in silent:
        client.sendall(b"GET /healthz HTTP/1.1\r\nX: ")  # and never the rest
    assert running.ask("/healthz")[0] == 200
    for client in silent:
        client.close()


def test_a_silent_client_is_cut_off_in_the_end(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints._Handler, "timeout", 0.2)
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


def test_address_that_cannot_be_had_is_an_error_that_names_it() -> None:
    for host in ("203.0.113.1", "ä..b", "a" * 300):
        with pytest.raises(HooklineError, match=f"--metrics {re.escape(host)}:0: "):
            asyncio.run(started(host, 0))


async def started(host: str, port: int) -> str:
    endpoints_there = Endpoints(PrometheusTelemetry(), WorkerState)
    try:
        return endpoints_there.start(host, port)
    finally:
        endpoints_there.stop()


def test_ipv6_is_served() -> None:
    try:
        assert asyncio.run(started("::1", 0)).startswith("[::1]:")
    except HooklineError as error:
        pytest.skip(f"no IPv6 here: {error}")


def test_the_port_is_free_again_after_the_stop(running: Running) -> None:
    with running.connect():
        running.endpoints.stop()
    socket.create_server(("127.0.0.1", running.port)).close()
