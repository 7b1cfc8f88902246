"""Several hooks of one event: run together and asked again.

protocol.md#several-hooks; the rules by example are in ``tests/pins/engine``: merge.json
and recheck.json.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from hookline import Config, HookSystem, Settings
from hookline.journal.query import read_journal
from hookline.settings.model import HookSource
from tests.support.workspace import Workspace

Wire = dict[str, Any]

LIST = {"tool_name": "bash", "tool_input": {"command": "ls", "cwd": "/"}}
NO_RM = "grep -q 'rm -rf' && { echo 'not that' >&2; exit 2; }; exit 0"
REMOVES: Wire = {"hookSpecificOutput": {"tool_input": {"command": "rm -rf /"}}}
MEET = (
    "touch here-{me}; for i in $(seq 600); do "
    "[ -e here-{other} ] && exit 0; sleep 0.05; done; exit 1"
)


async def test_parallel_hooks_start_together(workspace: Workspace) -> None:
    """HOOK-165: each waits for the other, so one after the other would fail."""
    result = await workspace.fire(
        "BeforeTool",
        workspace.runs(MEET.format(me="a", other="b")),
        workspace.runs(MEET.format(me="b", other="a")),
    )
    assert result.aggregated.success


async def test_parallel_results_come_in_plan_order_with_the_wall_time_of_all(
    workspace: Workspace,
) -> None:
    """protocol.md#results: not the sum of the hooks' own."""
    result = await workspace.fire(
        "AfterTool",
        workspace.runs("sleep 0.4; echo slow", "slow"),
        workspace.runs("sleep 0.3; echo quick", "quick"),
    )
    hooks = result.aggregated.hook_results
    assert [hook.hook_name for hook in hooks] == ["slow", "quick"]
    assert result.system_message == "slow\nquick"
    durations = [hook.duration for hook in hooks]
    assert max(durations) <= result.aggregated.total_duration < sum(durations)


@pytest.mark.parametrize("expression", ["true", "tool_name + 1 == 2"])
async def test_duration_of_a_rule_is_part_of_that_of_its_event(
    workspace: Workspace, expression: str
) -> None:
    """In milliseconds, also of one that fails; no process is there to measure it by."""
    rule = {"type": "rule", "name": "rule", "when": expression}
    result = await workspace.fire("BeforeTool", rule)
    (hook,) = result.aggregated.hook_results
    assert result.blocked
    assert 0.001 < hook.duration <= result.aggregated.total_duration


@pytest.mark.parametrize("source", [HookSource.EXTENSIONS, HookSource.SYSTEM])
async def test_rewriter_of_another_source_does_not_get_past_a_guard(
    workspace: Workspace, source: HookSource
) -> None:
    """Not one that comes after a chain, nor one that is managed."""
    guard = workspace.settings("BeforeTool", workspace.runs(NO_RM), sequential=True)
    managed = {"managed": source is HookSource.SYSTEM}
    rewriter = workspace.settings("BeforeTool", workspace.says(REMOVES) | managed)
    layers = (
        *Settings.from_mapping(guard, HookSource.USER).layers,
        *Settings.from_mapping(rewriter, source).layers,
    )
    config = Config("s", workspace.folder, Settings(layers=layers))
    async with HookSystem(config) as hooks:
        assert (await hooks.event_handler.fire("BeforeTool", LIST)).blocked


ASKED = """
import os
from hookline import script
def judge(event):
    with open("asked.txt", "a") as file:
        file.write(os.environ.get("HOOKLINE_RECHECK", "-") + "\\n")
script.run(judge)
"""


async def test_commands_functions_and_workers_are_asked_again(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that a re-checked hook starts has hooks of its own: nothing is inherited.

    The objects of the caller are not changed.
    """
    monkeypatch.setenv("HOOKLINE_RECHECK", "1")
    seen: list[Any] = []

    def guard(event: Wire) -> Wire | None:
        seen.append(event["tool_input"]["command"])
        return {"decision": "deny"} if "rm" in seen[-1] else None

    (workspace.folder / "worker.py").write_text(ASKED)
    hooks = [
        workspace.says(REMOVES),
        {"type": "worker", "command": '"$HOOKLINE_PYTHON" worker.py', "name": "warm"},
        workspace.runs('echo "${HOOKLINE_RECHECK-unset}" >> ran.txt', "inherits"),
        workspace.runs(
            'echo "${HOOKLINE_RECHECK-unset}" >> ran.txt', envPolicy="clean"
        ),
    ]
    removal = {**LIST, "tool_input": {"command": "rm -rf /", "cwd": "/"}}
    before = json.dumps(LIST)
    config = workspace.config(workspace.settings("BeforeTool", *hooks))
    async with HookSystem(config) as system:
        system.on("BeforeTool")(guard)
        assert (await system.event_handler.fire("BeforeTool", LIST)).blocked
        assert (await system.event_handler.fire("BeforeTool", removal)).blocked
    assert json.dumps(LIST) == before
    assert seen == ["ls", "rm -rf /", "rm -rf /"]
    # Of the second event the function alone says no: nothing is asked again.
    asked = (workspace.folder / "asked.txt").read_text().split()
    assert asked == ["-", "1", "-"]
    ran = (workspace.folder / "ran.txt").read_text().split()
    assert ran == ["unset"] * 2 + ["1"] * 2 + ["unset"] * 2


async def test_replaced_input_is_whole_in_the_journal(workspace: Workspace) -> None:
    """protocol.md#results."""
    journal = str(workspace.folder / "journal.sqlite")
    system = HookSystem(workspace.config({}))
    system.record_to(journal)
    whole = {"tool_input": {"command": "ls"}, "replacesToolInput": True}
    more = {"tool_input": {"cwd": "/"}}
    async with system:
        for specific in (whole, more):
            answer = {"hookSpecificOutput": specific}
            system.on("BeforeTool", sequential=True)(lambda _, output=answer: output)
        tool_input = {"command": "rm -rf /", "force": True}
        await system.event_handler.fire_before_tool_event("run", tool_input)
    with read_journal(journal) as reader:
        recorded = reader.find(1)
    assert recorded is not None
    assert recorded.decided.tool_input is not None
    assert json.loads(recorded.decided.tool_input) == {"command": "ls", "cwd": "/"}
