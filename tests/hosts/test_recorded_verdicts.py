"""The journal records what a coding agent was told, with the hooks' words beside it."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.bridged import (
    EVENT_ARGUMENTS,
    VERDICTS,
    BridgedProject,
    payload,
    tool_call,
)
from tests.support.commandline import run_command

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
CHANGE = {"hookSpecificOutput": {"tool_input": {"command": "ls -l"}}}


def ask(bridged: BridgedProject, host: str, sent: Any = None) -> str:
    """The host's answer to a call of its shell; the exit status comes first."""
    given = {"command_line": "ls", "cwd": "/"} if host == "windsurf" else LS
    call = tool_call(host, TOOLS[host], given) if sent is None else sent
    reply = bridged.ask(host, call, None if sent else EVENT_ARGUMENTS.get(host))
    return f"{reply.returncode} {reply.stdout} {reply.stderr}"


def recorded() -> list[dict[str, Any]]:
    """The events of the journal, as ``hookline log --json`` prints them.

    Without those that only say what a host cannot express.
    """
    done = run_command("log", "--json", "--everywhere", "-n", "0")
    rows: list[dict[str, Any]] = done.json()
    return [row for row in rows if row["event"] != "Notification" or row["blocked"]]


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
            assert [row["verdict"] for row in recorded()] == ["allowed", "allowed"]


def assert_told(verdict: str, reason: str, output: object) -> None:
    """That the journal says so of every event, with the hooks' words beside it."""
    deadline = time.monotonic() + 60
    while not (rows := recorded()):  # a thread writes them
        assert time.monotonic() < deadline
    for row in rows:
        assert (row["verdict"], reason in (row["reason"] or "")) == (verdict, True)
    full = run_command("log", "--json", str(rows[-1]["id"])).json()
    assert full["verdict"] == verdict
    assert [hook["output"] for hook in full["hooks"]] == [output]


@pytest.mark.parametrize("host", ["qwen", "kiro", "goose", "windsurf"])
def test_call_that_a_host_cannot_change_is_recorded_as_blocked(
    host: str, bridged: BridgedProject
) -> None:
    """protocol.md#results."""
    bridged.rule("BeforeTool", CHANGE, journal=True)
    assert "updatedInput" in ask(bridged, "claude")
    assert recorded()[0]["verdict"] == "changed"
    bridged.forget()
    assert "only with another input" in ask(bridged, host)
    assert_told("blocked", "only with another input", CHANGE)


def test_change_that_one_event_of_cursor_cannot_express_is_recorded_as_blocked(
    bridged: BridgedProject,
) -> None:
    """protocol.md#results: its other event before a tool can."""
    bridged.rule("BeforeTool", CHANGE, journal=True)
    sent = payload("cursor/beforeShellExecution")
    assert "only with another input" in ask(bridged, "cursor", sent)
    assert_told("blocked", "only with another input", CHANGE)


def patch(files: int) -> dict[str, Any]:
    parts = (f"*** Add File: {number}.txt\n+x\n" for number in range(files))
    text = f"*** Begin Patch\n{''.join(parts)}*** End Patch\n"
    return tool_call("codex", "apply_patch", {"command": text})


@pytest.mark.parametrize(
    ("files", "then", "told"),
    [
        (1001, {"decision": "allow"}, "1001 files"),
        (
            2,
            {"hookSpecificOutput": {"tool_input": {"path": "b"}}},
            "cannot be put back",
        ),
    ],
)
def test_patch_that_is_not_allowed_as_hooks_said_is_recorded_as_blocked(
    bridged: BridgedProject, files: int, then: Any, told: str
) -> None:
    """protocol.md#results: the limit of files, and a change of one of them."""
    bridged.rule("BeforeTool", then, journal=True)
    assert told in ask(bridged, "codex", patch(files))
    assert_told("blocked", told, then)


def test_question_is_recorded_as_the_host_was_told(bridged: BridgedProject) -> None:
    """protocol.md#results: hooksConfig.onAsk decides where nobody can be asked."""
    for policy, verdict in (("block", "blocked"), ("allow", "allowed")):
        bridged.rule("BeforeTool", VERDICTS["ask"], journal=True, onAsk=policy)
        ask(bridged, "codex")
        assert recorded()[-1]["verdict"] == verdict
    ask(bridged, "claude")
    assert recorded()[-1]["verdict"] == "ask"


def test_answer_that_was_rejected_too_often_is_recorded_as_let_through(
    bridged: BridgedProject,
) -> None:
    """protocol.md#events: rejections are bounded."""
    bridged.rule("AfterAgent", VERDICTS["block"], journal=True)
    for number in range(9):
        sent = payload("claude/Stop-1") | {"stop_hook_active": number > 0}
        ask(bridged, "claude", sent)
    rows = recorded()
    assert [row["verdict"] for row in rows] == ["blocked"] * 8 + ["stopped"]
    assert "8 answers in a row were rejected" in rows[-1]["reason"]


@pytest.mark.parametrize(
    ("host", "sent", "event", "then", "verdict"),
    [
        ("codex", "codex/PreToolUse-1", "BeforeTool", "stop", "blocked"),
        ("claude", "claude/PreToolUse-1", "BeforeTool", "stop", "stopped"),
        ("cline", "cline/TaskComplete-1", "AfterAgent", "block", "allowed"),
    ],
    ids=["a stop is a denied call", "a stop is a stop", "a rejection not heard"],
)
def test_verdict_that_a_host_obeys_in_part_is_recorded_as_it_took_it(
    bridged: BridgedProject, host: str, sent: str, event: str, then: str, verdict: str
) -> None:
    """protocol.md#results."""
    bridged.rule(event, VERDICTS[then], journal=True)
    ask(bridged, host, payload(sent))
    [row] = recorded()
    assert row["verdict"] == verdict


@pytest.mark.parametrize("sent", [b"nonsense", b"[]", b'{"tool_name": 5}'])
def test_unreadable_event_that_is_blocked_is_recorded_as_blocked(
    sent: bytes, bridged: BridgedProject
) -> None:
    """protocol.md#results."""
    guard = {"type": "command", "command": "true", "onError": "block"}
    bridged.hook("BeforeTool", guard, journal=True)
    ask(bridged, "claude", sent)
    [row] = recorded()
    assert row["verdict"] == "blocked"
    assert "could not be read" in row["reason"]
