"""``hookline init``: a project set up by it works, and nothing is overwritten."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from hookline import Config, HookSystem, Settings
from hookline.recipes.catalog import RECIPES
from tests.support.commandline import hookline


def test_init_writes_settings_a_hook_and_its_test(tmp_path: Path) -> None:
    ended = hookline("init", cwd=tmp_path)
    assert ended.returncode == 0
    assert "hookline test .hookline" in ended.stdout
    tested = hookline("test", ".hookline", cwd=tmp_path)
    assert "3 passed" in tested.stdout
    fired = hookline(
        *("fire", "BeforeTool", "--settings", ".hookline/settings.json"),
        *("--tool", "write_file", "--tool-input", '{"file_path": ".env"}'),
        cwd=tmp_path,
    )
    assert fired.returncode == 2
    assert "keep secrets out of .env files" in fired.stdout


def test_init_sets_up_recipes_whose_tests_pass(tmp_path: Path) -> None:
    words = ("init", "--recipe", "secret-scan", "--recipe", "protected-files")
    assert hookline(*words, cwd=tmp_path).returncode == 0
    hooks = json.loads((tmp_path / ".hookline/settings.json").read_text())["hooks"]
    assert len(hooks["BeforeTool"]) == 2
    tested = hookline("test", cwd=tmp_path)
    assert tested.returncode == 0, tested.stdout


def test_trusted_recipes_stay_trusted_while_they_keep_their_books(
    tmp_path: Path,
) -> None:
    """What a hook writes must not lie where trust looks for changes."""
    project = tmp_path / "project"
    project.mkdir()
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    recipes = ("--recipe", "audit-log", "--recipe", "dangerous-commands")
    assert hookline("init", *recipes, cwd=project).returncode == 0
    trusted = hookline("trust", "--yes", cwd=project, env=env)
    assert trusted.returncode == 0, trusted.stderr
    tool = ("--tool", "run_shell_command", "--tool-input", '{"command": "rm -rf ~"}')
    for _ in range(3):
        fired = hookline("fire", "BeforeTool", *tool, "--json", cwd=project, env=env)
        result = json.loads(fired.stdout)
        assert "deletes too much" in result["reason"]
        assert len(result["hooks"]) == 2


def test_init_adds_a_second_recipe_to_settings_and_shows_the_diff(
    tmp_path: Path,
) -> None:
    """Issue 17: everything else in the settings stays, and nothing is added twice."""
    settings = tmp_path / ".hookline/settings.json"
    assert hookline("init", "--rule", cwd=tmp_path).returncode == 0
    settings.chmod(0o600)
    own = settings.read_text().replace("{", "{ // mine", 1)
    own = own.replace('"enableHooks": true', '"enableHooks": false')
    settings.write_text(own)
    planned = hookline("init", "--recipe", "read-only", "--dry-run", cwd=tmp_path)
    assert settings.read_text() == own
    assert not (tmp_path / ".hookline/hooks/read_only.py").exists()
    ended = hookline("init", "--recipe", "read-only", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    for shown in (planned.stdout, ended.stdout):
        assert '+            "name": "read-only",' in shown
        assert "\n-" not in shown.replace("\n--- ", "")
    assert "added  .hookline/settings.json: read-only" in ended.stdout
    assert "note: enableHooks is false in .hookline/settings.json" in ended.stdout
    merged = settings.read_text()
    assert merged.startswith("{ // mine")
    assert settings.stat().st_mode & 0o777 == 0o600
    again = hookline("init", "--recipe", "read-only", cwd=tmp_path)
    assert "read-only is in it already" in again.stdout
    assert settings.read_text() == merged
    assert sorted(one.name for one in settings.parent.iterdir()) == [
        "hooks",
        "settings.json",
    ]


def test_init_leaves_adapted_hooks_and_files_alone_and_names_them(
    tmp_path: Path,
) -> None:
    """Issue 17."""
    adapted = {"type": "command", "name": "secret-scan", "command": "./mine.sh"}
    group = {"hooks": [adapted]}
    own = {
        ".hookline/settings.json": json.dumps({"hooks": {"BeforeTool": [group]}}),
        ".hookline/hooks/read_only.py": "# mine",
    }
    for name, text in own.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    recipes = ("--recipe", "secret-scan", "--recipe", "read-only")
    ended = hookline("init", *recipes, cwd=tmp_path)
    assert ended.returncode == 0
    assert "secret-scan differs from the recipe's, and stays" in ended.stdout
    assert "read_only.py: it differs from the recipe's" in ended.stdout
    assert (tmp_path / ".hookline/hooks/read_only.py").read_text() == "# mine"
    assert not (tmp_path / ".hookline/hooks/secret_scan.py").exists()
    found = json.loads((tmp_path / ".hookline/settings.json").read_text())
    first, second = found["hooks"]["BeforeTool"]
    assert (first, second["hooks"][0]["name"]) == (group, "read-only")


def test_init_says_that_approved_hooks_need_another_approval(tmp_path: Path) -> None:
    """Issue 17: until then they block."""
    project = tmp_path / "project"
    project.mkdir()
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    hookline("init", cwd=project, env=env)
    assert hookline("trust", "--yes", cwd=project, env=env).returncode == 0
    ended = hookline("init", "--recipe", "read-only", cwd=project, env=env)
    assert "approve the hooks again: until then they block" in ended.stdout


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("settings.json", '{\n  "hooks": {,}\n}', "settings.json:2"),
        ("settings.json", '{"hooks": []}', "hooks: expected an object"),
        ("settings.json", '{"hooks": {"BeforeTool": {}}}', "expected a list"),
        ("settings.toml", "hooks = [\n", "settings.toml:"),
        ("settings.toml", "hooks = 3\n", "hooks: expected a table"),
    ],
)
def test_init_writes_nothing_where_settings_are_invalid(
    tmp_path: Path, name: str, text: str, problem: str
) -> None:
    """Issue 17: it says where they are."""
    (tmp_path / ".hookline").mkdir()
    (tmp_path / ".hookline" / name).write_text(text)
    ended = hookline("init", cwd=tmp_path)
    assert ended.returncode == 1
    assert problem in ended.stderr
    assert [one.name for one in (tmp_path / ".hookline").iterdir()] == [name]
    assert (tmp_path / ".hookline" / name).read_text() == text


def test_init_shows_what_to_add_to_inline_toml(tmp_path: Path) -> None:
    """Issue 17: other TOML gets the hooks as tables."""
    (tmp_path / ".hookline").mkdir()
    settings = tmp_path / ".hookline/settings.toml"
    settings.write_text("# mine\n[hooks]\nBeforeTool = []\n")
    ended = hookline("init", cwd=tmp_path)
    assert ended.returncode == 1
    assert "add this by hand:\n\n[[hooks.BeforeTool]]" in ended.stdout
    assert settings.read_text() == "# mine\n[hooks]\nBeforeTool = []\n"
    settings.write_text("# mine")
    assert hookline("init", cwd=tmp_path).returncode == 0
    assert settings.read_text().startswith("# mine\n\n[[hooks.BeforeTool]]\n")
    fired = hookline(
        *("fire", "BeforeTool", "--settings", ".hookline/settings.toml"),
        *("--tool", "write_file", "--tool-input", '{"file_path": ".env"}'),
        cwd=tmp_path,
    )
    assert fired.returncode == 2
    assert not (tmp_path / ".hookline/settings.json").exists()


@pytest.mark.parametrize("link", ["settings.json", "hooks", "."])
def test_init_writes_through_no_link_out_of_the_project(
    tmp_path: Path, link: str
) -> None:
    """Issue 17."""
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    outside.mkdir()
    (outside / "settings.json").write_text("{}")
    if link == ".":
        (project / ".hookline").symlink_to(outside)
    else:
        (project / ".hookline").mkdir()
        target = outside / ("settings.json" if link == "settings.json" else "")
        (project / ".hookline" / link).symlink_to(target)
    ended = hookline("init", cwd=project)
    assert ended.returncode == 1
    assert "outside of the project: replace the link" in ended.stderr
    assert [one.name for one in outside.iterdir()] == ["settings.json"]
    assert (outside / "settings.json").read_text() == "{}"


def test_init_with_a_misspelt_recipe_writes_nothing(tmp_path: Path) -> None:
    ended = hookline(
        "init", "--recipe", "read-only", "--recipe", "secretscan", cwd=tmp_path
    )
    assert ended.returncode == 1
    assert "did you mean 'secret-scan'?" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_init_needs_an_existing_directory(tmp_path: Path) -> None:
    ended = hookline("init", "--cwd", "nowhere", cwd=tmp_path)
    assert ended.returncode == 1
    assert "'nowhere' is not a directory" in ended.stderr


@pytest.fixture
def crowded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with every recipe but the one that allows nothing."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.setenv("HOOK_STATE_DIR", str(tmp_path / "state"))
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    names = [
        word for name in RECIPES if name != "read-only" for word in ("--recipe", name)
    ]
    assert hookline("init", *names, cwd=project).returncode == 0
    (project / "tests").mkdir()
    (project / "tests/test_app.py").write_text("def test(): ...")
    return project


async def test_all_recipes_at_once_let_innocent_work_pass(crowded: Path) -> None:
    config = Config(
        "s-1", crowded, Settings.from_file(crowded / ".hookline/settings.json")
    )
    async with HookSystem(config) as hooks:
        fire = hooks.event_handler
        tool = ("write_file", {"file_path": "src/app.py", "content": "x = 1"})
        before = await fire.fire_before_tool_event(*tool)
        after = await fire.fire_after_tool_event(
            *tool, {"llmContent": "ok", "returnDisplay": "ok"}
        )
        model = await fire.fire_before_model_event({"model": "m", "messages": []})
    for result in (before, after, model):
        assert not result.blocked
        assert not result.should_stop
        assert result.aggregated.errors == []
    assert (
        len((crowded.parent / "state/audit/audit.jsonl").read_text().splitlines()) == 2
    )
    assert (crowded / ".git/refs/hookline/s-1").is_file()


@pytest.mark.parametrize(
    ("tool", "tool_input", "reason"),
    [
        ("run_shell_command", {"command": "rm -r -f ~"}, "deletes too much"),
        ("write_file", {"file_path": ".env", "content": ""}, "secrets"),
        ("write_file", {"file_path": "../x", "content": ""}, "outside"),
        ("write_file", {"file_path": "src/new.py", "content": ""}, "test first"),
    ],
)
async def test_all_recipes_at_once_still_block(
    crowded: Path, tool: str, tool_input: dict[str, str], reason: str
) -> None:
    config = Config(
        "s-1", crowded, Settings.from_file(crowded / ".hookline/settings.json")
    )
    async with HookSystem(config) as hooks:
        result = await hooks.event_handler.fire_before_tool_event(tool, tool_input)
    assert result.blocked
    assert reason in (result.reason or "")
