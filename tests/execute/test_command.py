"""What a command hook's process gets, where one event is not enough to tell.

Commands, their environment and inputs of single events are in ``tests/pins/fire``:
``commands.json``, ``inputs.json``, ``answers.json``, ``exit_and_streams.json``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from hookline import Config, HookBusClient, InMemoryMessageBus, RemoteHooks, Settings
from hookline.protocol.results import FailureCause
from tests.support.workspace import Workspace


async def test_command_longer_than_the_system_takes_is_a_failed_hook(
    workspace: Workspace,
) -> None:
    command = workspace.runs(f"true {'x' * 500_000}")
    result = await workspace.fire("BeforeTool", command)
    [ran] = result.aggregated.hook_results
    assert "could not start" in (ran.error or "")
    assert (ran.cause, result.blocked) == (FailureCause.SPAWN, False)


SESSIONS: dict[str, tuple[Any, str, str]] = {
    "nul": ("a\0b", "a\0b", "ab"),
    "lone surrogate": ("a\ud800b", "a\ufffdb", "a\ufffdb"),
    "200 KB": ("x" * 200_000, "x" * 200_000, "x" * 256),
    "uuid": (UUID(int=1), str(UUID(int=1)), str(UUID(int=1))),
    "list": (["a"], '["a"]', '["a"]'),
}
ANSWER = """
import json, os
from hookline.script import block, run

def guard(event):
    session = os.environ["HOOKLINE_SESSION_ID"]
    return block(json.dumps([os.environ["KIND"], event["session_id"], session]))

run(guard)
"""


@pytest.mark.parametrize(("session", "shown", "env"), SESSIONS.values(), ids=SESSIONS)
async def test_guard_starts_whatever_the_session_is_called(
    tmp_path: Path, session: Any, shown: str, env: str
) -> None:
    """protocol.md#process: of an event, of a config, and on a bus."""
    (tmp_path / "guard.py").write_text(ANSWER)
    command = '"$HOOKLINE_PYTHON" guard.py'
    hooks = [
        {"type": kind, "command": command, "env": {"KIND": kind}}
        for kind in ("command", "worker")
    ]
    settings = Settings.from_mapping({"hooks": {"BeforeTool": [{"hooks": hooks}]}})
    bus = InMemoryMessageBus()
    remote = RemoteHooks(HookBusClient(bus), session_id=session)
    async with Config(session, tmp_path, settings) as config:
        system = config.get_hook_system()
        assert system is not None
        await system.initialize()
        system.event_handler.listen(bus)
        event = {"tool_name": "t", "tool_input": {}, "session_id": session}
        results = [
            await system.event_handler.fire("BeforeTool", event),
            await system.event_handler.fire_before_tool_event("t", {}),
            await remote.fire_before_tool_event("t", {}),
        ]
    for result in results:
        reasons = [json.loads(line) for line in (result.reason or "").splitlines()]
        assert reasons == [["command", shown, env], ["worker", shown, env]]
