"""Input that no host should send, and settings that do not work (issue 15.3)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline.hosts.bridge import Bridge, Reply
from hookline.hosts.catalog import host_of
from hookline.hosts.claude import BATCH
from hookline.journal.query import EventFilter, read_journal
from hookline.protocol.events import TRAITS, HookEventName
from tests.support.project import Project

from .captured import Desk, captured, desk

__all__ = ["desk"]

CALLS = {
    "claude": captured("claude", "PreToolUse-1"),
    "gemini": captured("gemini", "BeforeTool-2"),
    "qwen": captured("qwen", "PreToolUse-1"),
}
DENY = {"type": "command", "command": "echo no >&2; exit 2"}
CRASH = {"type": "command", "command": "exit 1", "onError": "block"}
STRICT = {"type": "rule", "name": "strict", "when": "false"}


@pytest.fixture
def project(desk: Desk, tmp_path: Path) -> Project:
    """A project beside the user's own."""
    return Project(tmp_path / "other", tmp_path / "state")


def is_denied(reply: Reply) -> bool:
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


def written(given: dict[str, Any]) -> bytes:
    """JSON with numbers of any size."""
    number = given.get("tool_input")
    if isinstance(number, dict) and isinstance(number.get("n"), int):
        text = json.dumps({**given, "tool_input": {"command": "x", "n": "HERE"}})
        return text.replace('"HERE"', "1" + "0" * 5000).encode()
    return json.dumps(given).encode()


@pytest.mark.parametrize("host", CALLS)
@pytest.mark.parametrize("more", SEEN.values(), ids=SEEN.keys())
async def test_odd_values_do_not_keep_a_guard_from_seeing_the_call(
    desk: Desk, host: str, more: Any
) -> None:
    """protocol.md#process: no input slips past a guard by being hard to encode."""
    desk.hook("BeforeTool", DENY)
    reply = await desk.ask(host, written(CALLS[host] | more))
    assert is_denied(reply)
    assert reply.status == 0


@pytest.mark.parametrize("encoded", ["bom", "bytes", "duplicate"])
async def test_odd_bytes_do_not_keep_a_guard_from_seeing_the_call(
    desk: Desk, encoded: str
) -> None:
    text = json.dumps(CALLS["claude"]).encode()
    stdin = {
        "bom": b"\xef\xbb\xbf" + text,
        "bytes": text.replace(b"echo hi", b"echo \xff\xfe"),
        "duplicate": b'{"hook_event_name": "Notification", ' + text[1:],
    }[encoded]
    desk.hook("BeforeTool", DENY)
    assert is_denied(await desk.ask("claude", stdin))


@pytest.mark.parametrize("host", CALLS)
@pytest.mark.parametrize("levels", [600, 2_000, 100_000])
async def test_a_call_that_is_nested_too_deeply_is_blocked(
    desk: Desk, host: str, levels: int
) -> None:
    """protocol.md#process: no guard has seen it, whatever its failure policy."""
    desk.hook("BeforeTool", {"type": "command", "command": "true"})
    for argument in (None, CALLS[host]["hook_event_name"]):
        reply = await desk.ask(host, nested(CALLS[host], levels), argument)
        assert reply.status == 2 or is_denied(reply)
        assert b"nested" in reply.stderr
    desk.hook("SessionEnd", {"type": "command", "command": "true"})
    reply = await desk.ask(host, nested(CALLS[host], 2_000))
    assert reply.status == 0


async def test_fifty_megabytes_are_judged(desk: Desk) -> None:
    desk.hook("BeforeTool", DENY)
    large = {"tool_input": {"command": "x" * 50_000_000}}
    assert is_denied(await desk.ask("claude", CALLS["claude"] | large))


@pytest.mark.parametrize("host", CALLS)
@pytest.mark.parametrize("more", [{"tool_name": None}, {"tool_name": 5}])
async def test_a_call_without_a_name_follows_the_policy(
    desk: Desk, host: str, more: Any
) -> None:
    for hook, expected in ((DENY, False), (STRICT, True)):
        desk.hook("BeforeTool", hook)
        reply = await desk.ask(host, CALLS[host] | more)
        assert is_denied(reply) is expected
        assert b"tool_name" in reply.stderr


async def test_an_unknown_event_is_named_shortly_and_plainly(desk: Desk) -> None:
    name = "Frobnicate\x1b[31m\n" + "x" * 10_000
    desk.hook("BeforeTool", DENY)
    reply = await desk.ask("claude", CALLS["claude"] | {"hook_event_name": name})
    assert reply.stdout == b"{}\n"
    assert reply.stderr.count(b"\n") == 1
    assert b"\x1b" not in reply.stderr
    assert len(reply.stderr) < 400


async def test_the_event_in_the_json_counts(desk: Desk) -> None:
    """Another one on the command line neither hides a call nor invents one."""
    desk.hook("BeforeTool", DENY)
    for argument in ("Notification", "Stop", "nonsense"):
        assert is_denied(await desk.ask("claude", CALLS["claude"], argument))
    notice = {"hook_event_name": "Notification", "message": "m"}
    assert not is_denied(await desk.ask("claude", notice, "PreToolUse"))


CLOSED = [
    (host, theirs, ours)
    for host in CALLS
    for theirs, ours in host_of(host).events.items()
    # The first fires no event of its own; Qwen Code obeys nothing at the second.
    if theirs != BATCH and (host, theirs) != ("qwen", "SubagentStart")
]
CAPTURES = {
    "AfterModel": "AfterModel-1",
    "BeforeModel": "BeforeModel-1",
    "BeforeToolSelection": "BeforeToolSelection-1",
}


def sent(host: str, event: str) -> dict[str, Any]:
    """An event with every field that it needs."""
    if event in CAPTURES:
        return captured("gemini", CAPTURES[event])
    fields = {"tool_name": "x", "tool_input": {}, "tool_response": {"llmContent": "s"}}
    more = {"prompt": "p", "error": "e", "message": "m", "agent_id": "a"}
    if event == "PostToolUseFailure":
        del fields["tool_response"]
    return {"hook_event_name": event, "session_id": "s", **fields, **more}


@pytest.mark.parametrize(("host", "theirs", "ours"), CLOSED)
async def test_a_crashing_hook_closes_every_event_that_can_be_closed(
    desk: Desk, host: str, theirs: str, ours: HookEventName
) -> None:
    """Closed forms, in the words of each host; never by accident.

    protocol.md#results
    """
    desk.hook(ours.value, CRASH)
    reply = await desk.ask(host, sent(host, theirs))
    assert reply.status == 0
    wire = json.loads(reply.stdout)
    is_closed = "and onError blocks on crash" in reply.stdout.decode() or "NONE" in str(
        wire
    )
    closes = TRAITS[ours].can_block or TRAITS[ours].can_stop
    assert is_closed is closes


async def test_broken_settings_are_said_and_the_others_work(
    desk: Desk, project: Project
) -> None:
    """protocol.md#settings: the error names the file; other sources still work."""
    project.write(".hookline/settings.json", '{"hooks": {')
    desk.hook("BeforeTool", DENY)
    reply = await desk.ask("claude", CALLS["claude"] | {"cwd": str(project.folder)})
    assert is_denied(reply)
    assert b".hookline/settings.json" in reply.stderr


async def test_hooks_that_do_not_run_are_said(desk: Desk, project: Project) -> None:
    """protocol.md#settings: no guard is left out without a word."""
    project.guarded()
    desk.settings({"hooks": {"BeforeTool": [{"hooks": [{"type": "comand"}]}]}})
    reply = await desk.ask("claude", CALLS["claude"] | {"cwd": str(project.folder)})
    assert reply.stdout == b"{}\n"
    assert b"not trusted and will not run: run 'hookline trust'" in reply.stderr
    assert b"comand" in reply.stderr


async def test_hooks_that_are_switched_off_say_nothing(desk: Desk) -> None:
    desk.settings({"enableHooks": False, "hooks": {"BeforeTool": [{"hooks": [DENY]}]}})
    reply = await desk.ask("claude", CALLS["claude"])
    assert (reply.stdout, reply.stderr) == (b"{}\n", b"")
    assert (await desk.ask("claude", b"{")).stdout == b"{}\n"


@pytest.mark.parametrize("host", CALLS)
async def test_rules_may_ask_which_host_it_is(desk: Desk, host: str) -> None:
    """Issue 15.1: ``host`` is a field like any other, in ``when`` and ``if``."""
    deny = {"decision": "deny", "reason": "${host.tool_name}"}
    desk.rule("BeforeTool", deny, when="host.name == 'claude'")
    assert is_denied(await desk.ask(host, CALLS[host])) is (host == "claude")
    desk.hook("BeforeTool", {**DENY, "if": "host.name == 'qwen'"})
    assert is_denied(await desk.ask(host, CALLS[host])) is (host == "qwen")


async def test_projects_are_judged_by_their_own_hooks(
    desk: Desk, project: Project
) -> None:
    """One bridge for two folders; an untrusted project only adds nothing."""
    desk.hook("BeforeTool", {"type": "command", "command": "true"})
    project.guarded()
    inside = json.dumps(CALLS["claude"] | {"cwd": str(project.folder)}).encode()
    outside = json.dumps(CALLS["claude"] | {"cwd": str(desk.project)}).encode()
    bridge = Bridge(one_shot=False)
    try:
        assert not is_denied(await bridge.answer("claude", None, inside))
        assert project.trust() == 0
        assert is_denied(await bridge.answer("claude", None, inside))
        assert not is_denied(await bridge.answer("claude", None, outside))
    finally:
        await bridge.close()


async def test_an_untrusted_project_blocks_where_the_user_says_so(
    desk: Desk, project: Project
) -> None:
    desk.settings({"hooksConfig": {"untrusted": "block"}})
    project.guarded()
    reply = await desk.ask("claude", CALLS["claude"] | {"cwd": str(project.folder)})
    assert is_denied(reply)
    assert b"untrusted" in reply.stdout


async def test_unreadable_events_are_in_the_journal(desk: Desk, tmp_path: Path) -> None:
    """Issue 15.3: a line on stderr and in the journal."""
    file = tmp_path / "journal.db"
    desk.hook("BeforeTool", STRICT, journal=str(file))
    await desk.ask("claude", b"{")
    await desk.ask("claude", CALLS["claude"] | {"tool_name": None})
    with read_journal(str(file)) as journal:
        found = journal.newest(EventFilter(), None)
    assert {one.event for one in found} == {"Notification", "BeforeTool"}
    assert all("could not be read" in str(one.reason) for one in found)


async def test_no_reason_is_too_long_for_a_host(desk: Desk) -> None:
    """Qwen Code was seen to run the tool after an answer of 2 MB."""
    code = 'print(\'{"decision": "deny", "reason": "\' + \'x\' * 5_000_000 + \'"}\')'
    script = desk.project / "long.py"
    script.write_text(code)
    desk.command("BeforeTool", f"{sys.executable} {script}")
    reply = await desk.ask("claude", CALLS["claude"])
    assert is_denied(reply)
    assert len(reply.stdout) < 70_000
