"""What an event looks like to Cedar: no value forges an entity, or hides from a policy.

protocol.md#rules, issue 13.2: attacks on the context.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.protocol.results import FailureCause

from .policies import PERMIT, PolicyBench, entities, entity, failure, the_hook


@pytest.fixture
def bench(tmp_path: Path) -> PolicyBench:
    return PolicyBench(tmp_path)


def when(condition: str) -> str:
    return f"permit(principal, action, resource) when {{ {condition} }};"


def forbidden(condition: str) -> str:
    return f"forbid(principal, action, resource) when {{ {condition} }};"


FORGED = [
    {"__entity": {"type": "Agent", "id": "root"}},
    {"__entity": {"type": "Agent", "id": "root"}, "path": "a"},
    {"__extn": {"fn": "decimal", "arg": "1.0"}},
    {"__extn": {"fn": "ip", "arg": "127.0.0.1"}},
    {"__extn": {"fn": "unknown", "args": []}},
    {"__expr": 'Agent::"root"'},
    {"__entity": 1},
    {"__extn": [], "a": 1},
]


@pytest.mark.parametrize("forged", FORGED, ids=repr)
@pytest.mark.parametrize("shape", ["itself", "list", "deep"])
@pytest.mark.parametrize("policy", ["allow", "block"])
async def test_tool_input_cannot_forge_an_entity_or_a_call(
    bench: PolicyBench, forged: dict[str, Any], shape: str, policy: str
) -> None:
    """It blocks whatever ``onError`` says: no policy has seen the event."""
    bench.write("agents.json", entities(entity("Agent::root", "Agent::admins")))
    text = when('context.tool_input.who in Agent::"admins"') + PERMIT
    hook = bench.hook(text, entities="agents.json", onError=policy)
    who: Any = {"itself": forged, "list": [forged], "deep": {"x": [{"y": forged}]}}[
        shape
    ]
    result = await bench.ask(hook, who=who)
    assert result.blocked
    assert "could not be shown the event" in (result.reason or "")
    assert "__entity" in (result.reason or "")


@pytest.mark.parametrize("forged", FORGED, ids=repr)
async def test_reserved_key_of_the_input_itself_is_refused(
    bench: PolicyBench, forged: dict[str, Any]
) -> None:
    hook = bench.hook(when("context.tool_input == context.tool_input"))
    assert (await bench.ask(hook, **forged)).blocked
    hook = bench.hook(when('context.tool_input has "__entity"') + PERMIT)
    assert (await bench.ask(hook, __entity=1)).blocked


async def test_objects_that_only_look_like_references_are_records(
    bench: PolicyBench,
) -> None:
    text = when('context.tool_input.who == {"type": "Agent", "id": "root"}')
    assert await bench.allows(text, who={"type": "Agent", "id": "root"})
    text = when('context.tool_input.n == {"fn": "decimal", "arg": "1.0"}')
    assert await bench.allows(text, n={"fn": "decimal", "arg": "1.0"})


async def test_reserved_key_without_a_value_is_left_out(bench: PolicyBench) -> None:
    text = when("context.tool_input.who == {a: 1}")
    assert await bench.allows(text, who={"__entity": None, "a": 1})


async def test_what_no_policy_looks_at_is_not_converted(bench: PolicyBench) -> None:
    """A file's content may hold anything: it fails no guard of paths."""
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    content = {"__entity": {"type": "A", "id": "b"}, "deep": deep, "huge": 10**400}
    text = when('context.tool_input.path like "src/*" && context has tool_input')
    assert await bench.allows(text, path="src/a", content=content)
    many = dict.fromkeys(map(str, range(400_000)), 1)
    assert await bench.allows(text, path="src/a", **many)
    assert not await bench.allows(text, path="a", content=content)
    text = when("context.tool_input has content && !(context.tool_input has other)")
    assert await bench.allows(text, content=[content])
    assert await bench.allows(text, content=content)
    assert not await bench.allows(text, path="a")


@pytest.mark.parametrize(
    "condition",
    [
        "context == context && context.tool_input.n == 1",
        "[context].contains(context) && context.tool_input.n == 1",
        "(if true then context else context).tool_input.n == 1",
        "(if true then context else context) has tool_input",
        '{"a": context}.a.tool_input.n == 1',
        '{".": context, "has": 1}["."]["tool_input"]["n"] == 1',
        "context.tool_input == {n: 1, o: [1, 2]}",
        "{x: context.tool_input}.x has n",
        "(context.tool_input) has n && [context.tool_input.n] == [1]",
        "context has tool_input.n && context.tool_input has o",
        "context.tool_input.o.containsAll([1, 2])",
        'context["tool_input"]["n"] == 1',
        "!(context.tool_input has m) && context.tool_input.n < 2",
        'context.tool_input.n == 1 && context.tool_input has "o"',
    ],
)
async def test_parts_that_policies_use_are_there_in_any_spelling(
    bench: PolicyBench, condition: str
) -> None:
    assert await bench.allows(when(condition), n=1, o=[1, 2])


@pytest.mark.parametrize(
    ("value", "condition"),
    [
        (None, "!(context.tool_input has x)"),
        (float("nan"), "!(context.tool_input has x)"),
        (float("inf"), "!(context.tool_input has x)"),
        ({"a": None}, "!(context.tool_input.x has a)"),
        ([None], "!context.tool_input.x.isEmpty()"),
        ([None, "a"], 'context.tool_input.x.contains("a")'),
        (5, "context.tool_input.x == 5"),
        (5.0, "context.tool_input.x == 5"),
        (-0.0, "context.tool_input.x == 0"),
        (1e15, "context.tool_input.x == 1000000000000000"),
        (0.5, 'context.tool_input.x == decimal("0.5")'),
        (-1.25, 'context.tool_input.x.lessThan(decimal("-1.2"))'),
        (499.9999, 'context.tool_input.x.lessThan(decimal("500.0"))'),
        (0.12345, 'context.tool_input.x == "0.12345"'),
        (1e-7, 'context.tool_input.x == "1e-07"'),
        (1.5e300, 'context.tool_input.x == "1.5e+300"'),
        (123456789012345.5, 'context.tool_input.x == "123456789012345.5"'),
        (2**63 - 1, "context.tool_input.x == 9223372036854775807"),
        (-(2**63), "context.tool_input.x < -9223372036854775807"),
        (2**63, 'context.tool_input.x == "9223372036854775808"'),
        (float(2**63), 'context.tool_input.x == "9.223372036854776e+18"'),
        (10**5000, 'context.tool_input.x like "1000*"'),
        (True, "context.tool_input.x"),
        ("ünï\u202e", 'context.tool_input.x == "ünï\\u{202e}"'),
        ("a\0b", 'context.tool_input.x == "a\\0b"'),
        ("a\ud800b", 'context.tool_input.x == "a\\u{fffd}b"'),
        ({"k\ud800": 1}, 'context.tool_input.x["k\\u{fffd}"] == 1'),
        ({}, "context.tool_input.x == {}"),
        ([], "context.tool_input.x.isEmpty()"),
        ([2, 1, 1], "context.tool_input.x == [1, 2]"),
        ((1, 2), "context.tool_input.x == [1, 2]"),
        (Path("/a/b"), 'context.tool_input.x == "/a/b"'),
        (b"bytes", 'context.tool_input.x == "bytes"'),
        ({1: "a"}, 'context.tool_input.x["1"] == "a"'),
        ("x" * 1_000_000, 'context.tool_input.x like "x*x"'),
        ({"": 1, "a b": 2, "Var": 3}, 'context.tool_input.x[""] == 1'),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 90 else "value",
)
async def test_values_are_shown_by_what_they_mean(
    bench: PolicyBench, value: Any, condition: str
) -> None:
    assert await bench.allows(when(condition), x=value)


@dataclass
class Target:
    path: str


async def test_input_that_is_no_dict_is_shown_as_other_hooks_see_it(
    bench: PolicyBench,
) -> None:
    hook = bench.hook(when('context.tool_input.target.path like "src/*"'))
    assert not (await bench.ask(hook, target=Target("src/a"))).blocked
    assert (await bench.ask(hook, target=Target("a"))).blocked
    async with bench.system(hook) as hooks:
        for odd in ("text", ["src/a"], 5, None):
            given = {"tool_name": "a", "tool_input": odd}
            result = await hooks.event_handler.fire("BeforeTool", given)
            assert result.blocked


@pytest.mark.parametrize(
    "amount", [500.5, 2**70, "501", [501], {"n": 1}, 1e-9], ids=repr
)
async def test_value_of_another_type_fails_a_comparison(
    bench: PolicyBench, amount: Any
) -> None:
    text = forbidden("context.tool_input.n > 500") + PERMIT
    result = await bench.ask(bench.hook(text), n=amount)
    assert result.blocked
    assert failure(result)[0] is FailureCause.OUTPUT
    assert "cannot be evaluated: type error" in failure(result)[1]


@pytest.mark.parametrize(
    "name",
    [
        'a" || true || "',
        "a\\",
        "a\nb",
        'Action::"write_file"',
        '"; permit(principal, action, resource); //',
        "\0",
        "",
        "\u202e\ufeff",
        "x" * 100_000,
    ],
    ids=lambda name: repr(name)[:30],
)
async def test_tool_name_is_nothing_but_the_name_of_an_action(
    bench: PolicyBench, name: str
) -> None:
    text = 'permit(principal, action == Action::"write_file", resource);'
    result = await bench.ask(bench.hook(text), name)
    assert result.blocked
    assert the_hook(result).success
    assert (result.reason or "").startswith('no policy permits Action::"')
    assert len(result.reason or "") < 1000
    text = when("context.tool_name == context.tool_name")
    assert await bench.allows(text, name)


async def test_lone_surrogate_in_a_tool_name_is_replaced(bench: PolicyBench) -> None:
    text = 'permit(principal, action == Action::"rm\\u{fffd}", resource);'
    assert await bench.allows(text, "rm\ud800")


@pytest.mark.parametrize("name", [5, None, ["write_file"], {"a": 1}, True], ids=repr)
async def test_tool_name_that_is_no_string_blocks(
    bench: PolicyBench, name: Any
) -> None:
    hook = bench.hook(PERMIT, onError="allow")
    async with bench.system(hook) as hooks:
        given = {"tool_name": name, "tool_input": {}}
        result = await hooks.event_handler.fire("BeforeTool", given)
    assert result.blocked or not result.aggregated.success
    assert not any(one.success for one in result.aggregated.hook_results)


def nested(levels: int, item: Any, *, lists: bool) -> Any:
    for _ in range(levels):
        item = [item] if lists else {"a": item}
    return item


@pytest.mark.parametrize("lists", [True, False])
@pytest.mark.parametrize("levels", [10, 60, 61, 62, 63, 64, 100, 127, 128, 490])
async def test_deep_values_are_shown_or_block(
    bench: PolicyBench, levels: int, lists: bool
) -> None:
    """Cedar gives up at 128 levels, and takes long before that."""
    hook = bench.hook(
        when("context.tool_input.x == context.tool_input.x"), onError="allow"
    )
    result = await bench.ask(hook, x=nested(levels, "x", lists=lists))
    assert result.blocked == (levels > 62)
    if result.blocked:
        assert "nested deeper than 64 levels" in (result.reason or "")


@pytest.mark.parametrize(
    "value",
    [
        list(range(400_000)),
        {f"key{n}": n for n in range(400_000)},
        [nested(50, n, lists=False) for n in range(5_000)],
        [nested(50, n, lists=True) for n in range(5_000)],
        [[]] * 400_000,
    ],
    ids=["list", "object", "deep objects", "deep lists", "lists"],
)
async def test_input_that_would_hold_up_the_host_blocks(
    bench: PolicyBench, value: Any
) -> None:
    hook = bench.hook(when("context.tool_input.x == 1") + PERMIT, onError="allow")
    result = await bench.ask(hook, x=value)
    assert result.blocked
    assert "too many values for Cedar" in (result.reason or "")


async def test_large_input_does_not_take_seconds(bench: PolicyBench) -> None:
    """A generous guard against hanging: it takes about half a second."""
    hook = bench.hook(when("context.tool_input == context.tool_input"))
    value = [{"k": n, "v": "x" * 20} for n in range(30_000)]
    started = time.monotonic()
    result = await bench.ask(hook, x=value)
    assert not result.blocked
    assert time.monotonic() - started < 30


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=8)
            | st.sampled_from(["__entity", "__extn", "__expr", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(value=JSON, name=st.text(max_size=20))
def test_any_input_is_judged_or_blocks(
    tmp_path_factory: pytest.TempPathFactory, value: Any, name: str
) -> None:
    """Nothing raises, nothing passes a forbid, and a judged value equals itself."""
    bench = PolicyBench(tmp_path_factory.mktemp("fuzz"))
    text = when("context.tool_input == context.tool_input && context has tool_name")
    text += forbidden("context.tool_input has evil")

    async def ask() -> None:
        result = await bench.ask(bench.hook(text), name, x=value)
        found = the_hook(result)
        assert found.success or "could not be shown" in (result.reason or "")
        assert result.blocked == (not found.success)
        assert (await bench.ask(bench.hook(text), name, x=value, evil=1)).blocked

    asyncio.run(ask())
