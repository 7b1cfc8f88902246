"""Recipes are added to settings whose text stays as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.recipes.catalog import RECIPES, settings_for
from hookline.recipes.merge import Groups, Presence, merge_groups
from hookline.settings.read import parse_text

WANTED: Groups = settings_for(
    [RECIPES["secret-scan"], RECIPES["audit-log"], RECIPES["stay-in-project"]]
)["hooks"]

TEXTS = json.loads(Path(__file__).with_name("settings_texts.json").read_text())
"""Settings as people write them, by the ending of their file."""


def test_hooks_are_added_and_the_rest_of_the_text_stays(
    subtests: pytest.Subtests,
) -> None:
    for ending, texts in TEXTS.items():
        for name, text in texts.items():
            with subtests.test(f"{ending}: {name}"):
                for variant in (text, text.replace("\n", "\r\n"), f"\ufeff{text}"):
                    check_merge(variant, f"settings.{ending}")


def check_merge(text: str, file: str) -> None:
    before = parse_text(text.removeprefix("\ufeff"), file)
    merged = merge_groups(text, file, WANTED)
    assert not merged.by_hand
    after = parse_text(merged.text.removeprefix("\ufeff"), file)
    hooks = dict(before.get("hooks", {}))
    for event, groups in WANTED.items():
        hooks[event] = hooks.get(event, []) + groups
    assert after == {**before, "hooks": hooks}
    assert is_within(text, merged.text)
    assert ("\r\n" in merged.text) == ("\r\n" in text)
    assert merged.text.count("\ufeff") == text.count("\ufeff")
    again = merge_groups(merged.text, file, WANTED)
    assert again.text == merged.text
    assert set(again.hooks) == {Presence.SAME}


def is_within(text: str, longer: str) -> bool:
    """Whether nothing but characters were added; an empty object has no line."""
    rest = iter("".join(longer.split()))
    return all(character in rest for character in "".join(text.split()))


@pytest.mark.parametrize(
    "text",
    [
        "[hooks]\nBeforeTool = []\n",
        "hooks = { AfterModel = [] }\n",
        "[hooks]\nBeforeTool = [{ hooks = [] }]\n",
    ],
)
def test_inline_toml_is_left_alone_and_what_to_add_is_given(text: str) -> None:
    merged = merge_groups(text, "settings.toml", WANTED)
    assert merged.text == text
    assert parse_text(merged.by_hand, "settings.toml")["hooks"] == WANTED


@given(st.text(), st.text(st.characters(codec="utf-8")))
def test_any_text_survives_as_toml(name: str, text: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        return
    hook = {"name": "x", "env": {name: text}, "args": [text, {name: 1}]}
    group = {"matcher": text, "hooks": [hook]}
    merged = merge_groups("", "settings.toml", {"BeforeTool": [group]})
    found = parse_text(merged.text, "settings.toml")["hooks"]["BeforeTool"]
    assert found == [group]


@pytest.mark.parametrize(
    "hook", [{"name": "secret-scan", "command": "mine"}, {"name": "secret-scan"}]
)
def test_a_group_is_not_added_beside_one_of_its_hooks(hook: dict[str, str]) -> None:
    settings = {"BeforeTool": [{"hooks": [hook]}, None, {"hooks": [3]}]}
    text = json.dumps({"hooks": settings})
    wanted = settings_for([RECIPES["secret-scan"]])["hooks"]
    merged = merge_groups(text, "settings.json", wanted)
    assert merged.text == text
    assert merged.names(Presence.ADAPTED) == "secret-scan"
