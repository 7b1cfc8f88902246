"""Scripts written for Claude Code, run under migrated settings by our pipeline.

They are written in the manner of its manual: exit codes, ``permissionDecision``,
``updatedInput``, plain text as context. None of them knows of Hookline.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from hookline import Config, HookSystem, ProcessedHookResult, Settings
from tests.support.commandline import hookline


class ClaudeProject:
    """A project set up for Claude Code, then migrated by the command line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._hooks: dict[str, list[dict[str, Any]]] = {}
        (folder / ".claude/hooks").mkdir(parents=True)

    def hook(self, event: str, source: str, matcher: str | None = None) -> None:
        name = f"hook{len(list((self.folder / '.claude/hooks').iterdir()))}.py"
        (self.folder / ".claude/hooks" / name).write_text(dedent(source))
        command = f'"{sys.executable}" "$CLAUDE_PROJECT_DIR"/.claude/hooks/{name}'
        group: dict[str, Any] = {"matcher": matcher} if matcher is not None else {}
        group["hooks"] = [{"type": "command", "command": command, "timeout": 30}]
        self._hooks.setdefault(event, []).append(group)

    async def fire(self, event: str, **fields: Any) -> ProcessedHookResult:
        theirs = self.folder / ".claude/settings.json"
        theirs.write_text(json.dumps({"hooks": self._hooks}))
        ended = hookline("migrate", "--from", "claude", "--force", cwd=self.folder)
        assert ended.returncode == 0, ended.stderr
        ours = Settings.from_file(self.folder / ".hookline/settings.json")
        async with HookSystem(Config("s-1", self.folder, ours)) as hooks:
            return await hooks.event_handler.fire(event, fields)


@pytest.fixture
def project(tmp_path: Path) -> ClaudeProject:
    folder = tmp_path / "my project"
    folder.mkdir()
    return ClaudeProject(folder)


VALIDATOR = """
    import json, re, sys
    try:
        input_data = json.load(sys.stdin)
    except json.JSONDecodeError as e:
        print(f"Error: Invalid JSON input: {e}", file=sys.stderr)
        sys.exit(1)
    if input_data.get("tool_name", "") != "Bash":
        sys.exit(1)
    command = input_data.get("tool_input", {}).get("command", "")
    if re.search(r"\\bgrep\\b(?!.*\\|)", command):
        print("Use 'rg' instead of 'grep'", file=sys.stderr)
        sys.exit(2)
"""


async def test_validator_by_exit_code_sees_its_own_tool_name(
    project: ClaudeProject,
) -> None:
    project.hook("PreToolUse", VALIDATOR, "Bash")
    fields = {"tool_name": "run_shell_command", "tool_input": {"command": "grep x ."}}
    result = await project.fire("BeforeTool", **fields)
    assert result.blocked
    assert result.reason == "Use 'rg' instead of 'grep'"


async def test_matcher_keeps_other_tools_out(project: ClaudeProject) -> None:
    project.hook("PreToolUse", "import sys; sys.exit(2)", "Bash")
    result = await project.fire("BeforeTool", tool_name="write_file", tool_input={})
    assert result.aggregated.hook_results == []


PERMISSION = """
    import json, sys
    data = json.load(sys.stdin)
    path = data["tool_input"]["file_path"]
    decision = "deny" if path.endswith(".env") else "ask" if "prod" in path else "allow"
    print(json.dumps({"hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": f"{decision} for {path}",
    }, "suppressOutput": True}))
"""


@pytest.mark.parametrize(
    ("path", "blocked", "ask"),
    [(".env", True, False), ("prod.yml", False, True), ("a.txt", False, False)],
)
async def test_permission_decision_counts(
    project: ClaudeProject, path: str, blocked: bool, ask: bool
) -> None:
    project.hook("PreToolUse", PERMISSION, "Edit|Write")
    fields = {"tool_name": "write_file", "tool_input": {"path": path, "content": ""}}
    result = await project.fire("BeforeTool", **fields)
    assert (result.blocked, result.ask) == (blocked, ask)
    assert result.suppress_output
    if blocked:
        assert result.reason == f"deny for {path}"


async def test_updated_input_replaces_the_whole_input(project: ClaudeProject) -> None:
    project.hook(
        "PreToolUse",
        """
        import json, sys
        command = json.load(sys.stdin)["tool_input"]["command"]
        print(json.dumps({"hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "allow",
            "updatedInput": {"command": command + " --dry-run"}}}))
        """,
        "Bash",
    )
    tool_input = {"command": "deploy", "description": "go", "directory": "x"}
    result = await project.fire(
        "BeforeTool", tool_name="run_shell_command", tool_input=tool_input
    )
    assert result.final_output
    assert result.final_output.modified_tool_input == {"command": "deploy --dry-run"}


async def test_formatter_after_a_tool_finds_the_path_and_the_response(
    project: ClaudeProject,
) -> None:
    project.hook(
        "PostToolUse",
        """
        import json, sys
        data = json.load(sys.stdin)
        assert data["hook_event_name"] == "PostToolUse"
        print(json.dumps({
            "decision": "block", "reason": "fix " + data["tool_input"]["file_path"],
            "hookSpecificOutput": {"hookEventName": "PostToolUse",
                "additionalContext": str(data["tool_response"]["success"])}}))
        """,
        "Edit|Write|MultiEdit",
    )
    result = await project.fire(
        "AfterTool",
        tool_name="replace",
        tool_input={"file_path": "/a.py", "old_string": "x", "new_string": "y"},
        tool_response={"llmContent": "ok", "returnDisplay": "ok"},
    )
    assert not result.blocked  # the tool has run
    assert result.final_output
    assert result.final_output.reason == "fix /a.py"
    assert result.final_output.additional_context == "True"


async def test_prompt_hook_adds_plain_text_as_context(project: ClaudeProject) -> None:
    project.hook(
        "UserPromptSubmit",
        """
        import json, sys
        data = json.load(sys.stdin)
        if "secret" in data["prompt"]:
            print(json.dumps({"decision": "block", "reason": "no secrets"}))
        else:
            print("Current time: noon")
        """,
    )
    result = await project.fire("BeforeAgent", prompt="hello")
    assert result.final_output
    assert result.final_output.additional_context == "Current time: noon"
    assert result.system_message is None
    blocked = await project.fire("BeforeAgent", prompt="my secret")
    assert blocked.reason == "no secrets"


STOP = """
    import json, sys
    data = json.load(sys.stdin)
    if data["stop_hook_active"]:
        sys.exit(0)
    print(json.dumps({"decision": "block",
                      "reason": "run the tests: " + data["last_assistant_message"]}))
"""


@pytest.mark.parametrize("active", [False, True])
async def test_stop_hook_sends_the_agent_back_once(
    project: ClaudeProject, active: bool
) -> None:
    project.hook("Stop", STOP)
    result = await project.fire(
        "AfterAgent", prompt="p", prompt_response="done", stop_hook_active=active
    )
    assert result.blocked is not active
    assert result.reason == (None if active else "run the tests: done")


async def test_session_start_hook_adds_context(project: ClaudeProject) -> None:
    project.hook(
        "SessionStart",
        """
        import json, os, sys
        data = json.load(sys.stdin)
        print(json.dumps({"hookSpecificOutput": {"hookEventName": "SessionStart",
            "additionalContext": data["source"] + " in "
            + os.path.basename(os.environ["CLAUDE_PROJECT_DIR"])}}))
        """,
        "startup|resume",
    )
    result = await project.fire("SessionStart", source="resume")
    assert result.final_output
    assert result.final_output.additional_context == "resume in my project"
    other = await project.fire("SessionStart", source="clear")
    assert other.aggregated.hook_results == []


async def test_continue_false_stops(project: ClaudeProject) -> None:
    project.hook(
        "PreToolUse", """print('{"continue": false, "stopReason": "enough"}')"""
    )
    result = await project.fire("BeforeTool", tool_name="x", tool_input={})
    assert (result.should_stop, result.stop_reason) == (True, "enough")


async def test_text_of_a_tool_hook_is_not_shown_to_the_model(
    project: ClaudeProject,
) -> None:
    project.hook("PreToolUse", "print('checking...')")
    result = await project.fire("BeforeTool", tool_name="x", tool_input={})
    assert result.system_message is None
    assert not result.blocked


async def test_failing_script_warns_the_person_and_lets_pass(
    project: ClaudeProject,
) -> None:
    project.hook("PreToolUse", "import sys; sys.exit('broken')")
    result = await project.fire("BeforeTool", tool_name="x", tool_input={})
    assert not result.blocked
    assert result.system_message is None
    (hook,) = result.aggregated.hook_results
    assert hook.user_message == "Warning: broken"
