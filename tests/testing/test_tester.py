"""HookTester and the assertions of ``hookline.testing``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline.protocol.results import ProcessedHookResult
from hookline.testing import HookTester, assert_allowed, assert_blocked, assert_modified


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


def test_assertion_errors_show_the_result_and_the_hooks(tester: HookTester) -> None:
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


def test_tester_needs_a_script_or_settings(tester: HookTester) -> None:
    with pytest.raises(TypeError, match="either a script or settings"):
        tester.fire("BeforeTool")
    with pytest.raises(TypeError, match="env goes with a script"):
        tester.fire("BeforeTool", settings={}, env={"A": "1"})
    with pytest.raises(FileNotFoundError, match=r"no script 'nowhere\.py'"):
        tester.fire("BeforeTool", script="nowhere.py")
