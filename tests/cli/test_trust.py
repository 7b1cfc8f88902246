"""``hookline trust``: what it shows, asks and records."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from hookline.trust.records import all_records
from tests.support.project import GUARD, Project


def run(project: Project, *words: str, stdin: int = subprocess.DEVNULL) -> str:
    command = [sys.executable, "-m", "hookline.cli.main", "trust", *words]
    done = subprocess.run(
        command,
        cwd=project.folder,
        stdin=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    return f"{done.stdout}{done.stderr}[{done.returncode}]"


def answer(project: Project, said: str) -> str:
    """Run the command at a terminal and give it an answer."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, said.encode())
        return run(project, stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)


def test_trust_shows_each_new_hook_with_its_command(project: Project) -> None:
    project.write("tools/other.sh", "true")
    other = {"type": "command", "name": "other", "command": "bash tools/other.sh"}
    project.settings(GUARD, other)
    shown = run(project, "--yes")
    assert "new      guard  on BeforeTool *  (command)" in shown
    assert "runs   bash .hookline/hooks/guard.sh" in shown
    assert "pins   tools/other.sh" in shown
    assert shown.endswith("trusted\n[0]")


def test_trust_notes_a_command_that_names_no_file(project: Project) -> None:
    project.guarded()
    assert "no file of the project is named" not in run(project, "--yes")
    project.settings({**GUARD, "command": "make check"})
    assert "no file of the project is named" in run(project, "--yes")


def test_trust_says_of_a_rule_what_changed(project: Project) -> None:
    """Issue 17: it runs no program, and is the same when another file is added."""
    rule = {"type": "rule", "name": "r", "when": "tool_name == 'x'"}
    project.settings(rule)
    assert "note" not in run(project, "--yes")
    project.write(".hookline/more.sh", "echo more")
    shown = run(project, "--yes")
    assert "changed  r  on" in shown
    assert "note   it is the same, but files that it is approved with" in shown


def test_trust_shows_a_file_that_was_added_to_a_trusted_project(
    project: Project,
) -> None:
    project.guarded()
    project.trust()
    project.write(".hookline/hooks/more.sh", "echo more")
    shown = run(project, "--yes")
    assert "changed .hookline/hooks/more.sh" in shown
    assert "+echo more" in shown
    assert shown.endswith("trusted\n[0]")


def test_trust_shows_what_changed_as_a_diff_against_the_trusted_copy(
    project: Project,
) -> None:
    project.guarded()
    run(project, "--yes")
    project.write(".hookline/hooks/guard.sh", "exit 0")
    project.settings({**GUARD, "timeout": 5})
    shown = run(project)
    assert "changed  guard" in shown
    assert "-echo 'the guard says no' >&2; exit 2" in shown
    assert "+exit 0" in shown
    assert '+    "timeout": 5' in shown


def test_trust_shows_a_removed_hook(project: Project) -> None:
    project.guarded()
    run(project, "--yes")
    (project.folder / ".hookline/settings.json").unlink()
    assert "removed  guard" in run(project)
    assert "record removed" in run(project, "--yes")
    assert project.record_files() == []


def test_trust_does_not_approve_without_a_terminal(
    project: Project,
) -> None:
    project.guarded()
    assert run(project).endswith("to approve it\n[1]")
    assert project.record_files() == []


@pytest.mark.parametrize(("said", "trusted"), [("y\n", 1), ("n\n", 0), ("\n", 0)])
def test_trust_asks_at_a_terminal(project: Project, said: str, trusted: int) -> None:
    project.guarded()
    assert "[y/N]" in answer(project, said)
    assert len(project.record_files()) == trusted


def test_trust_has_nothing_to_ask_when_nothing_changed(project: Project) -> None:
    assert "this project has no hooks" in run(project)
    project.guarded()
    run(project, "--yes")
    assert run(project) == "already trusted\n[0]"


def test_trust_lists_and_revokes(project: Project) -> None:
    project.guarded()
    run(project, "--yes")
    assert str(project.folder) in run(project, "--list")
    assert "trust revoked" in run(project, "--revoke")
    assert run(project, "--list") == "no project is trusted\n[0]"
    assert list(project.state.rglob("copies/*")) == []


def test_trust_refuses_to_run_inside_a_hook(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.guarded()
    monkeypatch.setenv("HOOKLINE_DEPTH", "1")
    assert run(project, "--yes").endswith("run this command yourself\n[1]")
    assert project.record_files() == []


def test_control_characters_are_not_printed(project: Project) -> None:
    project.settings({**GUARD, "command": "true\x1b[2J\x07"})
    assert "\x1b" not in run(project, "--yes")


def test_two_processes_trusting_at_once_lose_nothing(
    project: Project, tmp_path: Path
) -> None:
    folders = [tmp_path / f"p{number}" for number in range(6)]
    for folder in folders:
        Project(folder, project.state).guarded(name=folder.name)
    command = [sys.executable, "-m", "hookline.cli.main", "trust", "--yes", "--cwd"]
    started = [
        subprocess.Popen([*command, str(folder)], stdout=subprocess.DEVNULL)
        for folder in folders
    ]
    assert [process.wait() for process in started] == [0] * len(folders)
    assert [Path(record.project) for record in all_records()] == folders
    leftovers = [path for path in project.state.rglob(".*") if path.name != ".lock"]
    assert leftovers == []


@pytest.mark.parametrize("command", ["list", "check", "explain"])
def test_looking_at_hooks_never_imports_or_runs_one(
    project: Project, command: str
) -> None:
    marker = project.folder / "ran"
    project.write("guards.py", f"open({str(marker)!r}, 'w')\ndef check(event): ...")
    python = {"type": "python", "function": "guards:check"}
    project.settings(python, {"type": "command", "command": f"touch '{marker}'"})
    project.trust()
    main = [sys.executable, "-m", "hookline.cli.main"]
    known = subprocess.run(
        [*main, "--help"], capture_output=True, text=True, check=True
    ).stdout
    if f"\n  {command} " not in known:
        pytest.skip(f"there is no 'hookline {command}' yet")
    event = ["BeforeTool", "--tool", "x"] if command == "explain" else []
    subprocess.run([*main, command, *event], cwd=project.folder, check=False)
    assert not marker.exists()


def test_list_says_what_is_untrusted_and_what_changed(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    from hookline.cli.main import main

    def states() -> list[str]:
        capfd.readouterr()
        main(["list", "--json", "--cwd", str(project.folder)])
        return [hook["trust"] for hook in json.loads(capfd.readouterr().out)]

    project.guarded()
    assert states() == ["untrusted"]
    project.trust()
    assert states() == ["trusted"]
    project.write(".hookline/hooks/guard.sh", "exit 0")
    assert states() == ["changed"]


def test_review_says_what_is_not_pinned_and_why(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Issue 12.10: with ``--yes`` too, on stdout."""
    project.write("data.json", "{}")
    command = "jq . data.json"
    project.settings(
        {"type": "command", "name": "reads", "command": command},
        {"type": "command", "name": "runs", "command": "bash $X/b.sh"},
    )
    assert project.trust() == 0
    shown = capsys.readouterr().out
    assert "data.json is data, and not pinned" in shown
    assert "$X/b.sh cannot be pinned: list the files that it may name" in shown


AGENTS = [
    *("CLAUDECODE", "AI_AGENT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION"),
    *("CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID", "CODEX_CI"),
    *("GEMINI_CLI", "QWEN_CODE", "QWEN_CODE_SESSION_ID"),
    *("COPILOT_CLI", "COPILOT_AGENT_SESSION_ID"),
]


@pytest.mark.parametrize("variable", AGENTS)
def test_trust_is_refused_to_the_shell_tool_of_an_agent(
    project: Project, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """Issue 26, item 21: an approval is a person's, with or without ``--yes``."""
    project.guarded()
    monkeypatch.setenv(variable, "1")
    for words in (["--yes"], ["--yes", "--show"], ["."], ["--revoke"]):
        said = run(project, *words)
        assert f"{variable} is set" in said
        assert f"cd {project.folder} && hookline trust" in said
        assert said.endswith("[1]")
    assert not all_records()


def test_trust_does_not_ask_an_agent_that_has_a_terminal(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codex can give a command a terminal, and type into it."""
    project.guarded()
    monkeypatch.setenv("CODEX_CI", "1")
    shown = answer(project, "y\n")
    assert "bash .hookline/hooks/guard.sh" in shown
    assert "a coding agent cannot approve hooks" in shown
    assert not all_records()


def test_trust_shows_an_agent_what_would_be_approved(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.guarded()
    monkeypatch.setenv("CLAUDECODE", "1")
    assert "the guard says no" in run(project, "--show")
    assert run(project, "--list") == "no project is trusted\n[0]"
    assert run(project, "--help").endswith("[0]")


def test_trust_of_everything_is_for_environments_without_a_person(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``HOOKLINE_TRUST=all``, set from outside, works in an agent too."""
    project.guarded()
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("HOOKLINE_TRUST", "all")
    words = ["fire", "BeforeTool", "--tool", "x", "--tool-input", "{}"]
    done = subprocess.run(
        [sys.executable, "-m", "hookline.cli.main", *words],
        cwd=project.folder,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
