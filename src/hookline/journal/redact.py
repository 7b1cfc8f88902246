"""Mask secrets by key and shorten long values before they are stored."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from hashlib import sha256
from typing import Any

from hookline.protocol.jsontext import decode, encode

_LONGEST = (16384, 4096, 1024, 256, 64)
"""Characters that each text may keep, tried one after the other."""

_ITEMS_SHARE = 8


def cut_text(text: str, limit: int) -> tuple[str, bool]:
    """The head of a text, and whether it was cut."""
    if len(text) <= limit:
        return text, False
    return f"{text[:limit]}…[cut: {len(text)} characters]", True


def cut_json(value: Any, limit: int) -> bytes:
    """Write a value that is too large: long texts and lists lose their ends."""
    for longest in _LONGEST:
        text = encode(shorten(value, longest))
        if len(text) <= limit:
            return text
    whole, kept = encode(value), limit
    while True:
        # What JSON has to escape takes up to six times its room.
        kept //= 2
        text = encode({"cut": whole[:kept].decode("utf-8", "replace")})
        if len(text) <= limit or not kept:
            return text


def seal(text: str, limit: int) -> str:
    """Cut a text so that two sealed ones are equal only if the whole ones were."""
    if len(text) <= limit:
        return text
    digest = sha256(text.encode()).hexdigest()
    return f"{text[:limit]}…[cut: {len(text)} characters, sha256 {digest}]"


def shorten(value: Any, longest: int) -> Any:
    """Copy a JSON value with no text of more than so many characters."""
    if isinstance(value, str):
        return cut_text(value, longest)[0]
    if isinstance(value, dict):
        kept = list(value.items())[: longest // _ITEMS_SHARE]
        short = {cut_text(k, longest)[0]: shorten(v, longest) for k, v in kept}
        if len(kept) < len(value):
            short["…"] = f"[cut: {len(value)} keys]"
        return short
    if isinstance(value, list):
        items = [shorten(v, longest) for v in value[: longest // _ITEMS_SHARE]]
        if len(items) < len(value):
            items.append(f"…[cut: {len(value)} items]")
        return items
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
"""A name, what stands between, and a value: quoted, a container or one word."""


class _Look(Enum):
    """What a key makes of the value under it."""

    CREDENTIAL = "credential"
    TOKEN = "token"  # noqa: S105 - a word for tokens, not one of them
    KEY = "key"
    HARMLESS = "harmless"


def is_suspicious(text: bytes) -> bool:
    """Whether a closer look is due; quick, and never wrong when it says no."""
    lowered = text.lower()
    return any(needle in lowered for needle in _NEEDLES)


class Masker:
    """Masks values and remembers whether it had to."""

    def __init__(self, *, texts: bool = False) -> None:
        self._texts = texts
        """Whether assignments within texts are masked, too."""
        self.masked = False

    def mask(self, value: Any) -> Any:
        """Copy a JSON value without its credentials."""
        if isinstance(value, dict):
            return {key: self._mask_item(key, item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.mask(item) for item in value]
        return self.mask_text(value) if isinstance(value, str) else value

    def mask_text(self, text: str) -> str:
        """Mask what a text holds: JSON within it, or assignments where asked for."""
        if not self._texts and text[:1] not in _CONTAINERS:
            return text
        if not is_suspicious(text.encode("utf-8", "replace")):
            return text
        within = self.mask_json_within(text)
        if within is not None:
            return within
        return _ASSIGNMENT.sub(self._assigned, text) if self._texts else text

    def mask_json_within(self, text: str) -> str | None:
        """Mask a text that is JSON itself; None where it is not."""
        found = _json_within(text)
        if found is None:
            return None
        inner = Masker(texts=self._texts)
        clean = inner.mask(found)
        self.masked |= inner.masked
        return encode(clean).decode() if inner.masked else text

    def _mask_item(self, key: str, value: Any) -> Any:
        if not _is_credential(key, value):
            return self.mask(value)
        self.masked = True
        return MASK

    def _assigned(self, found: re.Match[str]) -> str:
        key, between, value = found.groups()
        if value == MASK or not _is_credential(key, value):
            return found.group()
        self.masked = True
        return f"{key}{between}{MASK}"


def _is_credential(key: str, value: Any) -> bool:
    if value is None or isinstance(value, bool) or value in ("", [], {}):
        return False
    look = _look(key[:128])
    if look is _Look.TOKEN:
        return not isinstance(value, int | float)
    if look is _Look.KEY:
        return isinstance(value, str) and _OPAQUE.fullmatch(value) is not None
    return look is _Look.CREDENTIAL


@lru_cache(maxsize=4096)
def _look(key: str) -> _Look:
    words = [word.lower() for word in _WORDS.findall(key)]
    if _ALWAYS.search("".join(words)) and words[-1:] != ["type"]:
        return _Look.CREDENTIAL
    if not {"auth", "pwd", "otp"}.isdisjoint(words):
        return _Look.CREDENTIAL
    if not {"token", "tokens"}.isdisjoint(words) and _COUNTING.isdisjoint(words):
        return _Look.TOKEN
    return _Look.KEY if words[-1:] in (["key"], ["keys"]) else _Look.HARMLESS


def _json_within(text: str) -> Any:
    """The object or list that a text holds; None where it holds none."""
    if text[:1] not in _CONTAINERS:
        return None
    try:
        return decode(text)
    except ValueError:
        return None
