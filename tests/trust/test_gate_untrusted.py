"""``hooksConfig.untrusted: "block"`` (issue 12.13, protocol.md#settings)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, ProcessedHookResult, Settings
from hookline.cli.main import main
from hookline.protocol.events import HookEventName
from tests.support.project import Project
from tests.support.workshop import INPUTS

HOOK = {"type": "command", "name": "guard", "command": "touch ran"}


@pytest.fixture
def user(project: Project) -> Path:
    """The user's settings, which close the events of untrusted projects."""
    return user_settings(project, {"hooksConfig": {"untrusted": "block"}})


def user_settings(project: Project, settings: dict[str, Any]) -> Path:
    file = project.state.parent / "config" / "hookline" / "settings.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(settings))
    return file


async def fire(
    folder: Path, event: HookEventName = HookEventName.BeforeTool
) -> ProcessedHookResult:
    async with HookSystem(Config.load(folder)) as hooks:
        return await hooks.event_handler.fire(event, INPUTS.get(event, {}))


@pytest.mark.usefixtures("user")
async def test_untrusted_hook_closes_its_event_and_says_what_to_run(
    project: Project,
) -> None:
    project.settings(HOOK)
    result = await fire(project.folder)
    assert result.blocked
    assert result.reason == (
        "hook 'guard' failed, and hooksConfig.untrusted blocks: its project "
        f"{project.folder} is not trusted: review it with 'hookline trust'"
    )
    assert not (project.folder / "ran").exists()
    project.trust()
    assert not (await fire(project.folder)).blocked
    assert (project.folder / "ran").exists()
    project.trust("--revoke")
    assert (await fire(project.folder)).blocked


@pytest.mark.usefixtures("user")
@pytest.mark.parametrize(
    "more",
    [
        {"mode": "observe"},
        {"onError": "allow"},
        {"onError": {"changed": "allow"}},
        {"timeout": 1},
        {"shell": "/bin/true"},
        {"type": "worker"},
        {"type": "python", "function": "x:y"},
        {"type": "plugin"},
        {"recheck": False},
        {"expect": "any", "dialect": "claude"},
    ],
    ids=str,
)
async def test_nothing_that_an_untrusted_hook_says_keeps_its_event_open(
    project: Project, more: dict[str, Any]
) -> None:
    project.settings({**HOOK, **more}, hooksConfig={"disabled": ["guard"]})
    assert (await fire(project.folder)).blocked


@pytest.mark.usefixtures("user")
@pytest.mark.parametrize(
    "event", [HookEventName.BeforeModel, HookEventName.BeforeAgent]
)
async def test_each_event_that_can_block_is_blocked(
    project: Project, event: HookEventName
) -> None:
    project.settings(HOOK, event=event.value)
    assert (await fire(project.folder, event)).blocked


@pytest.mark.usefixtures("user")
async def test_events_that_cannot_block_take_their_closed_form(
    project: Project,
) -> None:
    project.settings(HOOK, event="AfterTool")
    result = await fire(project.folder, HookEventName.AfterTool)
    assert result.final_output is not None
    assert result.final_output.to_wire()["hookSpecificOutput"]["withholdResult"]


@pytest.mark.usefixtures("user")
async def test_only_events_with_a_matching_hook_are_closed(project: Project) -> None:
    hooks = {"BeforeTool": [{"matcher": "shell", "hooks": [HOOK]}]}
    project.write(".hookline/settings.json", json.dumps({"hooks": hooks}))
    assert not (await fire(project.folder)).blocked
    assert not (await fire(project.folder, HookEventName.BeforeAgent)).blocked
    hooks["BeforeTool"][0]["matcher"] = "write"
    project.write(".hookline/settings.json", json.dumps({"hooks": hooks}))
    assert (await fire(project.folder)).blocked


@pytest.mark.usefixtures("user")
@pytest.mark.parametrize("broken", ["json", "both", "pipe-like folder", "shared"])
async def test_untrusted_settings_that_cannot_be_read_close_every_event(
    project: Project, broken: str
) -> None:
    """Nobody knows what they guard."""
    file = project.settings(HOOK)
    match broken:
        case "json":
            file.write_text("{")
        case "both":
            project.write(".hookline/settings.toml", "")
        case "shared":
            file.chmod(0o666)
        case _:
            file.unlink()
            file.mkdir()
    assert (await fire(project.folder)).blocked
    assert (await fire(project.folder, HookEventName.BeforeAgent)).blocked


@pytest.mark.usefixtures("user")
async def test_hook_that_was_added_to_a_trusted_project_closes_its_event(
    project: Project,
) -> None:
    project.settings(HOOK, event="BeforeAgent")
    project.trust()
    both = {"BeforeAgent": [{"hooks": [HOOK]}], "BeforeTool": [{"hooks": [HOOK]}]}
    project.write(".hookline/settings.json", json.dumps({"hooks": both}))
    assert (await fire(project.folder)).blocked


@pytest.mark.usefixtures("user")
async def test_an_approval_of_everything_runs_the_hooks(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOKLINE_TRUST", "all")
    project.settings(HOOK)
    assert not (await fire(project.folder)).blocked
    assert (project.folder / "ran").exists()


async def test_without_the_option_untrusted_hooks_are_skipped(project: Project) -> None:
    user_settings(project, {"hooksConfig": {"untrusted": "skip"}})
    project.settings(HOOK)
    assert not (await fire(project.folder)).blocked


async def test_user_can_switch_an_untrusted_hook_off(project: Project) -> None:
    options = {"untrusted": "block", "disabled": ["guard"]}
    user_settings(project, {"hooksConfig": options})
    project.settings(HOOK)
    assert not (await fire(project.folder)).blocked


def test_project_cannot_say_what_is_trusted(project: Project) -> None:
    project.settings(HOOK, hooksConfig={"untrusted": "block"})
    settings = Settings.load(project.folder)
    assert settings.untrusted.value == "skip"
    (warning,) = settings.warnings
    assert "hooksConfig.untrusted: ignored: only user and system settings" in warning


def test_fresh_git_worktree_is_closed_until_it_is_trusted(
    project: Project, user: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A new worktree has the same hooks and no approval."""
    assert user.exists()
    project.guarded()
    project.trust()
    git(project.folder, "init", "-q")
    git(project.folder, "add", ".")
    git(project.folder, "commit", "-qm", "hooks")
    tree = project.folder.parent / "worktree"
    git(project.folder, "worktree", "add", "-q", str(tree))
    (tree / "sub").mkdir()
    words = ["fire", "BeforeTool", "--tool", "x", "--cwd", str(tree / "sub")]
    assert main(words) == 2
    said = capfd.readouterr()
    assert f"run 'hookline trust' in {tree}" in said.err
    assert f"its project {tree} is not trusted" in said.out
    assert main(["trust", "--yes", "--cwd", str(tree / "sub")]) == 0
    capfd.readouterr()
    assert main(words) == 2
    assert "the guard says no" in capfd.readouterr().out


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=me", "-c", "user.email=me@example.com")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True)
