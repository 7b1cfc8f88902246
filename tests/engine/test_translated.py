"""Hooks that were written for other hosts: what they see and mean.

protocol.md#dialects
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest

from hookline import (
    HookSystem,
    InMemoryMessageBus,
    ProcessedHookResult,
    RemoteHooks,
)
from hookline.agent import execute_tool_with_hooks
from hookline.bus.client import HookBusClient
from hookline.protocol.dialects import CLAUDE_ONLY_FAILURE, CLAUDE_ONLY_SUCCESS
from hookline.protocol.events import HookEventName as E
from tests.support.workshop import INPUTS, Workshop

SHELL = {"tool_name": "run_shell_command", "tool_input": {"command": "ls"}}
RESPONSE = {"llmContent": "SECRET", "returnDisplay": "SECRET"}
RAN = {**SHELL, "tool_response": RESPONSE}
FAILED = {**SHELL, "tool_response": {**RESPONSE, "error": {"message": "no"}}}


def hook(dialect: str, command: str = "cat > seen.json", **more: Any) -> dict[str, Any]:
    found = {"type": "command", "name": "theirs", "command": command}
    return {**found, "dialect": dialect, **more}


def says(dialect: str, output: Any, **more: Any) -> dict[str, Any]:
    command = f"cat >/dev/null; cat <<'END'\n{json.dumps(output)}\nEND"
    return hook(dialect, command, **more)


def specific(result: ProcessedHookResult) -> dict[str, Any]:
    assert result.final_output is not None
    return result.final_output.hook_specific_output


async def test_claude_sees_its_own_names_and_what_the_caller_knows(
    workshop: Workshop,
) -> None:
    """Issue 15.6: ``tool_use_id``, ``permission_mode``, ``agent_id``."""
    known = {"tool_use_id": "t-1", "permission_mode": "plan", "agent_id": "a-1"}
    given = {**SHELL, **known, "agent_type": "reviewer"}
    await workshop.fire("BeforeTool", hook("claude"), given=given)
    seen = workshop.seen()
    assert (seen["hook_event_name"], seen["tool_name"]) == ("PreToolUse", "Bash")
    assert {key: seen[key] for key in known} == known
    assert seen["agent_type"] == "reviewer"
    await workshop.fire("BeforeTool", hook("claude"), given=SHELL)
    assert workshop.seen()["permission_mode"] == "default"


async def test_gemini_sees_its_own_names(workshop: Workshop) -> None:
    given = {"tool_name": "replace", "tool_input": {"path": "a", "old_string": "x"}}
    await workshop.fire("BeforeTool", hook("gemini"), given=given)
    seen = workshop.seen()
    assert (seen["hook_event_name"], seen["tool_name"]) == ("BeforeTool", "replace")
    assert seen["tool_input"] == {"file_path": "a", "old_string": "x"}


@pytest.mark.parametrize(
    ("dialect", "host"),
    [("claude", "claude"), ("gemini", "gemini"), ("gemini", "llxprt")],
)
async def test_the_event_of_its_own_host_is_shown_as_the_host_sent_it(
    workshop: Workshop, dialect: str, host: str
) -> None:
    sent = {"name": host, "event": "TheirEvent", "tool_name": "NotebookEdit"}
    sent["tool_input"] = {"notebook_path": "/a", "x": [1]}  # type: ignore[assignment]
    given = {"tool_name": "replace", "tool_input": {"path": "/a"}, "host": sent}
    await workshop.fire("BeforeTool", hook(dialect), given=given)
    seen = workshop.seen()
    assert seen["hook_event_name"] == "TheirEvent"
    assert seen["tool_name"] == "NotebookEdit"
    assert seen["tool_input"] == {"notebook_path": "/a", "x": [1]}


async def test_an_input_that_a_hook_changed_is_shown_and_not_the_hosts(
    workshop: Workshop,
) -> None:
    change = {"hookSpecificOutput": {"tool_input": {"command": "true"}}}
    sent = {"name": "claude", "event": "PreToolUse", "tool_name": "Bash"}
    sent["tool_input"] = {"command": "ls"}  # type: ignore[assignment]
    result = await workshop.fire(
        "BeforeTool",
        workshop.says(change, "first"),
        hook("claude"),
        given={**SHELL, "host": sent},
        sequential=True,
    )
    assert workshop.seen()["tool_input"] == {"command": "true"}
    assert result.aggregated.success


@pytest.mark.parametrize(
    ("matcher", "shown"),
    [("Agent", "Agent"), ("Task|Agent", "Task"), ("", "Task"), ("^A", "Agent")],
)
async def test_a_tool_of_two_names_is_shown_by_the_one_that_the_hook_waits_for(
    workshop: Workshop, matcher: str, shown: str
) -> None:
    given = {"tool_name": "task", "tool_input": {"prompt": "p"}}
    await workshop.fire("BeforeTool", hook("claude"), given=given, matcher=matcher)
    assert workshop.seen()["tool_name"] == shown


async def test_a_hook_for_multi_edit_sees_one_edit_and_can_change_it(
    workshop: Workshop,
) -> None:
    edits = [{"old_string": "a", "new_string": "safe"}]
    updated = {"updatedInput": {"file_path": "f", "edits": edits}}
    answer = json.dumps({"hookSpecificOutput": updated})
    result = await workshop.fire(
        "BeforeTool",
        hook("claude", f"cat > seen.json; echo '{answer}'"),
        given={
            "tool_name": "replace",
            "tool_input": {"path": "f", "old_string": "a", "new_string": "b"},
        },
        matcher="MultiEdit",
    )
    seen = workshop.seen()
    assert seen["tool_name"] == "MultiEdit"
    assert seen["tool_input"] == {
        "file_path": "f",
        "edits": [{"old_string": "a", "new_string": "b"}],
    }
    assert result.final_output is not None
    changed = {"path": "f", "old_string": "a", "new_string": "safe"}
    assert result.final_output.modified_tool_input == changed


async def test_a_failed_tool_is_claudes_failure_event(workshop: Workshop) -> None:
    """PostToolUseFailure is AfterTool with an error (issue 15.6)."""
    await workshop.fire("AfterTool", hook("claude"), given=FAILED)
    seen = workshop.seen()
    assert (seen["hook_event_name"], seen["error"]) == ("PostToolUseFailure", "no")
    await workshop.fire("AfterTool", hook("claude"), given=RAN)
    assert workshop.seen()["hook_event_name"] == "PostToolUse"
    await workshop.fire("AfterTool", hook("gemini"), given=FAILED)
    assert workshop.seen()["hook_event_name"] == "AfterTool"


@pytest.mark.parametrize("given", [RAN, FAILED], ids=["ran", "failed"])
async def test_a_condition_tells_the_two_events_of_claude_apart(
    workshop: Workshop, given: dict[str, Any]
) -> None:
    """Decision 0125: a PostToolUse hook and one for failures only."""
    await workshop.fire(
        "AfterTool",
        hook("claude", "touch ran", name="a", **{"if": CLAUDE_ONLY_SUCCESS}),
        hook("claude", "touch failed", name="b", **{"if": CLAUDE_ONLY_FAILURE}),
        hook("claude", "touch both", name="c"),
        given=given,
    )
    assert workshop.ran("ran") is (given is RAN)
    assert workshop.ran("failed") is (given is FAILED)
    assert workshop.ran("both")


@pytest.mark.parametrize("key", ["updatedInput", "tool_input"])
async def test_a_changed_input_replaces_the_whole_input(
    workshop: Workshop, key: str
) -> None:
    dialect = "claude" if key == "updatedInput" else "gemini"
    output = {"hookSpecificOutput": {key: {"file_path": "b"}}}
    given = {"tool_name": "write_file", "tool_input": {"path": "a", "mode": "x"}}
    result = await workshop.fire("BeforeTool", says(dialect, output), given=given)
    assert result.final_output is not None
    assert result.final_output.modified_tool_input == {"path": "b"}


DENY = """echo '{"decision": "deny", "reason": "no secrets"}'"""
DENIES = {
    "deny": DENY,
    "block": """echo '{"decision": "block", "reason": "no secrets"}'""",
    "exit 2": "echo no secrets >&2; exit 2",
    "deny on stderr": f"{DENY} >&2",
    "deny and exit 1": f"{DENY}; exit 1",
    "text and exit 2": "echo no secrets; exit 2",
    "text and exit 3": "echo no secrets >&2; exit 3",
    "deny and exit 2": f"{DENY}; exit 2",
}


@pytest.mark.parametrize("command", DENIES.values(), ids=DENIES)
async def test_gemini_withholds_a_result_that_is_denied(
    workshop: Workshop, command: str
) -> None:
    """HOSTS: the result is hidden, the reason takes its place; the secret is out."""
    config = workshop.config(
        workshop.settings("AfterTool", hook("gemini", f"cat >/dev/null; {command}"))
    )
    async with config:
        result = await execute_tool_with_hooks(
            config, "run_shell_command", {"command": "env"}, lambda _: "SECRET"
        )
    assert "no secrets" in str(result.llm_content)
    assert "SECRET" not in str(result)


NO_ANSWERS = {
    "half of it": f"{DENY.replace('}', ',')}",
    "cut off": """printf '{"decision": "deny"}%99s' x""",
    "killed": f"{DENY}; kill -9 $$",
    "nothing": "exit 3",
}


@pytest.mark.parametrize("command", NO_ANSWERS.values(), ids=NO_ANSWERS)
async def test_gemini_has_no_answer_from_a_run_that_broke(
    workshop: Workshop, command: str
) -> None:
    hooks = hook("gemini", f"cat >/dev/null; {command}")
    limit = {"maxOutputBytes": 60}
    result = await workshop.fire("BeforeTool", hooks, config=limit)
    assert not result.blocked
    assert not result.aggregated.success


async def test_gemini_blocks_by_exit_2_whatever_the_json_says(
    workshop: Workshop,
) -> None:
    command = """echo '{"decision": "allow"}'; echo no >&2; exit 2"""
    result = await workshop.fire("BeforeTool", hook("gemini", command))
    assert (result.blocked, result.reason) == (True, "no")


async def test_claude_reads_no_json_of_a_failed_hook(workshop: Workshop) -> None:
    result = await workshop.fire("BeforeTool", hook("claude", f"{DENY}; exit 1"))
    assert not result.blocked


async def test_what_its_own_host_sent_is_never_ambiguous(workshop: Workshop) -> None:
    """Claude Code itself runs the tool, with the one field that the hook sees."""
    asked = {"url": "https://a.org", "prompt": "compare it with https://b.org"}
    given = {"tool_name": "web_fetch", "tool_input": asked}
    assert (await workshop.fire("BeforeTool", hook("claude"), given=given)).ask
    sent = {"name": "claude", "event": "PreToolUse", "tool_name": "WebFetch"}
    given = {**given, "host": {**sent, "tool_input": asked}}
    assert not (await workshop.fire("BeforeTool", hook("claude"), given=given)).ask


async def test_claude_annotates_a_result_that_is_blocked(workshop: Workshop) -> None:
    output = {"decision": "block", "reason": "look again"}
    config = workshop.config(workshop.settings("AfterTool", says("claude", output)))
    async with config:
        result = await execute_tool_with_hooks(
            config, "run_shell_command", {"command": "env"}, lambda _: "RESULT"
        )
    assert "RESULT" in str(result.llm_content)
    assert "look again" in str(result.llm_content)


@pytest.mark.parametrize(
    "replaced",
    [
        {"stdout": "clean", "stderr": "", "interrupted": False, "isImage": False},
        "clean",
    ],
    ids=["object", "text"],
)
async def test_claude_replaces_a_result(workshop: Workshop, replaced: Any) -> None:
    output = {"hookSpecificOutput": {"updatedToolOutput": replaced}}
    config = workshop.config(workshop.settings("AfterTool", says("claude", output)))
    async with config:
        result = await execute_tool_with_hooks(
            config, "run_shell_command", {"command": "env"}, lambda _: "SECRET"
        )
    assert str(result.llm_content).startswith("clean")
    assert "SECRET" not in str(result)


@pytest.mark.parametrize("dialect", ["claude", "gemini"])
async def test_a_message_beside_an_ask_is_the_question(
    workshop: Workshop, dialect: str
) -> None:
    """protocol.md#callers: without it an agent asks about nothing."""
    asks = says(dialect, {"decision": "ask", "systemMessage": "really?"})
    result = await workshop.fire("BeforeTool", asks, given=SHELL)
    assert result.ask
    assert result.final_output is not None
    assert result.final_output.reason == "really?"


@pytest.mark.parametrize("command", DENIES.values(), ids=DENIES)
async def test_gemini_replaces_an_answer_that_is_denied(
    workshop: Workshop, command: str
) -> None:
    result = await workshop.fire(
        "AfterModel",
        hook("gemini", f"cat >/dev/null; {command}"),
        workshop.says({"hookSpecificOutput": {"llm_response": {"text": "open"}}}),
        sequential=True,
    )
    assert specific(result)["llm_response"]["text"] == "no secrets"
    assert not result.blocked


@pytest.mark.parametrize("dialect", ["claude", "gemini"])
@pytest.mark.parametrize("event", [E.BeforeTool, E.BeforeAgent, E.AfterAgent])
async def test_a_block_and_a_stop_mean_what_they_mean_with_us(
    workshop: Workshop, event: E, dialect: str
) -> None:
    blocks = says(dialect, {"decision": "block", "reason": "no"})
    stops = says(dialect, {"continue": False, "stopReason": "enough"})
    quiet = says(dialect, {"suppressOutput": True})
    assert (await workshop.fire(event, blocks)).reason == "no"
    assert (await workshop.fire(event, stops)).stop_reason == "enough"
    assert (await workshop.fire(event, quiet)).suppress_output


@pytest.mark.parametrize(
    "event", ["SessionStart", "SessionEnd", "Notification", "SubagentStart"]
)
async def test_a_block_where_claude_code_has_none_is_for_the_person(
    workshop: Workshop, event: str
) -> None:
    """protocol.md#dialects: exit 2 on these events is shown, and nothing else."""
    for answer in ("echo no >&2; exit 2", f"echo '{DENY.replace('deny', 'block')}'"):
        result = await workshop.fire(event, hook("claude", answer))
        assert (result.blocked, result.should_stop) == (False, False)
        assert result.user_message == "no"
        assert result.final_output is None or not result.final_output.is_blocking


MESSAGES = {
    "JSON": (0, 'echo \'{"systemMessage": "for you"}\'', "for you"),
    "a crash": (1, "echo broken >&2; exit 1", "Warning: broken"),
}


@pytest.mark.parametrize("dialect", ["claude", "gemini"])
@pytest.mark.parametrize("case", MESSAGES.values(), ids=MESSAGES)
async def test_messages_go_to_the_person_and_the_log_and_not_to_the_model(
    workshop: Workshop,
    dialect: str,
    case: tuple[int, str, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    exit_code, command, message = case
    with caplog.at_level(logging.INFO, "hookline"):
        result = await workshop.fire(
            "BeforeTool", hook(dialect, f"cat >/dev/null; {command}")
        )
    assert (result.system_message, result.user_message) == (None, message)
    assert result.final_output is not None
    assert result.final_output.system_message is None
    assert result.aggregated.hook_results[0].exit_code == exit_code
    assert any(message in str(record.__dict__) for record in caplog.records)


@pytest.mark.parametrize("dialect", ["claude", "gemini"])
async def test_no_message_reaches_the_model_with_the_result_of_a_tool(
    workshop: Workshop, dialect: str
) -> None:
    output = {"systemMessage": "for the person"}
    both = {"hooks": [says(dialect, output)]}
    settings = {"hooks": {"BeforeTool": [both], "AfterTool": [both]}}
    config = workshop.config(settings)
    async with config:
        result = await execute_tool_with_hooks(
            config, "run_shell_command", {"command": "ls"}, lambda _: "out"
        )
    assert result.llm_content == "out"


async def test_plain_text_is_context_in_claude_and_a_message_in_gemini(
    workshop: Workshop,
) -> None:
    for event in (E.SessionStart, E.BeforeAgent):
        claude = await workshop.fire(event, hook("claude", "echo hello"))
        assert specific(claude)["additionalContext"] == "hello"
        gemini = await workshop.fire(event, hook("gemini", "echo hello"))
        assert gemini.user_message == "hello"
        assert specific(gemini) == {}
    other = await workshop.fire("BeforeTool", hook("claude", "echo hello"))
    assert (other.system_message, other.user_message) == (None, None)


async def test_an_observing_hook_says_nothing_to_anybody(workshop: Workshop) -> None:
    quiet = says("claude", {"systemMessage": "m"}, mode="observe")
    result = await workshop.fire("BeforeTool", quiet)
    assert result.user_message is None


async def test_a_message_means_the_same_over_a_bus(workshop: Workshop) -> None:
    settings = workshop.settings("BeforeTool", says("claude", {"systemMessage": "m"}))
    bus = InMemoryMessageBus()
    async with HookSystem(workshop.config(settings), message_bus=bus):
        remote = RemoteHooks(HookBusClient(bus))
        result = await remote.fire("BeforeTool", INPUTS[E.BeforeTool])
    assert (result.system_message, result.user_message) == (None, "m")


WORKER = """
import json, os, sys
names = ("CLAUDECODE", "GEMINI_CWD", "GEMINI_SESSION_ID", "GEMINI_PROJECT_DIR",
         "CLAUDE_PROJECT_DIR", "LLXPRT_PROJECT_DIR", "HOOKLINE_CWD", "GEMINI_API_KEY")
for line in sys.stdin if os.environ.get("HOOKLINE_WORKER") else [sys.stdin.read()]:
    request = json.loads(line)
    env = {**os.environ, **request.get("env", {})}
    with open("env.json", "w") as file:
        json.dump({name: env[name] for name in names if name in env}, file)
    answer = {"id": request.get("id"), "exit_code": 0, "stdout": "", "stderr": ""}
    if "id" in request:
        print(json.dumps(answer), flush=True)
"""


@pytest.mark.parametrize("kind", ["command", "worker", "standby"])
@pytest.mark.parametrize("dialect", ["claude", "gemini"])
async def test_a_hook_has_the_variables_of_its_host(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, dialect: str, kind: str
) -> None:
    """Also where the host of Hookline is another one of these."""
    for name in ("GEMINI_API_KEY", "GEMINI_SESSION_ID", "CLAUDECODE"):
        monkeypatch.setenv(name, "inherited")
    (workshop.folder / "h.py").write_text(WORKER)
    kinds: dict[str, Any] = {"standby": {"standby": 1}, "worker": {"type": "worker"}}
    theirs = hook(dialect, f"{sys.executable} h.py", **kinds.get(kind, {}))
    config = workshop.config(workshop.settings("BeforeTool", theirs))
    async with HookSystem(config) as hooks:
        for _ in range(2):
            await hooks.event_handler.fire("BeforeTool", SHELL)
            seen = workshop.seen("env.json")
    folder = str(workshop.folder)
    common = {"CLAUDE_PROJECT_DIR": folder, "HOOKLINE_CWD": folder}
    if dialect == "claude":
        assert seen == common | {"CLAUDECODE": "1"}
    else:
        assert seen == common | {
            "GEMINI_PROJECT_DIR": folder,
            "LLXPRT_PROJECT_DIR": folder,
            "GEMINI_SESSION_ID": "s-1",
            "GEMINI_CWD": folder,
            "GEMINI_API_KEY": "inherited",
        }


async def test_a_variable_of_the_hooks_own_counts_more(workshop: Workshop) -> None:
    own = {"GEMINI_API_KEY": "k", "CLAUDECODE": "2"}
    command = 'echo "$GEMINI_API_KEY $CLAUDECODE" > own'
    await workshop.fire("BeforeTool", hook("claude", command, env=own))
    assert (workshop.folder / "own").read_text() == "k 2\n"


@pytest.mark.parametrize("dialect", ["claude", "gemini"])
async def test_a_failed_guard_still_closes_its_event(
    workshop: Workshop, dialect: str
) -> None:
    fails = hook(dialect, "echo why >&2; exit 1", onError="block")
    result = await workshop.fire("BeforeTool", fails)
    assert result.blocked
    after = await workshop.fire("AfterTool", fails)
    assert specific(after)["withholdResult"] is True


async def test_an_async_hook_of_claude_is_not_waited_for(workshop: Workshop) -> None:
    waits: dict[str, Any] = {"async": True}
    config = workshop.config(workshop.settings("AfterTool", hook("claude", **waits)))
    async with HookSystem(config) as hooks:
        result = await hooks.event_handler.fire("AfterTool", RAN)
    assert result.aggregated.hook_results[0].is_async
    assert workshop.seen()["tool_name"] == "Bash"


DENY = json.dumps({"decision": "deny", "reason": "no"})


@pytest.mark.parametrize(
    ("dialect", "command", "blocked"),
    [
        ("llxprt", f"echo '{DENY}'", True),
        ("llxprt", f"echo '{DENY}'; exit 1", False),
        ("llxprt", f"echo '{DENY}'; exit 3", False),
        ("llxprt", f"echo '{DENY}' >&2; exit 5", False),
        ("llxprt", f"echo '{DENY}' >&2", False),
        ("gemini", f"echo '{DENY}' >&2", True),
        ("llxprt", "echo text >&2; exit 3", False),
        ("llxprt", "echo no >&2; exit 2", True),
        ("llxprt", "exit 2", True),
        ("llxprt", "exit 127", False),
        ("gemini", f"echo '{DENY}'; exit 1", True),
        ("gemini", f"echo '{DENY}'; exit 3", True),
        ("gemini", "echo text >&2; exit 3", True),
        ("gemini", "exit 2", True),
    ],
)
async def test_an_exit_code_means_what_it_means_in_the_hooks_own_agent(
    workshop: Workshop, dialect: str, command: str, blocked: bool
) -> None:
    """protocol.md#dialects: llxprt-code reads JSON on exit 0, and denies on exit 2."""
    result = await workshop.fire("BeforeTool", hook(dialect, command), given=SHELL)
    assert result.blocked is blocked
    assert result.system_message is None


async def test_an_llxprt_hook_answers_as_in_gemini_and_sees_its_own_variable(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """protocol.md#dialects; a key of an API is no variable of another agent."""
    for name in ("GEMINI_SESSION_ID", "GEMINI_CWD", "CLAUDECODE", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "from outside")
    change = {"hookSpecificOutput": {"tool_input": {"command": "true"}}}
    command = f"env > variables; cat > seen.json; echo '{json.dumps(change)}'"
    tool_input = {"command": "ls", "timeout": 5}
    result = await workshop.fire(
        "BeforeTool",
        hook("llxprt", command),
        given={**SHELL, "tool_input": tool_input},
        matcher="run_shell_command",
    )
    assert result.final_output is not None
    assert result.final_output.modified_tool_input == {"command": "true"}
    lines = (workshop.folder / "variables").read_text().splitlines()
    names = {line.partition("=")[0] for line in lines}
    assert {"LLXPRT_PROJECT_DIR", "GEMINI_API_KEY"} <= names
    hidden = {"GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "GEMINI_CWD", "CLAUDECODE"}
    assert not {*hidden, "GEMINI_SESSION_ID"} & names
    denied = await workshop.fire(
        "AfterTool", says("llxprt", json.loads(DENY)), given=RAN
    )
    assert specific(denied)["withholdResult"] is True
