"""``hookline migrate``: where it reads, where it writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commandline import hookline

THEIRS = {
    "hooks": {
        "PreToolUse": [{"hooks": [{"type": "command", "command": "c"}]}],
        "PermissionRequest": [{"hooks": [{"type": "command", "command": "c"}]}],
    }
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text(json.dumps(THEIRS))
    return tmp_path


def written(project: Path) -> dict[str, object]:
    found = json.loads((project / ".hookline/settings.json").read_text())
    assert isinstance(found, dict)
    return found


def test_migrate_writes_settings_and_lists_what_is_not_converted(project: Path) -> None:
    ended = hookline("migrate", "--from", "claude", cwd=project)
    assert ended.returncode == 0
    assert "(1 hook)" in ended.stdout
    assert "PermissionRequest: Hookline has no such event" in ended.stdout
    assert list(written(project)) == ["enableHooks", "hooks"]


def test_migrate_says_that_the_old_hooks_still_run(project: Path) -> None:
    """Issue 17."""
    told = hookline("migrate", "--from", "claude", cwd=project).stdout
    assert "  hookline install claude   # to use them there: remove the old" in told


@pytest.mark.parametrize("path", [".claude/settings.json", ".claude", "."])
def test_migrate_reads_a_file_its_folder_or_its_project(
    project: Path, path: str
) -> None:
    ended = hookline("migrate", "--from", "claude", path, "--output", "-", cwd=project)
    assert json.loads(ended.stdout)["hooks"]["BeforeTool"]
    assert "PermissionRequest" in ended.stderr
    assert not (project / ".hookline").exists()


@pytest.mark.parametrize("name", ["settings.json", "settings.toml"])
def test_migrate_overwrites_nothing(project: Path, name: str) -> None:
    own = project / ".hookline" / name
    own.parent.mkdir()
    own.write_text("")
    ended = hookline("migrate", "--from", "claude", cwd=project)
    assert ended.returncode == 1
    assert f"{name} exists already" in ended.stderr
    assert own.read_text() == ""
    assert len(list(own.parent.iterdir())) == 1


def test_migrate_overwrites_with_force(project: Path) -> None:
    own = project / ".hookline/settings.json"
    own.parent.mkdir()
    own.write_text("{}")
    assert (
        hookline("migrate", "--from", "claude", "--force", cwd=project).returncode == 0
    )
    assert "hooks" in written(project)


def test_migrate_refuses_to_leave_two_settings_files(project: Path) -> None:
    own = project / ".hookline/settings.toml"
    own.parent.mkdir()
    own.write_text("")
    ended = hookline("migrate", "--from", "claude", "--force", cwd=project)
    assert ended.returncode == 1
    assert not (project / ".hookline/settings.json").exists()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--from", "gemini"], ".gemini/settings.json does not exist"),
        (["--from", "claude", "nowhere.json"], "nowhere.json: cannot be read"),
        (["--from", "claude", "broken.json"], "broken.json:1:2: "),
        (["--from", "other"], "invalid choice: 'other'"),
        ([], "the following arguments are required: --from"),
    ],
)
def test_migrate_names_what_is_wrong(
    project: Path, words: list[str], problem: str
) -> None:
    (project / "broken.json").write_text("{oops")
    ended = hookline("migrate", *words, cwd=project)
    assert ended.returncode == 1
    assert problem in ended.stderr
    assert "Traceback" not in ended.stderr


def test_migrate_without_hooks_shows_no_next_step(tmp_path: Path) -> None:
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / "settings.json").write_text("{}")
    done = hookline("migrate", "--from", "gemini", cwd=tmp_path)
    assert done.stdout == "wrote  .hookline/settings.json (0 hooks)\n"


def local(project: Path, **settings: object) -> None:
    (project / ".claude/settings.local.json").write_text(json.dumps(settings))


def test_local_settings_are_written_to_local_settings(project: Path) -> None:
    """Issue 15.6."""
    local(project, hooks={"Stop": THEIRS["hooks"]["PreToolUse"]})
    ended = hookline("migrate", "--from", "claude", cwd=project)
    assert "wrote  .hookline/settings.json (1 hook)" in ended.stdout
    assert "wrote  .hookline/settings.local.json (1 hook)" in ended.stdout
    ours = json.loads((project / ".hookline/settings.local.json").read_text())
    assert list(ours["hooks"]) == ["AfterAgent"]


def test_local_settings_without_hooks_are_only_reported(project: Path) -> None:
    local(project, permissions={"allow": ["Bash(ls:*)"]})
    ended = hookline("migrate", "--from", "claude", cwd=project)
    assert ".claude/settings.local.json: permissions: 1 rule," in ended.stdout
    assert not (project / ".hookline/settings.local.json").exists()


def test_hooks_that_a_person_has_disabled_stay_disabled(project: Path) -> None:
    local(project, disableAllHooks=True)
    hookline("migrate", "--from", "claude", cwd=project)
    ours = json.loads((project / ".hookline/settings.local.json").read_text())
    assert ours == {"enableHooks": False, "hooks": {}}
    assert written(project)["enableHooks"] is True


def test_local_settings_alone_leave_the_shared_ones_alone(project: Path) -> None:
    (project / ".claude/settings.json").unlink()
    local(project, **THEIRS)
    hookline("migrate", "--from", "claude", cwd=project)
    names = [file.name for file in (project / ".hookline").iterdir()]
    assert names == ["settings.local.json"]


def test_local_settings_without_hooks_alone_write_nothing(project: Path) -> None:
    (project / ".claude/settings.json").unlink()
    local(project, permissions={"allow": ["Bash(ls:*)"]})
    ended = hookline("migrate", "--from", "claude", cwd=project)
    assert ended.returncode == 0
    assert "nothing to write: no hooks" in ended.stdout
    assert not (project / ".hookline").exists()


def test_nothing_is_written_if_one_of_two_files_exists(project: Path) -> None:
    local(project, **THEIRS)
    own = project / ".hookline/settings.local.json"
    own.parent.mkdir()
    own.write_text("{}")
    ended = hookline("migrate", "--from", "claude", cwd=project)
    assert ended.returncode == 1
    assert "settings.local.json exists already" in ended.stderr
    assert [file.name for file in own.parent.iterdir()] == ["settings.local.json"]


def test_a_named_output_takes_everything(project: Path) -> None:
    local(project, **THEIRS)
    words = ("migrate", "--from", "claude", "--output", "all.json")
    assert "wrote  all.json (2 hooks)" in hookline(*words, cwd=project).stdout
    assert not (project / ".hookline").exists()


def test_migrating_again_gives_the_same_file(project: Path) -> None:
    hookline("migrate", "--from", "claude", cwd=project)
    before = (project / ".hookline/settings.json").read_bytes()
    hookline("migrate", "--from", "claude", "--force", cwd=project)
    assert (project / ".hookline/settings.json").read_bytes() == before


def test_settings_of_a_person_are_read_by_path(tmp_path: Path) -> None:
    """Issue 15.6: ``~/.claude``."""
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude/settings.json").write_text(json.dumps(THEIRS))
    target = tmp_path / "config/hookline/settings.json"
    words = ("migrate", "--from", "claude", str(home / ".claude"))
    ended = hookline(*words, "--output", str(target), cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(target.read_text())["hooks"]["BeforeTool"]


@pytest.mark.parametrize(
    "path",
    ["p", "p/.claude-plugin", "p/.claude-plugin/plugin.json", "p/hooks/hooks.json"],
)
def test_a_plugin_is_found_by_any_of_its_paths(tmp_path: Path, path: str) -> None:
    """Issue 15.6: the hooks get the folder in ``env``."""
    plugin = tmp_path / "p"
    (plugin / ".claude-plugin").mkdir(parents=True)
    (plugin / "hooks").mkdir()
    (plugin / ".claude-plugin/plugin.json").write_text('{"name": "p"}')
    (plugin / "hooks/hooks.json").write_text(json.dumps(THEIRS))
    ended = hookline("migrate", "--from", "claude", path, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    (group,) = written(tmp_path)["hooks"]["BeforeTool"]  # type: ignore[index]
    assert group["hooks"][0]["env"] == {"CLAUDE_PLUGIN_ROOT": str(plugin.resolve())}
    assert f"CLAUDE_PLUGIN_ROOT is {str(plugin)!r}, a path on this" in ended.stdout


def test_a_file_that_a_plugin_names_twice_is_read_once(tmp_path: Path) -> None:
    plugin = tmp_path / "p"
    (plugin / ".claude-plugin").mkdir(parents=True)
    (plugin / "hooks").mkdir()
    manifest = {"name": "p", "hooks": ["./hooks/hooks.json"]}
    (plugin / ".claude-plugin/plugin.json").write_text(json.dumps(manifest))
    (plugin / "hooks/hooks.json").write_text(json.dumps(THEIRS))
    ended = hookline("migrate", "--from", "claude", "p", cwd=tmp_path)
    assert "(1 hook)" in ended.stdout


def test_a_folder_of_several_plugins_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / ".claude-plugin").mkdir()
    (tmp_path / ".claude-plugin/marketplace.json").write_text("{}")
    ended = hookline("migrate", "--from", "claude", ".", cwd=tmp_path)
    assert "has several plugins: name the folder of one of them" in ended.stderr


def test_extras_that_hooks_need_are_named(tmp_path: Path) -> None:
    """Without its engine a condition is true: the hook would run for every call."""
    hook = {"type": "command", "command": "c", "if": "Bash(ls)"}
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}
    (tmp_path / "theirs.json").write_text(json.dumps({"hooks": hooks}))
    (tmp_path / "sitecustomize.py").write_text(
        "import sys; sys.modules['cel_expr_python'] = None"
    )
    words = ("migrate", "--from", "claude", "theirs.json")
    ended = hookline(*words, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert ended.returncode == 0, ended.stderr
    assert "conditions: cel-expr-python is missing" in ended.stdout


def test_a_plugin_cannot_name_files_of_others(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}")
    manifest = tmp_path / "p/.claude-plugin/plugin.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text('{"name": "p", "hooks": "../secret.json"}')
    ended = hookline("migrate", "--from", "claude", "p", cwd=tmp_path)
    assert ended.returncode == 1
    assert "'../secret.json' in its manifest is outside of the plugin" in ended.stderr


def test_hooks_of_agents_and_skills_are_reported(project: Path) -> None:
    agent = project / ".claude/agents/reviewer.md"
    agent.parent.mkdir()
    agent.write_text("---\nname: reviewer\nhooks:\n  Stop: []\n---\nYou review.\n")
    (agent.parent / "other.md").write_text("---\nname: x\n---\nhooks:\n")
    ended = hookline("migrate", "--from", "claude", cwd=project)
    assert "reviewer.md: hooks in its front matter are not converted" in ended.stdout
    assert "other.md" not in ended.stdout


def test_help_teaches_what_can_be_read() -> None:
    ended = hookline("migrate", "--help")
    for word in ("settings.local.json", "plugin", "~/.claude", "CLAUDE_PLUGIN_ROOT"):
        assert word in ended.stdout


def group(matcher: str | None = None, **hook: object) -> dict[str, object]:
    found: dict[str, object] = {} if matcher is None else {"matcher": matcher}
    return {**found, "hooks": [{"type": "command", "command": "c", **hook}]}


CODEX = {"hooks": {"PreToolUse": [group("^apply_patch$")]}}
QWEN = {"hooks": {"PreToolUse": [group("run_shell_command", timeout=5000)]}}
COPILOT = {"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": "c"}]}}
CURSOR = {"version": 1, "hooks": {"beforeShellExecution": [{"command": "c"}]}}
WINDSURF = {"hooks": {"pre_run_command": [{"command": "c"}]}}
KIRO = {"version": "v1", "hooks": [{"trigger": "PreToolUse", "action": {}}]}
DROID = {"hooks": {"PreToolUse": [group("Execute", timeout=5)]}}
CLAUDE = {"hooks": {"PreToolUse": [group("Bash")], "Stop": [group()]}}
GEMINI = {"hooks": {"BeforeTool": [group("run_shell_command")]}}


@pytest.mark.parametrize("source", ["claude", "gemini"])
@pytest.mark.parametrize(
    ("path", "theirs", "title"),
    [
        (".codex/hooks.json", CLAUDE, "Codex"),
        (".qwen/settings.json", CLAUDE, "Qwen"),
        (".cursor/hooks.json", CURSOR, "Cursor"),
        (".github/hooks/a.json", CLAUDE, "Copilot"),
        (".windsurf/hooks.json", WINDSURF, "Windsurf"),
        (".kiro/hooks/a.json", KIRO, "Kiro"),
        (".factory/hooks.json", DROID, "Droid"),
        (".agents/plugins/p/hooks/hooks.json", CLAUDE, "Goose"),
        ("copy.json", CURSOR, "Cursor"),
        ("copy.json", COPILOT, "Copilot"),
        ("copy.json", WINDSURF, "Windsurf"),
        ("copy.json", KIRO, "Kiro"),
    ],
)
def test_migrate_refuses_the_file_of_an_agent_that_it_cannot_convert(
    tmp_path: Path, source: str, path: str, theirs: object, title: str
) -> None:
    """Issue 26.20: by its place, and by what it says."""
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(theirs))
    ended = hookline("migrate", "--from", source, path, cwd=tmp_path)
    assert ended.returncode == 1
    assert path in ended.stderr
    assert title in ended.stderr
    assert "cannot be converted yet" in ended.stderr
    assert not (tmp_path / ".hookline").exists()


@pytest.mark.parametrize(
    ("theirs", "title"),
    [
        (CODEX, "Codex"),
        (QWEN, "Qwen"),
        (DROID, "Droid"),
        ({"hooks": {"Stop": [group(timeout=30000)]}}, "Qwen"),
        ({"hooks": {"PreToolUse": [group("Bash", commandWindows="x")]}}, "Codex"),
    ],
)
def test_migrate_notices_another_agents_file_of_the_same_shape(
    tmp_path: Path, theirs: object, title: str
) -> None:
    """Issue 26.20: a guard on ^apply_patch$ would never run, and milliseconds last."""
    (tmp_path / "hooks.json").write_text(json.dumps(theirs))
    ended = hookline("migrate", "--from", "claude", "hooks.json", cwd=tmp_path)
    assert ended.returncode == 1
    assert f"hooks.json looks like one of {title}" in ended.stderr


@pytest.mark.parametrize(
    ("source", "path", "theirs", "right"),
    [
        ("gemini", ".claude/settings.json", CLAUDE, "claude"),
        ("gemini", "copy.json", CLAUDE, "claude"),
        ("llxprt", "copy.json", CLAUDE, "claude"),
        ("claude", ".gemini/settings.json", GEMINI, "gemini"),
        ("claude", "copy.json", GEMINI, "gemini"),
        ("claude", ".llxprt/settings.json", GEMINI, "llxprt"),
        ("gemini", ".llxprt/settings.json", GEMINI, "llxprt"),
        ("llxprt", ".gemini/settings.json", GEMINI, "gemini"),
    ],
)
def test_migrate_says_which_command_converts_a_file(
    tmp_path: Path, source: str, path: str, theirs: object, right: str
) -> None:
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text(json.dumps(theirs))
    ended = hookline("migrate", "--from", source, path, cwd=tmp_path)
    assert ended.returncode == 1
    assert f"run 'hookline migrate --from {right} {path}'" in ended.stderr
    ended = hookline("migrate", "--from", right, path, cwd=tmp_path)
    assert ended.returncode == 0


@pytest.mark.parametrize("words", [[], ["."], [".codex"]])
def test_migrate_names_what_a_project_has_of_other_agents(
    tmp_path: Path, words: list[str]
) -> None:
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/hooks.json").write_text(json.dumps(CODEX))
    ended = hookline("migrate", "--from", "claude", *words, cwd=tmp_path)
    assert ended.returncode == 1
    assert ".codex/hooks.json is a file of Codex" in ended.stderr


@pytest.mark.parametrize(
    "theirs",
    [
        {"hooks": {"PreToolUse": [group("Edit|Write|apply_patch", timeout=5000)]}},
        {"hooks": {"PermissionRequest": [group("Bash")]}},
        {"hooks": {"PreToolUse": [group("mcp__db__.*"), group(timeout=30)]}},
    ],
)
@pytest.mark.parametrize("path", [".claude/settings.json", "copy.json"])
def test_migrate_takes_what_may_well_be_the_agents_own(
    tmp_path: Path, path: str, theirs: object
) -> None:
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text(json.dumps(theirs))
    ended = hookline("migrate", "--from", "claude", path, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr


def test_migrate_leaves_out_another_agents_file_beside_the_right_one(
    project: Path,
) -> None:
    (project / "hooks").mkdir()
    (project / "hooks/hooks.json").write_text(json.dumps(GEMINI))
    ended = hookline("migrate", "--from", "claude", cwd=project)
    assert ended.returncode == 0
    assert "hooks/hooks.json looks like one of Gemini CLI" in ended.stdout
    assert list(written(project)["hooks"]) == ["BeforeTool"]  # type: ignore[call-overload]


@pytest.mark.parametrize("words", [[], ["--output", ".hookline/settings.json"]])
@pytest.mark.parametrize("is_dangling", [False, True])
@pytest.mark.parametrize("link", [".hookline", ".hookline/settings.json", "parent"])
def test_migrate_writes_through_no_link_out_of_the_project(
    project: Path, link: str, is_dangling: bool, words: list[str]
) -> None:
    """Issue 26: a clone's hooks must not become the user's own."""
    outside = project.parent / f"outside-{project.name}"
    target = outside / "settings.json" if link.endswith(".json") else outside
    if not is_dangling:
        outside.mkdir()
        if target != outside:
            target.write_text("{}")
    inside = project / (".hookline" if link == "parent" else link)
    inside.parent.mkdir(exist_ok=True)
    if link == "parent":
        (project / "folder").symlink_to(outside)
        inside.symlink_to("folder/deeper")
    else:
        inside.symlink_to(target)
    before = sorted(outside.rglob("*")) if outside.exists() else None
    ended = hookline("migrate", "--from", "claude", *words, "--force", cwd=project)
    assert ended.returncode == 1
    assert "outside of the project: replace the link" in ended.stderr
    assert (sorted(outside.rglob("*")) if outside.exists() else None) == before
    assert is_dangling or target == outside or target.read_text() == "{}"


def test_migrate_follows_a_link_that_stays_in_the_project(project: Path) -> None:
    (project / "config").mkdir()
    (project / ".hookline").symlink_to("config")
    ended = hookline("migrate", "--from", "claude", cwd=project)
    assert ended.returncode == 0, ended.stderr
    assert (project / "config/settings.json").is_file()


def test_a_plugin_that_keeps_data_gets_a_folder_for_it(tmp_path: Path) -> None:
    """HOSTS: CLAUDE_PLUGIN_DATA is a folder that exists."""
    plugin = tmp_path / "p"
    (plugin / ".claude-plugin").mkdir(parents=True)
    (plugin / "hooks").mkdir()
    (plugin / ".claude-plugin/plugin.json").write_text('{"name": "my guard"}')
    command = "sh ${CLAUDE_PLUGIN_ROOT}/hooks/count.sh"
    theirs = {"hooks": {"PreToolUse": [group(command=command)]}}
    (plugin / "hooks/hooks.json").write_text(json.dumps(theirs))
    (plugin / "hooks/count.sh").write_text('echo x >> "$CLAUDE_PLUGIN_DATA/count"\n')
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}
    ended = hookline("migrate", "--from", "claude", "p", cwd=tmp_path, env=env)
    assert ended.returncode == 0, ended.stderr
    hookline("trust", "--yes", cwd=tmp_path)
    fired = hookline("fire", "BeforeTool", "--tool", "x", cwd=tmp_path)
    assert fired.returncode == 0
    data = tmp_path / "claude/plugins/data/my-guard"
    assert (data / "count").read_text() == "x\n"


@pytest.mark.parametrize("place", [".config/llxprt-code", ".llxprt", "elsewhere"])
def test_migrate_reads_the_users_settings_of_llxprt_code(
    tmp_path: Path, place: str
) -> None:
    """Issue 26.19: they moved."""
    folder = tmp_path / "home" / place
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps(GEMINI))
    words = ("migrate", "--from", "llxprt", str(folder), "--output", "-")
    ended = hookline(*words, cwd=tmp_path)
    (found,) = json.loads(ended.stdout)["hooks"]["BeforeTool"]
    assert found["hooks"][0]["dialect"] == "llxprt"
