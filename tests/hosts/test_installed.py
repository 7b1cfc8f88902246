"""Where ``list`` and ``check`` see the bridge, and what they find (issue 15.4)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hookline.hosts.host import HostName
from hookline.hosts.host_files import FILES
from hookline.hosts.install import own_program
from tests.hosts.installing import GUARD, Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_list_shows_where_the_bridge_is_installed(shell: Shell) -> None:
    assert "agent" not in shell.run("list").stdout
    shell.run("install", "claude")
    *_, heading, row = shell.run("list").stdout.splitlines()
    assert heading.split() == ["agent", "settings", "file", "events", "works"]
    cells = ["claude", "project", ".claude/settings.json", "PreToolUse", "yes"]
    assert row.split() == cells
    assert json.loads(shell.run("list", "--json").stdout)[0]["name"] == "guard"


def check(shell: Shell, **env: str) -> tuple[int, list[str]]:
    ended = shell.run("check", "--json", **env)
    found = json.loads(ended.stdout)
    assert all(one["file"].endswith("settings.json") for one in found)
    return ended.returncode, [f"{one['severity']}: {one['message']}" for one in found]


def test_check_finds_nothing_in_a_new_installation(shell: Shell) -> None:
    shell.run("install", "claude")
    assert check(shell) == (0, [])
    assert "2 files checked: 0 errors" in shell.run("check").stdout


def test_check_finds_that_the_command_is_missing(shell: Shell) -> None:
    shell.run("install", "claude")
    status, (finding,) = check(shell, PATH="/usr/bin:/bin")
    assert status == 1
    assert finding.startswith("error: 'hookline' is not found: Claude Code blocks")


def test_check_finds_another_installation(shell: Shell, tmp_path: Path) -> None:
    shell.run("install", "claude")
    (tmp_path / "hookline").write_text("#!/bin/sh\n")
    (tmp_path / "hookline").chmod(0o755)
    status, (finding,) = check(shell, PATH=f"{tmp_path}:/usr/bin:/bin")
    assert (status, finding) == (
        0,
        "warning: 'hookline' is another installation of Hookline",
    )


def test_check_finds_stale_events_and_short_timeouts(shell: Shell) -> None:
    shell.run("install", "claude")
    shell.hooks(AfterAgent=[GUARD], BeforeTool=[GUARD | {"timeout": 300_000}])
    again = "run 'hookline install claude' again"
    waits = "Claude Code waits for 130 and may miss the verdict, hooks need up to 610"
    assert check(shell)[1] == [
        f"warning: {waits}: {again}",
        f"warning: not installed, though AfterAgent has hooks: {again}",
    ]
    shell.hooks(AfterAgent=[GUARD])
    assert check(shell)[1][0] == (
        f"hint: BeforeTool has no hooks: {again} to leave it out"
    )
    shell.run("install", "claude")
    assert check(shell) == (0, [])


def test_several_missing_events_are_one_finding(shell: Shell) -> None:
    """Issue 17: 'init' names the next step as well."""
    shell.run("install", "claude")
    shell.hooks(AfterTool=[GUARD], BeforeTool=[GUARD])
    again = "run 'hookline install claude' again"
    missing = f"warning: not installed, though AfterTool has hooks: {again}"
    assert check(shell)[1] == [missing]
    told = shell.run("init", "--recipe", "secret-scan").stdout
    assert "  hookline install claude   # again: it misses events\n" in told


def test_check_finds_two_calls_and_matchers(shell: Shell) -> None:
    shell.run("install", "claude", "--user")
    text = (shell.home / ".claude/settings.json").read_text()
    found = json.loads(text)
    found["hooks"]["PreToolUse"][0]["matcher"] = "Bash"
    shell.write(".claude/settings.json", json.dumps(found))
    findings = check(shell)[1]
    assert "warning: the matcher 'Bash' keeps other tools from the hooks" in findings
    assert sum(one.endswith("the hooks run twice") for one in findings) == 2
    assert "'hookline check' has findings" in shell.run("list").stdout


def test_check_reports_a_broken_file_that_was_ours(shell: Shell) -> None:
    shell.run("install", "claude")
    file = shell.project / ".claude/settings.json"
    file.write_text(file.read_text() + "}")
    (finding,) = check(shell)[1]
    assert finding.startswith("warning: Claude Code cannot read it")
    file.write_text("{oops")
    assert check(shell) == (0, [])


@pytest.mark.parametrize("text", ["\ufeff{}", '// mine\n{"a": 1,}'])
def test_check_finds_nothing_in_a_file_that_install_could_write(
    shell: Shell, text: str
) -> None:
    shell.write(".claude/settings.json", text)
    shell.run("install", "claude")
    assert check(shell) == (0, [])


@pytest.mark.parametrize(
    ("host", "file", "text"),
    [
        ("claude", ".claude/settings.json", '{"disableAllHooks": true}'),
        ("claude", ".claude/settings.local.json", '{"disableAllHooks": true}'),
        ("claude", "../home/.claude/settings.json", '{"disableAllHooks": true}'),
        ("gemini", "../home/.gemini/settings.json", '{"hooksConfig": {"enabled": 0}}'),
        ("codex", "../home/.codex/config.toml", "[features]\nhooks = 0"),
    ],
)
def test_check_finds_that_hooks_are_switched_off(
    shell: Shell, host: str, file: str, text: str
) -> None:
    path = shell.write(file, text.replace("0", "false"))
    assert "note:  hooks are switched off in " in shell.run("install", host).stdout
    ended = shell.run("check")
    assert "warning: hooks are switched off here: " in ended.stdout
    assert path.name in ended.stdout
    assert "'hookline check' has findings" in shell.run("list").stdout


def test_project_switches_hooks_on_again(shell: Shell) -> None:
    shell.write("../home/.gemini/settings.json", '{"hooksConfig": {"enabled": false}}')
    shell.write(".gemini/settings.json", '{"hooksConfig": {"enabled": true}}')
    assert "switched off" not in shell.run("install", "gemini").stdout
    assert "0 warnings" in shell.run("check").stdout


@pytest.mark.parametrize("host", ["claude", "codex", "cursor", "opencode", "cline"])
def test_events_of_other_projects_are_no_finding(shell: Shell, host: str) -> None:
    """Run it again would change nothing, so nobody is told to."""
    shell.hooks(AfterTool=[GUARD])
    shell.run("install", host, "--user")
    shell.hooks(BeforeTool=[GUARD])
    shell.run("install", host, "--user")
    ended = shell.run("check")
    assert "0 errors, 0 warnings" in ended.stdout
    assert "again" not in ended.stdout


def test_check_names_the_command_that_mends_user_settings(shell: Shell) -> None:
    shell.run("install", "claude", "--user")
    shell.hooks(AfterAgent=[GUARD])
    assert "run 'hookline install claude --user' again" in shell.run("check").stdout


@pytest.mark.parametrize("host", ["claude", "codex", "cursor", "opencode", "cline"])
def test_check_finds_an_agent_that_goes_on_without_an_answer(
    shell: Shell, host: str
) -> None:
    shell.run("install", host, "--fail-open")
    assert "runs the tool if it gets no answer" in shell.run("check").stdout
    shell.run("install", host)
    assert "no answer" not in shell.run("check").stdout


def test_check_says_that_copilot_does_not_trust_the_folder(shell: Shell) -> None:
    """``copilot -p`` ignores the hooks of such a folder and does not say so."""
    assert "--trust-folder" in shell.run("install", "copilot").stdout
    untrusted = "hint: GitHub Copilot CLI does not trust this folder"
    assert untrusted in shell.run("check").stdout
    trusted = json.dumps({"trustedFolders": [str(shell.project.parent)]})
    shell.write("../home/.copilot/config.json", f"// managed\n{trusted}")
    assert "trust" not in shell.run("check").stdout


def test_check_finds_a_project_that_codex_trusts_no_longer(shell: Shell) -> None:
    level = f'[projects."{shell.project}"]\ntrust_level = "trusted"\n'
    config = shell.write("../home/.codex/config.toml", level)
    shell.run("install", "codex")
    assert "warning" not in shell.run("check").stdout.replace("0 warnings", "")
    config.write_text("")
    assert "warning: Codex does not trust this folder" in shell.run("check").stdout


@pytest.mark.parametrize("place", ["../home", "."])
@pytest.mark.parametrize("text", ["\ufeff{}", "// mine\n{}", '{"hooks": {},}'])
def test_file_that_codex_ignores_is_reported(
    shell: Shell, text: str, place: str
) -> None:
    """Codex reads plain JSON only, and does not say that it ignores a file."""
    level = "trusted" if place == "." else "untrusted"
    trust = f'[projects."{shell.project}"]\ntrust_level = "{level}"\n'
    shell.write("../home/.codex/config.toml", trust)
    file = shell.write(f"{place}/.codex/hooks.json", text)
    ended = shell.run("install", "codex")
    assert ended.returncode == 1
    assert "so the agent ignores the file: remove them" in ended.stderr
    assert file.read_text() == text
    file.write_text("{}")
    shell.run("install", "codex")
    file.write_text(f"{file.read_text()}// mine")
    assert "warning: Codex cannot read it" in shell.run("check").stdout


@pytest.mark.parametrize("setup", ["{}", '{"command": 5}', '{"events": 1}', "{oops}"])
def test_plugin_that_was_edited_is_reported(shell: Shell, setup: str) -> None:
    shell.run("install", "opencode")
    file = shell.project / FILES[HostName.OPENCODE].project
    text = file.read_text()
    start, end = (
        text.index("{", text.index("const SETUP")),
        text.index(";\n\nconst ANS"),
    )
    file.write_text(text[:start] + setup + text[end:])
    ended = shell.run("check")
    assert "hookline.js" in ended.stdout
    assert "warning: OpenCode cannot read it" in ended.stdout
    assert shell.run("install", "opencode").returncode == 0
    assert "0 warnings" in shell.run("check").stdout


def test_check_finds_calls_that_a_project_can_take_over(shell: Shell) -> None:
    """Issue 17: ``python -m hookline`` runs a package of that name in the project."""
    shell.run("install", "claude")
    file = shell.project / ".claude/settings.json"
    text = file.read_text()
    python = sys.executable
    for start, found in {python: 1, f"{python} -P": 0, "uv run python": 1}.items():
        program = f"{start} -m hookline"
        file.write_text(text.replace("hookline bridge", f"{program} bridge"))
        findings = [one for one in check(shell)[1] if "take Hookline's place" in one]
        assert len(findings) == found
    file.write_text(text.replace("hookline bridge", f"{python} -m hookline bridge"))
    shell.run("install", "claude")
    assert check(shell) == (0, [])


def test_no_file_of_the_project_takes_the_place_of_hookline(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 17: what agents are told to run, and what a person types."""
    shell.hooks()
    code = f"import os; os.mkdir({str(tmp_path / 'taken')!r} + str(os.getpid()))\n"
    for name in ("msgspec", "argparse", "sitecustomize"):
        (shell.project / f"{name}.py").write_text(code)
    python = sys.executable
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(sys, "argv", ["-c"])
    _, *installed = own_program()
    for words in (["-m", "hookline"], installed):
        if words == installed:
            (shell.project / "hookline").mkdir()
            (shell.project / "hookline/__main__.py").write_text(code)
        ended = subprocess.run(
            [python, *words, "fire", "BeforeTool", "--tool", "x"],
            cwd=shell.project,
            capture_output=True,
            text=True,
            check=True,
        )
        assert ended.stdout.startswith("BeforeTool: allowed, no hook ran\n")
    assert not list(tmp_path.glob("taken*"))
