"""What agents of each framework do with hooks: the same scenarios for all of them."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.adapters.recorded_hooks import RecordedHooks
from tests.adapters.scenarios import ScenarioDriver, events_as_data, masked, observe
from tests.support.pins import FOLDER, PinTable

DRIVERS = {
    "agent_hooks": ("agent_hooks", "AgentHooksDriver"),
    "fastmcp": ("fastmcp", "FastMCPDriver"),
    "google_adk": ("google.adk", "AdkDriver"),
    "langchain": ("langchain", "LangChainDriver"),
    "openai_agents": ("agents", "OpenAIAgentsDriver"),
    "pydantic_ai": ("pydantic_ai", "PydanticAIDriver"),
    "strands": ("strands", "StrandsDriver"),
}


# This is how ADK's AgentTool hands on the plugins of its caller.
@pytest.mark.filterwarnings("ignore:The `plugins` argument:DeprecationWarning")
# ADK prefers graphs to its workflow agents, which are what people have.
@pytest.mark.filterwarnings("ignore:.*in favor of Workflow:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*ResumabilityConfig:UserWarning")
@pytest.mark.parametrize("name", DRIVERS)
async def test_scenarios_of_a_framework(
    name: str, pin_table: Callable[[str], PinTable]
) -> None:
    """Rows of ``scenarios.json``, and those that only this framework has.

    What hooks see and decide is in protocol.md#events and #callers.
    """
    package, driver_name = DRIVERS[name]
    pytest.importorskip(package, reason=f"{package} is not installed here")
    module = importlib.import_module(f"tests.adapters.drivers.{name}")
    driver: ScenarioDriver = getattr(module, driver_name)()
    shared: dict[str, Any] = json.loads(
        (FOLDER / "adapters" / "scenarios.json").read_text()
    )
    rows = {
        scenario: row
        for scenario, row in shared.items()
        if driver.offers.issuperset(row.get("needs", ()))
        and name not in row.get("not", ())
    }
    table = pin_table(f"adapters/{name}")
    peculiar = {key: row for key, row in table.rows.items() if row.keys() - {"then"}}

    async def happened(scenario: str, row: dict[str, Any]) -> object:
        return await observe(driver, rows.get(scenario, row))

    await table.check(happened, names=[*rows, *peculiar], at_once=1)


async def test_events_of_claude_code(pin_table: Callable[[str], PinTable]) -> None:
    """What its SDK is told: events that no scripted model can cause as well.

    The SDK's own client runs; in place of its program stands a transport.
    """
    pytest.importorskip("claude_agent_sdk")
    from tests.adapters.drivers.claude_program import fired

    async def answers(_: str, row: dict[str, Any]) -> object:
        recorded = RecordedHooks(
            row.get("hooks"),
            hooks_config=row.get("hooksConfig"),
            settings=row.get("settings"),
            unheard=row.get("unheard", ()),
        )
        told = await fired(recorded, row["events"], row.get("session"))
        return masked({"told": told, **events_as_data(recorded)})

    await pin_table("adapters/claude_agent_sdk").check(answers, at_once=1)


async def test_scenarios_of_claude_code(pin_table: Callable[[str], PinTable]) -> None:
    """The program that the SDK brings runs for real; its model is a local server.

    Of each text of a row it is counted how often a request has it, and, last, how often
    messages to the caller do.
    """
    pytest.importorskip("claude_agent_sdk")
    from tests.adapters.drivers.claude_agent_sdk import went_through

    async def happened(_: str, row: dict[str, Any]) -> object:
        return await went_through(row)

    await pin_table("adapters/claude_code").check(happened, at_once=2)
