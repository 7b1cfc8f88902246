"""TLS given is TLS or nothing: not a byte goes out in clear (issue 12.15)."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from hookline.bus import HookBusClient, NatsBus
from hookline.errors import BusConnectionError
from tests.support.commandline import hookline
from tests.support.nats import NatsServer

from .test_nats_tls import certificates, make_certificates, sealed  # noqa: F401

TOOL: dict[str, Any] = {"tool_name": "write_file", "tool_input": {"path": "hunter2"}}


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

    async def _record(
        self, reader: asyncio.StreamReader, onward: asyncio.StreamWriter | None
    ) -> None:
        try:
            while data := await reader.read(65536):
                self.got += data
                if onward is not None:
                    onward.write(data)
        except OSError:
            pass


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
    except OSError:
        pass


@pytest.fixture
async def relays() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def relay(stack: AsyncExitStack, **what: Any) -> Relay:
    started = await Relay(**what).start()
    stack.push_async_callback(started.close)
    return started


def context(folder: Path) -> ssl.SSLContext:
    found = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    found.load_cert_chain(folder / "node.pem", folder / "node.key")
    return found


INFOS: dict[str, Any] = {
    "says nothing": {},
    "says no": {"tls_required": False, "tls_available": False},
    "says null": {"tls_required": None},
    "asks for a password": {"auth_required": True},
    "asks for a signature": {"auth_required": True, "nonce": "abc"},
}


@pytest.mark.parametrize("info", INFOS.values(), ids=list(INFOS))
@pytest.mark.parametrize("by", ["scheme", "scheme in capitals", "context", "hostname"])
async def test_nothing_is_sent_to_a_server_without_tls(
    relays: AsyncExitStack, info: Any, by: str
) -> None:
    plain = await relay(relays, info=info)
    schemes = {"scheme": "tls", "scheme in capitals": "TLS"}
    options: dict[str, Any] = {
        "context": {"tls": ssl.create_default_context()},
        "hostname": {"tls_hostname": "bus.example.com"},
    }
    more = options.get(by, {})
    url = f"{schemes.get(by, 'nats')}://127.0.0.1:{plain.port}"
    with pytest.raises(BusConnectionError):
        await NatsBus.connect(url, user="me", password="hunter2", timeout_s=2, **more)
    assert plain.got == b""


async def test_refusal_comes_at_once_and_says_why(server: NatsServer) -> None:
    url = server.url.replace("nats://", "tls://me:hunter2@")
    with pytest.raises(BusConnectionError, match="does not offer TLS") as caught:
        await NatsBus.connect(url, timeout_s=600)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("order", [1, -1])
async def test_one_tls_address_asks_for_tls_on_all(
    relays: AsyncExitStack, order: int
) -> None:
    first = await relay(relays, info={})
    second = await relay(relays, info={})
    urls = [f"tls://127.0.0.1:{first.port}", f"nats://127.0.0.1:{second.port}"]
    with pytest.raises(BusConnectionError):
        await NatsBus.connect(
            urls[::order], token="hunter2", timeout_s=2, dont_randomize=True
        )
    assert first.got + second.got == b""


async def test_reconnection_to_a_server_without_tls_sends_nothing(
    relays: AsyncExitStack,
    sealed: NatsServer,  # noqa: F811
    certificates: Path,  # noqa: F811
) -> None:
    relayed = await relay(relays, target=sealed.port)
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
    relays: AsyncExitStack,
    tmp_path: Path,
    certificates: Path,  # noqa: F811
) -> None:
    tls = {
        "cert_file": str(certificates / "node.pem"),
        "key_file": str(certificates / "node.key"),
    }
    settings = tmp_path / "server.conf"
    settings.write_text(f"allow_non_tls: true\ntls: {json.dumps(tls)}\n")
    server = NatsServer(tmp_path, "-c", str(settings)).start()
    try:
        relayed = await relay(relays, target=server.port)
        url = f"tls://127.0.0.1:{relayed.port}"
        bus = await NatsBus.connect(url, tls=context(certificates), password="hunter2")
        await bus.close()
    finally:
        server.stop()
    assert relayed.got != b""
    assert b"CONNECT" not in relayed.got


@pytest.mark.parametrize("tls", [True, False])
async def test_websocket_in_clear_is_refused_beside_tls(tls: bool) -> None:
    more: dict[str, Any] = {"tls": ssl.create_default_context()} if tls else {}
    servers = ["ws://me:hunter2@127.0.0.1:1", *([] if tls else ["wss://127.0.0.1:1"])]
    with pytest.raises(BusConnectionError, match="not encrypted"):
        await NatsBus.connect(servers, timeout_s=600, **more)


COMMANDS = {
    "request": ("request", "BeforeTool", "--input", "input.json", "--timeout", "5"),
    "serve": ("serve", "--settings", "settings.json"),
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=list(COMMANDS))
@pytest.mark.parametrize("by", ["scheme", "option"])
async def test_command_sends_nothing_to_a_server_without_tls(
    relays: AsyncExitStack, tmp_path: Path, words: tuple[str, ...], by: str
) -> None:
    make_certificates(tmp_path)
    tmp_path.joinpath("input.json").write_text(json.dumps(TOOL))
    tmp_path.joinpath("settings.json").write_text("{}")
    tmp_path.joinpath("password").write_text("hunter2")
    plain = await relay(relays, info={"auth_required": True})
    url = f"{'tls' if by == 'scheme' else 'nats'}://127.0.0.1:{plain.port}"
    more = () if by == "scheme" else ("--tls-ca", "ca.pem")
    login = ("--user", "me", "--password-file", "password")
    done = await asyncio.to_thread(
        hookline, *words, "--bus", url, *login, *more, cwd=tmp_path
    )
    assert done.returncode == {"request": 3, "serve": 1}[words[0]]
    assert "does not offer TLS" in done.stdout + done.stderr
    assert plain.got == b""
