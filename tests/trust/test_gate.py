"""Project hooks run only after approval, and only as they were approved."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from hookline import Config, Settings
from hookline.protocol.results import FailureCause
from tests.support.project import DENY, GUARD, Project


async def test_a_project_hook_does_not_run_before_somebody_trusts_it(
    project: Project,
) -> None:
    marker = project.folder / "ran"
    project.settings({"type": "command", "command": f"touch '{marker}'; exit 2"})
    result = await project.fire()
    assert not result.blocked
    assert result.aggregated.hook_results == []
    assert not marker.exists()


async def test_an_untrusted_project_is_warned_about_once_with_what_to_run(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    project.settings(GUARD, {**GUARD, "name": "second"})
    with caplog.at_level(logging.WARNING, "hookline"):
        async with project.system() as hooks:
            for _ in range(3):
                await hooks.event_handler.fire_before_tool_event("x", {})
    warnings = [r.getMessage() for r in caplog.records if "trust" in r.getMessage()]
    assert len(warnings) == 1
    assert "2 hooks are not trusted" in warnings[0]
    assert "'hookline trust'" in warnings[0]


async def test_a_trusted_hook_runs(project: Project) -> None:
    project.guarded()
    assert project.trust() == 0
    result = await project.fire()
    assert result.blocked
    assert result.reason == "the guard says no"


async def test_an_untrusted_project_changes_no_options_of_others(
    project: Project,
) -> None:
    """protocol.md#settings: it contributes nothing but candidates for trust."""
    project.settings(
        GUARD,
        enableHooks=False,
        hooksConfig={"maxProcesses": 1, "onAsk": "allow", "toolSelection": "intersect"},
    )
    config = Config.load(project.folder)
    assert config.settings.global_options == Settings().global_options
    assert config.get_hook_system() is not None


async def test_a_changed_hook_is_allowed_by_its_approved_policy(
    project: Project,
) -> None:
    project.guarded(onError={"changed": "allow"})
    project.trust()
    project.write(".hookline/hooks/guard.sh", "exit 0")
    result = await project.fire()
    assert not result.blocked
    assert [one.cause for one in result.aggregated.hook_results] == [
        FailureCause.CHANGED
    ]


async def test_a_hook_that_nobody_trusted_does_not_run_beside_a_trusted_one(
    project: Project,
) -> None:
    marker = project.folder / "ran"
    project.guarded()
    project.trust()
    project.settings(GUARD, {"type": "command", "command": f"touch '{marker}'"})
    await project.fire()
    assert not marker.exists()


async def test_files_swapped_during_the_run_count_as_changed(project: Project) -> None:
    """Check and use: the guard allows, but nobody can tell which bytes said so."""
    swap = "cp .hookline/hooks/guard.sh kept; cp kept .hookline/hooks/guard.sh; exit 0"
    project.write(".hookline/hooks/guard.sh", swap)
    project.settings(GUARD)
    project.trust()
    result = await project.fire()
    assert result.blocked
    assert result.reason is not None
    assert "changed during the run" in result.reason


@pytest.mark.parametrize(
    "command",
    [
        "bash tools/guard.sh",
        "./tools/guard.sh",
        'bash "$HOOKLINE_PROJECT_DIR/tools/guard.sh"',
        "bash ${CLAUDE_PROJECT_DIR}/tools/guard.sh",
        "cd tools && ./guard.sh",
        "LEVEL=1 bash -c 'exec tools/guard.sh'",
        "cat tools/guard.sh | bash",
        "bash<tools/guard.sh",
        "for f in tools/*.sh; do bash $f || exit 2; done",
        "env SCRIPT=tools/guard.sh bash -c '. $SCRIPT'",
    ],
)
async def test_a_file_that_the_command_names_is_pinned(
    project: Project, command: str
) -> None:
    project.write("tools/guard.sh", f"#!/bin/bash\n{DENY}", 0o755)
    project.settings({**GUARD, "command": command})
    project.trust()
    before = await project.fire()
    assert before.reason == "the guard says no"
    project.write("tools/guard.sh", "#!/bin/bash\nexit 0", 0o755)
    after = await project.fire()
    assert after.blocked
    assert after.reason is not None
    assert "tools/guard.sh changed since it was approved" in after.reason


async def test_a_file_that_appears_where_the_command_names_one_is_a_change(
    project: Project,
) -> None:
    command = "mytool --off tools/off 2>/dev/null; exit 2"
    project.settings({**GUARD, "command": command})
    project.trust()
    async with project.system() as hooks:
        project.write("tools/off", "")
        result = await hooks.event_handler.fire_before_tool_event("x", {})
    assert result.blocked
    assert result.reason is not None
    assert "tools/off was added since it was approved" in result.reason


async def test_a_new_match_of_a_named_pattern_is_a_change(project: Project) -> None:
    project.write("tools/10.sh", DENY)
    command = "for f in tools/*.sh; do . $f; done"
    project.settings({**GUARD, "command": command})
    project.trust()
    async with project.system() as hooks:
        await hooks.event_handler.fire_before_tool_event("x", {})
        project.write("tools/00.sh", "exit 0")
        result = await hooks.event_handler.fire_before_tool_event("x", {})
    assert result.reason is not None
    assert "tools/00.sh was added since it was approved" in result.reason


async def test_trust_files_are_pinned_wherever_they_are(
    project: Project, tmp_path: Path
) -> None:
    words = tmp_path / "words"
    words.mkdir()
    (words / "list.txt").write_text("secret")
    project.guarded(trustFiles=[str(words), "lib"])
    project.trust()
    assert (await project.fire()).reason == "the guard says no"
    (words / "list.txt").write_text("")
    changed = await project.fire()
    assert changed.reason is not None
    assert "list.txt changed since it was approved" in changed.reason


async def test_one_hooks_file_is_not_anothers(project: Project) -> None:
    project.write("tools/first.sh", DENY)
    first = {**GUARD, "name": "first", "command": "bash tools/first.sh"}
    second = {"type": "command", "name": "second", "command": "true"}
    project.settings(first, second)
    project.trust()
    project.write("tools/first.sh", "exit 0")
    result = await project.fire()
    causes = {one.hook_name: one.cause for one in result.aggregated.hook_results}
    assert causes == {"first": FailureCause.CHANGED, "second": None}


async def test_a_project_file_that_no_hook_names_may_change(project: Project) -> None:
    project.write("src/app.py", "1")
    project.guarded()
    project.trust()
    project.write("src/app.py", "2")
    assert (await project.fire()).reason == "the guard says no"


async def test_everything_is_trusted_in_a_sealed_environment(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.guarded()
    monkeypatch.setenv("HOOKLINE_TRUST", "all")
    assert (await project.fire()).reason == "the guard says no"
    monkeypatch.setenv("HOOKLINE_TRUST", "yes")
    assert not (await project.fire()).blocked


async def test_a_settings_file_that_was_named_needs_no_trust(project: Project) -> None:
    project.guarded()
    file = project.folder / ".hookline/settings.json"
    config = Config("s", project.folder, Settings.from_file(file))
    hooks = config.get_hook_system()
    assert hooks is not None
    async with hooks:
        result = await hooks.event_handler.fire_before_tool_event("x", {})
    assert result.reason == "the guard says no"


async def test_settings_that_a_host_loads_itself_need_trust_too(
    project: Project,
) -> None:
    project.guarded()
    config = Config("s", project.folder, Settings.load(project.folder))
    hooks = config.get_hook_system()
    assert hooks is not None
    async with hooks:
        result = await hooks.event_handler.fire_before_tool_event("x", {})
    assert result.aggregated.hook_results == []


async def test_user_hooks_need_no_trust(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "hookline"
    folder.mkdir(parents=True)
    user = {"hooks": {"BeforeTool": [{"hooks": [{**GUARD, "command": "exit 2"}]}]}}
    (folder / "settings.json").write_text(json.dumps(user))
    assert (await project.fire()).blocked


async def test_a_changed_project_hook_does_not_push_an_equal_user_hook_out(
    project: Project, tmp_path: Path
) -> None:
    project.guarded(onError={"changed": "allow"})
    project.trust()
    folder = tmp_path / "config" / "hookline"
    folder.mkdir(parents=True)
    user = {"hooks": {"BeforeTool": [{"hooks": [GUARD]}]}}
    (folder / "settings.json").write_text(json.dumps(user))
    project.write("extra", "")
    project.write(".hookline/note", "")
    result = await project.fire()
    assert result.reason == "the guard says no"


@pytest.mark.parametrize("corrupt", ["bytes", "mode"])
async def test_a_corrupt_record_blocks(project: Project, corrupt: str) -> None:
    project.guarded(onError={"changed": "allow"})
    project.trust()
    (record,) = project.record_files()
    if corrupt == "bytes":
        record.write_text("{")
    else:
        record.chmod(0o666)
    assert (await project.fire()).blocked


async def test_hook_that_the_approving_version_ignored_does_not_run(
    project: Project,
) -> None:
    """Issue 12.9: its settings were approved, but nobody was shown the hook."""
    project.settings({"type": "command", "name": "new", "command": "touch ran"})
    project.trust()
    (file,) = project.record_files()
    record = json.loads(file.read_text())
    record["files"] = {}  # what a version records that drops the hook
    file.write_text(json.dumps(record))
    result = await project.fire()
    assert result.blocked
    assert "was not among the hooks that were approved" in (result.reason or "")
    assert not (project.folder / "ran").exists()
