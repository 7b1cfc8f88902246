"""Block tool calls that would write or send a key, token or password.

Every text in the tool's input is checked as written, with string pieces joined, with
invisible characters removed, and decoded from base64, hex and percent-encoding. The
formats are in ``hookline.recipes.tokens``; examples and placeholders pass.
``SECRET_SCAN_ALLOW`` is a regular expression of other texts to allow.
"""

import base64
import binascii
import html
import os
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from hookline.recipes.tokens import secrets_in
from hookline.recipes.toolinput import texts_in, visible_text
from hookline.script import Output, block, run

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
    for kind, found in secrets_in(text):
        if not allowed or not re.search(allowed, found):
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
