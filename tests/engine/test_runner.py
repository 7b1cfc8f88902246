"""protocol.md#several-hooks: running several hooks."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.workshop import Workshop

MEET = (
    "touch here-{me}; for i in $(seq 600); do "
    "[ -e here-{other} ] && exit 0; sleep 0.05; done; exit 1"
)


async def test_parallel_hooks_start_together(workshop: Workshop) -> None:
    """HOOK-165: each waits for the other, so one after the other would fail."""
    result = await workshop.fire(
        "BeforeTool",
        workshop.runs(MEET.format(me="a", other="b")),
        workshop.runs(MEET.format(me="b", other="a")),
    )
    assert result.aggregated.success


async def test_parallel_results_come_back_in_plan_order(workshop: Workshop) -> None:
    result = await workshop.fire(
        "AfterTool",
        workshop.runs("sleep 0.3; echo slow", "slow"),
        workshop.runs("echo quick", "quick"),
    )
    assert [r.hook_name for r in result.aggregated.hook_results] == ["slow", "quick"]
    assert result.system_message == "slow\nquick"


async def test_parallel_hooks_get_the_same_input(workshop: Workshop) -> None:
    change = {"hookSpecificOutput": {"tool_input": {"content": "changed"}}}
    await workshop.fire(
        "BeforeTool",
        workshop.says(change),
        workshop.runs("sleep 0.2; cat > seen.json", recheck=False),
    )
    assert workshop.seen()["tool_input"]["content"] == "hello"


async def test_max_processes_lets_the_rest_wait_in_order(workshop: Workshop) -> None:
    """Waiting does not eat a hook's timeout."""
    hooks = [
        workshop.runs(f"echo {n} >> order; sleep 0.4", f"h{n}", timeout=3000)
        for n in range(10)
    ]
    result = await workshop.fire("BeforeTool", *hooks, config={"maxProcesses": 1})
    assert result.aggregated.success
    order = (workshop.folder / "order").read_text().split()
    assert order == [str(n) for n in range(10)]


CHAINS: list[tuple[str, dict[str, Any], str, Any]] = [
    (
        "BeforeTool",
        {"tool_input": {"content": "new", "more": 1}},
        "tool_input",
        {"path": "a.txt", "content": "new", "more": 1},
    ),
    ("BeforeAgent", {"additionalContext": "<c>"}, "prompt", "do it\n\n&lt;c&gt;"),
    (
        "BeforeModel",
        {"llm_request": {"model": "m-2", "config": {"topP": 1}}},
        "llm_request",
        {
            "model": "m-2",
            "messages": [{"role": "user", "content": "hi"}],
            "config": {"temperature": 0.5, "topP": 1},
        },
    ),
    ("AfterTool", {"tool_input": {"content": "new"}}, "tool_input", None),
    ("AfterAgent", {"additionalContext": "c"}, "prompt", None),
    ("BeforeToolSelection", {"llm_request": {"model": "x"}}, "llm_request", None),
]


@pytest.mark.parametrize(("event", "said", "field", "wanted"), CHAINS)
async def test_a_chain_changes_the_next_hooks_input(
    workshop: Workshop, event: str, said: dict[str, Any], field: str, wanted: Any
) -> None:
    before = workshop.runs("cat > before.json", "before")
    change = workshop.says({"hookSpecificOutput": said})
    after = workshop.runs("cat > after.json", "after")
    await workshop.fire(event, before, change, after, sequential=True)
    shown = workshop.seen("after.json")[field]
    assert shown == (workshop.seen("before.json")[field] if wanted is None else wanted)


async def test_a_chain_changes_the_response_by_its_keys(workshop: Workshop) -> None:
    """Text and candidates are one answer: the next hook sees no replaced text."""
    change = {"hookSpecificOutput": {"llm_response": {"text": "redacted"}}}
    await workshop.fire(
        "AfterModel",
        workshop.says(change),
        workshop.runs("cat > seen.json"),
        sequential=True,
    )
    response = workshop.seen()["llm_response"]
    assert response["text"] == "redacted"
    assert response["candidates"][0]["content"]["parts"] == ["redacted"]


async def test_a_failed_hook_changes_nothing_in_the_chain(workshop: Workshop) -> None:
    """Its warning is not chained."""
    await workshop.fire(
        "BeforeAgent",
        workshop.runs("echo boom >&2; exit 1"),
        workshop.runs("cat > seen.json"),
        sequential=True,
    )
    assert workshop.seen()["prompt"] == "do it"


@pytest.mark.parametrize(
    "ending", ["exit 2", """echo '{"continue": false}'"""], ids=["block", "stop"]
)
async def test_a_block_or_a_stop_ends_the_chain(
    workshop: Workshop, ending: str
) -> None:
    result = await workshop.fire(
        "BeforeTool",
        workshop.runs(ending),
        workshop.runs("touch ran"),
        sequential=True,
    )
    assert not workshop.ran("ran")
    assert len(result.aggregated.hook_results) == 1


@pytest.mark.parametrize("event", ["AfterTool", "SessionStart", "BeforeToolSelection"])
async def test_a_block_that_does_not_count_does_not_end_the_chain(
    workshop: Workshop, event: str
) -> None:
    first, second = workshop.runs("exit 2"), workshop.runs("touch ran")
    await workshop.fire(event, first, second, sequential=True)
    assert workshop.ran("ran")


async def test_one_hooks_failure_keeps_the_others_outputs(workshop: Workshop) -> None:
    """Domain model 5.2."""
    result = await workshop.fire(
        "BeforeTool",
        workshop.runs("exit 7", "bad"),
        workshop.says({"systemMessage": "still here"}, "good"),
        workshop.runs("sleep 60", "slow", timeout=100),
    )
    assert result.system_message == "still here"
    assert result.aggregated.success is False
    assert [e.hook_name for e in result.aggregated.errors] == ["bad", "slow"]


async def test_total_duration_is_the_wall_time_of_the_batch(
    workshop: Workshop,
) -> None:
    """protocol.md#results: not the sum of the hooks' own."""
    hooks = [workshop.runs(f"sleep 0.{n}", f"h{n}") for n in (3, 4)]
    result = await workshop.fire("BeforeTool", *hooks)
    own = [r.duration for r in result.aggregated.hook_results]
    assert max(own) <= result.aggregated.total_duration < sum(own)
