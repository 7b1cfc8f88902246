"""``hookline install``: other programs, other users, and agents that run its command.

What is written for each agent is in ``tests/pins/commands/install.json``.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from tests.support.command_project import CommandProject, command_hook, settings_of

CLAUDE = ".claude/settings.json"
RULE = {"type": "rule", "name": "no", "when": "true", "then": {"decision": "deny"}}


@pytest.fixture
def repository(command_project: CommandProject) -> CommandProject:
    """A repository with a hook for tool calls."""
    (command_project.project / ".git").mkdir()
    hook = command_hook("echo ran >> runs", "guard")
    command_project.write(".hookline/settings.json", settings_of(hook))
    return command_project


def as_the_agent(project: CommandProject, script: str, event: dict[str, Any]) -> str:
    """What a command prints that an agent runs in a shell."""
    folder = str(project.project)
    ended = subprocess.run(
        ["/bin/sh", "-c", script],
        input=json.dumps({**event, "cwd": folder}),
        env={**os.environ, **project.env, "CLAUDE_PROJECT_DIR": folder},
        cwd=project.project,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return ended.stdout


def test_write_of_another_program_meanwhile_is_kept(
    repository: CommandProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 26: an agent, too, writes its settings while ``install`` does."""
    file = repository.write(CLAUDE, {})
    other = repository.write("other.json", {"theirs": 1})
    synchronize = os.fsync

    def write_and_synchronize(descriptor: int) -> None:
        # What becomes the file is written: nothing but a last look is left.
        if other.exists():
            other.replace(file)
        synchronize(descriptor)

    monkeypatch.setattr(os, "fsync", write_and_synchronize)
    assert repository.run("install", "claude").returncode == 0
    assert not other.exists()
    assert json.loads(file.read_text()).keys() == {"theirs", "hooks"}


def test_install_writes_nothing_where_nothing_is_to_do(
    repository: CommandProject,
) -> None:
    repository.run("install", "claude")
    before = repository.path(CLAUDE).stat()
    ended = repository.run("install", "claude")
    assert "already installed in .claude/settings.json" in ended.stdout
    after = repository.path(CLAUDE).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("is_there", [True, False])
def test_files_stay_those_of_the_user_under_sudo(
    repository: CommandProject, is_there: bool
) -> None:
    """Issue 26: also the folders, and what ``uninstall`` needs."""
    if is_there:
        repository.write(CLAUDE, {})
    for path in (repository.root, *repository.root.rglob("*")):
        os.chown(path, 1234, 1235)
    for host in ("claude", "codex"):
        assert repository.run("install", host).returncode == 0
    for path in repository.root.rglob("*"):
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 1235), path
    state = next((repository.home / "state").rglob("*.json"))
    assert state.stat().st_mode & 0o077 == 0
    assert state.parent.stat().st_mode & 0o077 == 0


def test_installed_command_answers(repository: CommandProject) -> None:
    """From the file that was written to a verdict, as the host runs it."""
    repository.write(".hookline/settings.json", settings_of(RULE))
    for words in (("trust", "--yes"), ("install", "claude")):
        assert repository.run(*words).returncode == 0
    settings = json.loads(repository.path(CLAUDE).read_text())
    (group,) = settings["hooks"]["PreToolUse"]
    event = {
        "hook_event_name": "PreToolUse",
        "session_id": "s",
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
    }
    answer = json.loads(as_the_agent(repository, group["hooks"][0]["command"], event))
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"


CALL: dict[str, Any] = {"tool_name": "Shell", "tool_input": {"command": "ls"}}
READERS: dict[str, dict[str, Any]] = {
    "cursor": {"hook_event_name": "preToolUse", "cursor_version": "2.0", **CALL},
    "vscode": {"hookEventName": "PreToolUse", "sessionId": "s", **CALL},
}


@pytest.mark.parametrize("reader", READERS)
def test_host_that_reads_another_file_is_answered_once(
    repository: CommandProject, reader: str
) -> None:
    """hosts/README.md#rules 9, with the hooks of a project that count their runs."""
    for words in (("trust", "--yes"), ("install", "claude")):
        assert repository.run(*words).returncode == 0

    def bridge(host: str) -> None:
        script = f"hookline bridge --no-resident {host}"
        as_the_agent(repository, script, READERS[reader])

    bridge("claude")  # it is the only call: it must run the hooks
    runs = repository.project / "runs"
    assert runs.read_text() == "ran\n"
    assert repository.run("install", reader).returncode == 0
    bridge("claude")
    bridge(reader)
    assert runs.read_text() == "ran\nran\n"
