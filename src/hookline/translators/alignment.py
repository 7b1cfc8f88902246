"""Find out which of the shown messages a hook kept, edited, removed or added.

Pure, and linear in the size of the conversation but for small stretches in which
everything has changed. Messages are compared as wholes first; what is left between
equal ones is paired by role, and by likeness where the stretch is small.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from itertools import takewhile

from .stable import LLMMessage

_CELLS = 1024
_LIKENESS_WINDOW = 64

Key = tuple[str, str]
Pair = tuple[int, int]


def align(old: Sequence[LLMMessage], new: Sequence[LLMMessage]) -> list[int | None]:
    """Say for each new message which old one it is; None for an added one."""
    origin: list[int | None] = [None] * len(new)
    for i, j in _pairs([_key(m) for m in old], [_key(m) for m in new]):
        origin[j] = i
    return origin


def _key(message: LLMMessage) -> Key:
    return message.role, message.content


def _pairs(old: list[Key], new: list[Key]) -> Iterator[Pair]:
    start = 0, 0
    for end in [*_unmoved(old, new), (len(old), len(new))]:
        yield from _pair_stretch(old, new, start, end)
        if end[0] < len(old) and end[1] < len(new):
            yield end
        start = end[0] + 1, end[1] + 1


def _unmoved(old: list[Key], new: list[Key]) -> list[Pair]:
    """Pair what occurs once on both sides, as far as its order is kept."""
    in_old, in_new = Counter(old), Counter(new)
    places = {key: j for j, key in enumerate(new) if in_new[key] == 1}
    found = [
        (i, places[key])
        for i, key in enumerate(old)
        if in_old[key] == 1 and key in places
    ]
    return _longest_rising(found)


def _longest_rising(pairs: list[Pair]) -> list[Pair]:
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


def _pair_stretch(
    old: list[Key], new: list[Key], start: Pair, end: Pair
) -> Iterator[Pair]:
    (i, j), (i_end, j_end) = start, end
    while i < i_end and j < j_end and old[i] == new[j]:
        yield i, j
        i, j = i + 1, j + 1
    while i < i_end and j < j_end and old[i_end - 1] == new[j_end - 1]:
        i_end, j_end = i_end - 1, j_end - 1
        yield i_end, j_end
    small = (i_end - i) * (j_end - j) <= _CELLS
    pair = _pair_by_likeness if small else _pair_by_role
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


def _pair_by_likeness(old: list[Key], new: list[Key]) -> list[Pair]:
    best = _best_scores(old, new)
    pairs: list[Pair] = []
    i = j = 0
    while i < len(old) and j < len(new):
        score = _likeness(old[i], new[j])
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
            score = _likeness(old[i], new[j])
            paired = score + best[i + 1][j + 1] if score else 0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    return best


def _likeness(old: Key, new: Key) -> int:
    if old[0] != new[0]:
        return 0
    heads = old[1][:_LIKENESS_WINDOW], new[1][:_LIKENESS_WINDOW]
    tails = old[1][: -_LIKENESS_WINDOW - 1 : -1], new[1][: -_LIKENESS_WINDOW - 1 : -1]
    return 1 + _common(*heads) + _common(*tails)


def _common(a: str, b: str) -> int:
    return sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))
    )
