"""``if``: decided before anything starts (protocol.md#planning, issue 13.4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.workshop import Workshop

TRUE = "tool_input.path == 'a.txt'"
FALSE = "tool_input.path == 'other'"
MISSING = "tool_input.nothing == 'x'"


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def marks(name: str, **more: Any) -> dict[str, Any]:
    """A hook that leaves a file behind."""
    command = f"cat >/dev/null; echo $HOOKLINE_RECHECK >> {name}"
    return {"type": "command", "command": command, "name": name, **more}


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize("condition", [FALSE, MISSING, "prompt == 'x'"])
async def test_a_false_condition_starts_nothing(
    workshop: Workshop, condition: str, sequential: bool
) -> None:
    hooks = (marks("ran", **{"if": condition}), marks("other"))
    result = await workshop.fire("BeforeTool", *hooks, sequential=sequential)
    assert not (workshop.folder / "ran").exists()
    assert [hook.hook_name for hook in result.aggregated.hook_results] == ["other"]


async def test_no_hook_left_is_a_plain_success(workshop: Workshop) -> None:
    """As if none had matched (protocol.md#results)."""
    result = await workshop.fire("BeforeTool", marks("ran", **{"if": FALSE}))
    assert result.aggregated.hook_results == []
    assert result.aggregated.total_duration == 0
    assert result.aggregated.success
    assert result.final_output is None


@pytest.mark.parametrize(
    "condition", [TRUE, "tool_name > 3", "tool_name", "no such thing ==", "1 / 0 == 1"]
)
async def test_a_condition_that_is_true_or_broken_lets_the_hook_run(
    workshop: Workshop, condition: str
) -> None:
    """Any other failure counts as true: nobody turns a guard off by a mistake."""
    await workshop.fire("BeforeTool", marks("ran", **{"if": condition}))
    assert (workshop.folder / "ran").exists()


@pytest.mark.parametrize(
    "hook",
    [
        {"type": "command", "command": "exit 2"},
        {"type": "worker", "command": "exit 2"},
        {"type": "python", "function": "tests.executors.functions:guard"},
        {"type": "rule", "when": "true"},
    ],
)
async def test_every_type_obeys_it(workshop: Workshop, hook: dict[str, Any]) -> None:
    result = await workshop.fire("BeforeTool", {**hook, "if": FALSE})
    assert not result.blocked
    assert result.aggregated.hook_results == []


async def test_it_is_decided_anew_on_the_final_input(workshop: Workshop) -> None:
    """protocol.md#several-hooks: a hook whose condition is true only now is asked."""
    change = {"hookSpecificOutput": {"tool_input": {"path": "other"}}}
    hooks = (
        workshop.says(change, "changes"),
        marks("only-now", **{"if": FALSE}),
        marks("no-more", **{"if": TRUE}),
        marks("not-asked", **{"if": FALSE, "recheck": False}),
    )
    result = await workshop.fire("BeforeTool", *hooks)
    assert (workshop.folder / "only-now").read_text() == "1\n"
    assert (workshop.folder / "no-more").read_text() == "\n"
    assert not (workshop.folder / "not-asked").exists()
    found = [(h.hook_name, h.recheck) for h in result.aggregated.hook_results]
    assert found == [("changes", False), ("no-more", False), ("only-now", True)]


async def test_a_guard_that_only_applies_to_the_final_input_blocks(
    workshop: Workshop,
) -> None:
    change = {"hookSpecificOutput": {"tool_input": {"path": "other"}}}
    guard = {"type": "rule", "when": "true", "name": "guard", "if": FALSE}
    result = await workshop.fire("BeforeTool", workshop.says(change), guard)
    assert (result.blocked, result.reason) == (True, "guard")


async def test_in_a_chain_it_sees_the_input_so_far(workshop: Workshop) -> None:
    change = {"hookSpecificOutput": {"tool_input": {"path": "other"}}}
    later = workshop.says({"systemMessage": "later"}, "later") | {"if": FALSE}
    hooks = (workshop.says(change, "first"), later)
    result = await workshop.fire("BeforeTool", *hooks, sequential=True)
    assert result.system_message == "later"


async def test_hooks_that_differ_in_their_condition_both_run(
    workshop: Workshop,
) -> None:
    """protocol.md#planning: nobody weakens a guard by repeating it."""
    block = {"type": "command", "command": "exit 2", "name": "guard"}
    result = await workshop.fire("BeforeTool", {**block, "if": FALSE}, block)
    assert result.blocked
