"""TLS, and the options of the command line that lead to it.

TLS given is TLS or nothing: not a byte goes out in clear.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from hookline.bus import HookBusClient, NatsBus
from hookline.bus.server import RequestServer
from hookline.cli.connection import add_connection_arguments, connect, nats_options
from hookline.cli.options import Options, Parser
from hookline.errors import BusConnectionError
from tests.support.certificates import make_certificates
from tests.support.commandline import hookline, run_command
from tests.support.nats import NatsServer

from .fakes import RecordingHandler

TOOL: dict[str, Any] = {"tool_name": "write_file", "tool_input": {"path": "hunter2"}}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


@pytest.fixture(scope="module")
def sealed(
    tmp_path_factory: pytest.TempPathFactory, certificates: Path
) -> Iterator[NatsServer]:
    """A server that accepts only TLS with a client certificate."""
    server = NatsServer(
        tmp_path_factory.mktemp("sealed"),
        *("--tlsverify", "--tlscert", str(certificates / "node.pem")),
        *("--tlskey", str(certificates / "node.key")),
        *("--tlscacert", str(certificates / "ca.pem")),
    ).start()
    yield server
    server.stop()


def options_of(*words: str) -> Options:
    parser = Parser()
    add_connection_arguments(parser)
    return parser.parse_args(words)


def tls_words(folder: Path, *names: str) -> list[str]:
    files = {"ca": "ca.pem", "cert": "node.pem", "key": "node.key"}
    return [
        word for name in names for word in (f"--tls-{name}", str(folder / files[name]))
    ]


async def test_the_end_of_a_connection_with_tls_is_no_warning_of_asyncio(
    tmp_path: Path, certificates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """``returning true from eof_received() has no effect when using ssl``."""
    server = NatsServer(
        tmp_path,
        *("--tls", "--tlscert", str(certificates / "node.pem")),
        *("--tlskey", str(certificates / "node.key")),
    ).start()
    options = options_of("--bus", server.url, *tls_words(certificates, "ca"))
    async with await connect(options) as bus:
        server.stop()
        while bus.is_connected:  # noqa: ASYNC110 - the bus has no event to wait on
            await asyncio.sleep(0.01)
    assert [record for record in caplog.records if record.name == "asyncio"] == []


async def test_requests_go_over_tls_with_certificates_on_both_sides(
    sealed: NatsServer, certificates: Path, prefix: str
) -> None:
    words = tls_words(certificates, "ca", "cert", "key")
    options = options_of("--bus", sealed.url, "--prefix", prefix, *words)
    async with await connect(options) as serving, await connect(options) as asking:
        RequestServer(RecordingHandler(), serving).subscribe()
        await serving.ready()
        response = await HookBusClient(asking).request("BeforeTool", TOOL)
    assert response["success"] is True


async def test_connection_without_a_certificate_is_refused(
    sealed: NatsServer, certificates: Path
) -> None:
    """Several at once, whose attempts end at different points of the handshake."""
    options = [
        options_of("--bus", sealed.url, *tls_words(certificates, *names))
        for names in (("ca",), ())
    ]
    errors = await asyncio.gather(
        *(connect(option, timeout_s=1.0) for option in options for _ in range(12)),
        return_exceptions=True,
    )
    assert {type(error) for error in errors} == {BusConnectionError}
    assert "NoneType" not in str(errors)


def test_options_are_passed_to_the_client(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("correct horse \n")
    creds = tmp_path / "a.creds"
    creds.touch()
    options = options_of(
        *("--creds", str(creds), "--user", "me", "--password-file", str(password)),
        *("--inbox-prefix", "_INBOX_me"),
    )
    assert nats_options(options) == {
        "user_credentials": str(creds),
        "user": "me",
        "password": "correct horse ",
        "inbox_prefix": "_INBOX_me",
    }
    assert nats_options(options_of()) == {}


async def test_password_in_the_address_is_warned_about_and_never_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = options_of("--bus", "nats://me:hunter2@127.0.0.1:1")
    with pytest.raises(BusConnectionError) as caught:
        await connect(options, timeout_s=0.1)
    printed = capsys.readouterr().err
    assert "--password-file" in printed
    assert "hunter2" not in printed + str(caught.value)


class Relay:
    """Passes bytes on to a server, or greets with INFO itself; records all it gets."""

    def __init__(self, target: int | None = None, info: Any = None) -> None:
        self.target, self.info = target, info
        self.got = b""
        self.connections = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[Any]] = set()

    async def start(self) -> Relay:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def drop(self) -> None:
        """Close all connections."""
        for writer in tuple(self._writers):
            writer.close()

    async def close(self) -> None:
        self._server.close()
        self.drop()
        if self._serving:
            await asyncio.wait(self._serving)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self._writers.add(writer)
        if self.target is None:
            writer.write(b"INFO " + json.dumps(self.info).encode() + b"\r\n")
            await self._record(reader, None)
        else:
            back, forth = await asyncio.open_connection("127.0.0.1", self.target)
            self._writers.add(forth)
            await asyncio.gather(self._record(reader, forth), _copy(back, writer))

    async def _record(self, reader: asyncio.StreamReader, onward: Any) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                self.got += data
                if onward is not None:
                    onward.write(data)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)


async def relay(stack: AsyncExitStack, **what: Any) -> Relay:
    started = await Relay(**what).start()
    stack.push_async_callback(started.close)
    return started


def context(folder: Path) -> ssl.SSLContext:
    tls = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    tls.load_cert_chain(folder / "node.pem", folder / "node.key")
    return tls


async def test_nothing_is_sent_to_a_server_without_tls(
    cleanup: AsyncExitStack,
) -> None:
    """However TLS is asked for, and whatever the server says of itself."""
    ways: dict[str, tuple[str, dict[str, Any]]] = {
        "scheme": ("tls", {}),
        "scheme in capitals": ("TLS", {}),
        "context": ("nats", {"tls": ssl.create_default_context()}),
        "hostname": ("nats", {"tls_hostname": "bus.example.com"}),
    }
    infos: tuple[dict[str, Any], ...] = (
        {},
        {"tls_required": False, "tls_available": False},
        {"tls_required": None},
        {"auth_required": True},
        {"auth_required": True, "nonce": "abc"},
    )

    async def refused(scheme: str, options: Any, info: Any) -> bytes:
        plain = await relay(cleanup, info=info)
        url = f"{scheme}://127.0.0.1:{plain.port}"
        login = {"user": "me", "password": "hunter2"}
        with pytest.raises(BusConnectionError):
            await NatsBus.connect(url, **login, timeout_s=2, **options)
        assert plain.connections > 0 or scheme == "TLS"  # which nats-py does not know
        return plain.got

    received = await asyncio.gather(
        *(refused(*way, info) for way in ways.values() for info in infos)
    )
    assert received == [b""] * 20


async def test_one_tls_address_asks_for_tls_on_all(cleanup: AsyncExitStack) -> None:
    for order in (1, -1):
        first = await relay(cleanup, info={})
        second = await relay(cleanup, info={})
        urls = [f"tls://127.0.0.1:{first.port}", f"nats://127.0.0.1:{second.port}"]
        with pytest.raises(BusConnectionError):
            await NatsBus.connect(
                urls[::order], token="hunter2", timeout_s=2, dont_randomize=True
            )
        assert first.got + second.got == b""


async def test_reconnection_to_a_server_without_tls_sends_nothing(
    cleanup: AsyncExitStack,
    sealed: NatsServer,
    certificates: Path,
) -> None:
    relayed = await relay(cleanup, target=sealed.port)
    url = f"nats://127.0.0.1:{relayed.port}"
    bus = await NatsBus.connect(url, tls=context(certificates), password="hunter2")
    assert b"CONNECT" not in relayed.got
    relayed.got, relayed.target, relayed.info = b"", None, {"max_payload": 1000}
    connected = relayed.connections
    relayed.drop()
    response = await HookBusClient(bus).request("BeforeTool", TOOL, timeout_s=1.5)
    assert response["success"] is False
    assert relayed.connections > connected
    assert relayed.got == b""
    await bus.close()


async def test_server_that_offers_both_is_asked_for_tls(
    cleanup: AsyncExitStack,
    tmp_path: Path,
    certificates: Path,
) -> None:
    tls = {
        "cert_file": str(certificates / "node.pem"),
        "key_file": str(certificates / "node.key"),
    }
    settings = tmp_path / "server.conf"
    settings.write_text(f"allow_non_tls: true\ntls: {json.dumps(tls)}\n")
    server = NatsServer(tmp_path, "-c", str(settings)).start()
    try:
        relayed = await relay(cleanup, target=server.port)
        url = f"tls://127.0.0.1:{relayed.port}"
        bus = await NatsBus.connect(url, tls=context(certificates), password="hunter2")
        await bus.close()
    finally:
        server.stop()
    assert relayed.got != b""
    assert b"CONNECT" not in relayed.got


async def test_commands_send_nothing_to_a_server_without_tls(
    cleanup: AsyncExitStack, certificates: Path, tmp_path: Path
) -> None:
    tmp_path.joinpath("input.json").write_text(json.dumps(TOOL))
    tmp_path.joinpath("settings.json").write_text("{}")
    tmp_path.joinpath("password").write_text("hunter2")
    request = ("request", "BeforeTool", "--input", "input.json", "--timeout", "5")
    serve = ("serve", "--settings", "settings.json")
    authority = ("--tls-ca", str(certificates / "ca.pem"))
    for run, words, scheme, more, status in (
        (run_command, request, "tls", (), 3),
        (run_command, request, "nats", authority, 3),
        (hookline, serve, "tls", (), 1),
        (hookline, serve, "nats", authority, 1),
    ):
        plain = await relay(cleanup, info={"auth_required": True})
        address = ("--bus", f"{scheme}://127.0.0.1:{plain.port}")
        login = ("--user", "me", "--password-file", "password")
        done: Any = await asyncio.to_thread(
            run, *words, *address, *login, *more, cwd=tmp_path
        )
        assert done.returncode == status
        assert "does not offer TLS" in done.stdout + done.stderr
        assert plain.got == b""


async def test_refusal_comes_at_once_and_says_why(server: NatsServer) -> None:
    """Also for a websocket in clear beside TLS."""
    clear = "ws://me:hunter2@127.0.0.1:1"
    sealed = server.url.replace("nats://", "tls://me:hunter2@")
    cases: list[tuple[list[str], dict[str, Any], str]] = [
        ([sealed], {}, "does not offer TLS"),
        ([clear], {"tls": ssl.create_default_context()}, "not encrypted"),
        ([clear, "wss://127.0.0.1:1"], {}, "not encrypted"),
    ]
    for servers, options, message in cases:
        with pytest.raises(BusConnectionError, match=message) as caught:
            await NatsBus.connect(servers, timeout_s=600, **options)
        assert "hunter2" not in str(caught.value)
