"""A journal never follows a link out of a project."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from hookline import Config, HookSystem
from hookline.errors import JournalError
from hookline.journal.store import open_for_reading, open_for_writing
from tests.support.project import Project


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "ssh"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("place", ["file", "folder", "-wal", "-shm", "-journal"])
def test_link_inside_a_project_is_refused(
    tmp_path: Path, outside: Path, place: str, exists: bool
) -> None:
    journal = tmp_path / "project" / ".hookline" / "data" / "j.sqlite"
    target = outside / "authorized_keys"
    if exists:
        target.write_text("a key")
    journal.parent.parent.mkdir(parents=True)
    if place == "folder":
        journal.parent.symlink_to(outside)
    else:
        journal.parent.mkdir()
        if place != "file":
            open_for_writing(str(journal)).close()
        Path(f"{journal}{place.removeprefix('file')}").symlink_to(target)
    before = {path: path.read_bytes() for path in outside.iterdir()}
    for use in (open_for_writing, open_for_reading):
        with pytest.raises(JournalError, match="is a symbolic link"):
            use(str(journal))
    assert {path: path.read_bytes() for path in outside.iterdir()} == before


def test_side_file_that_is_another_file_too_is_refused(
    tmp_path: Path, outside: Path
) -> None:
    (outside / "keys").write_text("a key")
    open_for_writing(str(tmp_path / "j.sqlite")).close()
    os.link(outside / "keys", tmp_path / "j.sqlite-wal")
    with pytest.raises(JournalError, match="is also another file"):
        open_for_writing(str(tmp_path / "j.sqlite"))
    assert (outside / "keys").read_text() == "a key"


@pytest.mark.parametrize("where", ["project", "user"])
async def test_events_are_not_recorded_through_a_link(
    project: Project, outside: Path, where: str
) -> None:
    """Whoever chose the path: the project made the link."""
    options = {"journal": "logs/authorized_keys"}
    if where == "user":
        user = project.state.parent / "config" / "hookline"
        user.mkdir(parents=True)
        (user / "settings.json").write_text(
            '{"hooksConfig": {"journal": "logs/authorized_keys"}}'
        )
        options = {}
    project.settings({"type": "command", "command": "true"}, hooksConfig=options)
    project.trust()
    (project.folder / "logs").symlink_to(outside)
    async with HookSystem(Config.load(project.folder)) as hooks:
        await hooks.event_handler.fire_before_tool_event("x", {})
    assert list(outside.iterdir()) == []


def test_project_behind_a_link_can_have_a_journal(tmp_path: Path) -> None:
    """Only links inside the project are its own."""
    project = tmp_path / "real" / "project"
    (project / ".git").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    path = tmp_path / "link" / "project" / "logs" / "j.sqlite"
    with closing(open_for_writing(str(path))):
        assert (project / "logs" / "j.sqlite").is_file()


def test_state_folder_behind_a_link_can_hold_the_journal(
    tmp_path: Path, outside: Path
) -> None:
    (tmp_path / "state").symlink_to(outside)
    with closing(open_for_writing(str(tmp_path / "state" / "j.sqlite"))):
        assert (outside / "j.sqlite").is_file()
