"""An agent cannot approve, install or remove its own guards (issue 26, item 21)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hookline.cli.main import main
from hookline.hosts.bridge import Bridge
from hookline.journal.query import EventFilter, read_journal
from tests.support.project import Project

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


async def answer(
    tool: str, tool_input: Any, host: str = "claude", event: str = ""
) -> str:
    payload = {"session_id": "s", "cwd": str(Path.cwd()), "tool_name": tool}
    payload |= {"hook_event_name": event or "PreToolUse", "tool_input": tool_input}
    payload |= {"event": payload["hook_event_name"], "working_dir": str(Path.cwd())}
    bridge = Bridge(one_shot=True)
    try:
        reply = await bridge.answer(host, None, json.dumps(payload).encode())
    finally:
        await bridge.close()
    return (reply.stdout + reply.stderr).decode()


async def is_refused(tool: str, tool_input: Any) -> bool:
    return "Only a person" in await answer(tool, tool_input)


PERSONAL = [
    "hookline trust",
    "hookline trust --yes",
    "hookline trust --show --yes",
    "hookline trust --revoke",
    "hookline trust --yes -- --help",
    "hookline init",
    "hookline install claude",
    "hookline uninstall claude",
    "python -m hookline trust --yes",
    "python3.12 -P -mhookline trust",
    "python -I -m hookline.cli.main uninstall claude",
    "/x/.venv/bin/hookline trust",
    "/x/.venv/bin/python /x/.venv/bin/hookline trust",
    "cd /x && hookline trust --yes",
    "echo hi; hook'line' tr\"us\"t --yes",
    "FOO=1 hookline trust",
    "env -u CLAUDECODE hookline trust --show",
    "env -i PATH=$PATH setsid -f hookline trust --yes",
    "sh -c 'hookline trust --yes'",
    'bash -lc "cd /x; hookline trust --yes"',
    "nohup setsid hookline trust --yes &",
    "sudo -u me hookline trust",
    "timeout 5 hookline trust",
    "echo trust --yes | xargs hookline",
    "xargs hookline < words",
    "uvx hookline trust",
    "uvx --from 'hookline[cli]' hookline trust",
    "uvx hookline@latest trust",
    "uv run hookline trust",
    "uv tool run hookline trust",
    "pipx run hookline trust",
    "$(which hookline) trust --yes",
    "echo $(hookline trust --yes)",
    "h=hookline; $h trust",
    "t=trust; hookline $t --yes",
    "c='hookline trust --yes'; eval $c",
    'h() { hookline "$@"; }; h trust',
    "bash <<EOF\nhookline trust --yes\nEOF",
    "echo 'hookline trust --yes' | at now",
    "script -qc 'hookline trust' /dev/null",
    "if true; then hookline trust; fi",
    "yes | hookline trust",
    "printf 'hookline trust --yes' | sh",
    "cat <<EOF | bash -s\nhookline trust --yes\nEOF",
    "xargs -I{} hookline {} <<< trust",
    "find . -maxdepth 0 -exec hookline trust ';'",
    "tmux new -d 'hookline trust --yes'",
    "trap 'hookline trust --yes' EXIT",
    "awk 'BEGIN{system(\"hookline trust --yes\")}'",
    "(exec hookline trust)",
    "${HOOKLINE:-hookline} trust",
    "HOOKLINE_TRUST=all claude -p x",
    "export HOOKLINE_TRUST=all",
    "env HOOKLINE_TRUST=all codex",
    "pip uninstall -y hookline",
    "uv pip uninstall hookline",
    "python -c \"from hookline.cli.main import main; main(['trust', '--yes'])\"",
    "python - <<EOF\nimport subprocess\nsubprocess.run(['hookline', 'trust'])\nEOF",
    'env -S"hookline trust --yes"',
    "env --split-string='hookline trust'",
    "env -iS 'hookline trust'",
    "env -u CLAUDECODE -S 'hookline trust'",
    "a=hook; a+=line; $a trust",
    'set -- hookline trust; "$@"',
    "bash <(echo hookline trust)",
    "bash < <(echo hookline trust)",
    ". <(printf 'hookline trust')",
    "echo 'hookline trust' | tee /dev/stderr | sh",
    "tcsh -c 'hookline trust'",
    "xargs hookline <<< trust",
    "expect -c 'spawn hookline trust; send y'",
    "screen -S x -X stuff 'hookline trust\\n'",
    "alias h='hookline trust'; h",
    "vim -es -c ':!hookline trust'",
    "git -c alias.x='!hookline trust' x",
    "gawk 'BEGIN{\"hookline trust\"|getline}'",
    f": {'a ' * 10_001}; hookline trust --yes",
    f": {'a' * 131_072}; hook'line' trust",
    f"{'$(' * 20}hookline trust{')' * 20}",
]
HARMLESS = [
    "hookline trust --help",
    "hookline trust -h",
    "hookline trust --list",
    "hookline trust --show",
    "hookline install claude --dry-run",
    "hookline help trust",
    "hookline list",
    "hookline check",
    "hookline test .hookline",
    "hookline explain BeforeTool --tool install",
    "hookline fire BeforeTool --tool trust",
    "hookline log --tool init",
    "uv run hookline check",
    "pip install hookline",
    'echo "run hookline trust"',
    "echo hookline trust",
    "grep -rn 'hookline trust' docs",
    "grep hookline install",
    'git commit -m "hookline trust"',
    "git log --grep 'hookline install'",
    "cat docs/hookline/trust.md",
    "cp -r src/hookline install",
    "npm install; make install; pip install trust",
    "python -c 'import hookline; print(hookline.__version__)'",
    "rm -rf build *.json node_modules",
    "mv a.txt .",
    "find . -name '*.pyc' -delete",
    "chmod -R u+w .",
    "git checkout main && git status",
    'gh pr create --title "hookline trust" --body "run hookline trust --yes"',
    "python3 -c \"print('hookline trust')\"",
    "rg 'hookline trust' -l | xargs sed -i 's/hookline trust/x/'",
    "find . -name node_modules -exec rm -rf {} +",
    "mkdir -p .claude/commands && echo hi > .claude/commands/x.md",
    "echo 'export HOOKLINE_TRUST=all' >> README.md",
    "rm -rf .venv dist && python -m venv .venv",
    f"echo {'a ' * 10_001}",
    "make install",
    "git apply other.patch && patch -p1 < other.patch",
    "find . -name '*.pyc' | xargs rm",
    "chmod -R u+w . && chmod +x run.sh",
    "ln -sf ../a .",
    "cp other.json .claude/settings.local.json",
]


@pytest.mark.parametrize("line", PERSONAL)
async def test_command_for_a_person_is_refused(home: Path, line: str) -> None:
    assert await is_refused("Bash", {"command": line})


@pytest.mark.parametrize("line", HARMLESS)
async def test_command_that_approves_nothing_is_not_refused(
    home: Path, line: str
) -> None:
    assert main(["install", "claude", "--all-events"]) == 0
    assert not await is_refused("Bash", {"command": line})


@pytest.mark.parametrize("host", list(SHELLS))
async def test_every_agent_is_refused_before_hooks_and_told_what_to_do(
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
    given = {field: "hookline trust --yes{enter}"}
    said = await answer(tool, given, host, event)
    assert "Only a person" in said
    assert "hookline trust" in said
    assert not (tmp_path / "asked").exists()
    with read_journal(str(journal)) as reader:
        [entry] = reader.newest(EventFilter(), None)
    assert entry.verdict == "blocked"
    assert "Only a person" in (entry.reason or "")


@pytest.mark.parametrize(
    ("tool", "tool_input"),
    [
        ("Write", {"file_path": "{state}/hookline/trust/x.json", "content": "{}"}),
        ("Write", {"file_path": "{link}/x.json", "content": "{}"}),
        ("Edit", {"file_path": "{state}/hookline/trust/x.json", "old_string": "a"}),
        ("Write", {"file_path": "{config}/hookline/settings.json", "content": "{}"}),
        ("Bash", {"command": "echo {} > {state}/hookline/trust/x.json"}),
        ("Bash", {"command": "cp x.json {state}/hookline/trust/"}),
        ("Bash", {"command": "cp x.json $XDG_STATE_HOME/hookline/trust"}),
        ("Bash", {"command": "rm -rf {state}/hookline"}),
        ("Bash", {"command": "rm -r {state}/hook*/tr*"}),
        ("Bash", {"command": "cd {state}/hookline && rm -rf trust"}),
        ("Bash", {"command": "mv {state}/hookline/trust /tmp/x"}),
        ("Bash", {"command": "cat x | sudo tee {state}/hookline/trust/x.json"}),
        ("Bash", {"command": "f={state}/hookline/trust/x; echo > $f"}),
        ("Bash", {"command": "ln -s {state}/hookline/trust t"}),
        ("Bash", {"command": "find {state}/hookline -delete"}),
        ("Bash", {"command": "echo {state}/hookline/trust | xargs rm -r"}),
        ("Bash", {"command": "python -c \"open('{state}/hookline/trust/x','w')\""}),
        ("Bash", {"command": "rm {state}/hookline/trust/*.json"}),
        ("Bash", {"command": "cp x {state}/hook*/trust/y"}),
        ("Bash", {"command": "chmod -R a+w {state}/hookline"}),
        ("Bash", {"command": "cd {state}; cd hookline; cd trust; touch x"}),
        ("Bash", {"command": "find {state}/hookline/trust -name x | xargs rm"}),
        ("Bash", {"command": "sort -o {state}/hookline/trust/x.json y"}),
        ("Bash", {"command": "awk '{print > \"{state}/hookline/trust/x\"}' y"}),
        ("Bash", {"command": "touch x", "workdir": "{state}/hookline/trust"}),
        ("Bash", {"command": "touch trust/x", "directory": "{state}/hookline"}),
        ("Bash", {"command": ": " + "a " * 10_001 + "; rm -r {state}/hookline/trust"}),
    ],
)
async def test_writes_to_the_approvals_are_refused(
    home: Path, project: Project, tmp_path: Path, tool: str, tool_input: dict[str, str]
) -> None:
    (tmp_path / "state" / "hookline" / "trust").mkdir(parents=True)
    link = project.folder / "link"
    link.symlink_to(tmp_path / "state" / "hookline" / "trust")
    places = {"{state}": tmp_path / "state", "{config}": tmp_path / "config"}
    text = json.dumps(tool_input).replace("{link}", str(link))
    for name, place in places.items():
        text = text.replace(name, str(place))
    assert await is_refused(tool, json.loads(text))


async def test_approvals_can_be_read(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "state" / "hookline" / "trust"
    for line in (f"ls {folder}", f"cat {folder}/x.json", f"grep a {folder}/*"):
        assert not await is_refused("Bash", {"command": line})
    assert not await is_refused("Read", {"file_path": str(folder / "x.json")})


def installed(host: str = "claude", *options: str) -> Path:
    """The settings of an agent, with entries of ours."""
    assert main(["install", host, "--all-events", *options]) == 0
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
async def test_content_that_keeps_our_entries_may_be_written(
    home: Path, host: str
) -> None:
    """What a file would hold is judged, not that it is written."""
    file = installed(host)
    text = file.read_text()
    event = next(iter(json.loads(text)["hooks"]))
    kept = json.dumps({**json.loads(text), "model": "x"}, indent=1)
    assert not await is_refused("Write", {"file_path": str(file), "content": kept})
    assert await is_refused("Write", {"file_path": str(file), "content": "{}"})
    assert await is_refused("Write", {"file_path": str(file), "content": "{"})
    gone = without(file, "hooks", event)
    assert await is_refused("Write", {"file_path": str(file), "content": gone})
    never = text.replace("bridge", "list")
    assert await is_refused("Write", {"file_path": str(file), "content": never})


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        ('"hooks"', '"hoooks"', True),
        ('"PreToolUse"', '"Pre"', True),
        ("{\n", '{\n  "model": "x",\n', False),
        ("{\n", '{\n  "disableAllHooks": true,\n', True),
        ('"type": "command"', '"type": "command", "async": true', True),
        ("not in the file", "x", True),
        ("{\n", "{ // why\n", True),
        ("{\n", '{\n  "env": {"HOOKLINE_TRUST": "all"},\n', True),
    ],
)
async def test_edit_of_an_agents_settings_is_judged_by_its_result(
    home: Path, old: str, new: str, refused: bool
) -> None:
    file = str(installed())
    call = {"file_path": file, "old_string": old, "new_string": new}
    assert await is_refused("Edit", call) is refused


async def test_edits_of_an_agents_settings_are_judged_together(home: Path) -> None:
    edits = [{"old_string": "{\n", "new_string": '{\n "model": "x",\n'}]
    call = {"file_path": str(installed()), "edits": edits}
    assert not await is_refused("MultiEdit", call)
    edits.append(
        {"old_string": '"model"', "new_string": '"disableAllHooks": true, "a"'}
    )
    assert await is_refused("MultiEdit", call)


async def test_empty_list_of_edits_hides_no_other_edit(home: Path) -> None:
    """VS Code has several lists; what cannot be told is refused."""
    file = str(installed())
    change = {"filePath": file, "oldString": "PreToolUse", "newString": "X"}
    harmless = {"old_string": "{\n", "new_string": '{\n "model": "x",\n'}
    for given in (
        {"edits": [], "files": [file]},
        {"edits": [], "replacements": [change]},
        {"filePath": file, "edits": [harmless], "replacements": [change]},
        {"files": [{"path": "other", "edits": [change]}]},
        {"filePath": file, **harmless, "edits": [harmless], "newString": "x"},
        {"filePath": file, "edits": 5, "oldString": "PreToolUse", "newString": "X"},
    ):
        tool = "multi_replace_string_in_file"
        assert "Only a person" in await answer(tool, given, "vscode")


async def test_call_that_touches_too_many_files_is_blocked_unread(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at each of a hundred thousand files takes longer than agents wait."""
    monkeypatch.setattr("hookline.hosts.bridge.refusal", None)
    sections = (f"*** Add File: f{number}\n+x\n" for number in range(1001))
    patch = f"*** Begin Patch\n{''.join(sections)}*** End Patch\n"
    said = await answer("apply_patch", {"command": patch}, "codex")
    assert "touches 1001 files" in said


async def test_hooks_are_not_switched_off_in_another_file(home: Path) -> None:
    installed()
    off = json.dumps({"disableAllHooks": True})
    local = {"file_path": ".claude/settings.local.json", "content": off}
    assert await is_refused("Write", local)
    user = {"file_path": f"{home}/.claude/settings.json", "content": off}
    assert await is_refused("Write", user)
    line = f"echo '{off}' > .claude/settings.local.json"
    assert await is_refused("Bash", {"command": line})
    harmless = local | {"content": '{"model": "x"}'}
    assert not await is_refused("Write", harmless)


async def test_guard_is_not_disabled_by_its_name(home: Path) -> None:
    """Gemini's list of disabled hooks."""
    file = installed("gemini")
    value = json.loads(file.read_text()) | {"hooksConfig": {"disabled": ["hookline"]}}
    call = {"file_path": str(file), "content": json.dumps(value)}
    assert "Only a person" in await answer("write_file", call, "gemini", "BeforeTool")


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("rm .claude/settings.json", True),
        ("rm -rf .claude", True),
        ("echo '{}' > .claude/settings.json", True),
        ("cd .claude; echo '{}' > settings.json", True),
        ("sed -i s/hookline/x/ .claude/settings.json", True),
        (
            "jq 'del(.hooks)' .claude/settings.json > t && mv t .claude/settings.json",
            True,
        ),
        ("mv .claude old", True),
        ("git checkout .claude/settings.json", True),
        ("cp x .claude/settings.json", True),
        ("cp other/settings.json .claude", True),
        ("cp -r other/. .claude/", True),
        ("cp -r other/.claude .", True),
        ("truncate -s 0 .claude/settings.json", True),
        ("dd if=/dev/null of=.claude/settings.json", True),
        ("curl -o .claude/settings.json http://x", True),
        ("rm .claude/*", True),
        ("cat > ./.claude/../.claude/settings.json", True),
        ("perl -pi -e s/a/b/ .claude/settings.json", True),
        ("node -e \"fs.writeFileSync('.claude/settings.json','{}')\"", True),
        ("cat .claude/settings.json", False),
        ("jq .hooks .claude/settings.json", False),
        ("cp .claude/settings.json backup.json", False),
        ("git add .claude/settings.json", False),
        ("git diff .claude/settings.json", False),
        ("python -m json.tool .claude/settings.json", False),
        ("echo '{}' > .claude/other.json", False),
        ("ln -sfn /tmp/x .claude", True),
        ("rsync -a --delete other/ ./", True),
        ("chmod 0 .claude", True),
        ("git stash push .claude/settings.json", True),
        ("git apply change.patch", True),
        ("patch -p1 < change.patch", True),
        ("find . -name .claude -exec rm -rf {} +", True),
        ("cp off.json .claude/settings.local.json", True),
        ("cat off.json > .claude/settings.local.json", True),
        ("rm .claude/settings.local.json .claude/settings.json", True),
        ("cp plain.json .claude/settings.local.json", False),
        ("rm -rf ~", False),
        ("rm -rf ../project", False),
        ("chmod -R u+w ../project", False),
    ],
)
async def test_command_may_read_an_agents_settings_and_not_change_them(
    home: Path, line: str, refused: bool
) -> None:
    installed()
    Path("off.json").write_text('{"disableAllHooks": true}')
    Path("plain.json").write_text("{}")
    Path("change.patch").write_text("+++ b/.claude/settings.json\n")
    assert await is_refused("Bash", {"command": line}) is refused


async def test_settings_without_an_entry_of_ours_are_the_agents_own(home: Path) -> None:
    call = {
        "file_path": ".claude/settings.json",
        "content": '{"disableAllHooks": true}',
    }
    assert not await is_refused("Write", call)
    assert not await is_refused("Bash", {"command": "rm -rf .claude"})
