"""Find which message of a request a hook changed, and edit the content of messages."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterator, Sequence
from itertools import takewhile
from typing import Any

from msgspec import Struct

from .sdk_objects import get, text_at, text_or_none, unexpected, with_field
from .stable import LLMMessage

_MAX_CELLS = 1024
_SIMILARITY_WINDOW = 64

Key = tuple[str, str]
Pair = tuple[int, int]


def align(old: Sequence[LLMMessage], new: Sequence[LLMMessage]) -> list[int | None]:
    """Give the index of the old message for each new one; None for an added one.

    Messages that occur once on both sides and keep their order are paired first, then
    equal ones from both ends of the stretches between, then those of the same role.
    The cost is linear in the number of messages.
    """
    origin: list[int | None] = [None] * len(new)
    for i, j in _pairs([_key(m) for m in old], [_key(m) for m in new]):
        origin[j] = i
    return origin


def _key(message: LLMMessage) -> Key:
    return message.role, message.content


def _pairs(old: list[Key], new: list[Key]) -> Iterator[Pair]:
    start = 0, 0
    for end in [*_anchors(old, new), (len(old), len(new))]:
        yield from _pair_between(old, new, start, end)
        if end[0] < len(old) and end[1] < len(new):
            yield end
        start = end[0] + 1, end[1] + 1


def _anchors(old: list[Key], new: list[Key]) -> list[Pair]:
    """Pair what occurs once on both sides, as far as its order is kept."""
    in_old, in_new = Counter(old), Counter(new)
    places = {key: j for j, key in enumerate(new) if in_new[key] == 1}
    found = [
        (i, places[key])
        for i, key in enumerate(old)
        if in_old[key] == 1 and key in places
    ]
    return _longest_increasing(found)


def _longest_increasing(pairs: list[Pair]) -> list[Pair]:
    tails: list[int] = []
    lasts: list[int] = []
    before: list[int] = []
    for at, (_, j) in enumerate(pairs):
        size = bisect_left(tails, j)
        before.append(lasts[size - 1] if size else -1)
        tails[size : size + 1] = [j]
        lasts[size : size + 1] = [at]
    chain: list[Pair] = []
    at = lasts[-1] if lasts else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]


def _pair_between(
    old: list[Key], new: list[Key], start: Pair, end: Pair
) -> Iterator[Pair]:
    (i, j), (i_end, j_end) = start, end
    while i < i_end and j < j_end and old[i] == new[j]:
        yield i, j
        i, j = i + 1, j + 1
    while i < i_end and j < j_end and old[i_end - 1] == new[j_end - 1]:
        i_end, j_end = i_end - 1, j_end - 1
        yield i_end, j_end
    small = (i_end - i) * (j_end - j) <= _MAX_CELLS
    pair = _pair_by_similarity if small else _pair_by_role
    for a, b in pair(old[i:i_end], new[j:j_end]):
        yield i + a, j + b


def _pair_by_role(old: list[Key], new: list[Key]) -> Iterator[Pair]:
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for i, (role, _) in enumerate(old):
        waiting[role].append(i)
    reached = -1
    for j, (role, _) in enumerate(new):
        while waiting[role] and waiting[role][0] <= reached:
            waiting[role].popleft()
        if waiting[role]:
            reached = waiting[role].popleft()
            yield reached, j


def _pair_by_similarity(old: list[Key], new: list[Key]) -> list[Pair]:
    best = _best_scores(old, new)
    pairs: list[Pair] = []
    i = j = 0
    while i < len(old) and j < len(new):
        score = _similarity(old[i], new[j])
        if score and best[i][j] == score + best[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i][j + 1]:
            j += 1
        else:
            i += 1
    return pairs


def _best_scores(old: list[Key], new: list[Key]) -> list[list[int]]:
    best = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            score = _similarity(old[i], new[j])
            paired = score + best[i + 1][j + 1] if score else 0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    return best


def _similarity(old: Key, new: Key) -> int:
    if old[0] != new[0]:
        return 0
    heads = old[1][:_SIMILARITY_WINDOW], new[1][:_SIMILARITY_WINDOW]
    tails = (
        old[1][: -_SIMILARITY_WINDOW - 1 : -1],
        new[1][: -_SIMILARITY_WINDOW - 1 : -1],
    )
    return 1 + _common_length(*heads) + _common_length(*tails)


def _common_length(a: str, b: str) -> int:
    return sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))
    )


class BlockTypes(Struct, frozen=True):
    """Which blocks hold text, and which field marks the end of a cached prefix."""

    text: Collection[str]
    cache_field: str


def read_blocks(
    content: Any, place: str, types: BlockTypes
) -> tuple[list[str], list[str]]:
    """Read the texts of a message's content, and the types of its other blocks."""
    if content is None:
        return [], []
    if isinstance(content, str):
        return [content], []
    if not isinstance(content, list | tuple):
        raise unexpected(place, "a string or a list", content)
    texts: list[str] = []
    others: list[str] = []
    for at, block in enumerate(content):
        where = f"{place}[{at}]"
        kind = text_at(block, "type", where)
        if kind in types.text:
            texts.append(text_or_none(get(block, "text"), f"{where}.text") or "")
        else:
            others.append(kind)
    return texts, others


def replace_text(content: Any, text: str | None, types: BlockTypes) -> Any:
    """Put a text into the first text block and drop the others; None drops all."""
    if content is None or isinstance(content, str):
        return text
    if text is None:
        return [block for block in content if not _is_text(block, types)] or None
    places = [at for at, block in enumerate(content) if _is_text(block, types)]
    first = with_field(content[places[0]], text, "text")
    marks = [get(content[at], types.cache_field) for at in places]
    if marks[0] is None and any(marks):
        # The mark stands at the end of the cached text, which is now this block.
        last = next(mark for mark in reversed(marks) if mark is not None)
        first = with_field(first, last, types.cache_field)
    dropped = frozenset(places[1:])
    kept = [block for at, block in enumerate(content) if at not in dropped]
    kept[places[0]] = first
    return kept


def _is_text(block: Any, types: BlockTypes) -> bool:
    return text_or_none(get(block, "type"), "type") in types.text
