"""Trust and cedar hooks: policies, entities and schema are approved like scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hookline import ProcessedHookResult
from hookline.protocol.results import FailureCause
from hookline.settings.model import HookConfig, HookType
from hookline.trust.pins import Treatment, hook_files
from tests.support.project import Project

PERMIT = "permit(principal, action, resource);"
MEMBERS = 'permit(principal in Agent::"in", action, resource);'
SCHEMA = """entity Agent in [Agent]; entity Project;
action write_file appliesTo { principal: Agent, resource: Project, context: {} };"""
HOOK = {
    "type": "cedar",
    "name": "policy",
    "policies": ["rules/tools.cedar"],
    "entities": "rules/agents.json",
    "schema": "rules/tools.cedarschema",
}


def agents(group: str) -> str:
    parents = [{"type": "Agent", "id": group}]
    uid = {"type": "Agent", "id": "default"}
    return json.dumps([{"uid": uid, "attrs": {}, "parents": parents}])


def guarded(project: Project, **more: Any) -> None:
    project.write("rules/tools.cedar", MEMBERS)
    project.write("rules/agents.json", agents("out"))
    project.write("rules/tools.cedarschema", SCHEMA)
    project.settings({**HOOK, **more})


def cause(result: ProcessedHookResult) -> FailureCause | None:
    [found] = result.aggregated.hook_results
    return found.cause


async def test_untrusted_project_asks_no_policies(project: Project) -> None:
    guarded(project)
    assert not (await project.fire()).aggregated.hook_results


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rules/tools.cedar", PERMIT),
        ("rules/agents.json", agents("in")),
        ("rules/tools.cedarschema", f"{SCHEMA} entity More;"),
    ],
)
async def test_changed_file_is_a_changed_hook(
    project: Project, name: str, text: str
) -> None:
    """Issue 13.2: in a trusted project they are pinned like scripts."""
    guarded(project)
    assert project.trust() == 0
    async with project.system() as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        denied = await fire("write_file", {})
        assert (denied.blocked, cause(denied)) == (True, None)
        kept = (project.folder / name).read_text()
        project.write(name, text)
        for result in (await fire("write_file", {}), await project.fire()):
            assert result.blocked
            assert cause(result) is FailureCause.CHANGED
            assert f"{name} changed since it was approved" in (result.reason or "")
        project.write(name, kept)
        again = await fire("write_file", {})
        assert (again.blocked, cause(again)) == (True, None)
        project.write(name, text)
        assert project.trust() == 0
        allowed = await fire("write_file", {})
        assert cause(allowed) is None
        assert allowed.blocked == name.endswith("schema")


@pytest.mark.parametrize("name", ["tools.cedar", "agents.json", "tools.cedarschema"])
async def test_files_in_the_hookline_folder_are_pinned_with_it(
    project: Project, name: str
) -> None:
    project.write(".hookline/tools.cedar", MEMBERS)
    project.write(".hookline/agents.json", agents("out"))
    project.write(".hookline/tools.cedarschema", SCHEMA)
    places = {
        "policies": ".hookline/tools.cedar",
        "entities": ".hookline/agents.json",
        "schema": ".hookline/tools.cedarschema",
        "trustFiles": [f"!.hookline/{name}"],
    }
    project.settings({"type": "cedar", "name": "policy", **places})
    assert project.trust() == 0
    assert cause(await project.fire()) is None
    with (project.folder / ".hookline" / name).open("a") as file:
        file.write("\n")
    assert cause(await project.fire()) is FailureCause.CHANGED


async def test_entities_that_were_left_out_change_freely(project: Project) -> None:
    """``"!path"`` takes entities out of the approval, and nothing else."""
    guarded(project, trustFiles=["!rules"])
    assert project.trust() == 0
    async with project.system() as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        assert (await fire("write_file", {})).blocked
        project.write("rules/agents.json", agents("in"))
        result = await fire("write_file", {})
        assert (result.blocked, cause(result)) == (False, None)
        project.write("rules/agents.json", agents("out"))
        assert (await fire("write_file", {})).blocked
        project.write("rules/tools.cedar", PERMIT)
        assert cause(await fire("write_file", {})) is FailureCause.CHANGED


async def test_policies_outside_of_the_project_are_pinned(
    project: Project, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.cedar"
    outside.write_text(PERMIT)
    project.settings({"type": "cedar", "name": "policy", "policies": str(outside)})
    assert project.trust() == 0
    assert cause(await project.fire()) is None
    outside.write_text(f"// changed\n{PERMIT}")
    assert cause(await project.fire()) is FailureCause.CHANGED


async def test_link_in_the_place_of_a_policy_is_a_change(project: Project) -> None:
    guarded(project)
    assert project.trust() == 0
    path = project.folder / "rules/tools.cedar"
    path.rename(project.folder / "kept")
    path.symlink_to("../kept")
    assert cause(await project.fire()) is FailureCause.CHANGED


async def test_missing_file_closes_a_trusted_hook(project: Project) -> None:
    guarded(project)
    assert project.trust() == 0
    (project.folder / "rules/tools.cedar").unlink()
    result = await project.fire()
    assert result.blocked
    assert cause(result) is FailureCause.CHANGED


def test_review_names_the_files(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    guarded(project, trustFiles=["!rules/agents.json"])
    project.trust("--show")
    shown = capsys.readouterr().out
    for name in ("rules/tools.cedar", "rules/tools.cedarschema", "rules/agents.json"):
        assert name in shown
    project.trust()
    capsys.readouterr()
    project.write("rules/tools.cedar", PERMIT)
    project.trust("--show")
    shown = capsys.readouterr().out
    assert f"+{PERMIT}" in shown
    assert f"-{MEMBERS}" in shown


def test_review_says_what_happens_to_each_file(tmp_path: Path) -> None:
    for name in ("tools.cedar", "agents.json", "helper.py"):
        (tmp_path / name).write_text("// python\n")
    hook = HookConfig(
        type=HookType.CEDAR,
        name="h",
        policies=("tools.cedar",),
        entities="agents.json",
        trust_files=("!agents.json",),
    )
    found = {
        Path(file.path).name: file.treatment for file in hook_files(hook, str(tmp_path))
    }
    assert found == {"tools.cedar": Treatment.PINNED, "agents.json": Treatment.DATA}


async def test_untrusted_block_closes_the_event(
    project: Project, tmp_path: Path
) -> None:
    file = project.state.parent / "config" / "hookline" / "settings.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"hooksConfig": {"untrusted": "block"}}))
    project.write("rules/tools.cedar", PERMIT)
    project.settings(
        {"type": "cedar", "policies": "rules/tools.cedar", "onError": "allow"}
    )
    result = await project.fire()
    assert result.blocked
    assert cause(result) is FailureCause.CHANGED
