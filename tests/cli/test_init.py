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
    words = ("init", "--recipe", "secret-scan", "--recipe", "chained-pair")
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
        assert "build folder" in result["reason"]
        assert len(result["hooks"]) == 2


def test_init_never_overwrites(tmp_path: Path) -> None:
    own = {
        ".hookline/settings.json": '{"hooks": {}}',
        ".hookline/hooks/secret_scan.py": "# mine",
    }
    for name, text in own.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    ended = hookline("init", "--recipe", "secret-scan", cwd=tmp_path)
    assert ended.returncode == 0
    for name, text in own.items():
        assert (tmp_path / name).read_text() == text
    assert '"name": "secret-scan"' in ended.stdout  # what to add to the settings


def test_init_keeps_settings_in_toml(tmp_path: Path) -> None:
    (tmp_path / ".hookline").mkdir()
    (tmp_path / ".hookline/settings.toml").write_text("")
    hookline("init", cwd=tmp_path)
    assert not (tmp_path / ".hookline/settings.json").exists()


def test_init_writes_through_no_link(tmp_path: Path) -> None:
    (tmp_path / ".hookline").mkdir()
    outside = tmp_path / "outside.json"
    (tmp_path / ".hookline/settings.json").symlink_to(outside)
    hookline("init", cwd=tmp_path)
    assert not outside.exists()


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
    assert before.final_output
    assert before.final_output.modified_tool_input == {
        "file_path": str(crowded.resolve() / "src/app.py"),
        "content": "x = 1",
    }
    assert (
        len((crowded.parent / "state/audit/audit.jsonl").read_text().splitlines()) == 2
    )
    assert (crowded / ".git/refs/hookline/s-1").is_file()


@pytest.mark.parametrize(
    ("tool", "tool_input", "reason"),
    [
        ("run_shell_command", {"command": "rm -r -f ~"}, "build folder"),
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
