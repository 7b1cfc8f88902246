"""TLS, and the options of the command line that lead to it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from hookline.bus import HookBusClient, NatsBus
from hookline.bus.server import RequestServer
from hookline.cli.common import Options, Parser
from hookline.cli.connection import add_connection_arguments, connect, nats_options
from hookline.errors import BusConnectionError, HooklineError
from tests.support.nats import NatsServer

from .fakes import RecordingHandler

x509 = pytest.importorskip("cryptography.x509", reason="makes the certificates")
TOOL: dict[str, Any] = {"tool_name": "write_file", "tool_input": {"path": "a"}}


def make_certificates(folder: Path) -> None:
    """An authority, and a certificate by it for 127.0.0.1."""
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def name(text: str) -> Any:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    now = datetime.now(UTC)
    keys = {who: ec.generate_private_key(ec.SECP256R1()) for who in ("ca", "node")}
    key_usage = x509.KeyUsage(
        True, False, False, False, False, True, True, False, False
    )
    for who, key in keys.items():
        builder = (
            x509.CertificateBuilder()
            .subject_name(name(f"hookline test {who}"))
            .issuer_name(name("hookline test ca"))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(x509.BasicConstraints(who == "ca", None), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(
                    keys["ca"].public_key()
                ),
                False,
            )
        )
        if who == "ca":
            builder = builder.add_extension(key_usage, critical=True)
        else:
            address = x509.IPAddress(IPv4Address("127.0.0.1"))
            builder = builder.add_extension(
                x509.SubjectAlternativeName([address]), False
            )
        signed = builder.sign(keys["ca"], hashes.SHA256())
        pem = serialization.Encoding.PEM
        (folder / f"{who}.pem").write_bytes(signed.public_bytes(pem))
        (folder / f"{who}.key").write_bytes(
            key.private_bytes(
                pem,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )


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
    assert [one for one in caplog.records if one.name == "asyncio"] == []


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


@pytest.mark.parametrize("names", [("ca",), ()], ids=["no certificate", "no authority"])
async def test_connection_without_a_certificate_is_refused(
    sealed: NatsServer, certificates: Path, names: tuple[str, ...]
) -> None:
    """Several at once, whose attempts end at different points of the handshake."""
    options = options_of("--bus", sealed.url, *tls_words(certificates, *names))
    errors = await asyncio.gather(
        *(connect(options, timeout_s=1.0) for _ in range(12)), return_exceptions=True
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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--user", "me"], "must be used together"),
        (["--password-file", "p"], "must be used together"),
        (["--user", "me", "--password-file", "/no/file"], "--password-file /no/file"),
        (["--tls-key", "k"], "--tls-key needs --tls-cert"),
        (["--tls-ca", "/no/file"], "--tls-ca"),
    ],
)
def test_invalid_options_are_explained(words: list[str], message: str) -> None:
    with pytest.raises(HooklineError, match=message):
        nats_options(options_of(*words))


async def test_password_in_the_address_is_warned_about_and_never_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = options_of("--bus", "nats://me:hunter2@127.0.0.1:1")
    with pytest.raises(BusConnectionError) as caught:
        await connect(options, timeout_s=0.1)
    shown = capsys.readouterr().err
    assert "--password-file" in shown
    assert "hunter2" not in shown + str(caught.value)


async def test_credentials_file_that_is_missing_is_an_error() -> None:
    with pytest.raises(HooklineError):
        await NatsBus.connect(
            "nats://127.0.0.1:1", user_credentials="/no/file", timeout_s=1
        )
