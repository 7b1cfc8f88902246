"""What ``install`` writes for each host, and that ``uninstall`` undoes it (15.4)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hookline.errors import HooklineError, SettingsError
from hookline.hosts.file_changes import apply
from hookline.hosts.host import HostName
from hookline.hosts.host_files import FILES, Layout, Scope
from hookline.hosts.install import Wanted, timeout_for

from .installing import JSON_HOSTS, PROGRAM, SHARED_HOSTS, Workplace, events_of

H = HostName
QUOTED = "'/opt/hook line/bin/hookline'"


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    return Workplace(tmp_path, monkeypatch)


def group(host: str, timeout: int, **more: str) -> list[object]:
    command = f"{QUOTED} bridge {host}"
    hook = {**more, "type": "command", "command": command, "timeout": timeout}
    return [{"hooks": [hook]}]


NAMED = {"name": "hookline"}
EXPECTED = {
    H.CLAUDE: {"hooks": {"PreToolUse": group("claude", 130)}},
    H.DROID: {"PreToolUse": group("droid", 130)},
    H.GEMINI: {"hooks": {"BeforeTool": group("gemini", 130_000, **NAMED)}},
    H.QWEN: {"hooks": {"PreToolUse": group("qwen", 130_000, **NAMED)}},
    # Its own default is longer than the hooks need, and stays.
    H.CODEX: {"hooks": {"PreToolUse": group("codex", 600)}},
    H.COPILOT: {
        "version": 1,
        "hooks": {
            "preToolUse": [
                {
                    "type": "command",
                    "bash": f"{QUOTED} bridge copilot preToolUse",
                    "timeoutSec": 130,
                }
            ]
        },
    },
    H.KIRO: {
        "version": "v1",
        "hooks": [
            {
                "name": "hookline-PreToolUse",
                "trigger": "PreToolUse",
                "action": {
                    "type": "command",
                    "command": f"{QUOTED} bridge kiro PreToolUse",
                },
                "timeout": 130,
            }
        ],
    },
    H.WINDSURF: {
        "hooks": {
            "pre_run_command": [
                {
                    "show_output": True,
                    "command": f"{QUOTED} bridge windsurf pre_run_command",
                }
            ]
        }
    },
}


@pytest.mark.parametrize("host", EXPECTED)
def test_new_file_is_what_the_host_reads(workplace: Workplace, host: H) -> None:
    workplace.install(host, events_of(host)[0], needs_ms=130_000)
    assert workplace.read(host) == EXPECTED[host]


@pytest.mark.parametrize("host", FILES)
def test_install_and_uninstall_leave_no_trace(workplace: Workplace, host: H) -> None:
    before = workplace.contents()
    assert workplace.install(host)
    assert workplace.install(host) == []  # idempotent
    assert workplace.contents() != before
    workplace.uninstall(host)
    assert workplace.contents() == before
    assert [one for one in workplace.state.glob("*.json") if one.name != ".lock"] == []
    assert workplace.uninstall(host) == []


TEXTS = {
    "empty": "{}",
    "empty with spaces": "{ }\n",
    "empty hooks": '{\n  "hooks": { }\n}\n',
    "empty event": '{"hooks": {"PreToolUse": [ ], "BeforeTool": [\n]}}',
    "comments": '{\n\t// mine\n\t"model": "x", /* [ */\n\t"list": [1, 2,],\n}\n',
    "only a comment": "{ /* c */ }",
    "carriage returns": '{\r\n  "model": "x"\r\n}',
    "byte order mark": '\ufeff{"model": "x"}\n',
    "others": '{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type":'
    ' "command", "command": "mine"}]}], "BeforeTool": [{"hooks": []}]}}',
}


@pytest.mark.parametrize("host", SHARED_HOSTS)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_uninstall_restores_a_file_byte_for_byte(
    workplace: Workplace, host: H, text: str
) -> None:
    file = workplace.write(FILES[host].project, text)
    file.chmod(0o640)
    workplace.install(host)
    assert file.read_text("utf-8") != text
    workplace.install(host, events_of(host)[0], needs_ms=999_000)  # changed events
    workplace.uninstall(host)
    assert file.read_bytes() == text.encode()
    assert file.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_uninstall_elsewhere_leaves_the_values_of_others(
    workplace: Workplace, text: str
) -> None:
    """Another machine has the file and no record of it."""
    file = workplace.write(".claude/settings.json", text)
    before = json.loads(json.dumps(_values(text)))
    workplace.install(H.CLAUDE)
    shutil.rmtree(workplace.state)
    workplace.uninstall(H.CLAUDE)
    left = _values(file.read_text("utf-8"))
    if not before.get("hooks", {}).get("PreToolUse"):
        left.setdefault("hooks", {}).setdefault("PreToolUse", [])
        before.setdefault("hooks", {}).setdefault("PreToolUse", [])
    assert left == before


def _values(text: str) -> dict[str, dict[str, object]]:
    from hookline.hosts.json_edit import parse

    return parse(text, "f").value


@pytest.mark.parametrize("host", JSON_HOSTS)
def test_uninstall_removes_only_our_entries_when_the_file_was_changed(
    workplace: Workplace, host: H
) -> None:
    workplace.install(host)
    file = workplace.project / FILES[host].project
    text = file.read_text()
    file.write_text(text.replace("{", '{\n  "mine": [1],', 1))
    workplace.uninstall(host)
    assert json.loads(file.read_text()) == {**FILES[host].head, "mine": [1]}


def test_file_made_by_install_goes_even_if_it_was_reformatted(
    workplace: Workplace,
) -> None:
    workplace.install(H.CLAUDE)
    file = workplace.project / ".claude/settings.json"
    file.write_text(json.dumps(json.loads(file.read_text())))
    workplace.uninstall(H.CLAUDE)
    assert not file.exists()


def test_file_made_by_install_goes_after_a_hook_was_moved(
    workplace: Workplace,
) -> None:
    """Such as by a new environment, whose program is elsewhere."""
    before = workplace.contents()
    workplace.install(H.CLAUDE)
    file = workplace.project / ".claude/settings.json"
    file.write_text(file.read_text().replace("/opt", "/old"))
    workplace.install(H.CLAUDE)
    workplace.uninstall(H.CLAUDE)
    assert workplace.contents() == before


def test_changed_events_are_updated_in_place(workplace: Workplace) -> None:
    hook = {"type": "command", "command": "theirs"}
    text = json.dumps({"hooks": {"PostToolUse": [{"hooks": [hook]}]}}, indent=2)
    workplace.write(".claude/settings.json", text)
    workplace.install(H.CLAUDE, "PreToolUse", "PostToolUse")
    workplace.install(H.CLAUDE, "PreToolUse", "Stop")
    found = workplace.read(H.CLAUDE)["hooks"]
    assert list(found) == ["PostToolUse", "PreToolUse", "Stop"]
    assert found["PostToolUse"] == [{"hooks": [hook]}]


@pytest.mark.parametrize(
    ("given", "left"), [(500, 500), (20, 130), (None, 130), ("long", 130), (True, 130)]
)
def test_timeout_set_by_hand_is_kept_if_it_is_long_enough(
    workplace: Workplace, given: object, left: object
) -> None:
    workplace.install(H.CLAUDE, "PreToolUse", needs_ms=130_000)
    found = workplace.read(H.CLAUDE)
    hook = found["hooks"]["PreToolUse"][0]["hooks"][0]
    hook |= {"timeout": given, "statusMessage": "asking"}
    found["hooks"]["PreToolUse"][0]["matcher"] = "Bash"
    workplace.write(".claude/settings.json", json.dumps(found))
    workplace.install(H.CLAUDE, "PreToolUse", needs_ms=130_000)
    hook["timeout"] = left
    assert workplace.read(H.CLAUDE) == found


def test_our_hook_in_a_group_of_others_is_taken_out_alone(workplace: Workplace) -> None:
    theirs = {"type": "command", "command": "theirs"}
    ours = {"type": "command", "command": "hookline bridge claude", "timeout": 60}
    found = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [theirs, ours]}]}}
    workplace.write(".claude/settings.json", json.dumps(found))
    workplace.uninstall(H.CLAUDE)
    left = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [theirs]}]}}
    assert workplace.read(H.CLAUDE) == left


def test_comments_of_others_stay_where_our_hooks_were(workplace: Workplace) -> None:
    text = (
        '{\n  "hooks": { // mine\n    "PreToolUse": [\n      // soon\n    ]\n  }\n}\n'
    )
    file = workplace.write(".claude/settings.json", text)
    workplace.install(H.CLAUDE, "PreToolUse")
    shutil.rmtree(workplace.state)
    workplace.uninstall(H.CLAUDE)
    assert file.read_text() == text


def test_calls_of_other_installations_become_one_of_ours(workplace: Workplace) -> None:
    old = ["hookline bridge claude", "/old/bin/hookline bridge claude", "theirs"]
    old += [f"/usr/bin/python3 {o} hookline bridge claude" for o in ("-m", "-P -m")]
    groups = [{"hooks": [{"type": "command", "command": one}]} for one in old]
    workplace.write(
        ".claude/settings.json", json.dumps({"hooks": {"PreToolUse": groups}})
    )
    workplace.install(H.CLAUDE, "PreToolUse")
    found = workplace.read(H.CLAUDE)["hooks"]["PreToolUse"]
    commands = [hook["command"] for one in found for hook in one["hooks"]]
    assert commands == [f"{QUOTED} bridge claude", "theirs"]


@pytest.mark.parametrize(
    "command",
    [
        *("hookline bridge codex", "echo hookline bridge claude", "my-hookline bridge"),
        *("hookline 'bridge claude", "hookline fire bridge", "", None, 7, ["hookline"]),
    ],
)
def test_commands_of_others_are_not_ours(workplace: Workplace, command: object) -> None:
    hook = {"type": "command", "command": command}
    text = json.dumps({"hooks": {"PreToolUse": [{"hooks": [hook]}]}})
    file = workplace.write(".claude/settings.json", text)
    assert workplace.uninstall(H.CLAUDE) == []
    assert file.read_text() == text


def test_call_through_a_launcher_is_ours_and_is_kept(workplace: Workplace) -> None:
    ours = {"type": "command", "command": "uv run hookline bridge claude"}
    found = {"hooks": {"PreToolUse": [{"hooks": [ours | {"timeout": 900}]}]}}
    workplace.write(".claude/settings.json", json.dumps(found))
    assert workplace.install(H.CLAUDE, "PreToolUse") == []
    workplace.uninstall(H.CLAUDE)
    assert workplace.read(H.CLAUDE) == {}


def test_hosts_that_can_fail_closed_do_where_a_hook_asks_for_it(
    workplace: Workplace,
) -> None:
    workplace.install(H.CURSOR, "preToolUse", closed=True)
    assert workplace.read(H.CURSOR)["hooks"]["preToolUse"][0]["failClosed"] is True
    workplace.install(H.GOOSE, "PreToolUse")
    workplace.install(H.GOOSE, "PreToolUse", closed=True)
    (hook,) = workplace.read(H.GOOSE)["hooks"]["PreToolUse"][0]["hooks"]
    assert hook["on_failure"] == "block"
    assert (workplace.project / ".agents/plugins/hookline/plugin.json").is_file()


def test_host_waits_longer_than_the_hooks() -> None:
    wanted = Wanted("PreToolUse", needs_ms=700_500)
    assert timeout_for(FILES[H.CODEX], wanted) == 701
    assert timeout_for(FILES[H.QWEN], wanted) == 700_500


def test_cline_gets_a_script_for_each_event(workplace: Workplace) -> None:
    program = workplace.write("bin/hookline", '#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    installer = workplace.installer(H.CLINE)
    apply(installer.install([Wanted("PreToolUse")], (), (str(program),)))
    script = workplace.project / ".cline/hooks/PreToolUse.sh"
    ran = subprocess.run([script], capture_output=True, text=True, check=True)
    assert ran.stdout == "bridge cline PreToolUse\n"


@pytest.mark.parametrize("host", [H.CLINE, H.OPENCODE])
def test_program_of_others_is_not_overwritten_or_removed(
    workplace: Workplace, host: H
) -> None:
    name = FILES[host].project.replace("{event}", "PreToolUse")
    file = workplace.write(name, "theirs")
    with pytest.raises(HooklineError, match="is not from 'hookline install'"):
        workplace.install(host)
    assert workplace.uninstall(host) == []
    assert file.read_text() == "theirs"


def test_user_files_are_where_the_environment_says(
    workplace: Workplace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        workplace.installer(H.CODEX, Scope.USER).file()
        == f"{workplace.home}/.codex/hooks.json"
    )
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "other"))
    found = workplace.installer(H.CODEX, Scope.USER).file()
    assert found == f"{tmp_path}/other/hooks.json"
    monkeypatch.setenv("CODEX_HOME", "relative")
    assert (
        workplace.installer(H.CODEX, Scope.USER).file()
        == f"{workplace.home}/.codex/hooks.json"
    )


def test_copilot_reads_the_root_of_the_repository(workplace: Workplace) -> None:
    inner = workplace.project / "packages/a"
    (inner / ".hookline").mkdir(parents=True)
    workplace.project, root = inner, workplace.project
    assert workplace.installer(H.CLAUDE).file() == f"{inner}/.claude/settings.json"
    assert (
        workplace.installer(H.COPILOT).file() == f"{root}/.github/hooks/hookline.json"
    )


@pytest.mark.parametrize("host", [H.CLAUDE, H.COPILOT])
def test_link_within_the_project_is_kept(workplace: Workplace, host: H) -> None:
    real = workplace.write("real/settings.json", "{ }")
    link = workplace.project / FILES[host].project
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    workplace.install(host)
    assert link.is_symlink()
    assert "bridge" in real.read_text()
    workplace.uninstall(host)
    assert real.read_text() == "{ }"


@pytest.mark.parametrize("linked", ["file", "folder", "nothing"])
def test_link_out_of_the_project_is_refused(
    workplace: Workplace, tmp_path: Path, linked: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "settings.json").write_text("{}")
    folder = workplace.project / ".claude"
    if linked == "folder":
        folder.symlink_to(outside)
    else:
        folder.mkdir()
        name = "settings.json" if linked == "file" else "missing.json"
        (folder / "settings.json").symlink_to(outside / name)
    with pytest.raises(SettingsError, match="outside of the project"):
        workplace.install(H.CLAUDE)
    assert (outside / "settings.json").read_text() == "{}"
    assert [one.name for one in outside.iterdir()] == ["settings.json"]


BROKEN: dict[str, tuple[bytes, str]] = {
    "not JSON": (b'{"a": oops}', ":1:7: is not valid JSON"),
    "not closed": (b'{\n"a": 1', ":2:7: is not valid JSON"),
    "NUL": (b'{"a": \x00}', ":1:7: is not valid JSON"),
    "not UTF-8": (b'{"a": "\xff"}', ":1:8: is not UTF-8 text"),
    "no object": (b"[]", ":1:1: expected an object"),
    "hooks of another type": (b'{"hooks": 1}', ":1:11: hooks: expected an object"),
    "event of another type": (b'{"hooks": {"Stop": 1}}', "hooks.Stop: expected a list"),
    "two hooks": (b'{"hooks": {}, "hooks": {}}', "two of 'hooks'"),
    "nested": (b'{"a": ' + b"[" * 100_000, "nested too deeply"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_file_that_cannot_be_edited_is_not_changed(
    workplace: Workplace, broken: str
) -> None:
    content, problem = BROKEN[broken]
    file = workplace.write(".claude/settings.json", content)
    with pytest.raises(SettingsError) as error:
        workplace.install(H.CLAUDE, "Stop")
    assert problem in str(error.value)
    assert str(error.value).startswith(str(file))
    assert file.read_bytes() == content
    assert [one.name for one in file.parent.iterdir()] == ["settings.json"]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", ["folder", "pipe", "file above"])
def test_no_regular_file_is_refused(workplace: Workplace, kind: str) -> None:
    file = workplace.project / ".claude/settings.json"
    if kind == "file above":
        workplace.write(".claude", "a file")
    else:
        file.parent.mkdir()
        file.mkdir() if kind == "folder" else os.mkfifo(file)
    with pytest.raises(SettingsError, match=r"is a directory|regular|Not a directory"):
        workplace.install(H.CLAUDE)


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_file_that_cannot_be_written_is_reported(workplace: Workplace) -> None:
    file = workplace.write(".claude/settings.json", "{}")
    file.chmod(0o444)
    with pytest.raises(SettingsError, match="is read-only"):
        workplace.install(H.CLAUDE)


def test_file_that_changed_in_the_meantime_is_left_alone(workplace: Workplace) -> None:
    file = workplace.write(".claude/settings.json", "{}")
    wanted = [Wanted("PreToolUse")]
    changes = workplace.installer(H.CLAUDE).install(wanted, (), PROGRAM)
    file.write_text('{"new": 1}')
    with pytest.raises(SettingsError, match="changed in the meantime"):
        apply(changes)
    assert file.read_text() == '{"new": 1}'


def test_record_of_another_file_is_not_used(workplace: Workplace) -> None:
    file = workplace.write(".claude/settings.json", "{ }")
    workplace.install(H.CLAUDE)
    (record,) = workplace.state.glob("*.json")
    found = json.loads(record.read_text())
    record.write_text(json.dumps(found | {"path": "/other"}))
    workplace.uninstall(H.CLAUDE)
    assert file.read_text() == "{}"


@pytest.mark.parametrize("host", [one for one in FILES if one not in JSON_HOSTS])
def test_layouts_without_json_are_known(host: H) -> None:
    assert FILES[host].layout in {Layout.SCRIPT, Layout.PLUGIN}
