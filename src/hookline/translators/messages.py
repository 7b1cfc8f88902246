"""Find which message of a request a hook changed."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from operator import eq
from typing import Any, TypeVar

from msgspec import Struct

from .stable import LLMMessage, LLMRequest

_MAX_CELLS = 1024
_SIMILARITY_WINDOW = 64

T = TypeVar("T")
Messages = Sequence[LLMMessage]
Pair = tuple[int, int]


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
            kept: T | None = item
            if text_of(item):
                at += 1
                changed += map(make, self.inserted.get(at, ()))
                if at in self.edited:
                    kept = edit(item, self.edited[at])
                elif at in self.removed:
                    kept = edit(item, None)
            if kept is not None:
                changed.append(kept)
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
    kept = {at for at in origins if at is not None}
    return RequestChanges(
        edited=dict(sorted(edited.items())),
        appended=inserted.pop(len(before.messages), []),
        inserted=dict(sorted(inserted.items())),
        removed=[at for at in range(len(before.messages)) if at not in kept],
        config={
            key: new.get(key) for key in {**old, **new} if old.get(key) != new.get(key)
        },
        model=after.model if after.model != before.model else None,
    )


def align(old: Messages, new: Messages) -> list[int | None]:
    """Give the index of the old message for each new one; None for an added one.

    Messages that occur once on both sides and keep their order are paired first, then
    equal ones from both ends of the stretches between, then those of the same role.
    The cost is linear in the number of messages.
    """
    origins = {j: i for i, j in _pairs(old, new)}
    return [origins.get(j) for j in range(len(new))]


def _pairs(old: Messages, new: Messages) -> Iterator[Pair]:
    start = 0, 0
    for end in [*_anchors(old, new), (len(old), len(new))]:
        yield from _pair_between(old, new, start, end)
        if end[0] < len(old) and end[1] < len(new):
            yield end
        start = end[0] + 1, end[1] + 1


def _anchors(old: Messages, new: Messages) -> list[Pair]:
    """Pair what occurs once on both sides, as far as its order is kept."""
    in_old, in_new = Counter(old), Counter(new)
    places = {one: j for j, one in enumerate(new) if in_new[one] == in_old[one] == 1}
    found = [(i, places[one]) for i, one in enumerate(old) if one in places]
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
    old: Messages, new: Messages, start: Pair, end: Pair
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


def _pair_by_role(old: Messages, new: Messages) -> Iterator[Pair]:
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for i, message in enumerate(old):
        waiting[message.role].append(i)
    reached = -1
    for j, message in enumerate(new):
        same_role = waiting[message.role]
        while same_role and same_role[0] <= reached:
            same_role.popleft()
        if same_role:
            reached = same_role.popleft()
            yield reached, j


def _pair_by_similarity(old: Messages, new: Messages) -> list[Pair]:
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


def _best_scores(old: Messages, new: Messages) -> list[list[int]]:
    best = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            score = _similarity(old[i], new[j])
            paired = score + best[i + 1][j + 1] if score else 0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    return best


def _similarity(old: LLMMessage, new: LLMMessage) -> int:
    if old.role != new.role:
        return 0
    size = _SIMILARITY_WINDOW
    heads = (one.content[:size] for one in (old, new))
    tails = (one.content[: -size - 1 : -1] for one in (old, new))
    return 1 + _common_length(*heads) + _common_length(*tails)


def _common_length(a: str, b: str) -> int:
    return sum(takewhile(bool, map(eq, a, b)))
