"""The Trust view shows what waits for approval, and no request approves anything.

What it shows of one project is in ``tests/pins/page/trust.json``.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from hookline.inspector.approvals import quoted
from tests.support.inspecting import Inspected
from tests.support.page_rows import PageProject
from tests.support.project import GUARD, Project


async def test_other_projects_are_those_trusted_and_those_in_the_journal(
    project: Project, tmp_path: Path
) -> None:
    journal: dict[str, Any] = {"hooksConfig": {"journal": True}}
    others = {
        name: Project(tmp_path / name, project.state)
        for name in ("kept", "edited", "unknown", "deleted")
    }
    for name, other in others.items():
        other.guarded()
        other.settings(GUARD, **journal)
        other.trust()
        if name == "unknown":
            await other.fire()
            other.trust("--revoke")
    others["edited"].write(".hookline/hooks/guard.sh", "exit 0")
    others["deleted"].folder.rename(tmp_path / "moved")
    page = PageProject(tmp_path, own_journal=False)
    listed = (await page.ask("/api/trust"))["others"]
    states = {Path(one["project"]).name: one["state"] for one in listed}
    assert states == {
        "kept": "trusted",
        "edited": "waiting",
        "unknown": "waiting",
        "deleted": "missing",
    }
    edited = await page.ask(f"/api/trust?project={others['edited'].folder}")
    assert "changed .hookline/hooks/guard.sh" in edited["lines"]
    assert (await page.ask(f"/api/trust?project={tmp_path}/moved"))["status"] == 404


@pytest.mark.parametrize(
    "name",
    [
        *("plain", "with space", "it's", "$(touch pwned)", "a\nb", "über"),
        "escape\x1b[201~\x15rm -rf x\n",
        "back\\slash\x07'quote'",
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
    statuses = set()
    with inspected.served(), httpx.Client(follow_redirects=True) as client:
        client.get(inspected.address)
        for path in PATHS:
            for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
                sent = None if method in {"GET", "HEAD"} else body
                url = f"{inspected.base}{path}"
                statuses.add(client.request(method, url, json=sent).status_code)
        state = client.get(f"{inspected.base}/api/trust").json()["projects"][0]["state"]
    assert state == "waiting"
    assert statuses <= {200, 404, 405}
    assert _contents(project.state) == before


def _contents(folder: Path) -> dict[str, tuple[bytes, float]]:
    trust = folder / "hookline" / "trust"
    files = (path for path in trust.rglob("*") if path.is_file())
    return {str(path): (path.read_bytes(), path.stat().st_mtime) for path in files}
