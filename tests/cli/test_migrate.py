"""``hookline migrate``: where it reads, where it writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commandline import hookline

THEIRS = {
    "hooks": {
        "PreToolUse": [{"hooks": [{"type": "command", "command": "c"}]}],
        "PermissionRequest": [{"hooks": [{"type": "command", "command": "c"}]}],
    }
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text(json.dumps(THEIRS))
    return tmp_path


def written(project: Path) -> dict[str, object]:
    found = json.loads((project / ".hookline/settings.json").read_text())
    assert isinstance(found, dict)
    return found


def test_migrate_writes_settings_and_lists_what_is_not_converted(project: Path) -> None:
    ended = hookline("migrate", "--from", "claude", cwd=project)
    assert ended.returncode == 0
    assert "(1 hook)" in ended.stdout
    assert "PermissionRequest: Hookline has no such event" in ended.stdout
    assert list(written(project)) == ["enableHooks", "hooks"]


@pytest.mark.parametrize("path", [".claude/settings.json", ".claude", "."])
def test_migrate_reads_a_file_its_folder_or_its_project(
    project: Path, path: str
) -> None:
    ended = hookline("migrate", "--from", "claude", path, "--output", "-", cwd=project)
    assert json.loads(ended.stdout)["hooks"]["BeforeTool"]
    assert "PermissionRequest" in ended.stderr
    assert not (project / ".hookline").exists()


@pytest.mark.parametrize("name", ["settings.json", "settings.toml"])
def test_migrate_overwrites_nothing(project: Path, name: str) -> None:
    own = project / ".hookline" / name
    own.parent.mkdir()
    own.write_text("")
    ended = hookline("migrate", "--from", "claude", cwd=project)
    assert ended.returncode == 1
    assert f"{name} exists already" in ended.stderr
    assert own.read_text() == ""
    assert len(list(own.parent.iterdir())) == 1


def test_migrate_overwrites_with_force(project: Path) -> None:
    own = project / ".hookline/settings.json"
    own.parent.mkdir()
    own.write_text("{}")
    assert (
        hookline("migrate", "--from", "claude", "--force", cwd=project).returncode == 0
    )
    assert "hooks" in written(project)


def test_migrate_refuses_to_leave_two_settings_files(project: Path) -> None:
    own = project / ".hookline/settings.toml"
    own.parent.mkdir()
    own.write_text("")
    ended = hookline("migrate", "--from", "claude", "--force", cwd=project)
    assert ended.returncode == 1
    assert not (project / ".hookline/settings.json").exists()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--from", "gemini"], ".gemini/settings.json does not exist"),
        (["--from", "claude", "nowhere.json"], "nowhere.json: cannot be read"),
        (["--from", "claude", "broken.json"], "broken.json:1:2: "),
        (["--from", "other"], "invalid choice: 'other'"),
        ([], "the following arguments are required: --from"),
    ],
)
def test_migrate_names_what_is_wrong(
    project: Path, words: list[str], problem: str
) -> None:
    (project / "broken.json").write_text("{oops")
    ended = hookline("migrate", *words, cwd=project)
    assert ended.returncode == 1
    assert problem in ended.stderr
    assert "Traceback" not in ended.stderr


def test_migrate_without_hooks_shows_no_next_step(tmp_path: Path) -> None:
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / "settings.json").write_text("{}")
    done = hookline("migrate", "--from", "gemini", cwd=tmp_path)
    assert done.stdout == "wrote  .hookline/settings.json (0 hooks)\n"
