"""A project whose hooks do a bit of everything, and a morning of recorded work.

For the pictures in the documentation, and for tests that look at every view.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from hookline import Config, HookSystem, Settings

_SECRETS = """\
import json, re, sys

given = json.load(sys.stdin)["tool_input"].get("content", "")
if re.search(r"AKIA[0-9A-Z]{16}", given):
    print("an access key belongs in the environment, not in a file", file=sys.stderr)
    sys.exit(2)
"""
_SRC_ONLY = """\
import json, sys

path = json.load(sys.stdin)["tool_input"]["path"]
if path.endswith(".py") and "/" not in path:
    changed = {"tool_input": {"path": f"src/{path}"}}
    print(json.dumps({"hookSpecificOutput": changed}))
"""
_CONVENTIONS = """\
import json, sys

sys.stdin.read()
context = "Settings come from the environment. Tests live in tests/."
print(json.dumps({"hookSpecificOutput": {"additionalContext": context}}))
"""
_LICENSES = """\
import sys

print("licenses.toml: no such file", file=sys.stderr)
sys.exit(1)
"""

SCRIPTS = {
    "secrets.py": _SECRETS,
    "src_only.py": _SRC_ONLY,
    "conventions.py": _CONVENTIONS,
    "licenses.py": _LICENSES,
}


def _command(name: str, script: str, **more: Any) -> dict[str, Any]:
    command = f'"$HOOKLINE_PYTHON" .hookline/hooks/{script}'
    return {"type": "command", "name": name, "command": command, **more}


def _rule(name: str, when: str, reason: str, **more: Any) -> dict[str, Any]:
    then = {"decision": "deny", "reason": reason}
    return {"type": "rule", "name": name, "when": when, "then": then, **more}


def hooks() -> dict[str, Any]:
    """The hooks of the project, by event."""
    writing = [
        _rule(
            "no-env-files",
            "tool_input.path.glob('**/.env')",
            "keep secrets out of .env files",
        ),
        _command("secrets", "secrets.py"),
        _command("src-only", "src_only.py"),
        _command("licenses", "licenses.py", timeout=5000),
    ]
    shell = [
        _rule(
            "no-force-push",
            "tool_input.command.runs('git push --force *')",
            "history is shared: push a revert instead",
        ),
        _rule(
            "no-downloads",
            "tool_input.command.runs('curl *')",
            "downloads go through the mirror",
            mode="observe",
        ),
    ]
    return {
        "BeforeAgent": [{"hooks": [_command("conventions", "conventions.py")]}],
        "BeforeTool": [
            {"matcher": "write_file|replace", "hooks": writing},
            {"matcher": "run_shell_command", "hooks": shell},
        ],
        "AfterTool": [
            {
                "matcher": "read_file",
                "hooks": [
                    _rule(
                        "no-keys", "tool_response.llmContent.contains('BEGIN')", "a key"
                    )
                ],
            }
        ],
    }


def _write(path: str, content: str) -> tuple[str, dict[str, Any]]:
    given = {"path": path, "content": content}
    return "BeforeTool", {"tool_name": "write_file", "tool_input": given}


def _shell(command: str) -> tuple[str, dict[str, Any]]:
    given = {"command": command}
    return "BeforeTool", {"tool_name": "run_shell_command", "tool_input": given}


def _read(path: str, content: str) -> tuple[str, dict[str, Any]]:
    response = {"llmContent": content, "returnDisplay": content}
    given = {"tool_name": "read_file", "tool_input": {"path": path}}
    return "AfterTool", {**given, "tool_response": response}


def _prompt(text: str) -> tuple[str, dict[str, Any]]:
    return "BeforeAgent", {"prompt": text}


def _answer(prompt: str, text: str) -> tuple[str, dict[str, Any]]:
    return "AfterAgent", {"prompt": prompt, "prompt_response": text}


# In parts, so that secret scanners do not report this file.
_KEY = "AKIA" + "IOSFODNN7" + "EXAMPLE"
SESSIONS = {
    "deploy-settings": [
        ("SessionStart", {"source": "startup"}),
        _prompt("Save the deploy settings."),
        _write("config.py", f'ACCESS_KEY = "{_KEY}"\n'),
        _write("config.py", 'import os\n\nACCESS_KEY = os.environ["ACCESS_KEY"]\n'),
        _write("app/.env", "REGION=eu-west-1\n"),
        _shell("git add -A && git commit -m 'Read the key from the environment'"),
        _answer("Save the deploy settings.", "Saved: the key is in the environment."),
        ("SessionEnd", {"reason": "exit"}),
    ],
    "fix-midnight": [
        ("SessionStart", {"source": "resume"}),
        _prompt("Make test_midnight pass."),
        _read("src/app.py", "def midnight(): ...\n"),
        _write("app.py", "def midnight():\n    return 0\n"),
        _shell("curl -O https://example.org/zones.tar.gz"),
        _shell("python -m pytest -q"),
        _shell("git push --force origin main"),
        _shell("git push origin main"),
        _answer("Make test_midnight pass.", "It passes."),
    ],
}


def build(folder: Path, journal: Path) -> Path:
    """Write the project, play its sessions, and return its settings file."""
    scripts = folder / ".hookline" / "hooks"
    scripts.mkdir(parents=True, exist_ok=True)
    for name, text in SCRIPTS.items():
        (scripts / name).write_text(text)
    settings = folder / "hooks.json"
    config = {"journal": str(journal)}
    settings.write_text(json.dumps({"hooks": hooks(), "hooksConfig": config}, indent=2))
    asyncio.run(_play(folder, settings))
    return settings


async def _play(folder: Path, settings: Path) -> None:
    config = Config("showcase", folder, Settings.from_file(settings))
    async with HookSystem(config) as system:
        for session, events in SESSIONS.items():
            for event, fields in events:
                given = {**fields, "session_id": session}
                await system.event_handler.fire(event, given)
