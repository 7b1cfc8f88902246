"""Every case of every recipe, fired through the real pipeline."""

from __future__ import annotations

import pytest

from hookline.recipes.catalog import RECIPES, STARTER
from hookline.testing.cases import HookTestCase, HookTestFile, read_file
from hookline.testing.running import run_case

FILES = [read_file(one.files[-1]) for one in (*RECIPES.values(), STARTER)]
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
