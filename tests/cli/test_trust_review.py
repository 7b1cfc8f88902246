"""A person sees everything that an approval covers (issue 12.9)."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline.settings.fields import HOOK_FIELDS
from hookline.settings.lint import check_file
from tests.support.commandline import hookline
from tests.support.project import DENY, GUARD, Project

VALUES: dict[str, Any] = {
    "description": "what it is for",
    "timeout": 1234,
    "env": {"LEVEL": "strict", "BASH_ENV": "$(id > PWNED)"},
    "shell": "/bin/dash",
    "onError": {"crash": "block"},
    "expect": "json",
    "envPolicy": "clean",
    "mode": "observe",
    "dialect": "claude",
    "trustFiles": ["data.txt"],
    "pool": 3,
    "managed": True,
    "recheck": False,
    "if": "tool_name == 'x'",
    "async": True,
    "standby": 2,
    "when": "true",
    "then": {"decision": "deny"},
    "policies": ["guard.cedar"],
    "entities": "agents.json",
    "schema": "agents.cedarschema",
    "principal": "reviewer",
    "url": "https://guard.invalid/",
    "allowedEnv": ["TOKEN"],
    "headers": {"Authorization": "${TOKEN}"},
    "unknown key": [1, {"a": None}],
}


def review(project: Project, *words: str) -> str:
    done = hookline("trust", *words, cwd=project.folder)
    return done.stdout


@pytest.mark.parametrize("words", [(), ("--yes",)])
def test_every_key_of_a_definition_is_shown(
    project: Project, words: tuple[str, ...]
) -> None:
    """Known or not, with its value."""
    project.settings({**GUARD, **VALUES})
    shown = review(project, *words)
    for key, value in VALUES.items():
        assert f"{key}: {json.dumps(value, separators=(',', ':'))}" in shown


def test_table_of_keys_has_none_that_this_file_does_not_show() -> None:
    assert set(HOOK_FIELDS) <= {*VALUES, *GUARD, "function"}


def test_group_event_and_options_are_shown(project: Project) -> None:
    group = {"matcher": "write", "sequential": True, "odd": 1, "hooks": [GUARD]}
    options = {"disabled": ["x"], "maxDepth": 9, "strange": {"a": 1}}
    found = {"hooks": {"AfterTool": [group]}, "hooksConfig": options, "more": 1}
    project.write(".hookline/settings.json", json.dumps(found))
    project.write(".hookline/settings.local.json", '{"enableHooks": false}')
    shown = review(project, "--yes")
    assert "guard  on AfterTool write  (command)" in shown
    assert "sequential of the group: true" in shown
    assert "odd of the group: 1" in shown
    assert 'hooksConfig: {"disabled":["x"],"maxDepth":9,"strange":{"a":1}}' in shown
    assert "more: 1" in shown
    assert "enableHooks: false" in shown


def test_all_pinned_files_are_listed_with_their_sizes(project: Project) -> None:
    project.guarded()
    project.write(".hookline/data/big.bin", "x" * 12_345)
    project.write("tools/check.sh", "exit 0")
    (project.folder / ".hookline" / "link").symlink_to("../tools/check.sh")
    (project.folder / ".hookline" / "lost").symlink_to("nowhere")
    os.mkfifo(project.folder / ".hookline" / "pipe")
    project.settings({**GUARD, "trustFiles": ["tools"]})
    shown = review(project, "--yes")
    for line in (
        f"new      .hookline/hooks/guard.sh  {len(DENY)} bytes",
        "new      .hookline/data/big.bin  12,345 bytes",
        "new      .hookline/link -> ../tools/check.sh  6 bytes",
        "new      .hookline/lost -> nowhere  does not exist; creating it is a change",
        "new      .hookline/pipe  is not a regular file, so its content is not pinned",
        "new      tools/check.sh  6 bytes",
    ):
        assert f"  {line}\n" in shown


@pytest.mark.parametrize(
    "name",
    [
        *("BASH_ENV", "ENV", "PATH", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "IFS"),
        *("PYTHONPATH", "PYTHONSTARTUP", "NODE_OPTIONS", "PERL5LIB", "PERL5OPT"),
        *("RUBYOPT", "GIT_SSH_COMMAND", "SHELLOPTS", "PS4", "BASH_FUNC_ls%%"),
        *("CLAUDE_PROJECT_DIR", "HOOKLINE_TRUST", "HOOKLINE_PYTHON"),
    ],
)
def test_risky_variables_are_pointed_out(project: Project, name: str) -> None:
    """In the review, and by ``check``."""
    file = project.settings({**GUARD, "command": "true", "env": {name: "x"}})
    assert f"caution {name} changes which programs or files" in review(project)
    findings = check_file(file).findings
    assert [one.where for one in findings if "changes which" in one.message] == [
        f"hooks.BeforeTool[0].hooks[0].env.{name}"
    ]


def test_ordinary_variables_are_not_pointed_out(project: Project) -> None:
    project.settings({**GUARD, "env": {"LEVEL": "1", "PYTHONUNBUFFERED": "1"}})
    assert "caution" not in review(project)


def test_show_prints_new_and_changed_files(project: Project) -> None:
    project.guarded()
    assert "| echo 'the guard says no'" not in review(project)
    assert "  | echo 'the guard says no' >&2; exit 2\n" in review(project, "--show")
    review(project, "--yes")
    project.write(".hookline/hooks/guard.sh", "exit 0\n")
    project.write(".hookline/more.sh", "exit 1\n")
    shown = review(project, "--show")
    assert "  | exit 0\n" in shown
    assert "  | exit 1\n" in shown
    assert "+exit 1" not in shown, "issue 17: a new file is shown once"
    assert '  | {"hooks"' not in shown


def test_binary_file_is_shown_by_its_digest(project: Project) -> None:
    project.guarded()
    (project.folder / ".hookline" / "blob").write_bytes(b"\0\xff")
    assert "(not text, or too long to show; SHA-256 " in review(project, "--show")


@pytest.mark.parametrize("odd", ["\x1b[2J", "\u202e", "\u200b", "\x07", "\x9b1m", "\r"])
def test_no_text_of_a_project_controls_the_terminal(project: Project, odd: str) -> None:
    """Names, values, keys, files and links alike; bidirectional marks too."""
    hook = {**GUARD, "name": f"n{odd}", "command": f"true {odd}", f"k{odd}": odd}
    group = {"matcher": f"m{odd}", f"g{odd}": 1, "hooks": [hook]}
    found = {"hooks": {"BeforeTool": [group]}, f"top{odd}": odd}
    project.write(".hookline/settings.json", json.dumps(found, ensure_ascii=False))
    project.write(f".hookline/file{odd}", f"text {odd} text")
    (project.folder / ".hookline" / "link").symlink_to(f"to{odd}")
    done = subprocess.run(
        [sys.executable, "-m", "hookline.cli.main", "trust", "--show"],
        cwd=project.folder,
        env={**os.environ, "PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert odd not in done.stdout.decode()


def test_text_of_a_file_cannot_pass_for_the_review(project: Project) -> None:
    project.guarded()
    forged = "\n\napproved with them, byte for byte: 0 paths\u2028new      nothing"
    project.write(".hookline/forged.txt", forged)
    project.write(".hookline/a\nnew      b", "x")
    shown = review(project, "--show").splitlines()
    assert sum(line.startswith("approved with them") for line in shown) == 1
    assert not any(line.startswith("new      nothing") for line in shown)
    assert any("a\\nnew      b" in line for line in shown)


def test_change_of_definition_and_options_is_shown_as_a_diff(project: Project) -> None:
    project.guarded()
    project.settings(GUARD, hooksConfig={"maxDepth": 2})
    review(project, "--yes")
    hook = {**GUARD, "env": {"A": "1"}, "odd": 1}
    project.settings(hook, event="BeforeTool", hooksConfig={"maxDepth": 3})
    shown = review(project)
    assert '+    "odd": 1' in shown
    assert '-    "maxDepth": 2' in shown
    assert '+    "maxDepth": 3' in shown


def test_changed_matcher_is_shown_as_a_diff(project: Project) -> None:
    project.guarded()
    review(project, "--yes")
    hooks = {"BeforeTool": [{"matcher": "never", "hooks": [GUARD]}]}
    project.write(".hookline/settings.json", json.dumps({"hooks": hooks}))
    shown = review(project)
    assert '-    "matcher": null' in shown
    assert '+    "matcher": "never"' in shown


def at_terminal(project: Project, said: str, **env: str) -> str:
    """Run the command with a terminal for input and output; gives what it shows."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "hookline.cli.main", "trust"],
        cwd=project.folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "dumb", **env},
        start_new_session=True,
    )
    os.close(theirs)
    os.write(ours, said.encode())
    shown = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    child.wait(60)
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


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
    bin_folder = project.folder / "node_modules" / ".bin"
    path = f"{bin_folder}:node_modules/.bin:."
    shown = at_terminal(project, "n\n", PAGER=value, PATH=path)
    assert "the guard says no" in shown
    assert not (tmp_path / "ran").exists()
    assert project.record_files() == []


def test_runs_is_what_the_type_of_a_hook_runs(project: Project) -> None:
    """A command beside the function of a Python hook is never run (issue 12.9)."""
    project.settings(
        {"type": "python", "name": "a", "command": "true", "function": "evil:main"}
    )
    shown = review(project)
    assert "runs   evil:main" in shown
    assert 'command: "true"' in shown


def test_nothing_is_pushed_out_of_sight_by_blanks(project: Project) -> None:
    command = f"true{' ' * 400}; touch a{chr(9) * 20}; touch b; \u3164=1"
    project.settings({**GUARD, "command": command})
    expected = "true [400 blanks] ; touch a [20 blanks] ; touch b; \\u3164=1"
    assert f"runs   {expected}\n" in review(project)


def test_removed_hook_is_shown_where_another_has_its_name(project: Project) -> None:
    other = {**GUARD, "command": "exit 2"}
    project.write(".hookline/hooks/guard.sh", DENY)
    project.settings(GUARD, other)
    review(project, "--yes")
    project.settings(other)
    removed = review(project).partition("removed  guard")[2]
    assert removed.splitlines()[1].endswith(str(GUARD["command"]))


@pytest.mark.parametrize("odd", [b"# \xff\n", b"# \0\n"], ids=["not UTF-8", "NUL"])
def test_odd_byte_does_not_hide_a_script(project: Project, odd: bytes) -> None:
    """A shell runs such a script."""
    project.guarded()
    script = project.folder / ".hookline/hooks/guard.sh"
    script.write_bytes(b"echo this is a script of some length\n" + odd + b"exit 2\n")
    assert "  | echo this is a script" in review(project, "--show")
    review(project, "--yes")
    script.write_bytes(b"echo this is another script\n" + odd + b"exit 2\n")
    assert "+echo this is another script" in review(project)


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
def test_no_name_starts_a_line_of_its_own(tmp_path: Path, state: str) -> None:
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
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}
    event: dict[str, Any] = {
        "hook_event_name": "PreToolUse",
        "session_id": FORGED,
        "tool_name": "x",
    }
    event |= {"tool_input": {}, "cwd": str(project.folder)}

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "hookline", *words],
            cwd=project.folder,
            env={**env, "HOOKLINE_NO_RESIDENT": "1"},
            input=json.dumps(event).encode(),
            capture_output=True,
            check=False,
        )
        return (done.stdout + done.stderr).decode()

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
