"""Every command finds the hooks from where people stand (issue 12.14)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commandline import hookline
from tests.support.project import GUARD, Project

TOOL = ("BeforeTool", "--tool", "write_file")


@pytest.fixture
def repository(project: Project) -> Project:
    project.write(".git/HEAD", "")
    project.write("src/deep/main.py", "")
    return project


def deep(project: Project) -> Path:
    return project.folder / "src" / "deep"


def test_fire_runs_the_hooks_of_the_repository(repository: Project) -> None:
    repository.guarded()
    untrusted = hookline("fire", *TOOL, cwd=deep(repository))
    line = f"run 'hookline trust' in {repository.folder} to review and approve it"
    assert line in untrusted.stderr
    assert untrusted.returncode == 0
    assert hookline("trust", "--yes", cwd=deep(repository)).returncode == 0
    fired = hookline("fire", *TOOL, cwd=deep(repository))
    assert fired.returncode == 2
    assert "the guard says no" in fired.stdout


def test_list_and_explain_say_which_project_a_hook_is_from(repository: Project) -> None:
    repository.guarded()
    repository.trust()
    listed = hookline("list", cwd=deep(repository)).stdout
    assert listed.splitlines()[0].endswith("project")
    (hook,) = json.loads(hookline("list", "--json", cwd=deep(repository)).stdout)
    assert hook["project"] == str(repository.folder)
    explained = hookline("explain", *TOOL, "--json", cwd=deep(repository)).stdout
    assert json.loads(explained)["hooks"][0]["project"] == str(repository.folder)
    at_the_top = hookline("list", cwd=repository.folder).stdout
    assert "project" not in at_the_top.splitlines()[0].split()


def test_check_checks_the_files_of_every_project(repository: Project) -> None:
    repository.settings({**GUARD, "command": "sh .hookline/none.sh"})
    inner = Project(repository.folder / "src" / "inner", repository.state)
    inner.write(".hookline/settings.json", "{")
    inner.write(".hookline/settings.local.json", '{"hoks": {}}')
    found = json.loads(hookline("check", "--json", cwd=inner.folder).stdout)
    assert [Path(finding["file"]).name for finding in found] == [
        "settings.json",
        "settings.local.json",
        "settings.json",
    ]
    assert "'.hookline/none.sh' does not exist" in found[0]["message"]


def test_trust_reviews_the_applying_projects_one_by_one(repository: Project) -> None:
    repository.guarded()
    inner = Project(repository.folder / "inner", repository.state)
    inner.settings({"type": "command", "name": "inner", "command": "true"})
    shown = hookline("trust", "--yes", cwd=inner.folder)
    first, second = (f"{one.folder}: trusted" for one in (repository, inner))
    assert shown.stdout.index(first) < shown.stdout.index("inner  on BeforeTool")
    assert second in shown.stdout
    again = hookline("trust", cwd=inner.folder).stdout
    assert again.splitlines() == [
        f"{repository.folder}: already trusted",
        f"{inner.folder}: already trusted",
    ]


def test_broken_project_does_not_keep_others_from_being_reviewed(
    repository: Project,
) -> None:
    repository.write(".hookline/settings.json", "{")
    inner = Project(repository.folder / "inner", repository.state)
    inner.settings({"type": "command", "name": "inner", "command": "true"})
    done = hookline("trust", "--yes", cwd=inner.folder)
    assert done.returncode == 1
    assert "is not valid JSON" in done.stderr
    assert f"{inner.folder}: trusted" in done.stdout


def test_trust_names_one_project_by_its_path(repository: Project) -> None:
    repository.guarded()
    inner = Project(repository.folder / "inner", repository.state)
    inner.settings({"type": "command", "name": "inner", "command": "true"})
    hookline("trust", "--yes", "inner", cwd=repository.folder)
    assert [path.name for path in repository.record_files()] == [
        f"{str(inner.folder).replace('/', '%2F')}.json"
    ]
    missing = hookline("trust", "nowhere", cwd=repository.folder)
    assert missing.returncode == 1
    assert "'nowhere' is not a directory" in missing.stderr


def test_revoke_asks_which_of_several_projects(repository: Project) -> None:
    repository.guarded()
    inner = Project(repository.folder / "inner", repository.state)
    inner.settings({"type": "command", "name": "inner", "command": "true"})
    hookline("trust", "--yes", cwd=inner.folder)
    refused = hookline("trust", "--revoke", cwd=inner.folder)
    assert refused.returncode == 1
    assert str(repository.folder) in refused.stderr
    assert len(repository.record_files()) == 2
    assert hookline("trust", "--revoke", ".", cwd=inner.folder).returncode == 0
    assert len(repository.record_files()) == 1
    only = hookline("trust", "--revoke", cwd=inner.folder)
    assert f"{repository.folder}: trust revoked" in only.stdout
    assert repository.record_files() == []


def test_approval_of_a_deleted_project_can_be_revoked(repository: Project) -> None:
    repository.guarded()
    repository.trust()
    repository.folder.rename(repository.state.parent / "elsewhere")
    gone = hookline("trust", "--revoke", str(repository.folder), cwd=Path("/"))
    assert "trust revoked" in gone.stdout


def test_init_uses_the_project_that_applies(repository: Project) -> None:
    repository.write(".hookline/settings.toml", "")
    done = hookline("init", cwd=deep(repository))
    assert f"using the project {repository.folder}" in done.stdout
    assert not (deep(repository) / ".hookline").exists()
    assert (repository.folder / ".hookline" / "hooks").is_dir()


def test_init_makes_a_project_where_none_applies(repository: Project) -> None:
    assert hookline("init", cwd=deep(repository)).returncode == 0
    assert (deep(repository) / ".hookline" / "settings.json").is_file()


def test_init_in_a_repository_does_not_write_to_a_trusted_project_around_it(
    project: Project,
) -> None:
    project.guarded()
    project.trust()
    (project.folder / "repo" / ".git").mkdir(parents=True)
    hookline("init", cwd=project.folder / "repo")
    assert (project.folder / "repo" / ".hookline" / "settings.json").is_file()


def test_migrate_finds_the_settings_of_the_repository(repository: Project) -> None:
    hook = {"type": "command", "command": "true"}
    hooks = {"PreToolUse": [{"matcher": "Write", "hooks": [hook]}]}
    repository.write(".claude/settings.json", json.dumps({"hooks": hooks}))
    done = hookline("migrate", "--from", "claude", cwd=deep(repository))
    assert done.returncode == 0, done.stderr
    assert (repository.folder / ".hookline" / "settings.json").is_file()
    assert f"hookline trust --cwd {repository.folder}" in done.stdout


def test_hook_tests_of_the_project_are_found(repository: Project) -> None:
    hookline("init", cwd=repository.folder)
    assert "3 passed" in hookline("test", cwd=deep(repository)).stdout


def test_journal_is_that_of_the_project(repository: Project) -> None:
    options = {"journal": "logs/j.sqlite"}
    repository.guarded()
    repository.settings(GUARD, hooksConfig=options)
    repository.trust()
    hookline("fire", *TOOL, cwd=deep(repository))
    assert (repository.folder / "logs" / "j.sqlite").is_file()
    (entry,) = json.loads(hookline("log", "--json", cwd=deep(repository)).stdout)
    assert entry["cwd"] == str(deep(repository))
    stats = hookline("stats", "--json", cwd=deep(repository))
    assert stats.returncode == 0
    replayed = hookline("replay", cwd=repository.folder)
    assert "1 event replayed" in replayed.stdout


@pytest.mark.parametrize("words", [("fire", *TOOL), ("list",), ("check",), ("trust",)])
def test_deleted_working_directory_is_no_traceback(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "gone").mkdir()
    script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    main = [sys.executable, "-P", "-m", "hookline.cli.main", *words]
    done = subprocess.run(
        ["bash", "-c", script, "-", str(tmp_path / "gone"), *main],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
