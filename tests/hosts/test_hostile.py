"""Input that no host should send, and settings that do not work.

No call slips past a guard because it is hard to read, and nobody is left without a
word about hooks that do not run.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline.journal.query import EventFilter, read_journal
from tests.support.bridged import BridgedProject, payload
from tests.support.commandline import Finished
from tests.support.project import Project

CALLS = {
    "claude": payload("claude/PreToolUse-1"),
    "gemini": payload("gemini/BeforeTool-2"),
    "qwen": payload("qwen/PreToolUse-1"),
}
DENY = {"type": "command", "command": "echo no >&2; exit 2"}
STRICT = {"type": "rule", "name": "strict", "when": "false"}


@pytest.fixture
def project(bridged: BridgedProject, tmp_path: Path) -> Project:
    """A project beside the user's own."""
    return Project(tmp_path / "other", tmp_path / "state")


def is_denied(reply: Finished) -> bool:
    wire = json.loads(reply.stdout)
    specific = wire.get("hookSpecificOutput", {})
    return "deny" in (wire.get("decision"), specific.get("permissionDecision"))


def nested(call: dict[str, Any], levels: int) -> bytes:
    text = json.dumps(call | {"tool_input": {"command": "rm", "x": "HERE"}})
    return text.replace('"HERE"', "[" * levels + "]" * levels).encode()


SEEN: dict[str, Any] = {
    "nul": {"tool_input": {"command": "a\0b"}},
    "lone-surrogate": {"tool_input": {"command": "a\ud800b"}},
    "input-is-text": {"tool_input": "rm"},
    "input-is-a-list": {"tool_input": ["rm"]},
    "input-is-null": {"tool_input": None},
    "long-name": {"tool_name": "x" * 10_000},
    "session-is-a-number": {"session_id": 5},
    "session-is-an-object": {"session_id": {"a": 1}},
    "no-cwd": {"cwd": None},
    "relative-cwd": {"cwd": "somewhere"},
    "cwd-is-gone": {"cwd": "/gone/away"},
    "cwd-is-a-file": {"cwd": "/etc/passwd"},
    "cwd-is-a-number": {"cwd": 7},
    "nul-in-cwd": {"cwd": "/a\0b"},
    "agent-is-a-number": {"agent_id": 5, "permission_mode": {"a": 1}},
    "huge-number": {"tool_input": {"command": "x", "n": 10**5000}},
    "not-a-number": {"tool_input": {"command": float("nan")}},
}


def written(call: dict[str, Any]) -> bytes:
    """JSON with numbers of any size."""
    number = call.get("tool_input")
    if isinstance(number, dict) and isinstance(number.get("n"), int):
        text = json.dumps({**call, "tool_input": {"command": "x", "n": "HERE"}})
        return text.replace('"HERE"', "1" + "0" * 5000).encode()
    return json.dumps(call).encode()


def test_odd_values_do_not_keep_a_guard_from_seeing_the_call(
    bridged: BridgedProject, subtests: pytest.Subtests
) -> None:
    """protocol.md#process: no input slips past a guard by being hard to encode."""
    bridged.hook("BeforeTool", DENY)
    for host, (name, more) in itertools.product(CALLS, SEEN.items()):
        with subtests.test(f"{host}: {name}"):
            reply = bridged.ask(host, written(CALLS[host] | more))
            assert is_denied(reply)
            assert reply.returncode == 0


@pytest.mark.parametrize("encoded", ["bom", "bytes", "duplicate"])
def test_odd_bytes_do_not_keep_a_guard_from_seeing_the_call(
    bridged: BridgedProject, encoded: str
) -> None:
    text = json.dumps(CALLS["claude"]).encode()
    stdin = {
        "bom": b"\xef\xbb\xbf" + text,
        "bytes": text.replace(b"echo hi", b"echo \xff\xfe"),
        "duplicate": b'{"hook_event_name": "Notification", ' + text[1:],
    }[encoded]
    bridged.hook("BeforeTool", DENY)
    assert is_denied(bridged.ask("claude", stdin))


@pytest.mark.parametrize("host", CALLS)
@pytest.mark.parametrize("levels", [600, 2_000, 100_000])
def test_a_call_that_is_nested_too_deeply_is_blocked(
    bridged: BridgedProject, host: str, levels: int
) -> None:
    """protocol.md#process: no guard has seen it, whatever its failure policy."""
    bridged.hook("BeforeTool", {"type": "command", "command": "true"})
    for argument in (None, CALLS[host]["hook_event_name"]):
        reply = bridged.ask(host, nested(CALLS[host], levels), argument)
        assert reply.returncode == 2 or is_denied(reply)
        assert "nested" in reply.stderr
    bridged.hook("SessionEnd", {"type": "command", "command": "true"})
    reply = bridged.ask(host, nested(CALLS[host], 2_000))
    assert reply.returncode == 0


def test_fifty_megabytes_are_judged(bridged: BridgedProject) -> None:
    bridged.hook("BeforeTool", DENY)
    large = {"tool_input": {"command": "x" * 50_000_000}}
    assert is_denied(bridged.ask("claude", CALLS["claude"] | large))


@pytest.mark.parametrize("host", CALLS)
@pytest.mark.parametrize("more", [{"tool_name": None}, {"tool_name": 5}])
def test_a_call_without_a_name_follows_the_policy(
    bridged: BridgedProject, host: str, more: Any
) -> None:
    for hook, expected in ((DENY, False), (STRICT, True)):
        bridged.hook("BeforeTool", hook)
        reply = bridged.ask(host, CALLS[host] | more)
        assert is_denied(reply) is expected
        assert "tool_name" in reply.stderr


def test_an_unknown_event_is_named_shortly_and_plainly(bridged: BridgedProject) -> None:
    name = "Frobnicate\x1b[31m\n" + "x" * 10_000
    bridged.hook("BeforeTool", DENY)
    reply = bridged.ask("claude", CALLS["claude"] | {"hook_event_name": name})
    assert reply.stdout == "{}\n"
    assert reply.stderr.count("\n") == 1
    assert "\x1b" not in reply.stderr
    assert len(reply.stderr) < 400


def test_broken_settings_are_said_and_the_others_work(
    bridged: BridgedProject, project: Project
) -> None:
    """protocol.md#settings: the error names the file; other sources still work."""
    project.write(".hookline/settings.json", '{"hooks": {')
    bridged.hook("BeforeTool", DENY)
    reply = bridged.ask("claude", CALLS["claude"] | {"cwd": str(project.folder)})
    assert is_denied(reply)
    assert ".hookline/settings.json" in reply.stderr


def test_hooks_that_do_not_run_are_said(
    bridged: BridgedProject, project: Project
) -> None:
    """protocol.md#settings: no guard is left out without a word."""
    project.guarded()
    bridged.settings({"hooks": {"BeforeTool": [{"hooks": [{"type": "comand"}]}]}})
    reply = bridged.ask("claude", CALLS["claude"] | {"cwd": str(project.folder)})
    assert reply.stdout == "{}\n"
    assert "not trusted and will not run: run 'hookline trust'" in reply.stderr
    assert "comand" in reply.stderr


def test_hooks_that_are_switched_off_say_nothing(bridged: BridgedProject) -> None:
    bridged.settings(
        {"enableHooks": False, "hooks": {"BeforeTool": [{"hooks": [DENY]}]}}
    )
    reply = bridged.ask("claude", CALLS["claude"])
    assert (reply.stdout, reply.stderr) == ("{}\n", "")
    assert (bridged.ask("claude", b"{")).stdout == "{}\n"


def test_projects_are_judged_by_their_own_hooks(
    bridged: BridgedProject, project: Project
) -> None:
    """An untrusted project adds nothing."""
    bridged.hook("BeforeTool", {"type": "command", "command": "true"})
    project.guarded()
    inside = CALLS["claude"] | {"cwd": str(project.folder)}
    outside = CALLS["claude"] | {"cwd": str(bridged.folder)}
    assert not is_denied(bridged.ask("claude", inside))
    assert project.trust() == 0
    assert is_denied(bridged.ask("claude", inside))
    assert not is_denied(bridged.ask("claude", outside))


def test_an_untrusted_project_blocks_where_the_user_says_so(
    bridged: BridgedProject, project: Project
) -> None:
    bridged.settings({"hooksConfig": {"untrusted": "block"}})
    project.guarded()
    reply = bridged.ask("claude", CALLS["claude"] | {"cwd": str(project.folder)})
    assert is_denied(reply)
    assert "untrusted" in reply.stdout


def test_unreadable_events_are_in_the_journal(
    bridged: BridgedProject, tmp_path: Path
) -> None:
    """A line on stderr and in the journal."""
    file = tmp_path / "journal.db"
    bridged.hook("BeforeTool", STRICT, journal=str(file))
    bridged.ask("claude", b"{")
    bridged.ask("claude", CALLS["claude"] | {"tool_name": None})
    with read_journal(str(file)) as journal:
        entries = journal.newest(EventFilter(), None)
    assert {entry.event for entry in entries} == {"Notification", "BeforeTool"}
    assert all("could not be read" in str(entry.reason) for entry in entries)


def test_no_reason_is_too_long_for_a_host(bridged: BridgedProject) -> None:
    """Qwen Code was seen to run the tool after an answer of 2 MB."""
    code = 'print(\'{"decision": "deny", "reason": "\' + \'x\' * 5_000_000 + \'"}\')'
    script = bridged.folder / "long.py"
    script.write_text(code)
    hook = {"type": "command", "command": f"{sys.executable} {script}"}
    bridged.hook("BeforeTool", hook)
    reply = bridged.ask("claude", CALLS["claude"])
    assert is_denied(reply)
    assert len(reply.stdout) < 70_000
