"""Events leave nothing behind: no process, descriptor, thread or file."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from pathlib import Path

import pytest

from hookline import HookSystem
from tests.support.processes import children
from tests.support.workspace import Workspace

FIRES = 1000
AT_ONCE = 8


@pytest.mark.timeout(600)
async def test_thousand_fires_leave_nothing_behind(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """protocol.md#process."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    endings = ["true", "exit 1", "exit 2", "echo x", "kill -9 $$", "exec 0<&-"]
    hooks = [workspace.runs(command) for command in endings]
    settings = {
        "hooks": {
            "BeforeTool": [
                {"matcher": f"^{number}$", "hooks": [hook]}
                for number, hook in enumerate(hooks)
            ]
        }
    }
    async with HookSystem(workspace.config(settings)) as system:
        fire = system.event_handler.fire_before_tool_event
        await fire("0", {})
        gc.collect()  # what other tests left open is not counted here
        processes = children()
        descriptors = len(os.listdir("/proc/self/fd"))
        threads = threading.active_count()
        blocked = 0
        for start in range(0, FIRES, AT_ONCE):
            names = [str(n % len(hooks)) for n in range(start, start + AT_ONCE)]
            results = await asyncio.gather(*(fire(name, {}) for name in names))
            blocked += sum(result.blocked for result in results)
        assert children() == processes
        assert len(os.listdir("/proc/self/fd")) <= descriptors
        assert threading.active_count() <= threads + 1  # the log's own, started once
    assert blocked == len(range(2, FIRES, len(hooks)))
    assert list(scratch.iterdir()) == []
