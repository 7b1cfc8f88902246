"""The coding agents that are run: where each comes from, and how it runs offline.

In every text ``@URL@`` stands for the model server, ``@HOME@`` for the private home,
``@PROJECT@`` for the project, and ``@PROMPT@`` for what the person asks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

Call = tuple[str, dict[str, Any] | str]
PROMPT = "please work"


class Program(Struct, frozen=True):
    """One program: its package, its command line, its own settings and tools."""

    package: str
    version: str
    arguments: str
    """Its command line."""
    shell: Callable[[str], Call]
    write: Callable[[str, str], Call]
    environ: Mapping[str, str] = {}
    files: Mapping[str, str] = {}
    mcp_tool: str | None = "mcp__notes__add_note"
    agent: Call | None = None
    """A call that starts a subagent, where the program has them."""
    several: Callable[[Mapping[str, str]], Call] | None = None
    """A call that writes several files, where the program has one."""


def _patch(files: Mapping[str, str]) -> Call:
    """Codex's one tool for files, which takes a text."""
    added = [f"*** Add File: {path}\n+{text}" for path, text in files.items()]
    return "apply_patch", "\n".join(["*** Begin Patch", *added, "*** End Patch"])


_NOTES_COMMAND = ["python3", "@PROJECT@/notes_server.py"]
_NOTES = {"notes": {"command": "python3", "args": _NOTES_COMMAND[1:]}}
_COPILOT_NOTES = {"notes": {**_NOTES["notes"], "type": "local", "tools": ["*"]}}
_COPILOT_AGENT = {
    "name": "look",
    "description": "look",
    "prompt": "subagent prompt",
    "agent_type": "general-purpose",
    "mode": "sync",
}
_CLAUDE_AGENT = {
    "description": "look",
    "prompt": "subagent prompt",
    "subagent_type": "general-purpose",
}
_CODEX = """\
model = "gpt-5.5"
model_provider = "local"
[model_providers.local]
name = "local"
base_url = "@URL@/v1"
wire_api = "responses"
env_key = "LOCAL_KEY"
request_max_retries = 0
stream_max_retries = 0
[features]
hooks = true
[projects."@PROJECT@"]
trust_level = "trusted"
[mcp_servers.notes]
command = "python3"
args = ["@PROJECT@/notes_server.py"]
"""
_GEMINI = {
    "mcpServers": _NOTES,
    "security": {
        "auth": {"selectedType": "gemini-api-key"},
        "folderTrust": {"enabled": False},
    },
    "hooksConfig": {"enabled": True},
    "tools": {"enableHooks": True},
    "general": {"disableAutoUpdate": True},
    "privacy": {"usageStatisticsEnabled": False},
}
_QWEN = {
    "mcpServers": _NOTES,
    "security": {
        "auth": {"selectedType": "openai"},
        "folderTrust": {"enabled": False},
    },
    "general": {"disableAutoUpdate": True},
    "privacy": {"usageStatisticsEnabled": False},
}
_OPENCODE = {
    "model": "local/local",
    "small_model": "local/local",
    "autoupdate": False,
    "share": "disabled",
    "mcp": {"notes": {"type": "local", "command": _NOTES_COMMAND}},
    "permission": {"edit": "allow", "bash": "allow"},
    "provider": {
        "local": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "local",
            "options": {"baseURL": "@URL@/v1", "apiKey": "none"},
            "models": {"local": {"name": "local", "tool_call": True}},
        }
    },
}
_CLINE = {
    "version": 1,
    "lastUsedProvider": "openai-compatible",
    "modes": {},
    "providers": {
        "openai-compatible": {
            "settings": {
                "provider": "openai-compatible",
                "apiKey": "none",
                "model": "local",
                "baseUrl": "@URL@/v1",
            },
            "updatedAt": "2026-01-01T00:00:00.000Z",
            "tokenSource": "manual",
        }
    },
}

PROGRAMS = {
    "claude": Program(
        package="@anthropic-ai/claude-code",
        version="2.1.325",
        arguments=(
            "claude -p @PROMPT@ --permission-mode acceptEdits "
            "--allowedTools Bash,Read,Write,Edit,Agent,mcp__notes "
            "--mcp-config @HOME@/mcp.json"
        ),
        environ={
            "ANTHROPIC_BASE_URL": "@URL@",
            "ANTHROPIC_API_KEY": "none",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        files={"@HOME@/mcp.json": json.dumps({"mcpServers": _NOTES})},
        shell=lambda text: ("Bash", {"command": text, "description": "a command"}),
        write=lambda path, text: (
            "Write",
            {"file_path": f"@PROJECT@/{path}", "content": text},
        ),
        agent=("Agent", _CLAUDE_AGENT),
    ),
    "codex": Program(
        package="@openai/codex",
        version="0.166.0",
        arguments=(
            "codex exec --dangerously-bypass-hook-trust "
            "--skip-git-repo-check "
            "--dangerously-bypass-approvals-and-sandbox @PROMPT@"
        ),
        environ={"LOCAL_KEY": "none", "CODEX_HOME": "@HOME@/.codex"},
        files={"@HOME@/.codex/config.toml": _CODEX},
        shell=lambda text: ("exec_command", {"cmd": text}),
        write=lambda path, text: _patch({path: text}),
        several=_patch,
        mcp_tool="mcp__notes/add_note",
    ),
    "gemini": Program(
        package="@google/gemini-cli",
        version="0.61.0",
        arguments="gemini --yolo -m gemini-2.5-flash -p @PROMPT@",
        environ={
            "GOOGLE_GEMINI_BASE_URL": "@URL@",
            "GEMINI_API_KEY": "none",
            "GEMINI_CLI_NO_RELAUNCH": "1",
        },
        files={"@HOME@/.gemini/settings.json": json.dumps(_GEMINI)},
        shell=lambda text: ("run_shell_command", {"command": text}),
        write=lambda path, text: ("write_file", {"file_path": path, "content": text}),
        mcp_tool="mcp_notes_add_note",
        agent=("invoke_agent", {"agent_name": "generalist", "prompt": "look"}),
    ),
    "copilot": Program(
        package="@github/copilot",
        version="1.0.102",
        arguments=(
            "copilot -p @PROMPT@ --allow-all-tools "
            "--additional-mcp-config @@HOME@/mcp.json"
        ),
        environ={
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": "@URL@/v1",
            "COPILOT_MODEL": "local",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_ALLOW_ALL": "true",
        },
        shell=lambda text: ("bash", {"command": text, "description": "a command"}),
        write=lambda path, text: (
            "create",
            {"path": f"@PROJECT@/{path}", "file_text": text},
        ),
        files={"@HOME@/mcp.json": json.dumps({"mcpServers": _COPILOT_NOTES})},
        mcp_tool="notes-add_note",
        agent=("task", _COPILOT_AGENT),
    ),
    "qwen": Program(
        package="@qwen-code/qwen-code",
        version="0.24.4",
        arguments="qwen --yolo -p @PROMPT@",
        environ={
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": "@URL@/v1",
            "OPENAI_MODEL": "local",
            "QWEN_CODE_NO_RELAUNCH": "true",
        },
        files={"@HOME@/.qwen/settings.json": json.dumps(_QWEN)},
        shell=lambda text: (
            "run_shell_command",
            {"command": text, "is_background": False},
        ),
        write=lambda path, text: (
            "write_file",
            {"file_path": f"@PROJECT@/{path}", "content": text},
        ),
        agent=("agent", _CLAUDE_AGENT),
    ),
    "opencode": Program(
        package="opencode-ai",
        version="1.18.33",
        arguments="opencode run @PROMPT@",
        environ={
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        },
        files={"@PROJECT@/opencode.json": json.dumps(_OPENCODE)},
        shell=lambda text: ("bash", {"command": text, "description": "a command"}),
        write=lambda path, text: (
            "write",
            {"filePath": f"@PROJECT@/{path}", "content": text},
        ),
        mcp_tool="notes_add_note",
        agent=("task", _CLAUDE_AGENT | {"subagent_type": "general"}),
    ),
    "cline": Program(
        package="cline",
        version="3.0.65",
        mcp_tool=None,
        arguments="cline @PROMPT@",
        files={"@HOME@/.cline/data/settings/providers.json": json.dumps(_CLINE)},
        shell=lambda text: ("run_commands", {"commands": [text]}),
        write=lambda path, text: (
            "editor",
            {"path": f"@PROJECT@/{path}", "new_text": text},
        ),
    ),
}
