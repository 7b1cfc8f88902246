"""Cedar hooks among others: modes, conditions, chains, re-checks, callers."""

from __future__ import annotations

import asyncio
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, Settings

from .policies import PERMIT, PolicyBench, the_hook

NO_ENV = """
@reason("no .env")
forbid(principal, action, resource) when { context.tool_input.path like "*.env" };
"""


@pytest.fixture
def bench(tmp_path: Path) -> PolicyBench:
    return PolicyBench(tmp_path)


def renaming(path: str) -> dict[str, Any]:
    said = {"hookSpecificOutput": {"tool_input": {"path": path}}}
    return {"type": "command", "command": f"echo {shlex.quote(json.dumps(said))}"}


async def test_observing_hook_only_records(bench: PolicyBench) -> None:
    result = await bench.ask(bench.hook(NO_ENV, mode="observe"), path="a.env")
    assert not result.blocked
    assert the_hook(result).would_block


@pytest.mark.parametrize("forged", [{"path": {"__entity": 1}}, {"path": "a.env"}])
async def test_condition_decides_whether_policies_are_asked(
    bench: PolicyBench, forged: dict[str, Any]
) -> None:
    hook = bench.hook(NO_ENV, **{"if": 'tool_name == "write_file"'})
    assert (await bench.ask(hook, **forged)).blocked
    result = await bench.ask(hook, "read_file", **forged)
    assert not result.blocked
    assert not result.aggregated.hook_results


@pytest.mark.parametrize("sequential", [True, False])
async def test_policies_are_asked_about_the_final_input(
    bench: PolicyBench, sequential: bool
) -> None:
    """protocol.md#several-hooks: what is executed is what the guards have seen."""
    policy = bench.hook(NO_ENV + PERMIT)
    for hooks in ([policy, renaming("b.env")], [renaming("b.env"), policy]):
        async with bench.system(*hooks, sequential=sequential) as system:
            fire = system.event_handler.fire_before_tool_event
            result = await fire("write_file", {"path": "a.txt"})
        assert result.blocked
        assert result.reason == "no .env"


async def test_without_recheck_only_the_first_input_counts(bench: PolicyBench) -> None:
    policy = bench.hook(NO_ENV + PERMIT, recheck=False)
    async with bench.system(policy, renaming("b.env")) as system:
        fire = system.event_handler.fire_before_tool_event
        assert not (await fire("write_file", {"path": "a.txt"})).blocked


async def test_same_policies_for_another_principal_are_no_duplicate(
    bench: PolicyBench,
) -> None:
    """protocol.md#planning: every key that changes what a hook decides."""
    text = 'permit(principal == Agent::"a", action, resource);'
    first = bench.hook(text, principal="a")
    async with bench.system(first, {**first, "principal": "b"}) as system:
        result = await system.event_handler.fire_before_tool_event("x", {})
    assert len(result.aggregated.hook_results) == 2
    assert result.blocked


async def test_denial_after_a_tool_reaches_the_model(bench: PolicyBench) -> None:
    hook = bench.hook('@reason("odd result") forbid(principal, action, resource);')
    async with bench.system(hook, event="AfterTool") as system:
        fire = system.event_handler.fire_after_tool_event
        result = await fire("a", {}, {"llmContent": "x", "returnDisplay": "x"})
    assert result.final_output is not None
    assert result.final_output.reason == "odd result"


def test_every_kind_of_caller_is_answered(bench: PolicyBench) -> None:
    """Without a loop, in one, and in several after one another."""
    chosen = {"hooks": {"BeforeTool": [{"hooks": [bench.hook(NO_ENV + PERMIT)]}]}}

    async def fire(system: HookSystem, path: str) -> bool:
        handler = system.event_handler
        result = await handler.fire_before_tool_event("write_file", {"path": path})
        return result.blocked

    async def session() -> None:
        config = Config("s-1", bench.folder, Settings.from_mapping(chosen))
        async with HookSystem(config) as system:
            paths = [".env" if n % 3 else "a" for n in range(60)]
            found = await asyncio.gather(*(fire(system, path) for path in paths))
            assert found == [path == ".env" for path in paths]

    for _ in range(2):
        asyncio.run(session())


async def test_toml_settings_name_a_list_of_policies(bench: PolicyBench) -> None:
    bench.write("a.cedar", PERMIT)
    bench.write("b.cedar", NO_ENV)
    text = '[[hooks.BeforeTool]]\n[[hooks.BeforeTool.hooks]]\ntype = "cedar"\n'
    path = bench.write("s.toml", f'{text}policies = ["a.cedar", "b.cedar"]\n')
    config = Config("s-1", bench.folder, Settings.from_file(path))
    async with HookSystem(config) as system:
        fire = system.event_handler.fire_before_tool_event
        assert (await fire("x", {"path": ".env"})).blocked
        assert not (await fire("x", {"path": "a"})).blocked
