"""``hookline install`` and ``uninstall`` (issue 15.4)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hookline.cli.main import main
from hookline.hosts.catalog import all_hosts
from hookline.hosts.host import HostName
from hookline.protocol.events import HookEventName
from tests.hosts.installing import GUARD, SCRIPTS, Shell
from tests.support.commandline import hookline


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_install_writes_the_events_that_have_hooks(shell: Shell) -> None:
    ended = shell.run("install", "claude")
    assert ended.returncode == 0, ended.stderr
    assert "wrote  .claude/settings.json\nevents: PreToolUse\n" in ended.stdout
    (group,) = shell.claude()["hooks"].pop("PreToolUse")
    hook = {"type": "command", "command": "hookline bridge claude", "timeout": 130}
    assert group == {"hooks": [hook | {"onFailure": "block"}]}
    assert shell.claude()["hooks"].keys() == {"PreToolUse"}


def test_write_of_another_program_meanwhile_is_kept(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 26: an agent, too, writes its settings while ``install`` does."""
    file = shell.write(".claude/settings.json", "{}")
    other = shell.write("other.json", '{"theirs": 1}')
    synchronize = os.fsync

    def write_and_synchronize(descriptor: int) -> None:
        # What becomes the file is written: nothing but a last look is left.
        if other.exists():
            other.replace(file)
        synchronize(descriptor)

    monkeypatch.setattr(os, "fsync", write_and_synchronize)
    for name, value in shell.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(shell.project)
    assert main(["install", "claude"]) == 0
    assert not other.exists()
    assert shell.claude().keys() == {"theirs", "hooks"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("is_there", [True, False])
def test_files_stay_those_of_the_user_under_sudo(shell: Shell, is_there: bool) -> None:
    """Issue 26: also the folders, and what ``uninstall`` needs."""
    if is_there:
        shell.write(".claude/settings.json", "{}")
    for path in (shell.home.parent, *shell.home.parent.rglob("*")):
        os.chown(path, 1234, 1235)
    assert shell.run("install", "claude").returncode == 0
    assert shell.run("install", "codex").returncode == 0
    for path in shell.home.parent.rglob("*"):
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 1235), path
    state = next((shell.home / ".state").rglob("*.json"))
    assert state.stat().st_mode & 0o077 == 0
    assert state.parent.stat().st_mode & 0o077 == 0


def test_installed_command_answers(shell: Shell) -> None:
    """From the file that was written to a verdict, as the host runs it."""
    rule = {"type": "rule", "name": "no", "when": "true", "then": {"decision": "deny"}}
    shell.hooks(BeforeTool=[rule])
    assert shell.run("trust", "--yes").returncode == 0
    assert shell.run("install", "claude").returncode == 0
    (group,) = shell.claude()["hooks"]["PreToolUse"]
    event = {
        "hook_event_name": "PreToolUse",
        "session_id": "s",
        "cwd": str(shell.project),
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
    }
    ended = subprocess.run(
        ["/bin/sh", "-c", group["hooks"][0]["command"]],
        input=json.dumps(event),
        env={**os.environ, **shell.env, "CLAUDE_PROJECT_DIR": str(shell.project)},
        cwd=shell.project,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    specific = json.loads(ended.stdout)["hookSpecificOutput"]
    assert specific["permissionDecision"] == "deny"


@pytest.mark.parametrize("name", HostName)
def test_every_host_can_be_installed_and_taken_out(shell: Shell, name: str) -> None:
    """What is lost, and what was never tried, is said.

    hosts/README.md#rules 10 and 11
    """
    before = sorted(shell.project.rglob("*"))
    ended = shell.run("install", name)
    assert ended.returncode == 0, ended.stderr
    host = all_hosts()[HostName(name)]
    assert ("untested: " in ended.stdout) is (host.tested is None)
    for instead in host.limits.get(HookEventName.BeforeTool, {}).values():
        assert instead in ended.stdout
    assert f"\n{name} " in shell.run("list").stdout
    assert "0 errors, 0 warnings" in shell.run("check").stdout
    assert "already installed" in shell.run("install", name).stdout
    assert shell.run("uninstall", name).returncode == 0
    assert sorted(shell.project.rglob("*")) == before


def test_install_says_when_there_is_nothing_to_do(shell: Shell) -> None:
    shell.run("install", "claude")
    before = (shell.project / ".claude/settings.json").stat()
    ended = shell.run("install", "claude")
    assert ended.returncode == 0
    assert "already installed in .claude/settings.json" in ended.stdout
    after = (shell.project / ".claude/settings.json").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_install_for_all_events(shell: Shell) -> None:
    shell.hooks()
    ended = shell.run("install", "claude")
    assert ended.returncode == 1
    assert "no hooks are configured here" in ended.stderr
    assert shell.run("install", "claude", "--all-events").returncode == 0
    assert {"PreToolUse", "Stop", "SessionStart"} <= shell.claude()["hooks"].keys()


def test_install_for_hooks_of_which_the_host_has_no_event(shell: Shell) -> None:
    shell.hooks(BeforeModel=[GUARD])
    ended = shell.run("install", "claude")
    assert ended.returncode == 1
    assert "Claude Code has none of the events with hooks: BeforeModel" in ended.stderr
    shell.hooks(BeforeModel=[GUARD], BeforeTool=[GUARD])
    ended = shell.run("install", "claude")
    assert "BeforeModel: Claude Code has no such event" in ended.stdout


def test_disabled_hooks_need_no_event(shell: Shell) -> None:
    hooks = {"BeforeTool": [{"hooks": [GUARD]}], "AfterAgent": [{"hooks": [GUARD]}]}
    hooks["AfterAgent"][0]["hooks"] = [GUARD | {"name": "off"}]
    settings = {"hooks": hooks, "hooksConfig": {"disabled": ["off"]}}
    shell.write(".hookline/settings.json", json.dumps(settings))
    shell.run("trust", "--yes")  # what nobody approved switches nothing off
    shell.run("install", "claude")
    assert shell.claude()["hooks"].keys() == {"PreToolUse"}


@pytest.mark.parametrize(
    ("hooks", "sequential", "seconds"),
    [
        ([5000], False, 60),
        ([90_000, 10_000], False, 190),
        ([90_000, 10_000], True, 210),
    ],
)
def test_timeout_is_longer_than_the_hooks_need(
    shell: Shell, hooks: list[int], sequential: bool, seconds: int
) -> None:
    found = [GUARD | {"timeout": one, "name": str(one)} for one in hooks]
    groups = [{"hooks": found, "sequential": sequential}]
    settings = {"hooks": {"BeforeTool": groups}}
    shell.write(".hookline/settings.json", json.dumps(settings))
    shell.run("install", "claude")
    (group,) = shell.claude()["hooks"]["PreToolUse"]
    assert group["hooks"][0]["timeout"] == seconds


def test_dry_run_shows_a_diff_and_writes_nothing(shell: Shell) -> None:
    file = shell.write(".claude/settings.json", '{\n  "model": "x" // mine\n}\n')
    text = file.read_text()
    ended = shell.run("install", "claude", "--dry-run")
    assert ended.returncode == 0
    lines = ended.stdout.splitlines()
    assert lines[:2] == ["--- .claude/settings.json", "+++ .claude/settings.json"]
    assert '-  "model": "x" // mine' in lines
    assert '+  "model": "x", // mine' in lines
    assert file.read_text() == text
    assert not (shell.home / ".state").exists()
    shell.run("install", "claude")
    ended = shell.run("install", "claude", "--dry-run")
    assert ended.stdout == "nothing to write: all files are as they should be\n"
    ended = shell.run("uninstall", "claude", "--dry-run")
    assert '+  "model": "x" // mine' in ended.stdout.splitlines()
    assert file.read_text() != text


def test_dry_run_breaks_lines_where_the_file_does(shell: Shell) -> None:
    shell.write(".claude/settings.json", '{\n  "a": "\u2028\x85"\n}\n')
    shown = shell.run("install", "claude", "--dry-run").stdout
    assert '-  "a": "\\u2028\\x85"\n+  "a": "\\u2028\\x85",\n' in shown


def test_user_settings_name_the_program_by_its_path(shell: Shell) -> None:
    ended = shell.run("install", "claude", "--user")
    file = shell.home / ".claude/settings.json"
    assert "wrote  ~/.claude/settings.json\n" in ended.stdout
    assert f'"{SCRIPTS}/hookline bridge claude"' in file.read_text()
    assert "Do not commit it" not in ended.stdout


@pytest.mark.parametrize("host", ["claude", "cursor", "opencode", "cline"])
def test_user_settings_keep_what_other_projects_need(shell: Shell, host: str) -> None:
    """Installing for the hooks of one project takes nothing from another."""
    slow = GUARD | {"timeout": 300_000, "onError": "block"}
    shell.hooks(BeforeTool=[slow], SessionStart=[slow], AfterTool=[GUARD])
    shell.run("install", host, "--user")
    shell.hooks(BeforeTool=[GUARD])
    ended = shell.run("install", host, "--user")
    assert "already installed" in ended.stdout, ended.stdout


def test_projects_of_one_repository_share_the_file_of_copilot(shell: Shell) -> None:
    """Copilot reads the root of the repository alone."""
    for name, event in {"a": "BeforeTool", "b": "AfterAgent"}.items():
        settings = json.dumps({"hooks": {event: [{"hooks": [GUARD]}]}})
        shell.write(f"{name}/.hookline/settings.json", settings)
    (shell.project / ".hookline/settings.json").unlink()
    for name in ("a", "b"):
        shell.run("install", "copilot", "--cwd", name)
    found = json.loads((shell.project / ".github/hooks/hookline.json").read_text())
    assert found["hooks"].keys() == {"preToolUse", "agentStop"}


def test_empty_home_is_not_the_root_of_the_machine(shell: Shell) -> None:
    ended = shell.run("install", "claude", "--user", "--dry-run", HOME="")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "hookline: your home folder is unknown: set HOME\n"
    assert shell.run("install", "claude", HOME="").returncode == 0
    assert "0 warnings" in shell.run("check", HOME="").stdout
    assert shell.run("uninstall", "claude", HOME="").returncode == 0


@pytest.mark.parametrize("trusted", [False, True])
def test_codex_gets_a_file_that_it_reads(shell: Shell, trusted: bool) -> None:
    """Codex reads the hooks of a project only if it trusts the project."""
    (shell.home / ".codex").mkdir()
    level = "trusted" if trusted else "untrusted"
    text = f'[projects."{shell.project}"]\ntrust_level = "{level}"\n'
    (shell.home / ".codex/config.toml").write_text(text)
    ended = shell.run("install", "codex")
    assert (shell.project / ".codex/hooks.json").exists() is trusted
    assert (shell.home / ".codex/hooks.json").exists() is not trusted
    assert ("does not trust this project" in ended.stdout) is not trusted
    assert "already installed" in shell.run("install", "codex").stdout


@pytest.mark.parametrize("text", ["", "[projects", "projects = 5", "\0"])
def test_broken_settings_of_codex_trust_nothing(shell: Shell, text: str) -> None:
    (shell.home / ".codex").mkdir()
    (shell.home / ".codex/config.toml").write_text(text)
    assert shell.run("install", "codex").returncode == 0
    assert (shell.home / ".codex/hooks.json").exists()


def test_project_names_the_path_if_hookline_is_not_on_it(
    shell: Shell, tmp_path: Path
) -> None:
    ended = shell.run("install", "claude", PATH="/usr/bin:/bin")
    assert "Do not commit it" in ended.stdout
    command = shell.claude()["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
    assert command == f"{SCRIPTS}/hookline bridge claude"
    other = tmp_path / "other"
    other.mkdir()
    (other / "hookline").write_text("#!/bin/sh\n")
    (other / "hookline").chmod(0o755)
    shell.run("install", "claude", PATH=f"{other}:{SCRIPTS}:/usr/bin:/bin")
    assert command in json.dumps(shell.claude())
    shell.run("install", "claude")
    assert '"hookline bridge claude"' in json.dumps(shell.claude())


@pytest.mark.parametrize("first", [[], ["--user"]])
def test_hooks_never_run_twice_from_project_and_user_settings(
    shell: Shell, first: list[str]
) -> None:
    assert shell.run("install", "claude", *first).returncode == 0
    second = [] if first else ["--user"]
    ended = shell.run("install", "claude", *second)
    assert ended.returncode == 1
    assert "so they would run twice" in ended.stderr


def test_uninstall_covers_project_and_user(shell: Shell) -> None:
    shell.run("install", "claude", "--user")
    assert shell.run("uninstall", "claude").returncode == 0
    assert not (shell.home / ".claude").exists()
    shell.run("install", "claude")
    ended = shell.run("uninstall", "claude")
    assert ended.stdout == "removed  .claude/settings.json\n"
    assert not (shell.project / ".claude").exists()
    ended = shell.run("uninstall", "claude")
    assert ended.returncode == 0
    assert ended.stdout.startswith("Claude Code: not installed in ")


def test_uninstall_elsewhere_says_how_to_find_the_files(shell: Shell) -> None:
    """Issue 17: what is installed in other projects was not to be found."""
    assert shell.run("install", "gemini").returncode == 0
    other = shell.project.parent / "other"
    other.mkdir()
    ended = shell.run("uninstall", "gemini", "--cwd", str(other))
    told = "'hookline paths' shows where else 'hookline install' was run"
    assert told in ended.stdout
    file = f"{shell.project}/.gemini/settings.json"
    paths = shell.run("paths", "--cwd", str(other)).stdout
    (line,) = [line for line in paths.splitlines() if file in line]
    assert line.startswith("  other agent files ")
    paths = shell.run("paths").stdout
    (line,) = [line for line in paths.splitlines() if file in line]
    assert line.startswith("  hooks of gemini ")
    assert shell.run("uninstall", "gemini").returncode == 0
    assert told not in shell.run("uninstall", "gemini").stdout


def test_uninstall_goes_on_where_one_file_is_broken(shell: Shell) -> None:
    shell.run("install", "claude", "--user")
    shell.write(".claude/settings.json", "{oops")
    ended = shell.run("uninstall", "claude")
    assert ended.returncode == 1
    assert ".claude/settings.json:1:2: is not valid JSON" in ended.stderr
    assert not (shell.home / ".claude").exists()


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_unknown_host_is_named(shell: Shell, command: str) -> None:
    ended = shell.run(command, "claud")
    assert ended.returncode == 1
    assert "unknown host 'claud': did you mean 'claude'?" in ended.stderr


def test_install_needs_valid_settings_of_its_own(shell: Shell) -> None:
    shell.write(".hookline/settings.json", "{")
    ended = shell.run("install", "claude")
    assert ended.returncode == 1
    assert "settings.json:1:2: is not valid JSON" in ended.stderr
    assert not (shell.project / ".claude").exists()


def test_install_says_that_the_project_is_not_trusted(shell: Shell) -> None:
    assert "  hookline trust   #" in shell.run("install", "claude").stdout
    shell.run("trust", "--yes")
    assert "hookline trust" not in shell.run("install", "claude").stdout


def test_install_says_what_hosts_that_read_its_file_do(shell: Shell) -> None:
    """hosts/README.md#rules 9: Cursor reads Claude Code's file."""
    alone = shell.run("install", "cursor").stdout
    assert "stays silent" not in alone
    ended = shell.run("install", "claude")
    assert "the file also serves " in ended.stdout
    ended = shell.run("install", "cursor")
    silent = "the call in .claude/settings.json stays silent in Cursor from now on"
    assert silent in ended.stdout


CALL: dict[str, Any] = {"tool_name": "Shell", "tool_input": {"command": "ls"}}
READERS: dict[str, dict[str, Any]] = {
    "cursor": {"hook_event_name": "preToolUse", "cursor_version": "2.0", **CALL},
    "vscode": {"hookEventName": "PreToolUse", "sessionId": "s", **CALL},
}


@pytest.mark.parametrize("reader", READERS)
def test_host_that_reads_another_file_is_answered_once(
    shell: Shell, reader: str
) -> None:
    """hosts/README.md#rules 9, with the hooks of a project that count their runs."""
    shell.hooks(BeforeTool=[GUARD | {"command": "echo ran >> runs"}])
    assert shell.run("trust", "--yes").returncode == 0
    assert shell.run("install", "claude").returncode == 0
    event = {**READERS[reader], "cwd": str(shell.project)}
    given = shell.write("event.json", json.dumps(event))
    count = shell.project / "runs"

    def bridge(name: str) -> None:
        script = f"hookline bridge --no-resident {name} < {given}"
        env = {**os.environ, **shell.env}
        command = ["/bin/sh", "-c", script]
        subprocess.run(command, cwd=shell.project, env=env, check=True, timeout=60)

    bridge("claude")  # it is the only call: it must run the hooks
    assert count.read_text() == "ran\n"
    assert shell.run("install", reader).returncode == 0
    bridge("claude")
    bridge(reader)
    assert count.read_text() == "ran\nran\n"


def test_install_says_that_the_host_runs_no_hooks(shell: Shell) -> None:
    shell.write(".claude/settings.json", '{"disableAllHooks": true}')
    assert "hooks are switched off in " in shell.run("install", "claude").stdout


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_help_names_every_host_and_the_exit_status(command: str) -> None:
    text = hookline(command, "--help").stdout
    assert all(host in text for host in HostName)
    assert "exit status: 0" in text


def test_a_command_of_a_virtual_environment_is_noted(shell: Shell) -> None:
    """Issue 17: an agent that is started elsewhere goes on without the hooks."""
    note = "finds 'hookline' only if started in this virtual environment"
    active = shell.run("install", "claude", VIRTUAL_ENV=str(Path(SCRIPTS).parent))
    assert f"note:  Claude Code {note}" in active.stdout
    assert note not in shell.run("install", "claude", VIRTUAL_ENV="").stdout


@pytest.mark.parametrize(
    ("there", "home", "expected"),
    [
        ((), "", ".config/llxprt-code"),
        ((".llxprt",), "", ".llxprt"),
        ((".llxprt", ".config/llxprt-code"), "", ".config/llxprt-code"),
        ((".llxprt", ".config/llxprt-code"), "own", "own"),
        ((".llxprt", "xdg/llxprt-code"), "", "xdg/llxprt-code"),
        ((".llxprt", "xdg/llxprt-code"), "own", "own"),
    ],
)
def test_install_finds_the_users_settings_of_llxprt_code(
    shell: Shell, tmp_path: Path, there: tuple[str, ...], home: str, expected: str
) -> None:
    """Issue 26.19: they moved; a version that knows the new place copies the old."""
    user = tmp_path / "of-the-user"
    for name in there:
        (user / name).mkdir(parents=True)
    env = {"HOME": str(user), "LLXPRT_CONFIG_HOME": home and str(user / home)}
    env |= {"XDG_CONFIG_HOME": str(user / "xdg")}
    ended = shell.run("install", "llxprt", "--user", **env)
    assert ended.returncode == 0, ended.stderr
    written = json.loads((user / expected / "settings.json").read_text())
    assert list(written["hooks"]) == ["BeforeTool"]
    assert shell.run("uninstall", "llxprt", **env).returncode == 0
