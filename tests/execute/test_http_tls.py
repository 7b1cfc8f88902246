"""Http hooks verify certificates, and use no proxy, netrc, cookie or compression."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from hookline import HookSystem
from hookline.protocol.results import FailureCause, HookExecutionResult
from tests.support.certificates import make_certificates
from tests.support.web import Answer, Exchange, WebServer, hook, reply
from tests.support.workspace import Workspace

DENY = {"decision": "deny", "reason": "no"}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


def sealed(
    certificates: Path, who: str = "node", answer: Answer | bytes | None = None
) -> WebServer:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / f"{who}.pem", certificates / f"{who}.key")
    return WebServer(reply(DENY) if answer is None else answer, context)


async def fire_once(
    workspace: Workspace, server: WebServer, **more: Any
) -> HookExecutionResult:
    result = await workspace.fire("BeforeTool", hook(server, **more))
    [ran] = result.aggregated.hook_results
    return ran


@pytest.mark.parametrize("who", ["node", "ca"])
async def test_certificate_of_an_unknown_authority_is_refused(
    workspace: Workspace, certificates: Path, who: str
) -> None:
    """One signed by an authority of its own, and one signed by itself."""
    with sealed(certificates, who) as server:
        result = await fire_once(workspace, server)
        closed = await workspace.fire("BeforeTool", hook(server, onError="block"))
    assert server.exchanges == []
    assert result.cause is FailureCause.SPAWN
    assert result.error is not None
    assert "CERTIFICATE_VERIFY_FAILED" in result.error
    assert "SSL_CERT_FILE" in result.error
    assert closed.blocked


async def test_authority_named_in_ssl_cert_file_is_accepted(
    workspace: Workspace, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "ca.pem"))
    with sealed(certificates) as server:
        settings = workspace.settings("BeforeTool", hook(server), hook(server, "/b"))
        result = await workspace.fire_on(settings, "BeforeTool")
    assert [hook.success for hook in result.aggregated.hook_results] == [True, True]
    assert result.reason == "no"


async def test_certificate_for_another_name_is_refused(
    workspace: Workspace, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "ca.pem"))
    with sealed(certificates) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        result = await workspace.fire("BeforeTool", {"type": "http", "url": url})
    [ran] = result.aggregated.hook_results
    assert server.exchanges == []
    assert ran.cause is FailureCause.SPAWN
    assert ran.error is not None
    assert "Hostname mismatch" in ran.error


async def test_port_without_tls_is_no_answer(workspace: Workspace) -> None:
    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        service = {"type": "http", "url": f"https://127.0.0.1:{port}/"}
        result = await workspace.fire("BeforeTool", service)
    [ran] = result.aggregated.hook_results
    assert ran.cause is FailureCause.SPAWN


@pytest.mark.parametrize("length", [1, 20_000])
@pytest.mark.parametrize("times", [1, 2])
async def test_second_answer_is_not_taken_for_the_next_one_with_tls_either(
    workspace: Workspace,
    certificates: Path,
    monkeypatch: pytest.MonkeyPatch,
    length: int,
    times: int,
) -> None:
    """Whether it comes in the same record or in the next one.

    Without one the connection is used again, and closed in the end.
    """
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "ca.pem"))

    def answer(exchange: Exchange) -> bytes:
        reason = exchange.event["tool_input"]["path"]
        answer = {"decision": "deny", "reason": reason, "x": "y" * length}
        return reply(answer) * times

    with sealed(certificates, answer=answer) as server:
        settings = workspace.settings("BeforeTool", hook(server))
        async with HookSystem(workspace.config(settings)) as system:
            ask = system.event_handler.fire_before_tool_event
            for number in range(6):
                assert (await ask("a", {"path": f"{number}"})).reason == f"{number}"
            assert times == 2 or server.connections == 1
        await asyncio.to_thread(server.wait, lambda: server.open == 0)


PROXIES = ("http_proxy", "https_proxy", "all_proxy")


@pytest.mark.parametrize("name", [*PROXIES, *map(str.upper, PROXIES)])
async def test_proxies_of_the_environment_are_not_used(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Whoever sets a variable must not answer in the service's place."""
    with (
        WebServer(reply({"decision": "allow"})) as proxy,
        WebServer(reply(DENY)) as server,
    ):
        monkeypatch.setenv(name, proxy.url)
        assert (await workspace.fire("BeforeTool", hook(server))).blocked
    assert proxy.connections == 0


async def test_netrc_and_cookies_are_not_used(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password hidden\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with WebServer(reply(DENY, Set_Cookie="id=1; Path=/")) as server:
        config = workspace.config(workspace.settings("BeforeTool", hook(server)))
        async with HookSystem(config) as hooks:
            for _ in range(2):
                await hooks.event_handler.fire_before_tool_event("write_file", {})
    assert len(server.exchanges) == 2
    for exchange in server.exchanges:
        assert not {"authorization", "cookie"} & exchange.headers.keys()


async def test_compressed_answer_is_not_expanded(workspace: Workspace) -> None:
    """A gzip bomb: 200 MB of blanks in 200 KB, with a verdict in it."""
    blanks = b" " * 1_000_000
    bomb = gzip.compress(json.dumps(DENY).encode() + blanks)
    bomb += gzip.compress(blanks) * 199
    with WebServer(reply(bomb, Content_Encoding="gzip")) as server:
        result = await fire_once(workspace, server)
    assert server.exchanges[0].headers["accept-encoding"] == "identity"
    assert (result.cause, result.stdout) == (FailureCause.OUTPUT, "")
