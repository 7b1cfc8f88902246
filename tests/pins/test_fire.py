"""What one event comes to: hooks and settings in, verdict out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.fired import fire_function_row, fire_row, folder_of
from tests.support.opa import OpaServer
from tests.support.pins import PinTable
from tests.support.served import fire_served_row
from tests.support.web import hook

EXAMPLE = Path(__file__).parents[2] / "examples" / "opa" / "guard.rego"
Tables = Callable[[str], PinTable]


@pytest.mark.parametrize(
    "table",
    [
        *("exit_and_streams", "answers", "on_error", "dialects"),
        *("inputs", "commands", "rules", "cedar", "cedar_values", "workers"),
        "python_modules",
    ],
)
async def test_verdict_of_one_event(
    table: str, pin_table: Tables, tmp_path: Path
) -> None:
    async def fired(name: str, row: dict[str, Any]) -> object:
        return await fire_row(row, folder_of(name, tmp_path))

    await pin_table(f"fire/{table}").check(fired, at_once=8)


@pytest.mark.parametrize("debug", [False, True], ids=["", "debug"])
async def test_verdict_of_a_python_function(pin_table: Tables, debug: bool) -> None:
    asyncio.get_running_loop().set_debug(debug)

    async def fired(_: str, row: dict[str, Any]) -> object:
        return await fire_function_row(row)

    await pin_table("fire/python_hooks").check(fired, at_once=8)


@pytest.mark.parametrize("table", ["http", "opa"])
async def test_verdict_of_a_service(
    table: str, pin_table: Tables, tmp_path: Path
) -> None:
    async def fired(name: str, row: dict[str, Any]) -> object:
        return await fire_served_row(row, folder_of(name, tmp_path))

    # The variables of a row are those of this process: one row after the other.
    await pin_table(f"fire/{table}").check(fired, at_once=1)


async def test_example_of_opa_decides_and_an_undefined_decision_is_not_a_yes(
    pin_table: Tables, tmp_path: Path
) -> None:
    """Real Rego, at each path of the example and at paths that it does not have."""
    with OpaServer(EXAMPLE.read_text()) as server:

        async def fired(name: str, row: dict[str, Any]) -> object:
            service = hook(server, f"/v1/data/{row['path']}", dialect="opa")
            row = {**row, "hooks": [{**service, "onError": "block"}]}
            return await fire_row(row, folder_of(name, tmp_path), {"url": server.url})

        await pin_table("fire/rego").check(fired)
