"""Write values as TOML, and add tables to a TOML text that stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from hookline.protocol.values import encode

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_HIDDEN = re.compile(r"[^\x20-\x7e]")
_LITERAL = re.compile(r"[\x20-\x26\x28-\x7e]*\\[\x20-\x26\x28-\x7e]*")
"""Plain text with a backslash and without the quote of a literal string."""


def toml_value(value: Any) -> str:
    """A value of TOML, on one line; TOML has no null, so that is left out."""
    if isinstance(value, str):
        return _HIDDEN.sub(_escaped_if_hidden, json.dumps(value, ensure_ascii=False))
    if isinstance(value, Mapping):
        pairs = [
            f"{toml_key(key)} = {toml_value(item)}"
            for key, item in value.items()
            if item is not None
        ]
        return "{ " + ", ".join(pairs) + " }" if pairs else "{}"
    if isinstance(value, list):
        return f"[{', '.join(toml_value(item) for item in value if item is not None)}]"
    return encode(value).decode()


def toml_pattern(text: str) -> str:
    """A text of TOML in which backslashes need no second one, where it can be."""
    return f"'{text}'" if _LITERAL.fullmatch(text) else toml_value(text)


def toml_key(name: str) -> str:
    """A key of TOML."""
    return name if _BARE_KEY.fullmatch(name) else toml_value(name)


def _escaped_if_hidden(match: re.Match[str]) -> str:
    """JSON has escaped quotes and ASCII control characters; TOML escapes alike."""
    character = match.group()
    if character.isprintable():
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"
