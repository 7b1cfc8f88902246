"""Mask credentials by key and truncate long values before they are stored."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from typing import Any

from msgspec import Struct

from hookline.protocol.values import decode, encode

_TEXT_LIMITS = (16384, 4096, 1024, 256, 64)
"""Characters that each text may keep, tried one after the other."""
_CHARACTERS_PER_ITEM = 8


def truncate_text(text: str, limit: int) -> tuple[str, bool]:
    """The first characters of a text, and whether it was truncated."""
    if len(text) <= limit:
        return text, False
    return f"{text[:limit]}…[cut: {len(text)} characters]", True


def truncate_with_digest(text: str, limit: int) -> str:
    """Truncate so that two results are equal only if the whole texts were."""
    if len(text) <= limit:
        return text
    digest = sha256(text.encode()).hexdigest()
    return f"{text[:limit]}…[cut: {len(text)} characters, sha256 {digest}]"


def truncate_json(value: Any, limit: int) -> bytes:
    """Encode a value in at most so many bytes: long texts and lists lose their ends."""
    for text_limit in _TEXT_LIMITS:
        text = encode(truncate_values(value, text_limit))
        if len(text) <= limit:
            return text
    whole, length = encode(value), limit
    while True:
        # An escaped character takes up to six bytes in JSON.
        length //= 2
        text = encode({"cut": whole[:length].decode("utf-8", "replace")})
        if len(text) <= limit or not length:
            return text


_MAX_DEPTH = 150  # a level takes up to three frames of the stack
_TOO_DEEP = "…[cut: nested too deeply]"


def truncate_values(value: Any, limit: int, depth: int = 0) -> Any:
    """Copy a JSON value with every text, list and object truncated."""
    if isinstance(value, str):
        return truncate_text(value, limit)[0]
    if depth > _MAX_DEPTH:
        return _TOO_DEEP
    most = limit // _CHARACTERS_PER_ITEM
    if isinstance(value, dict):
        short = {
            truncate_text(key, limit)[0]: truncate_values(item, limit, depth + 1)
            for key, item in list(value.items())[:most]
        }
        return (
            short | {"…": f"[cut: {len(value)} keys]"} if len(value) > most else short
        )
    if isinstance(value, list):
        items = [truncate_values(item, limit, depth + 1) for item in value[:most]]
        return [*items, f"…[cut: {len(value)} items]"] if len(value) > most else items
    return value


MASK = "[masked]"

_ALWAYS = re.compile(
    r"passw|passphrase|passcode|secret|credential|apikey|authorization|cookie|bearer|jwt"
    r"|(?:access|private|signing|encryption|ssh|master|auth|session|account|shared"
    r"|service|client|storage|subscription|license)key"
    r"|(?:access|auth|refresh|id|session|bearer|api|bot|github|gitlab|slack)token$"
    r"|connectionstring"
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_CONTAINERS = ("{", "[")
_COUNTING = frozenset(
    {"budget", "count", "counts", "details", "limit", "max", "min", "type", "usage"}
)
_OPAQUE = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_+=.-]{16,}")
_NEEDLES = tuple(
    word.encode()
    for word in (
        *("passw", "passphrase", "passcode", "secret", "credential", "key", "auth"),
        *("cookie", "bearer", "jwt", "token", "connection", "pwd", "otp"),
    )
)
_ASSIGNMENT = re.compile(
    r"(?<![\w.-])([\w.-]{1,64})(\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?)"
    r"((?<=\")[^\"\\]+|(?<=')[^'\\]+|\{[^}]*\}?|\[[^\]]*\]?"
    r"|(?:Bearer |Basic )?[^\s\"'\\,;]+)",
    re.IGNORECASE,
)
"""A name, a separator, and a value: quoted, a container or one word."""


def is_suspicious(text: bytes) -> bool:
    """Whether a text may hold a credential; quick, without false negatives."""
    lowered = text.lower()
    return any(needle in lowered for needle in _NEEDLES)


class Masker(Struct):
    """Masks credentials and remembers whether it found any."""

    texts: bool = False
    """Whether assignments such as ``password=x`` in texts are masked too."""
    masked: bool = False

    def mask(self, value: Any, depth: int = 0) -> Any:
        """Copy a JSON value without its credentials; very deep parts are left out."""
        if isinstance(value, str):
            return self.mask_text(value)
        if not isinstance(value, dict | list | tuple):
            return value
        if depth > _MAX_DEPTH:
            self.masked = True
            return _TOO_DEEP
        if isinstance(value, dict):
            return {k: self._mask_item(k, item, depth) for k, item in value.items()}
        return [self.mask(item, depth + 1) for item in value]

    def mask_text(self, text: str) -> str:
        """Mask a text: as JSON if it is JSON, else its assignments."""
        if not self.texts and text[:1] not in _CONTAINERS:
            return text
        if not is_suspicious(text.encode("utf-8", "replace")):
            return text
        masked = self.mask_json_text(text)
        if masked is not None:
            return masked
        return _ASSIGNMENT.sub(self._mask_assignment, text) if self.texts else text

    def mask_json_text(self, text: str) -> str | None:
        """Mask a text that encodes an object or a list; None for any other."""
        if text[:1] not in _CONTAINERS:
            return None
        try:
            value = decode(text)
        except ValueError:
            return None
        inner = Masker(texts=self.texts)
        clean = inner.mask(value)
        self.masked |= inner.masked
        return encode(clean).decode() if inner.masked else text

    def _mask_item(self, key: str, value: Any, depth: int) -> Any:
        if not _is_credential(key, value):
            return self.mask(value, depth + 1)
        self.masked = True
        return MASK

    def _mask_assignment(self, match: re.Match[str]) -> str:
        key, separator, value = match.groups()
        if value == MASK or not _is_credential(key, value):
            return match.group()
        self.masked = True
        return f"{key}{separator}{MASK}"


def _is_credential(key: str, value: Any) -> bool:
    if value is None or isinstance(value, bool) or value in ("", [], {}):
        return False
    return _value_test(key[:128])(value)


@lru_cache(maxsize=4096)
def _value_test(key: str) -> Callable[[Any], bool]:
    """What decides for a key whether its value is a credential."""
    words = [word.lower() for word in _WORDS.findall(key)]
    if _ALWAYS.search("".join(words)) and words[-1:] != ["type"]:
        return lambda _: True
    if not {"auth", "pwd", "otp"}.isdisjoint(words):
        return lambda _: True
    if not {"token", "tokens"}.isdisjoint(words) and _COUNTING.isdisjoint(words):
        return lambda value: not isinstance(value, int | float)
    if words[-1:] in (["key"], ["keys"]):
        return lambda v: isinstance(v, str) and _OPAQUE.fullmatch(v) is not None
    return lambda _: False
