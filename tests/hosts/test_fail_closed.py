"""A coding agent runs no tool when its guard is gone, broken or late.

What ``install`` writes into an agent's settings is run here as the agent runs it, with
a Hookline that is missing, fails or is killed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hookline.hosts import failsafe
from hookline.hosts.registry import HOSTS
from hookline.protocol.events import HookEventName
from tests.support.agent_files import GUARD, PROGRAMS, AgentFiles

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


def test_every_event_before_a_tool_is_one_without_an_answer_that_blocks() -> None:
    """The bridge knows them by name before it has loaded the hosts."""
    names = {
        name
        for host in HOSTS.values()
        for name, event in host.events.items()
        if event is HookEventName.BeforeTool
    }
    assert names == {*failsafe.BEFORE_TOOL}


@pytest.fixture
def files(tmp_path: Path) -> AgentFiles:
    """A project with hooks before tools and at the end of turns."""
    files = AgentFiles(tmp_path)
    files.hooks(BeforeTool=[GUARD], AfterAgent=[GUARD], SubagentStop=[GUARD])
    return files


def entries(value: Any, event: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Every hook in a host's file, with its event."""
    if isinstance(value, list):
        return [entry for item in value for entry in entries(item, event)]
    if not isinstance(value, dict):
        return []
    if "command" in value or "bash" in value:
        return [(str(value.get("trigger", event)), value)]
    if "action" in value:
        return [(value["trigger"], value["action"])]
    groups = ("hooks",)
    return [
        entry
        for key, item in value.items()
        for entry in entries(item, event if key in groups and event else key)
    ]


def installed(files: AgentFiles, file: str) -> list[tuple[str, dict[str, Any]]]:
    return entries(json.loads((files.project / file).read_text()))


def run_as_host(files: AgentFiles, command: str, program: str | None) -> Any:
    """Run a hook's command where Hookline has gone, or is another program."""
    folder = files.home / "bin"
    folder.mkdir(exist_ok=True)
    if program is not None:
        (folder / "hookline").write_text(f"#!/bin/sh\n{program}\n")
        (folder / "hookline").chmod(0o755)
    return subprocess.run(
        ["sh", "-c", command],
        cwd=files.project,
        env={**files.env, "PATH": f"{folder}:/usr/bin:/bin"},
        input="{}",
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("program", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("host", FILES)
def test_install_blocks_tools_without_an_answer_and_nothing_else(
    files: AgentFiles, host: str, program: str | None
) -> None:
    """Codex is not trusted here, so its file is the user's, with a path in it."""
    assert "blocks tools if Hookline gives no answer" in (
        files.run("install", host).stdout
    )
    for event, hook in installed(files, FILES[host]):
        command = str(hook.get("bash") or hook["command"])
        command = command.replace(f"{PROGRAMS}/hookline", "hookline")
        ended = run_as_host(files, command, program)
        if event in BEFORE_TOOL or (event.startswith("pre_") and "prompt" not in event):
            assert ended.returncode == 2, event
            name = FILES[host].replace("../home", str(files.home))
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
    files: AgentFiles, host: str
) -> None:
    files.run("install", host)
    hook = dict(installed(files, FILES[host]))[BEFORE_TOOL[host == "gemini" and 2]]
    ended = run_as_host(files, hook["command"], "echo no >&2; exit 2")
    assert (ended.returncode, ended.stderr) == (2, "no\n")
    ended = run_as_host(files, hook["command"], "echo yes; cat")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "yes\n{}", "")


@pytest.mark.parametrize("host", OWN_KEYS)
def test_install_uses_the_hosts_own_switch_before_tools_only(
    files: AgentFiles, host: str
) -> None:
    file, key = OWN_KEYS[host]
    strict = [GUARD | {"onError": "block"}]
    files.hooks(BeforeTool=strict, AfterAgent=strict)
    files.run("install", host)
    for event, hook in installed(files, file):
        assert (key.items() <= hook.items()) is (event in BEFORE_TOOL), event
    assert "0 errors, 0 warnings" in files.run("check").stdout
    files.run("install", host, "--fail-open")
    assert not any(key.items() <= hook.items() for _, hook in installed(files, file))
    assert "hint: " in files.run("check").stdout


@pytest.mark.parametrize("program", FAILURES.values(), ids=FAILURES)
def test_cline_is_told_to_cancel(files: AgentFiles, program: str | None) -> None:
    """It ignores exit statuses, and half an answer."""
    files.run("install", "cline")
    folder = files.project / ".cline/hooks"
    ended = run_as_host(files, str(folder / "PreToolUse.sh"), program)
    answer = json.loads(ended.stdout)
    assert answer["cancel"] is True
    assert (
        "or remove its entry from .cline/hooks/PreToolUse.sh" in answer["errorMessage"]
    )
    ended = run_as_host(files, str(folder / "TaskComplete.sh"), program)
    assert "cancel" not in ended.stdout
    files.run("install", "cline", "--fail-open")
    assert run_as_host(files, str(folder / "PreToolUse.sh"), "echo 1").stdout == "1\n"


@pytest.mark.parametrize("host", ["codex", "gemini", "copilot", "kiro", "cline"])
def test_old_entry_is_upgraded_in_place_and_removed(
    files: AgentFiles, host: str
) -> None:
    files.run("install", host, "--fail-open")
    before = texts(files)
    assert f"run 'hookline install {host}" in files.run("check").stdout  # a hint
    files.run("install", host)
    assert "runs the tool if" not in files.run("check").stdout
    assert "yes" in files.run("list").stdout or host == "codex"
    assert "already installed" in files.run("install", host).stdout
    files.run("install", host, "--fail-open")
    assert texts(files) == before
    files.run("install", host)
    assert files.run("uninstall", host).returncode == 0
    assert "not installed" in files.run("uninstall", host).stdout
    assert not any("bridge" in text for text in texts(files).values())


def texts(files: AgentFiles) -> dict[str, str]:
    """Every file of the person, but what Hookline keeps for itself."""
    paths = (path for path in files.folder.rglob("*") if path.is_file())
    return {str(path): path.read_text() for path in paths if ".state" not in str(path)}


def test_names_of_folders_mean_nothing_to_the_shell(
    files: AgentFiles, tmp_path: Path
) -> None:
    folder = tmp_path / "a b'c\"d$(touch x)`touch y`;e"
    folder.mkdir()
    script = folder / "hookline"
    shutil.copy(Path(PROGRAMS) / "hookline", script)
    home = tmp_path / "ho me'$x"
    env = {**files.env, "CODEX_HOME": str(home), "PATH": "/usr/bin:/bin"}
    subprocess.run([script, "install", "codex"], cwd=files.project, env=env, check=True)
    hooks = dict(entries(json.loads((home / "hooks.json").read_text())))
    command = hooks["PreToolUse"]["command"]
    event = {"hook_event_name": "PreToolUse", "tool_name": "x", "tool_input": {}}
    for is_there in (True, False):
        if not is_there:
            script.unlink()
        ended = subprocess.run(
            ["sh", "-c", command],
            cwd=files.project,
            env=env | {"HOOKLINE_NO_RESIDENT": "1"},
            input=json.dumps(event),
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == (0 if is_there else 2), ended.stderr
    assert f"remove its entry from {home}/hooks.json\n" in ended.stderr
    assert not [path for path in files.project.iterdir() if path.name in "xy"]


def bridge(
    files: AgentFiles, event: str, *words: str, stdin: bytes | None = None, **env: str
) -> Any:
    call = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
    payload = {"hook_event_name": event, "cwd": str(files.project), **call}
    return subprocess.run(
        [f"{PROGRAMS}/hookline", "bridge", *(words or ("gemini",))],
        cwd=files.project,
        env={**files.env, "HOOKLINE_NO_RESIDENT": "1", **env},
        input=json.dumps(payload).encode() if stdin is None else stdin,
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
    files: AgentFiles, tmp_path: Path, broken: str
) -> None:
    module, code = BROKEN[broken]
    (tmp_path / f"{module}.py").write_text(f"{code}\n")
    blocked = bridge(files, "BeforeTool", PYTHONPATH=str(tmp_path))
    assert (blocked.returncode, blocked.stdout) == (2, b"")
    assert b"hookline: internal error" in blocked.stderr
    ended = bridge(files, "AfterAgent", PYTHONPATH=str(tmp_path))
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert b"hookline: internal error" in ended.stderr


@pytest.mark.parametrize("how", [">&-", ">/dev/full"])
def test_verdict_that_nobody_can_read_is_no_permission(
    files: AgentFiles, how: str
) -> None:
    event = {"hook_event_name": "PreToolUse", "tool_name": "x", "tool_input": {}}
    ended = subprocess.run(
        ["sh", "-c", f"{PROGRAMS}/hookline bridge claude {how}"],
        cwd=files.project,
        env={**files.env, "HOOKLINE_NO_RESIDENT": "1"},
        input=json.dumps(event).encode(),
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr


def test_event_that_is_too_large_is_blocked(files: AgentFiles) -> None:
    files.run("trust", "--yes")
    user = files.home / ".config/hookline/settings.json"
    user.parent.mkdir(parents=True)
    user.write_text(json.dumps({"hooks": {"BeforeTool": [{"hooks": [GUARD]}]}}))
    start = b'{"hook_event_name": "BeforeTool", "tool_name": "x", "tool_input": {"a": "'
    ended = bridge(files, "", stdin=start + b"a" * (130 << 20) + b'"}}')
    assert b"larger than" in ended.stdout + ended.stderr
    assert ended.returncode == 2 or json.loads(ended.stdout)["decision"] == "deny"
