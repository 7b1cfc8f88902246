"""``hookline test`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.support.commandline import hookline

CASES = """
event = "BeforeTool"
[[case]]
name = "goes well"
[[case]]
name = "goes wrong \\u0001"
kind = "evasion"
expect = "block"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "guard.py").write_text(
        "from hookline.script import run\nrun(lambda event: None)\n"
    )
    (tmp_path / "guard.hooktest.toml").write_text(CASES)
    return tmp_path


def test_failures_are_shown_and_are_exit_status_one(project: Path) -> None:
    ended = hookline("test", cwd=project)
    assert ended.returncode == 1
    assert "FAIL  guard.hooktest.toml: goes wrong" in ended.stdout
    assert "expected block, got allow" in ended.stdout
    assert "1 passed, 1 failed" in ended.stdout
    assert "\x01" not in ended.stdout
    assert ended.stderr == ""


def test_passing_cases_are_exit_status_zero_and_named_on_request(project: Path) -> None:
    ended = hookline("test", "-k", "WELL", "-v", cwd=project)
    assert ended.returncode == 0
    assert ended.stdout == "ok    guard.hooktest.toml: goes well\n1 passed\n"


def test_results_as_json(project: Path) -> None:
    ended = hookline("test", "--json", cwd=project)
    first, second = json.loads(ended.stdout)
    assert (first["name"], first["passed"], first["problems"]) == (
        "goes well",
        True,
        [],
    )
    assert (second["kind"], second["passed"]) == ("evasion", False)


def test_a_misspelt_key_is_shown_though_the_case_passes(project: Path) -> None:
    """Issue 12.4."""
    script = "from hookline.script import run\nrun(lambda _: {'decison': 'block'})\n"
    (project / "guard.py").write_text(script)
    ended = hookline("test", "-k", "well", cwd=project)
    assert ended.returncode == 0
    assert "warning: guard.hooktest.toml: goes well: hook 'guard" in ended.stdout
    assert "decison: unknown key, ignored: did you mean 'decision'?" in ended.stdout
    found = json.loads(hookline("test", "-k", "well", "--json", cwd=project).stdout)
    assert "did you mean 'decision'?" in found[0]["warnings"][0]


def test_junit_file_holds_every_case(project: Path) -> None:
    hookline("test", "--junit", "out.xml", cwd=project)
    suite = ET.parse(project / "out.xml").getroot()[0]
    assert suite.attrib["tests"] == "2"
    assert suite.attrib["failures"] == "1"
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "expected block, got allow" in failure.attrib["message"]


def test_junit_file_that_cannot_be_written_is_named(project: Path) -> None:
    ended = hookline("test", "--junit", "no/such/out.xml", cwd=project)
    assert ended.returncode == 1
    assert "--junit no/such/out.xml: No such file" in ended.stderr


def test_no_files_is_a_usage_error(tmp_path: Path) -> None:
    ended = hookline("test", cwd=tmp_path)
    assert ended.returncode == 1
    assert "no *.hooktest.toml in this directory" in ended.stderr


def test_no_case_with_that_name_is_a_usage_error(project: Path) -> None:
    ended = hookline("test", "-k", "nothing", cwd=project)
    assert ended.returncode == 1
    assert "no case with 'nothing' in its name" in ended.stderr
