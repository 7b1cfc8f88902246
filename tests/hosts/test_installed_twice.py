"""Where one agent reads the settings of another, the hooks run once, never not at all.

hosts/README.md#rules 9: what a repository holds does not silence the user's guards.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_files import PROGRAMS, AgentFiles
from tests.support.commandline import run_command

CALL = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
HOSTS: dict[str, tuple[str, dict[str, Any], dict[str, str], str]] = {
    "cursor": (
        ".cursor/hooks.json",
        {"hook_event_name": "preToolUse", "cursor_version": "2.0", **CALL},
        {},
        "preToolUse",
    ),
    "vscode": (
        ".github/hooks/hookline-vscode.json",
        {"hookEventName": "PreToolUse", "sessionId": "s", **CALL},
        {},
        "PreToolUse",
    ),
    "copilot": (
        ".github/hooks/hookline.json",
        {"hook_event_name": "PreToolUse", "timestamp": "2026", **CALL},
        {"COPILOT_CLI": "1"},
        "preToolUse",
    ),
}
"""Agents that also read Claude Code's file: their own, and what they send."""


@pytest.fixture
def files(tmp_path: Path) -> AgentFiles:
    """A user with a guard of their own, in a folder that Copilot trusts."""
    files = AgentFiles(tmp_path)
    files.hooks()
    rule = {"type": "rule", "name": "no", "when": "true", "then": {"decision": "deny"}}
    settings = {"hooks": {"BeforeTool": [{"hooks": [rule]}]}}
    files.write("../home/.config/hookline/settings.json", json.dumps(settings))
    trusted = json.dumps({"trustedFolders": [str(tmp_path)]})
    files.write("../home/.copilot/config.json", trusted)
    return files


def is_guarded(files: AgentFiles, host: str) -> bool:
    """Whether the call through Claude Code's file is answered with the guard's no."""
    _, sent, env, _ = HOSTS[host]
    ended = run_command(
        *("bridge", "claude"),
        cwd=files.project,
        env={**files.env, **env},
        stdin=json.dumps({"cwd": str(files.project), **sent}),
    )
    assert ended.returncode == 0, ended.stderr
    return "deny" in ended.stdout


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("scope", [(), ("--user",)], ids=["project", "user"])
def test_hook_fires_once_where_both_are_installed(
    files: AgentFiles, host: str, scope: tuple[str, ...]
) -> None:
    assert is_guarded(files, host)
    assert files.run("install", host, *scope).returncode == 0
    assert not is_guarded(files, host)
    files.run("uninstall", host)
    assert is_guarded(files, host)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("more", ["", " >/dev/null; true", " || true"])
@pytest.mark.parametrize("matcher", [None, "^never$"])
def test_file_of_a_clone_silences_nobody(
    files: AgentFiles, host: str, more: str, matcher: str | None
) -> None:
    file, _, _, event = HOSTS[host]
    command = f"{PROGRAMS}/hookline bridge {host} {event}{more}"
    entry = {"type": "command", "command": command, "bash": command}
    if matcher:
        entry["matcher"] = matcher
    text = json.dumps({"version": 1, "hooks": {event: [entry]}})
    files.write(file, text)
    assert is_guarded(files, host)
    # Not even in place of a file that install wrote, or beside it.
    files.run("install", host)
    files.write(file, text)
    assert is_guarded(files, host)


def changed(how: str, file: Path) -> None:
    """What may happen to a file after ``install`` wrote it."""
    content = json.loads(file.read_text())
    events = content["hooks"]
    if how == "matcher":
        next(iter(events.values()))[0]["matcher"] = "^never$"
    elif how == "event":
        content["hooks"] = {"sessionStart": next(iter(events.values()))}
    elif how == "switch":
        content["disableAllHooks"] = True
    elif how == "link":
        file.rename(file.with_name("other.json"))
        file.symlink_to("other.json")
        return
    file.write_text(json.dumps(content) if how != "broken" else "{")


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("how", ["matcher", "event", "switch", "link", "broken"])
def test_file_that_changed_after_install_is_not_relied_on(
    files: AgentFiles, host: str, how: str
) -> None:
    files.run("install", host)
    changed(how, files.project / HOSTS[host][0])
    assert is_guarded(files, host)


def test_project_that_copilot_does_not_read_silences_nobody(files: AgentFiles) -> None:
    files.run("install", "copilot")
    (files.home / ".copilot/config.json").unlink()
    assert is_guarded(files, "copilot")


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize(
    "more", [{"disabled": True}, {"if": "never"}, {"async": True}, {"once": True}]
)
def test_key_of_a_clone_that_install_kept_silences_nobody(
    files: AgentFiles, host: str, more: dict[str, Any]
) -> None:
    file, _, _, event = HOSTS[host]
    command = f"{PROGRAMS}/hookline bridge {host} {event}"
    entry = {"type": "command", "command": command, "bash": command, **more}
    files.write(file, json.dumps({"version": 1, "hooks": {event: [entry]}}))
    assert files.run("install", host).returncode == 0
    assert is_guarded(files, host)


def test_launcher_of_a_clone_that_install_kept_silences_nobody(
    files: AgentFiles,
) -> None:
    files.write("../home/bin/uv", "#!/bin/sh\n").chmod(0o755)
    files.env["PATH"] += f":{files.home}/bin"
    command = "uv run hookline bridge cursor preToolUse >/dev/null; true"
    hooks = {"preToolUse": [{"command": command, "failClosed": True}]}
    files.write(".cursor/hooks.json", json.dumps({"version": 1, "hooks": hooks}))
    assert files.run("install", "cursor").returncode == 0
    assert is_guarded(files, "cursor")


def test_matcher_that_install_kept_silences_nobody(files: AgentFiles) -> None:
    """``install`` keeps what a person wrote, and records the file with it."""
    files.run("install", "cursor")
    changed("matcher", files.project / ".cursor/hooks.json")
    files.run("install", "cursor")
    assert is_guarded(files, "cursor")
