"""Which shell and which ``PATH`` a hook gets: nothing of an untrusted project's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, ProcessedHookResult, Settings
from tests.support.workspace import Workspace


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs inside a repository, first in the PATH; each says that it ran."""
    folder = tmp_path / "repo" / "node_modules" / ".bin"
    folder.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    for name in ("bash", "sh", "zsh", "mysh", "true"):
        file = folder / name
        file.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-{name}\n")
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


async def fire(folder: Path, hook: dict[str, Any]) -> ProcessedHookResult:
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", **hook}]}]}
    config = Config("s", folder, Settings.from_mapping({"hooks": hooks}))
    async with HookSystem(config) as system:
        return await system.event_handler.fire_before_tool_event("x", {})


@pytest.mark.parametrize("how", ["absolute", "link", "relative", "empty", "dot"])
@pytest.mark.parametrize("cwd", [".", "src/deep"])
async def test_shell_is_never_taken_from_inside_a_project(
    planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, cwd: str
) -> None:
    """``npm run`` puts ``node_modules/.bin`` first."""
    folder = tmp_path / "repo" / cwd
    folder.mkdir(parents=True, exist_ok=True)
    entry = os.path.relpath(planted, folder)
    if how == "absolute":
        entry = str(planted)
    elif how == "link":
        (tmp_path / "link").symlink_to(planted)
        entry = str(tmp_path / "link")
    elif how in {"empty", "dot"}:
        folder = planted
        entry = "" if how == "empty" else "."
    monkeypatch.setenv("PATH", f"{entry}:{os.environ['PATH']}")
    monkeypatch.chdir(folder)
    result = await fire(folder, {"command": "echo $((1 + 1)); exit 2"})
    assert result.blocked
    assert not list(tmp_path.glob("ran-*"))


@pytest.mark.parametrize(
    "command", ["bash -c 'exit 2'", "exec bash -c 'exit 2'", "sh -c 'exit 2'"]
)
async def test_program_of_a_project_comes_after_all_others(
    planted: Path, tmp_path: Path, command: str
) -> None:
    """Whether it is started with a shell or without one; its own ones are found."""
    assert (await fire(tmp_path / "repo", {"command": command})).blocked
    assert not list(tmp_path.glob("ran-*"))
    await fire(tmp_path / "repo", {"command": "mysh"})
    assert [file.name for file in tmp_path.glob("ran-*")] == ["ran-mysh"]


async def test_link_outside_that_leads_into_the_project_is_no_shell(
    planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bash").symlink_to(planted / "bash")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    await fire(tmp_path / "repo", {"command": "echo $((1 + 1))"})
    assert not list(tmp_path.glob("ran-*"))


async def test_named_shell_is_not_taken_from_a_project_either(
    planted: Path, tmp_path: Path
) -> None:
    shell = {"shell": "sh", "command": "exit 2"}
    assert (await fire(tmp_path / "repo", shell)).blocked
    missing = {"shell": "mysh", "command": "exit 0", "onError": "block"}
    result = await fire(tmp_path / "repo", missing)
    assert result.blocked
    assert "No such file" in (result.reason or "")
    planted_path = {**missing, "env": {"PATH": str(planted)}}
    assert (await fire(tmp_path / "repo", planted_path)).blocked
    assert not list(tmp_path.glob("ran-*"))


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("::bin:/usr/bin:/bin:./x:.:", "/usr/bin:/bin"),
        ("bin::/usr/bin:/bin", "/usr/bin:/bin"),
        *((path, "/usr/local/bin:/usr/bin:/bin") for path in (None, "", ":", "bin:.")),
    ],
)
async def test_relative_and_empty_entries_are_dropped_from_the_path(
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    path: str | None,
    shown: str,
) -> None:
    """Bash's own default can hold the current folder."""
    if path is None:
        monkeypatch.delenv("PATH")
    else:
        monkeypatch.setenv("PATH", path)
    hook = workspace.runs("printf '%s' \"$PATH\" >&2; exit 2")
    for more in ({}, {"envPolicy": "clean"}):
        assert (await workspace.fire("BeforeTool", hook | more)).reason == shown


def test_untrusted_bash_is_not_run_by_the_command_line(
    planted: Path, tmp_path: Path
) -> None:
    """The command line as an npm script runs it, with a hook of the user's."""
    user = tmp_path / "config" / "hookline"
    user.mkdir(parents=True)
    hook = {"type": "command", "command": "echo $((1 + 1)) no >&2; exit 2"}
    hooks = {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    (user / "settings.json").write_text(json.dumps(hooks))
    env = {
        "PATH": f"{planted}:.:{os.environ['PATH']}",
        "XDG_CONFIG_HOME": str(user.parent),
    }
    words = ("-m", "hookline.cli.main", "fire", "BeforeTool", "--tool", "x")
    done = subprocess.run(
        [sys.executable, *words],
        cwd=tmp_path / "repo",
        env={**os.environ, **env},
        check=False,
        capture_output=True,
    )
    assert done.returncode == 2
    assert not list(tmp_path.glob("ran-*"))
