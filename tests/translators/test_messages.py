"""Find which message of a request a hook changed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.translators.messages import align
from hookline.translators.stable import LLMMessage


def messages(spelt: str) -> list[LLMMessage]:
    """Read ``u:text m:text`` as messages."""
    roles = {"u": "user", "m": "model", "s": "system"}
    return [LLMMessage(roles[word[0]], word[2:]) for word in spelt.split()]


@pytest.mark.parametrize(
    ("old", "new", "origin"),
    [
        ("u:a m:b", "u:a m:b", [0, 1]),
        ("u:a m:b", "u:a m:B", [0, 1]),
        ("u:a m:b", "u:a m:b u:c", [0, 1, None]),
        ("u:a m:b", "s:x u:a m:b", [None, 0, 1]),
        ("u:a m:b u:c", "u:a u:c", [0, 2]),
        ("u:a m:b", "m:b", [1]),
        ("u:a", "m:a", [None]),
        ("u:a", "", []),
        ("", "u:a", [None]),
        ("u:ok u:ok u:ok", "u:ok u:OK u:ok", [0, 1, 2]),
        ("u:x u:a u:b", "u:a u:b u:x", [1, 2, None]),
        ("u:first m:b u:second-question", "u:second-redacted", [2]),
        ("u:old-one m:b u:key=123-end", "m:b u:key=***-end", [1, 2]),
    ],
)
def test_messages_are_recognised(old: str, new: str, origin: list[int | None]) -> None:
    """HOOK-078: kept, edited, removed, added."""
    assert align(messages(old), messages(new)) == origin


roles = st.sampled_from(["user", "model"])
few_texts = st.sampled_from(["", "a", "b", "ok"])
lists = st.lists(st.builds(LLMMessage, roles, few_texts), max_size=40)


@settings(max_examples=150, deadline=None)
@given(lists, lists)
def test_alignment_keeps_order_and_roles(
    old: list[LLMMessage], new: list[LLMMessage]
) -> None:
    """HOOK-078: pairs are in order, one to one, and of the same role."""
    origin = align(old, new)
    paired = [(i, j) for j, i in enumerate(origin) if i is not None]
    assert len(origin) == len(new)
    assert [i for i, _ in paired] == sorted({i for i, _ in paired})
    assert all(old[i].role == new[j].role for i, j in paired)


@settings(max_examples=60, deadline=None)
@given(lists, st.data())
def test_edited_message_is_recognised_anywhere(
    old: list[LLMMessage], data: st.DataObject
) -> None:
    """HOOK-078: also among equal messages."""
    if not old:
        return
    at = data.draw(st.integers(0, len(old) - 1))
    new = [*old[:at], LLMMessage(old[at].role, "EDITED"), *old[at + 1 :]]
    assert align(old, new) == list(range(len(old)))


def test_long_stretches_are_paired_by_role() -> None:
    """If everything has changed and there are many messages."""
    old = [LLMMessage("user" if n % 2 else "model", f"old {n}") for n in range(500)]
    new = [LLMMessage(message.role, f"new {n}") for n, message in enumerate(old)]
    assert align(old, new) == list(range(500))
