"""Keep what is recorded within a size, and leave a mark where something was cut."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from hookline.jsontext import encode

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
