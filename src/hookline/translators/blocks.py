"""Message content that is a string or a list of typed blocks (OpenAI, Anthropic)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from msgspec import Struct

from .fields import get, items_of, put, record, text_or_none, wrong


class BlockKinds(Struct, frozen=True):
    """Which blocks are text, and which field marks the end of a cached prefix."""

    text: Collection[str]
    cache_field: str


def texts_in(content: Any, place: str, kinds: BlockKinds) -> list[str]:
    """Read the text of a message's content."""
    if content is None:
        return []
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list | tuple):
        raise wrong(place, "a string or a list", content)
    places = [f"{place}[{at}]" for at in range(len(content))]
    return [
        text_or_none(get(block, "text"), f"{where}.text") or ""
        for block, where in zip(content, places, strict=True)
        if kind_of(block, where) in kinds.text
    ]


def kind_of(block: Any, place: str = "block") -> str:
    """Read a block's type."""
    kind = text_or_none(get(record(block, place), "type"), f"{place}.type")
    if kind is None:
        raise wrong(f"{place}.type", "a string", None)
    return kind


def kinds_in(content: Any) -> list[str]:
    """Read the types of all blocks; a string has none."""
    if content is None or isinstance(content, str):
        return []
    return [kind_of(block) for block in items_of(content, "content")]


def edited_content(content: Any, text: str, kinds: BlockKinds) -> Any:
    """Put a text into the first text block; the other text blocks go."""
    if content is None or isinstance(content, str):
        return text
    texts = [at for at, block in enumerate(content) if kind_of(block) in kinds.text]
    first, gone = texts[0], frozenset(texts[1:])
    head = put(content[first], text, "text")
    marks = [get(content[at], kinds.cache_field) for at in texts]
    if marks[0] is None and any(marks):
        # The mark says that the prefix is cached up to the end of this text, and
        # that end is now in the first block.
        last = next(mark for mark in reversed(marks) if mark is not None)
        head = put(head, last, kinds.cache_field)
    return [
        head if at == first else block
        for at, block in enumerate(content)
        if at not in gone
    ]


def emptied_content(content: Any, kinds: BlockKinds) -> Any:
    """Leave the text blocks out; None where nothing else is there."""
    if content is None or isinstance(content, str):
        return None
    return [block for block in content if kind_of(block) not in kinds.text] or None
