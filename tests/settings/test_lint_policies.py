"""``hookline check`` on cedar hooks (issue 13.2)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline.settings.lint import Finding, check_file, check_places
from hookline.settings.locations import SettingsPlaces

PERMIT = "permit(principal, action, resource);"
SCHEMA = """entity Agent, Project;
action write_file appliesTo { principal: Agent, resource: Project,
  context: { tool_input: { path: String } } };"""


class CheckedProject:
    """A project with one cedar hook."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def check(self, event: str = "BeforeTool", /, **keys: Any) -> list[str]:
        hook = {"type": "cedar", "policies": "p.cedar", **keys}
        given = {"hooks": {event: [{"hooks": [hook]}]}}
        self.write(".hookline/settings.json", json.dumps(given, indent=1))
        found = check_places(SettingsPlaces(project_dir=self.folder))
        return [_line(one).replace(str(self.folder), "") for one in found.findings]


def _line(finding: Finding) -> str:
    return f"{finding.severity}: {finding.where}: {finding.message}"


WHERE = "error: hooks.BeforeTool[0].hooks[0]"


@pytest.fixture
def project(tmp_path: Path) -> CheckedProject:
    return CheckedProject(tmp_path / "project")


def test_policies_that_are_right_are_not_mentioned(project: CheckedProject) -> None:
    project.write("p.cedar", PERMIT)
    project.write("s.cedarschema", SCHEMA)
    project.write("e.json", "[]")
    assert project.check() == []
    assert project.check(entities="e.json", schema="s.cedarschema") == []


def test_missing_files_are_found(project: CheckedProject) -> None:
    project.write("p.cedar", PERMIT)
    found = project.check(policies=["p.cedar", "q.cedar"], entities="e.json")
    assert found == [
        f"{WHERE}.{key}: /{name}: cannot be read: No such file or directory"
        for key, name in (("policies", "q.cedar"), ("entities", "e.json"))
    ]


def test_syntax_errors_are_found_in_every_file(project: CheckedProject) -> None:
    project.write("p.cedar", f"{PERMIT}\n\npermit(principal, action);")
    project.write("q.cedar", "forbid(")
    project.write("e.json", '[{"uid": 1}]')
    found = project.check(policies=["p.cedar", "q.cedar"], entities="e.json")
    assert [line.split(": ")[2] for line in found] == [
        *("/p.cedar:3", "/q.cedar:1", "/e.json"),
    ]


def test_policies_are_validated_against_the_schema(project: CheckedProject) -> None:
    """Issue 13.2: file, line, policy and message."""
    project.write("s.cedarschema", SCHEMA)
    project.write(
        "p.cedar",
        f"""{PERMIT}
        @id("typo")
        forbid(principal, action, resource)
        when {{ context.tool_input.pth == "x" }};
        permit(principal, action == Action::"wrte_file", resource);""",
    )
    found = project.check(schema="s.cedarschema")
    assert f"{WHERE}.policies: /p.cedar:2: policy typo: attribute" in found[0]
    assert "`tool_input.pth`" in found[0]
    assert f"{WHERE}.policies: /p.cedar:5: policy policy2: " in found[1]
    assert 'unrecognized action `Action::"wrte_file"`' in found[1]


def test_broken_schema_is_found(project: CheckedProject) -> None:
    project.write("p.cedar", PERMIT)
    project.write("s.cedarschema", "entity Agent")
    [found] = project.check(schema="s.cedarschema")
    assert found.startswith(f"{WHERE}.schema: /s.cedarschema: not a valid Cedar schema")


def test_event_that_cannot_be_blocked_is_pointed_out(project: CheckedProject) -> None:
    project.write("p.cedar", PERMIT)
    [found] = project.check("AfterModel")
    assert found.startswith(
        "warning: hooks.AfterModel[0].hooks[0].policies: AfterModel"
    )
    assert "cannot be blocked" in found


def test_missing_engine_is_found(
    project: CheckedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 13.2: ``check`` says so."""
    project.write("p.cedar", PERMIT)
    monkeypatch.setitem(sys.modules, "cedarpy", None)
    [found] = project.check()
    assert "install 'cedarpy>=4.12'" in found


@pytest.mark.parametrize("policies", [5, [], [5], {"a": 1}, None])
def test_policies_of_another_type_drop_the_hook_with_an_error(
    project: CheckedProject, policies: Any
) -> None:
    found = project.check(policies=policies)
    assert found
    assert "policies" in found[0]


def test_relative_paths_of_user_settings_are_errors(tmp_path: Path) -> None:
    user = tmp_path / "user"
    user.mkdir()
    hook = {"type": "cedar", "policies": ["p.cedar", "~/q.cedar"], "schema": "s"}
    given = {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    (user / "settings.json").write_text(json.dumps(given))
    places = SettingsPlaces(project_dir=tmp_path, user_dir=user)
    found = [_line(one) for one in check_places(places).findings]
    assert [line for line in found if "is relative" in line] == [
        f"{WHERE}.{key} is relative, so the hook fails: name the whole path"
        for key in ("policies: 'p.cedar'", "schema: 's'")
    ]


def test_settings_that_are_named_are_checked_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.cedar").write_text(PERMIT)
    hook = {"type": "cedar", "policies": "p.cedar"}
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"hooks": {"BeforeTool": [{"hooks": [hook]}]}}))
    assert check_file(path).findings == ()
