"""Values as attributes: of a valid type, cut, and where they are content, masked."""

from __future__ import annotations

from typing import Any

from hookline.journal.redact import Masker, truncate_json, truncate_text
from hookline.protocol.values import decode, encode, text_of

MAX_TEXT = 256
"""Characters of a name or an id."""
MAX_CONTENT = 8192
"""Bytes of a value as JSON, characters of a text."""


def short_text(value: object) -> str | None:
    """A name or an id that every exporter can write; None if it is no text."""
    if not isinstance(value, str) or not value:
        return None
    if len(value) > MAX_TEXT or not value.isascii():
        # A lone surrogate would cost the exporter the whole batch.
        return text_of(str.__str__(value[:MAX_TEXT]))
    return str.__str__(value)


def shown_name(name: str) -> str:
    """The name of a hook; by default that is its command, which may hold secrets."""
    return short_text(Masker(texts=True).mask_text(name)) or ""


def content_text(text: str) -> str:
    """A text of a hook or an event, masked and cut."""
    masked: str = Masker(texts=True).mask_text(text)
    return text_of(truncate_text(masked, MAX_CONTENT)[0])


def content_json(value: Any) -> str:
    """A value of a hook or an event as JSON, masked and cut."""
    masked = Masker(texts=True).mask(decode(encode(value)))
    return truncate_json(masked, MAX_CONTENT).decode()
