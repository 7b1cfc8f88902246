"""A schema at run time: an event that it does not describe is not let through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline.protocol.results import FailureCause

from .policies import PERMIT, PolicyBench, entities, entity, failure

SCHEMA = """
entity Agent in [Agent] { level?: Long };
entity Project;
action "writing";
action "write_file" in ["writing"] appliesTo {
  principal: Agent, resource: Project,
  context: { tool_input: { path: String, lines?: Long, price?: decimal } }
};
"""


@pytest.fixture
def bench(tmp_path: Path) -> PolicyBench:
    return PolicyBench(tmp_path)


def guarded(bench: PolicyBench, text: str = PERMIT, **more: Any) -> dict[str, Any]:
    bench.write("tools.cedarschema", SCHEMA)
    return bench.hook(text, schema="tools.cedarschema", **more)


async def test_event_that_fits_the_schema_is_judged(bench: PolicyBench) -> None:
    """Fields that neither schema nor policies name need no declaration."""
    text = """permit(principal, action in Action::"writing", resource)
        when { context.tool_input.path like "src/*" };"""
    hook = guarded(bench, text)
    assert not (await bench.ask(hook, path="src/a", lines=5, price=1.5)).blocked
    assert (await bench.ask(hook, path="a")).blocked


@pytest.mark.parametrize(
    ("tool", "given", "problem"),
    [
        ("delete", {"path": "a"}, 'action `Action::"delete"` does not exist'),
        ("write_file", {}, "expected the record to have an attribute `path`"),
        ("write_file", {"path": 5}, "the context is not valid for"),
        ("write_file", {"path": None}, "to have an attribute `path`"),
        ("write_file", {"path": "a", "mode": 5}, "attribute `mode` should not exist"),
        ("write_file", {"path": "a", "lines": 1.5}, "the context is not valid for"),
        ("write_file", {"path": "a", "price": 5}, "type error"),
    ],
    ids=["action", "missing", "type", "null", "unknown", "fraction", "whole"],
)
async def test_event_that_the_schema_does_not_know_is_a_failure(
    bench: PolicyBench, tool: str, given: dict[str, Any], problem: str
) -> None:
    """Issue 13.2: not silently allowed, though the policy would permit it."""
    result = await bench.ask(guarded(bench), tool, **given)
    cause, error = failure(result)
    assert cause is FailureCause.OUTPUT
    assert error.startswith("the event does not fit the schema: ")
    assert problem in error
    assert result.blocked


async def test_error_does_not_repeat_the_input(bench: PolicyBench) -> None:
    result = await bench.ask(guarded(bench), path=["s3cret` is not valid"])
    assert result.blocked
    assert "s3cret" not in failure(result)[1]


async def test_field_that_a_policy_names_has_to_be_declared(bench: PolicyBench) -> None:
    """Leaving it out would make ``has`` false and the forbid void."""
    text = f"""{PERMIT} forbid(principal, action, resource)
        when {{ context has cwd }};"""
    result = await bench.ask(guarded(bench, text), path="a")
    assert result.blocked
    assert "attribute `cwd` should not exist" in failure(result)[1]


async def test_policies_that_do_not_fit_the_schema_fail(bench: PolicyBench) -> None:
    text = f"""{PERMIT}
        @id("typo") forbid(principal, action, resource)
        when {{ context.tool_input has path && context.tool_input.pth == "x" }};"""
    cause, error = failure(await bench.ask(guarded(bench, text), path="a"))
    assert cause is FailureCause.OUTPUT
    assert f"{bench.folder}/tools.cedar:2: policy typo: " in error
    assert "pth" in error


async def test_entities_that_do_not_fit_the_schema_fail(bench: PolicyBench) -> None:
    bench.write("agents.json", entities(entity("Agent::default", level="high")))
    hook = guarded(bench, entities="agents.json")
    cause, error = failure(await bench.ask(hook, path="a"))
    assert cause is FailureCause.OUTPUT
    assert "agents.json: not valid Cedar entities: " in error
    assert "level" in error


async def test_schema_in_json_is_read_by_its_ending(bench: PolicyBench) -> None:
    bench.write(
        "schema.json",
        """{"": {"entityTypes": {"Agent": {}, "Project": {}}, "actions": {"a": {
        "appliesTo": {"principalTypes": ["Agent"], "resourceTypes": ["Project"]}
        }}}}""",
    )
    hook = bench.hook(PERMIT, schema="schema.json")
    assert not (await bench.ask(hook, "a")).blocked
    assert (await bench.ask(hook, "b")).blocked


async def test_broken_schema_is_a_failure(bench: PolicyBench) -> None:
    hook = guarded(bench)
    bench.write("tools.cedarschema", "entity Agent")
    cause, error = failure(await bench.ask(hook, path="a"))
    assert cause is FailureCause.OUTPUT
    assert "tools.cedarschema: not a valid Cedar schema: " in error


@pytest.mark.parametrize("key", ["__entity", "__extn", "__expr"])
async def test_reserved_keys_are_refused_with_a_schema_too(
    bench: PolicyBench, key: str
) -> None:
    value = {key: {"fn": "decimal", "arg": "1.0", "type": "Agent", "id": "x"}}
    hook = guarded(bench, onError="allow")
    assert (await bench.ask(hook, path="a", price=value)).blocked
