"""``hookline test --update`` writes present answers, and no others (issue 17)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commandline import hookline

HOOK = """
import os
from hookline.script import add_context, block, modify_input, run

def guard(event):
    path = event["tool_input"]["path"]
    if path == "crash":
        raise ValueError("no")
    if path == "random":
        return block(os.urandom(8).hex())
    if path == "changed":
        return modify_input(path=os.getcwd()) | add_context("moved (once)")
    return block(f"no .env in {os.getcwd()}") if path == ".env" else None

run(guard)
"""
CASES = """\
# What the guard does.
event = "BeforeTool"

[[case]]
name = "from an event"  # the rest is written by --update
tool_input = { path = ".env" }

[[case]]
name = "also from one"
tool_input = { path = "changed" }

[[case]]
name = "expects another"
tool_input = { path = "a" }
expect = "block"  # was it ever?
message = "no"

[[case]]
name = "as it should be"
tool_input = { path = ".env" }
expect = "block"
"""
UPDATED = """\
# What the guard does.
event = "BeforeTool"

[[case]]
name = "from an event"  # the rest is written by --update
tool_input = { path = ".env" }
expect = "block"
message = 'no \\.env in {cwd}'

[[case]]
name = "also from one"
tool_input = { path = "changed" }
context = 'moved \\(once\\)'
changed = { path = "{cwd}" }

[[case]]
name = "expects another"
tool_input = { path = "a" }
expect = "allow"  # was it ever?
message = ""

[[case]]
name = "as it should be"
tool_input = { path = ".env" }
expect = "block"
"""
AT_HOME = {"CI": ""}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "guard.py").write_text(HOOK)
    (tmp_path / "guard.hooktest.toml").write_text(CASES)
    return tmp_path


def test_present_answers_are_written_and_shown_as_a_diff(project: Path) -> None:
    cases = project / "guard.hooktest.toml"
    planned = hookline("test", "--update", "--dry-run", cwd=project)
    assert planned.returncode == 0, planned.stderr
    assert cases.read_text() == CASES
    ended = hookline("test", "--update", cwd=project, env=AT_HOME)
    assert ended.returncode == 0, ended.stderr
    assert cases.read_text() == UPDATED
    for shown in (planned.stdout, ended.stdout):
        assert '-expect = "block"  # was it ever?\n' in shown
        assert "+context = 'moved \\(once\\)'\n" in shown
    assert "1 passed, 3 cases updated" in ended.stdout
    again = hookline("test", "--update", cwd=project, env=AT_HOME)
    assert again.stdout == "4 passed, 0 cases updated\n"


def test_a_case_that_failed_otherwise_is_kept_and_named(project: Path) -> None:
    """A crash, a file and an answer that differs every time are no expectations."""
    own = """event = "BeforeTool"
[[case]]
name = "crashes"
tool_input = { path = "crash" }
expect = "block"
[[case]]
name = "writes"
tool_input = { path = "a" }
wrote = { log = "x" }
[[case]]
name = "twice"
tool_input = { path = ".env" }
[[case]]
name = "twice"
tool_input = { path = ".env" }
"""
    cases = project / "guard.hooktest.toml"
    cases.write_text(own)
    ended = hookline("test", "--update", cwd=project, env=AT_HOME)
    assert ended.returncode == 1
    assert "kept   guard.hooktest.toml: crashes: guard failed:" in ended.stdout
    assert "kept   guard.hooktest.toml: writes: log: expected" in ended.stdout
    assert "twice: two cases have this name: rename one" in ended.stdout
    assert cases.read_text() == own
    cases.write_text(own + '[[case]]\nname = "new"\ntool_input = { path = "random" }\n')
    ended = hookline("test", "--update", "-k", "new", cwd=project, env=AT_HOME)
    assert ended.returncode == 1
    assert "new: its answer differs from run to run" in ended.stdout


def test_nothing_is_written_in_ci_or_through_a_link(project: Path) -> None:
    cases = project / "guard.hooktest.toml"
    ended = hookline("test", "--update", cwd=project, env={"CI": "true"})
    assert ended.returncode == 1
    assert "--update is refused in CI" in ended.stderr
    assert cases.read_text() == CASES
    inside = project / "inside"
    inside.mkdir()
    (inside / "guard.py").write_text(HOOK)
    (inside / "guard.hooktest.toml").symlink_to(cases)
    ended = hookline("test", "--update", cwd=inside, env=AT_HOME)
    assert ended.returncode == 1
    assert "outside of the project" in ended.stderr
    assert cases.read_text() == CASES


@pytest.mark.parametrize(
    "words", [("--dry-run",), ("--update", "--json"), ("--update", "--worker", "x")]
)
def test_options_that_do_not_go_together_are_refused(
    project: Path, words: tuple[str, ...]
) -> None:
    ended = hookline("test", *words, cwd=project, env=AT_HOME)
    assert ended.returncode == 1
    assert "--update" in ended.stderr
