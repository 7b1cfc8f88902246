"""Who needs an approval, and what is told of a project that has none."""

from __future__ import annotations

import logging

import pytest

from hookline import Config, Settings
from hookline.settings.model import TrustStatus
from tests.support.project import GUARD, Project


async def test_untrusted_project_is_warned_about_once_with_what_to_run(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    project.settings(GUARD, {**GUARD, "name": "second"})
    with caplog.at_level(logging.WARNING, "hookline"):
        async with project.system() as hooks:
            for _ in range(3):
                await hooks.event_handler.fire_before_tool_event("x", {})
    warnings = [r.getMessage() for r in caplog.records if "trust" in r.getMessage()]
    warning = (
        f"{project.folder}/.hookline/settings.json: 2 hooks are not trusted and will "
        f"not run: run 'hookline trust' in {project.folder} to review and approve them"
    )
    assert warnings == [warning]


@pytest.mark.parametrize("source", ["named", "loaded by the host"])
async def test_settings_need_trust_unless_their_file_was_named(
    project: Project, source: str
) -> None:
    project.guarded()
    file = project.folder / ".hookline/settings.json"
    is_named = source == "named"
    settings = Settings.from_file(file) if is_named else Settings.load(project.folder)
    hooks = Config("s", project.folder, settings).get_hook_system()
    assert hooks is not None
    async with hooks:
        result = await hooks.event_handler.fire_before_tool_event("x", {})
    assert result.reason == ("the guard says no" if is_named else None)
    assert len(result.aggregated.hook_results) == is_named


def test_hooks_say_which_project_they_are_from(project: Project) -> None:
    project.write(".git/HEAD", "")
    project.guarded()
    project.trust()
    inner = Project(project.folder / "inner", project.state)
    inner.settings({"type": "command", "name": "inner", "command": "true"})
    system = Config.load(inner.folder).get_hook_system()
    assert system is not None
    assert [
        (hook.name, hook.project, hook.trust) for hook in system.get_all_hooks()
    ] == [
        ("guard", str(project.folder), TrustStatus.TRUSTED),
        ("inner", str(inner.folder), TrustStatus.UNTRUSTED),
    ]
