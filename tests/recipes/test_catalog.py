"""The recipes are small, documented, tested, and run with the core install."""

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
from hookline.recipes.catalog import (
    RECIPES,
    STARTER,
    STARTER_RULE,
    Recipe,
    UnknownRecipeError,
    find_recipe,
    settings_for,
)
from hookline.testing.cases import read_file
from tests.support.commandline import hookline

ALL = [*RECIPES.values(), STARTER]
STRICT = [*ALL, STARTER_RULE]
WANTED = {
    "secret-scan",
    "dangerous-commands",
    "protected-files",
    "redact-personal-data",
    "format-on-write",
    "tests-after-edit",
    "git-checkpoint",
    "test-first",
    "inject-context",
    "read-only",
    "cost-budget",
    "audit-log",
    "notify-webhook",
    "stay-in-project",
    "no-network",
}


def by_name(recipe: Recipe) -> str:
    return recipe.name


def test_catalog_has_every_recipe() -> None:
    assert set(RECIPES) == WANTED


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=by_name)
def test_recipe_has_enough_evasions_and_look_alikes(recipe: Recipe) -> None:
    kinds = [case.kind for case in read_file(recipe.files[-1]).cases]
    assert kinds.count("evasion") >= 3
    assert kinds.count("look-alike") >= 2


@pytest.mark.parametrize("recipe", ALL, ids=by_name)
def test_recipe_script_is_small_and_documented(recipe: Recipe) -> None:
    for script in recipe.files[:-1]:
        source = script.read_text("utf-8")
        assert ast.get_docstring(ast.parse(source))
        assert len(source.splitlines()) < 150
        assert "jq " not in source.replace("od strings", "").replace("git jq", "")


@pytest.mark.parametrize("recipe", ALL, ids=by_name)
def test_recipe_runs_by_the_interpreter_that_has_hookline(recipe: Recipe) -> None:
    for place in recipe.places if recipe.scripts else ():
        for hook in recipe.group(place)["hooks"]:
            assert hook["command"].startswith('"$HOOKLINE_PYTHON" .hookline/hooks/')


@pytest.mark.parametrize("recipe", STRICT, ids=by_name)
def test_guards_expect_json_and_block_on_errors(recipe: Recipe) -> None:
    """Issue 12.4, 17; and 12.2: what only records or counts is asked once."""
    strict = {"expect": "json", "onError": "block"} if recipe.guards else {}
    if recipe.when is not None:
        strict.pop("expect", None)  # a rule prints nothing
    once = {"recheck": False} if recipe.records else {}
    for place in recipe.places:
        for hook in recipe.group(place)["hooks"]:
            found = {key: hook[key] for key in hook if key in KEYS}
            assert found == strict | once


@pytest.mark.parametrize("recipe", STRICT, ids=by_name)
def test_a_recipe_that_can_block_is_a_guard(recipe: Recipe) -> None:
    """Issue 17: one that fails must not let pass what it would have blocked."""
    sources = [script.read_text("utf-8") for script in recipe.files[:-1]]
    blocks = any(re.search(r"\b(block|stop|ask)\(", text) for text in sources)
    redacts = recipe.name == "redact-personal-data"
    assert recipe.guards is (blocks or redacts or recipe.when is not None)


def test_recipes_that_record_or_count_are_asked_once() -> None:
    once = {recipe.name for recipe in RECIPES.values() if recipe.records}
    assert once == {"audit-log", "git-checkpoint", "cost-budget"}


KEYS = {"expect", "onError", "recheck"}
ODD_EVENTS = ["{}", '{"tool_name": 5, "tool_input": [1], "cwd": "/"}', "words", ""]


@pytest.mark.parametrize("recipe", ALL, ids=by_name)
def test_a_recipe_answers_json_or_nothing_whatever_it_is_shown(
    recipe: Recipe, tmp_path: Path
) -> None:
    """What it prints must never be taken for a text that allows."""
    for script in recipe.files[:-1]:
        for event in ODD_EVENTS:
            ended = subprocess.run(
                [sys.executable, script],
                input=event,
                cwd=tmp_path,
                env={"HOOK_STATE_DIR": str(tmp_path), "PATH": os.defpath},
                capture_output=True,
                text=True,
                check=False,
            )
            assert not ended.stdout or isinstance(json.loads(ended.stdout), dict)


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


def test_unknown_recipe_suggests_the_nearest() -> None:
    with pytest.raises(UnknownRecipeError, match="did you mean 'secret-scan'"):
        find_recipe("secrets-scan")
    with pytest.raises(UnknownRecipeError, match="see 'hookline recipes'"):
        find_recipe("zzz")


def test_recipes_command_lists_name_event_and_description_as_json() -> None:
    ended = hookline("recipes", "--json")
    listed = json.loads(ended.stdout)
    assert {entry["name"] for entry in listed} == WANTED
    assert all(entry["event"] and entry["description"] for entry in listed)
    assert ended.returncode == 0


def test_recipes_command_shows_one_with_its_test() -> None:
    ended = hookline("recipes", "secret-scan")
    assert "def check(event" in ended.stdout
    assert "[[case]]" in ended.stdout


def test_recipes_command_lists_them_for_people() -> None:
    ended = hookline("recipes")
    assert all(name in ended.stdout for name in WANTED)


@pytest.mark.parametrize("command", [["recipes", "secretscan"]])
def test_unknown_recipe_on_the_command_line_suggests_the_nearest(
    command: list[str], tmp_path: Path
) -> None:
    ended = hookline(*command, cwd=tmp_path)
    assert ended.returncode == 1
    assert "did you mean 'secret-scan'?" in ended.stderr
