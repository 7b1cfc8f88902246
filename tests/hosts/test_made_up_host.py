"""A new coding agent is one file and one row (hosts/README.md#add-an-agent).

The file is a copy of ``emitters/cline.py`` with names of its own, the row its name.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline.hosts import registry
from hookline.hosts.emitters import cline
from tests.support.bridged import BridgedProject, bridged
from tests.support.commandline import Finished, run_command

__all__ = ["bridged"]
MODULE = "hookline.hosts.emitters.acme"
RENAMED = {
    "Cline": "Acme",
    '"cline"': '"acme"',
    ".cline/": ".acme/",
    r"\.cline(rules)?": r"\.acme",
    'tested = "3.0.65"': "tested = None",
    '"run_commands"': '"acme_run"',
}
"""All that is not as in Cline."""


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The registered host."""
    text = Path(cline.__file__).read_text()
    for old, new in RENAMED.items():
        assert old in text
        text = text.replace(old, new)
    file = tmp_path / "acme.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(MODULE, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, MODULE, module)
    monkeypatch.setattr(registry, "ROWS", [*registry.ROWS, "acme"])
    monkeypatch.setattr(registry.HOSTS, "_loaded", {})


def call(command: str) -> dict[str, Any]:
    record = {"id": "1", "name": "acme_run", "input": {"commands": [command]}}
    return {"hookName": "tool_call", "taskId": "t", "tool_call": record}


def done(*words: str | Path) -> Finished:
    """A command that succeeds."""
    ended = run_command(*words)
    assert ended.returncode == 0, ended.stderr
    return ended


@pytest.mark.usefixtures("acme")
def test_a_made_up_host_asks_the_hooks(bridged: BridgedProject) -> None:
    when = "tool_name == 'run_shell_command' && tool_input.command == 'rm x'"
    bridged.rule("BeforeTool", {"decision": "deny", "reason": "no"}, when)
    blocked = bridged.ask("acme", call("rm x")).stdout
    assert blocked == '{"cancel":true,"errorMessage":"no"}\n'
    assert bridged.ask("acme", call("ls")).stdout == "{}\n"


@pytest.mark.usefixtures("acme")
def test_a_made_up_host_is_installed_explained_and_guarded(
    bridged: BridgedProject,
) -> None:
    bridged.rule("BeforeTool", {"decision": "deny"}, "tool_name == 'none'")
    file = bridged.folder / ".acme" / "hooks" / "PreToolUse.sh"
    assert "untested" in done("install", "acme").stdout
    assert "bridge acme PreToolUse" in file.read_text()
    assert ".acme/hooks" in done("list").stdout
    assert "what Acme cannot do" in done("explain", "--host", "acme").stdout
    removal = bridged.ask("acme", call(f"rm {file}")).stdout
    assert "Only a person may" in removal
    done("uninstall", "acme")
    assert not file.exists()
    refused = run_command("migrate", "--from", "claude", ".acme/hooks/a.json")
    assert refused.returncode == 1
