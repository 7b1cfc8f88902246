"""The pytest plugin: a user's test file, run by pytest in its own process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
    # A base folder of its own: by default pytest removes those of earlier runs, which
    # takes minutes after one of all tests.
    base = f"--basetemp={folder / 'base'}"
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", base, *words],
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


def test_plugin_loads_nothing_until_a_test_uses_it(tmp_path: Path) -> None:
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
