"""An agent cannot approve, install or remove its own guards.

Commands and edits that would do so are refused before any hook is asked, and their
harmless neighbours are not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hookline.journal.query import EventFilter, read_journal
from tests.support.commandline import run_command
from tests.support.project import Project

CALLS: dict[str, list[Any]] = json.loads(
    Path(__file__).with_name("self_protection.json").read_text()
)
"""Calls that must be refused, and their neighbours that must not be."""
SHELLS = {
    "claude": ("PreToolUse", "Bash", "command"),
    "gemini": ("BeforeTool", "run_shell_command", "command"),
    "codex": ("PreToolUse", "exec_command", "cmd"),
    "qwen": ("PreToolUse", "run_shell_command", "command"),
    "copilot": ("PreToolUse", "write_bash", "input"),
    "droid": ("PreToolUse", "Execute", "command"),
    "goose": ("PreToolUse", "shell", "command"),
    "kiro": ("PreToolUse", "execute_bash", "command"),
}


@pytest.fixture
def home(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's home folder; the session is in the project."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.chdir(project.folder)
    return home


def answer(tool: str, tool_input: Any, host: str = "claude", event: str = "") -> str:
    payload = {"session_id": "s", "cwd": str(Path.cwd()), "tool_name": tool}
    payload |= {"hook_event_name": event or "PreToolUse", "tool_input": tool_input}
    payload |= {"event": payload["hook_event_name"], "working_dir": str(Path.cwd())}
    ended = run_command("bridge", host, stdin=json.dumps(payload))
    return ended.stdout + ended.stderr


def is_refused(tool: str, tool_input: Any) -> bool:
    return "Only a person" in answer(tool, tool_input)


LONG_COMMANDS = [
    f": {'a ' * 10_001}; hookline trust --yes",
    f": {'a' * 131_072}; hook'line' trust",
]


def test_command_for_a_person_is_refused(home: Path, subtests: pytest.Subtests) -> None:
    for line in [*CALLS["commands for a person"], *LONG_COMMANDS]:
        with subtests.test(line[:80]):
            assert is_refused("Bash", {"command": line})


def test_command_that_approves_nothing_is_not_refused(
    home: Path, subtests: pytest.Subtests
) -> None:
    installed()
    for line in [*CALLS["commands that approve nothing"], f"echo {'a ' * 10_001}"]:
        with subtests.test(line[:80]):
            assert not is_refused("Bash", {"command": line})


@pytest.mark.parametrize("host", SHELLS)
def test_every_agent_is_refused_before_hooks_and_told_what_to_do(
    home: Path, project: Project, tmp_path: Path, host: str
) -> None:
    """Recorded as blocked; no hook is asked."""
    journal = tmp_path / "journal.db"
    hook = {"type": "command", "command": f"touch {tmp_path}/asked"}
    project.settings(hook)
    project.trust()
    user = tmp_path / "config" / "hookline" / "settings.json"
    user.parent.mkdir(parents=True)
    user.write_text(json.dumps({"hooksConfig": {"journal": str(journal)}}))
    event, tool, field = SHELLS[host]
    tool_input = {field: "hookline trust --yes{enter}"}
    text = answer(tool, tool_input, host, event)
    assert "Only a person" in text
    assert "hookline trust" in text
    assert not (tmp_path / "asked").exists()
    with read_journal(str(journal)) as reader:
        [entry] = reader.newest(EventFilter(), None)
    assert entry.verdict == "blocked"
    assert "Only a person" in (entry.reason or "")


def test_writes_to_the_approvals_are_refused(
    home: Path, project: Project, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    (tmp_path / "state" / "hookline" / "trust").mkdir(parents=True)
    link = project.folder / "link"
    link.symlink_to(tmp_path / "state" / "hookline" / "trust")
    places = {"{state}": tmp_path / "state", "{config}": tmp_path / "config"}
    long = {"command": ": " + "a " * 10_001 + "; rm -r {state}/hookline/trust"}
    for tool, tool_input in [*CALLS["writes to the approvals"], ["Bash", long]]:
        text = json.dumps(tool_input).replace("{link}", str(link))
        for name, place in places.items():
            text = text.replace(name, str(place))
        with subtests.test(f"{tool} {text[:80]}"):
            assert is_refused(tool, json.loads(text))


def test_approvals_can_be_read(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "state" / "hookline" / "trust"
    for line in (f"ls {folder}", f"cat {folder}/x.json", f"grep a {folder}/*"):
        assert not is_refused("Bash", {"command": line})
    assert not is_refused("Read", {"file_path": str(folder / "x.json")})


def installed(host: str = "claude", *options: str) -> Path:
    """The settings of an agent, with entries of ours."""
    assert not run_command("install", host, "--all-events", *options).returncode
    files = {"claude": ".claude/settings.json", "qwen": ".qwen/settings.json"}
    files |= {"gemini": ".gemini/settings.json", "cursor": ".cursor/hooks.json"}
    return Path(files[host])


def without(file: Path, *keys: str) -> str:
    value = json.loads(file.read_text())
    inner = value
    for key in keys[:-1]:
        inner = inner[key]
    del inner[keys[-1]]
    return json.dumps(value)


@pytest.mark.parametrize("host", ["claude", "gemini", "qwen", "cursor"])
def test_content_that_keeps_our_entries_may_be_written(home: Path, host: str) -> None:
    """What a file would hold is judged, not that it is written."""
    file = installed(host)
    text = file.read_text()
    event = next(iter(json.loads(text)["hooks"]))
    with_more = json.dumps({**json.loads(text), "model": "x"}, indent=1)
    assert not is_refused("Write", {"file_path": str(file), "content": with_more})
    assert is_refused("Write", {"file_path": str(file), "content": "{}"})
    assert is_refused("Write", {"file_path": str(file), "content": "{"})
    gone = without(file, "hooks", event)
    assert is_refused("Write", {"file_path": str(file), "content": gone})
    never = text.replace("bridge", "list")
    assert is_refused("Write", {"file_path": str(file), "content": never})


def test_edit_of_an_agents_settings_is_judged_by_its_result(
    home: Path, subtests: pytest.Subtests
) -> None:
    file = str(installed())
    refused = CALLS["edits that remove or silence our hooks"]
    for old, new in [*refused, *CALLS["edits that keep our hooks"]]:
        call = {"file_path": file, "old_string": old, "new_string": new}
        with subtests.test(new):
            assert is_refused("Edit", call) is ([old, new] in refused)


def test_edits_of_an_agents_settings_are_judged_together(home: Path) -> None:
    edits = [{"old_string": "{\n", "new_string": '{\n "model": "x",\n'}]
    call = {"file_path": str(installed()), "edits": edits}
    assert not is_refused("MultiEdit", call)
    edits.append(
        {"old_string": '"model"', "new_string": '"disableAllHooks": true, "a"'}
    )
    assert is_refused("MultiEdit", call)


def test_empty_list_of_edits_hides_no_other_edit(home: Path) -> None:
    """VS Code has several lists; what cannot be told is refused."""
    file = str(installed())
    change = {"filePath": file, "oldString": "PreToolUse", "newString": "X"}
    harmless = {"old_string": "{\n", "new_string": '{\n "model": "x",\n'}
    for tool_input in (
        {"edits": [], "files": [file]},
        {"edits": [], "replacements": [change]},
        {"filePath": file, "edits": [harmless], "replacements": [change]},
        {"files": [{"path": "other", "edits": [change]}]},
        {"filePath": file, **harmless, "edits": [harmless], "newString": "x"},
        {"filePath": file, "edits": 5, "oldString": "PreToolUse", "newString": "X"},
    ):
        tool = "multi_replace_string_in_file"
        assert "Only a person" in answer(tool, tool_input, "vscode")


def patch_of(*files: str) -> dict[str, str]:
    sections = (f"*** Add File: {file}\n+x\n" for file in files)
    return {"command": f"*** Begin Patch\n{''.join(sections)}*** End Patch\n"}


def test_call_that_touches_too_many_files_is_blocked_unread(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at each of a hundred thousand files takes longer than agents wait."""
    monkeypatch.setattr("hookline.hosts.bridge.refusal", None)
    patch = patch_of(*map(str, range(1001)))
    assert "touches 1001 files" in answer("apply_patch", patch, "codex")


def test_last_file_that_a_call_may_touch_is_looked_at(
    home: Path, tmp_path: Path
) -> None:
    approval = str(tmp_path / "state" / "hookline" / "trust" / "x.json")
    patch = patch_of(*map(str, range(999)), approval)
    assert "Only a person" in answer("apply_patch", patch, "codex")


def test_hooks_are_not_switched_off_in_another_file(home: Path) -> None:
    installed()
    off = json.dumps({"disableAllHooks": True})
    local = {"file_path": ".claude/settings.local.json", "content": off}
    assert is_refused("Write", local)
    user = {"file_path": f"{home}/.claude/settings.json", "content": off}
    assert is_refused("Write", user)
    line = f"echo '{off}' > .claude/settings.local.json"
    assert is_refused("Bash", {"command": line})
    harmless = local | {"content": '{"model": "x"}'}
    assert not is_refused("Write", harmless)


def test_guard_is_not_disabled_by_its_name(home: Path) -> None:
    """Gemini's list of disabled hooks."""
    file = installed("gemini")
    value = json.loads(file.read_text()) | {"hooksConfig": {"disabled": ["hookline"]}}
    call = {"file_path": str(file), "content": json.dumps(value)}
    assert "Only a person" in answer("write_file", call, "gemini", "BeforeTool")


def test_command_may_read_an_agents_settings_and_not_change_them(
    home: Path, subtests: pytest.Subtests
) -> None:
    installed()
    Path("off.json").write_text('{"disableAllHooks": true}')
    Path("plain.json").write_text("{}")
    Path("change.patch").write_text("+++ b/.claude/settings.json\n")
    refused = CALLS["commands that change an agent's settings"]
    for line in [*refused, *CALLS["commands that leave an agent's settings alone"]]:
        with subtests.test(line):
            assert is_refused("Bash", {"command": line}) is (line in refused)


@pytest.mark.parametrize(
    ("host", "file"),
    [
        ("opencode", ".opencode/plugins/hookline.js"),
        ("cline", ".cline/hooks/PreToolUse.sh"),
    ],
)
def test_program_that_asks_us_may_not_be_changed(
    home: Path, host: str, file: str
) -> None:
    assert not run_command("install", host, "--all-events").returncode
    text = Path(file).read_text()
    assert is_refused("Write", {"file_path": file, "content": f"{text}\n"})
    assert not is_refused("Write", {"file_path": file, "content": text})


def test_settings_without_an_entry_of_ours_are_the_agents_own(home: Path) -> None:
    call = {
        "file_path": ".claude/settings.json",
        "content": '{"disableAllHooks": true}',
    }
    assert not is_refused("Write", call)
    assert not is_refused("Bash", {"command": "rm -rf .claude"})
