"""Policies and ``explain`` know tools and fields by the names of the coding agent.

Matchers and rules are rows of ``agent_names.json`` and ``cases.json`` in
``tests/pins/hosts``.
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
