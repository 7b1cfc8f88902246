"""``hookline check --format github`` and ``list`` of hooks that nobody can turn off.

What they find otherwise is in ``tests/pins/commands``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookline import Config, Settings
from hookline.cli import list as list_command
from tests.support.command_project import CommandProject, settings_of

COMMAND = re.compile(r"::(error|warning|notice) ([^\n\r]*?)::([^\n\r]*)")


def read_command(line: str) -> tuple[str, dict[str, str], str]:
    """Read a workflow command as the runner does."""
    parts = COMMAND.fullmatch(line)
    assert parts, line
    pairs = (pair.partition("=")[::2] for pair in parts[2].split(","))
    properties = {
        name: data(value.replace("%2C", ",").replace("%3A", ":"))
        for name, value in pairs
    }
    return parts[1], properties, data(parts[3])


def data(text: str) -> str:
    return text.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0/"))


@settings(max_examples=100, suppress_health_check=[*HealthCheck])
@given(name=TEXTS.filter(lambda name: len(name.encode()) < 200), key=TEXTS)
def test_no_text_can_end_a_workflow_command_or_begin_another(
    command_project: CommandProject, name: str, key: str
) -> None:
    file = command_project.write(f"x{name}.json", json.dumps({f"k{key}": 1}))
    ended = command_project.run("check", "--format", "github", file)
    (line,) = ended.stdout.splitlines()
    level, properties, text = read_command(line)
    file.unlink()
    assert (level, set(properties)) == ("error", {"file", "line", "col", "title"})
    if (name + key).isascii() and (name + key).isprintable():
        assert properties["file"] == file.name
        assert text.startswith(f"k{key}: unknown key ")


def test_list_shows_which_hooks_are_managed(
    command_project: CommandProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only --json told what nobody can turn off.

    From inside: only root can write the settings of the system.
    """
    rule = {"type": "rule", "name": "r", "when": "true"}
    managed = settings_of(rule, rule | {"name": "m", "managed": True})
    system = Path(command_project.write("system/settings.json", managed)).parent
    own = command_project.write("own.json", {})
    config = Config(
        working_dir=str(command_project.project),
        settings=Settings.from_file(own, system_dir=system),
    )
    monkeypatch.setattr(list_command, "load_config", lambda _options: config)
    _, row = command_project.run("list").stdout.splitlines()
    cells = ["BeforeTool", "*", "m", "system, managed", "rule", "yes", "enforce"]
    assert [cell.strip() for cell in row.split("  ") if cell] == cells
