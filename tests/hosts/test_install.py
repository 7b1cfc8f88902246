"""Hazards of ``install`` and ``uninstall``: odd files and records that are lost.

What they write for each host is in ``tests/pins/hosts/install.json``.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.agent_files import AgentFiles

SETTINGS = ".claude/settings.json"
COMMENTED = '{\n\t// mine\n\t"model": "x", /* [ */\n\t"list": [1, 2,],\n}\n'


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"a": "\xff"}', ":1:8: is not UTF-8 text"),
        (b'{"a": ' + b"[" * 100_000, "is nested too deeply"),
    ],
    ids=["not UTF-8", "nested"],
)
def test_file_that_cannot_be_edited_is_not_changed(
    files: AgentFiles, content: bytes, problem: str
) -> None:
    file = files.write(SETTINGS, content)
    ended = files.run("install", "claude")
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"hookline: {file}")
    assert problem in ended.stderr
    assert file.read_bytes() == content
    assert [path.name for path in file.parent.iterdir()] == ["settings.json"]


def test_deep_values_of_others_are_no_obstacle(files: AgentFiles) -> None:
    text = f'{{"a": {"[" * 400}{"]" * 400}}}'
    file = files.write(SETTINGS, text)
    assert files.run("install", "claude").returncode == 0
    assert files.run("uninstall", "claude").returncode == 0
    assert file.read_text() == text


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_no_regular_file_is_refused(files: AgentFiles, kind: str) -> None:
    file = files.path(SETTINGS)
    file.parent.mkdir()
    file.mkdir() if kind == "folder" else os.mkfifo(file)
    ended = files.run("install", "claude")
    assert ended.returncode == 1
    assert "is a directory" in ended.stderr or "regular" in ended.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_file_that_cannot_be_written_is_reported(files: AgentFiles) -> None:
    files.write(SETTINGS, "{}").chmod(0o444)
    assert "is read-only" in files.run("install", "claude").stderr


def test_uninstall_elsewhere_leaves_the_values_of_others(files: AgentFiles) -> None:
    """Another machine has the file and no record of it."""
    file = files.write(SETTINGS, COMMENTED)
    files.run("install", "claude")
    shutil.rmtree(files.home / ".state")
    files.run("uninstall", "claude")
    assert file.read_text() == COMMENTED


def test_record_of_another_file_is_not_used(files: AgentFiles) -> None:
    file = files.write(SETTINGS, "{ }")
    files.run("install", "claude")
    [record] = (files.home / ".state/hookline/installed").glob("*.json")
    content = json.loads(record.read_text())
    record.write_text(json.dumps(content | {"path": "/other"}))
    files.run("uninstall", "claude")
    assert file.read_text() == "{}"


def test_nothing_is_recorded_of_what_was_uninstalled(files: AgentFiles) -> None:
    for host in ("claude", "cline", "opencode", "goose"):
        files.run("install", host)
        files.run("uninstall", host)
    folder = files.home / ".state/hookline/installed"
    assert list(folder.glob("*.json")) == []


def test_copilot_reads_the_root_of_the_repository(files: AgentFiles) -> None:
    inner = files.project / "packages/a"
    (inner / ".hookline").mkdir(parents=True)
    root, files.project = files.project, inner
    assert files.run("install", "claude").returncode == 0
    assert files.run("install", "copilot").returncode == 0
    assert (inner / SETTINGS).is_file()
    assert (root / ".github/hooks/hookline.json").is_file()


def test_script_for_cline_runs_the_bridge(files: AgentFiles, tmp_path: Path) -> None:
    files.run("install", "cline", "--fail-open")
    script = files.path(".cline/hooks/PreToolUse.sh")
    assert stat.S_IMODE(script.stat().st_mode) & 0o111
    program = tmp_path / "bin/hookline"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    env = {**files.env, "PATH": f"{program.parent}:/usr/bin:/bin"}
    ran = subprocess.run([script], env=env, capture_output=True, text=True, check=True)
    assert ran.stdout == "bridge cline PreToolUse\n"


def test_no_file_of_the_project_takes_the_place_of_hookline(
    files: AgentFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What agents are told to run, and what a person types."""
    python = sys.executable
    with monkeypatch.context() as patch:  # an installation without the script
        patch.setattr(sys, "executable", f"{tmp_path}/python")
        files.run("install", "cursor", "--user")
    command = f"{tmp_path}/python -P -m hookline bridge cursor preToolUse"
    assert command in files.path("~/.cursor/hooks.json").read_text()
    files.hooks()
    code = f"import os; os.mkdir({str(tmp_path / 'taken')!r} + str(os.getpid()))\n"
    for name in ("msgspec", "argparse", "sitecustomize"):
        files.write(f"{name}.py", code)
    for words in (["-m", "hookline"], ["-P", "-m", "hookline"]):
        if "-P" in words:
            files.write("hookline/__main__.py", code)
        ended = subprocess.run(
            [python, *words, "fire", "BeforeTool", "--tool", "x"],
            cwd=files.project,
            capture_output=True,
            text=True,
            check=True,
        )
        assert ended.stdout.startswith("BeforeTool: allowed, no hook ran\n")
    assert not list(tmp_path.glob("taken*"))


values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('a"/*\\\n{,', max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("ab/", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)
spaces = st.sampled_from(["", " ", "\n", "\n  ", " // c\n", "/* c */", "\n\t/* [ */ "])


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """A text for a value, with white space, comments and trailing commas."""
    if isinstance(value, dict):
        parts = [
            f"{draw(spaces)}{json.dumps(key)}{draw(spaces)}:"
            f"{draw(spaces)}{draw(written(item))}"
            for key, item in value.items()
        ]
    elif isinstance(value, list):
        parts = [draw(spaces) + draw(written(item)) for item in value]
    else:
        return json.dumps(value)
    comma = draw(st.sampled_from(["", ","])) if parts else ""
    inside = f"{draw(spaces)},".join(parts) + comma + draw(spaces)
    return f"{{{inside}}}" if isinstance(value, dict) else f"[{inside}]"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_text_survives_our_hooks_that_come_and_go(
    files: AgentFiles, data: st.DataObject
) -> None:
    others = data.draw(st.dictionaries(st.text("ab", max_size=2), values, max_size=3))
    groups: list[Any] = data.draw(st.lists(values, max_size=3))
    text = data.draw(written({**others, "hooks": {"PreToolUse": groups}}))
    file = files.write(SETTINGS, text)
    assert files.run("install", "claude").returncode == 0
    ours = {"type": "command", "command": "hookline bridge claude", "timeout": 130}
    added = {"hooks": [ours | {"onFailure": "block"}]}
    loaded = _values(file)
    assert loaded == {**others, "hooks": {"PreToolUse": [*groups, added]}}
    is_elsewhere: bool = data.draw(st.booleans())
    if groups and is_elsewhere:  # another machine has no record
        shutil.rmtree(files.home / ".state")
    assert files.run("uninstall", "claude").returncode == 0
    assert file.read_text() == text


def _values(file: Path) -> dict[str, Any]:
    """The values in a file with comments, as settings are read."""
    from hookline.settings.read import read_settings

    return read_settings(file)


@pytest.mark.parametrize("host", ["claude", "gemini", "cline"])
def test_path_that_is_not_utf8_is_refused(
    files: AgentFiles, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """Of the program, or of the host's file."""
    refused = "is not UTF-8, which settings of coding agents must be"
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", f"{files.folder}/b\udcff/python")
        ended = files.run("install", host, "--user")
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert refused in ended.stderr
    ended = files.run("install", host, "--user", HOME=f"{files.folder}/h\udcff")
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert refused in ended.stderr
