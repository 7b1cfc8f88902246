"""The bridge answers before its host gives up, whatever takes long (issue 26.14)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.resident import Desk

DEADLINE = ("--deadline", "12000")
WAYS = {"alone": ("--no-resident",), "with the helper": ()}
HANGS = """
import re, time
def guard(event):
    {}
"""
MANY = "".join(f"*** Add File: f{number}\n+x\n" for number in range(999))
PATCH = f"*** Begin Patch\n{MANY}*** End Patch\n"


def timed(desk: Desk, event: bytes, *words: str) -> tuple[int, bytes, bytes]:
    """What a host gets that waits for as long as the deadline, and not much longer."""
    began = time.monotonic()
    ended = desk.bridge(event, *words)
    assert time.monotonic() - began < 25
    return ended


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_slow_guard_blocks_a_tool_in_time(desk: Desk, way: tuple[str, ...]) -> None:
    """Its own timeout is longer than the host waits; nothing of it stays behind."""
    started = desk.project.folder / "started"
    command = f"touch {started}; trap '' TERM; sleep 300"
    desk.user_settings({"type": "command", "name": "slow", "command": command})
    if not way:
        desk.bridge(desk.event(hook_event_name="Notification", message="x"))
        desk.until(desk.pid)
    status, stdout, _ = timed(desk, desk.event(), *way, "claude", *DEADLINE)
    said = json.loads(stdout)["hookSpecificOutput"]
    assert (status, said["permissionDecision"]) == (0, "deny")
    assert "no verdict on PreToolUse in 12000 ms" in said["permissionDecisionReason"]
    assert "slow" in said["permissionDecisionReason"]
    assert started.exists()
    helper = {desk.pid(), *desk.engines()}
    desk.until(lambda: set(desk.processes()) - desk.shells() <= helper)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_patch_of_many_files_with_a_slow_guard_is_blocked_in_time(
    desk: Desk, way: tuple[str, ...]
) -> None:
    desk.user_settings({"type": "command", "name": "slow", "command": "sleep 1"})
    event = desk.event(tool_name="apply_patch", tool_input={"command": PATCH})
    status, stdout, _ = timed(desk, event, *way, "codex", *DEADLINE)
    said = json.loads(stdout)["hookSpecificOutput"]
    assert (status, said["permissionDecision"]) == (0, "deny")
    assert "for 999 files" in said["permissionDecisionReason"]


@pytest.mark.parametrize("policy", ["allow", "block"])
def test_end_of_a_turn_goes_on_without_a_verdict(desk: Desk, policy: str) -> None:
    """A guard that hangs must not reject every answer for ever."""
    slow = {"type": "command", "name": "slow", "command": "sleep 300"}
    desk.user_settings(slow | {"onError": policy}, event="AfterAgent")
    event = desk.event(hook_event_name="Stop")
    status, stdout, stderr = timed(desk, event, "--no-resident", "claude", *DEADLINE)
    assert (status, json.loads(stdout)) == (0, {})
    assert b"no verdict on Stop" in stderr


@pytest.mark.parametrize(
    "hangs",
    ["time.sleep(300)", "while True: pass", "re.match('(a+)+$', 'a' * 60 + 'b')"],
)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_hook_in_the_same_process_that_hangs_blocks_a_tool(
    desk: Desk, way: tuple[str, ...], hangs: str
) -> None:
    """Not even code that keeps every other thread from running lets the tool run."""
    desk.python_hook(HANGS.format(hangs))
    if not way:
        desk.bridge(desk.event(hook_event_name="Notification", message="x"))
        desk.until(desk.pid)
    status, stdout, stderr = timed(desk, desk.event(), *way, "claude", *DEADLINE)
    if "re.match" in hangs and way:
        assert (status, stdout) == (1, b"")  # onFailure, or the wrapper, blocks
    else:
        assert (status == 2 and stderr) or b'"deny"' in stdout


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_event_that_never_ends_is_blocked(desk: Desk, way: tuple[str, ...]) -> None:
    words = (*way, "copilot", "preToolUse", *DEADLINE)
    with desk.start_client(*words) as client:
        assert client.stdin
        client.stdin.write(b'{"toolName": "bash"')
        client.stdin.flush()
        assert client.wait(25) == 2
        assert client.stderr
        assert b"reading the event from standard input took" in client.stderr.read()


def test_settings_that_take_long_are_named(desk: Desk, tmp_path: Path) -> None:
    module = tmp_path / "sitecustomize.py"
    slow = "import time, tomllib\ntomllib.loads = lambda _: time.sleep(300)\n"
    module.write_text(slow)
    desk.env["PYTHONPATH"] = str(tmp_path)
    desk.project.write(".hookline/settings.toml", "enableHooks = true\n")
    status, stdout, stderr = timed(
        desk, desk.event(), "--no-resident", "claude", *DEADLINE
    )
    assert (status, stdout) == (2, b"")
    assert f"loading the settings for {desk.project.folder}" in stderr.decode()


def test_deadline_is_longer_than_hooks_may_take(desk: Desk, tmp_path: Path) -> None:
    """By default it is what ``install`` would write for the hooks as they are."""
    desk.user_settings({"type": "command", "name": "slow", "command": "sleep 5"})
    for words in (("--no-resident", "claude"), ("claude",)):
        assert desk.bridge(desk.event(), *words)[:2] == (0, b"{}\n")


def test_host_that_waits_for_the_process_gets_its_end(desk: Desk) -> None:
    """Hooks in the background, too, have no longer than the host waits."""
    hook: dict[str, Any] = {"type": "command", "name": "later", "command": "sleep 300"}
    desk.user_settings(hook | {"async": True})
    began = time.monotonic()
    with desk.start_client("--no-resident", "claude", *DEADLINE) as client:
        stdout, _ = client.communicate(desk.event(), timeout=25)
    assert (client.returncode, stdout) == (0, b"{}\n")
    assert time.monotonic() - began < 20
