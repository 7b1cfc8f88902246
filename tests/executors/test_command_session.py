"""No session id keeps a guard from starting (protocol.md#process, issue 12.7)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from hookline import Config, HookBusClient, InMemoryMessageBus, RemoteHooks, Settings

SESSIONS: dict[str, tuple[Any, str, str]] = {
    "plain": ("s-1", "s-1", "s-1"),
    "nul": ("a\0b", "a\0b", "ab"),
    "only nul": ("\0", "\0", ""),
    "lone surrogate": ("a\ud800b", "a\ufffdb", "a\ufffdb"),
    "escaped byte": ("a\udcffb", "a\ufffdb", "a\ufffdb"),
    "200 KB": ("x" * 200_000, "x" * 200_000, "x" * 256),
    "200 KB of NUL": ("\0" * 200_000 + "x", "\0" * 200_000 + "x", "x"),
    "newline": ("a\nb=c", "a\nb=c", "a\nb=c"),
    "uuid": (UUID(int=1), str(UUID(int=1)), str(UUID(int=1))),
    "number": (5, "5", "5"),
    "list": (["a"], '["a"]', '["a"]'),
    "empty": ("", "", ""),
}
SCRIPT = """
import json, os
from hookline.script import block, run

def guard(event):
    session = os.environ["HOOKLINE_SESSION_ID"]
    return block(json.dumps([event["session_id"], session]))

run(guard)
"""


def config_of(folder: Path, kind: str, session_id: Any = "own") -> Config:
    (folder / "guard.py").write_text(SCRIPT)
    hook = {"type": kind, "command": f"'{sys.executable}' guard.py", "timeout": 30000}
    settings = {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    return Config(session_id, folder, Settings.from_mapping(settings))


@pytest.mark.parametrize("kind", ["command", "worker"])
@pytest.mark.parametrize(("given", "shown", "env"), SESSIONS.values(), ids=SESSIONS)
async def test_a_guard_starts_whatever_the_session_is_called(
    tmp_path: Path, kind: str, given: Any, shown: str, env: str
) -> None:
    async with config_of(tmp_path, kind) as config:
        system = config.get_hook_system()
        assert system is not None
        await system.initialize()
        event = {"tool_name": "t", "tool_input": {}, "session_id": given}
        result = await system.event_handler.fire("BeforeTool", event)
    assert result.blocked
    assert json.loads(result.reason or "") == [shown, env]


@pytest.mark.parametrize(
    ("given", "shown", "env"),
    [case for name, case in SESSIONS.items() if name != "empty"],
    ids=[name for name in SESSIONS if name != "empty"],
)
async def test_the_same_holds_for_the_session_of_a_config_and_on_a_bus(
    tmp_path: Path, given: Any, shown: str, env: str
) -> None:
    bus = InMemoryMessageBus()
    remote = RemoteHooks(HookBusClient(bus), session_id=given)
    async with config_of(tmp_path, "command", given) as config:
        system = config.get_hook_system()
        assert system is not None
        await system.initialize()
        system.event_handler.listen(bus)
        own = await system.event_handler.fire_before_tool_event("t", {})
        far = await remote.fire_before_tool_event("t", {})
    for result in (own, far):
        assert result.blocked
        assert json.loads(result.reason or "") == [shown, env]
