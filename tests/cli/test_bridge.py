"""``hookline bridge`` as a coding agent runs it (issue 15, item 1)."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.captured import captured

DENY = {"decision": "deny", "reason": "no"}
_SPECIFIC = {"permissionDecision": "deny", "permissionDecisionReason": "no"}
CLAUDE = {"hookSpecificOutput": {"hookEventName": "PreToolUse", **_SPECIFIC}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config" / "hookline").mkdir(parents=True)
    (tmp_path / "project").mkdir()
    return tmp_path


def write_hooks(folder: Path, **hooks: Any) -> None:
    found = {event: [{"hooks": [hook]}] for event, hook in hooks.items()}
    file = folder / "config" / "hookline" / "settings.json"
    file.write_text(json.dumps({"hooks": found}))


def bridge(
    folder: Path, *words: str, stdin: bytes
) -> subprocess.CompletedProcess[bytes]:
    own = {"XDG_CONFIG_HOME": str(folder / "config"), "HOOKLINE_NO_RESIDENT": "1"}
    return subprocess.run(
        [sys.executable, "-m", "hookline", "bridge", *words],
        input=stdin,
        capture_output=True,
        cwd=folder / "project",
        env=os.environ | own | {"XDG_STATE_HOME": str(folder / "state")},
        timeout=100,
        check=False,
    )


def test_a_journal_that_cannot_be_written_is_told(folder: Path) -> None:
    """Issue 17: an agent went on without its record, and nobody was told."""
    blocked = folder / "file"
    blocked.write_text("a journal cannot be below a file")
    journal = {"hooksConfig": {"journal": str(blocked / "journal.sqlite")}}
    rule = {"type": "rule", "when": "true", "then": DENY}
    settings = {"hooks": {"BeforeTool": [{"hooks": [rule]}]}, **journal}
    file = folder / "config" / "hookline" / "settings.json"
    file.write_text(json.dumps(settings))
    stdin = json.dumps(captured("claude", "PreToolUse-1")).encode()
    done = bridge(folder, "claude", stdin=stdin)
    assert json.loads(done.stdout) == CLAUDE
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(f"hookline: journal {blocked}/journal.sqlite: ")
    assert line.endswith(". Recording stopped")


def test_a_locked_journal_does_not_hold_the_process(folder: Path) -> None:
    """A host waits for the end of its hook, not for another process's transaction."""
    path = folder / "journal.sqlite"
    rule = {"type": "rule", "when": "true", "then": DENY}
    settings = {
        "hooks": {"BeforeTool": [{"hooks": [rule]}]},
        "hooksConfig": {"journal": str(path)},
    }
    file = folder / "config" / "hookline" / "settings.json"
    file.write_text(json.dumps(settings))
    stdin = json.dumps(captured("claude", "PreToolUse-1")).encode()
    started = time.monotonic()
    bridge(folder, "claude", stdin=stdin)  # makes the journal
    usual_s = time.monotonic() - started
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        started = time.monotonic()
        done = bridge(folder, "claude", stdin=stdin)
        took_s = time.monotonic() - started
    assert json.loads(done.stdout) == CLAUDE
    assert b"nothing could be written for 2 s. Recording stopped" in done.stderr
    assert took_s < 2 * usual_s + 5


@pytest.mark.parametrize(
    ("host", "name", "expected"),
    [
        ("claude", "PreToolUse-1", CLAUDE),
        ("qwen", "PreToolUse-1", CLAUDE),
        ("gemini", "BeforeTool-1", DENY),
    ],
)
def test_a_rule_blocks_in_every_host(
    folder: Path, host: str, name: str, expected: Any
) -> None:
    write_hooks(folder, BeforeTool={"type": "rule", "when": "true", "then": DENY})
    stdin = json.dumps(captured(host, name)).encode()
    done = bridge(folder, host, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout) == expected


def test_hooks_that_nobody_waits_for_run_after_the_answer(folder: Path) -> None:
    """protocol.md#rules, async: the answer first, then a moment for the hooks."""
    seen = folder / "seen.json"
    command = f"cat >{seen}.part && mv {seen}.part {seen}"
    hook = {"type": "command", "command": command, "async": True}
    write_hooks(folder, BeforeTool=hook)
    stdin = json.dumps(captured("claude", "PreToolUse-1")).encode()
    done = bridge(folder, "claude", stdin=stdin)
    assert (done.stdout, done.returncode) == (b"{}\n", 0)
    assert json.loads(seen.read_text())["tool_name"] == "run_shell_command"


def test_no_input_is_not_a_crash(folder: Path) -> None:
    write_hooks(folder, BeforeTool={"type": "command", "command": "true"})
    done = bridge(folder, "gemini", stdin=b"")
    assert (done.stdout, done.returncode) == (b"{}\n", 0)
    assert done.stderr.startswith(b"hookline: Gemini CLI: an event could not be read")


def test_an_unknown_host_is_a_mistake_of_the_user(folder: Path) -> None:
    done = bridge(folder, "cluade", stdin=b"{}")
    assert done.returncode == 1
    assert b"did you mean 'claude'" in done.stderr
