"""Block tool calls that would write or send a key, token or password.

Every text in the tool's input is checked as written, with string pieces joined, with
invisible characters removed, and decoded from base64, hex and percent-encoding.
Examples from documentation and placeholders pass. ``SECRET_SCAN_ALLOW`` is a regular
expression of other texts to allow.
"""

import base64
import binascii
import html
import os
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from hookline.recipes.toolinput import texts_in, visible_text
from hookline.script import Output, block, run

SECRETS = {
    "an AWS access key": r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{22,})",
    "a Slack token": r"\bxox[abposr]-[A-Za-z0-9-]{10,}",
    "a Google key": r"\bAIza[\w-]{35}",
    "a payment key": r"\b[rs]k_live_[A-Za-z0-9]{16,}",
    "a model provider's key": r"\bsk-(?:ant-|proj-)?(?=[\w-]*\d)[A-Za-z0-9_-]{24,}",
    "an npm token": r"\bnpm_[A-Za-z0-9]{36}",
    "a private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----",
    "an AWS secret": r"(?i)aws_secret\w*['\"]?\s*[:=]\s*['\"]?[A-Za-z0-9/+]{40}",
    "a password in an address": r"\b\w+://[^\s/:@]+:(?![$<{*])[^\s/:@]{6,}@[\w.-]+",
    "a password": r"(?i)\b\w*(?:password|passwd|secret_key|api_key)\w*['\"]?\s*[:=]\s*"
    r"(?:['\"](?![$<{%*])(?=[^'\"]*\d)(?=[^'\"]*[a-z])[^'\"\s]{10,}['\"]"
    r"|(?=(?:\D*\d){3})(?=\d*[A-Za-z])[A-Za-z0-9+/=_-]{16,}(?![\w(.\[]))",
}
PATTERNS = {kind: re.compile(pattern) for kind, pattern in SECRETS.items()}
EXAMPLE = re.compile(
    r"(?i)example|placeholder|your[-_]|xxxx|dummy|changeme|1234567890"
    r"|:(password|passwd|secret|postgres)@"
)
JOINT = re.compile(r"""["'`]\s*(?:\+|\.|,|\\\n)?\s*["'`]|\\\r?\n\s*""")
BASE64 = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")
ESCAPE = re.compile(r"\\u\{?([0-9a-fA-F]{4})\}?")
HEX = re.compile(r"(?:(?:\\x|0x|\b)?[0-9a-fA-F]{2}[\s,:]?){16,}")


def check(event: dict[str, Any]) -> Output | None:
    """Block the call if any view of any of its texts holds a secret."""
    allowed = os.environ.get("SECRET_SCAN_ALLOW")
    for text in texts_in(event.get("tool_input")):
        for view in views(text):
            if kind := secret_in(view, allowed):
                return block(
                    f"this contains {kind}: keep it out of files and commands, and "
                    "read it from the environment instead"
                )
    return None


def secret_in(text: str, allowed: str | None = None) -> str | None:
    """The kind of secret that a text contains, if any."""
    for kind, pattern in PATTERNS.items():
        for found in pattern.finditer(text):
            if EXAMPLE.search(found[0]) or (allowed and re.search(allowed, found[0])):
                continue
            return kind
    return None


def views(text: str) -> Iterator[str]:
    """A text as written, and decoded in every way that could reveal a secret."""
    plain = visible_text(text)
    joined = JOINT.sub("", plain)
    written = {text, plain, joined, html.unescape(plain), unquote(plain), plain[::-1]}
    written.add(ESCAPE.sub(lambda found: chr(int(found[1], 16)), plain))
    for view in written:
        yield view
        for inner in _decoded(view):
            yield inner
            yield from _decoded(inner)


def _decoded(text: str) -> Iterator[str]:
    for found in BASE64.finditer(text):
        run_of = found[0].replace("-", "+").replace("_", "/").rstrip("=")
        try:
            yield base64.b64decode(run_of + "=" * (-len(run_of) % 4)).decode("latin-1")
        except (binascii.Error, ValueError):
            continue
    for found in HEX.finditer(text):
        digits = re.sub(r"\\x|0x|[\s,:]", "", found[0])
        yield bytes.fromhex(digits[: len(digits) // 2 * 2]).decode("latin-1")


if __name__ == "__main__":
    run(check)
