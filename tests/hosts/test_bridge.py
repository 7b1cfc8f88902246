"""The bridge: from a host's event to hooks and back (issue 15, items 1 to 3)."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hookline.hosts.bridge import MOST_FILES, Bridge, Reply
from hookline.journal.query import EventFilter, read_journal

PATCH = """*** Begin Patch
*** Add File: a.txt
+hello
*** Update File: b.txt
@@
-old
+new
*** Delete File: c.txt
*** End Patch
"""


PATCH_OF_RM = PATCH.replace("b.txt", "rm x")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own settings apply in it."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(folder))
    (tmp_path / "config" / "hookline").mkdir(parents=True)
    return folder


@pytest.fixture
async def bridge() -> AsyncIterator[Bridge]:
    bridge = Bridge(one_shot=False)
    yield bridge
    await bridge.close()


def write_settings(project: Path, event: str, *hooks: Any, **config: Any) -> Path:
    file = project.parent / "config" / "hookline" / "settings.json"
    settings = {"hooks": {event: [{"hooks": list(hooks)}]}, "hooksConfig": config}
    file.write_text(json.dumps(settings))
    return file


def event(project: Path, name: str, **fields: Any) -> bytes:
    given = {"session_id": "s", "cwd": str(project), "hook_event_name": name, **fields}
    return json.dumps(given).encode()


def write_call(project: Path, **tool_input: Any) -> bytes:
    return event(project, "PreToolUse", tool_name="Write", tool_input=tool_input)


def said(reply: Reply) -> Any:
    return json.loads(reply.stdout)["hookSpecificOutput"]


def rule(when: str, **then: Any) -> dict[str, Any]:
    said = {"then": then} if then else {}
    return {"type": "rule", "name": "guard", "when": when, **said}


def deny(when: str) -> dict[str, Any]:
    return rule(when, decision="deny", reason="${tool_input.path}")


async def test_changed_input_goes_back_whole_in_the_hosts_spelling(
    project: Path, bridge: Bridge
) -> None:
    """hosts/README.md#rules 12."""
    change = {"hookSpecificOutput": {"tool_input": {"path": "b.txt"}}}
    write_settings(project, "BeforeTool", rule("true", **change))
    call = write_call(project, file_path="a.txt", content="x", mode=1)
    reply = await bridge.answer("claude", None, call)
    updated = {"file_path": "b.txt", "content": "x", "mode": 1}
    assert said(reply) == {"hookEventName": "PreToolUse", "updatedInput": updated}


async def test_every_file_of_a_call_is_judged(project: Path, bridge: Bridge) -> None:
    """hosts/README.md#what-a-hook-sees: any block blocks the call."""
    write_settings(project, "BeforeTool", deny("tool_input.path == 'c.txt'"))
    command = f"apply_patch <<'EOF'\n{PATCH}EOF"
    call = {"tool_name": "Bash", "tool_input": {"command": command}}
    reply = await bridge.answer("claude", None, event(project, "PreToolUse", **call))
    assert said(reply)["permissionDecisionReason"] == "c.txt"


async def test_a_call_with_more_files_than_can_be_checked_is_blocked(
    project: Path, bridge: Bridge
) -> None:
    """Issue 15.3: hosts run the tool if the bridge takes too long."""
    write_settings(project, "BeforeTool", deny("tool_input.path == '.env'"))
    for count, is_blocked in ((MOST_FILES, False), (MOST_FILES + 1, True)):
        files = "".join(f"*** Delete File: f{at}\n" for at in range(count))
        patch = f"*** Begin Patch\n{files}*** End Patch\n"
        call = {"tool_name": "apply_patch", "tool_input": {"command": patch}}
        given = event(project, "PreToolUse", **call)
        reply = await bridge.answer("codex", None, given)
        assert (b"touches 1001 files" in reply.stdout) is is_blocked


async def test_two_values_of_one_field_are_both_judged(
    project: Path, bridge: Bridge
) -> None:
    """Nobody hides a file from a guard by giving it two names."""
    write_settings(project, "BeforeTool", deny("tool_input.path == '.env'"))
    for given in (
        {"file_path": ".env", "path": "a"},
        {"file_path": "a", "path": ".env"},
    ):
        reply = await bridge.answer("claude", None, write_call(project, **given))
        assert said(reply)["permissionDecision"] == "deny"


@pytest.mark.parametrize(
    "given",
    [
        {"path": ".env", "edits": [{"path": "a"}]},
        {"path": ".env", "edits": [{"path": ""}]},
        {"path": ".env", "edits": [{"path": None}]},
        {"path": ".env", "edits": []},
        {"path": "a", "edits": [{"path": "b"}, {"path": ".env"}]},
        {"path": "a", "new_str": ".env", "edits": [{"new_str": "b"}]},
        {"path": "a", "new_str": "b", "edits": [{"new_str": ".env"}]},
        # An empty or odd list hides no other one (issue 26, item 16).
        {"edits": [], "replacements": [{"filePath": ".env"}]},
        {"edits": [], "files": [".env"]},
        {"edits": [], "changes": [], "files": [{"path": ".env"}]},
        {"edits": [{"path": "a"}], "replacements": [{"filePath": ".env"}]},
        {"edits": [{"path": "a"}], "files": ["b", ".env"]},
        {"edits": {}, "replacements": [{"filePath": ".env"}]},
        {"edits": "", "replacements": {"filePath": ".env"}},
        {"edits": 0, "files": ".env"},
        {"edits": [None], "changes": '[{"path": ".env"}]'},
        {"edits": ["x", [{"path": ".env"}]]},
        {"files": [{"path": ".env", "edits": [{"new_str": "x"}]}], "edits": []},
        {"edits": [{"changes": [{"path": ".env"}]}], "path": "a"},
    ],
)
async def test_a_list_of_edits_hides_nothing_beside_it(
    project: Path, bridge: Bridge, given: dict[str, Any]
) -> None:
    """Hosts drop what a tool does not know: which of the two it was, they know."""
    rules = deny("tool_input.path == '.env'"), deny("tool_input.new_string == '.env'")
    write_settings(project, "BeforeTool", *rules)
    call = {"sessionId": "s", "cwd": str(project), "toolName": "edit"}
    stdin = json.dumps(call | {"toolArgs": given}).encode()
    reply = await bridge.answer("copilot", "preToolUse", stdin)
    assert json.loads(reply.stdout)["permissionDecision"] == "deny"


@pytest.mark.parametrize("path", [".env/", ".env/.", ".env//", ".env/x/..", "./.env/"])
async def test_a_path_that_ends_like_a_folders_is_shown_as_the_file(
    project: Path, bridge: Bridge, path: str
) -> None:
    """Claude Code writes ``.env`` when it is told to write ``.env/``."""
    write_settings(project, "BeforeTool", deny("tool_input.path.endsWith('.env')"))
    patch = f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch"
    for host, tool, given in (
        ("claude", "Write", {"file_path": path}),
        ("claude", "Edit", {"file_path": path}),
        ("codex", "apply_patch", {"command": patch}),
    ):
        call = event(project, "PreToolUse", tool_name=tool, tool_input=given)
        reply = await bridge.answer(host, None, call)
        assert said(reply)["permissionDecision"] == "deny"


@pytest.mark.parametrize(
    ("host", "tool", "given"),
    [
        ("claude", "Monitor", {"command": "rm x", "description": "watch"}),
        ("claude", "PowerShell", {"command": "rm x"}),
        ("claude", "NotebookEdit", {"notebook_path": "rm x", "new_source": "1"}),
        ("qwen", "monitor", {"command": "rm x", "description": "watch"}),
        ("qwen", "notebook_edit", {"notebook_path": "rm x", "new_source": "1"}),
        ("codex", "write_stdin", {"session_id": 1, "chars": "rm x"}),
        ("codex", "unified_exec", {"session_id": "1", "input": ["rm", "x"]}),
        ("vscode", "send_to_terminal", {"id": "1", "command": "rm x"}),
        ("codex", "apply_patch", {"command": ["apply_patch", PATCH_OF_RM]}),
    ],
)
async def test_rules_see_every_tool_that_runs_commands_or_writes(
    project: Path, bridge: Bridge, host: str, tool: str, given: dict[str, str]
) -> None:
    """hosts/README.md#what-a-hook-sees: one rule serves all tools that do the same."""
    shell = "tool_name == 'run_shell_command' && tool_input.command == 'rm x'"
    file = "tool_name == 'replace' && tool_input.path == 'rm x'"
    write_settings(project, "BeforeTool", rule(shell), rule(file))
    call = event(project, "PreToolUse", tool_name=tool, tool_input=given)
    reply = await bridge.answer(host, None, call)
    assert said(reply)["permissionDecision"] == "deny"


@pytest.mark.parametrize("tool", ["write_bash", "write_powershell"])
async def test_text_that_is_typed_into_a_running_shell_is_a_command(
    project: Path, bridge: Bridge, tool: str
) -> None:
    """Issue 26, item 16: seen as one, and a change goes back in the host's field."""
    guard = deny("tool_input.command.contains('rm ')")
    change = {"hookSpecificOutput": {"tool_input": {"command": "y"}}}
    safe = rule("tool_input.command == 'x'", **change)
    write_settings(project, "BeforeTool", guard, safe)
    call = {"sessionId": "s", "cwd": str(project), "toolName": tool}
    answers = []
    for typed in ("rm -rf /", "x"):
        given = call | {"toolArgs": {"shellId": "1", "input": typed, "delay": 1}}
        stdin = json.dumps(given).encode()
        reply = await bridge.answer("copilot", "preToolUse", stdin)
        answers.append(json.loads(reply.stdout))
    assert answers[0]["permissionDecision"] == "deny"
    assert answers[1]["modifiedArgs"] == {"shellId": "1", "input": "y", "delay": 1}


async def test_change_that_cannot_be_put_back_blocks(
    project: Path, bridge: Bridge
) -> None:
    """So does a changed input, which cannot be put back.

    hosts/README.md#what-a-hook-sees
    """
    change = {"hookSpecificOutput": {"tool_input": {"new_string": "x"}}}
    write_settings(project, "BeforeTool", rule("tool_name == 'replace'", **change))
    edits = [{"old_string": "a", "new_string": "b"}] * 2
    call = {"tool_name": "MultiEdit", "tool_input": {"file_path": "a", "edits": edits}}
    reply = await bridge.answer("claude", None, event(project, "PreToolUse", **call))
    reason = said(reply)["permissionDecisionReason"]
    assert "hooks changed the input of MultiEdit" in reason


async def test_hooks_see_our_names_and_the_hosts_own(
    project: Path, bridge: Bridge
) -> None:
    """Issue 15.1: names and fields in our spelling, the host's in ``host``."""
    seen = project / "seen.json"
    write_settings(
        project, "BeforeTool", {"type": "command", "command": f"cat >{seen}"}
    )
    call = write_call(project, file_path="a.txt", content="x")
    assert (await bridge.answer("claude", None, call)).stdout == b"{}\n"
    shown = json.loads(seen.read_text())
    assert shown["tool_name"] == "write_file"
    assert shown["tool_input"] == {"path": "a.txt", "content": "x"}
    own = {"file_path": "a.txt", "content": "x"}
    about = {"name": "claude", "event": "PreToolUse", "tool_name": "Write"}
    assert shown["host"] == {**about, "tool_input": own}
    assert (shown["session_id"], shown["cwd"]) == ("s", str(project))


async def test_new_settings_count_for_the_next_event(
    project: Path, bridge: Bridge
) -> None:
    """Issue 15.5: what is kept between events is replaced when settings change."""
    call = write_call(project, file_path="a")
    for when in ("false", "true"):
        write_settings(project, "BeforeTool", deny(when))
        reply = await bridge.answer("claude", None, call)
    assert said(reply)["permissionDecision"] == "deny"
    file = write_settings(project, "BeforeTool")
    assert (await bridge.answer("claude", None, call)).stdout == b"{}\n"
    file.unlink()
    assert (await bridge.answer("claude", None, call)).stdout == b"{}\n"


BROKEN = {
    "no-json": b"{",
    "no-object": b"[]",
    "no-event": b"{}",
    "no-event-name": b'{"hook_event_name": 7}',
    "unknown-event": b'{"hook_event_name": "PreToolUse2"}',
}


@pytest.mark.parametrize("stdin", BROKEN.values(), ids=BROKEN.keys())
async def test_unreadable_event_is_blocked_where_a_policy_asks_for_it(
    project: Path, bridge: Bridge, stdin: bytes
) -> None:
    """Issue 15.3: never a wrong allow where ``onError: block`` asks for more."""
    write_settings(project, "BeforeTool", {"type": "command", "command": "true"})
    reply = await bridge.answer("claude", None, stdin)
    assert (reply.stdout, reply.status) == (b"{}\n", 0)
    assert reply.stderr.startswith(b"hookline: Claude Code: ")
    write_settings(project, "BeforeTool", deny("false"))
    reply = await bridge.answer("claude", None, stdin)
    assert (reply.stdout, reply.status) == (b"", 2)
    assert reply.stderr.startswith(b"Claude Code: ")


async def test_event_without_a_field_follows_the_policy_of_its_own_hooks(
    project: Path, bridge: Bridge
) -> None:
    """Issue 15.3, with an event that is known: its own closed form."""
    write_settings(project, "BeforeTool", deny("false"))
    reply = await bridge.answer("claude", None, event(project, "PreToolUse"))
    assert said(reply)["permissionDecision"] == "deny"
    reply = await bridge.answer("claude", None, event(project, "UserPromptSubmit"))
    assert (reply.stdout, reply.status) == (b"{}\n", 0)


async def test_what_is_lost_is_on_stderr_and_in_the_journal(
    project: Path, bridge: Bridge
) -> None:
    """Issue 15.2: a verdict that a host cannot express."""
    file = project / "journal.db"
    clear = rule("true", hookSpecificOutput={"clearContext": True})
    write_settings(project, "AfterAgent", clear, journal=str(file))
    stop = event(project, "Stop", last_assistant_message="done")
    reply = await bridge.answer("claude", None, stop)
    told = "Claude Code: AfterAgent: clear context: the context stays as it is"
    assert reply.stderr.decode() == f"hookline: {told}\n"
    await bridge.close()
    with read_journal(str(file)) as journal:
        notes = journal.newest(EventFilter(event="Notification"), None)
        found = [journal.find(one.id) for one in notes]
    assert [one and one.input["message"] for one in found] == [told]
    assert [one.reason for one in notes] == [told]


async def test_answers_cannot_be_rejected_for_ever(
    project: Path, bridge: Bridge
) -> None:
    """protocol.md#events: bounded, also in hosts that have no limit of their own."""
    block = {"decision": "block", "reason": "run the tests"}
    write_settings(project, "AfterAgent", rule("true", **block))
    first = await bridge.answer("claude", None, event(project, "Stop"))
    again = event(project, "Stop", stop_hook_active=True)
    replies = [first, *[await bridge.answer("claude", None, again) for _ in range(8)]]
    assert {one.stdout for one in replies[:8]} == {
        json.dumps(block, separators=(",", ":")).encode() + b"\n"
    }
    assert json.loads(replies[8].stdout)["continue"] is False
    assert "8 answers in a row were rejected" in replies[8].stdout.decode()
    other = event(project, "Stop", stop_hook_active=True, session_id="t")
    assert json.loads((await bridge.answer("claude", None, other)).stdout) == block


async def test_bridge_leaves_the_log_of_its_process_alone(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What the host's process logs is for its own handlers."""
    bridge = Bridge(one_shot=True)
    await bridge.answer("claude", None, write_call(project))
    logging.getLogger("hookline").warning("still told")
    assert "still told" in caplog.text
    await bridge.close()


def test_command_in_a_process_of_others_leaves_the_log_as_it_was(project: Path) -> None:
    """It shows no messages of its own beside the reply, and gives the log back."""
    text = """import logging
from hookline.cli.main import main
logging.basicConfig()
assert main(["bridge", "claude", "--no-resident"]) == 0
logging.getLogger("hookline").warning("still told")"""
    done = subprocess.run(
        [sys.executable, "-c", text],
        input=write_call(project),
        capture_output=True,
        check=True,
    )
    assert done.stderr == b"WARNING:hookline:still told\n"
