"""Every case of every recipe, fired through the real pipeline."""

from __future__ import annotations

import msgspec
import pytest

from hookline.recipes.catalog import RECIPES, STARTER
from hookline.testing.cases import HookTestCase, HookTestFile, read_file
from hookline.testing.run import run_case

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


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.path.name)
async def test_recipe_works_the_same_kept_warm(file: HookTestFile) -> None:
    warm = msgspec.structs.replace(file, type="worker")
    for case in (file.cases[0], file.cases[-1]):
        result = await run_case(warm, case)
        assert result.passed, "\n".join(result.problems)
