"""Hooks written for Claude Code, and inputs that they cannot judge (issue 12.6)."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from hookline import Config, Settings
from hookline.agent import Confirmation, execute_tool_with_hooks
from tests.support.workshop import Workshop

AMBIGUOUS = {
    "tool_name": "write_file",
    "tool_input": {"path": ".env", "file_path": "ok.txt"},
}
ALLOWS = json.dumps({"hookSpecificOutput": {"permissionDecision": "allow"}})
ANSWERS = {
    "nothing": "true",
    "an allow": 'echo \'{"decision": "approve"}\'',
    "a permission": f"echo '{ALLOWS}'",
    "a crash": "exit 1",
    "text": "echo fine",
}


def claude(command: str, **more: Any) -> dict[str, Any]:
    hook = {"type": "command", "name": "theirs", "command": command}
    return {**hook, "dialect": "claude", **more}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_an_ambiguous_input_asks_whatever_the_hook_says(
    workshop: Workshop, answer: str
) -> None:
    hook = claude(f"cat > seen.json; {answer}")
    result = await workshop.fire("BeforeTool", hook, given=AMBIGUOUS)
    assert (result.ask, result.blocked) == (True, False)
    assert result.final_output is not None
    assert "'theirs' cannot judge this call" in (result.final_output.reason or "")
    assert workshop.seen()["tool_input"] == AMBIGUOUS["tool_input"]


async def test_a_block_or_a_policy_counts_more_than_the_question(
    workshop: Workshop,
) -> None:
    denied = await workshop.fire(
        "BeforeTool", claude("echo no >&2; exit 2"), given=AMBIGUOUS
    )
    failed = await workshop.fire(
        "BeforeTool", claude("exit 1", onError="block"), given=AMBIGUOUS
    )
    assert (denied.blocked, denied.reason) == (True, "no")
    assert failed.blocked


async def test_a_hook_of_our_own_is_not_asked_about(workshop: Workshop) -> None:
    result = await workshop.fire("BeforeTool", workshop.runs("true"), given=AMBIGUOUS)
    assert result.ask is False


async def test_any_mapping_has_their_keys(workshop: Workshop) -> None:
    given = {
        "tool_name": "write_file",
        "tool_input": MappingProxyType({"path": Path(".env")}),
    }
    await workshop.fire("BeforeTool", claude("cat > seen.json"), given=given)
    assert workshop.seen()["tool_input"] == {"file_path": ".env"}


@pytest.mark.parametrize("agrees", [True, False, None])
async def test_a_person_decides_and_nobody_means_no(
    tmp_path: Path, agrees: bool | None
) -> None:
    settings = {"hooks": {"BeforeTool": [{"hooks": [claude("true")]}]}}
    config = Config("s-1", tmp_path, Settings.from_mapping(settings))
    questions: list[Confirmation] = []

    def confirm(question: Confirmation) -> bool:
        questions.append(question)
        return agrees is True

    async with config:
        result = await execute_tool_with_hooks(
            config,
            "write_file",
            {"path": ".env", "file_path": "ok.txt"},
            json.dumps,
            confirm=None if agrees is None else confirm,
        )
    assert (result.error is None) is (agrees is True)
    assert len(questions) == (agrees is not None)
