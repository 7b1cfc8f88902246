"""Events of this project and of others: ``--here`` and ``--everywhere`` (issue 16)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .bench import GUARD, Bench, before_tool, group

LEFT_OUT = "of other projects left out: --everywhere includes them\n"
COMMANDS = ("log", "stats", "replay")


class Projects(Bench):
    """A project with hooks, a repository, and a folder that is neither."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.repository = folder / "repository"
        self.plain = folder / "plain"
        self.inner = self.project / "inner"
        for one in (self.project / ".hookline", self.repository / ".git", self.plain):
            one.mkdir(parents=True)
        (self.project / ".git").mkdir()
        (self.inner / ".hookline").mkdir(parents=True)
        (self.repository / "src").mkdir()
        (self.project / "src").mkdir()
        self.hooks = self.settings("s.json", before_tool(group(GUARD)))

    def fire_in(self, folder: Path, tool: str) -> None:
        done = self.run(
            *("fire", "BeforeTool", "--settings", self.hooks, "--record"),
            *("--tool", tool),
            cwd=folder,
        )
        assert done.returncode == 0, done.stderr

    def shown(self, *words: str, cwd: Path) -> Any:
        done = self.run(*words, "--json", cwd=cwd)
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Projects:
    """One event in each of six folders, in this order; no test adds to them."""
    projects = Projects(tmp_path_factory.mktemp("projects"))
    projects.fire_in(projects.project, "1")
    projects.fire_in(projects.project / "src", "2")
    projects.fire_in(projects.inner, "3")
    projects.fire_in(projects.repository, "write_4")
    projects.fire_in(projects.repository / "src", "write_5")
    projects.fire_in(projects.plain, "6")
    return projects


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("project", [1, 2, 3]),
        ("project/src", [1, 2, 3]),
        ("project/inner", [3]),
        ("repository", [4, 5]),
        ("repository/src", [4, 5]),
        ("plain", [6]),
        (".", [1, 2, 3, 4, 5, 6]),
        ("home", []),
    ],
)
def test_log_shows_the_events_of_the_project_around_a_folder(
    projects: Projects, folder: str, expected: list[int]
) -> None:
    cwd = projects.project.parent / folder
    assert [one["id"] for one in projects.shown("log", cwd=cwd)] == expected
    done = projects.run("log", cwd=cwd)
    assert len(done.stdout.splitlines()) == len(expected)
    missing = 6 - len(expected)
    assert (f"{missing} events {LEFT_OUT}" in done.stderr) == (missing > 0)
    nothing = f"no event is recorded in {cwd} yet: set hooksConfig.journal to true"
    assert (nothing in done.stderr) == (not expected)


@pytest.mark.parametrize(
    ("words", "stats", "replayed"),
    [
        ([], 2, 2),
        (["--here"], 2, 2),
        (["--everywhere"], 6, 6),
        (["--settings", "S"], 6, 6),
        (["--settings", "S", "--here"], 2, 2),
        (["--journal", "J"], 6, 2),
        (["--journal", "J", "--here"], 2, 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_stats_and_replay_count_the_same_events(
    projects: Projects, words: list[str], stats: int, replayed: int
) -> None:
    """A named journal is shown whole; replayed is what belongs to the settings."""
    named = {"S": projects.hooks, "J": str(projects.journal)}
    given = [named.get(word, word) for word in words]
    cwd = projects.repository
    assert len(projects.shown("log", *given, cwd=cwd)) == stats
    figures = projects.shown("stats", *given, cwd=cwd)
    assert sum(hook["runs"] for hook in figures) == stats
    found = projects.shown("replay", *given, "--dry-run", cwd=cwd)
    assert (found["events"], found["elsewhere"]) == (replayed, 6 - replayed)


@pytest.mark.parametrize("name", COMMANDS)
def test_events_left_out_are_counted_after_the_other_filters(
    projects: Projects, name: str
) -> None:
    words = ("--tool", "write_?", "--cwd", str(projects.plain))
    done = projects.run(name, *words)
    assert f"2 events {LEFT_OUT}" in done.stderr
    done = projects.run(name, *words, "--everywhere")
    assert "left out" not in done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_here_and_everywhere_exclude_each_other(projects: Projects, name: str) -> None:
    done = projects.run(name, "--here", "--everywhere")
    assert done.returncode == 1
    assert "not allowed with" in done.stderr


def test_json_says_on_stderr_what_is_left_out(projects: Projects) -> None:
    for name in ("log", "stats"):
        done = projects.run(name, "--json", cwd=projects.plain)
        assert done.stderr == f"5 events {LEFT_OUT}"
        assert len(json.loads(done.stdout)) == 1


def test_an_event_is_found_by_its_id_in_every_project(projects: Projects) -> None:
    shown = projects.run("log", "2", cwd=projects.plain).stdout
    assert f"  project  {projects.project}\n  folder   {projects.project}/src" in shown
    found = projects.shown("log", "2", cwd=projects.plain)
    assert found["project"] == str(projects.project)
    assert found["cwd"] == f"{projects.project}/src"


def test_log_and_stats_show_the_project(projects: Projects) -> None:
    shown = projects.shown("log", "--everywhere", cwd=projects.plain)
    of = [Path(one["project"]).name for one in shown]
    assert of == ["project", "project", "inner", *["repository"] * 2, "plain"]
    lines = projects.run("log", "--everywhere").stdout.splitlines()
    ends = ["/project", "/project", "/inner", *["/repository"] * 2, "/plain"]
    assert [line.endswith(end) for line, end in zip(lines, ends, strict=True)] == [
        True
    ] * 6
    figures = projects.shown("stats", "--everywhere", cwd=projects.plain)
    assert {Path(one["project"]).name: one["runs"] for one in figures} == {
        "project": 2,
        "repository": 2,
        "inner": 1,
        "plain": 1,
    }
    table = projects.run("stats", "--everywhere").stdout
    assert table.split()[:3] == ["hook", "source", "project"]
    assert "6 events from " in table
    assert table.endswith(" in 4 projects\n")
    alone = projects.run("stats", cwd=projects.plain).stdout
    assert "project" not in alone.splitlines()[0]
    assert alone.endswith("/plain\n")


def test_events_recorded_through_a_link_belong_to_the_project(bench: Bench) -> None:
    settings = bench.settings("s.json", before_tool(group(GUARD)))
    link = bench.project.parent / "link"
    link.symlink_to(bench.project)
    for cwd in (bench.project, link):
        bench.run(
            *("fire", "BeforeTool", "--settings", settings, "--record"),
            *("--tool", "t", "--cwd", str(cwd)),
        )
    assert {one["cwd"] for one in bench.json("log")} == {str(bench.project), str(link)}
    assert len(bench.json("log", "--cwd", str(link))) == 2
    assert {one["project"] for one in bench.json("log")} == {str(bench.project)}


def test_log_follows_only_this_project(projects: Projects, tmp_path: Path) -> None:
    journal = str(tmp_path / "j.sqlite")

    def fire(cwd: Path) -> None:
        words = ("fire", "BeforeTool", "--settings", projects.hooks, "--tool", "t")
        assert projects.run(*words, "--journal", journal, cwd=cwd).returncode == 0

    with subprocess.Popen(
        projects.argv("log", "-f", "--json", "--here", "--journal", journal),
        cwd=projects.repository / "src",
        env=projects.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as follower:
        assert follower.stdout is not None
        assert follower.stderr is not None
        assert b"waiting for" in follower.stderr.readline()
        for number in (1, 3):
            fire(projects.plain)
            fire(projects.repository)
            assert json.loads(follower.stdout.readline())["id"] == number + 1
        follower.kill()


def test_hostile_folders_are_shown_on_one_line(bench: Bench) -> None:
    folder = bench.project.parent / "evil\n\x1b[2J\u202e目录"
    (folder / ".git").mkdir(parents=True)
    settings = bench.settings("s.json", before_tool(group(GUARD)))
    words = ("fire", "BeforeTool", "--settings", settings, "--record", "--tool", "t")
    bench.run(*words, cwd=folder)
    for shown in (["log"], ["log", "1"], ["stats"]):
        text = bench.run(*shown, cwd=folder).stdout
        assert text
        assert not set(text) & {"\x1b", "\u202e"}
    assert len(bench.run("log", cwd=folder).stdout.splitlines()) == 1
    found = json.loads(bench.run("log", "--json", cwd=folder).stdout)
    assert found[0]["project"] == str(folder)


@pytest.mark.parametrize("name", [*COMMANDS, "list", "check"])
def test_help_fits_on_a_terminal_of_80_columns(bench: Bench, name: str) -> None:
    bench.env["COLUMNS"] = "80"
    lines = bench.run(name, "--help").stdout.splitlines()
    assert lines
    assert [line for line in lines if len(line) > 80] == []
