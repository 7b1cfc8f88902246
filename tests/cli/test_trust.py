"""``hookline trust``: who may approve, and a review that no project can disguise.

What it shows and records otherwise is in ``tests/pins/commands/trust.json``.
"""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline.protocol.convert import keys_of
from hookline.settings.model import HookConfig
from tests.support.command_project import PROGRAM, read_terminal
from tests.support.commandline import run_command
from tests.support.pins import FOLDER
from tests.support.project import GUARD, Project


def review(project: Project, *words: str) -> str:
    """What the command prints, without a terminal."""
    return run_command("trust", *words, cwd=project.folder).stdout


def at_terminal(project: Project, answer: str, **env: str) -> str:
    """What a person sees who gives this answer at a terminal."""
    ours, theirs = pty.openpty()
    os.write(ours, answer.encode())
    with subprocess.Popen(
        [*PROGRAM, "trust"],
        cwd=project.folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "dumb", "PAGER": "cat", **env},
        start_new_session=True,
    ):
        os.close(theirs)
        shown = read_terminal(ours)
    os.close(ours)
    return shown.replace("\r\n", "\n")


def test_trust_asks_at_a_terminal(project: Project) -> None:
    project.guarded()
    for answer, records in (("n\n", 0), ("\n", 0), ("y\n", 1)):
        assert "[y/N]" in at_terminal(project, answer)
        assert len(project.record_files()) == records


def test_trust_does_not_ask_an_agent_that_has_a_terminal(project: Project) -> None:
    """Codex can give a command a terminal, and type into it."""
    project.guarded()
    shown = at_terminal(project, "y\n", CODEX_CI="1")
    assert "bash .hookline/hooks/guard.sh" in shown
    assert "a coding agent cannot approve hooks" in shown
    assert project.record_files() == []


def test_two_processes_trusting_at_once_lose_nothing(
    project: Project, tmp_path: Path
) -> None:
    folders = [tmp_path / f"p{number}" for number in range(6)]
    for folder in folders:
        Project(folder, project.state).guarded(name=folder.name)
    command = [*PROGRAM, "trust", "--yes", "--cwd"]
    started = [
        subprocess.Popen([*command, str(folder)], stdout=subprocess.DEVNULL)
        for folder in folders
    ]
    assert [process.wait() for process in started] == [0] * len(folders)
    listed = review(project, "--list")
    assert [line.split()[0] for line in listed.splitlines() if "  since" in line] == [
        str(folder) for folder in folders
    ]
    leftovers = [path for path in project.state.rglob(".*") if path.name != ".lock"]
    assert leftovers == []


def test_revoked_and_deleted_projects_leave_nothing(project: Project) -> None:
    project.guarded()
    project.trust()
    review(project, "--revoke")
    assert list(project.state.rglob("copies/*")) == []
    project.trust()
    project.folder.rename(project.state.parent / "elsewhere")
    gone = run_command("trust", "--revoke", project.folder, cwd=Path("/"))
    assert "trust revoked" in gone.stdout
    assert project.record_files() == []


def test_review_shows_every_key_that_settings_know() -> None:
    """A new key must be added to the row that shows all of them."""
    rows = json.loads((FOLDER / "commands/trust.json").read_text())
    row = rows["every key of a definition is shown"]
    (group,) = row["files"][".hookline/settings.json"]["hooks"]["BeforeTool"]
    assert set(keys_of(HookConfig)) <= {*group["hooks"][0], "function"}


def test_review_says_what_cannot_be_pinned_or_shown(project: Project) -> None:
    project.guarded()
    os.mkfifo(project.folder / ".hookline" / "pipe")
    line = (
        "new      .hookline/pipe  is not a regular file, so its content is not pinned"
    )
    assert f"  {line}\n" in review(project, "--yes")
    for odd in (b"# \xff\n", b"# \0\n"):  # a shell runs such a script
        script = project.folder / ".hookline/hooks/guard.sh"
        script.write_bytes(b"echo this is a script of some length\n" + odd)
        assert "  | echo this is a script" in review(project, "--show")
        review(project, "--yes")
        script.write_bytes(b"echo this is another script\n" + odd)
        assert "+echo this is another script" in review(project)


@pytest.mark.parametrize("odd", ["\x1b[2J", "\u202e", "\u200b", "\x07", "\x9b1m", "\r"])
def test_no_text_of_a_project_controls_the_terminal(project: Project, odd: str) -> None:
    """Names, values, keys, files and links alike; bidirectional marks too."""
    hook = {**GUARD, "name": f"n{odd}", "command": f"true {odd}", f"k{odd}": odd}
    group = {"matcher": f"m{odd}", f"g{odd}": 1, "hooks": [hook]}
    settings = {"hooks": {"BeforeTool": [group]}, f"top{odd}": odd}
    project.write(".hookline/settings.json", json.dumps(settings, ensure_ascii=False))
    project.write(f".hookline/file{odd}", f"text {odd} text")
    (project.folder / ".hookline" / "link").symlink_to(f"to{odd}")
    shown = review(project, "--show")
    assert "text " in shown
    assert odd not in shown


def test_text_of_a_file_cannot_pass_for_the_review(project: Project) -> None:
    project.guarded()
    forged = "\n\nFiles included in this approval (0):\u2028new      nothing"
    project.write(".hookline/forged.txt", forged)
    project.write(".hookline/a\nnew      b", "x")
    lines = review(project, "--show").splitlines()
    assert sum(line.startswith("Files included") for line in lines) == 1
    assert not any(line.startswith("new      nothing") for line in lines)
    assert any("a\\nnew      b" in line for line in lines)


def test_pager_shows_the_review_with_all_files_at_a_terminal(
    project: Project, tmp_path: Path
) -> None:
    project.guarded()
    pager = tmp_path / "bin" / "pager"
    pager.parent.mkdir()
    pager.write_text(f'#!/bin/sh\necho "paged $1"; tee {tmp_path}/paged\n')
    pager.chmod(0o755)
    shown = at_terminal(project, "y\n", PAGER=f"{pager} --flag")
    assert "paged --flag" in shown
    assert "| echo 'the guard says no'" in (tmp_path / "paged").read_text()
    assert len(project.record_files()) == 1


@pytest.mark.parametrize("value", ["", "none-such-pager", "node_modules/.bin/less"])
def test_pager_is_never_taken_from_the_project(
    project: Project, tmp_path: Path, value: str
) -> None:
    """Nothing of the project runs before it is approved."""
    project.guarded()
    for name in ("less", "none-such-pager"):
        path = f"node_modules/.bin/{name}"
        project.write(path, f"#!/bin/sh\ntouch {tmp_path}/ran\n", 0o755)
    folder = project.folder / "node_modules" / ".bin"
    path = f"{folder}:node_modules/.bin:."
    shown = at_terminal(project, "n\n", PAGER=value, PATH=path)
    assert "the guard says no" in shown
    assert not (tmp_path / "ran").exists()
    assert project.record_files() == []


INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u200b"
    "\u200d\u2028\u2029\u202e\u2060\u2800\u3164\ufe00\ufe0f\ufeff\uffa0\x85\x1b\x7f"
    "\U000e0001\U000e0061\U000e0100\U000e01ef\U0001d159\r"
)


def test_review_shows_what_cannot_be_seen(project: Project) -> None:
    """protocol.md#settings: in names, keys, variables, file names, texts and diffs."""
    text = f"a{INVISIBLE}b"
    project.write(f".hookline/{text}", text + "x" * 400)
    hook = {**GUARD, "name": text, "description": text, "env": {text: text}}
    project.settings({**hook, "command": f"sh {text}"}, hooksConfig={text: 1})
    shown = review(project, "--show")
    assert not set(INVISIBLE) & set(shown)
    assert shown.count(text.encode("unicode_escape").decode()) >= 4
    assert project.trust() == 0
    project.write(f".hookline/{text}", f"{text}\ufe0e" + "x" * 400)
    changed = review(project)
    assert not set(INVISIBLE) & set(changed)
    assert "b\\ufe0ex" in changed


FORGED = "x\nFORGED\u2028FORGED\x85FORGED\rFORGED"
COMMANDS = """
trust --show --yes
trust --list
list
check
explain BeforeTool --tool x
fire BeforeTool --tool x
fire BeforeTool --tool x --settings .hookline/settings.json
log --everywhere
log 1 --everywhere
stats --everywhere
install claude --dry-run
bridge claude
"""


@pytest.mark.parametrize("state", ["new", "changed", "broken"])
def test_no_name_starts_a_line_of_its_own(
    tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """protocol.md#settings: of hooks, files and folders, wherever it is printed."""
    project = Project(tmp_path / FORGED, tmp_path / "state")
    names = {"name": FORGED, "description": FORGED, "env": {"A": FORGED}}
    hooks: list[dict[str, Any]] = [
        {**names, "type": "command", "command": f"exit 3 # {FORGED}"},
        {**names, "type": "rule", "when": f"{FORGED}"},
        {**names, "type": FORGED},
        {**names, "type": "http", "url": f"http://{FORGED}", FORGED: 1, "timeot": 1},
    ]
    more: dict[str, Any] = {
        "hooksConfig": {"journal": True, "disabled": [FORGED], FORGED: FORGED}
    }
    file = project.settings(*hooks, **more)
    project.write(f".hookline/{FORGED}", FORGED.replace("\n", ""))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    event: dict[str, Any] = {"hook_event_name": "PreToolUse", "tool_name": "x"}
    event |= {"session_id": FORGED, "tool_input": {}, "cwd": str(project.folder)}

    def run(*words: str) -> str:
        ended = run_command(*words, cwd=project.folder, stdin=json.dumps(event))
        return ended.stdout + ended.stderr

    if state != "new":
        run("trust", "--yes")
        run("fire", "BeforeTool", "--tool", FORGED, "--session-id", FORGED)
    if state == "changed":
        project.settings(*({**hook, "timeout": 5} for hook in hooks[::-1]), **more)
    elif state == "broken":
        file.write_text("{")
    for command in COMMANDS.strip().splitlines():
        shown = run(*command.split())
        assert shown, command
        lines = re.split("[\n\r\x85\u2028]", shown)
        forged = [line for line in lines if line.lstrip(" +-").startswith("FORGED")]
        assert not forged, command


def test_deleted_working_directory_is_no_traceback(tmp_path: Path) -> None:
    script = 'mkdir "$1"; cd "$1" && rmdir "$1" && shift && exec "$@"'
    for words in ("fire BeforeTool --tool x", "list", "check", "trust"):
        main = [sys.executable, "-P", "-m", "hookline", *words.split()]
        ended = subprocess.run(
            ["bash", "-c", script, "-", str(tmp_path / "gone"), *main],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in ended.stderr
        assert ended.returncode == 0, ended.stderr
