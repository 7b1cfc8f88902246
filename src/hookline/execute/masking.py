"""Mask secrets in what is kept of a hook's answer.

A service may echo the token it was sent, in a reason or on the page of an error. Texts
are masked however JSON, HTML, urls and programming languages escape a secret. Names of
fields are left alone: a verdict must not be lost because a variable holds the word
``decision``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Self

from msgspec import Struct, structs

from hookline.plan import RunEnd
from hookline.protocol.values import decode, encode

MASK = "[masked]"

_MIN_SECRET = 6
"""Shorter values are found in too many texts."""
_MAX_DEPTH = 150
_MAX_ESCAPE = 10
"""The letters that one letter becomes."""
_FIELD = r"[A-Za-z_]+"


class _Secret(Struct, frozen=True):
    """A secret in all its forms."""

    whole: re.Pattern[str]
    start: re.Pattern[str]
    letters: tuple[re.Pattern[str], ...]

    def without(self, text: str) -> str:
        """A text without it, and without the first part of it at the end."""
        text = self.whole.sub(MASK, text)
        at = max(0, len(text) - len(self.letters) * _MAX_ESCAPE)
        while found := self.start.search(text, at):
            if self._is_cut(text, found.start()):
                return text[: found.start()] + MASK
            at = found.start() + 1
        return text

    def _is_cut(self, text: str, at: int) -> bool:
        for letter in self.letters:
            found = letter.match(text, at)
            if found is None:
                rest = text[at:]
                return len(rest) < _MAX_ESCAPE and rest[:1] in {"", "\\", "%", "&"}
            at = found.end()
        return False


class Mask(Struct, frozen=True):
    """Replaces secrets, however they were escaped."""

    secrets: tuple[_Secret, ...]

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Self:
        """A mask for these secrets; short ones are left out."""
        return cls(_compiled(tuple(one for one in secrets if len(one) >= _MIN_SECRET)))

    def end(self, end: RunEnd) -> RunEnd:
        """The end of a run without the secrets, wherever they are in it."""
        texts = (end.stdout, end.stderr, end.error or "", *end.warnings)
        answer = "" if end.answer is None else encode(end.answer).decode()
        if not self._finds_any(*texts, answer):
            return end
        return structs.replace(
            end,
            stdout=self._stdout(end.stdout),
            stderr=self.text(end.stderr),
            answer=end.answer and self.values(end.answer),
            error=end.error and self.text(end.error),
            warnings=tuple(map(self.text, end.warnings)),
        )

    def _stdout(self, text: str) -> str:
        """An answer that is JSON stays the same answer."""
        masked = self.text(text)
        try:
            clean = self.values(decode(text))
        except ValueError:
            return masked
        try:
            return masked if decode(masked) == clean else encode(clean).decode()
        except ValueError:
            return encode(clean).decode()

    def text(self, text: str) -> str:
        """A text without the secrets, and without the first part of one at its end."""
        for secret in self.secrets:
            text = secret.without(text)
        return text

    def values(self, value: Any, depth: int = 0) -> Any:
        """A copy of a JSON value; very deep parts are left out."""
        if isinstance(value, str):
            return self.text(value)
        if depth > _MAX_DEPTH:
            return MASK
        if isinstance(value, dict):
            return {
                self._key(key): self.values(item, depth + 1)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self.values(item, depth + 1) for item in value]
        return value

    def _key(self, key: str) -> str:
        return key if re.fullmatch(_FIELD, key) else self.text(key)

    def _finds_any(self, *texts: str) -> bool:
        return any(self.text(text) != text for text in texts)


@lru_cache(maxsize=64)
def _compiled(secrets: tuple[str, ...]) -> tuple[_Secret, ...]:
    """The longest first: one may be a part of another."""
    texts: set[str] = set()
    for secret in secrets:
        raw = secret.encode("utf-8", "surrogateescape")
        texts |= {secret, raw.decode("utf-8", "replace"), raw.decode("latin-1")}
    return tuple(map(_secret, sorted(texts, key=len, reverse=True)))


def _secret(text: str) -> _Secret:
    letters = [_letter(letter) for letter in text]
    return _Secret(
        whole=re.compile("".join(letters)),
        start=re.compile("".join(letters[:_MIN_SECRET])),
        letters=tuple(map(re.compile, letters)),
    )


_NAMED = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}


def _letter(letter: str) -> str:
    """A pattern for one letter: as it is, or escaped."""
    if letter.isascii() and letter.isalnum():
        return letter
    number = ord(letter)
    raw = letter.encode("utf-8", "surrogatepass")
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    plain = [re.escape(letter), f"&#0?{number};", f"&#x0?{number:x};"]
    plain += [f"&{_NAMED[letter]};"] if letter in _NAMED else []
    forms = [
        rf"\\{{0,3}}(?:{'|'.join(plain)})",
        "".join(f"%{byte:02x}" for byte in raw),
        "".join(rf"\\{{1,3}}u{units[at : at + 4]}" for at in range(0, len(units), 4)),
        "".join(rf"\\{{1,3}}x{byte:02x}" for byte in raw),
        rf"\\{{1,3}}x{number:02x}",
        *(["\\+"] if letter == " " else []),
    ]
    return f"(?i:{'|'.join(forms)})"
