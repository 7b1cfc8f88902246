"""The recipes are small, documented, tested, and run with the core install.

Which there are, and what ``hookline recipes`` says of them, is in
``tests/pins/commands/showcase.json``.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hookline import Settings
from hookline.recipes.catalog import RECIPES, STARTER, STARTER_RULE, settings_for
from hookline.testing.cases import read_file

ALL = [*RECIPES.values(), STARTER]
STRICT = [*ALL, STARTER_RULE]


def test_recipes_have_enough_evasions_and_look_alikes() -> None:
    for recipe in RECIPES.values():
        kinds = [case.kind for case in read_file(recipe.files[-1]).cases]
        assert kinds.count("evasion") >= 3, recipe.name
        assert kinds.count("look-alike") >= 2, recipe.name


def test_recipe_scripts_are_small_documented_and_run_by_our_interpreter() -> None:
    for recipe in ALL:
        for script in recipe.files[:-1]:
            source = script.read_text("utf-8")
            assert ast.get_docstring(ast.parse(source)), recipe.name
            assert len(source.splitlines()) < 150, recipe.name
            assert "jq " not in re.sub("od strings|git jq", "", source), recipe.name
        for place in recipe.places if recipe.scripts else ():
            for hook in recipe.group(place)["hooks"]:
                assert hook["command"].startswith('"$HOOKLINE_PYTHON" .hookline/hooks/')


def test_guards_expect_json_and_block_on_errors() -> None:
    """And 12.2: what only records or counts is asked once."""
    for recipe in STRICT:
        strict = {"expect": "json", "onError": "block"} if recipe.guards else {}
        if recipe.when is not None:
            strict.pop("expect", None)  # a rule prints nothing
        once = {"recheck": False} if recipe.records else {}
        for place in recipe.places:
            for hook in recipe.group(place)["hooks"]:
                options = {key: hook[key] for key in hook if key in KEYS}
                assert options == strict | once, recipe.name


def test_a_recipe_that_can_block_is_a_guard() -> None:
    """One that fails must not let pass what it would have blocked."""
    for recipe in STRICT:
        sources = [script.read_text("utf-8") for script in recipe.files[:-1]]
        blocks = any(re.search(r"\b(block|stop|ask)\(", text) for text in sources)
        redacts = recipe.name == "redact-personal-data"
        assert recipe.guards is (blocks or redacts or recipe.when is not None)


def test_recipes_that_record_or_count_are_asked_once() -> None:
    once = {recipe.name for recipe in RECIPES.values() if recipe.records}
    assert once == {"audit-log", "git-checkpoint", "cost-budget"}


KEYS = {"expect", "onError", "recheck"}
ODD_EVENTS = ["{}", '{"tool_name": 5, "tool_input": [1], "cwd": "/"}', "words", ""]


def test_recipes_answer_json_or_nothing_whatever_they_are_shown(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """What it prints must never be taken for a text that allows."""
    scripts = [script for recipe in ALL for script in recipe.files[:-1]]
    for script in scripts:
        with subtests.test(script.name):
            processes = [
                subprocess.Popen(
                    [sys.executable, script],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    cwd=tmp_path,
                    env={"HOOK_STATE_DIR": str(tmp_path), "PATH": os.defpath},
                    text=True,
                )
                for _ in ODD_EVENTS
            ]
            for process, event in zip(processes, ODD_EVENTS, strict=True):
                output, _ = process.communicate(event)
                assert not output or isinstance(json.loads(output), dict)


def test_settings_of_all_recipes_are_read_without_a_warning() -> None:
    read = Settings.from_mapping(settings_for(ALL))
    assert read.warnings == ()


def test_formatting_comes_before_tests_in_any_order_of_request() -> None:
    asked = [RECIPES["tests-after-edit"], RECIPES["format-on-write"]]
    groups = settings_for(asked)["hooks"]["AfterTool"]
    assert [group["hooks"][0]["name"] for group in groups] == [
        "format-on-write",
        "tests-after-edit",
    ]
    assert all(group["sequential"] for group in groups)
