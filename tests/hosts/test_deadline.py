"""A coding agent gets its answer before it gives up, whatever takes long.

Agents wait for a limited time and then run the tool: a guard that hangs must block the
tool by then. The real program is run with a deadline of 12 s, because a slow machine
needs a while to start it; what takes long is waited for side by side.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import Project
from tests.support.resident import Desk

DEADLINE = ("--deadline", "12000")
ALONE: tuple[str, ...] = ("--no-resident",)
WITH_HELPER: tuple[str, ...] = ()
HANGS = """
import pathlib, re, time
def guard(event):
    pathlib.Path("started").touch()
    {}
"""
MANY = "".join(f"*** Add File: f{number}\n+x\n" for number in range(999))
PATCH = f"*** Begin Patch\n{MANY}*** End Patch\n"
Hazard = Callable[[Desk, Any], None]
"""Has something take long, which first makes a file ``started``; checks the answer."""


class SideBySide:
    """Runs hazards at once, each at a desk of its own of which nothing is left."""

    def __init__(self, folder: Path, subtests: pytest.Subtests) -> None:
        self._folder = folder
        self._subtests = subtests

    def run(self, *hazards: tuple[Hazard, Any]) -> None:
        """Run each with its argument, and report each that goes wrong."""
        runs: list[tuple[str, Future[None]]] = []
        with ThreadPoolExecutor(len(hazards)) as pool:
            for hazard, argument in hazards:
                desk = self._desk(str(len(runs)))
                run = pool.submit(self._checked, desk, hazard, argument)
                runs.append((f"{hazard.__name__} {argument}", run))
                # A program that starts beside others takes longer to start.
                started = desk.project.folder / "started"
                desk.until(lambda: started.exists() or run.done())  # noqa: B023
        for name, run in runs:
            with self._subtests.test(name):
                run.result()

    def _desk(self, name: str) -> Desk:
        folder = self._folder / name
        folder.mkdir()
        desk = Desk(Project(folder / "project", folder / "state"), folder / "run")
        desk.env["XDG_CONFIG_HOME"] = str(folder / "config")
        desk.env["XDG_STATE_HOME"] = str(folder / "state")
        return desk

    def _checked(self, desk: Desk, hazard: Hazard, argument: Any) -> None:
        try:
            hazard(desk, argument)
            assert (desk.project.folder / "started").exists()
        finally:
            desk.close()


@pytest.fixture
def side_by_side(tmp_path: Path, subtests: pytest.Subtests) -> SideBySide:
    return SideBySide(tmp_path, subtests)


def timed(desk: Desk, event: bytes, *words: str) -> tuple[int, bytes, bytes]:
    """What a host gets that waits for as long as the deadline, and not much longer."""
    began = time.monotonic()
    ended = desk.bridge(event, *words)
    assert time.monotonic() - began < 25
    return ended


def slow_guard_blocks_a_tool(desk: Desk, way: tuple[str, ...]) -> None:
    """Its own timeout is longer than the host waits; nothing of it stays behind."""
    command = "touch started; trap '' TERM; sleep 300"
    desk.user_settings({"type": "command", "name": "slow", "command": command})
    if way == WITH_HELPER:
        desk.start_helper()
    status, stdout, _ = timed(desk, desk.event(), *way, "claude", *DEADLINE)
    answer = json.loads(stdout)["hookSpecificOutput"]
    assert (status, answer["permissionDecision"]) == (0, "deny")
    assert "no verdict on PreToolUse in 12000 ms" in answer["permissionDecisionReason"]
    assert "slow" in answer["permissionDecisionReason"]
    helper = {*desk.helpers()}
    desk.until(lambda: set(desk.processes()) - desk.shells() <= helper)


def end_of_a_turn_goes_on_without_a_verdict(desk: Desk, policy: str) -> None:
    """A guard that hangs must not reject every answer for ever."""
    slow = {"type": "command", "name": "slow", "command": "touch started; sleep 300"}
    desk.user_settings(slow | {"onError": policy}, event="AfterAgent")
    event = desk.event(hook_event_name="Stop")
    status, stdout, stderr = timed(desk, event, *ALONE, "claude", *DEADLINE)
    assert (status, json.loads(stdout)) == (0, {})
    assert b"no verdict on Stop" in stderr


def event_that_never_ends_is_blocked(desk: Desk, way: tuple[str, ...]) -> None:
    words = (*way, "copilot", "preToolUse", *DEADLINE)
    with desk.start_client(*words) as client:
        assert client.stdin
        client.stdin.write(b'{"toolName": "bash"')
        client.stdin.flush()
        (desk.project.folder / "started").touch()
        assert client.wait(25) == 2
        assert client.stderr
        assert b"reading the event from standard input took" in client.stderr.read()


def settings_that_take_long_are_named(desk: Desk, way: tuple[str, ...]) -> None:
    modules = desk.runtime / "modules"
    modules.mkdir()
    slow = HANGS.format("time.sleep(300)") + "import tomllib\ntomllib.loads = guard\n"
    (modules / "sitecustomize.py").write_text(slow)
    desk.env["PYTHONPATH"] = str(modules)
    desk.project.write(".hookline/settings.toml", "enableHooks = true\n")
    status, stdout, stderr = timed(desk, desk.event(), *way, "claude", *DEADLINE)
    assert (status, stdout) == (2, b"")
    assert f"loading the settings for {desk.project.folder}" in stderr.decode()


def deadline_is_longer_than_hooks_may_take(desk: Desk, way: tuple[str, ...]) -> None:
    """By default it is what ``install`` would write for the hooks as they are."""
    desk.user_settings(
        {"type": "command", "name": "slow", "command": "touch started; sleep 5"}
    )
    assert desk.bridge(desk.event(), *way, "claude")[:2] == (0, b"{}\n")


def host_that_waits_for_the_process_gets_its_end(
    desk: Desk, way: tuple[str, ...]
) -> None:
    """Hooks in the background, too, have no longer than the host waits."""
    command = "touch started; sleep 300"
    hook = {"type": "command", "name": "later", "command": command, "async": True}
    desk.user_settings(hook)
    began = time.monotonic()
    with desk.start_client(*way, "claude", *DEADLINE) as client:
        stdout, _ = client.communicate(desk.event(), timeout=25)
    assert (client.returncode, stdout) == (0, b"{}\n")
    assert time.monotonic() - began < 20


def test_host_gets_its_answer_in_time_whatever_waits(side_by_side: SideBySide) -> None:
    side_by_side.run(
        (slow_guard_blocks_a_tool, ALONE),
        (slow_guard_blocks_a_tool, WITH_HELPER),
        (end_of_a_turn_goes_on_without_a_verdict, "allow"),
        (end_of_a_turn_goes_on_without_a_verdict, "block"),
        (settings_that_take_long_are_named, ALONE),
        (host_that_waits_for_the_process_gets_its_end, ALONE),
        (deadline_is_longer_than_hooks_may_take, ALONE),
        (deadline_is_longer_than_hooks_may_take, WITH_HELPER),
        (event_that_never_ends_is_blocked, ALONE),
        (event_that_never_ends_is_blocked, WITH_HELPER),
    )


def patch_of_many_files_is_blocked(desk: Desk, way: tuple[str, ...]) -> None:
    """Each hook is fast enough, and all of them together are not."""
    desk.user_settings(
        {"type": "command", "name": "slow", "command": "touch started; sleep 5"}
    )
    event = desk.event(tool_name="apply_patch", tool_input={"command": PATCH})
    status, stdout, _ = timed(desk, event, *way, "codex", *DEADLINE)
    answer = json.loads(stdout)["hookSpecificOutput"]
    assert (status, answer["permissionDecision"]) == (0, "deny")
    assert "for 999 files" in answer["permissionDecisionReason"]


def test_patch_of_many_files_with_a_slow_guard_is_blocked_in_time(
    side_by_side: SideBySide,
) -> None:
    side_by_side.run(
        (patch_of_many_files_is_blocked, ALONE),
        (patch_of_many_files_is_blocked, WITH_HELPER),
    )


def hook_in_the_same_process_blocks_a_tool(
    desk: Desk, hangs: tuple[tuple[str, ...], str]
) -> None:
    way, statement = hangs
    desk.python_hook(HANGS.format(statement))
    if way == WITH_HELPER:
        desk.start_helper()
    status, stdout, stderr = timed(desk, desk.event(), *way, "claude", *DEADLINE)
    if "re.match" in statement and way == ALONE:
        assert (status, stdout) == (1, b"")  # onFailure, or the wrapper, blocks
    else:
        assert (status == 2 and stderr) or b'"deny"' in stdout


def test_hook_in_the_same_process_that_hangs_blocks_a_tool(
    side_by_side: SideBySide,
) -> None:
    """Not even code that keeps every other thread from running lets the tool run."""
    waits, spins = "time.sleep(300)", "while True: pass"
    keeps_others_out = "re.match('(a+)+$', 'a' * 60 + 'b')"
    side_by_side.run(
        *(
            (hook_in_the_same_process_blocks_a_tool, (way, statement))
            for statement in (waits, keeps_others_out, spins)
            for way in (ALONE, WITH_HELPER)
        )
    )
