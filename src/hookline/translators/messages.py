"""Find which message of a request a hook changed, and edit the SDK's messages."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterator, Sequence
from itertools import takewhile
from typing import Any

from msgspec import Struct

from .sdk_objects import get, items_of, put, record, text_or_none, wrong
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


_OWN_ROLES = {"model": "assistant"}


class MessageListRequests:
    """The shared part of a ``RequestFormat``; the SDKs take dicts everywhere."""

    kinds: BlockKinds
    messages_key = "messages"

    def model(self, request: Any) -> str:
        """Read the model's name; a request may leave it to somebody else."""
        return text_or_none(get(request, "model"), "model") or ""

    def blank(self) -> Any:
        """Start a request from nothing."""
        return {"model": "", self.messages_key: []}

    def edited(self, raw: Any, text: str) -> Any:
        """Put a new text in place of all the text of a message."""
        content = edited_content(get(raw, "content"), text, self.kinds)
        return put(raw, content, "content")

    def emptied(self, raw: Any) -> Any:
        """Take the text out of a message."""
        return put(raw, emptied_content(get(raw, "content"), self.kinds), "content")

    def created(self, message: LLMMessage, request: Any) -> Any:
        """Make a message."""
        del request
        role = _OWN_ROLES.get(message.role, message.role)
        return {"role": role, "content": message.content}

    def with_model(self, request: Any, model: str) -> Any:
        """Change the model."""
        return put(request, model, "model")

    def with_entries(self, request: Any, raws: list[Any], *, added: bool) -> Any:
        """Change the messages."""
        del added
        return put(request, raws, self.messages_key)

    def with_system(self, request: Any, texts: Sequence[str]) -> Any:
        """Append to the system instruction, where it is kept apart."""
        raise AssertionError(f"system messages are messages here: {request} {texts}")
