"""The pytest plugin: a user's own test file, run by a pytest of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline.protocol.results import ProcessedHookResult
from hookline.testing import HookTester, assert_allowed, assert_blocked, assert_modified

EXAMPLE = '''
from pathlib import Path
from hookline.testing import assert_allowed, assert_blocked, assert_modified

HOOK = Path(__file__).with_name("no_env_files.py")


def test_env_files_are_blocked(hooks):
    result = hooks.fire(
        "BeforeTool", script=HOOK, tool="write_file", tool_input={"path": ".env"}
    )
    assert_blocked(result, match="keep secrets")


def test_other_files_pass(hooks):
    (hooks.cwd / "a.txt").write_text("")
    result = hooks.fire(
        "BeforeTool", script=HOOK, tool="write_file", tool_input={"path": "a.txt"}
    )
    assert_allowed(result)


def test_settings_change_the_input(hooks):
    say = """echo '{"hookSpecificOutput": {"tool_input": {"path": "b.txt"}}}'"""
    hook = {"type": "command", "command": say}
    settings = {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    result = hooks.fire("BeforeTool", settings=settings, tool="write_file")
    assert_modified(result, path="b.txt")
'''
HOOK = """
from hookline.script import block, run

def no_env_files(event):
    if event["tool_input"]["path"].endswith(".env"):
        return block("keep secrets out of .env files")

run(no_env_files)
"""


def run_pytest(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def plugin_words() -> tuple[str, ...]:
    """Name the plugin unless the installation has done so."""
    from importlib.metadata import entry_points

    known = {point.value for point in entry_points(group="pytest11")}
    return (
        () if "hookline.testing.plugin" in known else ("-p", "hookline.testing.plugin")
    )


def test_example_of_the_manual_passes(tmp_path: Path) -> None:
    (tmp_path / "test_hook.py").write_text(EXAMPLE)
    (tmp_path / "no_env_files.py").write_text(HOOK)
    ended = run_pytest(tmp_path, *plugin_words())
    assert ended.returncode == 0, ended.stdout
    assert "3 passed" in ended.stdout


def test_plugin_loads_nothing_while_nobody_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(
        "import sys\n"
        "def test_nothing_is_loaded():\n"
        "    loaded = [n for n in sys.modules if n.startswith('hookline')]\n"
        "    assert set(loaded) <= "
        "{'hookline', 'hookline.testing', 'hookline.testing.plugin'}\n"
        "    assert 'msgspec' not in sys.modules\n"
    )
    ended = run_pytest(tmp_path, *plugin_words())
    assert ended.returncode == 0, ended.stdout


@pytest.fixture
def tester(tmp_path: Path) -> HookTester:
    return HookTester(tmp_path)


def fire(tester: HookTester, command: str) -> ProcessedHookResult:
    hook = {"type": "command", "command": command, "name": "h"}
    settings = {"hooks": {"BeforeTool": [{"matcher": "^w", "hooks": [hook]}]}}
    return tester.fire("BeforeTool", settings=settings, tool="write")


async def test_tester_fires_inside_a_running_loop(tester: HookTester) -> None:
    assert_blocked(fire(tester, "echo no >&2; exit 2"), match="^no$")


async def test_tester_fires_asynchronously(tester: HookTester) -> None:
    settings: dict[str, Any] = {"hooks": {}}
    assert_allowed(await tester.fire_async("SessionStart", settings=settings))


def test_assertions_tell_the_whole_story(tester: HookTester) -> None:
    blocked = fire(tester, "echo no >&2; exit 2")
    with pytest.raises(
        AssertionError, match=r"expected it to be allowed, got block: no"
    ):
        assert_allowed(blocked)
    with pytest.raises(AssertionError, match=r"a reason like 'yes', got block: no"):
        assert_blocked(blocked, match="yes")
    with pytest.raises(AssertionError, match=r"expected it to be modified"):
        assert_modified(blocked)
    with pytest.raises(AssertionError, match="expected it to be blocked, got allow"):
        assert_blocked(fire(tester, "true"))


def test_crashed_hook_is_not_taken_for_allowed(tester: HookTester) -> None:
    with pytest.raises(AssertionError, match="exited with status 1"):
        assert_allowed(fire(tester, "echo boom >&2; exit 1"))


def test_wrong_change_is_shown(tester: HookTester) -> None:
    say = """echo '{"hookSpecificOutput": {"tool_input": {"a": 1}}}'"""
    changed = fire(tester, say)
    assert_modified(changed, {"a": 1})
    with pytest.raises(AssertionError, match=r"expected \{'a': 2\}, got \{'a': 1\}"):
        assert_modified(changed, a=2)


def test_tester_wants_a_script_or_settings(tester: HookTester) -> None:
    with pytest.raises(TypeError, match="either a script or settings"):
        tester.fire("BeforeTool")
    with pytest.raises(TypeError, match="env goes with a script"):
        tester.fire("BeforeTool", settings={}, env={"A": "1"})
    with pytest.raises(FileNotFoundError, match=r"no script 'nowhere\.py'"):
        tester.fire("BeforeTool", script="nowhere.py")
