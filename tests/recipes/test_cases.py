"""Every case of every recipe, fired through the real pipeline."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hookline.recipes.catalog import RECIPES, STARTER, STARTER_RULE, Recipe
from hookline.testing.cases import HookTestFile, read_file
from hookline.testing.run import run_case
from tests.support.commandline import run_command

SCRIPTS = [recipe for recipe in (*RECIPES.values(), STARTER) if recipe.when is None]
RULES = [recipe for recipe in (*RECIPES.values(), STARTER_RULE) if recipe.when]
FILES = [read_file(recipe.files[-1]) for recipe in SCRIPTS]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.path.name)
async def test_recipe_does_what_its_cases_say(
    file: HookTestFile, subtests: pytest.Subtests
) -> None:
    for case in file.cases:
        with subtests.test(case.name):
            assert (await run_case(file, case)).problems == ()
    warm = msgspec.structs.replace(file, type="worker")
    for case in (file.cases[0], file.cases[-1]):
        with subtests.test(f"{case.name}, kept warm"):
            assert (await run_case(warm, case)).problems == ()


@pytest.mark.parametrize("recipe", RULES, ids=lambda recipe: recipe.name)
def test_recipe_that_is_one_condition_is_a_rule(recipe: Recipe, tmp_path: Path) -> None:
    """Nothing to run is written, and its cases pass as they are set up."""
    arguments = ["--rule"] if recipe is STARTER_RULE else ["--recipe", recipe.name]
    run_command("init", *arguments, cwd=tmp_path)
    assert not list(tmp_path.rglob("*.py"))
    assert run_command("check", cwd=tmp_path).stdout.endswith("0 errors, 0 warnings\n")
    tested = run_command("test", ".hookline", cwd=tmp_path)
    cases = read_file(recipe.files[-1]).cases
    assert tested.stdout == f"{len(cases)} passed\n"
