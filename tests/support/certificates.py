"""Certificates for tests of TLS on loopback."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

x509 = pytest.importorskip("cryptography.x509", reason="makes the certificates")


def make_certificates(folder: Path) -> None:
    """An authority ``ca``, and ``node``, a certificate by it; both for 127.0.0.1."""
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def name(text: str) -> Any:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    now = datetime.now(UTC)
    keys = {who: ec.generate_private_key(ec.SECP256R1()) for who in ("ca", "node")}
    signer = keys["ca"].public_key()
    address = x509.IPAddress(IPv4Address("127.0.0.1"))
    pem = serialization.Encoding.PEM
    private = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    for who, key in keys.items():
        public, signs = key.public_key(), who == "ca"
        certificate = (
            x509.CertificateBuilder(name("test ca"), name(f"test {who}"), public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(x509.BasicConstraints(signs, None), True)
            .add_extension(
                x509.KeyUsage(True, *(False,) * 4, signs, signs, False, False), True
            )
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), False
            )
            .add_extension(x509.SubjectAlternativeName([address]), False)
            .sign(keys["ca"], hashes.SHA256())
        )
        (folder / f"{who}.pem").write_bytes(certificate.public_bytes(pem))
        (folder / f"{who}.key").write_bytes(key.private_bytes(pem, *private))
