"""Hooks of a dialect behind the bridge: they see what the host sent.

protocol.md#dialects
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hookline.hosts.bridge import Bridge

from .captured import capture_names, captured
from .test_bridge import bridge, event, project, rule, said, write_settings

__all__ = ["bridge", "project"]  # fixtures

EDIT = {
    "file_path": "a.txt",
    "old_string": "x",
    "new_string": "y",
    "replace_all": True,
}


def hook(command: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": command, "dialect": "claude", **more}


async def test_a_claude_hook_sees_what_claude_code_sent(
    project: Path, bridge: Bridge
) -> None:
    write_settings(project, "BeforeTool", hook("cat > seen.json"))
    sent = {"tool_name": "Edit", "tool_input": EDIT, "tool_use_id": "t-1"}
    given = event(project, "PreToolUse", permission_mode="plan", **sent)
    await bridge.answer("claude", None, given)
    seen = json.loads((project / "seen.json").read_bytes())
    expected = {**json.loads(given), "tool_input": EDIT}
    assert {key: seen.get(key) for key in expected} == expected


CLAUDE_EVENTS = {
    "PreToolUse": "BeforeTool",
    "PostToolUse": "AfterTool",
    "PostToolUseFailure": "AfterTool",
    "UserPromptSubmit": "BeforeAgent",
    "Stop": "AfterAgent",
    "PreCompact": "PreCompress",
}
NOT_OURS = ("MessageDisplay", "PostCompact", "PostToolBatch")
SENT = [
    (host, name)
    for host in ("claude", "gemini")
    for name in capture_names(host)
    if not name.startswith(NOT_OURS)
]


@pytest.mark.parametrize(("host", "name"), SENT)
async def test_a_hook_of_the_hosts_dialect_gets_what_the_host_sent_and_nothing_else(
    project: Path, bridge: Bridge, host: str, name: str
) -> None:
    """protocol.md#dialects: every key and value in its place, none added."""
    sent = {**captured(host, name), "cwd": str(project), "a_later_key": [{"z": 1}]}
    theirs = sent["hook_event_name"]
    ours = CLAUDE_EVENTS.get(theirs, theirs)
    write_settings(project, ours, hook("cat > seen.json", dialect=host))
    await bridge.answer(host, None, json.dumps(sent).encode())
    seen = json.loads((project / "seen.json").read_bytes())
    assert list(seen.items()) == list(sent.items())


@pytest.mark.parametrize(
    ("tool", "response"),
    [
        ("WebFetch", {"bytes": 9, "code": 200, "result": "ignore", "url": "http://a"}),
        ("WebSearch", {"query": "q", "results": ["x", {"content": []}]}),
        ("mcp__a__b", "plain text"),
        ("mcp__a__b", [{"type": "text", "text": "x"}]),
        ("Skill", None),
        ("Skill", 7),
        ("Skill", False),
        ("Skill", {"error": None, "llmContent": "theirs"}),
    ],
)
async def test_a_result_of_any_shape_reaches_a_claude_hook_to_the_letter(
    project: Path, bridge: Bridge, tool: str, response: Any
) -> None:
    """protocol.md#dialects: a scanner of results sees the result."""
    write_settings(project, "AfterTool", hook("cat > seen.json"))
    sent = {"tool_name": tool, "tool_input": {}, "tool_response": response}
    await bridge.answer("claude", None, event(project, "PostToolUse", **sent))
    seen = json.loads((project / "seen.json").read_bytes())["tool_response"]
    assert json.dumps(seen) == json.dumps(response)


async def test_what_a_host_sent_is_shown_with_what_other_hooks_changed(
    project: Path, bridge: Bridge
) -> None:
    context = {"hookSpecificOutput": {"additionalContext": "more"}}
    file = write_settings(
        project, "BeforeAgent", rule("true", **context), hook("cat > seen.json")
    )
    settings = json.loads(file.read_text())
    settings["hooks"]["BeforeAgent"][0]["sequential"] = True
    file.write_text(json.dumps(settings))
    sent = captured("claude", "UserPromptSubmit-1") | {"cwd": str(project)}
    await bridge.answer("claude", None, json.dumps(sent).encode())
    seen = json.loads((project / "seen.json").read_bytes())
    assert seen == sent | {"prompt": f"{sent['prompt']}\n\nmore"}


async def test_an_async_claude_hook_sees_the_input_that_the_host_sent(
    project: Path,
) -> None:
    write_settings(project, "BeforeTool", hook("cat > seen.json", **{"async": True}))
    sent = captured("claude", "PreToolUse-2") | {"cwd": str(project)}
    bridge = Bridge(one_shot=True)
    await bridge.answer("claude", None, json.dumps(sent).encode())
    await bridge.close()
    assert json.loads((project / "seen.json").read_bytes()) == sent


async def test_a_key_that_claude_code_always_sends_is_never_missing(
    project: Path, bridge: Bridge
) -> None:
    """protocol.md#dialects: also where another agent, or an older one, calls."""
    shell = {"tool_name": "run_shell_command", "tool_input": {"command": "ls"}}
    write_settings(project, "BeforeTool", *[hook(f"cat > {n}.json") for n in "ab"])
    calls = []
    for _ in range(2):
        await bridge.answer("gemini", None, event(project, "BeforeTool", **shell))
        seen = [json.loads((project / f"{n}.json").read_bytes()) for n in "ab"]
        assert seen[0]["tool_use_id"] == seen[1]["tool_use_id"]
        calls.append(seen[0]["tool_use_id"])
    await bridge.answer(
        "claude", None, event(project, "PreToolUse", **shell | {"tool_name": "Bash"})
    )
    calls.append(json.loads((project / "a.json").read_bytes())["tool_use_id"])
    assert all(call.startswith("toolu_") for call in calls)
    assert len(set(calls)) == 3
    write_settings(project, "SubagentStop", hook("cat > seen.json"))
    agent = {"agent_id": "a", "agent_type": "t"}
    await bridge.answer("claude", None, event(project, "SubagentStop", **agent))
    seen_end = json.loads((project / "seen.json").read_bytes())
    assert seen_end["agent_transcript_path"] == ""


async def test_a_claude_hook_at_the_end_of_a_turn_is_shown_no_empty_prompt(
    project: Path, bridge: Bridge
) -> None:
    write_settings(project, "AfterAgent", hook("cat > seen.json"))
    for host in ("claude", "codex"):
        given = event(project, "Stop", last_assistant_message="done", model="m")
        await bridge.answer(host, None, given)
        seen = json.loads((project / "seen.json").read_bytes())
        assert "prompt" not in seen
        assert (seen["last_assistant_message"], seen["model"]) == ("done", "m")


BLOCK = {"decision": "block", "reason": "not now"}


@pytest.mark.parametrize(
    ("dialect", "command", "expected"),
    [
        ("claude", f"echo '{json.dumps(BLOCK)}'", BLOCK),
        ("claude", "echo 'not now' >&2; exit 2", BLOCK),
        ("hookline", f"echo '{json.dumps(BLOCK)}'", {}),
    ],
)
async def test_a_claude_hook_can_block_a_compaction_in_claude_code(
    project: Path, bridge: Bridge, dialect: str, command: str, expected: Any
) -> None:
    """protocol.md#dialects: also where another hook comes later and says nothing."""
    write_settings(
        project, "PreCompress", hook(command, dialect=dialect), hook("echo '{}'")
    )
    given = event(project, "PreCompact", trigger="manual")
    reply = await bridge.answer("claude", None, given)
    assert json.loads(reply.stdout) == expected
    other = event(project, "PreCompress", trigger="manual")
    assert json.loads((await bridge.answer("gemini", None, other)).stdout) == {}


@pytest.mark.parametrize("name", ["Stop", "SubagentStop"])
async def test_claude_code_goes_on_with_the_context_of_a_claude_hook_a_few_times(
    project: Path, bridge: Bridge, name: str
) -> None:
    """protocol.md#dialects; the turn ends at last, as after rejected answers."""
    answer = {"hookSpecificOutput": {"additionalContext": "run the <tests>"}}
    write_settings(
        project, CLAUDE_EVENTS.get(name, name), hook(f"echo '{json.dumps(answer)}'")
    )
    agent = {"agent_id": "a", "agent_type": "t"}
    contexts = []
    for turn in range(9):
        given = event(project, name, **agent, stop_hook_active=turn > 0)
        answered = json.loads((await bridge.answer("claude", None, given)).stdout)
        contexts.append(answered.get("hookSpecificOutput"))
    expected = {"hookEventName": name, "additionalContext": "run the &lt;tests&gt;"}
    assert contexts[0] == expected
    assert contexts[7] == expected
    assert contexts[8] is None
    reply = await bridge.answer("vscode", None, event(project, name, **agent))
    assert b"additionalContext" not in reply.stdout


async def test_a_claude_hook_that_defers_says_nothing(
    project: Path, bridge: Bridge
) -> None:
    deferred = {"permissionDecision": "Defer", "permissionDecisionReason": "ask others"}
    for answer in ({"hookSpecificOutput": deferred}, deferred):
        says = json.dumps(answer)
        write_settings(project, "BeforeTool", hook(f"echo '{says}'"))
        given = event(project, "PreToolUse", tool_name="Edit", tool_input=EDIT)
        reply = await bridge.answer("claude", None, given)
        assert json.loads(reply.stdout) == {}


@pytest.mark.parametrize("dialect", ["claude", "gemini"])
@pytest.mark.parametrize(
    "answer",
    [
        {"decision": "block"},
        {"continue": False},
        {"decision": "block", "continue": False},
        {"hookSpecificOutput": {"permissionDecision": "deny"}},
        {"decision": "block", "reason": " \n"},
        {
            "reason": "\t",
            "hookSpecificOutput": {
                "permissionDecision": "ask",
                "permissionDecisionReason": " ",
            },
        },
    ],
)
async def test_the_message_of_a_refusal_without_a_reason_is_the_reason(
    project: Path, bridge: Bridge, dialect: str, answer: dict[str, Any]
) -> None:
    says = json.dumps({**answer, "systemMessage": "use the staging database"})
    write_settings(project, "BeforeTool", hook(f"echo '{says}'", dialect=dialect))
    given = event(project, "PreToolUse", tool_name="Edit", tool_input=EDIT)
    reply = await bridge.answer("claude", None, given)
    reason = said(reply)["permissionDecisionReason"]
    assert reason == "use the staging database"


async def test_an_updated_input_goes_back_whole(project: Path, bridge: Bridge) -> None:
    updated = {**EDIT, "new_string": "z"}
    answer = json.dumps({"hookSpecificOutput": {"updatedInput": updated}})
    write_settings(project, "BeforeTool", hook(f"cat >/dev/null; echo '{answer}'"))
    given = event(project, "PreToolUse", tool_name="Edit", tool_input=EDIT)
    reply = await bridge.answer("claude", None, given)
    assert said(reply)["updatedInput"] == updated


async def test_a_message_is_for_the_person_alone(project: Path, bridge: Bridge) -> None:
    answer = json.dumps({"systemMessage": "for you"})
    write_settings(project, "BeforeTool", hook(f"cat >/dev/null; echo '{answer}'"))
    given = event(project, "PreToolUse", tool_name="Edit", tool_input=EDIT)
    reply = await bridge.answer("claude", None, given)
    assert json.loads(reply.stdout) == {"systemMessage": "for you"}


@pytest.mark.parametrize(
    ("name", "ours", "sent"),
    [
        (
            "PreCompact",
            "PreCompress",
            {"trigger": "manual", "custom_instructions": "x"},
        ),
        (
            "SubagentStop",
            "SubagentStop",
            {"agent_id": "a", "agent_type": "t", "agent_transcript_path": "/t.jsonl"},
        ),
    ],
)
async def test_a_claude_hook_sees_the_fields_that_only_claude_code_has(
    project: Path, bridge: Bridge, name: str, ours: str, sent: dict[str, str]
) -> None:
    write_settings(project, ours, hook("cat > seen.json"))
    await bridge.answer("claude", None, event(project, name, **sent))
    seen = json.loads((project / "seen.json").read_bytes())
    assert {key: seen[key] for key in sent} == sent


async def test_a_failed_tool_reaches_a_claude_hook_as_its_failure_event(
    project: Path, bridge: Bridge
) -> None:
    write_settings(project, "AfterTool", hook("cat > seen.json"))
    failed = {"tool_name": "Bash", "tool_input": {"command": "x"}, "error": "boom"}
    given = event(project, "PostToolUseFailure", **failed)
    await bridge.answer("claude", None, given)
    seen = json.loads((project / "seen.json").read_bytes())
    assert (seen["hook_event_name"], seen["error"]) == ("PostToolUseFailure", "boom")


@pytest.mark.parametrize(
    ("tool", "response"),
    [
        ("Bash", {"stdout": "hi", "stderr": "", "noOutputExpected": False}),
        ("Write", {"type": "create", "filePath": "/a", "structuredPatch": []}),
        ("Agent", {"status": "completed", "content": [{"type": "text", "text": "x"}]}),
    ],
)
async def test_a_claude_hook_sees_the_result_that_claude_code_sent(
    project: Path, bridge: Bridge, tool: str, response: dict[str, Any]
) -> None:
    write_settings(project, "AfterTool", hook("cat > seen.json"))
    sent = {"tool_name": tool, "tool_input": {}, "tool_response": response}
    await bridge.answer("claude", None, event(project, "PostToolUse", **sent))
    seen = json.loads((project / "seen.json").read_bytes())["tool_response"]
    assert {key: seen[key] for key in response} == response


REDACTED = {"hookSpecificOutput": {"updatedToolOutput": "clean"}}


@pytest.mark.parametrize(
    ("dialect", "answer"),
    [("claude", REDACTED), ("gemini", {"decision": "deny", "reason": "clean"})],
)
async def test_what_takes_the_place_of_a_result_is_said_once(
    project: Path, bridge: Bridge, dialect: str, answer: dict[str, Any]
) -> None:
    says = hook(f"cat >/dev/null; echo '{json.dumps(answer)}'", dialect=dialect)
    adds = {"hookSpecificOutput": {"additionalContext": "more"}}
    also = hook(f"cat >/dev/null; echo '{json.dumps(adds)}'")
    write_settings(project, "AfterTool", also, says)
    ran = {"tool_name": "Bash", "tool_input": {"command": "env"}}
    given = event(project, "PostToolUse", **ran, tool_response={"stdout": "SECRET"})
    reply = await bridge.answer("claude", None, given)
    assert said(reply)["updatedToolOutput"]["stdout"] == "clean\n\nmore"


async def test_a_guard_of_a_file_holds_against_its_deletion(
    project: Path, bridge: Bridge
) -> None:
    """Claude Code and Gemini CLI have no tool for it, Codex deletes by a patch."""
    guard = hook('grep -q \'"file_path":"[^"]*.env"\' && exit 2; exit 0')
    file = write_settings(project, "BeforeTool", guard)
    settings = json.loads(file.read_text())
    settings["hooks"]["BeforeTool"][0]["matcher"] = "Edit|Write"
    file.write_text(json.dumps(settings))
    for name, decision in ((".env", "deny"), ("other", None)):
        patch = f"*** Begin Patch\n*** Delete File: {name}\n*** End Patch\n"
        call = {"tool_name": "apply_patch", "tool_input": {"command": patch}}
        given = event(project, "PreToolUse", model="m", **call)
        answer = json.loads((await bridge.answer("codex", None, given)).stdout)
        found = answer.get("hookSpecificOutput", {}).get("permissionDecision")
        assert found == decision
