"""What ``hookline bridge`` does beyond one answer to one payload.

Single answers are rows of ``tests/pins/hosts``; here are limits, sequences of events,
the journal and the process that the bridge runs in.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from hookline.journal.query import EventFilter, read_journal
from tests.support.bridged import BridgedProject, payload

BLOCK = {"decision": "block", "reason": "run the tests"}


def event(name: str, **fields: Any) -> dict[str, Any]:
    return {"hook_event_name": name, "session_id": "s", "cwd": "/", **fields}


@pytest.mark.parametrize(("count", "is_blocked"), [(1000, False), (1001, True)])
def test_call_with_more_files_than_can_be_checked_is_blocked(
    bridged: BridgedProject, count: int, is_blocked: bool
) -> None:
    """Hosts run the tool if the bridge takes too long."""
    guard = "tool_input.path == '.env'"
    bridged.rule("BeforeTool", BLOCK, when=guard, journal=True)
    files = "".join(f"*** Delete File: f{at}\n" for at in range(count))
    patch = f"*** Begin Patch\n{files}*** End Patch\n"
    call = event("PreToolUse", tool_name="apply_patch", tool_input={"command": patch})
    reason = "the call touches 1001 files: hooks check at most 1000 in one call"
    assert (reason in bridged.ask("codex", call).stdout) is is_blocked
    verdicts = {(entry["verdict"], entry["reason"]) for entry in bridged.recorded()}
    assert verdicts == {("blocked", reason) if is_blocked else ("allowed", None)}


def test_loss_is_in_the_journal(bridged: BridgedProject) -> None:
    """A verdict that a host cannot express."""
    clear = {"hookSpecificOutput": {"clearContext": True}}
    bridged.rule("AfterAgent", clear, journal=True)
    bridged.ask("claude", "claude/Stop-1")
    with read_journal(str(bridged.journal)) as journal:
        notes = journal.newest(EventFilter(event="Notification"), None)
        entries = [journal.find(note.id) for note in notes]
    loss = "Claude Code: AfterAgent: clear context: the context stays as it is"
    assert [note and note.input["message"] for note in entries] == [loss]
    assert [note.reason for note in notes] == [loss]


def test_answers_cannot_be_rejected_for_ever(bridged: BridgedProject) -> None:
    """protocol.md#events: bounded, also in hosts that have no limit of their own."""
    bridged.rule("AfterAgent", BLOCK, journal=True)
    turns = [event("Stop", stop_hook_active=turn > 0) for turn in range(9)]
    answers = [json.loads(bridged.ask("claude", turn).stdout) for turn in turns]
    reason = "8 answers in a row were rejected: run the tests"
    assert answers == [BLOCK] * 8 + [{"continue": False, "stopReason": reason}]
    verdicts = [(entry["verdict"], entry["reason"]) for entry in bridged.recorded()]
    assert verdicts == [("blocked", "run the tests")] * 8 + [("stopped", reason)]
    assert json.loads(bridged.ask("claude", turns[1]).stdout) == BLOCK  # a new count
    other = event("Stop", stop_hook_active=True) | {"session_id": "t"}
    assert json.loads(bridged.ask("claude", other).stdout) == BLOCK


@pytest.mark.parametrize("between", ["an answer that is accepted", "a new turn"])
def test_count_of_rejections_starts_again(
    bridged: BridgedProject, between: str
) -> None:
    again, new = (event("Stop", stop_hook_active=active) for active in (True, False))
    bridged.rule("AfterAgent", BLOCK)
    for _ in range(8):
        bridged.ask("claude", again)
    if between == "a new turn":
        assert json.loads(bridged.ask("claude", new).stdout) == BLOCK
    else:
        bridged.rule("AfterAgent", {})
        bridged.ask("claude", again)
        bridged.rule("AfterAgent", BLOCK)
    assert json.loads(bridged.ask("claude", again).stdout) == BLOCK


def test_rejections_of_subagents_are_counted_apart(bridged: BridgedProject) -> None:
    bridged.rule("SubagentStop", BLOCK)
    first, second = (
        event("SubagentStop", agent_id=agent, agent_type="t", stop_hook_active=True)
        for agent in "ab"
    )
    for _ in range(8):
        bridged.ask("claude", first)
    assert json.loads(bridged.ask("claude", second).stdout) == BLOCK
    assert "continue" in bridged.ask("claude", first).stdout


@pytest.mark.parametrize("name", ["Stop", "SubagentStop"])
def test_claude_code_goes_on_with_the_context_of_a_claude_hook_a_few_times(
    bridged: BridgedProject, name: str
) -> None:
    """protocol.md#dialects; the turn ends at last, as after rejected answers."""
    answer = {"hookSpecificOutput": {"additionalContext": "more"}}
    hook = {"type": "command", "dialect": "claude"}
    hook["command"] = f"cat >/dev/null; echo '{json.dumps(answer)}'"
    bridged.hook({"Stop": "AfterAgent"}.get(name, name), hook)
    contexts = []
    for turn in range(9):
        sent = event(name, agent_id="a", agent_type="t", stop_hook_active=turn > 0)
        answered = json.loads(bridged.ask("claude", sent).stdout)
        contexts.append(answered.get("hookSpecificOutput", {}))
    context = {"hookEventName": name, "additionalContext": "more"}
    assert contexts == [context] * 8 + [{}]


@pytest.mark.parametrize("host", ["claude", "qwen"])
@pytest.mark.parametrize(
    ("then", "reason"),
    [
        ({"decision": "deny", "hookSpecificOutput": {"withholdResult": True}}, "a key"),
        ({"continue": False, "stopReason": "enough"}, "enough"),
    ],
    ids=["withheld", "stopped"],
)
def test_run_ends_after_a_failed_tool_and_before_the_model_is_called(
    bridged: BridgedProject, host: str, then: dict[str, Any], reason: str
) -> None:
    """Claude Code obeys no stop after a failed tool, but at the batch."""
    bridged.rule("AfterTool", {"reason": "a key", **then})
    call = {"tool_name": "Bash", "tool_input": {"command": "cat key"}}
    bridged.ask(host, event("PostToolUseFailure", **call, error="sk-1"))
    others = [event("PostCompact"), event("PostToolBatch", agent_id="a")]
    events = [*others, *[event("PostToolBatch")] * 2]
    answers = [json.loads(bridged.ask(host, sent).stdout) for sent in events]
    assert answers == [{}, {}, {"continue": False, "stopReason": reason}, {}]


@pytest.mark.parametrize("key", ["reason", "systemMessage"])
def test_long_answer_to_qwen_code_is_cut(bridged: BridgedProject, key: str) -> None:
    """It reads 1 MiB: half an answer is ignored, and the tool runs."""
    long = {"decision": "deny", "reason": "no", key: "\x01" * 900_000}
    for name, ours in (
        ("PreToolUse", "BeforeTool"),
        ("Stop", "AfterAgent"),
        ("UserPromptSubmit", "BeforeAgent"),
    ):
        bridged.rule(ours, long)
        answer = bridged.ask("qwen", f"qwen/{name}-1").stdout
        assert json.loads(answer)
        assert len(answer) < 1 << 20
        assert '"deny"' in answer or '"block"' in answer


@pytest.mark.parametrize(
    ("key", "then", "longest"),
    [
        ("permissionDecisionReason", {"decision": "deny", "reason": "LONG"}, 65536),
        ("additionalContext", {"additionalContext": "LONG"}, 262144),
    ],
    ids=["reason", "context"],
)
def test_long_text_is_cut(
    bridged: BridgedProject, key: str, then: dict[str, Any], longest: int
) -> None:
    for length, end in ((longest, ""), (longest + 1, " [...]")):
        text = json.dumps({"hookSpecificOutput": then, **then})
        bridged.rule("BeforeTool", json.loads(text.replace("LONG", "x" * length)))
        answer = json.loads(bridged.ask("claude", "claude/PreToolUse-1").stdout)
        assert answer["hookSpecificOutput"][key] == "x" * longest + end


def test_long_input_in_a_refusal_is_cut(bridged: BridgedProject) -> None:
    """A host that cannot change an input shows what hooks would allow."""
    long = {"hookSpecificOutput": {"tool_input": {"command": "x" * 5000}}}
    bridged.rule("BeforeTool", long)
    answer = bridged.ask("qwen", "qwen/PreToolUse-1").stdout
    assert "only with another input" in answer
    assert 4000 < answer.count("x") <= 4096 + len("only with another input")


def test_command_in_a_process_of_others_leaves_the_log_as_it_was(
    bridged: BridgedProject,
) -> None:
    """It shows no messages of its own beside the reply, and gives the log back."""
    text = """import logging
from hookline.cli.main import main
logging.basicConfig()
assert main(["bridge", "claude", "--no-resident"]) == 0
logging.getLogger("hookline").warning("still told")"""
    done = subprocess.run(
        [sys.executable, "-c", text],
        input=json.dumps(payload("claude/PreToolUse-1")).encode(),
        capture_output=True,
        check=True,
    )
    assert done.stderr == b"WARNING:hookline:still told\n"
