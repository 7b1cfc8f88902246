"""Finding the projects that apply in a folder (protocol.md#settings, issue 12.14)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hookline.settings.locations import find_workspace, record_path, write_private


def make_project(folder: Path) -> Path:
    (folder / ".hookline").mkdir(parents=True)
    return folder


def trust(folder: Path) -> None:
    path = record_path(str(folder))
    assert path is not None
    write_private(path, b"{}")


def projects_in(folder: Path) -> list[Path]:
    return [Path(project) for project in find_workspace(folder).projects]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "outside" / "repo" / ".git").mkdir(parents=True)
    return tmp_path / "outside" / "repo"


def test_all_projects_up_to_the_repository_root_apply_outermost_first(
    repository: Path,
) -> None:
    outer, inner = make_project(repository), make_project(repository / "a" / "b")
    (inner / "c").mkdir()
    assert projects_in(inner / "c") == [outer, inner]
    assert projects_in(repository / "a") == [outer]
    assert find_workspace(inner / "c").project_dir == str(inner)


def test_project_above_the_repository_does_not_apply(repository: Path) -> None:
    make_project(repository.parent)
    assert projects_in(repository) == []


def test_without_a_repository_only_the_working_directory_is_searched(
    tmp_path: Path,
) -> None:
    make_project(tmp_path)
    (tmp_path / "sub").mkdir()
    assert projects_in(tmp_path / "sub") == []
    assert projects_in(tmp_path) == [tmp_path]


@pytest.mark.parametrize("kind", ["folder", "file", "dangling link", "empty file"])
def test_a_repository_in_a_subfolder_leaves_no_trusted_project_behind(
    repository: Path, kind: str
) -> None:
    """``git init``, a submodule or a worktree in a subfolder (issue 12.14)."""
    outer = make_project(repository)
    inner = repository / "sub" / "deep"
    inner.mkdir(parents=True)
    trust(outer)
    git = repository / "sub" / ".git"
    match kind:
        case "folder":
            git.mkdir()
        case "file":
            git.write_text("gitdir: ../.git/modules/sub\n")
        case "dangling link":
            git.symlink_to("nowhere")
        case _:
            git.touch()
    assert projects_in(inner) == [outer]


def test_every_trusted_project_above_applies(repository: Path) -> None:
    for folder in (repository.parent, repository.parent.parent):
        trust(make_project(folder))
    inner = make_project(repository / "a")
    assert projects_in(inner) == [repository.parent.parent, repository.parent, inner]


def test_trusted_project_stays_when_its_settings_or_its_repository_are_deleted(
    repository: Path,
) -> None:
    trust(make_project(repository))
    (repository / "sub").mkdir()
    (repository / ".hookline").rmdir()
    assert projects_in(repository / "sub") == [repository]
    (repository / ".git").rmdir()
    assert projects_in(repository / "sub") == [repository]


def test_record_inside_the_repository_that_it_is_for_does_not_count(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 12.12: a repository brings no record for itself along."""
    trust(repository)
    state = Path(os.environ["XDG_STATE_HOME"])
    state.rename(repository / "state")
    monkeypatch.setenv("XDG_STATE_HOME", str(repository / "state"))
    (repository / "sub").mkdir()
    assert projects_in(repository / "sub") == []


def test_linked_working_directory_is_where_it_leads(
    repository: Path, tmp_path: Path
) -> None:
    (make_project(repository) / "sub").mkdir()
    (tmp_path / "link").symlink_to(repository / "sub")
    assert projects_in(tmp_path / "link") == [repository]


@pytest.mark.parametrize("kind", ["file", "dangling link", "pipe", "loop"])
def test_hookline_that_is_no_folder_is_no_project(repository: Path, kind: str) -> None:
    path = repository / ".hookline"
    match kind:
        case "file":
            path.touch()
        case "dangling link":
            path.symlink_to("nowhere")
        case "pipe":
            os.mkfifo(path)
        case _:
            path.symlink_to(".hookline")
    assert projects_in(repository) == []


def test_linked_hookline_folder_makes_a_project(
    repository: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (repository / ".hookline").symlink_to(tmp_path / "elsewhere")
    assert projects_in(repository) == [repository]


def test_root_of_the_file_system_is_a_folder_like_any_other() -> None:
    assert find_workspace("/").folder == "/"


def test_missing_folder_has_the_projects_around_it(repository: Path) -> None:
    """A working directory can be deleted while a session is in it."""
    make_project(repository)
    assert projects_in(repository / "gone" / "deeper") == [repository]
