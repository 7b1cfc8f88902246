"""Every case of every recipe, fired through the real pipeline."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hookline.recipes.catalog import RECIPES, STARTER, STARTER_RULE, Recipe
from hookline.testing.cases import HookTestCase, HookTestFile, read_file
from hookline.testing.run import run_case
from tests.support.commandline import hookline

SCRIPTS = [one for one in (*RECIPES.values(), STARTER) if one.when is None]
RULES = [one for one in (*RECIPES.values(), STARTER_RULE) if one.when is not None]
FILES = [read_file(one.files[-1]) for one in SCRIPTS]
CASES = [
    pytest.param(file, case, id=f"{file.path.name.partition('.')[0]}: {case.name}")
    for file in FILES
    for case in file.cases
]


@pytest.mark.parametrize(("file", "case"), CASES)
async def test_recipe_case_goes_as_expected(
    file: HookTestFile, case: HookTestCase
) -> None:
    result = await run_case(file, case)
    assert result.passed, "\n".join(result.problems)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.path.name)
async def test_recipe_works_the_same_kept_warm(file: HookTestFile) -> None:
    warm = msgspec.structs.replace(file, type="worker")
    for case in (file.cases[0], file.cases[-1]):
        result = await run_case(warm, case)
        assert result.passed, "\n".join(result.problems)


@pytest.mark.parametrize("recipe", RULES, ids=lambda recipe: recipe.name)
def test_recipe_that_is_one_condition_is_a_rule(recipe: Recipe, tmp_path: Path) -> None:
    """Issue 13.7: nothing to run is written, and its cases pass as they are set up."""
    arguments = ["--rule"] if recipe is STARTER_RULE else ["--recipe", recipe.name]
    hookline("init", *arguments, cwd=tmp_path)
    assert not list(tmp_path.rglob("*.py"))
    assert hookline("check", cwd=tmp_path).stdout.endswith("0 errors, 0 warnings\n")
    tested = hookline("test", ".hookline", cwd=tmp_path)
    cases = read_file(recipe.files[-1]).cases
    assert tested.stdout == f"{len(cases)} passed\n"
