"""Find which message of a request a hook changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from operator import eq, itemgetter
from typing import Any, TypeVar

from msgspec import Struct

from .shape import LLMMessage, LLMRequest

_MAX_COMPARISONS = 250_000
_MAX_SIMILARITIES = 1024
_STRETCH = 8
_WINDOW = 64

T = TypeVar("T")
Messages = Sequence[LLMMessage]


class RequestChanges(Struct, frozen=True, kw_only=True):
    """What differs between two requests; true if anything does.

    Indexes count the messages of the first one, so that a framework can edit its own.
    """

    edited: dict[int, str] = {}
    """The new text of messages."""
    appended: list[LLMMessage] = []
    """New messages at the end."""
    inserted: dict[int, list[LLMMessage]] = {}
    """New messages, by the index of the one that they stand before."""
    removed: list[int] = []
    config: dict[str, Any] = {}
    """New settings; None for one that was removed."""
    model: str | None = None

    def __bool__(self) -> bool:
        return self != RequestChanges()

    def applied(
        self,
        items: Sequence[T],
        *,
        text_of: Callable[[T], str | None],
        edit: Callable[[T, str | None], T | None],
        make: Callable[[LLMMessage], T],
    ) -> list[T]:
        """A framework's own messages with these changes.

        Only those with a text were shown to hooks. ``edit`` gives a message another
        text, or removes the text for None; it returns None if nothing is left.
        """
        changed: list[T] = []
        at = -1
        for item in items:
            edited: T | None = item
            if text_of(item):
                at += 1
                changed += map(make, self.inserted.get(at, ()))
                if at in self.edited:
                    edited = edit(item, self.edited[at])
                elif at in self.removed:
                    edited = edit(item, None)
            if edited is not None:
                changed.append(edited)
        return changed + [make(message) for message in self.appended]


def request_changes(before: LLMRequest, after: LLMRequest) -> RequestChanges:
    """Find what one request changed of another."""
    origins = align(before.messages, after.messages)
    edited, inserted = dict[int, str](), defaultdict[int, list[LLMMessage]](list)
    following = len(before.messages)
    for at, message in reversed(list(zip(origins, after.messages, strict=True))):
        if at is None:
            inserted[following].insert(0, message)
            continue
        following = at
        if message.content != before.messages[at].content:
            edited[at] = message.content
    old, new = before.config or {}, after.config or {}
    present = set(origins)
    return RequestChanges(
        edited=dict(sorted(edited.items())),
        appended=inserted.pop(len(before.messages), []),
        inserted=dict(sorted(inserted.items())),
        removed=[at for at in range(len(before.messages)) if at not in present],
        config={
            key: new.get(key) for key in {**old, **new} if old.get(key) != new.get(key)
        },
        model=after.model if after.model != before.model else None,
    )


def align(old: Messages, new: Messages) -> list[int | None]:
    """Give the index of the old message for each new one; None for an added one.

    Equal messages are paired first, then similar ones of the same role between them.
    """
    # difflib alone would break up the common ends where messages repeat.
    head = _common_length(old, new)
    tail = _common_length(old[head:][::-1], new[head:][::-1])
    old_end, new_end = len(old) - tail, len(new) - tail
    origins: list[int | None] = [None] * len(new)
    origins[:head] = range(head)
    origins[new_end:] = range(old_end, len(old))
    blocks = [(old_end, new_end, 0)]
    if (old_end - head) * (new_end - head) <= _MAX_COMPARISONS:
        matcher = SequenceMatcher(None, old[head:old_end], new[head:new_end])
        blocks = [(i + head, j + head, n) for i, j, n in matcher.get_matching_blocks()]
    i = j = head
    for block_i, block_j, size in blocks:
        # Among very many messages only those close to each other are compared.
        is_small = (block_i - i) * (block_j - j) <= _MAX_SIMILARITIES
        step = max(block_i - i, block_j - j, 1) if is_small else _STRETCH
        for start in range(0, min(block_i - i, block_j - j), step):
            old_at, new_at = i + start, j + start
            old_stretch = old[old_at : min(old_at + step, block_i)]
            new_stretch = new[new_at : min(new_at + step, block_j)]
            for at_old, at_new in _similar_pairs(old_stretch, new_stretch):
                origins[new_at + at_new] = old_at + at_old
        i, j = block_i + size, block_j + size
        origins[block_j:j] = range(block_i, i)
    return origins


def _similar_pairs(old: Messages, new: Messages) -> Iterator[tuple[int, int]]:
    """Pair messages in order so that they are as similar as possible."""
    # Each cell has the best score of what is left, with its pairs as a linked list.
    below: list[tuple[int, Any]] = [(0, None)] * (len(new) + 1)
    for i in reversed(range(len(old))):
        row = below.copy()
        for j in reversed(range(len(new))):
            best = max(row[j + 1], below[j], key=itemgetter(0))
            if old[i].role == new[j].role:
                texts = old[i].content, new[j].content
                heads = (text[:_WINDOW] for text in texts)
                tails = (text[: -_WINDOW - 1 : -1] for text in texts)
                similarity = 1 + _common_length(*heads) + _common_length(*tails)
                score = similarity + below[j + 1][0]
                if score >= best[0]:
                    best = score, (i, j, below[j + 1][1])
            row[j] = best
        below = row
    pairs = below[0][1]
    while pairs:
        i, j, pairs = pairs
        yield i, j


def _common_length(a: Sequence[Any], b: Sequence[Any]) -> int:
    return sum(takewhile(bool, map(eq, a, b)))
