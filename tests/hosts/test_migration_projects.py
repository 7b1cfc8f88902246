"""Whole projects of other agents, migrated, checked, approved and run (issue 15.6).

Settings and scripts are written in the manner of public ones. What blocked there must
block here, with the host's names on the script's stdin; what passed must pass.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from hookline import ProcessedHookResult
from hookline.cli.main import main
from tests.support.project import Project
from tests.support.web import WebServer, reply

PY = f'"{sys.executable}"'


class Migration:
    """A project of another agent, and what migrate said about it."""

    def __init__(self, project: Project, capsys: pytest.CaptureFixture[str]) -> None:
        self.project = project
        self.folder = project.folder
        self._capsys = capsys
        self.said = ""

    def write(self, name: str, text: str | dict[str, Any]) -> Path:
        content = text if isinstance(text, str) else json.dumps(text)
        return self.project.write(name, dedent(content), 0o755)

    def run(self, source: str = "claude", *paths: str) -> None:
        """Migrate, check and approve."""
        here = ("--cwd", str(self.folder))
        given = [str(self.folder / path) for path in paths or (".",)]
        self._capsys.readouterr()
        status = main(["migrate", "--from", source, *given, *here])
        self.said = "".join(self._capsys.readouterr())
        assert status == 0, self.said
        assert main(["check", *here]) == 0
        found = self._capsys.readouterr().out
        assert ": warning: " not in found, found
        assert self.project.trust() == 0

    async def fire(self, event: str, **fields: Any) -> ProcessedHookResult:
        async with self.project.system() as hooks:
            return await hooks.event_handler.fire(event, fields)

    async def tool(self, name: str, **tool_input: Any) -> ProcessedHookResult:
        return await self.fire("BeforeTool", tool_name=name, tool_input=tool_input)

    async def shell(self, command: str) -> ProcessedHookResult:
        return await self.tool("run_shell_command", command=command)

    def settings(self, name: str = "settings.json") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            (self.folder / ".hookline" / name).read_text()
        )
        return found


@pytest.fixture
def migration(project: Project, capsys: pytest.CaptureFixture[str]) -> Migration:
    return Migration(project, capsys)


def hook(command: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": command, **more}


def groups(*hooks: dict[str, Any], matcher: str | None = None) -> list[dict[str, Any]]:
    head = {} if matcher is None else {"matcher": matcher}
    return [{**head, "hooks": list(hooks)}]


NO_PUSH = "echo 'ask a person to push' >&2; exit 2"


async def test_condition_on_a_command_holds_for_that_command_only(
    migration: Migration,
) -> None:
    """An unconditional deny, narrowed by ``if``, as people write it."""
    guard = groups(hook(NO_PUSH, **{"if": "Bash(git push:*)"}), matcher="Bash")
    migration.write(".claude/settings.json", {"hooks": {"PreToolUse": guard}})
    migration.run()
    for line in (
        "git push",
        "cd app && git push -f",
        "FOO=1 git push o",
        "sudo git push",
    ):
        assert (await migration.shell(line)).reason == "ask a person to push", line
    for line in ("ls", "git log --grep push", "echo 'git push'"):
        assert not (await migration.shell(line)).aggregated.hook_results, line


async def test_permission_rule_as_a_matcher_becomes_a_condition(
    migration: Migration,
) -> None:
    guard = groups(hook(NO_PUSH), matcher="Bash(git push:*)|Write(*.lock)")
    migration.write(".claude/settings.json", {"hooks": {"PreToolUse": guard}})
    migration.run()
    assert "never matches in Claude Code" in migration.said
    assert (await migration.shell("git push")).blocked
    assert not (await migration.shell("ls")).blocked
    assert (await migration.tool("write_file", path="a/x.lock", content="")).blocked
    assert not (await migration.tool("write_file", path="x.py", content="")).blocked


FORMATTER = """
    import json, os, pathlib, sys
    data = json.load(sys.stdin)
    log = pathlib.Path(os.environ["CLAUDE_PROJECT_DIR"], "log.txt")
    with log.open("a") as file:
        path = data["tool_input"]["file_path"]
        print(data["hook_event_name"], data["tool_name"], path, file=file)
"""
DONE = {"llmContent": "ok", "returnDisplay": "ok"}
FAILED = {**DONE, "error": {"message": "no such file"}}


async def test_formatter_runs_for_its_files_after_a_success(
    migration: Migration,
) -> None:
    """Comments and a trailing comma; ``env`` and ``permissions`` are reported."""
    command = json.dumps(f"{PY} $CLAUDE_PROJECT_DIR/.claude/format.py")
    migration.write(".claude/format.py", FORMATTER)
    migration.write(
        ".claude/settings.json",
        f"""\
        {{
          // formats what was written
          "env": {{"STYLE": "black"}},
          "permissions": {{"allow": ["Bash(ls:*)"], "deny": ["Read(.env)"]}},
          "hooks": {{"PostToolUse": [{{"matcher": "Edit|Write|MultiEdit", "hooks": [
            {{"type": "command", "if": "Write(*.py)", "command": {command}}},
          ]}}]}},
        }}""",
    )
    migration.run()
    assert "env: Claude Code sets STYLE" in migration.said
    assert "permissions: 2 rules" in migration.said
    for path, response in (("a.py", DONE), ("b.md", DONE), ("c.py", FAILED)):
        fields = {"tool_input": {"path": path}, "tool_response": response}
        await migration.fire("AfterTool", tool_name="write_file", **fields)
    unknown = {"tool_input": {"path": "d.py"}}  # as in ``hookline fire --tool``
    await migration.fire("AfterTool", tool_name="write_file", **unknown)
    expected = "PostToolUse Write a.py\nPostToolUse Write d.py\n"
    assert (migration.folder / "log.txt").read_text() == expected


async def test_hook_of_failures_sees_the_failure(migration: Migration) -> None:
    script = """
        import json, sys
        data = json.load(sys.stdin)
        said = data["hook_event_name"] + ": " + data["error"]
        print(json.dumps({"hookSpecificOutput": {
            "hookEventName": "PostToolUseFailure", "additionalContext": said}}))
    """
    migration.write(".claude/failed.py", script)
    failed = groups(hook(f"{PY} .claude/failed.py"), matcher="Bash")
    migration.write(".claude/settings.json", {"hooks": {"PostToolUseFailure": failed}})
    migration.run()
    call = {"tool_name": "run_shell_command", "tool_input": {"command": "x"}}
    result = await migration.fire("AfterTool", **call, tool_response=FAILED)
    assert result.final_output
    assert result.final_output.additional_context == "PostToolUseFailure: no such file"
    result = await migration.fire("AfterTool", **call, tool_response=DONE)
    assert not result.aggregated.hook_results


PLUGIN_GUARD = """
    import json, os, sys
    sys.path.insert(0, os.environ["CLAUDE_PLUGIN_ROOT"] + "/lib")
    from words import FORBIDDEN
    data = json.load(sys.stdin)
    if data["tool_name"] == "Bash" and FORBIDDEN in data["tool_input"]["command"]:
        print(f"{FORBIDDEN} is not allowed", file=sys.stderr)
        sys.exit(2)
"""
SHAPES = ["file", "bare", "inline", "named", "named-list", "args"]


@pytest.mark.parametrize("shape", SHAPES)
async def test_guard_of_a_plugin_finds_its_files(
    migration: Migration, shape: str
) -> None:
    """119 of 476 public hooks use CLAUDE_PLUGIN_ROOT, unquoted as a rule."""
    command = hook(f"{PY} ${{CLAUDE_PLUGIN_ROOT}}/hooks/guard.py", timeout=20)
    if shape == "args":
        args = ["${CLAUDE_PLUGIN_ROOT}/hooks/guard.py"]
        command = hook(sys.executable, args=args, timeout=20)
    events = {"PreToolUse": groups(command, matcher="Bash")}
    manifest: dict[str, Any] = {"name": "guard", "description": "guards"}
    if shape == "inline":
        manifest["hooks"] = events
    elif shape.startswith("named"):
        manifest["hooks"] = "./cfg/h.json" if shape == "named" else ["./cfg/h.json"]
        migration.write("my plugins/guard/cfg/h.json", {"hooks": events})
    else:
        wrapped = {"description": "guards", "hooks": events}
        written = events if shape == "bare" else wrapped
        migration.write("my plugins/guard/hooks/hooks.json", written)
    migration.write("my plugins/guard/.claude-plugin/plugin.json", manifest)
    migration.write("my plugins/guard/hooks/guard.py", PLUGIN_GUARD)
    migration.write("my plugins/guard/lib/words.py", "FORBIDDEN = 'rm -rf'")
    migration.run("claude", "my plugins/guard")
    assert "CLAUDE_PLUGIN_ROOT is " in migration.said
    assert "not converted" not in migration.said
    blocked = await migration.shell("rm -rf /")
    assert blocked.reason == "rm -rf is not allowed"
    assert not (await migration.shell("ls")).blocked


async def test_settings_and_plugins_are_migrated_together(migration: Migration) -> None:
    own = {"hooks": {"PreToolUse": groups(hook(NO_PUSH), matcher="WebFetch")}}
    migration.write(".claude/settings.json", own)
    command = hook("bash ${CLAUDE_PLUGIN_ROOT}/deny.sh")
    events = {"hooks": {"PreToolUse": groups(command, matcher="Bash")}}
    migration.write("plugin/hooks/hooks.json", events)
    migration.write("plugin/deny.sh", "echo from the plugin >&2; exit 2")
    migration.run("claude", ".", "plugin/hooks/hooks.json")
    assert (await migration.shell("x")).reason == "from the plugin"
    fetched = await migration.tool("web_fetch", url="https://example.com")
    assert fetched.reason == "ask a person to push"


async def test_local_settings_stay_local(migration: Migration) -> None:
    for name, word in (("settings.json", "shared"), ("settings.local.json", "local")):
        command = f"echo {word} >&2; exit 2"
        events = {"hooks": {"PreToolUse": groups(hook(command), matcher="Bash")}}
        migration.write(f".claude/{name}", events)
    migration.run()
    result = await migration.shell("ls")
    assert result.reason is not None
    assert sorted(result.reason.split("\n")) == ["local", "shared"]
    assert len(migration.settings("settings.local.json")["hooks"]["BeforeTool"]) == 1


ECHO = """
    import json, sys
    data = json.load(sys.stdin)
    kind = data.get("source") or data.get("notification_type") or data.get("agent_type")
    print(json.dumps({"hookSpecificOutput": {"hookEventName": data["hook_event_name"],
        "additionalContext": data["hook_event_name"] + " " + kind}}))
"""


@pytest.mark.parametrize(
    ("event", "matcher", "fields", "context"),
    [
        ("SessionStart", "startup|compact", {"source": "compress"}, "compact"),
        ("SessionStart", "startup|compact", {"source": "clear"}, None),
        ("SubagentStart", "^rev", {"agent_type": "reviewer"}, "reviewer"),
        ("SubagentStart", "Explore|Plan", {"agent_type": "Other"}, None),
    ],
)
async def test_lifecycle_hooks_are_matched_by_the_names_they_know(
    migration: Migration,
    event: str,
    matcher: str,
    fields: dict[str, Any],
    context: str | None,
) -> None:
    migration.write(".claude/echo.py", ECHO)
    found = {event: groups(hook(f"{PY} .claude/echo.py"), matcher=matcher)}
    migration.write(".claude/settings.json", {"hooks": found})
    migration.run()
    result = await migration.fire(event, agent_id="1", **fields)
    said = result.final_output and result.final_output.additional_context
    assert said == (context and f"{event} {context}")


async def test_async_notification_hook_runs_for_its_type(migration: Migration) -> None:
    command = "cat > $CLAUDE_PROJECT_DIR/seen.json"
    note = hook(command, **{"async": True})
    found = {"Notification": groups(note, matcher="idle_prompt|permission_prompt")}
    migration.write(".claude/settings.json", {"hooks": found})
    migration.run()
    other = {"message": "m", "notification_type": "auth_success"}
    assert not (await migration.fire("Notification", **other)).aggregated.hook_results
    await migration.fire("Notification", message="m", notification_type="idle_prompt")
    seen = json.loads((migration.folder / "seen.json").read_text())
    assert seen["notification_type"] == "idle_prompt"


GATE = """
    import json, sys
    data = json.load(sys.stdin)
    if not data["stop_hook_active"]:
        print("run the tests: " + data["last_assistant_message"], file=sys.stderr)
        sys.exit(2)
"""


@pytest.mark.parametrize("theirs", ["Stop", "SubagentStop"])
async def test_gate_sends_the_agent_back_once(
    migration: Migration, theirs: str
) -> None:
    migration.write(".claude/gate.py", GATE)
    found = {theirs: groups(hook(f"{PY} .claude/gate.py"))}
    migration.write(".claude/settings.json", {"hooks": found})
    migration.run()
    is_agent = theirs == "Stop"
    event = "AfterAgent" if is_agent else "SubagentStop"
    fields = {"prompt": "p"} if is_agent else {"agent_id": "1", "agent_type": "t"}
    for active in (False, True):
        result = await migration.fire(
            event, **fields, prompt_response="done", stop_hook_active=active
        )
        assert result.blocked is not active


async def test_guard_of_mcp_tools_sees_their_names(migration: Migration) -> None:
    script = """
        import json, sys
        data = json.load(sys.stdin)
        if data["tool_name"].startswith("mcp__github__delete_"):
            print("deny " + data["tool_name"], file=sys.stderr)
            sys.exit(2)
    """
    migration.write(".claude/mcp.py", script)
    guard = groups(hook(f"{PY} .claude/mcp.py"), matcher="mcp__github__.*")
    migration.write(".claude/settings.json", {"hooks": {"PreToolUse": guard}})
    migration.run()
    assert "names MCP tools: it is carried over" in migration.said
    context = {"server_name": "github", "tool_name": "delete_repo"}
    fields = {"tool_name": "delete_repo", "tool_input": {}, "mcp_context": context}
    blocked = await migration.fire("BeforeTool", **fields)
    assert blocked.reason == "deny mcp__github__delete_repo"
    assert (await migration.tool("mcp__github__delete_repo")).blocked
    fields["mcp_context"] = {**context, "server_name": "gitlab"}
    assert not (await migration.fire("BeforeTool", **fields)).aggregated.hook_results


async def test_http_guard_is_asked_with_its_header(
    migration: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_TOKEN", "t-1")
    denied = {"permissionDecision": "deny", "permissionDecisionReason": "by policy"}
    specific = {"hookEventName": "PreToolUse", **denied}
    with WebServer(reply({"hookSpecificOutput": specific})) as server:
        asked = {
            "type": "http",
            "url": server.url,
            "headers": {"Authorization": "Bearer $GUARD_TOKEN"},
            "allowedEnvVars": ["GUARD_TOKEN"],
            "timeout": 20,
        }
        found = {"PreToolUse": groups(asked, matcher="Bash")}
        migration.write(".claude/settings.json", {"hooks": found})
        migration.run()
        result = await migration.shell("ls")
    assert result.reason == "by policy"
    (request,) = server.exchanges
    assert request.headers["authorization"] == "Bearer t-1"
    assert request.event["tool_name"] == "Bash"


SECRET_FILTER = """
    import json, sys
    data = json.load(sys.stdin)
    if "AKIA" in json.dumps(data["tool_response"]):
        print(json.dumps({"decision": "deny", "reason": "a key was found"}))
"""


@pytest.mark.parametrize("source", ["gemini", "llxprt"])
async def test_secret_filter_of_gemini_withholds_the_result(
    migration: Migration, source: str
) -> None:
    """A deny after a tool hides the result there; here it would only annotate."""
    command = f"{PY} ${source.upper()}_PROJECT_DIR/.{source}/filter.py"
    migration.write(f".{source}/filter.py", SECRET_FILTER)
    found = {"AfterTool": groups(hook(command, name="filter", timeout=20000))}
    off = {"disabled": ["other"]}
    settings = {"tools": {"enableHooks": True}, "hooksConfig": off, "hooks": found}
    migration.write(f".{source}/settings.json", settings)
    migration.run(source)
    call = {"tool_name": "read_file", "tool_input": {"file_path": "a"}}
    for text, is_withheld in (("key AKIA123", True), ("fine", None)):
        response = {"llmContent": text, "returnDisplay": text}
        result = await migration.fire("AfterTool", **call, tool_response=response)
        output = result.final_output
        specific = output.hook_specific_output if output else {}
        assert specific.get("withholdResult") is is_withheld
    assert migration.settings()["hooksConfig"] == off


GEMINI_GUARD = """
    import json, os, sys
    data = json.load(sys.stdin)
    assert os.environ["GEMINI_SESSION_ID"] == data["session_id"]
    given = data["tool_input"]
    path, command = given.get("file_path", ""), given.get("command", "")
    if path.endswith(".env") or "rm -rf" in command:
        print(json.dumps({"decision": "deny", "reason": "no " + data["tool_name"]}))
"""


@pytest.mark.parametrize("place", ["settings", "extension"])
async def test_guard_of_gemini_sees_its_own_names(
    migration: Migration, place: str
) -> None:
    """An extension's path is ``${extensionPath}${/}x``, which no shell understands."""
    script = "${extensionPath}${/}hooks${/}guard.py"
    if place == "settings":
        script = '"$GEMINI_PROJECT_DIR"/ext/hooks/guard.py'
    folder = "ext" if place == "settings" else "my ext"
    events = {
        "BeforeTool": groups(
            hook(f"{PY} {script}", name="guard", timeout=20000),
            matcher="run_shell_command|write_file|replace",
        )
    }
    migration.write(f"{folder}/hooks/guard.py", GEMINI_GUARD)
    if place == "settings":
        migration.write(".gemini/settings.json", {"hooks": events})
        migration.run("gemini")
    else:
        migration.write("my ext/gemini-extension.json", {"name": "ext"})
        migration.write("my ext/hooks/hooks.json", {"hooks": events})
        migration.run("gemini", "my ext")
    assert "not converted" not in migration.said
    assert (await migration.shell("rm -rf x")).reason == "no run_shell_command"
    blocked = await migration.tool("write_file", path="a/.env", content="")
    assert blocked.reason == "no write_file"
    assert not (await migration.shell("ls")).blocked
    assert not (await migration.tool("read_file", path=".env")).aggregated.hook_results
