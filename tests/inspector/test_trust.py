"""What waits for approval is shown, and nothing here approves (issue 16: trust)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.exceptions import HTTPException

from hookline.inspector.approvals import describe_known, list_projects, quoted
from hookline.inspector.desk import Desk
from tests.support.inspecting import Inspected
from tests.support.project import DENY, GUARD, Project


def shown(project: Project) -> dict[str, Any]:
    """What the view says about the project, as it is sent."""
    (found,) = list_projects(Desk(str(project.folder)))["projects"]
    decoded: dict[str, Any] = json.loads(json.dumps(found, default=_plain))
    return decoded


def _plain(value: Any) -> Any:
    return {name: getattr(value, name) for name in value.__struct_fields__}


def files(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {file["path"]: file for file in found["files"]}


def test_a_new_project_waits_with_its_hooks_and_files(project: Project) -> None:
    project.guarded(env={"BASH_ENV": "x"}, timeout=1234)
    found = shown(project)
    assert found["state"] == "waiting"
    assert found["approval"] is None
    (hook,) = found["hooks"]
    assert (hook["change"], hook["name"], hook["event"]) == (
        "new",
        "guard",
        "BeforeTool",
    )
    assert hook["runs"] == GUARD["command"]
    assert {"key": "timeout", "value": "1234"} in hook["keys"]
    assert [one["name"] for one in hook["cautions"]] == ["BASH_ENV"]
    assert hook["files"] == []  # what is in .hookline is pinned as a whole
    guard = files(found)[".hookline/hooks/guard.sh"]
    assert (guard["change"], guard["text"]["lines"]) == ("new", [DENY])
    assert guard["size"] == len(DENY)


def test_changes_are_shown_as_diffs(project: Project) -> None:
    project.guarded()
    project.trust()
    project.write(".hookline/hooks/guard.sh", "exit 0")
    project.settings({**GUARD, "timeout": 99}, hooksConfig={"disabled": ["guard"]})
    found = shown(project)
    assert found["state"] == "waiting"
    assert found["approval"]["since"].startswith("20")
    guard = files(found)[".hookline/hooks/guard.sh"]
    assert guard["change"] == "changed"
    assert {f"-{DENY}", "+exit 0"} <= set(guard["diff"]["lines"])
    (hook,) = found["hooks"]
    assert not hook["defined_as_approved"]
    assert '+    "timeout": 99' in hook["diff"]["lines"]
    (options,) = found["options"]
    assert any("disabled" in line for line in options["diff"]["lines"])


def test_what_was_removed_is_shown(project: Project) -> None:
    project.guarded()
    project.write(".hookline/hooks/extra.sh", "exit 2")
    project.trust()
    (project.folder / ".hookline/hooks/extra.sh").unlink()
    project.settings()
    found = shown(project)
    assert files(found)[".hookline/hooks/extra.sh"]["change"] == "removed"
    assert "-exit 2" in files(found)[".hookline/hooks/extra.sh"]["diff"]["lines"]
    assert [hook["change"] for hook in found["hooks"]] == ["removed"]
    (project.folder / ".hookline/settings.json").unlink()
    assert shown(project)["removed"]


def test_hooks_whose_files_changed_only_are_told_from_the_others(
    project: Project,
) -> None:
    project.guarded()
    project.trust()
    project.write(".hookline/hooks/guard.sh", "exit 0")
    (hook,) = shown(project)["hooks"]
    assert (hook["change"], hook["defined_as_approved"]) == ("changed", True)


def test_a_trusted_project_says_since_when(project: Project) -> None:
    project.guarded()
    project.trust()
    found = shown(project)
    assert found["state"] == "trusted"
    assert found["approval"]["since"].endswith("Z")
    assert [hook["name"] for hook in found["approval"]["hooks"]] == ["guard"]
    assert "hooks" not in found


def test_a_folder_without_hooks_has_nothing_to_approve(project: Project) -> None:
    assert shown(project)["state"] == "empty"


def test_settings_that_cannot_be_read_say_what_is_wrong(project: Project) -> None:
    project.write(".hookline/settings.json", "{")
    found = shown(project)
    assert found["state"] == "broken"
    assert "settings.json" in found["problem"]


def test_everything_trusted_by_the_environment_is_said(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOKLINE_TRUST", "all")
    assert list_projects(Desk(str(project.folder)))["trusts_all"]


async def test_other_projects_are_those_trusted_and_those_in_the_journal(
    project: Project, tmp_path: Path
) -> None:
    names = ("kept", "edited", "unknown", "deleted")
    others = {name: Project(tmp_path / name, project.state) for name in names}
    for name, other in others.items():
        other.guarded()
        other.settings(GUARD, hooksConfig={"journal": True})
        other.trust()
        if name == "unknown":
            await other.fire()
            other.trust("--revoke")
    others["edited"].write(".hookline/hooks/guard.sh", "exit 0")
    os.rename(others["deleted"].folder, tmp_path / "moved")  # noqa: PTH104
    desk = Desk(str(project.folder))
    found = {one["project"]: one for one in list_projects(desk)["others"]}
    states = {Path(path).name: one["state"] for path, one in found.items()}
    assert states == {
        "kept": "trusted",
        "edited": "waiting",
        "unknown": "waiting",
        "deleted": "missing",
    }
    edited = describe_known(desk, str(others["edited"].folder))
    assert edited["state"] == "waiting"
    assert any(file["path"].endswith("guard.sh") for file in edited["files"])
    with pytest.raises(HTTPException, match="404"):
        describe_known(desk, str(tmp_path / "moved"))


def test_each_project_around_the_folder_is_shown_by_itself(project: Project) -> None:
    project.write(".git/HEAD", "")
    project.guarded()
    project.trust()
    inner = Project(project.folder / "inner", project.state)
    inner.guarded()
    found = list_projects(Desk(str(inner.folder)))["projects"]
    states = {Path(one["project"]).name: one["state"] for one in found}
    assert states == {"project": "trusted", "inner": "waiting"}


@pytest.mark.parametrize(
    "name",
    [
        "plain",
        "with space",
        "it's",
        "$(touch pwned)",
        "a\nb",
        "escape\x1b[201~\x15rm -rf x\n",
        "back\\slash\x07'quote'",
        "über",
        "bidi\u202egnp",
        os.fsdecode(b"bytes\xff\x9b"),
    ],
)
def test_commands_can_be_pasted_whatever_a_folder_is_called(name: str) -> None:
    """A terminal acts on control characters before the shell sees any quotes."""
    words = quoted(name)
    assert words.isprintable()
    done = subprocess.run(
        ["bash", "-c", f"printf %s {words}"], capture_output=True, check=True
    )
    assert os.fsdecode(done.stdout) == name


def test_commands_name_the_project_and_never_approve_unseen(project: Project) -> None:
    project.guarded()
    texts = [one["command"] for one in shown(project)["commands"]]
    assert texts == [
        f"hookline trust {project.folder}",
        f"hookline trust --revoke {project.folder}",
    ]


PATHS = ("/trust", "/api/trust", "/api/trust/approve", "/api/trust?yes=1", "/api/hooks")


def test_no_request_changes_what_is_trusted(
    inspected: Inspected, project: Project
) -> None:
    """Not with any method, path or body, and with the right token."""
    project.guarded()
    project.trust()
    project.write(".hookline/hooks/guard.sh", "exit 0")
    before = _contents(project.state)
    inspected.folder = project.folder
    body = {"project": str(project.folder), "yes": True, "approve": True}
    seen = set()
    with inspected.running(), httpx.Client(follow_redirects=True) as client:
        client.get(inspected.address)
        for path in PATHS:
            for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
                url = f"{inspected.base}{path}"
                given = None if method in {"GET", "HEAD"} else body
                seen.add(client.request(method, url, json=given).status_code)
        state = client.get(f"{inspected.base}/api/trust").json()["projects"][0]["state"]
    assert state == "waiting"
    assert seen <= {200, 404, 405}
    assert _contents(project.state) == before


def _contents(folder: Path) -> dict[str, tuple[bytes, float]]:
    trust = folder / "hookline" / "trust"
    found = (path for path in trust.rglob("*") if path.is_file())
    return {str(path): (path.read_bytes(), path.stat().st_mtime) for path in found}
