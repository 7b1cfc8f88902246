"""``hookline check --format github`` and ``--strict`` (issue 16)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.cli.check_formats import github_lines
from hookline.settings.fields import Severity
from hookline.settings.lint import Finding

from .bench import Bench, before_tool, command, group

BROKEN = """\
{
  "hooks": {
    "BeforTool": [],
    "AfterTool": [
      {
        "matcher": "write_file(",
        "hooks": [{"type": "command", "command": "true", "timout": 5000}]
      }
    ],
    "SessionStart": [{"matcher": "start", "hooks": []}]
  }
}
"""
FOUND = [
    ("error", "unknown-event", 3, 5),
    ("error", "group-matcher", 6, 9),
    ("error", "unknown-key", 7, 58),
    ("warning", "group-matcher", 10, 23),
]
"""Severity, rule, line and column."""


class Repository(Bench):
    """A repository whose path has to be escaped, with a project in a folder of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.root = folder / "re,po: 100%\n目"
        (self.root / ".git").mkdir(parents=True)
        self.project = self.root / "sub dir"
        (self.project / ".hookline").mkdir(parents=True)
        self.file = self.project / ".hookline" / "settings.json"
        self.file.write_text(BROKEN)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


COMMAND = re.compile(r"::(error|warning|notice) ([^\n\r]*?)::([^\n\r]*)")


def read_command(line: str) -> tuple[str, dict[str, str], str]:
    """Read a workflow command as the runner does."""
    found = COMMAND.fullmatch(line)
    assert found, line
    pairs = (pair.partition("=")[::2] for pair in found[2].split(","))
    properties = {
        name: value.replace("%2C", ",").replace("%3A", ":") for name, value in pairs
    }
    return found[1], {k: _data(v) for k, v in properties.items()}, _data(found[3])


def _data(text: str) -> str:
    return text.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")


def test_github_gets_one_command_for_each_finding(repository: Repository) -> None:
    done = repository.run("check", "--format", "github")
    assert done.returncode == 1
    assert done.stderr == "hookline: 1 file checked: 3 errors, 1 warning\n"
    read = [read_command(line) for line in done.stdout.splitlines()]
    expected = [
        (
            level,
            {
                "file": "sub dir/.hookline/settings.json",
                "line": str(line),
                "col": str(column),
                "title": f"hookline check: {rule}",
            },
        )
        for level, rule, line, column in FOUND
    ]
    assert [(level, properties) for level, properties, _ in read] == expected
    texts = [
        f"{finding['where']}: {finding['message']}"
        for finding in repository.json("check")
    ]
    assert [text for _, _, text in read] == texts


def finding_of(file: str, message: str, **more: Any) -> Finding:
    given = {"severity": Severity.ERROR, "rule": "hooks"} | more
    return Finding(file=file, message=message, **given)


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    st.text(st.characters(exclude_categories=["Cs"])),
)
def test_no_text_can_end_a_command_or_begin_another(name: str, message: str) -> None:
    finding = finding_of(f"/r/x{name}", message, line=1)
    (line,) = github_lines([finding], "/nowhere")
    assert len(line.splitlines()) == 1
    level, properties, text = read_command(line)
    assert (level, set(properties)) == ("error", {"file", "line", "title"})
    plain = message.isascii() and message.isprintable()
    assert not plain or text == message


def test_hints_are_notices(repository: Repository) -> None:
    hook = command("python3 -m guard")
    repository.file.write_text(json.dumps(before_tool(group(hook))))
    shown = repository.run("check", "--format", "github")
    assert shown.returncode == 0
    assert shown.stdout.startswith("::notice file=sub dir/")


def test_lines_and_columns_point_at_the_key(repository: Repository) -> None:
    lines = BROKEN.splitlines()
    for finding in repository.json("check"):
        key = re.split(r"[.\[]", finding["where"])[-1]
        assert lines[finding["line"] - 1][finding["column"] - 1 :].startswith(
            f'"{key}"'
        )


def test_columns_of_toml_point_at_the_key(repository: Repository) -> None:
    text = '[[hooks.BeforeTool]]\nmatcher = "x("\n'
    text += "  [[hooks.BeforeTool.hooks]]\n  typ = 1\n"
    repository.file.unlink()
    repository.file.with_suffix(".toml").write_text(text)
    found = {one["where"]: one for one in repository.json("check")}
    matcher = found["hooks.BeforeTool[0].matcher"]
    assert (matcher["line"], matcher["column"]) == (2, 1)
    key = found["hooks.BeforeTool[0].hooks[0].typ"]
    assert (key["line"], key["column"]) == (4, 3)


def test_a_file_that_is_not_json_has_its_position(repository: Repository) -> None:
    repository.file.write_text('{\n  "hooks": oops\n}')
    (finding,) = repository.json("check")
    assert finding["rule"] == "unusable-file"
    assert (finding["line"], finding["column"]) == (2, 12)
    assert "(column 12)" in repository.run("check").stdout


def test_files_outside_of_the_repository_have_a_full_path(
    repository: Repository,
) -> None:
    user = repository.home / "config" / "hookline"
    user.mkdir(parents=True)
    (user / "settings.json").write_text('{"nonsense": 1}')
    shown = repository.run("check", "--format", "github").stdout
    assert f"file={user}/settings.json" in shown


def test_paths_are_those_of_the_repository_behind_a_link(
    repository: Repository,
) -> None:
    link = repository.root.parent / "link"
    link.symlink_to(repository.project)
    for words in (["--cwd", str(link)], [str(link / ".hookline" / "settings.json")]):
        done = repository.run("check", "--format", "github", *words)
        assert done.stdout.startswith("::error file=sub dir/.hookline/settings.json,")


def test_a_good_file_has_no_findings(repository: Repository) -> None:
    repository.file.write_text("{}")
    done = repository.run("check", "--format", "github")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "hookline: 1 file checked: 0 errors, 0 warnings\n"


def test_json_is_one_of_the_formats(repository: Repository) -> None:
    named = repository.run("check", "--format", "json").stdout
    assert json.loads(named) == repository.json("check")
    wrong = repository.run("check", "--format", "xml")
    assert wrong.returncode == 1
    assert "invalid choice: 'xml'" in wrong.stderr


@pytest.mark.parametrize("form", ["text", "json", "github"])
def test_strict_fails_without_settings(bench: Bench, form: str) -> None:
    """Issue 16: "exit status 1 for `check --strict` without settings"."""
    done = bench.run("check", "--strict", "--format", form)
    assert done.returncode == 1
    for part in (f"{bench.project}/.hookline", "config/hookline", "/etc/hookline"):
        assert part in done.stdout
    assert "run 'hookline init' to set up a first hook, or name a FILE" in done.stdout
    assert bench.run("check", "--format", form).returncode == 0


def test_strict_fails_without_settings_where_an_agent_is_set_up(bench: Bench) -> None:
    (bench.project / ".git").mkdir()
    folder = bench.project / ".hookline"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(before_tool(group(command("x")))))
    installed = bench.run("install", "claude")
    assert installed.returncode == 0, installed.stderr
    (folder / "settings.json").unlink()
    found = bench.run("check", "--strict", "--json")
    assert found.returncode == 1
    assert "no-settings" in [one["rule"] for one in json.loads(found.stdout)]


def test_strict_passes_with_settings_of_the_user(bench: Bench) -> None:
    user = bench.home / "config" / "hookline"
    user.mkdir(parents=True)
    (user / "settings.json").write_text("{}")
    assert bench.run("check", "--strict").returncode == 0


def test_a_file_for_the_system_is_checked_as_such(bench: Bench) -> None:
    """Issue 17: a reviewed copy of system settings never passed --strict."""
    rule = {"type": "rule", "name": "r", "when": "true", "managed": True}
    hooks = {"BeforeTool": [{"hooks": [rule]}]}
    file = bench.settings("managed.json", {"hooks": hooks})
    assert bench.run("check", "--strict", file).returncode == 1
    assert bench.run("check", "--strict", "--system", file).returncode == 0
    hooks["BeforeTool"][0]["hooks"].append(rule | {"shell": "bin/sh", "manged": True})
    bench.settings("managed.json", {"hooks": hooks})
    done = bench.run("check", "--system", file)
    assert done.returncode == 1
    assert "unknown key 'manged': did you mean 'managed'?" in done.stdout


def test_system_settings_are_checked_by_name(bench: Bench) -> None:
    """Issue 17."""
    done = bench.run("check", "--system")
    assert done.returncode == 1
    assert "--system needs a FILE" in done.stderr


def test_text_has_one_line_for_each_finding_whatever_a_file_is_called(
    bench: Bench,
) -> None:
    (bench.project / "a\n::error::b.json").write_text('{"hooks": 1}')
    done = bench.run("check", "a\n::error::b.json")
    assert done.stdout.startswith(r"a\n::error::b.json:1: error: hooks: ")
    assert len(done.stdout.splitlines()) == 2
