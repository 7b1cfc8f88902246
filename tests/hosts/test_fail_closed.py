"""A coding agent runs no tool when its guard is gone, broken or late (issue 26.14)."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.installing import GUARD, SCRIPTS, Shell

WRAPPED = ("codex", "gemini", "llxprt", "qwen", "copilot", "vscode", "droid")
FILES = {
    "codex": "../home/.codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "qwen": ".qwen/settings.json",
    "copilot": ".github/hooks/hookline.json",
    "vscode": ".github/hooks/hookline-vscode.json",
    "droid": ".factory/hooks.json",
    "kiro": ".kiro/hooks/hookline.json",
    "windsurf": ".windsurf/hooks.json",
}
OWN_KEYS: dict[str, tuple[str, dict[str, Any]]] = {
    "claude": (".claude/settings.json", {"onFailure": "block"}),
    "cursor": (".cursor/hooks.json", {"failClosed": True}),
    "goose": (".agents/plugins/hookline/hooks/hooks.json", {"on_failure": "block"}),
}
BEFORE_TOOL = ("PreToolUse", "preToolUse", "BeforeTool")
FAILURES = {
    "gone": None,
    "exits with 1": "exit 1",
    "is killed": "kill -9 $$",
    "fails after an answer": "echo '{}'; exit 3",
}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.hooks(BeforeTool=[GUARD], AfterAgent=[GUARD], SubagentStop=[GUARD])
    return shell


def entries(value: Any, event: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Every hook in a host's file, with its event."""
    if isinstance(value, list):
        return [one for item in value for one in entries(item, event)]
    if not isinstance(value, dict):
        return []
    if "command" in value or "bash" in value:
        return [(str(value.get("trigger", event)), value)]
    if "action" in value:
        return [(value["trigger"], value["action"])]
    known = ("hooks",)
    return [
        one
        for key, item in value.items()
        for one in entries(item, event if key in known and event else key)
    ]


def installed(shell: Shell, file: str) -> list[tuple[str, dict[str, Any]]]:
    return entries(json.loads((shell.project / file).read_text()))


def run_as_host(shell: Shell, command: str, program: str | None) -> Any:
    """Run a hook's command where Hookline has gone, or is another program."""
    folder = shell.home / "bin"
    folder.mkdir(exist_ok=True)
    if program is not None:
        (folder / "hookline").write_text(f"#!/bin/sh\n{program}\n")
        (folder / "hookline").chmod(0o755)
    return subprocess.run(
        ["sh", "-c", command],
        cwd=shell.project,
        env={**shell.env, "PATH": f"{folder}:/usr/bin:/bin"},
        input="{}",
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("program", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("host", FILES)
def test_install_blocks_tools_without_an_answer_and_nothing_else(
    shell: Shell, host: str, program: str | None
) -> None:
    """Codex is not trusted here, so its file is the user's, with a path in it."""
    assert "blocks tools if Hookline gives no answer" in (
        shell.run("install", host).stdout
    )
    for event, hook in installed(shell, FILES[host]):
        command = str(hook.get("bash") or hook["command"])
        command = command.replace(f"{SCRIPTS}/hookline", "hookline")
        ended = run_as_host(shell, command, program)
        if event in BEFORE_TOOL or (event.startswith("pre_") and "prompt" not in event):
            assert ended.returncode == 2, event
            name = FILES[host].replace("../home", str(shell.home))
            assert ended.stderr.count("hookline gave no answer") == 1
            assert "Install Hookline again" in ended.stderr
            assert f"remove its entry from {name}" in ended.stderr
        else:
            # From 2 on Gemini CLI rejects the answer, and the next, and so on.
            assert ended.returncode == 1 or host != "gemini"
            assert ended.returncode not in {0, 2}, event
            assert "gave no answer" not in ended.stderr


@pytest.mark.parametrize("host", ["kiro", "gemini"])
def test_text_of_the_bridges_own_block_is_neither_lost_nor_doubled(
    shell: Shell, host: str
) -> None:
    shell.run("install", host)
    hook = dict(installed(shell, FILES[host]))[BEFORE_TOOL[host == "gemini" and 2]]
    ended = run_as_host(shell, hook["command"], "echo no >&2; exit 2")
    assert (ended.returncode, ended.stderr) == (2, "no\n")
    ended = run_as_host(shell, hook["command"], "echo yes; cat")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "yes\n{}", "")


@pytest.mark.parametrize("host", OWN_KEYS)
def test_install_uses_the_hosts_own_switch_before_tools_only(
    shell: Shell, host: str
) -> None:
    file, key = OWN_KEYS[host]
    strict = [GUARD | {"onError": "block"}]
    shell.hooks(BeforeTool=strict, AfterAgent=strict)
    shell.run("install", host)
    for event, hook in installed(shell, file):
        assert (key.items() <= hook.items()) is (event in BEFORE_TOOL), event
    assert "0 errors, 0 warnings" in shell.run("check").stdout
    shell.run("install", host, "--fail-open")
    assert not any(key.items() <= hook.items() for _, hook in installed(shell, file))
    assert "hint: " in shell.run("check").stdout


@pytest.mark.parametrize("program", FAILURES.values(), ids=FAILURES)
def test_cline_is_told_to_cancel(shell: Shell, program: str | None) -> None:
    """It ignores exit statuses, and half an answer."""
    shell.run("install", "cline")
    folder = shell.project / ".cline/hooks"
    ended = run_as_host(shell, str(folder / "PreToolUse.sh"), program)
    answer = json.loads(ended.stdout)
    assert answer["cancel"] is True
    assert (
        "or remove its entry from .cline/hooks/PreToolUse.sh" in answer["errorMessage"]
    )
    ended = run_as_host(shell, str(folder / "TaskComplete.sh"), program)
    assert "cancel" not in ended.stdout
    shell.run("install", "cline", "--fail-open")
    assert run_as_host(shell, str(folder / "PreToolUse.sh"), "echo 1").stdout == "1\n"


@pytest.mark.parametrize("host", ["codex", "gemini", "copilot", "kiro", "cline"])
def test_old_entry_is_upgraded_in_place_and_removed(shell: Shell, host: str) -> None:
    shell.run("install", host, "--fail-open")
    before = texts(shell)
    assert f"run 'hookline install {host}" in shell.run("check").stdout  # a hint
    shell.run("install", host)
    assert "runs the tool if" not in shell.run("check").stdout
    assert "yes" in shell.run("list").stdout or host == "codex"
    assert "already installed" in shell.run("install", host).stdout
    shell.run("install", host, "--fail-open")
    assert texts(shell) == before
    shell.run("install", host)
    assert shell.run("uninstall", host).returncode == 0
    assert "not installed" in shell.run("uninstall", host).stdout
    assert not any("bridge" in text for text in texts(shell).values())


def texts(shell: Shell) -> dict[str, str]:
    files = (one for one in shell.project.parent.rglob("*") if one.is_file())
    return {str(one): one.read_text() for one in files if ".state" not in str(one)}


def test_names_of_folders_mean_nothing_to_the_shell(
    shell: Shell, tmp_path: Path
) -> None:
    folder = tmp_path / "a b'c\"d$(touch x)`touch y`;e"
    folder.mkdir()
    script = folder / "hookline"
    shutil.copy(Path(SCRIPTS) / "hookline", script)
    home = tmp_path / "ho me'$x"
    env = {**shell.env, "CODEX_HOME": str(home), "PATH": "/usr/bin:/bin"}
    subprocess.run([script, "install", "codex"], cwd=shell.project, env=env, check=True)
    found = dict(entries(json.loads((home / "hooks.json").read_text())))
    command = found["PreToolUse"]["command"]
    event = {"hook_event_name": "PreToolUse", "tool_name": "x", "tool_input": {}}
    for is_there in (True, False):
        if not is_there:
            script.unlink()
        ended = subprocess.run(
            ["sh", "-c", command],
            cwd=shell.project,
            env=env | {"HOOKLINE_NO_RESIDENT": "1"},
            input=json.dumps(event),
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == (0 if is_there else 2), ended.stderr
    assert f"remove its entry from {home}/hooks.json\n" in ended.stderr
    assert not [one for one in shell.project.iterdir() if one.name in "xy"]


def bridge(
    shell: Shell, event: str, *words: str, stdin: bytes | None = None, **env: str
) -> Any:
    call = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
    given = {"hook_event_name": event, "cwd": str(shell.project), **call}
    return subprocess.run(
        [f"{SCRIPTS}/hookline", "bridge", *(words or ("gemini",))],
        cwd=shell.project,
        env={**shell.env, "HOOKLINE_NO_RESIDENT": "1", **env},
        input=json.dumps(given).encode() if stdin is None else stdin,
        capture_output=True,
        check=False,
        timeout=60,
    )


BROKEN = {
    "a missing library": ("msgspec", "raise ImportError('gone')"),
    "damaged code": ("msgspec", "x ="),
    "no memory": (
        "sitecustomize",
        "import asyncio\ndef run(_): raise MemoryError\nasyncio.run = run",
    ),
    "a recursion": (
        "sitecustomize",
        "import asyncio\ndef run(x): run(x)\nasyncio.run = run",
    ),
    "an interrupt": (
        "sitecustomize",
        "import asyncio\ndef run(_): raise KeyboardInterrupt\nasyncio.run = run",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("broken", BROKEN)
def test_internal_error_blocks_a_tool_and_no_end_of_a_turn(
    shell: Shell, tmp_path: Path, broken: str
) -> None:
    module, code = BROKEN[broken]
    (tmp_path / f"{module}.py").write_text(f"{code}\n")
    blocked = bridge(shell, "BeforeTool", PYTHONPATH=str(tmp_path))
    assert (blocked.returncode, blocked.stdout) == (2, b"")
    assert b"hookline: internal error" in blocked.stderr
    ended = bridge(shell, "AfterAgent", PYTHONPATH=str(tmp_path))
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert b"hookline: internal error" in ended.stderr


@pytest.mark.parametrize("how", [">&-", ">/dev/full"])
def test_verdict_that_nobody_can_read_is_no_permission(shell: Shell, how: str) -> None:
    event = {"hook_event_name": "PreToolUse", "tool_name": "x", "tool_input": {}}
    ended = subprocess.run(
        ["sh", "-c", f"{SCRIPTS}/hookline bridge claude {how}"],
        cwd=shell.project,
        env={**shell.env, "HOOKLINE_NO_RESIDENT": "1"},
        input=json.dumps(event).encode(),
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr


def test_event_that_is_too_large_is_blocked(shell: Shell) -> None:
    shell.run("trust", "--yes")
    user = shell.home / ".config/hookline/settings.json"
    user.parent.mkdir(parents=True)
    user.write_text(json.dumps({"hooks": {"BeforeTool": [{"hooks": [GUARD]}]}}))
    start = b'{"hook_event_name": "BeforeTool", "tool_name": "x", "tool_input": {"a": "'
    ended = bridge(shell, "", stdin=start + b"a" * (130 << 20) + b'"}}')
    assert b"larger than" in ended.stdout + ended.stderr
    assert ended.returncode == 2 or json.loads(ended.stdout)["decision"] == "deny"
