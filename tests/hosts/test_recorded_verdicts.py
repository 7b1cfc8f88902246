"""The journal records what a coding agent was told, with the hooks' words beside it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.commandline import hookline

from .captured import Desk, captured, changing, desk

__all__ = ["desk"]

LS = {"command": "ls", "options": {"b": 1, "a": [True, {"y": 2.0, "x": None}]}}
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


def command(line: str) -> dict[str, Any]:
    return {"type": "command", "command": line, "name": "guard"}


def named(name: str, **fields: Any) -> dict[str, Any]:
    return {"hook_event_name": name, "session_id": "s", "cwd": "/", **fields}


def cursor(name: str, **fields: Any) -> dict[str, Any]:
    base = {"conversation_id": "s", "cursor_version": "2", "workspace_roots": ["/"]}
    return {**base, "hook_event_name": name, **fields}


CLINE = captured("cline", "PreToolUse-1")
COPILOT = captured("copilot", "preToolUse-1")
OPENCODE = captured("opencode", "tool.execute.before-1")
CALLS: dict[str, dict[str, Any]] = {
    "claude": named("PreToolUse", tool_name="Bash", tool_input=LS),
    "gemini": named("BeforeTool", tool_name="run_shell_command", tool_input=LS),
    "llxprt": named("BeforeTool", tool_name="run_shell_command", tool_input=LS),
    "codex": named("PreToolUse", tool_name="Bash", tool_input=LS),
    "copilot": COPILOT,
    "qwen": named("PreToolUse", tool_name="run_shell_command", tool_input=LS),
    "opencode": OPENCODE,
    "cursor": cursor("preToolUse", tool_name="Shell", tool_input=LS),
    "vscode": {"hookEventName": "PreToolUse", "sessionId": "s", "cwd": "/"}
    | {"timestamp": "2026", "tool_name": "run_in_terminal", "tool_input": LS},
    "droid": named("PreToolUse", tool_name="Execute", tool_input=LS),
    "goose": {"event": "PreToolUse", "session_id": "s", "working_dir": "/"}
    | {"tool_name": "developer__shell", "tool_input": LS},
    "kiro": named("preToolUse", tool_name="execute_bash", tool_input=LS),
    "windsurf": {"agent_action_name": "pre_run_command", "trajectory_id": "s"}
    | {"tool_info": {"command_line": "ls", "cwd": "/"}},
    "cline": CLINE,
}
EVENT_ARGUMENTS = {"copilot": "preToolUse"}


def recorded() -> list[dict[str, Any]]:
    """The events of the journal, as ``hookline log --json`` prints them.

    Without those that only say what a host cannot express.
    """
    done = hookline("log", "--json", "--everywhere", "-n", "0")
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return [row for row in rows if row["event"] != "Notification" or row["blocked"]]


async def ask(desk: Desk, host: str, call: dict[str, Any]) -> str:
    """The host's answer; a host that reads an exit status gets that in front."""
    reply = await desk.ask(host, call, EVENT_ARGUMENTS.get(host))
    return f"{reply.status} {reply.stdout.decode()} {reply.stderr.decode()}"


@pytest.mark.parametrize("host", CALLS)
async def test_host_is_not_told_of_an_input_that_a_hook_repeats(
    host: str, desk: Desk, tmp_path: Path
) -> None:
    """protocol.md#results: the order of keys and formatting decide nothing."""
    script = tmp_path / "reversed.py"
    script.write_text(REVERSED)
    desk.hook("BeforeTool", command("cat >/dev/null"), journal=True)
    silent = await ask(desk, host, CALLS[host])
    desk.hook("BeforeTool", command(f"{sys.executable} {script}"), journal=True)
    assert await ask(desk, host, CALLS[host]) == silent
    rows = recorded()
    assert [row["verdict"] for row in rows] == ["allowed", "allowed"]


def assert_told(verdict: str, reason: str, output: object) -> None:
    """That the journal says so of every event, with the hooks' words beside it."""
    rows = recorded()
    assert rows
    for row in rows:
        assert (row["verdict"], reason in (row["reason"] or "")) == (verdict, True)
    full = json.loads(hookline("log", "--json", str(rows[-1]["id"])).stdout)
    assert full["verdict"] == verdict
    assert [hook["output"] for hook in full["hooks"]] == [output]


@pytest.mark.parametrize("host", ["qwen", "kiro", "goose", "windsurf"])
async def test_call_that_a_host_cannot_change_is_recorded_as_blocked(
    host: str, desk: Desk
) -> None:
    """protocol.md#results."""
    change = changing(command="ls -l")
    desk.rule("BeforeTool", change, journal=True)
    silent = await ask(desk, "claude", CALLS["claude"])
    assert "updatedInput" in silent
    assert recorded()[0]["verdict"] == "changed"
    (desk.project.parent / "state" / "hookline" / "journal.sqlite").unlink()
    answer = await ask(desk, host, CALLS[host])
    assert "only with another input" in answer
    assert_told("blocked", "only with another input", change)


async def test_change_that_one_event_of_cursor_cannot_express_is_recorded_as_blocked(
    desk: Desk,
) -> None:
    """protocol.md#results: its other event before a tool can."""
    change = changing(command="ls -l")
    desk.rule("BeforeTool", change, journal=True)
    call = cursor("beforeShellExecution", command="ls", cwd="/")
    assert "only with another input" in await ask(desk, "cursor", call)
    assert_told("blocked", "only with another input", change)


PATCH = "*** Begin Patch\n{}*** End Patch\n"


def patch(files: int) -> dict[str, Any]:
    parts = (f"*** Add File: {number}.txt\n+x\n" for number in range(files))
    text = PATCH.format("".join(parts))
    return named("PreToolUse", tool_name="apply_patch", tool_input={"command": text})


async def test_call_of_too_many_files_is_recorded_as_blocked(desk: Desk) -> None:
    """protocol.md#results: the limit of files."""
    allow = {"decision": "allow"}
    desk.rule("BeforeTool", allow, journal=True)
    assert "at most" in await ask(desk, "codex", patch(1001))
    assert_told("blocked", "1001 files", allow)


async def test_change_of_one_file_of_several_is_recorded_as_blocked(desk: Desk) -> None:
    """protocol.md#results: a change that cannot be put back."""
    desk.rule("BeforeTool", changing(path="b.txt"), journal=True)
    assert "cannot be put back" in await ask(desk, "codex", patch(2))
    assert_told("blocked", "cannot be put back", changing(path="b.txt"))


async def test_question_is_recorded_as_the_host_was_told(desk: Desk) -> None:
    """protocol.md#results: hooksConfig.onAsk decides where nobody can be asked."""
    question = {"decision": "ask", "reason": "sure?"}
    for policy, verdict in (("block", "blocked"), ("allow", "allowed")):
        desk.rule("BeforeTool", question, journal=True, onAsk=policy)
        await ask(desk, "codex", CALLS["codex"])
        assert recorded()[-1]["verdict"] == verdict
    await ask(desk, "claude", CALLS["claude"])
    assert recorded()[-1]["verdict"] == "ask"


async def test_answer_that_was_rejected_too_often_is_recorded_as_let_through(
    desk: Desk,
) -> None:
    """protocol.md#events: rejections are bounded."""
    desk.rule("AfterAgent", {"decision": "block", "reason": "again"}, journal=True)
    for number in range(9):
        stop = named("Stop", stop_hook_active=number > 0)
        await ask(desk, "claude", stop)
    rows = recorded()
    assert [row["verdict"] for row in rows] == ["blocked"] * 8 + ["stopped"]
    assert "8 answers in a row were rejected" in rows[-1]["reason"]


@pytest.mark.parametrize(
    ("host", "call", "event", "then", "verdict"),
    [
        pytest.param(
            *("codex", CALLS["codex"], "BeforeTool"),
            *({"continue": False, "stopReason": "enough"}, "blocked"),
            id="a stop is a denied call",
        ),
        pytest.param(
            *("claude", CALLS["claude"], "BeforeTool"),
            *({"continue": False, "stopReason": "enough"}, "stopped"),
            id="a stop is a stop",
        ),
        pytest.param(
            *("cline", captured("cline", "TaskComplete-1"), "AfterAgent"),
            *({"decision": "block", "reason": "again"}, "allowed"),
            id="a rejection that is not heard",
        ),
    ],
)
async def test_verdict_that_a_host_obeys_in_part_is_recorded_as_it_took_it(
    host: str, call: Any, event: str, then: Any, verdict: str, desk: Desk
) -> None:
    """protocol.md#results."""
    desk.rule(event, then, journal=True)
    await ask(desk, host, call)
    [row] = recorded()
    assert row["verdict"] == verdict


@pytest.mark.parametrize("given", [b"nonsense", b"[]", b'{"tool_name": 5}'])
async def test_unreadable_event_that_is_blocked_is_recorded_as_blocked(
    given: bytes, desk: Desk
) -> None:
    """protocol.md#results."""
    guard = command("true") | {"onError": "block"}
    desk.hook("BeforeTool", guard, journal=True)
    await desk.ask("claude", given)
    [row] = recorded()
    assert row["verdict"] == "blocked"
    assert "could not be read" in row["reason"]
