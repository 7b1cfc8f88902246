"""A hook that prints the input of a tool again has changed nothing.

What the journal records of other verdicts is in ``tests/pins/hosts/recorded.json``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.bridged import EVENT_ARGUMENTS, BridgedProject, tool_call

REVERSED = """
import json, sys
event = json.load(sys.stdin)
def reverse(value):
    if isinstance(value, dict):
        return {key: reverse(item) for key, item in reversed(value.items())}
    if isinstance(value, list):
        return [reverse(item) for item in value]
    return value
said = {"hookSpecificOutput": {"tool_input": reverse(event["tool_input"])}}
text = json.dumps(said, indent=3, ensure_ascii=True).replace('"b": 1', '"b": 1.0')
print(text.replace('"y": 2.0', '"y": 2e0'))
"""
LS = {"command": "ls", "options": {"b": 1, "a": [True, {"y": 2.0, "x": None}]}}
TOOLS = {
    "claude": "Bash",
    "codex": "Bash",
    "cursor": "Shell",
    "droid": "Execute",
    "gemini": "run_shell_command",
    "llxprt": "run_shell_command",
    "qwen": "run_shell_command",
    "copilot": "bash",
    "opencode": "bash",
    "vscode": "run_in_terminal",
    "goose": "developer__shell",
    "kiro": "execute_bash",
    "cline": "run_commands",
    "windsurf": "run_command",
}


def ask(bridged: BridgedProject, host: str) -> str:
    """The host's answer to a call of its shell; the exit status comes first."""
    tool_input = {"command_line": "ls", "cwd": "/"} if host == "windsurf" else LS
    call = tool_call(host, TOOLS[host], tool_input)
    reply = bridged.ask(host, call, EVENT_ARGUMENTS.get(host))
    return f"{reply.returncode} {reply.stdout} {reply.stderr}"


def test_host_is_not_told_of_an_input_that_a_hook_repeats(
    bridged: BridgedProject, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """protocol.md#results: the order of keys and formatting decide nothing."""
    script = tmp_path / "reversed.py"
    script.write_text(REVERSED)
    silent_hook = {"type": "command", "command": "cat >/dev/null"}
    repeating_hook = {"type": "command", "command": f"{sys.executable} {script}"}
    for host in TOOLS:
        with subtests.test(host):
            bridged.forget()
            bridged.hook("BeforeTool", silent_hook, journal=True)
            silent = ask(bridged, host)
            bridged.hook("BeforeTool", repeating_hook, journal=True)
            assert ask(bridged, host) == silent
            assert [entry["verdict"] for entry in bridged.recorded()] == [
                "allowed",
                "allowed",
            ]
