"""A hook's answer replaces the model's, for each spelling and candidate (issue 12.5).

protocol.md#translation: where a hook gives ``candidates``, they count; where it gives
only ``text``, that does.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from hookline.agent import fire_after_model_hook

from .scenes import config_of

Wire = dict[str, Any]
SECRET = "sk-12345"


def choice(index: int) -> Wire:
    message = {"role": "assistant", "content": f"{SECRET} {index}"}
    return {"index": index, "finish_reason": "stop", "message": message}


REQUEST = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "n": 2}
OPENAI = {"object": "chat.completion", "choices": [choice(0), choice(1)]}
STABLE = {
    "candidates": [
        {"content": {"role": "model", "parts": [f"{SECRET} {n}"]}} for n in range(2)
    ]
}
GENAI = {
    "candidates": [
        {"index": n, "content": {"role": "model", "parts": [{"text": f"{SECRET} {n}"}]}}
        for n in range(2)
    ]
}
RESPONSES: dict[str, Wire] = {"openai": OPENAI, "genai": GENAI, "stable": STABLE}


def texts_changed(change: Callable[[str], str], response: Wire) -> list[Wire]:
    return [
        {
            **one,
            "content": {"parts": [change(text) for text in one["content"]["parts"]]},
        }
        for one in response["candidates"]
    ]


def redact(text: str) -> str:
    return text.replace(SECRET, "*")


def sign(text: str) -> str:
    return f"{text}, yours"


CHANGES: dict[str, Callable[[Callable[[str], str], Wire], Wire]] = {
    "text": lambda change, shown: {"text": change(shown["text"])},
    "candidates": lambda change, shown: {"candidates": texts_changed(change, shown)},
    "text, the rest as shown": lambda change, shown: {
        **shown,
        "text": change(shown["text"]),
    },
    "candidates, the rest as shown": lambda change, shown: {
        **shown,
        "candidates": texts_changed(change, shown),
    },
}
"""Ways in which hooks return a changed answer."""


async def answer_after(
    folder: Path, response: Wire, hooks: list[tuple[Any, str]], *, sequential: bool
) -> str:
    """The response as text, after hooks that change it in their ways."""
    async with config_of(folder, {}, seen=False) as config:
        system = config.get_hook_system()
        assert system is not None
        for change, way in hooks:

            def hook(event: Wire, change: Any = change, way: str = way) -> Wire:
                changed = CHANGES[way](change, event["llm_response"])
                return {"hookSpecificOutput": {"llm_response": changed}}

            system.on("AfterModel", sequential=sequential)(hook)
        result = await fire_after_model_hook(config, REQUEST, response)
    return str(result.response)


@pytest.mark.parametrize("way", CHANGES)
@pytest.mark.parametrize("sdk", RESPONSES)
async def test_a_redaction_leaves_no_candidate_as_it_was(
    tmp_path: Path, sdk: str, way: str
) -> None:
    shown = await answer_after(
        tmp_path, RESPONSES[sdk], [(redact, way)], sequential=False
    )
    assert SECRET not in shown
    assert "* 0" in shown


@pytest.mark.parametrize("sequential", [True, False], ids=["sequential", "parallel"])
@pytest.mark.parametrize("ways", list(permutations(CHANGES, 2)), ids=str)
async def test_no_other_change_brings_back_what_was_redacted(
    tmp_path: Path, ways: tuple[str, str], sequential: bool
) -> None:
    """Each hook's answer counts in full, whatever it left beside its change."""
    first, second = ways
    for hooks in ([(redact, first), (sign, second)], [(sign, first), (redact, second)]):
        shown = await answer_after(tmp_path, OPENAI, hooks, sequential=sequential)
        assert SECRET not in shown
        assert "* 0, yours" in shown
