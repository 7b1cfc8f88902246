"""Hooks made of a script's source, whose processes are kept or started ahead."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

from hookline import Config, HookSystem, ProcessedHookResult, Settings
from hookline.protocol.results import HookExecutionResult

from .processes import is_alive, wait_until

TOOL = {"tool_name": "write_file", "tool_input": {"path": "a.txt"}}

STANDBY = """
import json, os, sys
with open("started", "a") as pids:
    pids.write(f"{os.getpid()}\\n")
text = sys.stdin.read()
with open("read", "a") as pids:
    pids.write(f"{os.getpid()}\\n")
print(json.dumps({"decision": "block", "reason": str(os.getpid())}))
"""
"""Writes down that it has started and that it has read; its pid is the reason."""


class HookScripts:
    """A folder with scripts that are hooks, and what their processes wrote there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def worker(self, source: str, name: str = "hook", **more: Any) -> dict[str, Any]:
        """Write a script and return the worker hook that runs it."""
        (self.folder / f"{name}.py").write_text(dedent(source))
        command = f"{shlex.quote(sys.executable)} {name}.py"
        return {"type": "worker", "command": command, "name": name, **more}

    def standby(
        self, source: str = STANDBY, name: str = "hook", **more: Any
    ) -> dict[str, Any]:
        """Write a script and return the command hook that is started ahead."""
        hook = self.worker(source, name, **{"standby": 1, **more})
        return hook | {"type": "command"}

    def system(
        self, *hooks: dict[str, Any], config: Any = None, **more: Any
    ) -> HookSystem:
        """A hook system with these hooks before every tool."""
        settings: dict[str, Any] = {"hooks": {"BeforeTool": [{"hooks": list(hooks)}]}}
        if config is not None:
            settings["hooksConfig"] = config
        chosen = Settings.from_mapping(settings)
        return HookSystem(Config("s-1", self.folder, chosen), **more)

    def read(self, name: str) -> str:
        """What a hook wrote into a file; nothing if it never came so far."""
        path = self.folder / name
        return path.read_text() if path.exists() else ""

    def pids(self, name: str = "pids") -> list[int]:
        """The processes that wrote themselves down."""
        return [int(line) for line in self.read(name).split()]

    async def started(self, count: int) -> list[int]:
        """Wait for so many processes in all; those that started, in order."""
        await wait_until(lambda: len(self.pids("started")) >= count)
        return self.pids("started")

    async def nothing_is_left(self) -> None:
        """Wait until all processes that wrote themselves down have ended."""
        names = ("pids", "warm-pid", "started")
        pids = [pid for name in names for pid in self.pids(name)]
        await wait_until(lambda: not any(map(is_alive, pids)))


def only_hook(result: ProcessedHookResult) -> HookExecutionResult:
    """The result of the only hook."""
    [ran] = result.aggregated.hook_results
    return ran


async def ask(hooks: HookSystem) -> tuple[str | None, bool | None]:
    """The reason of the only hook, and whether a process on standby gave it."""
    result = await hooks.event_handler.fire("BeforeTool", TOOL)
    return result.reason, only_hook(result).standby


def hits(result: ProcessedHookResult) -> list[bool | None]:
    """Whether each hook was answered by a process on standby."""
    return [ran.standby for ran in result.aggregated.hook_results]
