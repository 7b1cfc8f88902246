"""Matchers and rules in the words of the coding agent (issue 26, item 13).

Which of them hold is in ``tests/pins/hosts/agent_names.json``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.bridged import BridgedProject, tool_call
from tests.support.commandline import run_command


def write_call(path: str) -> dict[str, Any]:
    return tool_call("claude", "Write", {"file_path": path, "content": "b"})


def test_agents_spelling_gives_the_value_that_another_hook_has_set(
    bridged: BridgedProject,
) -> None:
    """Also in ``then`` and ``if``: the tool runs with that value."""
    change = {"hookSpecificOutput": {"tool_input": {"path": "/y/.env"}}}
    first = {"type": "rule", "name": "first", "when": "true", "then": change}
    deny = {"decision": "deny", "reason": "not ${tool_input.file_path}"}
    guard = {"type": "rule", "name": "guard", "when": "true", "then": deny}
    guard["if"] = "tool_input.file_path == '/y/.env'"
    group = {"hooks": [first, guard], "sequential": True}
    bridged.settings({"hooks": {"BeforeTool": [group]}})
    assert "not /y/.env" in bridged.ask("claude", write_call("a")).stdout


def test_policies_read_the_agents_own_spelling(
    bridged: BridgedProject, tmp_path: Path
) -> None:
    pytest.importorskip("cedarpy")
    (tmp_path / "p.cedar").write_text(
        "permit(principal, action, resource) unless { context.tool_input has file_path"
        ' && context.tool_input.file_path == "a" };'
    )
    hook = {"type": "cedar", "name": "guard", "policies": [str(tmp_path / "p.cedar")]}
    bridged.hook("BeforeTool", hook)
    assert '"deny"' in bridged.ask("claude", write_call("a")).stdout
    assert bridged.ask("claude", write_call("b")).stdout == "{}\n"


def test_explain_matches_the_agents_name_of_a_recorded_event(
    bridged: BridgedProject, tmp_path: Path
) -> None:
    rule = {"type": "rule", "name": "guard", "when": "tool_input.file_path == 'a'"}
    group = {"matcher": "^Write$", "hooks": [rule]}
    bridged.settings({"hooks": {"BeforeTool": [group]}})
    host = {"name": "claude", "tool_name": "Write", "tool_input": {"file_path": "a"}}
    sent = {"tool_name": "write_file", "tool_input": {"path": "a"}, "host": host}
    (tmp_path / "event.json").write_text(json.dumps(sent))
    words = ("explain", "BeforeTool", "--input", tmp_path / "event.json", "--json")
    [hook] = run_command(*words).json()["hooks"]
    assert hook["runs"]
    assert "'write_file' or 'Write'" in hook["why"]
    assert hook["rule"]["outcome"] == "true"
    assert hook["rule"]["values"] == {"tool_input.file_path": "a"}
