"""Matchers and rules in the words of the coding agent (issue 26, item 13)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hookline.hosts.bridge import Bridge
from tests.support.commandline import hookline

PATCH = "*** Begin Patch\n*** Add File: a.env\n+x\n*** Delete File: b\n*** End Patch\n"
MULTI = {"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}]}
SHELL = {"command": "ls"}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's settings file."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    (tmp_path / "config" / "hookline").mkdir(parents=True)
    return tmp_path / "config" / "hookline" / "settings.json"


def write(file: Path, *hooks: Any, event: str = "BeforeTool", **group: Any) -> None:
    file.write_text(json.dumps({"hooks": {event: [{**group, "hooks": list(hooks)}]}}))


def deny(when: str = "true", reason: str = "no") -> dict[str, Any]:
    then = {"decision": "deny", "reason": reason}
    return {"type": "rule", "name": "guard", "when": when, "then": then}


async def answer(host: str, event: str, name: str, tool_input: Any) -> str:
    keys = {"sessionId": "s", "session_id": "s", "hook_event_name": event}
    if host == "vscode":
        keys["hookEventName"] = event
    payload = {**keys, "cwd": "", "tool_name": name, "tool_input": tool_input}
    bridge = Bridge(one_shot=True)
    try:
        reply = await bridge.answer(host, event, json.dumps(payload).encode())
    finally:
        await bridge.close()
    return (reply.stdout + reply.stderr).decode()


@pytest.mark.parametrize(
    ("matcher", "host", "name", "tool_input", "runs"),
    [
        ("^Bash$", "claude", "Bash", SHELL, True),
        ("Bash", "claude", "Bash", SHELL, True),
        ("run_shell_command", "claude", "Bash", SHELL, True),
        ("Write|Edit", "claude", "Write", {"file_path": "a"}, True),
        ("Write|Edit", "claude", "Read", {"file_path": "a"}, False),
        ("^MultiEdit$", "claude", "MultiEdit", MULTI, True),
        ("^apply_patch$", "codex", "apply_patch", {"input": PATCH}, True),
        ("^create$", "copilot", "create", {"path": "a", "file_text": "b"}, True),
        ("^run_in_terminal$", "vscode", "run_in_terminal", SHELL, True),
        # "All but this one" holds for both names.
        ("^(?!read_file$)", "claude", "Read", {"file_path": "a"}, False),
        ("^(?!Read$)", "claude", "Read", {"file_path": "a"}, False),
        ("^(?!Read$)", "claude", "Write", {"file_path": "a"}, True),
        ("^.*(?<!_file)$", "claude", "Read", {"file_path": "a"}, False),
        (r"Read|\(?!", "claude", "Read", {"file_path": "a"}, True),
        ("Read|[(?!]", "claude", "Read", {"file_path": "a"}, True),
        # Literal, because it is not valid; every name, because it takes too long.
        ("Bash(", "claude", "Bash", SHELL, False),
        (r"^((a+)+)+\1$", "claude", "Bash", SHELL, True),
        ("^x$", "claude", "y" * 257, {}, True),
        ("^x$", "claude", "y" * 256, {}, False),
    ],
)
async def test_matcher_is_searched_in_our_name_and_the_agents(
    settings: Path, matcher: str, host: str, name: str, tool_input: Any, runs: bool
) -> None:
    """protocol.md#planning: both names; both must match under a negative lookaround."""
    write(settings, deny(), matcher=matcher)
    said = await answer(host, "PreToolUse", name, tool_input)
    assert ('"no' in said) is runs, said


async def test_matcher_in_the_agents_words_holds_for_commands_and_after_the_tool(
    settings: Path, tmp_path: Path
) -> None:
    command = {"type": "command", "command": f"cat > {tmp_path}/shown"}
    write(settings, command, event="AfterTool", matcher="^Write$")
    given = {"file_path": "a", "content": "b"}
    payload: dict[str, Any] = {"session_id": "s", "cwd": ""}
    payload |= {
        "hook_event_name": "PostToolUse",
        "tool_name": "Write",
        "tool_input": given,
        "tool_response": "ok",
    }
    bridge = Bridge(one_shot=True)
    await bridge.answer("claude", None, json.dumps(payload).encode())
    await bridge.close()
    shown = json.loads((tmp_path / "shown").read_text())
    assert shown["tool_name"] == "write_file"
    assert shown["tool_input"] == {"path": "a", "content": "b"}


ENV = {"file_path": "/x/.env", "content": "b"}


@pytest.mark.parametrize(
    ("when", "host", "name", "tool_input"),
    [
        ("tool_input.file_path.endsWith('.env')", "claude", "Write", ENV),
        ("tool_input['file_path'] == tool_input.path", "claude", "Write", ENV),
        ("has(tool_input.file_path)", "claude", "Write", ENV),
        ("'file_path' in tool_input", "claude", "Write", ENV),
        ("event.tool_input.file_path == '/x/.env'", "claude", "Write", ENV),
        ("tool_input.file_path.glob('**/.env')", "claude", "Write", ENV),
        ("['file_path'].exists(k, tool_input[k] != '')", "claude", "Write", ENV),
        ("size(tool_input) > 0 && tool_input.file_path != ''", "claude", "Write", ENV),
        ("tool_input.file_path == 'a'", "claude", "MultiEdit", MULTI),
        ("tool_input.edits[0].new_string == 'y'", "claude", "MultiEdit", MULTI),
        ("tool_input.filePath == 'a'", "vscode", "create_file", {"filePath": "a"}),
        (
            *("tool_input.oldString == 'x'", "vscode", "multi_replace_string_in_file"),
            {"replacements": [{"filePath": "a", "oldString": "x", "newString": "y"}]},
        ),
        ("tool_input.file_text == 'b'", "copilot", "create", {"file_text": "b"}),
        ("tool_input.cmd == 'ls'", "codex", "exec_command", {"cmd": "ls"}),
        (
            "tool_input.absolute_path == 'a'",
            "qwen",
            "read_file",
            {"absolute_path": "a"},
        ),
        (
            *("tool_input.notebook_path == 'a'", "claude", "NotebookEdit"),
            {"notebook_path": "a", "new_source": "b"},
        ),
    ],
)
async def test_rule_reads_the_agents_own_spelling_of_a_field(
    settings: Path, when: str, host: str, name: str, tool_input: Any
) -> None:
    """protocol.md#rules: the same value under the agent's own name."""
    write(settings, deny(when))
    assert "no" in await answer(host, "PreToolUse", name, tool_input)


@pytest.mark.parametrize(
    "when", ["size(tool_input) != 2", "'absolute_path' in tool_input"]
)
async def test_rule_sees_no_keys_that_neither_it_nor_the_agent_names(
    settings: Path, when: str
) -> None:
    write(settings, deny(when))
    assert json.loads(await answer("claude", "PreToolUse", "Write", ENV)) == {}


async def test_agents_spelling_gives_the_value_that_another_hook_has_set(
    settings: Path,
) -> None:
    """Also in ``then`` and ``if``: the tool runs with that value."""
    change = {"hookSpecificOutput": {"tool_input": {"path": "/y/.env"}}}
    first = {"type": "rule", "name": "first", "when": "true", "then": change}
    guard = deny("true", "not ${tool_input.file_path}")
    guard["if"] = "tool_input.file_path == '/y/.env'"
    write(settings, first, guard, sequential=True)
    said = await answer("claude", "PreToolUse", "Write", {"file_path": "a"})
    assert "not /y/.env" in said


async def test_policies_read_the_agents_own_spelling(
    settings: Path, tmp_path: Path
) -> None:
    pytest.importorskip("cedarpy")
    text = "permit(principal, action, resource) unless "
    text += (
        '{ context.tool_input has file_path && context.tool_input.file_path == "a" };'
    )
    (tmp_path / "p.cedar").write_text(text)
    hook = {"type": "cedar", "name": "guard", "policies": [str(tmp_path / "p.cedar")]}
    write(settings, hook)
    denied = await answer("claude", "PreToolUse", "Write", {"file_path": "a"})
    assert "deny" in denied
    assert "deny" not in await answer(
        "claude", "PreToolUse", "Write", {"file_path": "b"}
    )


def test_explain_matches_the_agents_name_of_a_recorded_event(
    settings: Path, tmp_path: Path
) -> None:
    write(settings, deny("tool_input.file_path == 'a'"), matcher="^Write$")
    host = {"name": "claude", "tool_name": "Write", "tool_input": {"file_path": "a"}}
    given = {"tool_name": "write_file", "tool_input": {"path": "a"}, "host": host}
    (tmp_path / "event.json").write_text(json.dumps(given))
    words = ("explain", "BeforeTool", "--input", str(tmp_path / "event.json"), "--json")
    [hook] = json.loads(hookline(*words).stdout)["hooks"]
    assert hook["runs"]
    assert "'write_file' or 'Write'" in hook["why"]
    assert hook["rule"]["outcome"] == "true"
    assert hook["rule"]["values"] == {"tool_input.file_path": "a"}
