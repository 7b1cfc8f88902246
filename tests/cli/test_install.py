"""``hookline install``: other programs, other users, and agents that run its command.

What is written for each agent is in ``tests/pins/commands/install.json``, and that a
host which reads the file of another one is answered once in ``bridge.json``.
"""

from __future__ import annotations

import json
import os
import subprocess

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


def test_write_of_another_program_meanwhile_is_kept(
    repository: CommandProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent, too, writes its settings while ``install`` does."""
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
    """Also the folders, and what ``uninstall`` needs."""
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
    folder = str(repository.project)
    event = {
        "hook_event_name": "PreToolUse",
        "session_id": "s",
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
        "cwd": folder,
    }
    ended = subprocess.run(
        ["/bin/sh", "-c", group["hooks"][0]["command"]],
        input=json.dumps(event),
        env={**os.environ, **repository.env, "CLAUDE_PROJECT_DIR": folder},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    answer = json.loads(ended.stdout)
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
