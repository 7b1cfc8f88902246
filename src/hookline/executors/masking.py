"""Mask secrets in what is kept of a hook's answer.

A service may echo the token it was sent, in a reason or on the page of an error. Texts
are masked in the forms that JSON, HTML and urls give a secret. Names of fields are left
alone: a verdict must not be lost because a variable holds the word ``decision``.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Self
from urllib.parse import quote

from msgspec import Struct, structs

from hookline.protocol.jsontext import decode, encode
from hookline.protocol.results import HookExecutionResult

from .exit_table import with_output

MASK = "[masked]"

_MIN_SECRET = 6
"""Shorter values are found in too many texts."""
_MAX_DEPTH = 150


class Mask(Struct, frozen=True):
    """Replaces secrets, however they were escaped."""

    forms: tuple[str, ...]

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Self:
        """A mask for these secrets; short ones are left out."""
        return cls(_forms(tuple(one for one in secrets if len(one) >= _MIN_SECRET)))

    def result(self, result: HookExecutionResult) -> HookExecutionResult:
        """A result without the secrets, wherever they are in it."""
        said = result.raw_output
        kept = (result.stdout, result.stderr, result.error or "", *result.warnings)
        if not self._finds_any(*kept, "" if said is None else encode(said).decode()):
            return result
        stdout, warnings = self._stdout(result.stdout), result.warnings
        if said is not None:
            result = with_output(result, self.values(said))
        return structs.replace(
            result,
            stdout=stdout,
            stderr=self.text(result.stderr),
            error=self.text(result.error) if result.error else result.error,
            warnings=tuple(map(self.text, warnings)),
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
        for form in self.forms:
            text = text.replace(form, MASK)
        return next(
            filter(None, (_without_start(text, one) for one in self.forms)), text
        )

    def values(self, value: Any, depth: int = 0) -> Any:
        """A copy of a JSON value; very deep parts are left out."""
        if isinstance(value, str):
            return self.text(value)
        if depth > _MAX_DEPTH:
            return MASK
        if isinstance(value, dict):
            return {
                key if key.isidentifier() else self.text(key): self.values(
                    it, depth + 1
                )
                for key, it in value.items()
            }
        if isinstance(value, list):
            return [self.values(item, depth + 1) for item in value]
        return value

    def _finds_any(self, *texts: str) -> bool:
        return any(self.text(text) != text for text in texts)


def _without_start(text: str, secret: str) -> str | None:
    """A text that was cut within a secret, without the beginning of it."""
    at = text.find(secret[:_MIN_SECRET], max(0, len(text) - len(secret)))
    while at >= 0:
        if secret.startswith(text[at:]):
            return text[:at] + MASK
        at = text.find(secret[:_MIN_SECRET], at + 1)
    return None


@lru_cache(maxsize=64)
def _forms(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """Secrets as they are, and as they read in JSON, in HTML and in a url."""
    from html import escape
    from json import dumps

    found: set[str] = set()
    for secret in secrets:
        raw = secret.encode("utf-8", "surrogateescape")
        for text in (secret, raw.decode("utf-8", "replace"), raw.decode("latin-1")):
            found |= {text, quote(text, errors="replace"), escape(text)}
            found |= {dumps(text)[1:-1], dumps(text, ensure_ascii=False)[1:-1]}
    found |= {form.replace("/", "\\/") for form in found}
    return tuple(sorted(found, key=len, reverse=True))
